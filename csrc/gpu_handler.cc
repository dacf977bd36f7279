#include "gpu_handler.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ffi_buffers.h"
#include "ffi_state.h"
#include "gpu_kernels.h"
#include "xla/ffi/api/ffi.h"

namespace jax_enzyme {
namespace {

namespace ffi = xla::ffi;

constexpr const char* kState = "jax_enzyme_cuda_state";
constexpr const char* kHostState = "jax_enzyme_cuda_on_host_state";
constexpr int64_t kAlignment = 256;               // of what XLA allocates
constexpr size_t kAskedAlignment = 16;            // XLA refuses requests for more
constexpr int64_t kMostBytes = int64_t{1} << 50;  // no device has as much

enum class Platform { kGpu, kHost };

// Everything about one custom call that does not change from run to run.
struct GpuCall {
  GpuKernel kernel;
  BufferMap map;
  std::vector<int32_t> zero;    // per buffer: whether it is filled with zeros before the launch
  std::vector<int64_t> growth;  // per buffer: 0, or the bytes of one of its rows, whose number is counted first
  int64_t room = -1;            // the buffer into which they are counted (i64), or -1
  GpuKernel counter;            // what counts them
};

// A platform has types of its own.
template <Platform P>
struct GpuState : GpuCall {
  static ffi::TypeId id;
};
template <>
ffi::TypeId GpuState<Platform::kGpu>::id = {};
template <>
ffi::TypeId GpuState<Platform::kHost>::id = {};

ffi::Error Failed(const GpuCall& call, ffi::ErrorCode code, const std::string& text) {
  return ffi::Error(code, "kernel `" + call.kernel.name + "`: " + text);
}

template <Platform P, Vendor V>
ffi::ErrorOr<std::unique_ptr<GpuState<P>>> Instantiate(std::string_view key, std::string_view name,
                                                       std::string_view recipe, ffi::Span<const int32_t> arguments,
                                                       ffi::Span<const int32_t> results, ffi::Span<const int32_t> zero,
                                                       ffi::Span<const int64_t> growth, ffi::Span<const int64_t> sizes,
                                                       ffi::Span<const int64_t> strides,
                                                       ffi::Span<const int64_t> launch) {
  auto state = std::make_unique<GpuState<P>>();
  GpuKernel& kernel = state->kernel;
  kernel.key = key;
  kernel.name = name;
  kernel.recipe = recipe;
  state->map.arguments.assign(arguments.begin(), arguments.end());
  state->map.results.assign(results.begin(), results.end());
  state->zero.assign(zero.begin(), zero.end());
  state->growth.assign(growth.begin(), growth.end());
  const size_t buffers = state->map.size();
  if (results.size() != buffers || zero.size() != buffers || growth.size() != buffers ||
      strides.size() != sizes.size() * buffers || launch.size() != 11 || launch[9] >= static_cast<int64_t>(buffers)) {
    return ffi::Unexpected(Failed(*state, ffi::ErrorCode::kInvalidArgument, "malformed attributes"));
  }
  std::copy(launch.begin(), launch.begin() + 3, kernel.grid.begin());
  std::copy(launch.begin() + 3, launch.begin() + 6, kernel.block.begin());
  kernel.shared = launch[6];
  kernel.stages = launch[7];
  kernel.last_in_one_block = launch[8] != 0;
  kernel.vendor = V;
  kernel.batch = Batch::Merged(sizes.begin(), strides.begin(), sizes.size(), buffers);
  state->room = launch[9];
  state->counter = kernel;
  state->counter.counts = true;
  state->counter.shared = launch[10];
  state->counter.stages = 1;
  state->counter.last_in_one_block = false;
  return state;
}

ffi::ErrorOr<const LoadedKernel*> Loaded(const GpuCall& call, const GpuKernel& kernel, int device) {
  std::string error;
  const LoadedKernel* loaded = Load(kernel, device, &error);
  if (loaded == nullptr) return ffi::Unexpected(Failed(call, ffi::ErrorCode::kFailedPrecondition, error));
  return loaded;
}

// Modules are loaded before anything runs: a command buffer may only record launches.
ffi::Error InitializeOn(const GpuCall& call, int device) {
  if (call.kernel.batch.total == 0) return ffi::Error::Success();
  auto loaded = Loaded(call, call.kernel, device);
  if (!loaded.has_error() && call.room >= 0) loaded = Loaded(call, call.counter, device);
  return loaded.has_error() ? loaded.error() : ffi::Error::Success();
}

// Memory of the device for the duration of a call; null if there is none left.
using Take = std::function<void*(size_t bytes)>;

// The same of the host.
using HostMemory = std::unique_ptr<void, void (*)(void*)>;

// Counts, waits for the result, and takes memory for the buffers that grow, which lie element after element of the
// batch. `strides` are completed.
ffi::Error Grow(const GpuCall& call, const LoadedKernel& counter, CUstream stream, void** bases,
                std::vector<int64_t>* strides, const Take& take) {
  const Driver& driver = *counter.driver;
  const Batch& batch = call.kernel.batch;
  const size_t buffers = call.map.size();
  std::vector<int64_t> rows(batch.total);
  for (size_t i = 0; i < buffers; ++i) {
    if (call.growth[i] != 0) bases[i] = bases[call.room];  // what counts does not touch it
  }
  if (const std::string error = Launch(call.counter, counter, stream, bases, *strides); !error.empty()) {
    return Failed(call, ffi::ErrorCode::kInternal, "what counts its iterations " + error);
  }
  const auto room = reinterpret_cast<CUdeviceptr>(bases[call.room]);
  CUresult failed = driver.cuMemcpyDtoHAsync(rows.data(), room, rows.size() * sizeof(rows[0]), stream);
  if (failed == 0) failed = driver.cuStreamSynchronize(stream);
  if (failed != 0) {
    return Failed(call, ffi::ErrorCode::kInternal, "its iterations could not be counted: " + driver.Describe(failed));
  }
  const int64_t most = *std::max_element(rows.begin(), rows.end());
  for (size_t i = 0; i < buffers; ++i) {
    if (call.growth[i] == 0) continue;
    const bool fits = most <= kMostBytes / call.growth[i] / batch.total;
    const int64_t wanted = fits ? std::max(most * call.growth[i], int64_t{1}) : 0;
    const int64_t bytes = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    const int64_t all = bytes * batch.total;
    bases[i] = fits ? take(static_cast<size_t>(all)) : nullptr;
    if (bases[i] == nullptr) {
      return Failed(call, ffi::ErrorCode::kResourceExhausted,
                    "reverse mode keeps " + std::to_string(most) +
                        " bytes of its loops of unknown length for each of " + std::to_string(call.growth[i]) +
                        " threads" +
                        (batch.total == 1 ? "" : " of each of " + std::to_string(batch.total) + " batch elements") +
                        ", more than the GPU has memory for: give it fewer elements at a time, or bound the loops");
    }
    int64_t stride = bytes;
    for (size_t d = batch.sizes.size(); d-- > 0; stride *= batch.sizes[d]) (*strides)[d * buffers + i] = stride;
    if (call.zero[i] != 0) {
      failed = driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(bases[i]), 0, static_cast<size_t>(all), stream);
      if (failed != 0) return Failed(call, ffi::ErrorCode::kInternal, "no memory set up: " + driver.Describe(failed));
    }
  }
  return ffi::Error::Success();
}

ffi::Error ExecuteOn(const GpuCall& call, int device, CUstream stream, ffi::RemainingArgs args, ffi::RemainingRets rets,
                     const Take& take) {
  if (call.kernel.batch.total == 0) return ffi::Error::Success();
  auto found = Loaded(call, call.kernel, device);
  if (found.has_error()) return found.error();
  const LoadedKernel& loaded = **found;
  CurrentContext current(loaded);
  CUresult failed = 0;
  const auto note = [&failed](CUresult result) { failed = failed != 0 ? failed : result; };
  const auto address = [](const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
  const auto copy = [&](void* to, const void* from, size_t bytes) {
    if (bytes != 0) note(loaded.driver->cuMemcpyDtoDAsync(address(to), address(from), bytes, stream));
  };
  const auto clear = [&](size_t i, void* at, size_t bytes) {
    if (call.zero[i] != 0 && bytes != 0) note(loaded.driver->cuMemsetD8Async(address(at), 0, bytes, stream));
  };
  std::vector<void*> bases(call.map.size());
  if (ffi::Error error = call.map.Resolve(args, rets, bases.data(), copy, clear); error.failure()) return error;
  if (failed != 0) {
    return Failed(call, ffi::ErrorCode::kInternal,
                  "its buffers could not be set up: " + loaded.driver->Describe(failed));
  }
  std::vector<int64_t> strides = call.kernel.batch.strides;
  if (call.room >= 0) {
    auto counter = Loaded(call, call.counter, device);
    if (counter.has_error()) return counter.error();
    if (ffi::Error error = Grow(call, **counter, stream, bases.data(), &strides, take); error.failure()) return error;
  }
  const std::string error = Launch(call.kernel, loaded, stream, bases.data(), strides);
  return error.empty() ? ffi::Error::Success() : Failed(call, ffi::ErrorCode::kInternal, error);
}

template <Platform P>
auto InstantiateBinding() {
  return ffi::Ffi::BindInstantiate()
      .Attr<std::string_view>("key")
      .template Attr<std::string_view>("name")
      .template Attr<std::string_view>("recipe")
      .template Attr<ffi::Span<const int32_t>>("arguments")
      .template Attr<ffi::Span<const int32_t>>("results")
      .template Attr<ffi::Span<const int32_t>>("zero")
      .template Attr<ffi::Span<const int64_t>>("growth")
      .template Attr<ffi::Span<const int64_t>>("sizes")
      .template Attr<ffi::Span<const int64_t>>("strides")
      .template Attr<ffi::Span<const int64_t>>("launch");
}

XLA_FFI_DEFINE_HANDLER(kInstantiate, (Instantiate<Platform::kGpu, Vendor::kNvidia>),
                       InstantiateBinding<Platform::kGpu>());
XLA_FFI_DEFINE_HANDLER(kRocmInstantiate, (Instantiate<Platform::kGpu, Vendor::kAmd>),
                       InstantiateBinding<Platform::kGpu>());
XLA_FFI_DEFINE_HANDLER(
    kInitialize, [](GpuState<Platform::kGpu>* state, int32_t device) { return InitializeOn(*state, device); },
    ffi::Ffi::BindInitialize().Ctx<ffi::State<GpuState<Platform::kGpu>>>().Ctx<ffi::DeviceOrdinal>());
XLA_FFI_DEFINE_HANDLER(kExecute,
                       [](GpuState<Platform::kGpu>* state, int32_t device, CUstream stream, ffi::RemainingArgs args,
                          ffi::RemainingRets rets) { return ExecuteOn(*state, device, stream, args, rets, nullptr); },
                       ffi::Ffi::Bind()
                           .Ctx<ffi::State<GpuState<Platform::kGpu>>>()
                           .Ctx<ffi::DeviceOrdinal>()
                           .Ctx<ffi::PlatformStream<CUstream>>()
                           .RemainingArgs()
                           .RemainingRets(),
                       {ffi::Traits::kCmdBufferCompatible});
XLA_FFI_DEFINE_HANDLER(
    kCountAndExecute,
    [](GpuState<Platform::kGpu>* state, int32_t device, CUstream stream, ffi::ScratchAllocator scratch,
       ffi::RemainingArgs args, ffi::RemainingRets rets) {
      const Take take = [&](size_t bytes) { return scratch.Allocate(bytes, kAskedAlignment).value_or(nullptr); };
      return ExecuteOn(*state, device, stream, args, rets, take);
    },
    ffi::Ffi::Bind()
        .Ctx<ffi::State<GpuState<Platform::kGpu>>>()
        .Ctx<ffi::DeviceOrdinal>()
        .Ctx<ffi::PlatformStream<CUstream>>()
        .Ctx<ffi::ScratchAllocator>()
        .RemainingArgs()
        .RemainingRets());

XLA_FFI_DEFINE_HANDLER(kHostInstantiate, (Instantiate<Platform::kHost, Vendor::kNvidia>),
                       InstantiateBinding<Platform::kHost>());
XLA_FFI_DEFINE_HANDLER(kRocmOnHostInstantiate, (Instantiate<Platform::kHost, Vendor::kAmd>),
                       InstantiateBinding<Platform::kHost>());
XLA_FFI_DEFINE_HANDLER(
    kHostInitialize, [](GpuState<Platform::kHost>* state) { return InitializeOn(*state, 0); },
    ffi::Ffi::BindInitialize().Ctx<ffi::State<GpuState<Platform::kHost>>>());
XLA_FFI_DEFINE_HANDLER(
    kHostExecute,
    [](GpuState<Platform::kHost>* state, ffi::RemainingArgs args, ffi::RemainingRets rets) {
      return ExecuteOn(*state, 0, nullptr, args, rets, nullptr);
    },
    ffi::Ffi::Bind().Ctx<ffi::State<GpuState<Platform::kHost>>>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER(
    kHostCountAndExecute,
    [](GpuState<Platform::kHost>* state, ffi::RemainingArgs args, ffi::RemainingRets rets) {
      std::vector<HostMemory> taken;
      const Take take = [&](size_t bytes) { return taken.emplace_back(std::malloc(bytes), &std::free).get(); };
      return ExecuteOn(*state, 0, nullptr, args, rets, take);
    },
    ffi::Ffi::Bind().Ctx<ffi::State<GpuState<Platform::kHost>>>().RemainingArgs().RemainingRets());

}  // namespace

XLA_FFI_Error* GpuInstantiate(XLA_FFI_CallFrame* call_frame) {
  XLA_FFI_Error* error = RegisterState<GpuState<Platform::kGpu>>(call_frame, kState);
  return error != nullptr ? error : kInstantiate(call_frame);
}
XLA_FFI_Error* RocmInstantiate(XLA_FFI_CallFrame* call_frame) {
  XLA_FFI_Error* error = RegisterState<GpuState<Platform::kGpu>>(call_frame, kState);
  return error != nullptr ? error : kRocmInstantiate(call_frame);
}
XLA_FFI_Error* GpuInitialize(XLA_FFI_CallFrame* call_frame) { return kInitialize(call_frame); }
XLA_FFI_Error* GpuExecute(XLA_FFI_CallFrame* call_frame) { return kExecute(call_frame); }
XLA_FFI_Error* GpuCountAndExecute(XLA_FFI_CallFrame* call_frame) { return kCountAndExecute(call_frame); }

XLA_FFI_Error* GpuOnHostInstantiate(XLA_FFI_CallFrame* call_frame) {
  XLA_FFI_Error* error = RegisterState<GpuState<Platform::kHost>>(call_frame, kHostState);
  return error != nullptr ? error : kHostInstantiate(call_frame);
}
XLA_FFI_Error* RocmOnHostInstantiate(XLA_FFI_CallFrame* call_frame) {
  XLA_FFI_Error* error = RegisterState<GpuState<Platform::kHost>>(call_frame, kHostState);
  return error != nullptr ? error : kRocmOnHostInstantiate(call_frame);
}
XLA_FFI_Error* GpuOnHostInitialize(XLA_FFI_CallFrame* call_frame) { return kHostInitialize(call_frame); }
XLA_FFI_Error* GpuOnHostExecute(XLA_FFI_CallFrame* call_frame) { return kHostExecute(call_frame); }
XLA_FFI_Error* GpuOnHostCountAndExecute(XLA_FFI_CallFrame* call_frame) { return kHostCountAndExecute(call_frame); }

}  // namespace jax_enzyme
