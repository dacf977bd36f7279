/* Every rule for every kind of number. */

#include "support.h"

#define LETTER s
#define SCALAR float
#define REAL float
#include "rules.h"

#define LETTER d
#define SCALAR double
#define REAL double
#include "rules.h"
