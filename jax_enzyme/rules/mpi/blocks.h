/* Blocks of an array of one process, or of each, that go to or come from all. In reverse they go back.  */

struct je_blocks {
  int out_count, in_count, root;
  handle comm;
  REAL *sout, *sin;
  int *counts, *starts;         /* of blocks that differ, on the process that has them */
  int *out_counts, *out_starts; /* of those that are sent, where those that come differ as well */
};

static struct je_blocks *je_blocks(void *arena, int out_count, int in_count, int root, handle comm, REAL *sout,
                                   REAL *sin) {
  struct je_blocks *f = je_arena_allocate(arena, sizeof *f);
  je_all_in_order(comm);
  f->out_count = out_count, f->in_count = in_count, f->root = root, f->comm = comm, f->sout = sout, f->sin = sin;
  return f;
}

/* To the root, in the order of processes. In place is the root's own block alone. */

static void je_gather_jvp(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                          int root, handle comm, const REAL *sout, REAL *sin) {
  long all = je_root_only((long)in_count * je_size(comm), root, comm);
  REAL *moved = je_copy(sout, out_count), *got = je_zeros(all);
  je_check(MPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm), comm);
  je_check(MPI_Gather(moved, out_count, NUMBER, got, in_count, NUMBER, root, comm), comm);
  je_set(sin, got, all);
  free(moved);
  free(got);
}

void RULE(gather, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                        int root, handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_gather_jvp(out, out_count, out_type, in, in_count, in_type, root, comm, sout, sin);
}

void *RULE(gather, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                             int root, handle comm, REAL *sout, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm), comm);
  return je_blocks(arena, out_count, in_count, root, comm, sout, sin);
}

void RULE(gather, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  long all = je_root_only((long)f->in_count * je_size(f->comm), f->root, f->comm);
  REAL *bar = je_copy(f->sin, all), *back = je_zeros(f->out_count);
  je_check(MPI_Scatter(bar, f->in_count, NUMBER, back, f->out_count, NUMBER, f->root, f->comm), f->comm);
  je_clear(f->sin, all);
  je_add(f->sout, back, f->out_count);
  free(bar);
  free(back);
}

void RULE(gather_in_place, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                 handle in_type, int root, handle comm, REAL *sin) {
  (void)out_count, (void)out_type;
  je_gather_jvp(out, in_count, in_type, in, in_count, in_type, root, comm, je_own(sin, in_count, comm), sin);
}

void *RULE(gather_in_place, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                      handle in_type, int root, handle comm, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_check(MPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm), comm);
  return je_blocks(arena, in_count, in_count, root, comm, je_own(sin, in_count, comm), sin);
}

void RULE(gather_in_place, _reverse)(void *frame) { RULE(gather, _reverse)(frame); }

/* From the root, whose own block stays where it is in place. */

static void je_scatter_jvp(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                           int root, handle comm, const REAL *sout, REAL *sin) {
  long all = je_root_only((long)out_count * je_size(comm), root, comm);
  REAL *moved = je_copy(sout, all), *got = je_zeros(in_count);
  je_check(MPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm), comm);
  je_check(MPI_Scatter(moved, out_count, NUMBER, got, in_count, NUMBER, root, comm), comm);
  je_set(sin, got, in_count);
  free(moved);
  free(got);
}

void RULE(scatter, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                         int root, handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_scatter_jvp(out, out_count, out_type, in, in_count, in_type, root, comm, sout, sin);
}

void *RULE(scatter, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                              int root, handle comm, REAL *sout, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm), comm);
  return je_blocks(arena, out_count, in_count, root, comm, sout, sin);
}

void RULE(scatter, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  long all = je_root_only((long)f->out_count * je_size(f->comm), f->root, f->comm);
  REAL *bar = je_copy(f->sin, f->in_count), *back = je_zeros(all);
  je_check(MPI_Gather(bar, f->in_count, NUMBER, back, f->out_count, NUMBER, f->root, f->comm), f->comm);
  je_clear(f->sin, f->in_count);
  je_add(f->sout, back, all);
  free(bar);
  free(back);
}

void RULE(scatter_in_place, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                  handle in_type, int root, handle comm, const REAL *sout) {
  (void)in_count, (void)in_type;
  je_scatter_jvp(out, out_count, out_type, in, out_count, out_type, root, comm, sout, 0);
}

