// On which processor a thread runs.

#ifndef JAX_ENZYME_PROCESSORS_H_
#define JAX_ENZYME_PROCESSORS_H_

#ifdef __linux__
#include <sched.h>
#endif

namespace jax_enzyme {

// The processor of this thread, or -1 where the system does not say.
inline int CurrentProcessor() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

// Moves this thread away from a processor that another thread keeps busy, if that is where it runs: Linux may wake a
// thread on the processor of the one that wakes it, and leave it there for a time slice while another one is idle. It
// may run where it could before.
inline void LeaveProcessor(int busy) {
#ifdef __linux__
  cpu_set_t allowed;
  if (busy < 0 || CurrentProcessor() != busy || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(busy, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);
#else
  (void)busy;
#endif
}

}  // namespace jax_enzyme

#endif  // JAX_ENZYME_PROCESSORS_H_
