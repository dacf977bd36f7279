/* Messages that are begun and waited for. What is begun leaves a record for as long as nobody has waited for it;
   requests say nothing but a handle. In reverse the wait begins the message back, and what began the message waits for
   that.

   Between two processes messages of one tag match in the order in which they are begun, and so do those back. So in
   reverse mode they are waited for in that order, or several at once. A record may be of either precision. */

/* What goes into a call of all processes, or comes out of it: `total` numbers side by side, or `many` blocks of
   `counts` numbers at `starts`, which travel packed, at `packed`. */
struct je_side {
  long total;
  int many, *counts, *starts, *packed;
};

struct je_request {
  struct je_request *next; /* begun before this */
  handle request, number, comm, back;
  int number_of, incoming, count, peer, tag, begun, single;
  int kind;                    /* of a call of all processes, which are begun and waited for as messages are; or 0 */
  long reals;                  /* of each number */
  void *shadow, *moved;        /* `moved`: the tangent or cotangent that is under way */
  void *shadow_of_sent, *from; /* of a call of all processes: `from` is what goes in, `moved` what comes out */
  struct je_side in, out;
};

#define JE_COLLECTIVE 2 /* of `incoming`, which is 0 or 1 of messages */

static struct je_request *je_requests;
static int je_requests_begun;

static long je_bytes(const struct je_request *r, long count) {
  return count * r->reals * (r->single ? sizeof(float) : sizeof(double));
}

static void je_move(const struct je_request *r, void *to, const void *from, long count, int adds) {
  if (!to) return;
  for (long i = 0; i < count * r->reals; i++)
    if (r->single)
      ((float *)to)[i] = (adds ? ((float *)to)[i] : 0) + ((const float *)from)[i];
    else
      ((double *)to)[i] = (adds ? ((double *)to)[i] : 0) + ((const double *)from)[i];
}

static void je_nothing(const struct je_request *r, void *to, long count) {
  if (!to) return;
  for (long i = 0; i < count * r->reals; i++)
    if (r->single)
      ((float *)to)[i] = 0;
    else
      ((double *)to)[i] = 0;
}

static void je_under_way(struct je_request *r, handle request, int incoming, int count, int peer, int tag, handle comm,
                         void *shadow) {
  r->request = request, r->incoming = incoming, r->count = peer == JE_PROC_NULL ? 0 : count;
  r->peer = peer, r->tag = tag, r->comm = comm, r->number = NUMBER, r->single = sizeof(REAL) == 4, r->reals = WIDTH;
  r->shadow = shadow, r->kind = 0, r->begun = 0, r->number_of = je_requests_begun++;
  r->next = je_requests;
  je_requests = r;
}

/* The record of a request, the oldest where several share a handle, which is then under way no longer; null for one of
   integers, or of nothing. */
static struct je_request *je_found(handle request) {
  struct je_request **oldest = 0;
  for (struct je_request **at = &je_requests; *at; at = &(*at)->next)
    if ((*at)->request == request) oldest = at;
  if (!oldest) return 0;
  struct je_request *found = *oldest;
  *oldest = found->next;
  return found;
}

static inline int je_same(int one, int other, int any) { return one == other || one == any || other == any; }

/* Stops where a message like this one, begun before it, is still under way. */
static void je_in_order(int number_of, int incoming, int peer, int tag, handle comm) {
  for (const struct je_request *r = je_requests; r; r = r->next)
    if (r->number_of < number_of && r->incoming == incoming && r->comm == comm && peer != JE_PROC_NULL &&
        (r->kind || je_same(r->peer, peer, JE_ANY_SOURCE)) && je_same(r->tag, tag, JE_ANY_TAG))
      je_stop(comm,
              "jax_enzyme: in reverse mode messages of one tag between two processes, and collective calls of one "
              "communicator, are waited for in the order in which they are begun, or by one MPI_Waitall");
}

/* Such a call of all processes that is not begun, but made. */
static inline void je_all_in_order(handle comm) { je_in_order(je_requests_begun, JE_COLLECTIVE, 0, 0, comm); }

static void je_in_order_of(const struct je_request *r) {
  je_in_order(r->number_of, r->incoming, r->kind ? 0 : r->peer, r->tag, r->comm);
}

#include "linear.h"