void *RULE(scatter_in_place, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                       handle in_type, int root, handle comm, REAL *sout, long stable, void *arena) {
  (void)stable, (void)in_count, (void)in_type;
  je_check(MPI_Scatter(out, out_count, out_type, in, out_count, out_type, root, comm), comm);
  return je_blocks(arena, out_count, out_count, root, comm, sout, je_own(sout, out_count, comm));
}

void RULE(scatter_in_place, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  long all = (long)f->out_count * je_size(f->comm);
  REAL *own = je_copy(f->sin, f->in_count), *back = je_zeros(all);
  je_check(MPI_Gather(own, f->in_count, NUMBER, back, f->out_count, NUMBER, f->root, f->comm), f->comm);
  je_clear(f->sin, f->in_count);
  je_add(f->sout, back, all);
  free(own);
  free(back);
}

/* To all:  xbar_k += what all have of block k, added */

static void je_allgather_jvp(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                             handle comm, const REAL *sout, REAL *sin) {
  long all = (long)in_count * je_size(comm), own = (long)je_rank(comm) * in_count * WIDTH;
  REAL *moved = out == JE_IN_PLACE ? je_copy(sin ? sin + own : 0, in_count) : je_copy(sout, in_count);
  REAL *got = je_zeros(all);
  je_check(MPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm), comm);
  je_check(MPI_Allgather(moved, in_count, NUMBER, got, in_count, NUMBER, comm), comm);
  je_set(sin, got, all);
  free(moved);
  free(got);
}

static void je_allgather_reverse(const struct je_blocks *f, int in_place) {
  long all = (long)f->in_count * je_size(f->comm), own = (long)je_rank(f->comm) * f->in_count * WIDTH;
  REAL *bar = je_copy(f->sin, all), *back = je_zeros(f->in_count);
  je_check(MPI_Reduce_scatter_block(bar, back, f->in_count, NUMBER, JE_SUM, f->comm), f->comm);
  je_clear(f->sin, all);
  je_add(in_place && f->sin ? f->sin + own : f->sout, back, f->in_count);
  free(bar);
  free(back);
}

void RULE(allgather, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                           handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_allgather_jvp(out, out_count, out_type, in, in_count, in_type, comm, sout, sin);
}

void *RULE(allgather, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                                handle comm, REAL *sout, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm), comm);
  return je_blocks(arena, in_count, in_count, 0, comm, sout, sin);
}

void RULE(allgather, _reverse)(void *frame) { je_allgather_reverse(frame, 0); }

void RULE(allgather_in_place, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                    handle in_type, handle comm, REAL *sin) {
  je_allgather_jvp(out, out_count, out_type, in, in_count, in_type, comm, 0, sin);
}

void *RULE(allgather_in_place, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                         handle in_type, handle comm, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_check(MPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm), comm);
  return je_blocks(arena, in_count, in_count, 0, comm, 0, sin);
}

void RULE(allgather_in_place, _reverse)(void *frame) { je_allgather_reverse(frame, 1); }

/* Block j of process k becomes block k of process j. In place it is sent from where it will be. */

static void je_alltoall_jvp(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                            handle comm, int count, const REAL *sout, REAL *sin) {
  long size = je_size(comm);
  REAL *moved = je_copy(sout, size * count), *got = je_zeros(size * in_count);
  je_check(MPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm), comm);
  je_check(MPI_Alltoall(moved, count, NUMBER, got, in_count, NUMBER, comm), comm);
  je_set(sin, got, size * in_count);
  free(moved);
  free(got);
}

void RULE(alltoall, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                          handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_alltoall_jvp(out, out_count, out_type, in, in_count, in_type, comm, out_count, sout, sin);
}

void *RULE(alltoall, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type,
                               handle comm, REAL *sout, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm), comm);
  return je_blocks(arena, out_count, in_count, 0, comm, sout, sin);
}

void RULE(alltoall, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  long size = je_size(f->comm);
  REAL *bar = je_copy(f->sin, size * f->in_count), *back = je_zeros(size * f->out_count);
  je_check(MPI_Alltoall(bar, f->in_count, NUMBER, back, f->out_count, NUMBER, f->comm), f->comm);
  je_clear(f->sin, size * f->in_count);
  je_add(f->sout, back, size * f->out_count);
  free(bar);
  free(back);
}

