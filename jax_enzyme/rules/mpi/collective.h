/* Calls of all processes of a communicator. Each is linear but for reductions by other operations than the sum, which
   are linear with weights; the derivative backwards is the transpose of the whole. */

/* y = root's x everywhere:  xbar = the sum of all ybar at the root, 0 elsewhere */

void RULE(bcast, _jvp)(REAL *buf, int count, handle type, int root, handle comm, REAL *sbuf) {
  REAL *tangent = je_copy(sbuf, count);
  je_check(MPI_Bcast(buf, count, type, root, comm), comm);
  je_check(MPI_Bcast(tangent, count, NUMBER, root, comm), comm);
  je_set(sbuf, tangent, count);
  free(tangent);
}

struct je_spread {
  int count, root;
  handle comm;
  REAL *shadow;
};

void *RULE(bcast, _forward)(REAL *buf, int count, handle type, int root, handle comm, REAL *sbuf, long stable,
                            void *arena) {
  struct je_spread *f = je_arena_allocate(arena, sizeof *f);
  (void)stable;
  je_all_in_order(comm);
  je_check(MPI_Bcast(buf, count, type, root, comm), comm);
  f->count = count, f->root = root, f->comm = comm, f->shadow = sbuf;
  return f;
}

void RULE(bcast, _reverse)(void *frame) {
  struct je_spread *f = frame;
  REAL *own = je_copy(f->shadow, f->count), *sum = je_zeros(f->count);
  je_check(MPI_Reduce(own, sum, f->count, NUMBER, JE_SUM, f->root, f->comm), f->comm);
  je_set(f->shadow, sum, f->count); /* zeros, but at the root */
  free(own);
  free(sum);
}

/* y = x_0 + x_1 + ... :  x_k's weight is 1. Of a product it is that of the other factors; of a maximum or minimum it is
   1 on the first process that has it, 0 on others. Null stands for ones. `y` is the result, where `has` says so. */

static REAL *je_weights(const REAL *x, int count, handle op, handle comm) {
  if (op == JE_SUM) return 0;
  REAL *weights = je_zeros(count);
  int rank = je_rank(comm), size = je_size(comm);
  if (op == JE_MAX || op == JE_MIN) {
    REAL *best = je_zeros(count);
    int *mine = malloc(count * sizeof(int) + 1), *first = malloc(count * sizeof(int) + 1);
    je_check(MPI_Allreduce(x, best, count, NUMBER, op, comm), comm);
    for (int i = 0; i < count; i++) mine[i] = x[i] == best[i] ? rank : size;
    je_check(MPI_Allreduce(mine, first, count, JE_INT, JE_MIN, comm), comm);
    for (int i = 0; i < count; i++) weights[i] = first[i] == rank ? 1 : first[i] < size ? 0 : (REAL)__builtin_nan("");
    free(best);
    free(mine);
    free(first);
    return weights;
  }
  REAL *all = je_zeros((long)count * size);
  je_check(MPI_Allgather(x, count, NUMBER, all, count, NUMBER, comm), comm);
  for (int i = 0; i < count; i++) {
    REAL others = 1;
    for (int k = 0; k < size; k++)
      if (k != rank) others *= all[(long)k * count + i];
    weights[i] = others;
  }
  free(all);
  return weights;
}

/* The numbers times their weights, in new memory. */
static REAL *je_weighted(const REAL *x, const REAL *weights, int count) {
  REAL *made = je_copy(x, count);
  if (weights)
    for (long i = 0; i < (long)count * WIDTH; i++) made[i] *= weights[i];
  return made;
}

struct je_reduced {
  int count, root;
  handle comm;
  REAL *weights, *sout, *sin;
};

static REAL *je_kept(void *arena, const REAL *weights, int count) {
  if (!weights) return 0;
  REAL *kept = je_arena_allocate(arena, (long)count * WIDTH * sizeof(REAL));
  for (long i = 0; i < (long)count * WIDTH; i++) kept[i] = weights[i];
  return kept;
}

static void *je_reduced(void *arena, const REAL *x, int count, handle op, int root, handle comm, REAL *sout,
                        REAL *sin) {
  struct je_reduced *f = je_arena_allocate(arena, sizeof *f);
  je_all_in_order(comm);
  REAL *weights = je_weights(x, count, op, comm);
  f->count = count, f->root = root, f->comm = comm, f->sout = sout, f->sin = sin;
  f->weights = je_kept(arena, weights, count);
  free(weights);
  return f;
}

static void je_pull(const struct je_reduced *f, REAL *bar) {
  REAL *back = je_weighted(bar, f->weights, f->count);
  je_add(f->sout, back, f->count);
  free(back);
  free(bar);
}

/* To all:  xbar_k += weight (ybar_0 + ybar_1 + ...) */

