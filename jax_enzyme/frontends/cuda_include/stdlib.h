#pragma once
#include "jax_enzyme_cuda.h"
__JE_EXTERN int rand();
#if __has_include_next(<stdlib.h>)
#include_next <stdlib.h>
#else
namespace std {
using ::rand;
}
#endif