void RULE(alltoall_in_place, _jvp)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                   handle in_type, handle comm, REAL *sin) {
  je_alltoall_jvp(out, out_count, out_type, in, in_count, in_type, comm, in_count, sin, sin);
}

void *RULE(alltoall_in_place, _forward)(const REAL *out, int out_count, handle out_type, REAL *in, int in_count,
                                        handle in_type, handle comm, REAL *sin, long stable, void *arena) {
  (void)stable;
  je_check(MPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm), comm);
  return je_blocks(arena, in_count, in_count, 0, comm, sin, sin);
}

void RULE(alltoall_in_place, _reverse)(void *frame) { RULE(alltoall, _reverse)(frame); }

/* Blocks of several lengths: `counts` and `starts` count for the process that has them all. */

static long je_extent(const int *counts, const int *starts, int size) {
  long most = 0;
  for (int i = 0; i < size; i++)
    if (counts[i] > 0 && (long)starts[i] + counts[i] > most) most = (long)starts[i] + counts[i];
  return most;
}

static int *je_integers(void *arena, const int *from, int size) {
  int *made = je_arena_allocate(arena, size * sizeof(int));
  for (int i = 0; i < size; i++) made[i] = from[i];
  return made;
}

static void je_set_blocks(REAL *to, const REAL *from, const int *counts, const int *starts, int size, int adds) {
  if (!to) return;
  for (int i = 0; i < size; i++)
    for (long j = (long)starts[i] * WIDTH; j < ((long)starts[i] + counts[i]) * WIDTH; j++)
      to[j] = (adds ? to[j] : 0) + (from ? from[j] : 0);
}

static struct je_blocks *je_several(void *arena, int here, int count, const int *counts, const int *starts, int root,
                                    handle comm, REAL *sout, REAL *sin) {
  struct je_blocks *f = je_blocks(arena, count, count, root, comm, sout, sin);
  f->counts = je_integers(arena, counts, here ? je_size(comm) : 0);
  f->starts = je_integers(arena, starts, here ? je_size(comm) : 0);
  return f;
}

static void je_gatherv_jvp(const REAL *out, int count, handle out_type, REAL *in, const int *counts, const int *starts,
                           handle in_type, int root, handle comm, int own, const REAL *sout, REAL *sin) {
  int blocks = je_root_only(je_size(comm), root, comm);
  REAL *moved = je_copy(sout, own), *got = je_zeros(je_extent(counts, starts, blocks));
  je_check(MPI_Gatherv(out, count, out_type, in, counts, starts, in_type, root, comm), comm);
  je_check(MPI_Gatherv(moved, own, NUMBER, got, counts, starts, NUMBER, root, comm), comm);
  je_set_blocks(sin, got, counts, starts, blocks, 0);
  free(moved);
  free(got);
}

void RULE(gatherv, _jvp)(const REAL *out, int count, handle out_type, REAL *in, const int *counts, const int *starts,
                         handle in_type, int root, handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_gatherv_jvp(out, count, out_type, in, counts, starts, in_type, root, comm, count, sout, sin);
}

void *RULE(gatherv, _forward)(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                              const int *starts, handle in_type, int root, handle comm, REAL *sout, REAL *sin,
                              long stable, void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Gatherv(out, count, out_type, in, counts, starts, in_type, root, comm), comm);
  return je_several(arena, je_rank(comm) == root, count, counts, starts, root, comm, sout, sin);
}

void RULE(gatherv, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  int blocks = je_root_only(je_size(f->comm), f->root, f->comm);
  REAL *bar = je_copy(f->sin, je_extent(f->counts, f->starts, blocks)), *back = je_zeros(f->out_count);
  je_check(MPI_Scatterv(bar, f->counts, f->starts, NUMBER, back, f->out_count, NUMBER, f->root, f->comm), f->comm);
  je_set_blocks(f->sin, 0, f->counts, f->starts, blocks, 0);
  je_add(f->sout, back, f->out_count);
  free(bar);
  free(back);
}

void RULE(gatherv_in_place, _jvp)(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                                  const int *starts, handle in_type, int root, handle comm, REAL *sin) {
  je_gatherv_jvp(out, count, out_type, in, counts, starts, in_type, root, comm, counts[root],
                 je_own_block(sin, starts, comm), sin);
}

