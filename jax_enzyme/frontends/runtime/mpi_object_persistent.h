#pragma once
// Persistent requests. What a kernel does not make takes no part: the flag of its kind is never set then, and the code that
// begins it goes.

extern "C" {
int MPI_Ibarrier(HANDLE, HANDLE *);
int MPI_Ibcast(void *, int, HANDLE, int, HANDLE, HANDLE *);
int MPI_Ireduce(const void *, void *, int, HANDLE, HANDLE, int, HANDLE, HANDLE *);
int MPI_Iallreduce(const void *, void *, int, HANDLE, HANDLE, HANDLE, HANDLE *);
int MPI_Ireduce_scatter_block(const void *, void *, int, HANDLE, HANDLE, HANDLE, HANDLE *);
int MPI_Ireduce_scatter(const void *, void *, const int *, HANDLE, HANDLE, HANDLE, HANDLE *);
int MPI_Igather(const void *, int, HANDLE, void *, int, HANDLE, int, HANDLE, HANDLE *);
int MPI_Iscatter(const void *, int, HANDLE, void *, int, HANDLE, int, HANDLE, HANDLE *);
int MPI_Iallgather(const void *, int, HANDLE, void *, int, HANDLE, HANDLE, HANDLE *);
int MPI_Ialltoall(const void *, int, HANDLE, void *, int, HANDLE, HANDLE, HANDLE *);
int MPI_Igatherv(const void *, int, HANDLE, void *, const int *, const int *, HANDLE, int, HANDLE, HANDLE *);
int MPI_Iscatterv(const void *, const int *, const int *, HANDLE, void *, int, HANDLE, int, HANDLE, HANDLE *);
int MPI_Iallgatherv(const void *, int, HANDLE, void *, const int *, const int *, HANDLE, HANDLE, HANDLE *);
int MPI_Ialltoallv(const void *, const int *, const int *, HANDLE, void *, const int *, const int *, HANDLE, HANDLE,
                   HANDLE *);
}  // extern "C"

namespace {

int Made(const Persistent &made, HANDLE *request) {
  if (requests_made == kMost) Refuse("a kernel makes at most 256 persistent requests of MPI");
  persistent[requests_made] = made;
  *request = AS_HANDLE(2 * kMost + requests_made++);
  return 0;
}

enum Kind {
  kSends, kReceives, kBarrier, kBcast, kReduce, kAllreduce, kReduceScatterBlock, kReduceScatter, kGather, kScatter,
  kAllgather, kAlltoall, kGatherv, kScatterv, kAllgatherv, kAlltoallv, kKinds
};
bool is_made[kKinds];

}  // namespace

