// Kernels on GPUs: code that is loaded once per device, and launches.

#ifndef JAX_ENZYME_GPU_KERNELS_H_
#define JAX_ENZYME_GPU_KERNELS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "batch.h"
#include "gpu_driver.h"

namespace jax_enzyme {

// Makes the code of what a recipe describes, or of what counts the memory that this needs, for a device
// (`Driver::Architecture`) and a batch of so many dimensions: PTX, or a code object for AMD's. Empty and an error text
// if that fails. Called without any lock, from a thread of XLA's.
using MakeCode = std::string (*)(std::string_view recipe, const std::string& device, size_t dimensions, bool counts,
                                 std::string* error);
void SetMakeCode(MakeCode make);

// One function of ours on GPUs: what does not change from run to run.
struct GpuKernel {
  Vendor vendor = Vendor::kNvidia;
  std::string name;
  std::string key;
  std::string recipe;
  bool counts = false;               // the kernel that finds out how much memory the recipe's own needs
  int64_t stages = 1;                // kernels, launched in order
  bool last_in_one_block = false;    // the last of them, for each batch element
  std::array<int64_t, 3> grid = {};  // of one batch element
  std::array<int64_t, 3> block = {};
  int64_t shared = 0;  // bytes of dynamic shared memory per block
  Batch batch;

  // Dimensions of the batch that the kernel has to know of.
  size_t dimensions() const { return batch.total == 1 ? 0 : batch.sizes.size(); }
  // Blocks along x, for the whole batch; the greatest number where there are more.
  int64_t blocks() const {
    int64_t all = 0;
    return __builtin_mul_overflow(grid[0], batch.total, &all) ? INT64_MAX : all;
  }
};

// A kernel on one device. Never unloaded: XLA may keep graphs of launches.
struct LoadedKernel {
  const Driver* driver = nullptr;
  CUcontext context = nullptr;
  std::vector<CUfunction> stages;
  std::array<int64_t, 3> grid = {};  // the largest that the device allows
};

// Compiles, loads and checks a kernel, unless an equal one is there for the device: then its grid is checked alone,
// which differs from batch to batch. Null and an error text if it cannot be had, or launched. Comes before every
// launch.
const LoadedKernel* Load(const GpuKernel& kernel, int device, std::string* error);

// The device's context is current as long as this lives.
class CurrentContext {
 public:
  explicit CurrentContext(const LoadedKernel& loaded) : driver_(loaded.driver) {
    pushed_ = driver_->cuCtxPushCurrent(loaded.context) == 0;
  }
  ~CurrentContext() {
    CUcontext popped = nullptr;
    if (pushed_) driver_->cuCtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver* driver_;
  bool pushed_;
};

// Launches all stages on a stream, in the current context; `strides` are those of the batch. An error text, or nothing.
std::string Launch(const GpuKernel& kernel, const LoadedKernel& loaded, CUstream stream, void** bases,
                   const std::vector<int64_t>& strides);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_GPU_KERNELS_H_
