#include "kept_tapes.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <list>
#include <mutex>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kept_memory.h"

extern "C" void je_memory_free(void* memory);

namespace jax_enzyme {
namespace {

// What a forward sweep leaves in 16 bytes of XLA's. All zeros: nothing.
struct Handle {
  std::uint64_t table;
  std::uint64_t number;
};

// A chunk of an arena (rules/arena.ll): first the one before it, then its own size.
struct Chunk {
  Chunk* before;
  std::uint64_t bytes;
};

void Free(Chunk* chunk) {
  while (chunk != nullptr) je_memory_free(std::exchange(chunk, chunk->before));
}

class Table {
 public:
  // A process that was forked has none of its parent's tapes: which locks another thread held then, nobody knows.
  static Table& Instance() {
    static std::atomic<Table*>& instance = First();
    return *instance.load(std::memory_order_acquire);
  }

  // A forward sweep begins: what has been read makes room.
  void Begin() {
    if (has_read_.load(std::memory_order_relaxed)) LetGo({&read_}, 0);
  }

  // Takes over the chunks of an arena.
  Handle Keep(std::uint64_t layout, void* root, Chunk* chunks) {
    std::size_t bytes = 0;
    for (const Chunk* chunk = chunks; chunk != nullptr; chunk = chunk->before) bytes += chunk->bytes;
    if (bytes > limit_) {
      Free(chunks);
      return {0, 0};
    }
    LetGo({&read_, &unread_}, limit_ - bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    unread_.push_back({++last_, layout, root, chunks, bytes});
    tapes_[last_] = std::prev(unread_.end());
    bytes_ += bytes;
    return {name_, last_};
  }

  // What the root of a tape is, which then stays until it is returned; null where it is not here.
  void* Borrow(const Handle& handle, std::uint64_t layout) {
    if (handle.table != name_) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = tapes_.find(handle.number);
    if (found == tapes_.end() || found->second->layout != layout) return nullptr;
    ++found->second->readers;
    return found->second->root;
  }

  void Return(const Handle& handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = tapes_.find(handle.number);
    if (handle.table != name_ || found == tapes_.end()) return;  // this process was forked from the one that borrowed
    Tape& tape = *found->second;
    --tape.readers;
    if (!tape.read) read_.splice(read_.end(), unread_, found->second);
    tape.read = true;
    has_read_.store(true, std::memory_order_relaxed);
  }

  void Release() { LetGo({&read_, &unread_}, 0); }

  KeptTapes Now() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {tapes_.size(), bytes_};
  }

 private:
  struct Tape {
    std::uint64_t number;
    std::uint64_t layout;
    void* root;
    Chunk* chunks;
    std::size_t bytes;
    int readers = 0;
    bool read = false;
  };
  using Order = std::list<Tape>;

  Table() {
    std::random_device random;
    do {
      name_ = static_cast<std::uint64_t>(random()) << 32 | random();
    } while (name_ == 0);
  }

  static std::atomic<Table*>& First() {
    static std::atomic<Table*> instance{new Table()};  // never destroyed: kernels may run until the process ends
    pthread_atfork(nullptr, nullptr, [] { instance.store(new Table(), std::memory_order_release); });
    return instance;
  }

  // Lets go of tapes that nobody is reading, one list after the other, the oldest first, until no more than `most`
  // bytes are left.
  void LetGo(std::initializer_list<Order*> lists, std::size_t most) {
    std::vector<Chunk*> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (Order* list : lists) {
        for (auto tape = list->begin(); tape != list->end() && bytes_ > most;) {
          const auto next = std::next(tape);
          if (tape->readers == 0) {
            gone.push_back(tape->chunks);
            bytes_ -= tape->bytes;
            tapes_.erase(tape->number);
            list->erase(tape);
          }
          tape = next;
        }
      }
      has_read_.store(!read_.empty(), std::memory_order_relaxed);
    }
    for (Chunk* chunks : gone) Free(chunks);
  }

  const std::size_t limit_ = KeptLimit();
  std::uint64_t name_ = 0;
  std::atomic<bool> has_read_{false};
  std::mutex mutex_;
  Order unread_, read_;  // oldest first
  std::unordered_map<std::uint64_t, Order::iterator> tapes_;
  std::uint64_t last_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

KeptTapes Tapes() { return Table::Instance().Now(); }

void ReleaseTapes() { Table::Instance().Release(); }

}  // namespace jax_enzyme

using jax_enzyme::Chunk;
using jax_enzyme::Handle;
using jax_enzyme::Table;

#define JE_EXPORT extern "C" __attribute__((visibility("default"), used))

JE_EXPORT void je_tape_begin() { Table::Instance().Begin(); }

JE_EXPORT void je_tape_keep(void* handle, std::uint64_t layout, void* root, void* chunks) {
  const Handle made = Table::Instance().Keep(layout, root, static_cast<Chunk*>(chunks));
  std::memcpy(handle, &made, sizeof made);
}

JE_EXPORT void* je_tape_borrow(const void* handle, std::uint64_t layout) {
  Handle given;
  std::memcpy(&given, handle, sizeof given);
  return Table::Instance().Borrow(given, layout);
}

JE_EXPORT void je_tape_return(const void* handle) {
  Handle given;
  std::memcpy(&given, handle, sizeof given);
  Table::Instance().Return(given);
}
