// Numba's counted memory that owns other memory: lists, strings and the like.
// provides: NRT_MemInfo_(alloc_dtor|alloc_dtor_safe|new_varsize_dtor)
#include "numba_object.h"

extern "C" {

Object *NRT_MemInfo_alloc_dtor(u64 size, Destructor destroy) { return made(size, destroy); }
Object *NRT_MemInfo_alloc_dtor_safe(u64 size, Destructor destroy) { return made(size, destroy); }
Object *NRT_MemInfo_new_varsize_dtor(u64 size, Destructor destroy) { return made(size, destroy); }

void je_numba_end(Object *object) {
  if (object->destroy) object->destroy(object->data, object->size, object->context);
}

}  // extern "C"
