#include "../c_include/omp.h"
