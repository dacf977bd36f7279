/* All rules for the kind of number SCALAR, whose routines start with LETTER. */

#define BLAS(name) JOIN3(LETTER, name, _)
#define REAL_BLAS(name) JOIN3(REAL_LETTER, name, _)
#define RULE(name, part) JOIN(JOIN3(je_, LETTER, name), part)
#define OF(name) JOIN3(je_, LETTER, JOIN(_, name))

#include "helpers.h"
#include "level1.h"
#include "level2.h"
#include "level3.h"
#include "complex.h"
#include "lapack.h"
#include "cblas.h"

#undef BLAS
#undef REAL_BLAS
#undef RULE
#undef OF
#undef LETTER
#undef REAL_LETTER
#undef SCALAR
#undef REAL
