/* Calls of all processes that are begun: see `linear.h`. */

static void je_all_begun(struct je_request *r, int kind, handle request, int count, int root, handle comm, REAL *sout,
                         REAL *sin) {
  je_under_way(r, request, JE_COLLECTIVE, count, root, 0, comm, sin);
  r->kind = kind, r->shadow_of_sent = sout;
}

static void je_all_begun_jvp(int kind, handle request, int count, int root, handle comm, const REAL *sout, REAL *sin) {
  struct je_request *r = malloc(sizeof *r);
  je_all_begun(r, kind, request, count, root, comm, 0, sin);
  je_begin_of(r, kind, sout);
}

static void *je_all_begun_forward(int kind, handle request, int count, int root, handle comm, REAL *sout, REAL *sin,
                                  void *arena) {
  struct je_request *r = je_arena_allocate(arena, sizeof *r);
  je_all_begun(r, kind, request, count, root, comm, sout, sin);
  return r;
}

#define ALL_BEGIN(name, kind, function, PARAMETERS, ARGUMENTS, count, root)                                            \
  void RULE(name, _jvp)(PARAMETERS, handle comm, handle *request, const REAL *sout, REAL *sin) {                       \
    je_not_in_place(out, in, comm);                                                                                    \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    je_all_begun_jvp(kind, *request, count, root, comm, sout, sin);                                                    \
  }                                                                                                                    \
  void *RULE(name, _forward)(PARAMETERS, handle comm, handle *request, REAL *sout, REAL *sin, long stable,             \
                             void *arena) {                                                                            \
    (void)stable;                                                                                                      \
    je_not_in_place(out, in, comm);                                                                                    \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    return je_all_begun_forward(kind, *request, count, root, comm, sout, sin, arena);                                  \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_end_back(frame); }

#define ALL_BEGIN_IN_PLACE(name, kind, function, PARAMETERS, ARGUMENTS, count, root, own)                              \
  void RULE(name##_in_place, _jvp)(PARAMETERS, handle comm, handle *request, REAL *sin) {                              \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    je_all_begun_jvp(kind, *request, count, root, comm, own, sin);                                                     \
  }                                                                                                                    \
  void *RULE(name##_in_place, _forward)(PARAMETERS, handle comm, handle *request, REAL *sin, long stable,              \
                                        void *arena) {                                                                 \
    (void)stable;                                                                                                      \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    return je_all_begun_forward(kind, *request, count, root, comm, own, sin, arena);                                   \
  }                                                                                                                    \
  void RULE(name##_in_place, _reverse)(void *frame) { je_end_back(frame); }

#define SUMMED const REAL *out, REAL *in, int count, handle type, handle op
#define MOVED const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type
#define MOVES out, out_count, out_type, in, in_count, in_type
ALL_BEGIN(iallreduce, JE_ALLREDUCE, MPI_Iallreduce, GIVEN(SUMMED), GIVEN(out, in, count, type, op), count, 0)
ALL_BEGIN_IN_PLACE(iallreduce, JE_ALLREDUCE, MPI_Iallreduce, GIVEN(SUMMED), GIVEN(out, in, count, type, op), count, 0,
                   sin)
ALL_BEGIN(ireduce, JE_REDUCE, MPI_Ireduce, GIVEN(SUMMED, int root), GIVEN(out, in, count, type, op, root), count, root)
ALL_BEGIN_IN_PLACE(ireduce, JE_REDUCE, MPI_Ireduce, GIVEN(SUMMED, int root), GIVEN(out, in, count, type, op, root),
                   count, root, sin)
ALL_BEGIN(ireduce_scatter_block, JE_REDUCE_SCATTER, MPI_Ireduce_scatter_block, GIVEN(SUMMED),
          GIVEN(out, in, count, type, op), count, 0)
ALL_BEGIN(igather, JE_GATHER, MPI_Igather, GIVEN(MOVED, int root), GIVEN(MOVES, root), out_count, root)
ALL_BEGIN(iscatter, JE_SCATTER, MPI_Iscatter, GIVEN(MOVED, int root), GIVEN(MOVES, root), in_count, root)
ALL_BEGIN(iallgather, JE_ALLGATHER, MPI_Iallgather, GIVEN(MOVED), GIVEN(MOVES), in_count, 0)
ALL_BEGIN_IN_PLACE(iallgather, JE_ALLGATHER, MPI_Iallgather, GIVEN(MOVED), GIVEN(MOVES), in_count, 0,
                   je_own(sin, in_count, comm))
ALL_BEGIN(ialltoall, JE_ALLTOALL, MPI_Ialltoall, GIVEN(MOVED), GIVEN(MOVES), in_count, 0)

void RULE(ibcast, _jvp)(REAL *buf, int count, handle type, int root, handle comm, handle *request, REAL *sbuf) {
  je_check(MPI_Ibcast(buf, count, type, root, comm, request), comm);
  je_all_begun_jvp(JE_BCAST, *request, count, root, comm, sbuf, sbuf);
}

void *RULE(ibcast, _forward)(REAL *buf, int count, handle type, int root, handle comm, handle *request, REAL *sbuf,
                             long stable, void *arena) {
  (void)stable;
  je_check(MPI_Ibcast(buf, count, type, root, comm, request), comm);
  return je_all_begun_forward(JE_BCAST, *request, count, root, comm, sbuf, sbuf, arena);
}

void RULE(ibcast, _reverse)(void *frame) { je_end_back(frame); }
