#include "gpu_driver.h"

#include <dlfcn.h>

namespace jax_enzyme {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

struct Opened {
  Driver driver = {};
  std::string error;
};

template <typename F>
bool Find(void* library, const char* name, F* function, std::string* error) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) *error = std::string(kLibrary) + " has no " + name + ": the driver is too old";
  return *function != nullptr;
}

bool FindAll(void* library, Driver* d, std::string* error) {
  return Find(library, "cuInit", &d->cuInit, error) && Find(library, "cuGetErrorName", &d->cuGetErrorName, error) &&
         Find(library, "cuGetErrorString", &d->cuGetErrorString, error) &&
         Find(library, "cuDeviceGet", &d->cuDeviceGet, error) &&
         Find(library, "cuDeviceGetAttribute", &d->cuDeviceGetAttribute, error) &&
         Find(library, "cuDevicePrimaryCtxRetain", &d->cuDevicePrimaryCtxRetain, error) &&
         Find(library, "cuCtxPushCurrent_v2", &d->cuCtxPushCurrent, error) &&
         Find(library, "cuCtxPopCurrent_v2", &d->cuCtxPopCurrent, error) &&
         Find(library, "cuModuleLoadDataEx", &d->cuModuleLoadDataEx, error) &&
         Find(library, "cuModuleGetFunction", &d->cuModuleGetFunction, error) &&
         Find(library, "cuFuncGetAttribute", &d->cuFuncGetAttribute, error) &&
         Find(library, "cuFuncSetAttribute", &d->cuFuncSetAttribute, error) &&
         Find(library, "cuMemsetD8Async", &d->cuMemsetD8Async, error) &&
         Find(library, "cuMemcpyDtoDAsync_v2", &d->cuMemcpyDtoDAsync, error) &&
         Find(library, "cuMemcpyDtoHAsync_v2", &d->cuMemcpyDtoHAsync, error) &&
         Find(library, "cuStreamSynchronize", &d->cuStreamSynchronize, error) &&
         Find(library, "cuLaunchKernel", &d->cuLaunchKernel, error);
}

Opened* Open() {
  auto* opened = new Opened();  // never destroyed: XLA's threads may outlive static destructors
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    opened->error = std::string("there is no NVIDIA driver on this machine (") + dlerror() + ")";
    return opened;
  }
  if (!FindAll(library, &opened->driver, &opened->error)) return opened;
  if (const CUresult failed = opened->driver.cuInit(0); failed != 0) {
    opened->error = "the NVIDIA driver does not start: " + opened->driver.Describe(failed);
  }
  return opened;
}

}  // namespace

const Driver* Driver::Get(std::string* error) {
  static const Opened* opened = Open();
  if (opened->error.empty()) return &opened->driver;
  *error = opened->error;
  return nullptr;
}

std::string Driver::Describe(CUresult error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(error, &name) != 0 || name == nullptr) return "error " + std::to_string(error);
  if (cuGetErrorString(error, &text) != 0 || text == nullptr) return name;
  return std::string(name) + ", " + text;
}

}  // namespace jax_enzyme
