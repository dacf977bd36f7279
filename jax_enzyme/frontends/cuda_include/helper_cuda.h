// Of CUDA's samples, and found in many programs: calls that are checked, and the choice of a device.
#pragma once
#include <stdio.h>
#include <stdlib.h>

#include "cuda_runtime.h"
#include "helper_string.h"

template <typename T>
void check(T result, char const *const call, const char *const file, int const line) {
  if (!result) return;
  fprintf(stderr, "CUDA error at %s:%d code=%d \"%s\"\n", file, line, static_cast<int>(result), call);
  exit(EXIT_FAILURE);
}
#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)

inline void __getLastCudaError(const char *message, const char *file, const int line) {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s:%d: %s: (%d) %s\n", file, line, message, static_cast<int>(error), cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}
#define getLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)

inline const char *_cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }
inline int _ConvertSMVer2Cores(int major, int minor) { return major < 8 ? 64 : 128; }
inline const char *_ConvertSMVer2ArchName(int major, int minor) { return "any"; }
inline int gpuDeviceInit(int device) { return device < 0 ? 0 : device; }
inline int gpuGetMaxGflopsDeviceId() { return 0; }
inline int findCudaDevice(int argc, const char **argv) { return 0; }
inline int findIntegratedGPU() { return -1; }
inline bool checkCudaCapabilities(int major, int minor) { return true; }

#ifndef MAX
#define MAX(a, b) (a > b ? a : b)
#endif
#ifndef MIN
#define MIN(a, b) (a < b ? a : b)
#endif
