// Of CUDA's first samples.
#pragma once
#include "cutil.h"
