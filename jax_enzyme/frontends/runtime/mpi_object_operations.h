#pragma once
// Reductions by operations of the program's own: all that goes in is gathered, and combined in the order of processes.

extern "C" void *calloc(size_t, size_t);

namespace {

typedef void Combines(void *in, void *in_out, int *count, HANDLE *type);
Combines *operations[kMost];

Combines *Operation(HANDLE handle) {
  const unsigned long number = AS_NUMBER(handle) - 3 * kMost;
  if (number >= kMost) Refuse("a reduction of MPI in a derivative names its operation, or one that the kernel makes");
  return operations[number];
}

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
      for (long e = 0; e < type.count; e++) {
        const long at = i * type.extent + type.at[e];
        *reinterpret_cast<REAL *>(to + at) = *reinterpret_cast<const REAL *>(from + at);
      }
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
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  combined.Fold(All(comm), count, type, operation);
  combined.Give(in, 0, count);
  return 0;
}
int OWN(Reduce)(const void *out, void *in, int count, HANDLE type, HANDLE operation, int root, HANDLE comm) {
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  combined.Fold(All(comm), count, type, operation);
  if (Rank(comm) == root) combined.Give(in, 0, count);
  return 0;
}
int OWN(Scan)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  combined.Fold(Rank(comm) + 1, count, type, operation);
  combined.Give(in, 0, count);
  return 0;
}
int OWN(Exscan)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  Combined combined(out == IN_PLACE ? in : out, count, type, comm);
  if (Rank(comm) == 0) return 0;
  combined.Fold(Rank(comm), count, type, operation);
  combined.Give(in, 0, count);
  return 0;
}
int OWN(Reduce_scatter_block)(const void *out, void *in, int count, HANDLE type, HANDLE operation, HANDLE comm) {
  const int all = count * All(comm);
  Combined combined(out == IN_PLACE ? in : out, all, type, comm);
  combined.Fold(All(comm), all, type, operation);
  combined.Give(in, static_cast<long>(count) * Rank(comm), count);
  return 0;
}
int OWN(Reduce_scatter)(const void *out, void *in, const int *counts, HANDLE type, HANDLE operation, HANDLE comm) {
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
