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
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "abi.h"
#include "float_environment.h"
#include "processors.h"
#include "thrown.h"
#include "xla/ffi/api/ffi.h"

namespace jax_enzyme {

// Handing work to the pool costs some microseconds: below this much work one thread does it all.
constexpr double kWorthSharing = 20e-6;
// A share that takes this long leaves the pool balanced and its overhead invisible.
constexpr double kShareSeconds = 50e-6;
// How long a thread that came to help looks for the next loop of the same call before it leaves. To be woken takes as
// long as this, or, where the system puts it on the processor of the thread that it is to help, as a time slice.
constexpr double kStaySeconds = 100e-6;

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A loop whose iterations are handed out in shares.
class Shared {
 public:
  virtual ~Shared() = default;
  // Runs shares until none is left: first those that the thread with this number had of the loop before, whose memory
  // it has at hand, then others'.
  virtual void Work(int64_t member) = 0;
  virtual bool Left() = 0;

 private:
  friend class Crew;
  int64_t helpers_ = 0;
};

// The threads of the pool that came to help one call. They stay for its next loop, so that a kernel of many short loops
// wakes nobody for each. All they use outlives them: one may start after the call is over.
class Crew : public std::enable_shared_from_this<Crew> {
 public:
  Crew(const xla::ffi::ThreadPool& pool, int64_t most)
      : most_(std::min(most, pool.num_threads())), pool_(&pool), present_(std::max<int64_t>(0, most_ - 1)) {}

  // How many threads there are for a loop, the calling one included.
  int64_t most() const { return most_; }

  // Has up to `helpers` threads take part in the loop, until it is dismissed. Whether any of them was not here yet.
  bool Call(const std::shared_ptr<Shared>& loop, int64_t helpers) {
    std::vector<size_t> missing;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      loops_.push_back(loop);
      ++called_;
      for (size_t i = 0; i < std::min<size_t>(helpers, present_.size()); ++i) {
        if (!present_[i]) missing.push_back(i);
        present_[i] = true;
      }
    }
    for (const size_t i : missing) {
      auto help = [crew = shared_from_this(), caller = CurrentProcessor(), i] {
        LeaveProcessor(caller);
        crew->Stay(i);
      };
      const_cast<xla::ffi::ThreadPool*>(pool_)->Schedule(std::move(help));
    }
    return !missing.empty();
  }

  void Dismiss(const std::shared_ptr<Shared>& loop) {
    std::lock_guard<std::mutex> lock(mutex_);
    loops_.erase(std::find(loops_.begin(), loops_.end(), loop));
  }

  // No loop comes any more.
  void Close() { closed_ = true; }

 private:
  // What a helper does: it takes part in the loop with the fewest helpers, as long as there is one.
  void Stay(size_t number) {
    while (true) {
      std::shared_ptr<Shared> loop;
      uint64_t seen;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        seen = called_;
        for (const auto& one : loops_) {
          if (one->Left() && (loop == nullptr || one->helpers_ < loop->helpers_)) loop = one;
        }
        if (loop != nullptr) ++loop->helpers_;
      }
      if (loop != nullptr) {
        loop->Work(static_cast<int64_t>(number) + 1);
        std::lock_guard<std::mutex> lock(mutex_);
        --loop->helpers_;
        continue;
      }
      const auto start = Clock::now();
      while (!closed_ && called_ == seen && SecondsSince(start) < kStaySeconds) {
        std::this_thread::yield();
      }
      std::lock_guard<std::mutex> lock(mutex_);
      if (called_ != seen) continue;
      present_[number] = false;
      return;
    }
  }

  const int64_t most_;
  const xla::ffi::ThreadPool* const pool_;  // for the calling thread alone
  std::mutex mutex_;
  std::vector<std::shared_ptr<Shared>> loops_;
  std::vector<bool> present_;  // each helper, from when the pool is asked for it
  std::atomic<uint64_t> called_ = 0;
  std::atomic<bool> closed_ = false;
};

