/* Blocks that go to the neighbours on a grid or a graph of processes, and come from them: equal ones, ones of several
   lengths, or one for all. What would come from beyond the edge stays as it was, and so does its derivative. */

extern int MPI_Topo_test(handle comm, int *kind);
extern int MPI_Cartdim_get(handle comm, int *dimensions);
extern int MPI_Cart_shift(handle comm, int dimension, int by, int *from, int *to);
extern int MPI_Dist_graph_neighbors_count(handle comm, int *in, int *out, int *weighted);
extern int MPI_Dist_graph_neighbors(handle comm, int in, int *from, int *in_weights, int out, int *to,
                                    int *out_weights);
extern int MPI_Neighbor_allgather(const void *out, int out_count, handle out_type, void *in, int in_count,
                                  handle in_type, handle comm);
extern int MPI_Neighbor_allgatherv(const void *out, int out_count, handle out_type, void *in, const int *counts,
                                   const int *starts, handle in_type, handle comm);
extern int MPI_Neighbor_alltoall(const void *out, int out_count, handle out_type, void *in, int in_count,
                                 handle in_type, handle comm);
extern int MPI_Neighbor_alltoallv(const void *out, const int *out_counts, const int *out_starts, handle out_type,
                                  void *in, const int *counts, const int *starts, handle in_type, handle comm);

struct je_neighbours {
  int in, out, grid, *from, *to;
};

static struct je_neighbours je_neighbours(handle comm) {
  struct je_neighbours n;
  int kind, weighted;
  je_check(MPI_Topo_test(comm, &kind), comm);
  n.grid = kind == JE_CART;
  if (n.grid) {
    je_check(MPI_Cartdim_get(comm, &n.in), comm);
    n.out = n.in = 2 * n.in;
  } else {
    je_check(MPI_Dist_graph_neighbors_count(comm, &n.in, &n.out, &weighted), comm);
  }
  n.from = calloc(n.in + 1, sizeof(int)), n.to = calloc(n.out + 1, sizeof(int));
  for (int i = 0; n.grid && i < n.in; i += 2) {
    je_check(MPI_Cart_shift(comm, i / 2, 1, &n.from[i], &n.from[i + 1]), comm);
    n.to[i] = n.from[i], n.to[i + 1] = n.from[i + 1];
  }
  if (n.grid) return n;
  int *in_weights = calloc(n.in + 1, sizeof(int)), *out_weights = calloc(n.out + 1, sizeof(int));
  je_check(MPI_Dist_graph_neighbors(comm, n.in, n.from, in_weights, n.out, n.to, out_weights), comm);
  free(in_weights);
  free(out_weights);
  return n;
}

static void je_no_neighbours(struct je_neighbours *n) {
  free(n->from);
  free(n->to);
}

/* Blocks of `each` numbers, or of several lengths: `step` from one to the next, where they have no places of their own.
 */
static void je_laid_out(int *counts, int *starts, const int *lengths, const int *places, int each, int step, int many) {
  for (int i = 0; i < many; i++) counts[i] = lengths ? lengths[i] : each, starts[i] = places ? places[i] : i * step;
}

/* For each process its blocks behind one another, as they follow in the list: those between two processes match in
   this order. Their numbers and places in `totals` and `at` by process, each block's place in `dense`. */
static void je_by_process(const int *who, const int *counts, int many, int *totals, int *at, int *dense, int size) {
  for (int r = 0, all = 0; r < size; r++) {
    at[r] = all;
    for (int i = 0; i < many; i++)
      if (who[i] == r) dense[i] = all, all += counts[i];
    totals[r] = all - at[r];
  }
}

/* Cotangents of what came, back to who sent it; packed in `back`, those of block i at `dense[i]`. On a grid who sends
   to whom is the same both ways, whichever way two processes are neighbours twice. */
static void je_to_neighbours(const struct je_neighbours *n, const REAL *bar, const int *counts, const int *starts,
                             REAL *back, const int *out_counts, int *dense, handle comm) {
  if (n->grid) {
    for (int i = 0, at = 0; i < n->out; at += out_counts[i++]) dense[i] = at;
    je_check(MPI_Neighbor_alltoallv(bar, counts, starts, NUMBER, back, out_counts, dense, NUMBER, comm), comm);
    return;
  }
  int size = je_size(comm), *each = calloc(4 * size + n->in + 1, sizeof(int)), *places = each + 4 * size;
  je_by_process(n->from, counts, n->in, each, each + size, places, size);
  je_by_process(n->to, out_counts, n->out, each + 2 * size, each + 3 * size, dense, size);
  long all = size ? (long)each[size - 1] + each[2 * size - 1] : 0;
  REAL *moved = je_zeros(all);
  for (int i = 0; i < n->in; i++)
    if (n->from[i] != JE_PROC_NULL) je_set(moved + (long)places[i] * WIDTH, bar + (long)starts[i] * WIDTH, counts[i]);
  je_check(MPI_Alltoallv(moved, each, each + size, NUMBER, back, each + 2 * size, each + 3 * size, NUMBER, comm), comm);
  free(moved);
  free(each);
}