extern "C" {

// Who waits for a message to be received, or says that its receiver is ready, sends the same numbers.
#define MESSAGE(name, of)                                                                                    \
  int OWN(name)(void *buffer, int count, HANDLE type, int peer, int tag, HANDLE comm, HANDLE *request) {     \
    if (Type *known = Known(type)) known->messages++;                                                        \
    return Made({.kind = of, .type = type, .comm = comm, .begun = NOTHING, .buffer = buffer, .count = count, \
                 .peer = peer, .tag = tag}, request);                                                        \
  }
MESSAGE(Send_init, kSends)
MESSAGE(Ssend_init, kSends)
MESSAGE(Rsend_init, kSends)
MESSAGE(Recv_init, kReceives)

// A call of all processes: its parameters before the communicator, and what is kept of them.
#define OF_ALL(name, of, PARAMETERS, ...)                                                             \
  int OWN(name##_init)(PARAMETERS, HANDLE comm, HANDLE, HANDLE *request) {                            \
    is_made[of] = true;                                                                               \
    return Made({.kind = of, .type = DATATYPE, .comm = comm, .begun = NOTHING, __VA_ARGS__}, request); \
  }
#define GIVEN(...) __VA_ARGS__
#define SUMMED const void *out, void *in, int count, HANDLE, HANDLE
#define MOVED const void *out, int sent, HANDLE, void *in, int count, HANDLE
#define GATHERED const void *out, int sent, HANDLE, void *in, const int *counts, const int *starts, HANDLE
#define SPREAD const void *out, const int *sent, const int *from, HANDLE
#define KEPT .buffer = in, .count = count
int OWN(Barrier_init)(HANDLE comm, HANDLE, HANDLE *request) {
  is_made[kBarrier] = true;
  return Made({.kind = kBarrier, .type = DATATYPE, .comm = comm, .begun = NOTHING}, request);
}
OF_ALL(Bcast, kBcast, GIVEN(void *in, int count, HANDLE, int root), KEPT, .peer = root)
OF_ALL(Reduce, kReduce, GIVEN(SUMMED, int root), KEPT, .peer = root, .out = out)
OF_ALL(Allreduce, kAllreduce, GIVEN(SUMMED), KEPT, .out = out)
OF_ALL(Reduce_scatter_block, kReduceScatterBlock, GIVEN(SUMMED), KEPT, .out = out)
OF_ALL(Reduce_scatter, kReduceScatter, GIVEN(const void *out, void *in, const int *counts, HANDLE, HANDLE),
       .buffer = in, .out = out, .counts = counts)
OF_ALL(Gather, kGather, GIVEN(MOVED, int root), KEPT, .peer = root, .out = out, .out_count = sent)
OF_ALL(Scatter, kScatter, GIVEN(MOVED, int root), KEPT, .peer = root, .out = out, .out_count = sent)
OF_ALL(Allgather, kAllgather, GIVEN(MOVED), KEPT, .out = out, .out_count = sent)
OF_ALL(Alltoall, kAlltoall, GIVEN(MOVED), KEPT, .out = out, .out_count = sent)
OF_ALL(Gatherv, kGatherv, GIVEN(GATHERED, int root), .buffer = in, .peer = root, .out = out, .out_count = sent,
       .counts = counts, .starts = starts)
OF_ALL(Scatterv, kScatterv, GIVEN(SPREAD, void *in, int count, HANDLE, int root), KEPT, .peer = root, .out = out,
       .out_counts = sent, .out_starts = from)
OF_ALL(Allgatherv, kAllgatherv, GIVEN(GATHERED), .buffer = in, .out = out, .out_count = sent, .counts = counts,
       .starts = starts)
OF_ALL(Alltoallv, kAlltoallv, GIVEN(SPREAD, void *in, const int *counts, const int *starts, HANDLE), .buffer = in,
       .out = out, .counts = counts, .starts = starts, .out_counts = sent, .out_starts = from)

// Rules are told MPI_IN_PLACE in the call.
#define UNLESS_IN_PLACE(function, ...)                         \
  if (r.out == IN_PLACE) {                                     \
    [[clang::nomerge]] return function(IN_PLACE, __VA_ARGS__); \
  }                                                            \
  [[clang::nomerge]] return function(r.out, __VA_ARGS__);
#define WHERE_MADE(kind, begin) \
  case kind:                    \
    if (is_made[kind]) {        \
      begin;                    \
    }                           \
    return 0;

int OWN(Start)(HANDLE *request) {
  Persistent &r = persistent[AS_NUMBER(*request) - 2 * kMost];
  HANDLE *begun = &r.begun, comm = r.comm;
  switch (r.kind) {
    case kSends: return OWN(Isend)(r.buffer, r.count, r.type, r.peer, r.tag, comm, begun);
    case kReceives: return OWN(Irecv)(r.buffer, r.count, r.type, r.peer, r.tag, comm, begun);
    WHERE_MADE(kBarrier, return MPI_Ibarrier(comm, begun))
    WHERE_MADE(kBcast, return MPI_Ibcast(r.buffer, r.count, DATATYPE, r.peer, comm, begun))
    WHERE_MADE(kReduce, UNLESS_IN_PLACE(MPI_Ireduce, r.buffer, r.count, DATATYPE, AS_SUM, r.peer, comm, begun))
    WHERE_MADE(kAllreduce, UNLESS_IN_PLACE(MPI_Iallreduce, r.buffer, r.count, DATATYPE, AS_SUM, comm, begun))
    WHERE_MADE(kReduceScatterBlock,
               return MPI_Ireduce_scatter_block(r.out, r.buffer, r.count, DATATYPE, AS_SUM, comm, begun))
    WHERE_MADE(kReduceScatter, return MPI_Ireduce_scatter(r.out, r.buffer, r.counts, DATATYPE, AS_SUM, comm, begun))
    WHERE_MADE(kGather,
               return MPI_Igather(r.out, r.out_count, DATATYPE, r.buffer, r.count, DATATYPE, r.peer, comm, begun))
    WHERE_MADE(kScatter,
               return MPI_Iscatter(r.out, r.out_count, DATATYPE, r.buffer, r.count, DATATYPE, r.peer, comm, begun))
    WHERE_MADE(kAllgather,
               UNLESS_IN_PLACE(MPI_Iallgather, r.out_count, DATATYPE, r.buffer, r.count, DATATYPE, comm, begun))
    WHERE_MADE(kAlltoall, return MPI_Ialltoall(r.out, r.out_count, DATATYPE, r.buffer, r.count, DATATYPE, comm, begun))
    WHERE_MADE(kGatherv, return MPI_Igatherv(r.out, r.out_count, DATATYPE, r.buffer, r.counts, r.starts, DATATYPE,
                                             r.peer, comm, begun))
    WHERE_MADE(kScatterv, return MPI_Iscatterv(r.out, r.out_counts, r.out_starts, DATATYPE, r.buffer, r.count, DATATYPE,
                                               r.peer, comm, begun))
    WHERE_MADE(kAllgatherv, UNLESS_IN_PLACE(MPI_Iallgatherv, r.out_count, DATATYPE, r.buffer, r.counts, r.starts,
                                            DATATYPE, comm, begun))
    WHERE_MADE(kAlltoallv, return MPI_Ialltoallv(r.out, r.out_counts, r.out_starts, DATATYPE, r.buffer, r.counts,
                                                 r.starts, DATATYPE, comm, begun))
  }
  return 0;
}
int OWN(Startall)(int count, HANDLE *requests) {
  for (int i = 0; i < count; i++) OWN(Start)(requests + i);
  return 0;
}
int OWN(Request_free)(HANDLE *request) {
  const unsigned long number = AS_NUMBER(*request) - 2 * kMost;
  if (number >= kMost) Refuse("MPI_Request_free of a persistent request alone, where there are such");
  if (Type *type = Known(persistent[number].type))
    if (--type->messages == 0 && type->freed) free(type->at);
  *request = NOTHING;
  return 0;
}

}  // extern "C"
