// Array constructors whose size is known only when they are made, under the names by which flang calls them.
// provides: _FortranA(Init|Push)ArrayConstructor\w+
#include "fortran_descriptor.h"
#include "fortran_types.h"

using namespace je;

#define LOCATION const char *, int

extern "C" {

// flang leaves room for this and knows nothing else of it.
struct Constructor {
  Descriptor *to;
  i64 next, room;
};

void _FortranAInitArrayConstructorVector(Constructor &vector, Descriptor &to, bool, LOCATION) {
  vector.to = &to;
  vector.next = 0;
  vector.room = to.base ? to.dim(0).extent : 0;
  if (!to.base) to.dim(0) = {1, 0, to.bytes};
}

static void reserve(Constructor &vector, i64 wanted) {
  Descriptor &to = *vector.to;
  if (wanted > vector.room) {
    const i64 doubled = 2 * vector.room;
    const i64 room = wanted > doubled ? wanted : doubled;
    Local fresh(to);
    fresh.base = static_cast<char *>(__builtin_malloc(room * to.bytes));
    copy_all(fresh, {{vector.next, 1, 1, 1, 1, 1, 1}}, [&](const Index &i) { return address(to, i); });
    __builtin_free(to.base);
    to.base = fresh.base;
    vector.room = room;
  }
  if (wanted > to.dim(0).extent) to.dim(0).extent = wanted;
}

void _FortranAPushArrayConstructorValue(Constructor &vector, const Descriptor &from) {
  const i64 start = vector.next, more = count(from);
  reserve(vector, start + more);
  Local rest(*vector.to);
  rest.base += start * rest.bytes;
  const Extents n = extents(from);
  if (const DerivedType *type = owner(from)) {
    for (i64 i = 0; i < more; ++i) copy_object(*type, rest.base + i * rest.bytes, object(from, i));
  } else if (from.rank == 1) {
    copy_all(rest, n, [&](const Index &i) { return address(from, i); });
  } else {
    i64 at = 0;
    each(n, [&](const Index &i) { copy_element(rest, rest.base + at++ * rest.bytes, address(from, i)); });
  }
  vector.next = start + more;
}

void _FortranAPushArrayConstructorSimpleScalar(Constructor &vector, void *from) {
  const i64 at = vector.next;
  reserve(vector, at + 1);
  copy_element(*vector.to, vector.to->base + at * vector.to->bytes, static_cast<char *>(from));
  vector.next = at + 1;
}

}  // extern "C"
