// For a program in which no object owns another, so that there is no call through a pointer.
// provides: je_numba_end
#include "numba_object.h"

extern "C" void je_numba_end(Object *) {}
