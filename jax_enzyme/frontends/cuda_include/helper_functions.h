// Of CUDA's samples.
#pragma once
#include "helper_string.h"
#include "helper_timer.h"
