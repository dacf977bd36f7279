/* Waits for the cotangents of what was sent. Who has received it sends them back, but nobody may have: it is said,
   once, that they have not come for as long as that. */
static void je_wait_for_cotangents(handle *request, int to, int tag, handle comm) {
  static int said;
  const char *given = getenv("JAX_ENZYME_MPI_PATIENCE");
  double until = MPI_Wtime() + (given ? atof(given) : 60);
  struct je_mpi_status own;
  int there = 0;
  while (!there && !said) {
    je_check(MPI_Test(request, &there, &own), comm);
    if (there) return;
    sched_yield();
    if (MPI_Wtime() < until) continue;
    said = 1;
    dprintf(2,
            "jax_enzyme: process %d of %d waits in reverse mode for the cotangents of a message to process %d with tag "
            "%d: has that process received it, and does it take the same derivative?\n",
            je_rank(comm), je_size(comm), to, tag);
  }
  je_check(MPI_Wait(request, &own), comm);
}
