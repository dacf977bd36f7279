// The time limits of calls that run with checks, and Ctrl-C: see checked_calls.cc.

#ifndef JAX_ENZYME_CHECKED_CALLS_H_
#define JAX_ENZYME_CHECKED_CALLS_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace jax_enzyme {

constexpr std::int32_t kInterrupted = 1;
constexpr std::int32_t kTimeOut = 2;

// Of a call, the flag that tells its code to end, and when it is to be raised at the latest.
struct RunningCall {
  std::atomic<std::int32_t>* stop = nullptr;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// A call starts, which may take so many milliseconds (0: as long as it wants).
void Enter(RunningCall* call, std::int64_t milliseconds);

void Leave(RunningCall* call);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_CHECKED_CALLS_H_
