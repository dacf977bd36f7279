#include "jax_enzyme_cuda_async.h"
