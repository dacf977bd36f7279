/* What is begun, and the tangents and cotangents of it. */

/* `own`: where in place the numbers that go in lie, from where those lie that come out. */
static void je_all_under_way(int kind, handle request, struct je_side in, struct je_side out, int count, int root,
                             handle comm, long own) {
  struct je_request *r = je_under_way(request, JE_COLLECTIVE, count, root, 0, comm);
  r->count = count, r->kind = kind, r->in = in, r->out = out, r->own = own;
}

#define SENDS(name, function)                                                                                          \
  extern int function(const void *buf, int count, handle type, int to, int tag, handle comm, handle *request);         \
  void RULE(name, _start)(MESSAGE_OUT, handle comm, handle * request) {                                                \
    je_check(function(MESSAGE, comm, request), comm);                                                                  \
    je_under_way(*request, 0, count, peer, tag, comm);                                                                 \
  }
#define RECEIVES(name, function)                                                                                       \
  void RULE(name, _start)(MESSAGE_IN, handle comm, handle * request) {                                                 \
    je_no_wildcards(peer, tag, comm);                                                                                  \
    je_check(function(MESSAGE, comm, request), comm);                                                                  \
    je_under_way(*request, 1, count, peer, tag, comm);                                                                 \
  }
#define SPREADS(name, function)                                                                                        \
  void RULE(name, _start)(REAL * buf, int count, handle type, int root, handle comm, handle *request) {                \
    je_check(function(buf, count, type, root, comm, request), comm);                                                   \
    je_all_under_way(JE_BCAST, *request, EQUAL(JE_BCAST, count, root), count, root, comm, JE_APART);                   \
  }
#define OF_ALL(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root)                                        \
  void RULE(name, _start)(PARAMETERS, handle comm, handle * request) {                                                 \
    je_not_in_place(out, in, comm);                                                                                    \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    je_all_under_way(kind, *request, SIDES, count, root, comm, JE_APART);                                              \
  }
#define OF_ALL_IN_PLACE(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root, own)                          \
  void RULE(name##_in_place, _start)(PARAMETERS, handle comm, handle * request) {                                      \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    je_all_under_way(kind, *request, SIDES, count, root, comm, own);                                                   \
  }
#include "beginnings.h"

/* The shadow of what goes in. */
static void *je_source(const struct je_request *r, const struct je_part *p) {
  if (r->own == JE_APART) return p->sout;
  return p->sin ? (char *)p->sin + je_bytes(r, r->own) : 0;
}

void RULE(begun, _beside)(const REAL *sout, REAL *sin) {
  struct je_request *r = je_requests;
  struct je_part *p = je_with(&r->tangents, sout, sin);
  if (r->kind) {
    je_begin_of(r, p, r->kind, &r->in, &r->out, je_source(r, p));
    return;
  }
  p->moved = calloc(je_bytes(r, r->count) + 1, 1);
  if (r->incoming) {
    if (r->peer == JE_ANY_SOURCE || r->tag == JE_ANY_TAG)
      je_stop(r->comm, "jax_enzyme: MPI_Irecv in forward mode, and in second derivatives, names its source and tag");
    je_check(MPI_Irecv(p->moved, r->count, r->number, r->peer, r->tag, r->comm, &p->request), r->comm);
  } else {
    if (sout) je_move(r, p->moved, sout, r->count, 0);
    je_check(MPI_Isend(p->moved, r->count, r->number, r->peer, r->tag, r->comm, &p->request), r->comm);
  }
}

void RULE(begun, _back)(REAL *sout, REAL *sin) { je_with(&je_requests->cotangents, sout, sin); }

int RULE(begun, _number)(void) { return je_requests->number_of; }

/* The message back of one that has been waited for. */
static void je_begin_back(struct je_request *r) {
  r->begun = 1;
  int tag = r->kind || r->peer == JE_PROC_NULL ? 0 : je_back(r->tag, r->comm);
  for (struct je_part *p = r->cotangents; p; p = p->next) {
    if (r->kind) {
      je_begin_transpose(r, p);
      continue;
    }
    p->moved = calloc(je_bytes(r, r->count) + 1, 1);
    if (r->incoming) {
      if (p->sin) je_move(r, p->moved, p->sin, r->count, 0);
      je_nothing(r, p->sin, r->count);
      je_check(MPI_Isend(p->moved, r->count, r->number, r->peer, tag, r->comm, &p->request), r->comm);
    } else {
      je_check(MPI_Irecv(p->moved, r->count, r->number, r->peer, tag, r->comm, &p->request), r->comm);
    }
  }
}

void RULE(begun, _end)(int number, REAL *sout, REAL *sin) {
  struct je_request *r = je_numbered(&je_kept, number);
  (void)sout, (void)sin; /* those of the cotangents: it is they that are read and changed */
  if (!r) r = je_numbered(&je_requests, number);
  if (!r->begun) je_begin_back(r);
  for (struct je_part *p = r->cotangents; p; p = p->next) {
    if (r->kind) {
      je_end_of(r, p, &r->in, je_source(r, p), 1);
    } else if (r->incoming) {
      struct je_mpi_status own;
      je_check(MPI_Wait(&p->request, &own), r->comm);
    } else {
      je_wait_for_cotangents(&p->request, r->peer, r->tag, r->comm);
      je_move(r, p->sout, p->moved, r->count, 1);
    }
  }
  je_forget(r);
}
