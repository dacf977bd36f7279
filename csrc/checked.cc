// What kernels call that are compiled with Options(sanitize=True): see jax_enzyme/transform/sanitize.
//
// A thread that runs such a kernel has a table of the objects that pointers may lead to: the kernel's arguments,
// variables whose address is taken, and all that it allocates. Memory that it frees stays here until the call ends, so
// that nothing new lies where a pointer of old still leads. What nothing has written yet is filled with a pattern.
//
// It is one file of over 600 lines as all of it works on that table, which is known to nobody else.

#include "checked.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#endif

#include "abi.h"
#include "checked_calls.h"

namespace jax_enzyme {
namespace {

// As a float it is a signalling NaN, which no arithmetic makes; twice, as a double, it is a number like any other.
constexpr uint32_t kUnwritten = 0xffb5a5a5u;
// What takes its place in a run that shows whether numbers of 8 and 16 bits depend on it. All that hold a part of the
// pattern are at least 0xa5 and 0xa5a5 (transform/sanitize/scalars.py), and none that holds a part of this is.
constexpr uint32_t kOther = 0x1e1e1e1eu;
constexpr size_t kRemembered = size_t{1} << 22;  // of reads
constexpr size_t kReports = 1024;
constexpr size_t kPadding = 32;                   // behind what is allocated: so far nothing else begins
constexpr size_t kKeptBytes = size_t{256} << 20;  // of freed memory
constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kMostChunks = 32;
constexpr size_t kKeptChunks = 8;  // from call to call
constexpr size_t kSmall = kChunk / 16;
constexpr uint64_t kEverything = uint64_t{1} << 63;
constexpr uintptr_t kStackReserve = 512 << 10;

struct Object {
  uint64_t base;
  uint64_t extent;  // 0 once it is freed
  const char* text;
  uint64_t bytes;
  bool heap;
  bool freed;
  bool in_chunk;
};

// What generated code reads itself (transform/sanitize/lookup.py): where a thread's stack ends, and the way from an
// address to the record of its object. All is relative to what stands for "none", so that it starts as zeros:
//
//   mid    = none_mid  + top[address >> 30]           of 1 GiB
//   leaf   = none_leaf + mid[address >> 12]           of a page; pages in one object share theirs
//   record = unknown   + leaf[address >> 4]           no two objects share 16 bytes
constexpr int kTopBits = 17;
constexpr int kMidBits = 18;
constexpr int kLeafBits = 8;
constexpr uint64_t kGrain = 16;
constexpr uint64_t kPage = kGrain << kLeafBits;

struct Leaf {
  int64_t records[1 << kLeafBits];
  bool shared;  // by the pages of one object
};

// The runs of a kernel in one call.
enum Pass : int32_t {
  kFirst = 0,
  kTells = 1,      // where the first has failed: at which access
  kCounts = 2,     // with the other pattern: how many reads find a number that may be the pattern
  kRemembers = 3,  // where that is not the count of the first: which these are
  kCompares = 5,   // with the pattern, the first that the one before did not have
};
// Odd ones have a check at each access (transform/sanitize/hoisting.py).
constexpr int32_t kWithOther = 2;  // transform/sanitize/narrow.py: with the other pattern

struct Tables {
  std::atomic<int32_t> stop{0};
  int32_t again = 0;  // a `Pass`
  uint64_t low = 0;   // the lowest address that the thread's stack may come to
  Object unknown{0, kEverything, "memory", 0, false, false, false};
  Leaf none_leaf;
  int64_t top[1 << kTopBits];
  int64_t none_mid[1 << kMidBits];
};
static_assert(offsetof(Tables, again) == 4, "transform/sanitize/hoisting.py reads it there");
static_assert(offsetof(Tables, low) == 8, "transform/sanitize/endings.py reads it there");
static_assert(offsetof(Tables, unknown) == 16 && sizeof(Object) == 40, "transform/sanitize/lookup.py knows them");
static_assert(offsetof(Tables, none_leaf) == 56 && sizeof(Leaf) == 2056, "transform/sanitize/lookup.py knows them");

struct Call {
  Tables* tables = nullptr;
  std::vector<int64_t*> pages;  // the entries of pages that have objects
  std::deque<Leaf> leaves;
  size_t leaves_in_use = 0;
  std::deque<Object> storage;
  std::deque<Object*> freed;
  size_t freed_bytes = 0;
  // Where small objects lie one behind the other, if the kernel alone frees what it allocates, and keeps nothing of it.
  std::vector<std::unique_ptr<char[]>> chunks;
  size_t chunks_in_use = 0;
  size_t used = 0;  // of the last of these
  bool has_chunks = false;
  Object nothing{0, 0, "null", 0, false, false, false};
  uint64_t narrow = 0;  // how often this run has read a number of 8 or 16 bits that may be the pattern
  uint64_t narrow_of_first = 0;
  std::vector<uint64_t> remembered;  // where, with the other pattern
  size_t next = 0;                   // of `remembered`
  RunningCall running;
  int depth = 0;

