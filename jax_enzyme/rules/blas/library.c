/* All rules and bodies for one kind of numbers: SCALAR, whose routines start with LETTER, and the real numbers that go
   with it, REAL and REAL_LETTER. COMPLEX is defined if SCALAR is complex. */

#include "support.h"

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
#include "banded.h"
#include "cblas.h"
#include "bodies.h"
#include "stored.h"
#include "inverses.h"
#include "indefinite.h"
#include "norms.h"
#include "single.h"
#include "orthogonal.h"
#include "pivoted.h"
#include "spectral.h"
#include "compact.h"
#include "singular.h"
#include "subset.h"
#include "expert.h"
#include "general.h"
