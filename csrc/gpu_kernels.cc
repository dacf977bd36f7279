#include "gpu_kernels.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace jax_enzyme {
namespace {

constexpr int kMaxSharedByDefault = 48 * 1024;  // more than that has to be asked for
constexpr size_t kLogBytes = 16 * 1024;
constexpr size_t kSignatureBytes = 100;

MakeCode g_make_code = nullptr;

std::string Numbers(const std::array<int64_t, 3>& n) {
  return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

// Whether a device allows the grid of a kernel, with the batch that it has now.
bool GridFits(const GpuKernel& kernel, const std::array<int64_t, 3>& allowed, std::string* error) {
  const std::array<int64_t, 3> grid = {kernel.blocks(), kernel.grid[1], kernel.grid[2]};
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] <= allowed[axis]) continue;
    const std::string batch = kernel.batch.total == 1 ? ""
                                                      : " for each of " + std::to_string(kernel.batch.total) +
                                                            " elements of a batch, which share the x axis,";
    *error = "a grid of " + Numbers(kernel.grid) + " blocks" + batch + " is too large along " + "xyz"[axis] +
             ": this GPU allows " + std::to_string(allowed[axis]);
    return false;
  }
  return true;
}

// What a device allows.
struct Limits {
  int threads = 0;
  int block[3] = {};
  std::array<int64_t, 3> grid = {};
  int shared = 0;
  std::string architecture;
};

class Loader {
 public:
  Loader(const GpuKernel& kernel, int ordinal, std::string* error)
      : kernel_(kernel), ordinal_(ordinal), error_(error) {}

  // The kernel's code. Needs no lock: that is Python's to take.
  bool Compile() {
    driver_ = Driver::Get(kernel_.vendor, error_);
    if (driver_ == nullptr) return false;
    if (!Works(driver_->cuDeviceGet(&device_, ordinal_), "find GPU " + std::to_string(ordinal_)) || !Measure() ||
        !FitsDevice()) {
      return false;
    }
    if (g_make_code == nullptr) return Refuse("the extension is not initialised");
    code_ = g_make_code(kernel_.recipe, limits_.architecture, kernel_.dimensions(), kernel_.counts, error_);
    return !code_.empty();
  }

  // The compiled kernel on the device; null where that fails.
  std::unique_ptr<LoadedKernel> Load() {
    auto loaded = std::make_unique<LoadedKernel>();
    loaded->driver = driver_;
    loaded->grid = limits_.grid;
    if (!Works(driver_->cuDevicePrimaryCtxRetain(&loaded->context, device_), "open its context")) return nullptr;
    CurrentContext current(*loaded);
    return LoadModule(loaded.get()) ? std::move(loaded) : nullptr;
  }

 private:
  bool Refuse(const std::string& text) {
    *error_ = text;
    return false;
  }

  bool Works(CUresult result, const std::string& what) {
    return result == 0 || Refuse("could not " + what + ": " + driver_->Describe(result));
  }

  bool Measure() {
    const DeviceAttributes& known_as = driver_->attributes;
    const std::string what = "ask the GPU for its limits";
    const auto get = [&](int attribute, int* value) {
      return Works(driver_->cuDeviceGetAttribute(value, attribute, device_), what);
    };
    bool known = get(known_as.max_threads_per_block, &limits_.threads) &&
                 get(known_as.max_shared_per_block, &limits_.shared) &&
                 Works(driver_->Architecture(device_, &limits_.architecture), what);
    for (int axis = 0; known && axis < 3; ++axis) {
      int blocks = 0;
      known = get(known_as.max_block_x + axis, &limits_.block[axis]) && get(known_as.max_grid_x + axis, &blocks);
      limits_.grid[axis] = blocks;
      // HIP counts threads, in 32 bits.
      if (driver_->vendor == Vendor::kAmd && kernel_.block[axis] > 0) {
        limits_.grid[axis] = std::min<int64_t>(blocks, UINT32_MAX / kernel_.block[axis]);
      }
    }
    return known;
  }

  bool FitsDevice() {
    if (!GridFits(kernel_, limits_.grid, error_)) return false;
    for (int axis = 0; axis < 3; ++axis) {
      if (kernel_.block[axis] > limits_.block[axis]) {
        return Refuse("a block of " + Numbers(kernel_.block) + " threads is too large along " + "xyz"[axis] +
                      ": this GPU allows " + std::to_string(limits_.block[axis]));
      }
    }
    const int64_t threads = kernel_.block[0] * kernel_.block[1] * kernel_.block[2];
    return threads <= limits_.threads ||
           Refuse("a block of " + std::to_string(threads) + " threads is too large: this GPU allows " +
                  std::to_string(limits_.threads));
  }

  bool LoadModule(LoadedKernel* loaded) {
    std::string log(kLogBytes, '\0');
    int options[] = {kJitErrorLog, kJitErrorLogSize};
    void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
    CUmodule module = nullptr;
    if (const CUresult failed = driver_->cuModuleLoadDataEx(&module, code_.data(), 2, options, values); failed != 0) {
      return Refuse("the driver rejects its code (" + driver_->Describe(failed) + "): " + log.c_str());
    }
    for (int64_t stage = 0; stage < kernel_.stages; ++stage) {
      CUfunction function = nullptr;
      const std::string name = "je_kernel_" + std::to_string(stage);
      if (!Works(driver_->cuModuleGetFunction(&function, module, name.c_str()), "find " + name + " in its code") ||
          !FitsFunction(function)) {
        return false;
      }
      loaded->stages.push_back(function);
    }
    return true;
  }

