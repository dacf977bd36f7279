#pragma once
// MPI_Pack and MPI_Unpack: what is packed is an array of numbers, integers among them as in derived datatypes, which is sent
// as such (frontends/mpi_objects.py). A buffer that is shorter than MPI_Pack_size says is refused.

namespace {

typedef REAL Anywhere __attribute__((aligned(1), may_alias));

// How many numbers an item takes that is an integer of so many bytes, or else of a datatype.
long Parts(long bytes, HANDLE type) { return bytes ? (bytes + kLongest - 1) / kLongest : Count(type); }
Anywhere *Next(void *packed, int size, int *position, long parts) {
  const int at = *position;
  *position += parts * sizeof(REAL);
  if (*position > size) Refuse("MPI_Pack and MPI_Unpack of a buffer that is shorter than MPI_Pack_size says");
  return reinterpret_cast<Anywhere *>(static_cast<char *>(packed) + at);
}
template <class To, class From>
void Convert(To *to, const From *from, long count) {
  for (long i = 0; i < count; i++) to[i] = static_cast<To>(from[i]);
}
template <bool kShort>
struct Longest {
  typedef unsigned Type;
};
template <>
struct Longest<true> {
  typedef unsigned short Type;
};
typedef Longest<kLongest == 2>::Type Word;


// `kSize`: of the integers that a call names, 0 of numbers, and -1 where it does not tell.
template <int kSize>
int Pack(const void *from, int count, HANDLE type, void *packed, int size, int *position) {
  const long bytes = kSize < 0 ? IntegerBytes(type) : kSize, parts = count * Parts(bytes, type);
  Anywhere *to = Next(packed, size, position, parts);
  switch (bytes) {
    case 0:
      if (const Type *known = kSize < 0 ? Known(type) : nullptr)
        for (long i = 0; i < count; i++)
          for (long e = 0; e < known->count; e++)
            *to++ = PartOf(static_cast<const char *>(from) + i * known->extent, known->at[e]);
      else
        Convert(to, static_cast<const REAL *>(from), parts);
      break;
    case 1: Convert(to, static_cast<const unsigned char *>(from), parts); break;
    case 2: Convert(to, static_cast<const unsigned short *>(from), parts); break;
    default: Convert(to, static_cast<const Word *>(from), parts);
  }
  return 0;
}

template <int kSize>
int Unpack(void *packed, int size, int *position, void *to, int count, HANDLE type) {
  const long bytes = kSize < 0 ? IntegerBytes(type) : kSize, parts = count * Parts(bytes, type);
  const Anywhere *from = Next(packed, size, position, parts);
  switch (bytes) {
    case 0:
      if (const Type *known = kSize < 0 ? Known(type) : nullptr)
        for (long i = 0; i < count; i++)
          for (long e = 0; e < known->count; e++)
            SetPart(static_cast<char *>(to) + i * known->extent, known->at[e], *from++);
      else
        Convert(static_cast<REAL *>(to), from, parts);
      break;
    case 1: Convert(static_cast<unsigned char *>(to), from, parts); break;
    case 2: Convert(static_cast<unsigned short *>(to), from, parts); break;
    default: Convert(static_cast<Word *>(to), from, parts);
  }
  return 0;
}

}  // namespace

extern "C" {

int OWN(Pack_size)(int count, HANDLE type, HANDLE, int *size) {
  *size = count * Parts(IntegerBytes(type), type) * sizeof(REAL);
  return 0;
}
#define PACKING(suffix, size_of)                                                                                     \
  int OWN(Pack##suffix)(const void *from, int count, HANDLE type, void *packed, int size, int *position, HANDLE) { \
    return Pack<size_of>(from, count, type, packed, size, position);                                                  \
  }                                                                                                              \
  int OWN(Unpack##suffix)(void *packed, int size, int *position, void *to, int count, HANDLE type, HANDLE) {     \
    return Unpack<size_of>(packed, size, position, to, count, type);                                                  \
  }
PACKING(, -1)
PACKING(_numbers, 0)
PACKING(_integers_1, 1)
PACKING(_integers_2, 2)
PACKING(_integers_4, 4)
PACKING(_integers_8, 8)
int OWN(Get_count_packed)(const Status *status, HANDLE, int *count) {
  const int error = MPI_Get_count(status, DATATYPE, count);
  if (*count > 0) *count *= sizeof(REAL);
  return error;
}

}  // extern "C"
