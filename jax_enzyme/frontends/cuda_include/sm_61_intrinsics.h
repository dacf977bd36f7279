#include "jax_enzyme_cuda.h"
