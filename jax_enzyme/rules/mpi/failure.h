/* A kernel has failed: other processes may wait for its messages, and end with it. One that is alone goes on. */

void RULE(failed, _end)(long number, long text) {
  int running, size;
  MPI_Initialized(&running);
  if (!running || MPI_Comm_size(JE_WORLD, &size) || size == 1) return;
  if (text)
    dprintf(2, "jax_enzyme: a kernel failed on process %d of %d: %s\n", je_rank(JE_WORLD), size, (const char *)text);
  else
    dprintf(2, "jax_enzyme: a kernel failed on process %d of %d, with status %ld\n", je_rank(JE_WORLD), size, number);
  je_end_all(JE_WORLD);
}
