// Of CUDA's first samples: calls that are checked.
#pragma once
#include "helper_cuda.h"

#define CUDA_SAFE_CALL(call) checkCudaErrors(call)
#define CUDA_SAFE_CALL_NO_SYNC(call) checkCudaErrors(call)
#define CUT_SAFE_CALL(call) (void)(call)
#define CUT_CHECK_ERROR(message) getLastCudaError(message)
#define CUT_DEVICE_INIT(argc, argv)
#define CUT_EXIT(argc, argv)
#define cutilSafeCall(call) checkCudaErrors(call)
#define cutilSafeCallNoSync(call) checkCudaErrors(call)
#define cutilCheckMsg(message) getLastCudaError(message)
#define cutilCheckError(call) (void)(call)
