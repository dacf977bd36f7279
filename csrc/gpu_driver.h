// The part of the drivers' interfaces that launching a kernel takes: CUDA's, and HIP's, whose functions have the same
// parameters under other names.
//
// A driver is opened at run time, so that one build serves machines with and without a GPU, and no header of a vendor's
// is needed: the few types and prototypes are declared here. They are part of the drivers' stable binary interfaces.

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

enum class Vendor { kNvidia = 0, kAmd = 1 };

// CUdevice_attribute, hipDeviceAttribute_t
struct DeviceAttributes {
  int max_threads_per_block;
  int max_block_x;  // y and z follow
  int max_grid_x;   // y and z follow
  int max_shared_per_block;
};
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;
// CUfunction_attribute, hipFunction_attribute
constexpr int kFunctionMaxThreads = 0;
constexpr int kFunctionStaticShared = 1;
constexpr int kFunctionMaxDynamicShared = 8;
// CUjit_option, hipJitOption
constexpr int kJitErrorLog = 5;
constexpr int kJitErrorLogSize = 6;

// Every function by CUDA's name; those whose meaning changed once are found by their newer name.
struct Driver {
  Vendor vendor;
  DeviceAttributes attributes;
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
  CUresult (*cuFuncSetAttribute)(CUfunction function, int attribute, int value);  // CUDA's alone
  CUresult (*hipGetDeviceProperties)(void* properties, int ordinal);              // HIP's alone
  CUresult (*cuMemsetD8Async)(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuStreamSynchronize)(CUstream stream);
  CUresult (*cuLaunchKernel)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** parameters,
                             void** extra);

  // A vendor's driver in this process, opened and initialised by the first call; null and what is wrong where there is
  // none.
  static const Driver* Get(Vendor vendor, std::string* error);

  // What code for a device is made for: `sm_90`, `gfx90a:sramecc+:xnack-`.
  CUresult Architecture(CUdevice device, std::string* name) const;

  // What the driver says of an error: its name and a sentence.
  std::string Describe(CUresult error) const;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_GPU_DRIVER_H_
