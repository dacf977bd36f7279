// Large blocks of memory stay with the process between calls.
//
// What a kernel or a derivative allocates (the tape of a gradient above all) it gives back when it returns, and the C
// library gives large blocks back to the system, which hands out each page anew at its first use. That can take many
// times as long as the arithmetic. Kernels are linked against the three functions below in place of `malloc`, `calloc`
// and `free`. Every block comes from the C library and can go back there, so that any of the two may free what the
// other made.

#ifndef JAX_ENZYME_KEPT_MEMORY_H_
#define JAX_ENZYME_KEPT_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace jax_enzyme {

// What is kept now, and how many large blocks have been asked of the C library so far.
struct KeptMemory {
  std::size_t blocks;
  std::size_t bytes;
  std::uint64_t asked;
};

KeptMemory Kept();

// No more bytes than this are kept.
std::size_t KeptLimit();

// Gives all of it back. Returns its bytes.
std::size_t ReleaseKept();

// Asks for huge pages for a result of XLA's, where glibc has that many bytes from the system in each call (32 MiB at
// most, whatever it has learned): a page fault for each four kilobytes takes five times as long as what is written
// there. Smaller results are mostly memory that was there before.
void AdviseResult(void* memory, std::size_t bytes);

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_KEPT_MEMORY_H_
