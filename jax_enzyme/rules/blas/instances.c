/* Every rule for every kind of number. */

#include "support.h"

#define LETTER s
#define REAL_LETTER s
#define SCALAR float
#define REAL float
#include "rules.h"

#define LETTER d
#define REAL_LETTER d
#define SCALAR double
#define REAL double
#include "rules.h"

#define COMPLEX

#define LETTER c
#define REAL_LETTER s
#define SCALAR _Complex float
#define REAL float
#include "rules.h"

#define LETTER z
#define REAL_LETTER d
#define SCALAR _Complex double
#define REAL double
#include "rules.h"
