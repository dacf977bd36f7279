#pragma once
#include "jax_enzyme_cuda.h"
#if __has_include_next(<stdlib.h>)
#include_next <stdlib.h>
#endif
