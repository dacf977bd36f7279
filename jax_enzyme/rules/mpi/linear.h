/* Calls of all processes that are begun and waited for, each linear: so is its derivative, begun right behind it, and
   its transpose, which the wait begins in the reverse sweep. Those of one communicator are begun in one order on all
   processes, and so are the transposes, as requests are waited for in that order (`je_in_order`). */

extern int MPI_Ibcast(void *buf, int count, handle type, int root, handle comm, handle *request);
extern int MPI_Ireduce(const void *out, void *in, int count, handle type, handle op, int root, handle comm,
                       handle *request);
extern int MPI_Iallreduce(const void *out, void *in, int count, handle type, handle op, handle comm, handle *request);
extern int MPI_Ireduce_scatter_block(const void *out, void *in, int count, handle type, handle op, handle comm,
                                     handle *request);
extern int MPI_Igather(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                       int root, handle comm, handle *request);
extern int MPI_Iscatter(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                        int root, handle comm, handle *request);
extern int MPI_Iallgather(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                          handle comm, handle *request);
extern int MPI_Ialltoall(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                         handle comm, handle *request);
extern int MPI_Ireduce_scatter(const void *out, void *in, const int *counts, handle type, handle op, handle comm,
                               handle *request);
extern int MPI_Igatherv(const void *out, int out_count, handle out_type, void *in, const int *counts, const int *starts,
                        handle in_type, int root, handle comm, handle *request);
extern int MPI_Iscatterv(const void *out, const int *counts, const int *starts, handle out_type, void *in, int in_count,
                         handle in_type, int root, handle comm, handle *request);
extern int MPI_Iallgatherv(const void *out, int out_count, handle out_type, void *in, const int *counts,
                           const int *starts, handle in_type, handle comm, handle *request);
extern int MPI_Ialltoallv(const void *out, const int *out_counts, const int *out_starts, handle out_type, void *in,
                          const int *counts, const int *starts, handle in_type, handle comm, handle *request);

/* What a call gives comes in pairs, each the other's transpose; a request of a message has none. */
enum je_linear {
  JE_MESSAGE,
  JE_ALLREDUCE = 2,
  JE_BCAST = 4,
  JE_REDUCE,
  JE_GATHER,
  JE_SCATTER,
  JE_ALLGATHER,
  JE_REDUCE_SCATTER,
  JE_GATHERV,
  JE_SCATTERV,
  JE_ALLGATHERV,
  JE_REDUCE_SCATTERV,
  JE_ALLTOALL,
  JE_ALLTOALLV,
};

static int je_transpose(int kind) { return kind == JE_ALLREDUCE || kind >= JE_ALLTOALL ? kind : kind ^ 1; }

/* How many numbers go in on this process, where all have as many; as many come out as go into the transpose. */
static long je_goes_in(int kind, int count, int root, handle comm) {
  switch (kind) {
  case JE_BCAST:
    return je_root_only(count, root, comm);
  case JE_SCATTER:
    return je_root_only((long)count * je_size(comm), root, comm);
  case JE_REDUCE_SCATTER:
  case JE_ALLTOALL:
    return (long)count * je_size(comm);
  default:
    return count;
  }
}

static struct je_side je_together(long total) { return (struct je_side){total, 0, 0, 0, 0}; }

/* Blocks, whose numbers and places are kept; side by side where there are no `starts`. */
static struct je_side je_apart(const int *counts, const int *starts, int many) {
  int *kept = malloc(3 * many * sizeof(int) + 1);
  struct je_side side = {0, many, kept, kept + many, kept + 2 * many};
  for (int i = 0; i < many; i++) {
    side.counts[i] = counts[i], side.packed[i] = side.total;
    side.starts[i] = starts ? starts[i] : side.packed[i];
    side.total += counts[i];
  }
  return side;
}

