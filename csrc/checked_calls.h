// The time limits of calls that run with checks, and what Ctrl-C does to them and to those of MPI: see
// checked_calls.cc.

#ifndef JAX_ENZYME_CHECKED_CALLS_H_
#define JAX_ENZYME_CHECKED_CALLS_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace jax_enzyme {

constexpr std::int32_t kInterrupted = 1;
constexpr std::int32_t kTimeOut = 2;
constexpr auto kNever = std::chrono::steady_clock::time_point::max();

// Of a call, the flag that tells its code to end, and when it is to be raised at the latest. Code that may wait in MPI
// looks at no flag: it has none, and a name.
struct RunningCall {
  std::atomic<std::int32_t>* stop = nullptr;
  const char* name = nullptr;
  std::chrono::steady_clock::time_point deadline = kNever;
};

// A call starts, which may take so many milliseconds (0: as long as it wants).
void Enter(RunningCall* call, std::int64_t milliseconds);

void Leave(RunningCall* call);

// For as long as it lives, a kernel runs that calls MPI, and may wait for what never comes. `name` is not copied.
class WaitingCall {
 public:
  explicit WaitingCall(const char* name) {
    call_.name = name;
    Enter(&call_, 0);
  }
  ~WaitingCall() { Leave(&call_); }
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

 private:
  RunningCall call_;
};

// Says whether Ctrl-C means the end of the program, or whether the program has a handler of its own. It may wait for
// threads that hold the interpreter lock.
using EndsByInterrupt = bool (*)();
void SetEndsByInterrupt(EndsByInterrupt ends);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_CHECKED_CALLS_H_
