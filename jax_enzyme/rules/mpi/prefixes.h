/* Results over the processes up to this one, or before it: `first` is the first process that has one. Of sums xbar is
   the same sum of ybar, over the processes from the last on. Of other operations every process gets all numbers, and
   weighs them as in `collective.h`. */

static handle je_backwards(handle comm) {
  handle turned;
  je_check(MPI_Comm_split(comm, 0, -je_rank(comm), &turned), comm);
  return turned;
}

/* All processes' numbers, in new memory. */
static REAL *je_of_all(const REAL *x, int count, handle comm) {
  REAL *own = je_copy(x, count), *all = je_zeros((long)count * je_size(comm));
  je_check(MPI_Allgather(own, count, NUMBER, all, count, NUMBER, comm), comm);
  free(own);
  return all;
}

/* What number i of process k weighs in the result over the first `many`. */
static REAL je_weight_among(const REAL *all, int count, int many, int k, int i, handle op) {
  REAL weight = 1;
  for (int j = 0; j < many; j++) {
    if (j == k) continue;
    REAL own = all[(long)k * count + i], other = all[(long)j * count + i];
    if (op == JE_MAX || op == JE_MIN) {
      if (other == own ? j < k : op == JE_MAX ? other > own : other < own) weight = 0;
    } else {
      weight *= other;
    }
  }
  return weight;
}

struct je_prefix {
  int count, first;
  handle op, comm;
  REAL *all, *sout, *sin; /* `all`: where the operation is no sum */
};

static void je_prefix_reverse(const struct je_prefix *f) {
  int rank = je_rank(f->comm), size = je_size(f->comm);
  REAL *bars = je_of_all(rank >= f->first ? f->sin : 0, f->count, f->comm), *back = je_zeros(f->count);
  for (int to = rank + f->first; to < size; to++)
    for (int i = 0; i < f->count; i++)
      back[i] +=
          je_weight_among(f->all, f->count, to + 1 - f->first, rank, i, f->op) * bars[(long)to * f->count + i];
  if (rank >= f->first) je_clear(f->sin, f->count);
  je_add(f->sout, back, f->count);
  free(bars);
  free(back);
}

static void je_prefix_jvp(const REAL *all, const REAL *moved, REAL *got, int count, int first, handle op,
                          handle comm) {
  int rank = je_rank(comm);
  REAL *tangents = je_of_all(moved, count, comm);
  for (int k = 0; k <= rank - first; k++)
    for (int i = 0; i < count; i++)
      got[i] += je_weight_among(all, count, rank + 1 - first, k, i, op) * tangents[(long)k * count + i];
  free(tangents);
}

#define PREFIXES(name, function, first_of)                                                                             \
  static void je_##name##_jvp(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,               \
                              const REAL *sout, REAL *sin) {                                                           \
    REAL *moved = je_copy(sout, count), *got = je_zeros(count);                                                        \
    if (op == JE_SUM) {                                                                                                \
      je_check(function(out, in, count, type, op, comm), comm);                                                        \
      je_check(function(moved, got, count, NUMBER, JE_SUM, comm), comm);                                               \
    } else {                                                                                                           \
      REAL *all = je_of_all(out == JE_IN_PLACE ? in : out, count, comm);                                               \
      je_check(function(out, in, count, type, op, comm), comm);                                                        \
      je_prefix_jvp(all, moved, got, count, first_of, op, comm);                                                       \
      free(all);                                                                                                       \
    }                                                                                                                  \
    if (je_rank(comm) >= first_of) je_set(sin, got, count);                                                            \
    free(moved);                                                                                                       \
    free(got);                                                                                                         \
  }                                                                                                                    \
  static void *je_##name##_forward(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,          \
                                   REAL *sout, REAL *sin, void *arena) {                                               \
    struct je_prefix *f = je_arena_allocate(arena, sizeof *f);                                                         \
    je_all_in_order(comm);                                                                                             \
    f->count = count, f->first = first_of, f->op = op, f->comm = comm, f->sout = sout, f->sin = sin, f->all = 0;       \
    if (op != JE_SUM) {                                                                                                \
      REAL *all = je_of_all(out == JE_IN_PLACE ? in : out, count, comm);                                               \
      f->all = je_kept(arena, all, count * je_size(comm));                                                             \
      free(all);                                                                                                       \
    }                                                                                                                  \
    je_check(function(out, in, count, type, op, comm), comm);                                                          \
    return f;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) {                                                                             \
    struct je_prefix *f = frame;                                                                                       \
    if (f->op != JE_SUM) {                                                                                             \
      je_prefix_reverse(f);                                                                                            \
      return;                                                                                                          \
    }                                                                                                                  \
    int has = je_rank(f->comm) >= f->first;                                                                            \
    REAL *bar = je_copy(has ? f->sin : 0, f->count), *back = je_zeros(f->count);                                       \
    handle turned = je_backwards(f->comm);                                                                             \
    je_check(function(bar, back, f->count, NUMBER, JE_SUM, turned), f->comm);                                          \
    MPI_Comm_free(&turned);                                                                                            \
    if (has) je_clear(f->sin, f->count);                                                                               \
    je_add(f->sout, back, f->count);                                                                                   \
    free(bar);                                                                                                         \
    free(back);                                                                                                        \
  }                                                                                                                    \
  void RULE(name, _jvp)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm, const REAL *sout,   \
                        REAL *sin) {                                                                                   \
    je_not_in_place(out, in, comm);                                                                                    \
    je_##name##_jvp(out, in, count, type, op, comm, sout, sin);                                                        \
  }                                                                                                                    \
  void *RULE(name, _forward)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm, REAL *sout,    \
                             REAL *sin, long stable, void *arena) {                                                    \
    (void)stable;                                                                                                      \
    je_not_in_place(out, in, comm);                                                                                    \
    return je_##name##_forward(out, in, count, type, op, comm, sout, sin, arena);                                      \
  }                                                                                                                    \
  void RULE(name##_in_place, _jvp)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,          \
                                   REAL *sin) {                                                                        \
    je_##name##_jvp(out, in, count, type, op, comm, sin, sin);                                                         \
  }                                                                                                                    \
  void *RULE(name##_in_place, _forward)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,     \
                                        REAL *sin, long stable, void *arena) {                                         \
    (void)stable;                                                                                                      \
    return je_##name##_forward(out, in, count, type, op, comm, sin, sin, arena);                                       \
  }                                                                                                                    \
  void RULE(name##_in_place, _reverse)(void *frame) { RULE(name, _reverse)(frame); }

PREFIXES(scan, MPI_Scan, 0)
PREFIXES(exscan, MPI_Exscan, 1)