  Call() {
    // Zeros that are not there before they are used.
    tables = static_cast<Tables*>(std::calloc(1, sizeof(Tables)));
    if (tables == nullptr) throw std::bad_alloc();
    new (&tables->stop) std::atomic<int32_t>(0);
    tables->unknown = Object{0, kEverything, "memory", 0, false, false, false};
    running.stop = &tables->stop;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    for (int64_t mid : std::vector<int64_t>(tables->top, tables->top + (1 << kTopBits))) {
      if (mid != 0) std::free(reinterpret_cast<char*>(tables->none_mid) + mid);
    }
    std::free(tables);
  }
};

std::mutex g_reports_mutex;
std::map<int32_t, std::string>& Reports() {
  static auto* reports = new std::map<int32_t, std::string>();
  return *reports;
}
int32_t g_next_report = 1;

int64_t Report(const std::string& text) {
  std::lock_guard<std::mutex> lock(g_reports_mutex);
  const int32_t number = g_next_report;
  g_next_report = g_next_report == INT32_MAX ? 1 : g_next_report + 1;
  auto& reports = Reports();
  if (reports.size() >= kReports) reports.erase(reports.begin());
  reports[number] = text;
  return static_cast<int64_t>(static_cast<uint64_t>(Failure::kChecked) << 32 | static_cast<uint32_t>(number));
}

std::string At(const char* place) { return place == nullptr || *place == 0 ? "" : std::string(" (") + place + ")"; }

// Storage that every thread has from its start, which is quickest to come to, and small.
#if defined(__ELF__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local Call* t_call = nullptr;

Call& Current() {
  if (t_call == nullptr) {
    static thread_local const std::unique_ptr<Call> own = std::make_unique<Call>();
    t_call = own.get();
  }
  return *t_call;
}

// -- objects

void Fill(void* memory, uint64_t bytes) {
  auto* at = static_cast<char*>(memory);
  const uint32_t word = (Current().tables->again & kWithOther) != 0 ? kOther : kUnwritten;
  const uint32_t pattern[2] = {word, word};
  for (; bytes >= sizeof(pattern); bytes -= sizeof(pattern), at += sizeof(pattern)) {
    std::memcpy(at, pattern, sizeof(pattern));
  }
  std::memcpy(at, pattern, bytes);
}

// The entry of an address's page.
int64_t* Page(Call& call, uint64_t address) {
  Tables& tables = *call.tables;
  int64_t& entry = tables.top[address >> 30 & ((1 << kTopBits) - 1)];
  if (entry == 0) {
    void* made = std::calloc(size_t{1} << kMidBits, sizeof(int64_t));
    if (made == nullptr) throw std::bad_alloc();
    entry = static_cast<char*>(made) - reinterpret_cast<char*>(tables.none_mid);
  }
  auto* mid = reinterpret_cast<int64_t*>(reinterpret_cast<char*>(tables.none_mid) + entry);
  return &mid[address >> 12 & ((1 << kMidBits) - 1)];
}

Leaf* LeafOf(Call& call, int64_t entry) {
  return reinterpret_cast<Leaf*>(reinterpret_cast<char*>(&call.tables->none_leaf) + entry);
}

Leaf* MadeLeaf(Call& call) {
  if (call.leaves_in_use == call.leaves.size()) call.leaves.emplace_back();
  return &call.leaves[call.leaves_in_use++];
}

void PutLeaf(Call& call, int64_t* page, Leaf* leaf) {
  if (*page == 0) call.pages.push_back(page);
  *page = reinterpret_cast<char*>(leaf) - reinterpret_cast<char*>(&call.tables->none_leaf);
}

// Lets all grains of [first, end) lead to a record.
void Map(Call& call, uint64_t first, uint64_t end, const Object* object) {
  const int64_t record = reinterpret_cast<const char*>(object) - reinterpret_cast<const char*>(&call.tables->unknown);
  Leaf* whole = nullptr;
  for (uint64_t at = first / kGrain * kGrain; at < end;) {
    int64_t* page = Page(call, at);
    const uint64_t next = at / kPage * kPage + kPage;
    if (at % kPage == 0 && next <= end) {
      if (whole == nullptr) {
        whole = MadeLeaf(call);
        std::fill(std::begin(whole->records), std::end(whole->records), record);
        whole->shared = true;
      }
      PutLeaf(call, page, whole);
      at = next;
      continue;
    }
    Leaf* leaf = LeafOf(call, *page);
    if (leaf == &call.tables->none_leaf || leaf->shared) {
      Leaf* own = MadeLeaf(call);
      std::memcpy(own->records, leaf->records, sizeof(own->records));
      own->shared = false;
      PutLeaf(call, page, own);
      leaf = own;
    }
    for (; at < end && at < next; at += kGrain) leaf->records[at / kGrain % (1 << kLeafBits)] = record;
  }
}

// The object in which an address lies, or to which it leads from just outside.
Object* Find(Call& call, uint64_t address) {
  const auto* tables = reinterpret_cast<const char*>(call.tables);
  const int64_t mid = call.tables->top[address >> 30 & ((1 << kTopBits) - 1)];
  const auto* pages = reinterpret_cast<const int64_t*>(tables + offsetof(Tables, none_mid) + mid);
  const Leaf* leaf = LeafOf(call, pages[address >> 12 & ((1 << kMidBits) - 1)]);
  const int64_t record = leaf->records[address / kGrain % (1 << kLeafBits)];
  return reinterpret_cast<Object*>(reinterpret_cast<char*>(&call.tables->unknown) + record);
}

Object* Add(Call& call, void* memory, uint64_t bytes, const char* text, bool heap, bool in_chunk = false) {
  const auto base = reinterpret_cast<uint64_t>(memory);
  Object* before = Find(call, base);
  if (before->base == base && before->bytes == bytes && !before->freed && before->text == text) return before;
  call.storage.push_back(Object{base, bytes, text, bytes, heap, false, in_chunk});
  Object* made = &call.storage.back();
  // What was there before is gone: the frame of a function that has returned, memory that a library has freed. Just
  // outside of memory that is allocated here nothing else lies; behind an object its end may.
  if (heap) {
    Map(call, base - kGrain, base + bytes + kGrain, made);
  } else {
    Map(call, base, base + bytes, made);
    const uint64_t end = base + bytes;
    if (Find(call, end) == &call.tables->unknown) Map(call, end, end + 1, made);
  }
  return made;
}

void Forget(Call& call, Object* object) {
  Map(call, object->base - kGrain, object->base + object->bytes + kGrain, &call.tables->unknown);
  std::free(reinterpret_cast<void*>(object->base));
}

// Memory for a small object, which nothing gives back before the call ends; null where there is none.
void* Small(Call& call, uint64_t room) {
  if (!call.has_chunks || call.depth == 0 || room > kSmall) return nullptr;
  room = (room + kGrain - 1) / kGrain * kGrain;
  if (call.chunks_in_use == 0 || call.used + room > kChunk) {
    if (call.chunks_in_use == kMostChunks) return nullptr;
    if (call.chunks_in_use == call.chunks.size()) call.chunks.emplace_back(new char[kChunk]);
    ++call.chunks_in_use;
    call.used = kGrain;  // in front of an object there is room, too
  }
  void* memory = call.chunks[call.chunks_in_use - 1].get() + call.used;
  call.used += room;
  return memory;
}

void* Allocate(uint64_t alignment, uint64_t bytes, bool zero) {
  if (bytes > (uint64_t{1} << 47)) return nullptr;
  Call& call = Current();
  const uint64_t room = bytes + kPadding;
  void* memory = alignment <= kGrain ? Small(call, room) : nullptr;
  const bool in_chunk = memory != nullptr;
  if (!in_chunk) {
    memory = alignment <= kGrain ? std::malloc(room)
                                 : std::aligned_alloc(alignment, (room + alignment - 1) / alignment * alignment);
  }
  if (memory == nullptr) return nullptr;
  if (zero) {
    std::memset(memory, 0, bytes);
  } else {
    Fill(memory, bytes);
  }
  Add(call, memory, bytes, "allocated memory", true, in_chunk);
  return memory;
}

void Reset(Call& call) {
  for (Object* object : call.freed) std::free(reinterpret_cast<void*>(object->base));
  call.freed.clear();
  call.freed_bytes = 0;
  if (call.chunks.size() > kKeptChunks) call.chunks.resize(kKeptChunks);
  call.chunks_in_use = 0;
  for (int64_t* page : call.pages) *page = 0;
  call.pages.clear();
  call.leaves_in_use = 0;
  call.storage.clear();
  Map(call, 0, kPage, &call.nothing);
}

// The next of the runs that tell of numbers of 8 and 16 bits that nothing wrote.
bool Next(Call& call) {
  Reset(call);
  const int32_t pass = call.tables->again;
  call.tables->again = pass == kFirst ? kCounts : pass == kCounts ? kRemembers : kCompares;
  if (pass != kRemembers) call.remembered.clear();
  call.narrow = call.next = 0;
  return true;
}

// The lowest address that this thread's stack may come to, some kept back for what a function calls.
uint64_t StackEnd() {
#if defined(__linux__)
  pthread_attr_t attributes;
  void* start = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &start, &bytes);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(start) + std::min<uint64_t>(kStackReserve, bytes / 4);
#else
  return 0;
#endif
}

// Whether one of so many numbers is this one. In blocks: compilers make vector instructions of loops without a way out.
bool Holds(const uint32_t* numbers, uint64_t count, uint32_t wanted) {
  constexpr uint64_t kBlock = 256;
  for (uint64_t start = 0; start < count; start += kBlock) {
    const uint64_t end = std::min(count, start + kBlock);
    uint32_t found = 0;
    for (uint64_t i = start; i < end; ++i) found |= static_cast<uint32_t>(numbers[i] == wanted);
    if (found != 0) return true;
  }
  return false;
}

std::string Number(int64_t number) { return std::to_string(number); }

}  // namespace