void *RULE(gatherv_in_place, _forward)(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                                       const int *starts, handle in_type, int root, handle comm, REAL *sin, long stable,
                                       void *arena) {
  (void)stable;
  je_check(MPI_Gatherv(out, count, out_type, in, counts, starts, in_type, root, comm), comm);
  return je_several(arena, 1, counts[root], counts, starts, root, comm, je_own_block(sin, starts, comm), sin);
}

void RULE(gatherv_in_place, _reverse)(void *frame) { RULE(gatherv, _reverse)(frame); }

static void je_scatterv_jvp(const REAL *out, const int *counts, const int *starts, handle out_type, REAL *in, int count,
                            handle in_type, int root, handle comm, int own, const REAL *sout, REAL *sin) {
  int blocks = je_root_only(je_size(comm), root, comm);
  REAL *moved = je_copy(sout, je_extent(counts, starts, blocks)), *got = je_zeros(own);
  je_check(MPI_Scatterv(out, counts, starts, out_type, in, count, in_type, root, comm), comm);
  je_check(MPI_Scatterv(moved, counts, starts, NUMBER, got, own, NUMBER, root, comm), comm);
  je_set(sin, got, own);
  free(moved);
  free(got);
}

void RULE(scatterv, _jvp)(const REAL *out, const int *counts, const int *starts, handle out_type, REAL *in, int count,
                          handle in_type, int root, handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_scatterv_jvp(out, counts, starts, out_type, in, count, in_type, root, comm, count, sout, sin);
}

void *RULE(scatterv, _forward)(const REAL *out, const int *counts, const int *starts, handle out_type, REAL *in,
                               int count, handle in_type, int root, handle comm, REAL *sout, REAL *sin, long stable,
                               void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Scatterv(out, counts, starts, out_type, in, count, in_type, root, comm), comm);
  return je_several(arena, je_rank(comm) == root, count, counts, starts, root, comm, sout, sin);
}

void RULE(scatterv, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  int blocks = je_root_only(je_size(f->comm), f->root, f->comm);
  REAL *bar = je_copy(f->sin, f->in_count), *back = je_zeros(je_extent(f->counts, f->starts, blocks));
  je_check(MPI_Gatherv(bar, f->in_count, NUMBER, back, f->counts, f->starts, NUMBER, f->root, f->comm), f->comm);
  je_clear(f->sin, f->in_count);
  je_set_blocks(f->sout, back, f->counts, f->starts, blocks, 1);
  free(bar);
  free(back);
}

void RULE(scatterv_in_place, _jvp)(const REAL *out, const int *counts, const int *starts, handle out_type, REAL *in,
                                   int count, handle in_type, int root, handle comm, const REAL *sout) {
  je_scatterv_jvp(out, counts, starts, out_type, in, count, in_type, root, comm, counts[root], sout, 0);
}

void *RULE(scatterv_in_place, _forward)(const REAL *out, const int *counts, const int *starts, handle out_type,
                                        REAL *in, int count, handle in_type, int root, handle comm, REAL *sout,
                                        long stable, void *arena) {
  (void)stable;
  je_check(MPI_Scatterv(out, counts, starts, out_type, in, count, in_type, root, comm), comm);
  return je_several(arena, 1, counts[root], counts, starts, root, comm, sout, je_own_block(sout, starts, comm));
}

void RULE(scatterv_in_place, _reverse)(void *frame) { RULE(scatterv, _reverse)(frame); }

static void je_allgatherv_jvp(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                              const int *starts, handle in_type, handle comm, int own, const REAL *sout, REAL *sin) {
  int size = je_size(comm);
  REAL *moved = je_copy(sout, own), *got = je_zeros(je_extent(counts, starts, size));
  je_check(MPI_Allgatherv(out, count, out_type, in, counts, starts, in_type, comm), comm);
  je_check(MPI_Allgatherv(moved, own, NUMBER, got, counts, starts, NUMBER, comm), comm);
  je_set_blocks(sin, got, counts, starts, size, 0);
  free(moved);
  free(got);
}

void RULE(allgatherv, _jvp)(const REAL *out, int count, handle out_type, REAL *in, const int *counts, const int *starts,
                            handle in_type, handle comm, const REAL *sout, REAL *sin) {
  je_not_in_place(out, in, comm);
  je_allgatherv_jvp(out, count, out_type, in, counts, starts, in_type, comm, count, sout, sin);
}