static void je_allreduce_jvp(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,
                             const REAL *sout, REAL *sin) {
  const REAL *x = out == JE_IN_PLACE ? in : out;
  REAL *weights = je_weights(x, count, op, comm);
  REAL *moved = je_weighted(out == JE_IN_PLACE ? sin : sout, weights, count), *sum = je_zeros(count);
  je_check(MPI_Allreduce(out, in, count, type, op, comm), comm);
  je_check(MPI_Allreduce(moved, sum, count, NUMBER, JE_SUM, comm), comm);
  je_set(sin, sum, count);
  free(weights);
  free(moved);
  free(sum);
}

static void *je_allreduce_forward(const REAL *out, REAL *in, int count, handle type, handle op, handle comm, REAL *sout,
                                  REAL *sin, void *arena) {
  int in_place = out == JE_IN_PLACE;
  void *f = je_reduced(arena, in_place ? in : out, count, op, 0, comm, in_place ? sin : sout, sin);
  je_check(MPI_Allreduce(out, in, count, type, op, comm), comm);
  return f;
}

static void je_allreduce_reverse(const struct je_reduced *f) {
  REAL *own = je_copy(f->sin, f->count), *bar = je_zeros(f->count);
  je_check(MPI_Allreduce(own, bar, f->count, NUMBER, JE_SUM, f->comm), f->comm);
  je_clear(f->sin, f->count);
  je_pull(f, bar);
  free(own);
}

void RULE(allreduce, _jvp)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm, const REAL *sout,
                           REAL *sin) {
  je_allreduce_jvp(out, in, count, type, op, comm, sout, sin);
}

void *RULE(allreduce, _forward)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm, REAL *sout,
                                REAL *sin, long stable, void *arena) {
  (void)stable;
  return je_allreduce_forward(out, in, count, type, op, comm, sout, sin, arena);
}

void RULE(allreduce, _reverse)(void *frame) { je_allreduce_reverse(frame); }

void RULE(allreduce_in_place, _jvp)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,
                                    REAL *sin) {
  je_allreduce_jvp(out, in, count, type, op, comm, 0, sin);
}

void *RULE(allreduce_in_place, _forward)(const REAL *out, REAL *in, int count, handle type, handle op, handle comm,
                                         REAL *sin, long stable, void *arena) {
  (void)stable;
  return je_allreduce_forward(out, in, count, type, op, comm, 0, sin, arena);
}

void RULE(allreduce_in_place, _reverse)(void *frame) { je_allreduce_reverse(frame); }

/* To the root:  xbar_k += weight (the root's ybar) */

static void je_reduce_jvp(const REAL *out, REAL *in, int count, handle type, handle op, int root, handle comm,
                          const REAL *sout, REAL *sin) {
  int in_place = out == JE_IN_PLACE;
  REAL *weights = je_weights(in_place ? in : out, count, op, comm);
  REAL *moved = je_weighted(in_place ? sin : sout, weights, count), *sum = je_zeros(count);
  je_check(MPI_Reduce(out, in, count, type, op, root, comm), comm);
  je_check(MPI_Reduce(moved, sum, count, NUMBER, JE_SUM, root, comm), comm);
  if (je_rank(comm) == root) je_set(sin, sum, count);
  free(weights);
  free(moved);
  free(sum);
}

static void *je_reduce_forward(const REAL *out, REAL *in, int count, handle type, handle op, int root, handle comm,
                               REAL *sout, REAL *sin, void *arena) {
  int in_place = out == JE_IN_PLACE;
  REAL *result = je_rank(comm) == root ? sin : 0;
  void *f = je_reduced(arena, in_place ? in : out, count, op, root, comm, in_place ? sin : sout, result);
  je_check(MPI_Reduce(out, in, count, type, op, root, comm), comm);
  return f;
}

static void je_reduce_reverse(const struct je_reduced *f) {
  REAL *bar = je_copy(f->sin, f->count);
  je_check(MPI_Bcast(bar, f->count, NUMBER, f->root, f->comm), f->comm);
  je_clear(f->sin, f->count);
  je_pull(f, bar);
}

void RULE(reduce, _jvp)(const REAL *out, REAL *in, int count, handle type, handle op, int root, handle comm,
                        const REAL *sout, REAL *sin) {
  je_reduce_jvp(out, in, count, type, op, root, comm, sout, sin);
}

void *RULE(reduce, _forward)(const REAL *out, REAL *in, int count, handle type, handle op, int root, handle comm,
                             REAL *sout, REAL *sin, long stable, void *arena) {
  (void)stable;
  return je_reduce_forward(out, in, count, type, op, root, comm, sout, sin, arena);
}

void RULE(reduce, _reverse)(void *frame) { je_reduce_reverse(frame); }

void RULE(reduce_in_place, _jvp)(const REAL *out, REAL *in, int count, handle type, handle op, int root, handle comm,
                                 REAL *sin) {
  je_reduce_jvp(out, in, count, type, op, root, comm, 0, sin);
}

void *RULE(reduce_in_place, _forward)(const REAL *out, REAL *in, int count, handle type, handle op, int root,
                                      handle comm, REAL *sin, long stable, void *arena) {
  (void)stable;
  return je_reduce_forward(out, in, count, type, op, root, comm, 0, sin, arena);
}

void RULE(reduce_in_place, _reverse)(void *frame) { je_reduce_reverse(frame); }