std::string TakeReport(int32_t number) {
  std::lock_guard<std::mutex> lock(g_reports_mutex);
  auto found = Reports().find(number);
  if (found == Reports().end()) return "it did what it must not do";
  std::string text = found->second;
  Reports().erase(found);
  return text;
}

}  // namespace jax_enzyme

using jax_enzyme::Call;
using jax_enzyme::Current;
using jax_enzyme::Object;

#define JE_EXPORT extern "C" __attribute__((visibility("default"), used))

// A call starts, which may take so many milliseconds (0: as long as it wants). `alone`: what it allocates no function
// of a library frees, or keeps the address of.
JE_EXPORT void je_checked_begin(int64_t milliseconds, bool alone) {
  Call& call = Current();
  if (call.depth++ > 0) {
    call.has_chunks = call.has_chunks && alone;
    return;
  }
  call.has_chunks = alone;
  jax_enzyme::Reset(call);
  call.tables->stop.store(0);
  call.tables->again = jax_enzyme::kFirst;
  call.narrow = 0;
  if (call.tables->low == 0) call.tables->low = jax_enzyme::StackEnd();
  jax_enzyme::Enter(&call.running, milliseconds);
}

JE_EXPORT void je_checked_end() {
  Call& call = Current();
  if (--call.depth > 0) return;
  jax_enzyme::Leave(&call.running);
  jax_enzyme::Reset(call);
}

