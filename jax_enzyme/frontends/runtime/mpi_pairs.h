// Reductions by MPI_MAXLOC and MPI_MINLOC by those of numbers and of places (frontends/mpi_pairs.py), and results over the
// processes before this one by what all of them have. REAL, DATATYPE and
// OWN(name) are those of mpi_objects.h; mpi_handles_*.h has IN_PLACE, AS_INT, AS_MAX and AS_MIN.

extern "C" {

int MPI_Allreduce(const void *, void *, int, HANDLE, HANDLE, HANDLE);
int MPI_Reduce(const void *, void *, int, HANDLE, HANDLE, int, HANDLE);
int MPI_Allgather(const void *, int, HANDLE, void *, int, HANDLE, HANDLE);
int MPI_Comm_rank(HANDLE, int *);
int MPI_Comm_size(HANDLE, int *);

}  // extern "C"

namespace {

// Fortran's places are numbers as well.
template <class Place>
struct Pair {
  REAL value;
  Place place;
};

constexpr int kEverywhere = -1;  // of a root

int Least(const int *own, int *least, int count, HANDLE comm) {
  return MPI_Allreduce(own, least, count, AS_INT, AS_MIN, comm);
}
int Least(const REAL *own, REAL *least, int count, HANDLE comm) {
  return MPI_Allreduce(own, least, count, DATATYPE, AS_MIN, comm);
}

int Everyones(const int *own, int *all, int count, HANDLE comm) {
  return MPI_Allgather(own, count, AS_INT, all, count, AS_INT, comm);
}
int Everyones(const REAL *own, REAL *all, int count, HANDLE comm) {
  return MPI_Allgather(own, count, DATATYPE, all, count, DATATYPE, comm);
}

template <bool kGreatest>
int Best(const REAL *own, REAL *best, int count, int root, HANDLE comm) {
  return root == kEverywhere ? MPI_Allreduce(own, best, count, DATATYPE, kGreatest ? AS_MAX : AS_MIN, comm)
                             : MPI_Reduce(own, best, count, DATATYPE, kGreatest ? AS_MAX : AS_MIN, root, comm);
}

// What is no number is no worse than any, and neither is any where the best is none.
template <bool kGreatest>
bool IsWorse(REAL one, REAL best) {
  return kGreatest ? one < best : one > best;
}

template <bool kGreatest, class Place>
int Located(const void *out, void *in, int count, Place beyond, int root, HANDLE comm) {
  const Pair<Place> *own = static_cast<const Pair<Place> *>(out == IN_PLACE ? in : out);
  Pair<Place> *result = static_cast<Pair<Place> *>(in);
  REAL *values = static_cast<REAL *>(malloc(count * sizeof(REAL)));
  REAL *best = static_cast<REAL *>(malloc(count * sizeof(REAL)));
  REAL *chosen = static_cast<REAL *>(malloc(count * sizeof(REAL)));
  Place *places = static_cast<Place *>(malloc(count * sizeof(Place)));
  Place *least = static_cast<Place *>(malloc(count * sizeof(Place)));
  int rank, error = MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < count; i++) values[i] = own[i].value;
  error |= Best<kGreatest>(values, best, count, kEverywhere, comm);
  for (int i = 0; i < count; i++) places[i] = IsWorse<kGreatest>(own[i].value, best[i]) ? beyond : own[i].place;
  error |= Least(places, least, count, comm);
  for (int i = 0; i < count; i++) {
    const bool is_other = IsWorse<kGreatest>(own[i].value, best[i]) || own[i].place > least[i];
    values[i] = is_other ? (kGreatest ? -__builtin_inf() : __builtin_inf()) : own[i].value;
  }
  error |= Best<kGreatest>(values, chosen, count, root, comm);
  for (int i = 0; (root == kEverywhere || rank == root) && i < count; i++) {
    result[i].value = __builtin_isnan(best[i]) ? static_cast<REAL>(__builtin_nan("")) : chosen[i];
    result[i].place = least[i];
  }
  free(values);
  free(best);
  free(chosen);
  free(places);
  free(least);
  return error;
}

// Over the processes up to this one, or, where `behind` is 1, before it: of the first none is.
template <bool kGreatest, class Place>
int LocatedUpTo(const void *out, void *in, int count, int behind, HANDLE comm) {
  const Pair<Place> *own = static_cast<const Pair<Place> *>(out == IN_PLACE ? in : out);
  Pair<Place> *result = static_cast<Pair<Place> *>(in);
  int rank, size, error = MPI_Comm_rank(comm, &rank) | MPI_Comm_size(comm, &size);
  const long total = static_cast<long>(count) * size;
  REAL *values = static_cast<REAL *>(malloc(count * sizeof(REAL)));
  REAL *every = static_cast<REAL *>(malloc(total * sizeof(REAL)));
  Place *places = static_cast<Place *>(malloc(count * sizeof(Place)));
  Place *everywhere = static_cast<Place *>(malloc(total * sizeof(Place)));
  for (int i = 0; i < count; i++) values[i] = own[i].value, places[i] = own[i].place;
  error |= Everyones(values, every, count, comm);
  error |= Everyones(places, everywhere, count, comm);
  for (int i = 0; rank >= behind && i < count; i++) {
    long best = i;
    for (long other = i + count; other < static_cast<long>(count) * (rank + 1 - behind); other += count) {
      if (IsWorse<kGreatest>(every[best], every[other]) ||
          (!IsWorse<kGreatest>(every[other], every[best]) && everywhere[other] < everywhere[best])) {
        best = other;
      }
    }
    result[i].value = every[best];
    result[i].place = everywhere[best];
  }
  free(values);
  free(every);
  free(places);
  free(everywhere);
  return error;
}

}  // namespace

extern "C" {

#define LOCATED(operation, greatest, name, Place, beyond) \
  int OWN(Allreduce_##operation##_##name)(const void *out, void *in, int count, HANDLE, HANDLE, HANDLE comm) { \
    return Located<greatest, Place>(out, in, count, beyond, kEverywhere, comm); \
  } \
  int OWN(Reduce_##operation##_##name)(const void *out, void *in, int count, HANDLE, HANDLE, int root, HANDLE comm) { \
    return Located<greatest, Place>(out, in, count, beyond, root, comm); \
  } \
  int OWN(Scan_##operation##_##name)(const void *out, void *in, int count, HANDLE, HANDLE, HANDLE comm) { \
    return LocatedUpTo<greatest, Place>(out, in, count, 0, comm); \
  } \
  int OWN(Exscan_##operation##_##name)(const void *out, void *in, int count, HANDLE, HANDLE, HANDLE comm) { \
    return LocatedUpTo<greatest, Place>(out, in, count, 1, comm); \
  }
LOCATED(max, true, integer, int, 0x7fffffff)
LOCATED(min, false, integer, int, 0x7fffffff)
LOCATED(max, true, number, REAL, __builtin_inf())
LOCATED(min, false, number, REAL, __builtin_inf())

}  // extern "C"
