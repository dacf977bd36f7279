#include "gpu_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

namespace jax_enzyme {
namespace {

// How a vendor's driver is opened. `libraries` are tried in order; one that the process has already comes first.
struct Origin {
  Vendor vendor;
  const char* title;
  std::vector<const char*> libraries;
  DeviceAttributes attributes;
};

const Origin kCuda = {Vendor::kNvidia, "NVIDIA", {"libcuda.so.1"}, {1, 2, 5, 97}};
const Origin kHip = {Vendor::kAmd, "AMD", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}, {56, 26, 29, 74}};

struct Opened {
  Driver driver = {};
  std::string error;
};

class Functions {
 public:
  Functions(void* library, const char* name, std::string* error) : library_(library), name_(name), error_(error) {}

  template <typename F>
  bool Find(const char* name, F* function) {
    *function = reinterpret_cast<F>(dlsym(library_, name));
    if (*function == nullptr) *error_ = std::string(name_) + " has no " + name + ": the driver is too old";
    return *function != nullptr;
  }

 private:
  void* library_;
  const char* name_;
  std::string* error_;
};

bool FindCuda(Functions f, Driver* d) {
  return f.Find("cuInit", &d->cuInit) && f.Find("cuGetErrorName", &d->cuGetErrorName) &&
         f.Find("cuGetErrorString", &d->cuGetErrorString) && f.Find("cuDeviceGet", &d->cuDeviceGet) &&
         f.Find("cuDeviceGetAttribute", &d->cuDeviceGetAttribute) &&
         f.Find("cuDevicePrimaryCtxRetain", &d->cuDevicePrimaryCtxRetain) &&
         f.Find("cuCtxPushCurrent_v2", &d->cuCtxPushCurrent) && f.Find("cuCtxPopCurrent_v2", &d->cuCtxPopCurrent) &&
         f.Find("cuModuleLoadDataEx", &d->cuModuleLoadDataEx) &&
         f.Find("cuModuleGetFunction", &d->cuModuleGetFunction) &&
         f.Find("cuFuncGetAttribute", &d->cuFuncGetAttribute) && f.Find("cuFuncSetAttribute", &d->cuFuncSetAttribute) &&
         f.Find("cuMemsetD8Async", &d->cuMemsetD8Async) && f.Find("cuMemcpyDtoDAsync_v2", &d->cuMemcpyDtoDAsync) &&
         f.Find("cuMemcpyDtoHAsync_v2", &d->cuMemcpyDtoHAsync) &&
         f.Find("cuStreamSynchronize", &d->cuStreamSynchronize) && f.Find("cuLaunchKernel", &d->cuLaunchKernel);
}

bool FindHip(Functions f, Driver* d) {
  return f.Find("hipInit", &d->cuInit) && f.Find("hipDrvGetErrorName", &d->cuGetErrorName) &&
         f.Find("hipDrvGetErrorString", &d->cuGetErrorString) && f.Find("hipDeviceGet", &d->cuDeviceGet) &&
         f.Find("hipDeviceGetAttribute", &d->cuDeviceGetAttribute) &&
         f.Find("hipGetDevicePropertiesR0600", &d->hipGetDeviceProperties) &&
         f.Find("hipDevicePrimaryCtxRetain", &d->cuDevicePrimaryCtxRetain) &&
         f.Find("hipCtxPushCurrent", &d->cuCtxPushCurrent) && f.Find("hipCtxPopCurrent", &d->cuCtxPopCurrent) &&
         f.Find("hipModuleLoadDataEx", &d->cuModuleLoadDataEx) &&
         f.Find("hipModuleGetFunction", &d->cuModuleGetFunction) &&
         f.Find("hipFuncGetAttribute", &d->cuFuncGetAttribute) && f.Find("hipMemsetD8Async", &d->cuMemsetD8Async) &&
         f.Find("hipMemcpyDtoDAsync", &d->cuMemcpyDtoDAsync) && f.Find("hipMemcpyDtoHAsync", &d->cuMemcpyDtoHAsync) &&
         f.Find("hipStreamSynchronize", &d->cuStreamSynchronize) && f.Find("hipModuleLaunchKernel", &d->cuLaunchKernel);
}

Opened* Open(const Origin& origin) {
  auto* opened = new Opened();  // never destroyed: XLA's threads may outlive static destructors
  const std::string title = origin.title;
  void* library = nullptr;
  const char* name = nullptr;
  for (const int known : {RTLD_NOLOAD, 0}) {  // JAX may have opened one of several
    for (const char* tried : origin.libraries) {
      if (library == nullptr) library = dlopen(name = tried, RTLD_NOW | RTLD_LOCAL | known);
    }
  }
  if (library == nullptr) {
    const char* reason = dlerror();
    opened->error = "there is no " + title + " driver on this machine (" + (reason == nullptr ? name : reason) + ")";
    return opened;
  }
  Driver& driver = opened->driver;
  driver.vendor = origin.vendor;
  driver.attributes = origin.attributes;
  const Functions functions(library, name, &opened->error);
  if (!(origin.vendor == Vendor::kNvidia ? FindCuda(functions, &driver) : FindHip(functions, &driver))) return opened;
  if (const CUresult failed = driver.cuInit(0); failed != 0) {
    opened->error = "the " + title + " driver does not start: " + driver.Describe(failed);
  }
  return opened;
}

}  // namespace

const Driver* Driver::Get(Vendor vendor, std::string* error) {
  const auto cuda = [] {
    static const Opened* opened = Open(kCuda);
    return opened;
  };
  const auto hip = [] {
    static const Opened* opened = Open(kHip);
    return opened;
  };
  const Opened* opened = vendor == Vendor::kNvidia ? cuda() : hip();
  if (opened->error.empty()) return &opened->driver;
  *error = opened->error;
  return nullptr;
}

CUresult Driver::Architecture(CUdevice device, std::string* name) const {
  if (vendor == Vendor::kNvidia) {
    int major = 0, minor = 0;
    CUresult failed = cuDeviceGetAttribute(&major, kCapabilityMajor, device);
    if (failed == 0) failed = cuDeviceGetAttribute(&minor, kCapabilityMinor, device);
    *name = "sm_" + std::to_string(10 * major + minor);
    return failed;
  }
  // A structure that starts with the device's name, in 256 bytes, and differs between versions of HIP: what is needed
  // of it is the one text in it that names an architecture.
  std::vector<char> properties(16 * 1024);
  const CUresult failed = hipGetDeviceProperties(properties.data(), device);
  constexpr size_t kName = 256;
  const char sought[] = {'\0', 'g', 'f', 'x'};
  const auto found = std::search(properties.begin() + kName, properties.end() - kName, sought, sought + sizeof(sought));
  *name = found == properties.end() - kName ? "" : &*found + 1;
  return failed;
}

std::string Driver::Describe(CUresult error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(error, &name) != 0 || name == nullptr) return "error " + std::to_string(error);
  if (cuGetErrorString(error, &text) != 0 || text == nullptr) return name;
  return std::string(name) + ", " + text;
}

}  // namespace jax_enzyme
