// The part of the CUDA driver's interface that launching a kernel takes.
//
// The driver is opened at run time, so that one build serves machines with and without a GPU, and no header of CUDA's
// is needed: the few types and prototypes are declared here. They are part of the driver's stable binary interface.

#ifndef JAX_ENZYME_GPU_DRIVER_H_
#define JAX_ENZYME_GPU_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace jax_enzyme {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;

// CUdevice_attribute
constexpr int kMaxThreadsPerBlock = 1;
constexpr int kMaxBlockX = 2;  // y and z follow
constexpr int kMaxGridX = 5;   // y and z follow
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;
constexpr int kMaxSharedPerBlockOptIn = 97;
// CUfunction_attribute
constexpr int kFunctionMaxThreads = 0;
constexpr int kFunctionStaticShared = 1;
constexpr int kFunctionMaxDynamicShared = 8;
// CUjit_option
constexpr int kJitErrorLog = 5;
constexpr int kJitErrorLogSize = 6;

// Every function by name; those whose meaning changed once are found by their newer name.
struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuGetErrorName)(CUresult error, const char** text);
  CUresult (*cuGetErrorString)(CUresult error, const char** text);
  CUresult (*cuDeviceGet)(CUdevice* device, int ordinal);
  CUresult (*cuDeviceGetAttribute)(int* value, int attribute, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);
  CUresult (*cuCtxPushCurrent)(CUcontext context);
  CUresult (*cuCtxPopCurrent)(CUcontext* context);
  CUresult (*cuModuleLoadDataEx)(CUmodule* module, const void* image, unsigned count, int* options, void** values);
  CUresult (*cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*cuFuncGetAttribute)(int* value, int attribute, CUfunction function);
  CUresult (*cuFuncSetAttribute)(CUfunction function, int attribute, int value);
  CUresult (*cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuStreamSynchronize)(CUstream stream);
  CUresult (*cuLaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters,
                             void** extra);

  // The driver of this process, opened and initialised by the first call; null and what is wrong where there is none.
  static const Driver* Get(std::string* error);

  // What the driver says of an error: its name and a sentence.
  std::string Describe(CUresult error) const;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_GPU_DRIVER_H_
