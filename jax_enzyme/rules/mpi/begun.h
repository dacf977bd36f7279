/* Calls of all processes that are begun: see `linear.h`. */

static void je_all_begun(struct je_request *r, int kind, handle request, struct je_side in, struct je_side out,
                         int count, int root, handle comm, REAL *sout, REAL *sin) {
  je_under_way(r, request, JE_COLLECTIVE, count, root, 0, comm, sin);
  r->kind = kind, r->shadow_of_sent = sout, r->in = in, r->out = out;
}

static void je_all_begun_jvp(int kind, handle request, struct je_side in, struct je_side out, int count, int root,
                             handle comm, const REAL *sout, REAL *sin) {
  struct je_request *r = malloc(sizeof *r);
  je_all_begun(r, kind, request, in, out, count, root, comm, 0, sin);
  je_begin_of(r, kind, &r->in, &r->out, sout);
}

static void *je_all_begun_forward(int kind, handle request, struct je_side in, struct je_side out, int count, int root,
                                  handle comm, REAL *sout, REAL *sin, void *arena) {
  struct je_request *r = je_arena_allocate(arena, sizeof *r);
  je_all_begun(r, kind, request, in, out, count, root, comm, sout, sin);
  return r;
}

/* SIDES: what goes in, and what comes out, on this process. In place `own` is where the tangent of what goes in lies.
 */
#define ALL_BEGIN_AS(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root, SHADOWS, own, check)             \
  void RULE(name, _jvp)(PARAMETERS, handle comm, handle * request, SHADOWS) {                                          \
    void *arena = 0;                                                                                                   \
    (void)arena;                                                                                                       \
    check;                                                                                                             \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    je_all_begun_jvp(kind, *request, SIDES, count, root, comm, own, sin);                                              \
  }                                                                                                                    \
  void *RULE(name, _forward)(PARAMETERS, handle comm, handle * request, SHADOWS, long stable, void *arena) {           \
    (void)stable;                                                                                                      \
    check;                                                                                                             \
    je_check(function(ARGUMENTS, comm, request), comm);                                                                \
    return je_all_begun_forward(kind, *request, SIDES, count, root, comm, own, sin, arena);                            \
  }                                                                                                                    \
  void RULE(name, _reverse)(void *frame) { je_end_back(frame); }

#define ALL_BEGIN(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root)                                     \
  ALL_BEGIN_AS(name, kind, function, GIVEN(PARAMETERS), GIVEN(ARGUMENTS), GIVEN(SIDES), count, root,                   \
               GIVEN(REAL *sout, REAL *sin), sout, je_not_in_place(out, in, comm))
#define ALL_BEGIN_IN_PLACE(name, kind, function, PARAMETERS, ARGUMENTS, SIDES, count, root, own)                       \
  ALL_BEGIN_AS(name##_in_place, kind, function, GIVEN(PARAMETERS), GIVEN(ARGUMENTS), GIVEN(SIDES), count, root,        \
               REAL *sin, own, (void)0)
#define EQUAL(kind, count, root)                                                                                       \
  je_together(je_goes_in(kind, count, root, comm)), je_together(je_goes_in(je_transpose(kind), count, root, comm))

#define SUMMED const REAL *out, REAL *in, int count, handle type, handle op
#define MOVED const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type
#define MOVES out, out_count, out_type, in, in_count, in_type
ALL_BEGIN(iallreduce, JE_ALLREDUCE, MPI_Iallreduce, GIVEN(SUMMED), GIVEN(out, in, count, type, op),
          EQUAL(JE_ALLREDUCE, count, 0), count, 0)
ALL_BEGIN_IN_PLACE(iallreduce, JE_ALLREDUCE, MPI_Iallreduce, GIVEN(SUMMED), GIVEN(out, in, count, type, op),
                   EQUAL(JE_ALLREDUCE, count, 0), count, 0, sin)
ALL_BEGIN(ireduce, JE_REDUCE, MPI_Ireduce, GIVEN(SUMMED, int root), GIVEN(out, in, count, type, op, root),
          EQUAL(JE_REDUCE, count, root), count, root)
ALL_BEGIN_IN_PLACE(ireduce, JE_REDUCE, MPI_Ireduce, GIVEN(SUMMED, int root), GIVEN(out, in, count, type, op, root),
                   EQUAL(JE_REDUCE, count, root), count, root, sin)
ALL_BEGIN(ireduce_scatter_block, JE_REDUCE_SCATTER, MPI_Ireduce_scatter_block, GIVEN(SUMMED),
          GIVEN(out, in, count, type, op), EQUAL(JE_REDUCE_SCATTER, count, 0), count, 0)
ALL_BEGIN(igather, JE_GATHER, MPI_Igather, GIVEN(MOVED, int root), GIVEN(MOVES, root),
          EQUAL(JE_GATHER, out_count, root), out_count, root)
