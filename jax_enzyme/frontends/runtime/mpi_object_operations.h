#pragma once
// Reductions by operations of the program's own: all that goes in is gathered, and combined in the order of processes.
// Those by MPI's, which come to the same calls where a function is given its operation, are MPI's.

extern "C" {
void *calloc(size_t, size_t);
int MPI_Allreduce(const void *, void *, int, HANDLE, HANDLE, HANDLE);
int MPI_Reduce(const void *, void *, int, HANDLE, HANDLE, int, HANDLE);
int MPI_Scan(const void *, void *, int, HANDLE, HANDLE, HANDLE);
int MPI_Exscan(const void *, void *, int, HANDLE, HANDLE, HANDLE);
int MPI_Reduce_scatter_block(const void *, void *, int, HANDLE, HANDLE, HANDLE);
int MPI_Reduce_scatter(const void *, void *, const int *, HANDLE, HANDLE, HANDLE);
}

#define BY(known, call)                                                                  \
  if (operation == (HANDLE)(known)) {                                                    \
    const HANDLE named = (HANDLE)(known);                                                \
    if (Known(type)) Refuse("a reduction of a derived datatype by an operation of MPI"); \
    [[clang::nomerge]] return call;                                                      \
  }
#define UNLESS_OWN(call)                         \
  BY(AS_SUM, call)                               \
  BY(AS_MAX, call)                               \
  BY(AS_MIN, call)                               \
  BY(AS_PRODUCT, call)                           \
  if (AS_NUMBER(operation) - 3 * kMost >= kMost) \
    Refuse("a reduction of MPI in a derivative is a sum, a product, a maximum or a minimum, or the kernel's own");

namespace {

typedef void Combines(void *in, void *in_out, int *count, HANDLE *type);
Combines *operations[kMost];

Combines *Operation(HANDLE handle) { return operations[AS_NUMBER(handle) - 3 * kMost]; }

// What goes in on all processes, and what some of them make of it together.
struct Combined {
  char *all, *result;
  long each;
  const Type &type;

  Combined(const void *out, int count, HANDLE handle, HANDLE comm)
      : all(nullptr), result(nullptr), each(count * Extent(handle)), type(KnownOrPlain(handle)) {
    all = static_cast<char *>(calloc(All(comm) * each + Low(handle) + 1, 1));
    GatheredByAll(out, count, handle, all, count, nullptr, nullptr, handle, comm);
  }
  ~Combined() { free(all); }
  // Those of the first `size` processes.
  void Fold(int size, int count, HANDLE handle, HANDLE operation) {
    result = all + (size - 1) * each;
    for (int i = size - 2; i >= 0; i--) Operation(operation)(all + i * each, result, &count, &handle);
  }
  void Give(void *in, long first, long count) const {
    const char *from = result + first * type.extent;
    char *to = static_cast<char *>(in);
    for (long i = 0; i < count; i++)
      for (long e = 0; e < type.count; e++)
        SetPart(to + i * type.extent, type.at[e], PartOf(from + i * type.extent, type.at[e]));
  }
};

int Rank(HANDLE comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

}  // namespace

extern "C" {

int OWN(Op_create)(Combines *combines, int, HANDLE *operation) {
  int place = 0;
  while (place < kMost && operations[place]) place++;
  if (place == kMost) Refuse("a kernel has at most 256 operations of MPI of its own");
  operations[place] = combines;
  *operation = AS_HANDLE(3 * kMost + place);
  return 0;
}
int OWN(Op_free)(HANDLE *operation) {
  operations[AS_NUMBER(*operation) - 3 * kMost] = nullptr;
  *operation = NO_OPERATION;
  return 0;
}

int OWN(Allreduce)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  UNLESS_OWN(MPI_Allreduce(out, in, count, DATATYPE, named, comm))
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  combined.Fold(All(comm), count, type, operation);
  combined.Give(in, 0, count);
  return 0;
}
int OWN(Reduce)(const void *out, void *in, int count, HANDLE type, HANDLE operation, int root, HANDLE comm) {
  UNLESS_OWN(MPI_Reduce(out, in, count, DATATYPE, named, root, comm))
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  combined.Fold(All(comm), count, type, operation);
  if (Rank(comm) == root) combined.Give(in, 0, count);
  return 0;
}
int OWN(Scan)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  UNLESS_OWN(MPI_Scan(out, in, count, DATATYPE, named, comm))
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  combined.Fold(Rank(comm) + 1, count, type, operation);
  combined.Give(in, 0, count);
  return 0;
}
int OWN(Exscan)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  UNLESS_OWN(MPI_Exscan(out, in, count, DATATYPE, named, comm))
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  if (Rank(comm) == 0) return 0;
  combined.Fold(Rank(comm), count, type, operation);
  combined.Give(in, 0, count);
  return 0;
}
int OWN(Reduce_scatter_block)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  UNLESS_OWN(MPI_Reduce_scatter_block(out, in, count, DATATYPE, named, comm))
  const int all = count * All(comm);
  Combined combined(out == IN_PLACE ? in : out, all, type, comm);
  combined.Fold(All(comm), all, type, operation);
  combined.Give(in, static_cast<long>(count) * Rank(comm), count);
  return 0;
}
int OWN(Reduce_scatter)(const void *out, void *in, const int *counts, HANDLE type, HANDLE operation, HANDLE comm) {
  UNLESS_OWN(MPI_Reduce_scatter(out, in, counts, DATATYPE, named, comm))
  const int rank = Rank(comm);
  long first = 0, all = 0;
  for (int i = 0; i < All(comm); all += counts[i++])
    if (i < rank) first += counts[i];
  Combined combined(out == IN_PLACE ? in : out, all, type, comm);
  combined.Fold(All(comm), all, type, operation);
  combined.Give(in, first, counts[rank]);
  return 0;
}

}  // extern "C"
