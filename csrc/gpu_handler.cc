#include "gpu_handler.h"

#include <algorithm>
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

enum class Platform { kCuda, kHost };

// Everything about one custom call that does not change from run to run.
struct GpuCall {
  GpuKernel kernel;
  BufferMap map;
  std::vector<int32_t> zero;  // per buffer: whether it is filled with zeros before the launch
};

// A platform has types of its own.
template <Platform P>
struct GpuState : GpuCall {
  static ffi::TypeId id;
};
template <>
ffi::TypeId GpuState<Platform::kCuda>::id = {};
template <>
ffi::TypeId GpuState<Platform::kHost>::id = {};

ffi::Error Failed(const GpuCall& call, ffi::ErrorCode code, const std::string& text) {
  return ffi::Error(code, "kernel `" + call.kernel.name + "`: " + text);
}

template <Platform P>
ffi::ErrorOr<std::unique_ptr<GpuState<P>>> Instantiate(std::string_view key, std::string_view name,
                                                       std::string_view recipe, ffi::Span<const int32_t> arguments,
                                                       ffi::Span<const int32_t> results, ffi::Span<const int32_t> zero,
                                                       ffi::Span<const int64_t> sizes, ffi::Span<const int64_t> strides,
                                                       ffi::Span<const int64_t> launch) {
  auto state = std::make_unique<GpuState<P>>();
  GpuKernel& kernel = state->kernel;
  kernel.key = key;
  kernel.name = name;
  kernel.recipe = recipe;
  state->map.arguments.assign(arguments.begin(), arguments.end());
  state->map.results.assign(results.begin(), results.end());
  state->zero.assign(zero.begin(), zero.end());
  const size_t buffers = state->map.size();
  if (results.size() != buffers || zero.size() != buffers || strides.size() != sizes.size() * buffers ||
      launch.size() != 8) {
    return ffi::Unexpected(Failed(*state, ffi::ErrorCode::kInvalidArgument, "malformed attributes"));
  }
  std::copy(launch.begin(), launch.begin() + 3, kernel.grid.begin());
  std::copy(launch.begin() + 3, launch.begin() + 6, kernel.block.begin());
  kernel.shared = launch[6];
  kernel.stages = launch[7];
  kernel.batch = Batch::Merged(sizes.begin(), strides.begin(), sizes.size(), buffers);
  return state;
}

ffi::ErrorOr<const LoadedKernel*> Loaded(const GpuCall& call, int device) {
  std::string error;
  const LoadedKernel* loaded = Load(call.kernel, device, &error);
  if (loaded == nullptr) return ffi::Unexpected(Failed(call, ffi::ErrorCode::kFailedPrecondition, error));
  return loaded;
}

// Modules are loaded before anything runs: a command buffer may only record launches.
ffi::Error InitializeOn(const GpuCall& call, int device) {
  if (call.kernel.batch.total == 0) return ffi::Error::Success();
  auto loaded = Loaded(call, device);
  return loaded.has_error() ? loaded.error() : ffi::Error::Success();
}

ffi::Error ExecuteOn(const GpuCall& call, int device, CUstream stream, ffi::RemainingArgs args,
                     ffi::RemainingRets rets) {
  if (call.kernel.batch.total == 0) return ffi::Error::Success();
  auto found = Loaded(call, device);
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
  const std::string error = Launch(call.kernel, loaded, stream, bases.data());
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
      .template Attr<ffi::Span<const int64_t>>("sizes")
      .template Attr<ffi::Span<const int64_t>>("strides")
      .template Attr<ffi::Span<const int64_t>>("launch");
}

XLA_FFI_DEFINE_HANDLER(kInstantiate, Instantiate<Platform::kCuda>, InstantiateBinding<Platform::kCuda>());
XLA_FFI_DEFINE_HANDLER(
    kInitialize, [](GpuState<Platform::kCuda>* state, int32_t device) { return InitializeOn(*state, device); },
    ffi::Ffi::BindInitialize().Ctx<ffi::State<GpuState<Platform::kCuda>>>().Ctx<ffi::DeviceOrdinal>());
XLA_FFI_DEFINE_HANDLER(kExecute,
                       [](GpuState<Platform::kCuda>* state, int32_t device, CUstream stream, ffi::RemainingArgs args,
                          ffi::RemainingRets rets) { return ExecuteOn(*state, device, stream, args, rets); },
                       ffi::Ffi::Bind()
                           .Ctx<ffi::State<GpuState<Platform::kCuda>>>()
                           .Ctx<ffi::DeviceOrdinal>()
                           .Ctx<ffi::PlatformStream<CUstream>>()
                           .RemainingArgs()
                           .RemainingRets(),
                       {ffi::Traits::kCmdBufferCompatible});

XLA_FFI_DEFINE_HANDLER(kHostInstantiate, Instantiate<Platform::kHost>, InstantiateBinding<Platform::kHost>());
XLA_FFI_DEFINE_HANDLER(
    kHostInitialize, [](GpuState<Platform::kHost>* state) { return InitializeOn(*state, 0); },
    ffi::Ffi::BindInitialize().Ctx<ffi::State<GpuState<Platform::kHost>>>());
XLA_FFI_DEFINE_HANDLER(
    kHostExecute,
    [](GpuState<Platform::kHost>* state, ffi::RemainingArgs args, ffi::RemainingRets rets) {
      return ExecuteOn(*state, 0, nullptr, args, rets);
    },
    ffi::Ffi::Bind().Ctx<ffi::State<GpuState<Platform::kHost>>>().RemainingArgs().RemainingRets());

}  // namespace

XLA_FFI_Error* GpuInstantiate(XLA_FFI_CallFrame* call_frame) {
  if (XLA_FFI_Error* error = RegisterState<GpuState<Platform::kCuda>>(call_frame, "jax_enzyme_cuda_state"))
    return error;
  return kInstantiate(call_frame);
}
XLA_FFI_Error* GpuInitialize(XLA_FFI_CallFrame* call_frame) { return kInitialize(call_frame); }
XLA_FFI_Error* GpuExecute(XLA_FFI_CallFrame* call_frame) { return kExecute(call_frame); }

XLA_FFI_Error* GpuOnHostInstantiate(XLA_FFI_CallFrame* call_frame) {
  if (XLA_FFI_Error* error = RegisterState<GpuState<Platform::kHost>>(call_frame, "jax_enzyme_cuda_on_host_state")) {
    return error;
  }
  return kHostInstantiate(call_frame);
}
XLA_FFI_Error* GpuOnHostInitialize(XLA_FFI_CallFrame* call_frame) { return kHostInitialize(call_frame); }
XLA_FFI_Error* GpuOnHostExecute(XLA_FFI_CallFrame* call_frame) { return kHostExecute(call_frame); }

}  // namespace jax_enzyme
