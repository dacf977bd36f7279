#include "orbit.h"

const double gm_sun = 2.959122082855911e-4;
