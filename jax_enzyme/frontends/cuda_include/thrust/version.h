#include "jax_enzyme_thrust.h"