static void je_neighbours_jvp(const int *out_lengths, const int *out_places, int out_count, int out_step,
                              const int *lengths, const int *places, int count, handle comm, const REAL *sout,
                              REAL *sin) {
  struct je_neighbours n = je_neighbours(comm);
  int *laid = calloc(2 * (n.out + n.in) + 1, sizeof(int)), *counts = laid + 2 * n.out, *starts = counts + n.in;
  je_laid_out(laid, laid + n.out, out_lengths, out_places, out_count, out_step, n.out);
  je_laid_out(counts, starts, lengths, places, count, count, n.in);
  REAL *moved = je_copy(sout, je_extent(laid, laid + n.out, n.out));
  REAL *got = je_copy(sin, je_extent(counts, starts, n.in));
  je_check(MPI_Neighbor_alltoallv(moved, laid, laid + n.out, NUMBER, got, counts, starts, NUMBER, comm), comm);
  je_set_blocks(sin, got, counts, starts, n.in, 0);
  free(moved);
  free(got);
  free(laid);
  je_no_neighbours(&n);
}

static void *je_neighbours_forward(void *arena, const int *out_lengths, const int *out_places, int out_count,
                                   int out_step, const int *lengths, const int *places, int count, handle comm,
                                   REAL *sout, REAL *sin) {
  struct je_blocks *f = je_blocks(arena, 0, 0, 0, comm, sout, sin);
  struct je_neighbours n = je_neighbours(comm);
  f->out_counts = je_arena_allocate(arena, 2 * (n.out + n.in + 1) * sizeof(int));
  f->out_starts = f->out_counts + n.out, f->counts = f->out_starts + n.out, f->starts = f->counts + n.in;
  je_laid_out(f->out_counts, f->out_starts, out_lengths, out_places, out_count, out_step, n.out);
  je_laid_out(f->counts, f->starts, lengths, places, count, count, n.in);
  je_no_neighbours(&n);
  return f;
}

static void je_neighbours_reverse(const struct je_blocks *f) {
  struct je_neighbours n = je_neighbours(f->comm);
  long all = 0;
  for (int i = 0; i < n.out; i++) all += f->out_counts[i];
  REAL *bar = je_copy(f->sin, je_extent(f->counts, f->starts, n.in)), *back = je_zeros(all);
  int *dense = calloc(n.out + 1, sizeof(int));
  je_to_neighbours(&n, bar, f->counts, f->starts, back, f->out_counts, dense, f->comm);
  for (int i = 0; f->sin && i < n.in; i++)
    if (n.from[i] != JE_PROC_NULL) je_clear(f->sin + (long)f->starts[i] * WIDTH, f->counts[i]);
  for (int i = 0; f->sout && i < n.out; i++)
    if (n.to[i] != JE_PROC_NULL)
      je_add(f->sout + (long)f->out_starts[i] * WIDTH, back + (long)dense[i] * WIDTH, f->out_counts[i]);
  free(bar);
  free(back);
  free(dense);
  je_no_neighbours(&n);
}

/* LAID_OUT: lengths, places, number and distance of what goes out; lengths, places and number of what comes in. */
#define NEIGHBOURS(name, function, PARAMETERS, ARGUMENTS, LAID_OUT)                                                    \
  void RULE(name, _jvp)(PARAMETERS, handle comm, const REAL *sout, REAL *sin) {                                        \
    je_check(function(ARGUMENTS, comm), comm);                                                                         \
    je_neighbours_jvp(LAID_OUT, comm, sout, sin);                                                                      \
  }                                                                                                                    \
  void *RULE(name, _forward)(PARAMETERS, handle comm, REAL * sout, REAL * sin, long stable, void *arena) {             \
    (void)stable;                                                                                                      \
    je_check(function(ARGUMENTS, comm), comm);                                                                         \
    return je_neighbours_forward(arena, LAID_OUT, comm, sout, sin);                                                    \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_neighbours_reverse(frame); }

#define EACH_GIVES const REAL *out, int out_count, handle out_type
#define SEVERAL_COME REAL *in, const int *counts, const int *starts, handle in_type
NEIGHBOURS(neighbor_allgather, MPI_Neighbor_allgather, GIVEN(EACH_GIVES, REAL *in, int in_count, handle in_type),
           GIVEN(out, out_count, out_type, in, in_count, in_type), GIVEN(0, 0, out_count, 0, 0, 0, in_count))
NEIGHBOURS(neighbor_allgatherv, MPI_Neighbor_allgatherv, GIVEN(EACH_GIVES, SEVERAL_COME),
           GIVEN(out, out_count, out_type, in, counts, starts, in_type), GIVEN(0, 0, out_count, 0, counts, starts, 0))
NEIGHBOURS(neighbor_alltoall, MPI_Neighbor_alltoall, GIVEN(EACH_GIVES, REAL *in, int in_count, handle in_type),
           GIVEN(out, out_count, out_type, in, in_count, in_type), GIVEN(0, 0, out_count, out_count, 0, 0, in_count))
NEIGHBOURS(neighbor_alltoallv, MPI_Neighbor_alltoallv,
           GIVEN(const REAL *out, const int *out_counts, const int *out_starts, handle out_type, SEVERAL_COME),
           GIVEN(out, out_counts, out_starts, out_type, in, counts, starts, in_type),
           GIVEN(out_counts, out_starts, 0, 0, counts, starts, 0))