// The flag that is not 0 when the call is to end; behind it, the rest of `Tables`.
JE_EXPORT const void* je_checked_flag() { return Current().tables; }

JE_EXPORT int64_t je_checked_stopped(const char* place) {
  const bool late = Current().tables->stop.load() == jax_enzyme::kTimeOut;
  return jax_enzyme::Report((late ? "was stopped: its time limit is over" : "was interrupted") + jax_enzyme::At(place));
}

JE_EXPORT void je_checked_fill(void* memory, uint64_t bytes) { jax_enzyme::Fill(memory, bytes); }

// What allocates and frees is handed the tables of this thread, such that LLVM knows that it changes them.
JE_EXPORT const Object* je_checked_object(const void*, void* memory, uint64_t bytes, const char* text) {
  return jax_enzyme::Add(Current(), memory, bytes, text, false);
}

JE_EXPORT void* je_checked_malloc(const void*, uint64_t bytes) { return jax_enzyme::Allocate(16, bytes, false); }

JE_EXPORT void* je_checked_calloc(const void*, uint64_t count, uint64_t bytes) {
  uint64_t total = 0;
  return __builtin_mul_overflow(count, bytes, &total) ? nullptr : jax_enzyme::Allocate(16, total, true);
}

JE_EXPORT void* je_checked_aligned_alloc(const void*, uint64_t alignment, uint64_t bytes) {
  return jax_enzyme::Allocate(alignment, bytes, false);
}