void *RULE(allgatherv, _forward)(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                                 const int *starts, handle in_type, handle comm, REAL *sout, REAL *sin, long stable,
                                 void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Allgatherv(out, count, out_type, in, counts, starts, in_type, comm), comm);
  return je_several(arena, 1, count, counts, starts, 0, comm, sout, sin);
}

void RULE(allgatherv, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  int size = je_size(f->comm), rank = je_rank(f->comm);
  REAL *bar = je_copy(f->sin, je_extent(f->counts, f->starts, size)), *back = je_zeros(f->out_count);
  for (int i = 0; i < size; i++)
    je_check(
        MPI_Reduce(bar + (long)f->starts[i] * WIDTH, i == rank ? back : 0, f->counts[i], NUMBER, JE_SUM, i, f->comm),
        f->comm);
  je_set_blocks(f->sin, 0, f->counts, f->starts, size, 0);
  je_add(f->sout, back, f->out_count);
  free(bar);
  free(back);
}

void RULE(allgatherv_in_place, _jvp)(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                                     const int *starts, handle in_type, handle comm, REAL *sin) {
  je_allgatherv_jvp(out, count, out_type, in, counts, starts, in_type, comm, counts[je_rank(comm)],
                    je_own_block(sin, starts, comm), sin);
}

void *RULE(allgatherv_in_place, _forward)(const REAL *out, int count, handle out_type, REAL *in, const int *counts,
                                          const int *starts, handle in_type, handle comm, REAL *sin, long stable,
                                          void *arena) {
  (void)stable;
  je_check(MPI_Allgatherv(out, count, out_type, in, counts, starts, in_type, comm), comm);
  return je_several(arena, 1, counts[je_rank(comm)], counts, starts, 0, comm, je_own_block(sin, starts, comm), sin);
}

void RULE(allgatherv_in_place, _reverse)(void *frame) { RULE(allgatherv, _reverse)(frame); }

/* Blocks that differ, from each to each. What is sent to several comes back as blocks of its own, which are added. */

void RULE(alltoallv, _jvp)(const REAL *out, const int *out_counts, const int *out_starts, handle out_type, REAL *in,
                           const int *counts, const int *starts, handle in_type, handle comm, const REAL *sout,
                           REAL *sin) {
  int size = je_size(comm);
  REAL *moved = je_copy(sout, je_extent(out_counts, out_starts, size)),
       *got = je_zeros(je_extent(counts, starts, size));
  je_not_in_place(out, in, comm);
  je_check(MPI_Alltoallv(out, out_counts, out_starts, out_type, in, counts, starts, in_type, comm), comm);
  je_check(MPI_Alltoallv(moved, out_counts, out_starts, NUMBER, got, counts, starts, NUMBER, comm), comm);
  je_set_blocks(sin, got, counts, starts, size, 0);
  free(moved);
  free(got);
}

void *RULE(alltoallv, _forward)(const REAL *out, const int *out_counts, const int *out_starts, handle out_type,
                                REAL *in, const int *counts, const int *starts, handle in_type, handle comm, REAL *sout,
                                REAL *sin, long stable, void *arena) {
  (void)stable;
  je_not_in_place(out, in, comm);
  je_check(MPI_Alltoallv(out, out_counts, out_starts, out_type, in, counts, starts, in_type, comm), comm);
  struct je_blocks *f = je_several(arena, 1, 0, counts, starts, 0, comm, sout, sin);
  f->out_counts = je_integers(arena, out_counts, je_size(comm));
  f->out_starts = je_integers(arena, out_starts, je_size(comm));
  return f;
}

void RULE(alltoallv, _reverse)(void *frame) {
  struct je_blocks *f = frame;
  int size = je_size(f->comm), *dense = calloc(size + 1, sizeof *dense);
  for (int i = 0; i < size; i++) dense[i + 1] = dense[i] + f->out_counts[i];
  REAL *bar = je_copy(f->sin, je_extent(f->counts, f->starts, size)), *back = je_zeros(dense[size]);
  je_check(MPI_Alltoallv(bar, f->counts, f->starts, NUMBER, back, f->out_counts, dense, NUMBER, f->comm), f->comm);
  je_set_blocks(f->sin, 0, f->counts, f->starts, size, 0);
  for (int i = 0; f->sout && i < size; i++)
    je_add(f->sout + (long)f->out_starts[i] * WIDTH, back + (long)dense[i] * WIDTH, f->out_counts[i]);
  free(bar);
  free(back);
  free(dense);
}
