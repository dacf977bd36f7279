/* All that begins something, by what it does: SENDS, RECEIVES, SPREADS, OF_ALL and OF_ALL_IN_PLACE make functions of
   it. SIDES: what goes in, and what comes out, on this process. In place `own` is where what goes in lies, from where
   all comes out. */

#define MESSAGE_OUT const REAL *buf, int count, handle type, int peer, int tag
#define MESSAGE_IN REAL *buf, int count, handle type, int peer, int tag
#define MESSAGE buf, count, type, peer, tag
SENDS(isend, MPI_Isend)
SENDS(issend, MPI_Issend)
SENDS(irsend, MPI_Irsend)
RECEIVES(irecv, MPI_Irecv)

#define EQUAL(kind, count, root)                                                                                       \
  je_together(je_goes_in(kind, count, root, comm)), je_together(je_goes_in(je_transpose(kind), count, root, comm))
SPREADS(ibcast, MPI_Ibcast)
#define SUMMED const REAL *out, REAL *in, int count, handle type, handle op
#define SUMS out, in, count, type, op
#define MOVED const REAL *out, int out_count, handle out_type, REAL *in, int in_count, handle in_type
#define MOVES out, out_count, out_type, in, in_count, in_type
OF_ALL(iallreduce, JE_ALLREDUCE, MPI_Iallreduce, GIVEN(SUMMED), GIVEN(SUMS), EQUAL(JE_ALLREDUCE, count, 0), count, 0)
OF_ALL_IN_PLACE(iallreduce, JE_ALLREDUCE, MPI_Iallreduce, GIVEN(SUMMED), GIVEN(SUMS), EQUAL(JE_ALLREDUCE, count, 0),
                count, 0, 0)
OF_ALL(ireduce, JE_REDUCE, MPI_Ireduce, GIVEN(SUMMED, int root), GIVEN(SUMS, root), EQUAL(JE_REDUCE, count, root),
       count, root)
OF_ALL_IN_PLACE(ireduce, JE_REDUCE, MPI_Ireduce, GIVEN(SUMMED, int root), GIVEN(SUMS, root),
                EQUAL(JE_REDUCE, count, root), count, root, 0)
OF_ALL(ireduce_scatter_block, JE_REDUCE_SCATTER, MPI_Ireduce_scatter_block, GIVEN(SUMMED), GIVEN(SUMS),
       EQUAL(JE_REDUCE_SCATTER, count, 0), count, 0)
OF_ALL(igather, JE_GATHER, MPI_Igather, GIVEN(MOVED, int root), GIVEN(MOVES, root), EQUAL(JE_GATHER, out_count, root),
       out_count, root)
OF_ALL(iscatter, JE_SCATTER, MPI_Iscatter, GIVEN(MOVED, int root), GIVEN(MOVES, root),
       EQUAL(JE_SCATTER, in_count, root), in_count, root)
OF_ALL(iallgather, JE_ALLGATHER, MPI_Iallgather, GIVEN(MOVED), GIVEN(MOVES), EQUAL(JE_ALLGATHER, in_count, 0), in_count,
       0)
OF_ALL_IN_PLACE(iallgather, JE_ALLGATHER, MPI_Iallgather, GIVEN(MOVED), GIVEN(MOVES), EQUAL(JE_ALLGATHER, in_count, 0),
                in_count, 0, (long)je_rank(comm) * in_count)
OF_ALL(ialltoall, JE_ALLTOALL, MPI_Ialltoall, GIVEN(MOVED), GIVEN(MOVES), EQUAL(JE_ALLTOALL, in_count, 0), in_count, 0)

/* Blocks of several lengths. Those of gathered and scattered ones count at the root. */

#define IN_BLOCKS REAL *in, const int *counts, const int *starts, handle in_type
#define OUT_BLOCKS const REAL *out, const int *out_counts, const int *out_starts, handle out_type
#define OUT const REAL *out, int out_count, handle out_type
#define GATHERS out, out_count, out_type, in, counts, starts, in_type
#define BLOCKS(counts, starts) je_apart(counts, starts, je_size(comm))
#define ROOT_BLOCKS(counts, starts) je_apart(counts, starts, je_root_only(je_size(comm), root, comm))
OF_ALL(igatherv, JE_GATHERV, MPI_Igatherv, GIVEN(OUT, IN_BLOCKS, int root), GIVEN(GATHERS, root),
       GIVEN(je_together(out_count), ROOT_BLOCKS(counts, starts)), 0, root)
OF_ALL(iscatterv, JE_SCATTERV, MPI_Iscatterv, GIVEN(OUT_BLOCKS, REAL *in, int in_count, handle in_type, int root),
       GIVEN(out, out_counts, out_starts, out_type, in, in_count, in_type, root),
       GIVEN(ROOT_BLOCKS(out_counts, out_starts), je_together(in_count)), 0, root)
OF_ALL(iallgatherv, JE_ALLGATHERV, MPI_Iallgatherv, GIVEN(OUT, IN_BLOCKS), GIVEN(GATHERS),
       GIVEN(je_together(out_count), BLOCKS(counts, starts)), 0, 0)
OF_ALL_IN_PLACE(iallgatherv, JE_ALLGATHERV, MPI_Iallgatherv, GIVEN(OUT, IN_BLOCKS), GIVEN(GATHERS),
                GIVEN(je_together(counts[je_rank(comm)]), BLOCKS(counts, starts)), 0, 0, starts[je_rank(comm)])
OF_ALL(ialltoallv, JE_ALLTOALLV, MPI_Ialltoallv, GIVEN(OUT_BLOCKS, IN_BLOCKS),
       GIVEN(out, out_counts, out_starts, out_type, in, counts, starts, in_type),
       GIVEN(BLOCKS(out_counts, out_starts), BLOCKS(counts, starts)), 0, 0)
OF_ALL(ireduce_scatter, JE_REDUCE_SCATTERV, MPI_Ireduce_scatter,
       GIVEN(const REAL *out, REAL *in, const int *counts, handle type, handle op), GIVEN(out, in, counts, type, op),
       GIVEN(BLOCKS(counts, 0), je_together(counts[je_rank(comm)])), 0, 0)