// 0, or why this may not be freed.
JE_EXPORT int64_t je_checked_free(const void*, void* memory, const char* place) {
  if (memory == nullptr) return 0;
  Call& call = Current();
  const auto address = reinterpret_cast<uint64_t>(memory);
  Object* found = jax_enzyme::Find(call, address);
  if (found == &call.tables->unknown) {
    std::free(memory);  // a library has allocated it
    return 0;
  }
  if (found->freed) return jax_enzyme::Report("frees memory that it has freed before" + jax_enzyme::At(place));
  if (!found->heap) {
    return jax_enzyme::Report(std::string("frees ") + found->text + ", which was not allocated" +
                              jax_enzyme::At(place));
  }
  if (found->base != address) {
    return jax_enzyme::Report("frees a pointer into allocated memory that is not its start" + jax_enzyme::At(place));
  }
  found->freed = true;
  found->extent = 0;
  if (found->in_chunk) return 0;
  call.freed.push_back(found);
  call.freed_bytes += found->bytes;
  while (call.freed_bytes > jax_enzyme::kKeptBytes) {
    Object* oldest = call.freed.front();
    call.freed.pop_front();
    call.freed_bytes -= oldest->bytes;
    jax_enzyme::Forget(call, oldest);
  }
  return 0;
}

// For a pointer that may be freed, and is freed by this.
JE_EXPORT void* je_checked_realloc(const void* tables, void* memory, uint64_t bytes, const char* place,
                                   int64_t* status) {
  *status = 0;
  if (memory == nullptr) return je_checked_malloc(tables, bytes);
  Call& call = Current();
  Object* found = jax_enzyme::Find(call, reinterpret_cast<uint64_t>(memory));
  if (found == &call.tables->unknown) return std::realloc(memory, bytes);
  const uint64_t kept = std::min(found->extent, bytes);
  void* made = je_checked_malloc(tables, bytes);
  if (made == nullptr) return nullptr;
  std::memcpy(made, memory, kept);
  *status = je_checked_free(tables, memory, place);
  return made;
}

// What a function of a library is about to resize, the pointer to which is at `slot`, is the library's from here on.
JE_EXPORT void je_checked_hand_over(const void*, void* const* slot) {
  Call& call = Current();
  const auto address = reinterpret_cast<uint64_t>(*slot);
  const Object* found = jax_enzyme::Find(call, address);
  if (!found->heap || found->freed || found->in_chunk || found->base != address) return;
  jax_enzyme::Map(call, address - jax_enzyme::kGrain, address + found->bytes + jax_enzyme::kGrain,
                  &call.tables->unknown);
}

