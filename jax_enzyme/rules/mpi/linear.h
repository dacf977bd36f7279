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
  JE_ALLTOALL,
};

static int je_transpose(int kind) {
  return kind == JE_ALLREDUCE || kind == JE_ALLTOALL ? kind : kind ^ 1;
}

/* How many numbers go in on this process; as many come out as go into the transpose. */
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

/* Begins such a call, of the numbers of a record. What goes into a broadcast lies where it comes out. */
static void je_begin_linear(struct je_request *r, int kind) {
  const void *from = r->from;
  void *to = r->moved;
  int n = r->count, root = r->peer, code = 0;
  handle number = r->number, comm = r->comm, *request = &r->back;
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
  default:
    code = MPI_Ialltoall(from, n, number, to, n, number, comm, request);
  }
  je_check(code, comm);
}

static void je_begin_of(struct je_request *r, int kind, const void *shadow) {
  long in = je_goes_in(kind, r->count, r->peer, r->comm);
  long out = je_goes_in(je_transpose(kind), r->count, r->peer, r->comm);
  r->from = calloc(in * r->reals + 1, r->single ? sizeof(float) : sizeof(double));
  r->moved = calloc(out * r->reals + 1, r->single ? sizeof(float) : sizeof(double));
  if (shadow) je_move(r, r->from, shadow, in, 0);
  je_begin_linear(r, kind);
}

/* Adds what has come out, or puts it in place. */
static void je_end_of(struct je_request *r, int kind, void *shadow, int adds) {
  struct je_mpi_status own;
  je_check(MPI_Wait(&r->back, &own), r->comm);
  je_move(r, shadow, r->moved, je_goes_in(je_transpose(kind), r->count, r->peer, r->comm), adds);
  free(r->from);
  free(r->moved);
}

static void je_begin_transpose(struct je_request *r) {
  int kind = je_transpose(r->kind);
  je_begin_of(r, kind, r->shadow);
  je_nothing(r, r->shadow, je_goes_in(kind, r->count, r->peer, r->comm));
}