  bool FitsFunction(CUfunction function) {
    int threads = 0, fixed = 0;
    const std::string what = "ask for what it needs";
    if (!Works(driver_->cuFuncGetAttribute(&threads, kFunctionMaxThreads, function), what) ||
        !Works(driver_->cuFuncGetAttribute(&fixed, kFunctionStaticShared, function), what)) {
      return false;
    }
    if (const int64_t wanted = kernel_.block[0] * kernel_.block[1] * kernel_.block[2]; wanted > threads) {
      return Refuse("a block of " + std::to_string(wanted) +
                    " threads needs more registers than this GPU has: at most " + std::to_string(threads) +
                    " threads fit");
    }
    if (fixed + kernel_.shared > limits_.shared) {
      return Refuse("it needs " + std::to_string(fixed) + " bytes of static and " + std::to_string(kernel_.shared) +
                    " bytes of dynamic shared memory per block: this GPU has " + std::to_string(limits_.shared));
    }
    if (driver_->vendor == Vendor::kAmd || fixed + kernel_.shared <= kMaxSharedByDefault) return true;
    const int dynamic = static_cast<int>(kernel_.shared);
    return Works(driver_->cuFuncSetAttribute(function, kFunctionMaxDynamicShared, dynamic), "have its shared memory");
  }

  const GpuKernel& kernel_;
  const int ordinal_;
  std::string* error_;
  const Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  Limits limits_;
  std::string code_;
};

// What has been loaded into this process. A kernel is loaded once, however many programs and threads ask for it.
class LoadedKernels {
 public:
  const LoadedKernel* Get(const GpuKernel& kernel, int device, std::string* error) {
    // With the signature that the recipe starts with: no stored program can put its code under another one's key.
    const std::string key = kernel.key + kernel.recipe.substr(0, kSignatureBytes);
    Slot* slot = Find({kernel.vendor, key, kernel.counts, kernel.dimensions(), device});
    if (const LoadedKernel* known = slot->Get()) return GridFits(kernel, known->grid, error) ? known : nullptr;
    Loader loader(kernel, device, error);
    if (!loader.Compile()) return nullptr;
    std::lock_guard<std::mutex> lock(slot->mutex);
    if (slot->loaded == nullptr) slot->loaded = loader.Load();
    return slot->loaded.get();
  }

 private:
  using Key = std::tuple<Vendor, std::string, bool, size_t, int>;
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<LoadedKernel> loaded;

    const LoadedKernel* Get() {
      std::lock_guard<std::mutex> lock(mutex);
      return loaded.get();
    }
  };

  Slot* Find(Key key) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<Slot>& slot = slots_[std::move(key)];
    if (slot == nullptr) slot = std::make_unique<Slot>();
    return slot.get();
  }

  std::mutex mutex_;
  std::map<Key, std::unique_ptr<Slot>> slots_;
};

}  // namespace

void SetMakeCode(MakeCode make) { g_make_code = make; }

const LoadedKernel* Load(const GpuKernel& kernel, int device, std::string* error) {
  static auto* kernels = new LoadedKernels();  // never destroyed: XLA's threads may outlive static destructors
  return kernels->Get(kernel, device, error);
}

std::string Launch(const GpuKernel& kernel, const LoadedKernel& loaded, CUstream stream, void** bases,
                   const std::vector<int64_t>& strides) {
  // The order of `codegen/gpu/entry.py`: buffers, the sizes of all batch dimensions but the outermost, strides.
  const size_t buffers = strides.size() / kernel.batch.sizes.size();
  std::vector<void*> parameters;
  parameters.reserve(buffers * (1 + kernel.dimensions()) + kernel.dimensions());
  for (size_t i = 0; i < buffers; ++i) parameters.push_back(&bases[i]);
  if (kernel.dimensions() != 0) {
    for (size_t d = 1; d < kernel.batch.sizes.size(); ++d) {
      parameters.push_back(const_cast<int64_t*>(&kernel.batch.sizes[d]));
    }
    for (const int64_t& stride : strides) parameters.push_back(const_cast<int64_t*>(&stride));
  }
  const auto u = [](int64_t n) { return static_cast<unsigned>(n); };  // `Load` has found that it fits
  for (size_t stage = 0; stage < loaded.stages.size(); ++stage) {
    const bool alone = kernel.last_in_one_block && stage + 1 == loaded.stages.size();
    const int64_t x = alone ? kernel.batch.total : kernel.blocks();
    const CUresult failed = loaded.driver->cuLaunchKernel(
        loaded.stages[stage], u(x), u(alone ? 1 : kernel.grid[1]), u(alone ? 1 : kernel.grid[2]), u(kernel.block[0]),
        u(kernel.block[1]), u(kernel.block[2]), u(kernel.shared), stream, parameters.data(), nullptr);
    if (failed != 0) return "could not be launched: " + loaded.driver->Describe(failed);
  }
  return "";
}

}  // namespace jax_enzyme
