#pragma once
#include "jax_enzyme_cuda.h"
#if __has_include_next(<stdio.h>)
#include_next <stdio.h>
#endif
