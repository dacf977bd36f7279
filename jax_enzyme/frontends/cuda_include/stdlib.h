#pragma once
#include "jax_enzyme_cuda.h"
__JE_EXTERN int rand();
namespace std {
using ::rand;
}
