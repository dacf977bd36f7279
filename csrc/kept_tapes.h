// Tapes that wait for their pullback in the memory of this process.
//
// A tape whose size only the forward sweep finds out cannot be an array of XLA's. The forward sweep leaves it here, and
// gives the pullback a handle: which table (that of this process, and of no other), and a number that is given once. A
// pullback whose tape is not here, because it was let go, or was made in another process, runs the forward sweep again:
// a handle decides how long a call takes, and never what it returns.
//
// What has been read stays until the next forward sweep begins, which takes over the memory; what nobody has read goes,
// oldest first, when all tapes together are larger than what is kept between calls (kept_memory.h).

#ifndef JAX_ENZYME_KEPT_TAPES_H_
#define JAX_ENZYME_KEPT_TAPES_H_

#include <cstddef>

namespace jax_enzyme {

struct KeptTapes {
  std::size_t count;
  std::size_t bytes;
};

KeptTapes Tapes();

// Lets go of all that nobody is reading now.
void ReleaseTapes();

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_KEPT_TAPES_H_
