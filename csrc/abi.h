// The one contract between generated machine code and the run time.
//
// Every kernel and every derived function is compiled to one entry point of this type. It runs the function for the
// batch elements lo <= b < hi, with buffer i at `buffers[i] + b * strides[i]`, and stops at the first one that fails.
// With hi = -1 it runs nothing: it returns the address of the text that failure number lo has (UTF-8, ends with 0), or
// 0; with hi = -2, how many threads may run it, or 0 for all; negative, if only its loops, and batch elements in order.
// With a team, it may have other threads run parts of its loops; null means that it is to run alone.

#ifndef JAX_ENZYME_ABI_H_
#define JAX_ENZYME_ABI_H_

#include <cstdint>

namespace jax_enzyme {

// Runs the iterations first <= i < last of a loop. Returns 0, or the number of the way by which it was left early.
using Stretch = std::int64_t (*)(void* context, std::int64_t first, std::int64_t last);

// A grain that says: so few iterations, each of them long, that all threads begin at once.
constexpr std::int64_t kEachIsLong = INT64_MAX;

// Threads that share the iterations of loops. `run` runs all `count` iterations of one, in stretches that start at
// multiples of `grain`, in any order, and returns when all are done: 0, or what the first stretch in the order of the
// loop returned that did not return 0. With the grain `kEachIsLong` they start anywhere.
struct Team {
  std::int64_t (*run)(const Team* team, Stretch stretch, void* context, std::int64_t count, std::int64_t grain);
};

using Entry = std::int64_t (*)(void** buffers, const std::int64_t* strides, std::int64_t lo, std::int64_t hi,
                               const Team* team);

// What an entry point returns: 0, or a number in the low 32 bits, then a kind in 8, and in the highest 24 bits which
// batch element failed, counted from lo; kManyElements where it is that one or a later one.
enum class Failure : std::uint32_t {
  kStatus = 1,       // the kernel returned this status itself
  kOutOfMemory = 2,  // working memory could not be had
  kTerminated = 3,   // the kernel called exit or abort, or ran into a trap
  kException = 4,    // a C++ exception or a Rust panic left the kernel
  kChecked = 5,      // a check of Options(sanitize=True) failed: the number is that of a report (checked.h)
};

constexpr Failure FailureKind(std::int64_t status) {
  return static_cast<Failure>((static_cast<std::uint64_t>(status) >> 32) & 0xffu);
}

constexpr std::int64_t kManyElements = 0xffffff;

constexpr std::int64_t FailureElement(std::int64_t status) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(status) >> 40);
}

constexpr std::int32_t FailureNumber(std::int64_t status) {
  return static_cast<std::int32_t>(static_cast<std::uint64_t>(status) & 0xffffffffu);
}

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_ABI_H_