/* The message of a tangent has come, or gone. */
static void je_landed_jvp(struct je_request *r) {
  struct je_mpi_status moved;
  if (r->kind) {
    je_end_of(r, &r->out, r->shadow, 0);
    free(r->in.counts);
    free(r->out.counts);
    free(r);
    return;
  }
  je_check(MPI_Wait(&r->back, &moved), r->comm);
  if (r->incoming && r->count) {
    MPI_Get_count(&moved, r->number, &r->count);
    je_move(r, r->shadow, r->moved, r->count, 0);
  }
  free(r->moved);
  free(r);
}

/* The message back of one that has been waited for. */
static void je_begin_back(struct je_request *r) {
  r->begun = 1;
  if (r->kind) {
    je_begin_transpose(r);
    return;
  }
  r->moved = calloc(je_bytes(r, r->count) + 1, 1);
  int tag = r->peer == JE_PROC_NULL ? 0 : je_back(r->tag, r->comm);
  if (r->incoming) {
    if (r->shadow) je_move(r, r->moved, r->shadow, r->count, 0);
    je_nothing(r, r->shadow, r->count);
    je_check(MPI_Isend(r->moved, r->count, r->number, r->peer, tag, r->comm, &r->back), r->comm);
  } else {
    je_check(MPI_Irecv(r->moved, r->count, r->number, r->peer, tag, r->comm, &r->back), r->comm);
  }
}

/* Waits for the cotangents of what was sent. Who has received it sends them back, but nobody may have: it is said, once,
   that they have not come for as long as that. */
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

static void je_end_back(struct je_request *r) {
  struct je_mpi_status own;
  if (!r->begun) je_begin_back(r);
  if (r->kind) {
    je_end_of(r, &r->in, r->shadow_of_sent, 1);
    return;
  }
  if (r->incoming) {
    je_check(MPI_Wait(&r->back, &own), r->comm);
  } else {
    je_wait_for_cotangents(&r->back, r->peer, r->tag, r->comm);
    je_move(r, r->shadow, r->moved, r->count, 1);
  }
  free(r->moved);
}

/* Begun */

#define BEGINS(name, function)                                                                                         \
  extern int function(const void *buf, int count, handle type, int to, int tag, handle comm, handle *request);         \
  void RULE(name, _jvp)(const REAL *buf, int count, handle type, int to, int tag, handle comm, handle *request,        \
                        const REAL *sbuf) {                                                                            \
    struct je_request *r = malloc(sizeof *r);                                                                          \
    je_check(function(buf, count, type, to, tag, comm, request), comm);                                                \
    je_under_way(r, *request, 0, count, to, tag, comm, 0);                                                             \
    r->moved = je_copy(sbuf, count);                                                                                   \
    je_check(MPI_Isend(r->moved, count, NUMBER, to, tag, comm, &r->back), comm);                                       \
  }                                                                                                                    \
  void *RULE(name, _forward)(const REAL *buf, int count, handle type, int to, int tag, handle comm, handle *request,   \
                             REAL *sbuf, long stable, void *arena) {                                                   \
    struct je_request *r = je_arena_allocate(arena, sizeof *r);                                                        \
    (void)stable;                                                                                                      \
    je_check(function(buf, count, type, to, tag, comm, request), comm);                                                \
    je_under_way(r, *request, 0, count, to, tag, comm, sbuf);                                                          \
    return r;                                                                                                          \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_end_back(frame); }

void RULE(irecv, _jvp)(REAL *buf, int count, handle type, int from, int tag, handle comm, handle *request, REAL *sbuf) {
  struct je_request *r = malloc(sizeof *r);
  if (from == JE_ANY_SOURCE || tag == JE_ANY_TAG)
    je_stop(comm, "jax_enzyme: MPI_Irecv in forward mode names its source and tag");
  je_check(MPI_Irecv(buf, count, type, from, tag, comm, request), comm);
  je_under_way(r, *request, 1, count, from, tag, comm, sbuf);
  r->moved = je_zeros(count);
  je_check(MPI_Irecv(r->moved, count, NUMBER, from, tag, comm, &r->back), comm);
}

void *RULE(irecv, _forward)(REAL *buf, int count, handle type, int from, int tag, handle comm, handle *request,
                            REAL *sbuf, long stable, void *arena) {
  struct je_request *r = je_arena_allocate(arena, sizeof *r);
  (void)stable;
  je_no_wildcards(from, tag, comm);
  je_check(MPI_Irecv(buf, count, type, from, tag, comm, request), comm);
  je_under_way(r, *request, 1, count, from, tag, comm, sbuf);
  return r;
}

void RULE(irecv, _reverse)(void *frame) { je_end_back(frame); }

BEGINS(isend, MPI_Isend)
BEGINS(issend, MPI_Issend)
BEGINS(irsend, MPI_Irsend)