// One loop, shared out between the calling thread and its helpers. They hold it by shared pointer: one that comes after
// the loop is done finds no share left, and does not touch what `run` refers to. `run(lo, hi)` returns 0, or why it
// failed. Each thread has a part of the iterations, the same one in loops of one length, and helps with the others'
// when it is done. Behind a failure nothing is begun any more, all before it is: that of the first is reported.
template <typename Run>
class SharedLoop : public Shared {
 public:
  SharedLoop(const Run& run, int64_t first, int64_t total, int64_t share, int64_t parts) : run_(run), share_(share) {
    const int64_t shares = (total - first + share - 1) / share;
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t end = std::min(total, first + shares * (i + 1) / parts * share);
      parts_.push_back({first + shares * i / parts * share, end});
    }
  }

  void Work(int64_t member) override {
    helped_ = true;
    while (Share(member)) {
    }
  }

  bool Left() override {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(parts_.begin(), parts_.end(), [this](const Part& part) { return Left(part) > 0; });
  }

  // The calling thread's part. A helper that `is_new` may wait for this very processor, and leaves it once it has had
  // it. The last share of another thread mostly ends sooner than this one could sleep and be woken.
  int64_t Complete(bool is_new) {
    if (is_new && !helped_) std::this_thread::yield();
    while (Share(0)) {
    }
    const auto start = Clock::now();
    while (running_ > 0 && SecondsSince(start) < kStaySeconds) {
      std::this_thread::yield();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [this] { return running_ == 0; });
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    return status_;
  }

 private:
  struct Part {
    int64_t next, end;
  };

  int64_t Left(const Part& part) const { return std::min(part.end, failed_at_) - part.next; }

  // Runs the next share of this thread's part, or of the part that has most left; false where there is none.
  bool Share(int64_t member) {
    int64_t lo, hi;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Part* part = &parts_[member % parts_.size()];
      if (Left(*part) <= 0) {
        part = &*std::max_element(parts_.begin(), parts_.end(),
                                  [this](const Part& a, const Part& b) { return Left(a) < Left(b); });
      }
      if (Left(*part) <= 0) return false;
      lo = part->next;
      hi = part->next = std::min(part->end, lo + share_);
      ++running_;
    }
    int64_t status = 0;
    std::exception_ptr exception;
    {
      DefaultFloatEnvironment environment;
      try {
        status = run_(lo, hi);
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
    return true;
  }

  const Run& run_;
  const int64_t share_;
  std::atomic<bool> helped_ = false;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<Part> parts_;
  std::atomic<int64_t> running_ = 0;  // shares
  int64_t status_ = 0;
  std::exception_ptr exception_;
  int64_t failed_at_ = INT64_MAX;
};

// Runs the iterations [0, total) of a loop, with the help of a crew, in shares that start at multiples of `grain`.
// The first is timed: it tells whether the rest is worth sharing, and how large a share should be. Where each
// iteration is long, it is known.
template <typename Run>
int64_t RunShared(Crew& crew, int64_t total, int64_t grain, const Run& run) {
  const int64_t threads = crew.most();
  const bool timed = grain != kEachIsLong;
  if (total <= (timed ? grain : 1) || threads < 2) return run(0, total);
  int64_t first = 0, share = 1, shares = total;
  if (timed) {
    const auto start = Clock::now();
    if (int64_t status = run(0, grain)) return status;
    const double each = std::max(SecondsSince(start), 1e-9);
    const int64_t rest = (total - 1) / grain;  // grains
    if (each * static_cast<double>(rest) < kWorthSharing) return run(grain, total);
    const int64_t wanted = static_cast<int64_t>(kShareSeconds / each) + 1;
    const int64_t grains = std::max<int64_t>(1, std::min(wanted, rest / (4 * threads) + 1));
    shares = (rest + grains - 1) / grains;
    share = grains * grain;
    first = grain;
  }
  const int64_t members = std::min(threads, shares);
  const auto loop = std::make_shared<SharedLoop<Run>>(run, first, total, share, members);
  const bool is_new = crew.Call(loop, members - 1);
  struct Dismissal {
    ~Dismissal() { crew.Dismiss(loop); }
    Crew& crew;
    const std::shared_ptr<Shared> loop;
  } const dismissal{crew, loop};
  return loop->Complete(is_new);
}

// A crew as a kernel knows it, for one call.
struct CrewTeam : Team {
  explicit CrewTeam(Crew& crew) : Team{&Run}, crew(crew) {}
  ~CrewTeam() { crew.Close(); }

  // No exception may leave it into the kernel's code: that of the first iteration to throw ends the whole call.
  static int64_t Run(const Team* team, Stretch stretch, void* context, int64_t count, int64_t grain) {
    try {
      return RunShared(static_cast<const CrewTeam*>(team)->crew, count, grain,
                       [=](int64_t first, int64_t last) { return Guarded(stretch, context, first, last); });
    } catch (const std::exception& exception) {
      LeaveKernel(exception.what());
    }
  }

  static int64_t Guarded(Stretch stretch, void* context, int64_t first, int64_t last) {
    const auto call = [=] { return stretch(context, first, last); };
    int64_t result = 0;
    std::string thrown;
    if (!Returns(call, &result, &thrown)) throw std::runtime_error(thrown);
    return result;
  }

  Crew& crew;
};

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_SHARING_H_
