#include "cpu_handler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch.h"
#include "checked.h"
#include "checked_calls.h"
#include "crashes.h"
#include "ffi_buffers.h"
#include "ffi_state.h"
#include "float_environment.h"
#include "kept_memory.h"
#include "kernel_table.h"
#include "sharing.h"
#include "thrown.h"
#include "xla/ffi/api/ffi.h"

namespace jax_enzyme {
namespace {

namespace ffi = xla::ffi;

constexpr size_t kInlineBuffers = 48;

Rebuild g_rebuild = nullptr;

// Everything about one custom call that does not change from run to run.
struct KernelState {
  static ffi::TypeId id;

  std::shared_ptr<Code> code;
  Entry entry = nullptr;
  std::string name;
  BufferMap map;
  Batch batch;
  std::vector<int64_t> sizes;   // of the batch as the caller has it
  bool is_batched = false;      // there is one, perhaps of a single element
  int64_t threads = INT64_MAX;  // that may run it
  bool in_order = false;        // its batch elements, one after the other: it calls MPI

  size_t buffers() const { return map.size(); }
};

ffi::TypeId KernelState::id = {};

// The text that the kernel's own code has for a failure, such as the message of an exception; empty if it has none.
std::string FailureText(const KernelState& state, int64_t status) {
  const Failure kind = FailureKind(status);
  if (kind != Failure::kTerminated && kind != Failure::kException) return "";
  const auto* text = reinterpret_cast<const char*>(state.entry(nullptr, nullptr, FailureNumber(status), -1, nullptr));
  return text == nullptr ? "" : text;
}

// Which batch element is the first that failed, as far as it is known.
class FirstFailure {
 public:
  // `status` is what the entry returned for elements from `lo` on, `thrown` the exception that left it.
  void Note(int64_t lo, int64_t status, std::string thrown) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (lo >= from_) return;
    from_ = lo;
    thrown_ = std::move(thrown);
    element_ = FailureElement(status) == kManyElements ? -1 : lo + FailureElement(status);
  }
  int64_t element() const { return element_; }  // -1 where it is not known
  const std::string& thrown() const { return thrown_; }

 private:
  std::mutex mutex_;
  int64_t from_ = INT64_MAX;
  int64_t element_ = -1;
  std::string thrown_;
};

// " in batch element 3", or "(1, 0)" of a batch of several dimensions; nothing where there is no batch. Of an array
// that is split over devices, each counts its own part, which may be a single element: the device then says which.
std::string Element(const KernelState& state, int64_t element, int32_t device) {
  const std::string on_device = device > 0 ? " on device " + std::to_string(device) : "";
  if (element < 0 || !state.is_batched || (state.batch.total == 1 && device > 0)) return on_device;
  std::string index;
  for (size_t d = state.sizes.size(); d-- > 0; element /= state.sizes[d]) {
    index = std::to_string(element % state.sizes[d]) + (index.empty() ? "" : ", ") + index;
  }
  if (state.sizes.size() > 1) index = "(" + index + ")";
  return " in batch element " + index + (device > 0 ? " of the part" + on_device : "");
}

ffi::Error Describe(const KernelState& state, int64_t status, const std::string& where, const std::string& thrown) {
  const std::string kernel = "kernel `" + state.name + "` ";
  if (!thrown.empty()) {
    return ffi::Error(ffi::ErrorCode::kAborted, kernel + "failed" + where + ": " + thrown +
                                                    ", thrown by a library: no `catch` of the kernel's sees it");
  }
  if (const std::string text = FailureText(state, status); !text.empty()) {
    return ffi::Error(ffi::ErrorCode::kAborted, kernel + "failed" + where + ": " + text);
  }
  const std::string number = std::to_string(FailureNumber(status));
  switch (FailureKind(status)) {
    case Failure::kStatus:
      return ffi::Error(ffi::ErrorCode::kAborted, kernel + "returned status " + number + where);
    case Failure::kOutOfMemory:
      return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                        kernel + "ran out of memory for its working storage" + where);
    case Failure::kTerminated:
      return ffi::Error(ffi::ErrorCode::kAborted, kernel + "tried to end the process" + where +
                                                      " (exit, abort, a failed assertion or a trap; number " + number +
                                                      ")");
    case Failure::kChecked:
      return ffi::Error(ffi::ErrorCode::kAborted, kernel + TakeReport(FailureNumber(status)) + where);
    case Failure::kException:
      return ffi::Error(ffi::ErrorCode::kAborted, kernel + "was left by a C++ exception or a Rust panic" + where);
  }
  return ffi::Error(ffi::ErrorCode::kInternal, kernel + "failed with the unknown code " + std::to_string(status));
}

constexpr int64_t kLeftByException =
    static_cast<int64_t>(static_cast<uint64_t>(Failure::kException) << 32 | static_cast<uint64_t>(kManyElements) << 40);

