// Objects of derived type in Fortran, under the names by which flang calls what is done to them.
// provides: _FortranA(Initialize|Destroy|DestroyWithoutFinalization|Finalize|ClassIs|SameTypeAs|ExtendsTypeOf)
#include "fortran_descriptor.h"
#include "fortran_types.h"

using namespace je;

#define LOCATION const char *, int
// A descriptor whose address is not kept. Where one of these functions is not inlined, LLVM still sees that it leaves
// the descriptor as it is: what is destroyed and then initialised is of a type that is known.
#define DESCRIPTOR [[clang::noescape]] const Descriptor &

namespace {

const DerivedType *parent(const DerivedType *type) { return type->has_parent ? type->components[0].type : nullptr; }

bool extends(const DerivedType *type, const DerivedType *ancestor) {
  while (type && type != ancestor) type = parent(type);
  return type;
}

}  // namespace

extern "C" {

void _FortranAInitialize(DESCRIPTOR d, LOCATION) { initialise_elements(d); }

void _FortranADestroy(DESCRIPTOR d) {
  finalise_elements(d);
  destroy_elements(d, owner(d));
}

void _FortranADestroyWithoutFinalization(DESCRIPTOR d) { destroy_elements(d, owner(d)); }

void _FortranAFinalize(DESCRIPTOR d, LOCATION) { finalise_elements(d); }

bool _FortranAClassIs(const Descriptor &d, const DerivedType &type) { return extends(type_of(d), &type); }

bool _FortranASameTypeAs(const Descriptor &a, const Descriptor &b) { return type_of(a) == type_of(b); }

bool _FortranAExtendsTypeOf(const Descriptor &a, const Descriptor &mold) { return extends(type_of(a), type_of(mold)); }

}  // extern "C"
