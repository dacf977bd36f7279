/* Reduced, a part of the result for each process: as many numbers (`block`), or as `counts` says.
   xbar_k += weight (the parts of ybar, one behind the other) */

struct je_parts {
  struct je_reduced *of;
  int own, *counts, *starts; /* `counts`: null where all have as many */
};

static int *je_counted(void *arena, const int *counts, int own, handle comm) {
  int size = je_size(comm), *made = je_arena_allocate(arena, size * sizeof(int));
  for (int i = 0; i < size; i++) made[i] = counts ? counts[i] : own;
  return made;
}

static long je_total(const int *counts, int own, handle comm) {
  int size = je_size(comm);
  long total = 0;
  for (int i = 0; i < size; i++) total += counts ? counts[i] : own;
  return total;
}

static void je_scatter_sum(const void *out, void *in, const int *counts, int own, handle type, handle op,
                           handle comm) {
  je_check(counts ? MPI_Reduce_scatter(out, in, counts, type, op, comm)
                  : MPI_Reduce_scatter_block(out, in, own, type, op, comm),
           comm);
}

static void je_scattered_jvp(const REAL *out, REAL *in, const int *counts, int own, handle type, handle op,
                             handle comm, const REAL *sout, REAL *sin) {
  long total = je_total(counts, own, comm);
  int part = counts ? counts[je_rank(comm)] : own;
  REAL *weights = je_weights(out == JE_IN_PLACE ? in : out, total, op, comm);
  REAL *moved = je_weighted(sout, weights, total), *got = je_zeros(part);
  je_scatter_sum(out, in, counts, own, type, op, comm);
  je_scatter_sum(moved, got, counts, own, NUMBER, JE_SUM, comm);
  je_set(sin, got, part);
  free(weights);
  free(moved);
  free(got);
}

static void *je_scattered_forward(const REAL *out, REAL *in, const int *counts, int own, handle type, handle op,
                                  handle comm, REAL *sout, REAL *sin, void *arena) {
  struct je_parts *f = je_arena_allocate(arena, sizeof *f);
  int size = je_size(comm);
  f->of = je_reduced(arena, out == JE_IN_PLACE ? in : out, je_total(counts, own, comm), op, 0, comm, sout, sin);
  f->own = counts ? counts[je_rank(comm)] : own;
  f->counts = je_counted(arena, counts, own, comm);
  f->starts = je_arena_allocate(arena, size * sizeof(int));
  for (int i = 0, at = 0; i < size; at += f->counts[i++]) f->starts[i] = at;
  je_scatter_sum(out, in, counts, own, type, op, comm);
  return f;
}

static void je_scattered_reverse(const struct je_parts *f) {
  const struct je_reduced *of = f->of;
  REAL *own = je_copy(of->sin, f->own), *bar = je_zeros(of->count);
  je_check(MPI_Allgatherv(own, f->own, NUMBER, bar, f->counts, f->starts, NUMBER, of->comm), of->comm);
  je_clear(of->sin, f->own);
  je_pull(of, bar);
  free(own);
}

#define SCATTERED(name, PARAMETER, counts, own)                                                                        \
  void RULE(name, _jvp)(const REAL *out, REAL *in, PARAMETER, handle type, handle op, handle comm, const REAL *sout,   \
                        REAL *sin) {                                                                                   \
    je_not_in_place(out, in, comm);                                                                                    \
    je_scattered_jvp(out, in, counts, own, type, op, comm, sout, sin);                                                 \
  }                                                                                                                    \
  void *RULE(name, _forward)(const REAL *out, REAL *in, PARAMETER, handle type, handle op, handle comm, REAL *sout,    \
                             REAL *sin, long stable, void *arena) {                                                    \
    (void)stable;                                                                                                      \
    je_not_in_place(out, in, comm);                                                                                    \
    return je_scattered_forward(out, in, counts, own, type, op, comm, sout, sin, arena);                               \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_scattered_reverse(frame); }                                              \
  void RULE(name##_in_place, _jvp)(const REAL *out, REAL *in, PARAMETER, handle type, handle op, handle comm,          \
                                   REAL *sin) {                                                                        \
    je_scattered_jvp(out, in, counts, own, type, op, comm, sin, sin);                                                  \
  }                                                                                                                    \
  void *RULE(name##_in_place, _forward)(const REAL *out, REAL *in, PARAMETER, handle type, handle op, handle comm,     \
                                        REAL *sin, long stable, void *arena) {                                         \
    (void)stable;                                                                                                      \
    return je_scattered_forward(out, in, counts, own, type, op, comm, sin, sin, arena);                                \
  }                                                                                                                    \
  void RULE(name##_in_place, _reverse)(void *frame) { je_scattered_reverse(frame); }

SCATTERED(reduce_scatter, const int *counts, counts, 0)
SCATTERED(reduce_scatter_block, int count, 0, count)