// Runs the batch elements [lo, hi), numbered through all batch dimensions; the innermost one runs inside the entry.
int64_t RunRange(const KernelState& state, void* const* bases, int64_t lo, int64_t hi, const Team* team,
                 FirstFailure& failure) {
  const DefaultFloatEnvironment environment;
  const InKernel marked(state.name.c_str());
  const size_t buffers = state.buffers();
  const size_t inner = state.batch.sizes.size() - 1;
  const int64_t* inner_strides = &state.batch.strides[inner * buffers];
  const auto enter = [&](void* const* at, int64_t start, int64_t stop) {
    const auto call = [&] { return state.entry(const_cast<void**>(at), inner_strides, start, stop, team); };
    int64_t status = 0;
    std::string thrown;
    if (!Returns(call, &status, &thrown)) status = kLeftByException;
    if (status != 0) failure.Note(lo, status, std::move(thrown));
    return status;
  };
  if (inner == 0) return enter(bases, lo, hi);
  std::vector<void*> shifted(buffers);
  while (lo < hi) {
    int64_t row = lo / state.batch.sizes[inner];
    const int64_t start = lo % state.batch.sizes[inner];
    const int64_t stop = std::min(state.batch.sizes[inner], start + (hi - lo));
    std::copy(bases, bases + buffers, shifted.begin());
    for (size_t d = inner; d-- > 0; row /= state.batch.sizes[d]) {
      const int64_t index = row % state.batch.sizes[d];
      for (size_t i = 0; i < buffers; ++i) {
        shifted[i] = static_cast<char*>(shifted[i]) + index * state.batch.strides[d * buffers + i];
      }
    }
    if (int64_t status = enter(shifted.data(), start, stop)) return status;
    lo += stop - start;
  }
  return 0;
}

ffi::Error Execute(KernelState* state, ffi::ThreadPool pool, int32_t device, ffi::RemainingArgs args,
                   ffi::RemainingRets rets) {
  if (state->batch.total == 0) return ffi::Error::Success();
  const size_t buffers = state->buffers();
  void* few[kInlineBuffers];
  std::vector<void*> many;
  void** bases = few;
  if (buffers > kInlineBuffers) {
    many.resize(buffers);
    bases = many.data();
  }
  const auto copy = [](void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); };
  const auto advise = [state](size_t i, void* base, size_t bytes) {
    if (state->map.arguments[i] < 0) AdviseResult(base, bytes);
  };
  if (ffi::Error error = state->map.Resolve(args, rets, bases, copy, advise); error.failure()) return error;
  // Few batch elements leave threads idle, which then take part in the loops of each.
  const auto crew = std::make_shared<Crew>(pool, state->threads);
  const CrewTeam team(*crew);
  const int64_t total = state->batch.total;
  const bool idle = state->in_order || total < pool.num_threads();
  const Team* inside = state->threads > 1 && idle ? &team : nullptr;
  FirstFailure failure;
  const auto run = [&](int64_t lo, int64_t hi) { return RunRange(*state, bases, lo, hi, inside, failure); };
  std::optional<WaitingCall> waiting;
  if (state->in_order) waiting.emplace(state->name.c_str());
  const int64_t status = state->in_order ? run(0, total) : RunShared(*crew, total, 1, run);
  return status == 0 ? ffi::Error::Success()
                     : Describe(*state, status, Element(*state, failure.element(), device), failure.thrown());
}

ffi::ErrorOr<std::unique_ptr<KernelState>> Instantiate(std::string_view key, std::string_view name,
                                                       std::string_view recipe, ffi::Span<const int32_t> arguments,
                                                       ffi::Span<const int32_t> results, ffi::Span<const int64_t> sizes,
                                                       ffi::Span<const int64_t> strides) {
  auto state = std::make_unique<KernelState>();
  state->name = name;
  state->code = KernelTable::Instance().Find(key);
  if (state->code == nullptr) {
    std::string error = "the extension is not initialised";
    if (g_rebuild != nullptr) state->code = g_rebuild(key, recipe, &error);
    if (state->code == nullptr) {
      return ffi::Unexpected(
          ffi::Error(ffi::ErrorCode::kInternal, "kernel `" + state->name + "` could not be rebuilt: " + error));
    }
  }
  state->entry = state->code->entry();
  const int64_t threads = state->entry(nullptr, nullptr, 0, -2, nullptr);
  state->in_order = threads < 0;
  if (threads != 0) state->threads = std::abs(threads);
  state->map.arguments.assign(arguments.begin(), arguments.end());
  state->map.results.assign(results.begin(), results.end());
  if (state->map.results.size() != state->buffers() || strides.size() != sizes.size() * state->buffers()) {
    return ffi::Unexpected(
        ffi::Error(ffi::ErrorCode::kInvalidArgument, "kernel `" + state->name + "`: malformed attributes"));
  }
  state->sizes.assign(sizes.begin(), sizes.end());
  state->is_batched = std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 0; });
  state->batch = Batch::Merged(sizes.begin(), strides.begin(), sizes.size(), state->buffers());
  return state;
}

XLA_FFI_DEFINE_HANDLER(kInstantiate, Instantiate,
                       ffi::Ffi::BindInstantiate()
                           .Attr<std::string_view>("key")
                           .Attr<std::string_view>("name")
                           .Attr<std::string_view>("recipe")
                           .Attr<ffi::Span<const int32_t>>("arguments")
                           .Attr<ffi::Span<const int32_t>>("results")
                           .Attr<ffi::Span<const int64_t>>("sizes")
                           .Attr<ffi::Span<const int64_t>>("strides"));

XLA_FFI_DEFINE_HANDLER(kExecute, Execute,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::State<KernelState>>()
                           .Ctx<ffi::ThreadPool>()
                           .Ctx<ffi::DeviceOrdinal>()
                           .RemainingArgs()
                           .RemainingRets());

}  // namespace

void SetRebuild(Rebuild rebuild) { g_rebuild = rebuild; }
XLA_FFI_Error* CpuInstantiate(XLA_FFI_CallFrame* call_frame) {
  if (XLA_FFI_Error* error = RegisterState<KernelState>(call_frame, "jax_enzyme_cpu_state")) return error;
  return kInstantiate(call_frame);
}
XLA_FFI_Error* CpuExecute(XLA_FFI_CallFrame* call_frame) { return kExecute(call_frame); }

}  // namespace jax_enzyme