// Text about an access of `bytes` at an address that is not inside of `[base, base + extent)`.
JE_EXPORT int64_t je_checked_outside(const Object* object, uint64_t address, uint64_t base, uint64_t extent,
                                     uint64_t bytes, uint64_t unit, int32_t writes, const char* text,
                                     const char* place) {
  const std::string what = writes ? "writes" : "reads";
  if (object != nullptr) {
    base = object->base;
    extent = object->bytes;
    text = object->text;
    if (object->freed) {
      return jax_enzyme::Report(what + " memory that it has freed: use after free" + jax_enzyme::At(place));
    }
  }
  if (address < 4096 || (base == 0 && extent == 0)) {
    return jax_enzyme::Report(what + " at a null pointer, address " + std::to_string(address) + jax_enzyme::At(place));
  }
  const auto offset = static_cast<int64_t>(address - base);
  std::string message = what + " outside of the bounds of " + text + ": ";
  if (unit == 0) unit = 1;
  const auto step = static_cast<int64_t>(unit);
  if (offset % step == 0 && extent % unit == 0) {
    message += "index " + jax_enzyme::Number(offset / step) + ", extent " + std::to_string(extent / unit);
  } else {
    message += "byte " + jax_enzyme::Number(offset) + " of " + std::to_string(extent);
  }
  if (bytes != unit) message += ", " + std::to_string(bytes) + " bytes";
  return jax_enzyme::Report(message + jax_enzyme::At(place));
}

// 0, or the text about an access of `bytes` at an address that is not inside of an object.
JE_EXPORT int64_t je_checked_region(const Object* object, uint64_t address, uint64_t bytes, int32_t writes,
                                    const char* place) {
  const uint64_t offset = address - object->base;
  if (bytes == 0 || (offset <= object->extent && bytes <= object->extent - offset)) return 0;
  return je_checked_outside(object, address, 0, 0, bytes, 1, writes, nullptr, place);
}

// The same about a text that is read up to a byte 0, or of so many bytes.
JE_EXPORT int64_t je_checked_text(const Object* object, uint64_t address, uint64_t limit, const char* place) {
  if (object == &Current().tables->unknown || limit == 0) return 0;
  const uint64_t offset = address - object->base;
  const uint64_t room = offset <= object->extent ? object->extent - offset : 0;
  if (limit <= room) return 0;
  if (room > 0 && std::memchr(reinterpret_cast<const void*>(address), 0, room) != nullptr) return 0;
  return je_checked_outside(object, address, 0, 0, room + 1, 1, 0, nullptr, place);
}

JE_EXPORT uint64_t je_checked_length(uint64_t address, uint64_t limit) {
  return strnlen(reinterpret_cast<const char*>(address), limit);
}

// The same about a read of what holds the pattern; 0 where that need not mean anything.
JE_EXPORT int64_t je_checked_unwritten(const Object* object, uint64_t address, uint64_t base, uint64_t unit,
                                       const char* text, const char* place) {
  if (object != nullptr) {
    if (object == &Current().tables->unknown) return 0;
    base = object->base;
    text = object->text;
  }
  const uint64_t offset = address - base;
  std::string message = std::string("reads what nothing wrote: ") + text;
  if (unit > 0 && offset % unit == 0) message += ", index " + std::to_string(offset / unit);
  return jax_enzyme::Report(message + jax_enzyme::At(place));
}

// The same about a loop that has noted such a read.
JE_EXPORT int64_t je_checked_noted(const char* place) {
  return jax_enzyme::Report("reads what nothing wrote" + jax_enzyme::At(place));
}

// Whether a call that has failed is to run again, from its start, to tell of the first access that was wrong: what is
// noted in loops is told behind them, and what fails with the other pattern alone has read it. The time limit stays.
JE_EXPORT bool je_checked_again(int64_t status) {
  Call& call = Current();
  const int32_t pass = call.tables->again;
  if (call.depth > 1 || call.tables->stop.load() != 0) return false;
  if (pass == jax_enzyme::kCounts || pass == jax_enzyme::kRemembers) return jax_enzyme::Next(call);
  const bool checked = status >> 32 == static_cast<int64_t>(jax_enzyme::Failure::kChecked);
  if (!checked || pass != jax_enzyme::kFirst) return false;
  jax_enzyme::Reset(call);
  call.tables->again = jax_enzyme::kTells;
  return true;
}

