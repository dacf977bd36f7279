// Loops whose iterations are shared out between the calling thread and XLA's pool.

#ifndef JAX_ENZYME_SHARING_H_
#define JAX_ENZYME_SHARING_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "abi.h"
#include "float_environment.h"
#include "xla/ffi/api/ffi.h"

namespace jax_enzyme {

// Handing work to the pool costs some microseconds: below this much work one thread does it all.
constexpr double kWorthSharing = 20e-6;
// A share that takes this long leaves the pool balanced and its overhead invisible.
constexpr double kShareSeconds = 50e-6;

// One loop, shared out between the calling thread and whichever threads of the pool come to help. Helpers hold it by
// shared pointer: one that starts after the loop is done finds no share left, and does not touch what `run` refers to.
// `run(lo, hi)` returns 0, or why it failed. Shares are handed out in order, so that all before one that failed have
// been started, and the failure of the first is the one that is reported.
template <typename Run>
class SharedLoop {
 public:
  SharedLoop(const Run& run, int64_t first, int64_t total, int64_t share)
      : run_(run), total_(total), share_(share), next_(first) {}

  void Work() {
    while (true) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (status_ != 0 || exception_ != nullptr || next_ >= total_) return;
        ++running_;
      }
      const int64_t lo = next_.fetch_add(share_);
      int64_t status = 0;
      std::exception_ptr exception;
      if (lo < total_) {
        DefaultFloatEnvironment environment;
        try {
          status = run_(lo, std::min(total_, lo + share_));
        } catch (...) {
          exception = std::current_exception();
        }
      }
      std::lock_guard<std::mutex> lock(mutex_);
      if ((status != 0 || exception != nullptr) && lo < failed_at_) {
        status_ = status;
        exception_ = exception;
        failed_at_ = lo;
      }
      if (--running_ == 0) idle_.notify_all();
    }
  }

  // Only the caller waits, after its own Work: what is left then is being run by helpers that have started.
  int64_t Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [this] { return running_ == 0; });
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    return status_;
  }

 private:
  const Run& run_;
  const int64_t total_;
  const int64_t share_;
  std::atomic<int64_t> next_;
  std::mutex mutex_;
  std::condition_variable idle_;
  int64_t running_ = 0;
  int64_t status_ = 0;
  std::exception_ptr exception_;
  int64_t failed_at_ = INT64_MAX;
};

// Runs the iterations [0, total) of a loop, on `most` threads at most, in shares that start at multiples of `grain`.
// The first is timed: it tells whether the rest is worth sharing, and how large a share should be. Where each
// iteration is long, it is known.
template <typename Run>
int64_t RunShared(const xla::ffi::ThreadPool& pool, int64_t most, int64_t total, int64_t grain, const Run& run) {
  using Clock = std::chrono::steady_clock;
  const int64_t threads = std::min(most, pool.num_threads());
  const bool timed = grain != kEachIsLong;
  if (total <= (timed ? grain : 1) || threads < 2) return run(0, total);
  int64_t first = 0, share = 1, shares = total;
  if (timed) {
    const auto start = Clock::now();
    if (int64_t status = run(0, grain)) return status;
    const double each = std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
    const int64_t rest = (total - 1) / grain;  // grains
    if (each * static_cast<double>(rest) < kWorthSharing) return run(grain, total);
    const int64_t wanted = static_cast<int64_t>(kShareSeconds / each) + 1;
    const int64_t grains = std::max<int64_t>(1, std::min(wanted, rest / (4 * threads) + 1));
    shares = (rest + grains - 1) / grains;
    share = grains * grain;
    first = grain;
  }
  const int64_t helpers = std::min(threads, shares) - 1;
  auto loop = std::make_shared<SharedLoop<Run>>(run, first, total, share);
  for (int64_t i = 0; i < helpers; ++i) {
    const_cast<xla::ffi::ThreadPool&>(pool).Schedule([loop] { loop->Work(); });
  }
  loop->Work();
  return loop->Wait();
}

// XLA's pool as a kernel knows it.
struct PoolTeam : Team {
  PoolTeam(const xla::ffi::ThreadPool& pool, int64_t most) : Team{&Run}, pool(pool), most(most) {}

  static int64_t Run(const Team* team, Stretch stretch, void* context, int64_t count, int64_t grain) {
    const auto& own = *static_cast<const PoolTeam*>(team);
    return RunShared(own.pool, own.most, count, grain,
                     [=](int64_t first, int64_t last) { return stretch(context, first, last); });
  }

  const xla::ffi::ThreadPool& pool;
  const int64_t most;  // threads
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_SHARING_H_
