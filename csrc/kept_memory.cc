#include "kept_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "kept_tapes.h"

#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace jax_enzyme {
namespace {

// Below this the C library keeps memory by itself.
constexpr std::size_t kLarge = std::size_t{64} << 10;
// No more is kept than this, and than this part of the machine's memory.
constexpr std::size_t kMost = std::size_t{512} << 20;
constexpr std::size_t kPart = 16;
constexpr std::size_t kMostBlocks = 64;
// A block that lay idle while so many others came back is not kept any longer.
constexpr std::uint64_t kIdle = 1024;
// A block serves a request for this part of it or more.
constexpr std::size_t kWaste = 2;
// From here on the system is asked for huge pages: a tape is gone through from end to end, many arrays side by side,
// and with small ones the processor looks for addresses of pages all the time.
constexpr std::size_t kHuge = std::size_t{4} << 20;

std::size_t Limit() {
#if defined(__linux__)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0) {
    return std::min(kMost, static_cast<std::size_t>(pages) / kPart * static_cast<std::size_t>(page));
  }
#endif
  return kMost;
}

// The bytes of a block, or 0 where the C library does not say: then nothing is kept.
std::size_t Size(void* memory) {
#if defined(__linux__)
  return malloc_usable_size(memory);
#else
  (void)memory;
  return 0;
#endif
}

// Results that are new memory in each call.
constexpr std::size_t kNewResult = std::size_t{32} << 20;

// Advice for whole pages of fresh memory, which may be ignored.
void* WithHugePages(void* memory, std::size_t bytes, std::size_t least = kHuge) {
#if defined(__linux__)
  const long page = sysconf(_SC_PAGE_SIZE);
  if (memory == nullptr || bytes < least || page <= 0) return memory;
  const auto unit = static_cast<std::uintptr_t>(page), start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (start + unit - 1) / unit * unit, last = (start + bytes) / unit * unit;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
  return memory;
}

// All threads share it: which thread of XLA's runs a call changes from call to call, and a tape for each of them would
// be many times the memory. A block is either here or belongs to one caller.
class Pool {
 public:
  static Pool& Instance() {
    static Pool* pool = new Pool();  // never destroyed: kernels may run until the process ends
    return *pool;
  }

  // The smallest block that fits, or null.
  void* Take(std::size_t bytes) {
    const Lock lock(busy_);
    if (!lock.held()) return nullptr;
    std::size_t best = count_;
    for (std::size_t i = 0; i < count_; ++i) {
      const bool fits = blocks_[i].bytes >= bytes && blocks_[i].bytes / kWaste <= bytes;
      if (fits && (best == count_ || blocks_[i].bytes < blocks_[best].bytes)) best = i;
    }
    return best == count_ ? nullptr : Remove(best);
  }

  // Keeps a block, or says no.
  bool Give(void* memory, std::size_t bytes) {
    void* idle = nullptr;
    bool kept = false;
    {
      const Lock lock(busy_);
      if (!lock.held()) return false;
      ++clock_;
      std::size_t oldest = 0;
      for (std::size_t i = 1; i < count_; ++i) {
        if (blocks_[i].since < blocks_[oldest].since) oldest = i;
      }
      if (count_ > 0 && clock_ - blocks_[oldest].since > kIdle) idle = Remove(oldest);
      kept = count_ < kMostBlocks && bytes <= limit_ - bytes_;
      if (kept) {
        blocks_[count_++] = {memory, bytes, clock_};
        bytes_ += bytes;
      }
    }
    std::free(idle);
    return kept;
  }

  std::size_t Release() {
    std::size_t released = 0;
    while (true) {
      void* memory = nullptr;
      {
        const Lock lock(busy_);
        if (!lock.held() || count_ == 0) return released;
        released += blocks_[count_ - 1].bytes;
        memory = Remove(count_ - 1);
      }
      std::free(memory);
    }
  }

  KeptMemory Now() {
    const Lock lock(busy_);
    return {count_, bytes_, asked_.load(std::memory_order_relaxed)};
  }

  void Asked() { asked_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
    std::uint64_t since;
  };

  // Held for a scan of the table. Whoever does not get it goes to the C library: a process that was forked while
  // another thread held it never gets it.
  class Lock {
   public:
    explicit Lock(std::atomic<bool>& busy) : busy_(busy) {
      for (int i = 0; i < kTries && !held_; ++i) {
        held_ = !busy_.exchange(true, std::memory_order_acquire);
        if (!held_) std::this_thread::yield();
      }
    }
    ~Lock() {
      if (held_) busy_.store(false, std::memory_order_release);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool held() const { return held_; }

   private:
    static constexpr int kTries = 1000;
    std::atomic<bool>& busy_;
    bool held_ = false;
  };

  void* Remove(std::size_t index) {
    void* memory = blocks_[index].memory;
    bytes_ -= blocks_[index].bytes;
    blocks_[index] = blocks_[--count_];
    return memory;
  }

  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> asked_{0};
  const std::size_t limit_ = Limit();
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t clock_ = 0;
  Block blocks_[kMostBlocks];
};

// A large block of the C library's. Where it has none, what is kept goes back to it first.
template <typename Make>
void* Asked(std::size_t bytes, const Make& make) {
  Pool::Instance().Asked();
  void* made = make();
  if (made == nullptr) {
    ReleaseTapes();
    if (Pool::Instance().Release() > 0) made = make();
  }
  return WithHugePages(made, bytes);
}

}  // namespace

std::size_t KeptLimit() { return Limit(); }

KeptMemory Kept() { return Pool::Instance().Now(); }

std::size_t ReleaseKept() { return Pool::Instance().Release(); }

void AdviseResult(void* memory, std::size_t bytes) { WithHugePages(memory, bytes, kNewResult); }

}  // namespace jax_enzyme

using jax_enzyme::Asked;
using jax_enzyme::kLarge;
using jax_enzyme::Pool;

#define JE_EXPORT extern "C" __attribute__((visibility("default"), used))

JE_EXPORT void* je_memory_malloc(std::size_t bytes) {
  if (bytes < kLarge) return std::malloc(bytes);
  if (void* kept = Pool::Instance().Take(bytes)) return kept;
  return Asked(bytes, [=] { return std::malloc(bytes); });
}

JE_EXPORT void* je_memory_calloc(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes < kLarge) return std::calloc(count, size);
  if (void* kept = Pool::Instance().Take(bytes)) return std::memset(kept, 0, bytes);
  return Asked(bytes, [=] { return std::calloc(count, size); });
}

JE_EXPORT void je_memory_free(void* memory) {
  if (memory == nullptr) return;
  const std::size_t bytes = jax_enzyme::Size(memory);
  if (bytes < kLarge || !Pool::Instance().Give(memory, bytes)) std::free(memory);
}