// What a read of a number of 8 or 16 bits calls that may be the pattern: 0, or that nothing wrote it.
JE_EXPORT int64_t je_checked_narrow(const Object* object, uint64_t address, uint64_t base, uint64_t unit,
                                    const char* text, const char* place) {
  Call& call = Current();
  if (object == &call.tables->unknown) return 0;
  ++call.narrow;
  const int32_t pass = call.tables->again;
  if (pass != jax_enzyme::kRemembers && pass != jax_enzyme::kCompares) return 0;
  const uint64_t offset = address - (object != nullptr ? object->base : base);
  const uint64_t where = (reinterpret_cast<uint64_t>(place) << 20 ^ reinterpret_cast<uint64_t>(text)) * 31 + offset;
  if (pass == jax_enzyme::kRemembers) {
    if (call.remembered.size() < jax_enzyme::kRemembered) call.remembered.push_back(where);
    return 0;
  }
  if (call.next < call.remembered.size() && call.remembered[call.next] == where) {
    ++call.next;
    return 0;
  }
  if (call.next == jax_enzyme::kRemembered) return je_checked_noted(nullptr);  // there may have been more
  return je_checked_unwritten(object, address, base, unit, text, place);
}

// So many of these reads in a loop.
JE_EXPORT void je_checked_narrow_many(uint32_t count) { Current().narrow += count; }

// Whether a call that has failed at nothing is to run again, as it may have read such a number that nothing wrote.
JE_EXPORT bool je_checked_compares() {
  Call& call = Current();
  if (call.depth > 1 || call.tables->stop.load() != 0) return false;
  switch (call.tables->again) {
    case jax_enzyme::kFirst:
      call.narrow_of_first = call.narrow;
      return call.narrow != 0 && jax_enzyme::Next(call);
    case jax_enzyme::kCounts:
      return call.narrow != call.narrow_of_first && jax_enzyme::Next(call);
    case jax_enzyme::kRemembers:
      return jax_enzyme::Next(call);
    default:
      return false;
  }
}

// Whether accesses of `bytes`, from `low` to `high` behind each of the pointers that lie every `step` bytes from an
// address, are inside of the objects that these lead to, of all of which something is known; and whether the pointers
// are multiples of `align`. In `ends` are the first byte of all of them, and the one behind the last.
JE_EXPORT int32_t je_checked_rows_inside(uint64_t first, int64_t count, uint64_t step, int64_t low, int64_t high,
                                         uint64_t bytes, uint64_t align, uint64_t* ends) {
  Call& call = Current();
  ends[0] = UINT64_MAX;
  ends[1] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t row = *reinterpret_cast<const uint64_t*>(first + i * step);
    const Object* object = jax_enzyme::Find(call, row);
    if (object == &call.tables->unknown || object->extent < bytes || row % align != 0) return 0;
    const uint64_t room = object->extent - bytes;
    if (row + low - object->base > room || row + high - object->base > room) return 0;
    ends[0] = std::min(ends[0], row + low);
    ends[1] = std::max(ends[1], row + high + bytes);
  }
  return 1;
}

// Whether none of these accesses is in one of the places `[from, to)`.
JE_EXPORT int32_t je_checked_rows_apart(uint64_t first, int64_t count, uint64_t step, int64_t low, int64_t high,
                                        uint64_t bytes, const uint64_t* places, int64_t number) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t row = *reinterpret_cast<const uint64_t*>(first + i * step);
    for (int64_t p = 0; p < number; ++p) {
      if (row + low < places[2 * p + 1] && places[2 * p] < row + high + bytes) return 0;
    }
  }
  return 1;
}

// 0 where all of an output is written, else which element is not.
JE_EXPORT int64_t je_checked_written(const char* memory, uint64_t bytes, uint64_t unit, const char* text,
                                     const char* place) {
  const uint64_t step = std::max<uint64_t>(unit, 4);
  if (!jax_enzyme::Holds(reinterpret_cast<const uint32_t*>(memory), bytes / 4, jax_enzyme::kUnwritten)) return 0;
  const uint64_t pattern = uint64_t{jax_enzyme::kUnwritten} << 32 | jax_enzyme::kUnwritten;
  for (uint64_t at = 0; at + step <= bytes; at += step) {
    bool equal = true;
    for (uint64_t part = 0; equal && part < step; part += 4) equal = std::memcmp(memory + at + part, &pattern, 4) == 0;
    if (!equal) continue;
    return jax_enzyme::Report(std::string("leaves the output `") + text + "` without a value: index " +
                              std::to_string(at / unit) + " of " + std::to_string(bytes / unit) + " is not written" +
                              jax_enzyme::At(place));
  }
  return 0;
}
