#pragma once
// Blocks of derived datatypes that one process has of all, or all have: packed, they lie side by side. Plain numbers on
// the other side are packed as well, as a datatype of one.

extern "C" {
int MPI_Gatherv(const void *, int, HANDLE, void *, const int *, const int *, HANDLE, int, HANDLE);
int MPI_Scatterv(const void *, const int *, const int *, HANDLE, void *, int, HANDLE, int, HANDLE);
int MPI_Allgatherv(const void *, int, HANDLE, void *, const int *, const int *, HANDLE, HANDLE);
int MPI_Alltoallv(const void *, const int *, const int *, HANDLE, void *, const int *, const int *, HANDLE, HANDLE);
int MPI_Comm_rank(HANDLE, int *);
int MPI_Comm_size(HANDLE, int *);
}  // extern "C"

namespace {

const Type &KnownOrPlain(HANDLE handle) {
  static long at[1];
  static const Type plain = {1, 0, sizeof(REAL), at, 0, 0};
  const Type *known = Known(handle);
  return known ? *known : plain;
}

// Of a process that has none, `size` is 0, and the datatype may be any.
struct Blocks {
  int size, *counts, *starts;
  REAL *packed;
  const Type *type;

  // Each of `count` items, one after the other, where they have no lengths and places of their own.
  Blocks(int size, HANDLE handle, int count, const int *lengths, const int *places)
      : size(size), counts(Integers()), starts(Integers()), packed(nullptr), type(nullptr), count(count),
        lengths(lengths), places(places) {
    if (!size) return;
    type = &KnownOrPlain(handle);
    long total = 0;
    for (int i = 0; i < size; i++) {
      counts[i] = Length(i) * type->count;
      starts[i] = total;
      total += counts[i];
    }
    packed = static_cast<REAL *>(malloc(total * sizeof(REAL)));
  }
  ~Blocks() {
    free(packed);
    free(counts);
    free(starts);
  }
  void Take(const void *buffer) {
    const char *bytes = static_cast<const char *>(buffer);
    for (int i = 0; i < size; i++) Pack(packed + starts[i], bytes + Place(i), Length(i), *type);
  }
  void Give(void *buffer) const {
    char *bytes = static_cast<char *>(buffer);
    for (int i = 0; i < size; i++) Unpack(packed + starts[i], bytes + Place(i), Length(i), *type);
  }

 private:
  int count;
  const int *lengths, *places;

  int *Integers() const { return static_cast<int *>(malloc(size * sizeof(int) + 1)); }
  long Length(int i) const { return lengths ? lengths[i] : count; }
  long Place(int i) const { return (places ? places[i] : static_cast<long>(i) * count) * type->extent; }
};

// What this process has: one block.
struct Own : Blocks {
  Own(HANDLE handle, int count) : Blocks(1, handle, count, nullptr, nullptr) {}
};

// Blocks of a datatype each, at so many bytes each.
struct Several {
  int *counts, *starts;
  REAL *packed;

  Several(int size, const int *lengths, const HANDLE *handles)
      : counts(static_cast<int *>(malloc(size * sizeof(int)))), starts(static_cast<int *>(malloc(size * sizeof(int)))) {
    long total = 0;
    for (int i = 0; i < size; i++) {
      counts[i] = lengths[i] * Count(handles[i]);
      starts[i] = total;
      total += counts[i];
    }
    packed = static_cast<REAL *>(malloc(total * sizeof(REAL) + 1));
  }
  ~Several() {
    free(packed);
    free(counts);
    free(starts);
  }
};

int All(HANDLE comm) {
  int size;
  MPI_Comm_size(comm, &size);
  return size;
}
int AllAt(int root, HANDLE comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  return rank == root ? All(comm) : 0;
}
void NotInPlace(const void *out, const void *in) {
  if (out == IN_PLACE || in == IN_PLACE) Refuse("MPI_IN_PLACE is not for derived datatypes in derivatives");
}

int Gathered(const void *out, int count, HANDLE given, void *in, int each, const int *lengths, const int *places,
             HANDLE taken, int root, HANDLE comm) {
  NotInPlace(out, in);
  Own own(given, count);
  own.Take(out);
  Blocks all(AllAt(root, comm), taken, each, lengths, places);
  const int error =
      MPI_Gatherv(own.packed, own.counts[0], DATATYPE, all.packed, all.counts, all.starts, DATATYPE, root, comm);
  all.Give(in);
  return error;
}
int Scattered(const void *out, int each, const int *lengths, const int *places, HANDLE given, void *in, int count,
              HANDLE taken, int root, HANDLE comm) {
  NotInPlace(out, in);
  Blocks all(AllAt(root, comm), given, each, lengths, places);
  all.Take(out);
  Own own(taken, count);
  const int error =
      MPI_Scatterv(all.packed, all.counts, all.starts, DATATYPE, own.packed, own.counts[0], DATATYPE, root, comm);
  own.Give(in);
  return error;
}
int GatheredByAll(const void *out, int count, HANDLE given, void *in, int each, const int *lengths, const int *places,
                  HANDLE taken, HANDLE comm) {
  NotInPlace(out, in);
  Own own(given, count);
  own.Take(out);
  Blocks all(All(comm), taken, each, lengths, places);
  const int error =
      MPI_Allgatherv(own.packed, own.counts[0], DATATYPE, all.packed, all.counts, all.starts, DATATYPE, comm);
  all.Give(in);
  return error;
}
int Exchanged(const void *out, Blocks &gives, void *in, Blocks &takes, HANDLE comm) {
  NotInPlace(out, in);
  gives.Take(out);
  const int error = MPI_Alltoallv(
      gives.packed, gives.counts, gives.starts, DATATYPE, takes.packed, takes.counts, takes.starts, DATATYPE, comm);
  takes.Give(in);
  return error;
}

}  // namespace