ALL_BEGIN(iscatter, JE_SCATTER, MPI_Iscatter, GIVEN(MOVED, int root), GIVEN(MOVES, root),
          EQUAL(JE_SCATTER, in_count, root), in_count, root)
ALL_BEGIN(iallgather, JE_ALLGATHER, MPI_Iallgather, GIVEN(MOVED), GIVEN(MOVES), EQUAL(JE_ALLGATHER, in_count, 0),
          in_count, 0)
ALL_BEGIN_IN_PLACE(iallgather, JE_ALLGATHER, MPI_Iallgather, GIVEN(MOVED), GIVEN(MOVES),
                   EQUAL(JE_ALLGATHER, in_count, 0), in_count, 0, je_own(sin, in_count, comm))
ALL_BEGIN(ialltoall, JE_ALLTOALL, MPI_Ialltoall, GIVEN(MOVED), GIVEN(MOVES), EQUAL(JE_ALLTOALL, in_count, 0), in_count,
          0)

/* Blocks of several lengths. Those of gathered and scattered ones count at the root. */

#define IN_BLOCKS REAL *in, const int *counts, const int *starts, handle in_type
#define OUT_BLOCKS const REAL *out, const int *out_counts, const int *out_starts, handle out_type
#define BLOCKS(counts, starts) je_apart(arena, counts, starts, je_size(comm))
#define ROOT_BLOCKS(counts, starts) je_apart(arena, counts, starts, je_root_only(je_size(comm), root, comm))
ALL_BEGIN(igatherv, JE_GATHERV, MPI_Igatherv,
          GIVEN(const REAL *out, int out_count, handle out_type, IN_BLOCKS, int root),
          GIVEN(out, out_count, out_type, in, counts, starts, in_type, root),
          GIVEN(je_together(out_count), ROOT_BLOCKS(counts, starts)), 0, root)
ALL_BEGIN(iscatterv, JE_SCATTERV, MPI_Iscatterv, GIVEN(OUT_BLOCKS, REAL *in, int in_count, handle in_type, int root),
          GIVEN(out, out_counts, out_starts, out_type, in, in_count, in_type, root),
          GIVEN(ROOT_BLOCKS(out_counts, out_starts), je_together(in_count)), 0, root)
ALL_BEGIN(iallgatherv, JE_ALLGATHERV, MPI_Iallgatherv,
          GIVEN(const REAL *out, int out_count, handle out_type, IN_BLOCKS),
          GIVEN(out, out_count, out_type, in, counts, starts, in_type),
          GIVEN(je_together(out_count), BLOCKS(counts, starts)), 0, 0)
ALL_BEGIN_IN_PLACE(iallgatherv, JE_ALLGATHERV, MPI_Iallgatherv,
                   GIVEN(const REAL *out, int out_count, handle out_type, IN_BLOCKS),
                   GIVEN(out, out_count, out_type, in, counts, starts, in_type),
                   GIVEN(je_together(counts[je_rank(comm)]), BLOCKS(counts, starts)), 0, 0,
                   je_own_block(sin, starts, comm))
ALL_BEGIN(ialltoallv, JE_ALLTOALLV, MPI_Ialltoallv, GIVEN(OUT_BLOCKS, IN_BLOCKS),
          GIVEN(out, out_counts, out_starts, out_type, in, counts, starts, in_type),
          GIVEN(BLOCKS(out_counts, out_starts), BLOCKS(counts, starts)), 0, 0)
ALL_BEGIN(ireduce_scatter, JE_REDUCE_SCATTERV, MPI_Ireduce_scatter,
          GIVEN(const REAL *out, REAL *in, const int *counts, handle type, handle op), GIVEN(out, in, counts, type, op),
          GIVEN(BLOCKS(counts, 0), je_together(counts[je_rank(comm)])), 0, 0)

void RULE(ibcast, _jvp)(REAL *buf, int count, handle type, int root, handle comm, handle *request, REAL *sbuf) {
  je_check(MPI_Ibcast(buf, count, type, root, comm, request), comm);
  je_all_begun_jvp(JE_BCAST, *request, EQUAL(JE_BCAST, count, root), count, root, comm, sbuf, sbuf);
}

void *RULE(ibcast, _forward)(REAL *buf, int count, handle type, int root, handle comm, handle *request, REAL *sbuf,
                             long stable, void *arena) {
  (void)stable;
  je_check(MPI_Ibcast(buf, count, type, root, comm, request), comm);
  return je_all_begun_forward(JE_BCAST, *request, EQUAL(JE_BCAST, count, root), count, root, comm, sbuf, sbuf, arena);
}

void RULE(ibcast, _reverse)(void *frame) { je_end_back(frame); }