/* Begins such a call, of the numbers of a part. What goes into a broadcast lies where it comes out. */
static void je_begin_linear(const struct je_request *r, struct je_part *p, int kind, const struct je_side *in,
                            const struct je_side *out) {
  const void *from = p->from;
  void *to = p->moved;
  int n = r->count, root = r->peer, code = 0;
  handle number = r->number, comm = r->comm, *request = &p->request;
  switch (kind) {
  case JE_BCAST:
    if (je_rank(comm) == root) je_move(r, to, from, n, 0);
    code = MPI_Ibcast(to, n, number, root, comm, request);
    break;
  case JE_REDUCE:
    code = MPI_Ireduce(from, to, n, number, JE_SUM, root, comm, request);
    break;
  case JE_ALLREDUCE:
    code = MPI_Iallreduce(from, to, n, number, JE_SUM, comm, request);
    break;
  case JE_GATHER:
    code = MPI_Igather(from, n, number, to, n, number, root, comm, request);
    break;
  case JE_SCATTER:
    code = MPI_Iscatter(from, n, number, to, n, number, root, comm, request);
    break;
  case JE_ALLGATHER:
    code = MPI_Iallgather(from, n, number, to, n, number, comm, request);
    break;
  case JE_REDUCE_SCATTER:
    code = MPI_Ireduce_scatter_block(from, to, n, number, JE_SUM, comm, request);
    break;
  case JE_GATHERV:
    code = MPI_Igatherv(from, in->total, number, to, out->counts, out->packed, number, root, comm, request);
    break;
  case JE_SCATTERV:
    code = MPI_Iscatterv(from, in->counts, in->packed, number, to, out->total, number, root, comm, request);
    break;
  case JE_ALLGATHERV:
    code = MPI_Iallgatherv(from, in->total, number, to, out->counts, out->packed, number, comm, request);
    break;
  case JE_REDUCE_SCATTERV:
    code = MPI_Ireduce_scatter(from, to, in->counts, number, JE_SUM, comm, request);
    break;
  case JE_ALLTOALLV:
    code = MPI_Ialltoallv(from, in->counts, in->packed, number, to, out->counts, out->packed, number, comm, request);
    break;
  default:
    code = MPI_Ialltoall(from, n, number, to, n, number, comm, request);
  }
  je_check(code, comm);
}

static void je_begin_of(const struct je_request *r, struct je_part *p, int kind, const struct je_side *in,
                        const struct je_side *out, const void *shadow) {
  p->from = calloc(je_bytes(r, in->total) + 1, 1);
  p->moved = calloc(je_bytes(r, out->total) + 1, 1);
  if (shadow && !in->many) je_move(r, p->from, shadow, in->total, 0);
  for (int i = 0; shadow && i < in->many; i++)
    je_move(r, (char *)p->from + je_bytes(r, in->packed[i]), (const char *)shadow + je_bytes(r, in->starts[i]),
            in->counts[i], 0);
  je_begin_linear(r, p, kind, in, out);
}

/* Adds what has come out, or puts it in place. */
static void je_end_of(const struct je_request *r, struct je_part *p, const struct je_side *out, void *shadow,
                      int adds) {
  struct je_mpi_status own;
  je_check(MPI_Wait(&p->request, &own), r->comm);
  if (!out->many) je_move(r, shadow, p->moved, out->total, adds);
  for (int i = 0; shadow && i < out->many; i++)
    je_move(r, (char *)shadow + je_bytes(r, out->starts[i]), (char *)p->moved + je_bytes(r, out->packed[i]),
            out->counts[i], adds);
}

static void je_begin_transpose(const struct je_request *r, struct je_part *p) {
  je_begin_of(r, p, je_transpose(r->kind), &r->out, &r->in, p->sin);
  if (!r->out.many) je_nothing(r, p->sin, r->out.total);
  for (int i = 0; p->sin && i < r->out.many; i++)
    je_nothing(r, (char *)p->sin + je_bytes(r, r->out.starts[i]), r->out.counts[i]);
}