extern "C" {

int OWN(Gather)(const void *out, int count, HANDLE given, void *in, int each, HANDLE taken, int root, HANDLE comm) {
  return Gathered(out, count, given, in, each, nullptr, nullptr, taken, root, comm);
}
int OWN(Gatherv)(const void *out, int count, HANDLE given, void *in, const int *lengths, const int *places,
                 HANDLE taken, int root, HANDLE comm) {
  return Gathered(out, count, given, in, 0, lengths, places, taken, root, comm);
}
int OWN(Scatter)(const void *out, int each, HANDLE given, void *in, int count, HANDLE taken, int root, HANDLE comm) {
  return Scattered(out, each, nullptr, nullptr, given, in, count, taken, root, comm);
}
int OWN(Scatterv)(const void *out, const int *lengths, const int *places, HANDLE given, void *in, int count,
                  HANDLE taken, int root, HANDLE comm) {
  return Scattered(out, 0, lengths, places, given, in, count, taken, root, comm);
}
int OWN(Allgather)(const void *out, int count, HANDLE given, void *in, int each, HANDLE taken, HANDLE comm) {
  return GatheredByAll(out, count, given, in, each, nullptr, nullptr, taken, comm);
}
int OWN(Allgatherv)(const void *out, int count, HANDLE given, void *in, const int *lengths, const int *places,
                    HANDLE taken, HANDLE comm) {
  return GatheredByAll(out, count, given, in, 0, lengths, places, taken, comm);
}
int OWN(Alltoall)(const void *out, int each, HANDLE given, void *in, int count, HANDLE taken, HANDLE comm) {
  Blocks gives(All(comm), given, each, nullptr, nullptr), takes(All(comm), taken, count, nullptr, nullptr);
  return Exchanged(out, gives, in, takes, comm);
}
int OWN(Alltoallv)(const void *out, const int *out_lengths, const int *out_places, HANDLE given, void *in,
                   const int *lengths, const int *places, HANDLE taken, HANDLE comm) {
  Blocks gives(All(comm), given, 0, out_lengths, out_places), takes(All(comm), taken, 0, lengths, places);
  return Exchanged(out, gives, in, takes, comm);
}
int OWN(Alltoallw)(const void *out, const int *out_lengths, const int *out_places, const HANDLE *given, void *in,
                   const int *lengths, const int *places, const HANDLE *taken, HANDLE comm) {
  NotInPlace(out, in);
  const int size = All(comm);
  Several gives(size, out_lengths, given), takes(size, lengths, taken);
  for (int i = 0; i < size; i++)
    Pack(gives.packed + gives.starts[i], static_cast<const char *>(out) + out_places[i], out_lengths[i],
         KnownOrPlain(given[i]));
  const int error = MPI_Alltoallv(
      gives.packed, gives.counts, gives.starts, DATATYPE, takes.packed, takes.counts, takes.starts, DATATYPE, comm);
  for (int i = 0; i < size; i++)
    Unpack(takes.packed + takes.starts[i], static_cast<char *>(in) + places[i], lengths[i], KnownOrPlain(taken[i]));
  return error;
}

}  // extern "C"
