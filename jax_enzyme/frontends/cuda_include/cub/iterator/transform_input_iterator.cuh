#include "jax_enzyme_cub.h"
