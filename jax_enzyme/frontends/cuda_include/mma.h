#include "jax_enzyme_cuda_mma.h"
