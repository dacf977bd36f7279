// Persistent requests by requests that are begun each time, and derived datatypes of numbers by messages of these numbers
// and of the integers between them: what is sent is packed before, what came is unpacked. REAL is the type of the numbers, DATATYPE MPI's name of it
// (rules want it to be a constant), IS_ALSO(handle) whether a handle is another one, OWN(name) the name of a function
// here; mpi_handles_*.h has HANDLE, the type of MPI's handles, NOTHING, the request that is none, AS_HANDLE, the handle of
// a number below 1024, and AS_NUMBER, that number. Messages have the first 256 numbers, datatypes the next ones, persistent
// requests those behind them, operations the last ones.
// An integer that lies beside numbers is known by its type.
// flags: -fstrict-aliasing
#include <stddef.h>
#ifndef IS_ALSO
#define IS_ALSO(handle) false
#endif

extern "C" {

struct Status;
void *malloc(size_t);
void free(void *);
void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));
int MPI_Send(const void *, int, HANDLE, int, int, HANDLE);
int MPI_Ssend(const void *, int, HANDLE, int, int, HANDLE);
int MPI_Rsend(const void *, int, HANDLE, int, int, HANDLE);
int MPI_Recv(void *, int, HANDLE, int, int, HANDLE, Status *);
int MPI_Sendrecv(const void *, int, HANDLE, int, int, void *, int, HANDLE, int, int, HANDLE, Status *);
int MPI_Isend(const void *, int, HANDLE, int, int, HANDLE, HANDLE *);
int MPI_Get_count(const Status *, HANDLE, int *);
int MPI_Issend(const void *, int, HANDLE, int, int, HANDLE, HANDLE *);
int MPI_Sendrecv_replace(void *, int, HANDLE, int, int, int, int, HANDLE, Status *);
int MPI_Irecv(void *, int, HANDLE, int, int, HANDLE, HANDLE *);
int MPI_Wait(HANDLE *, Status *);
int MPI_Waitall(int, HANDLE *, Status *);
int MPI_Waitany(int, HANDLE *, int *, Status *);
int MPI_Waitsome(int, HANDLE *, int *, int *, Status *);
int MPI_Test(HANDLE *, int *, Status *);
int MPI_Testall(int, HANDLE *, int *, Status *);
int MPI_Testany(int, HANDLE *, int *, int *, Status *);
int MPI_Testsome(int, HANDLE *, int *, int *, Status *);
int MPI_Bcast(void *, int, HANDLE, int, HANDLE);

}  // extern "C"

namespace {

constexpr int kMost = 256;

// `count` parts, where the start of an item is so many bytes before each; the next item is `extent` bytes on. One that is
// freed is there as long as messages of it are under way.
struct Type {
  long count, low, extent;
  long *at;
  int messages, freed;
};
Type types[kMost];
int made;

// A message under way whose numbers are packed.
struct Message {
  REAL *packed;
  void *buffer;
  HANDLE type, begun;
  int count, incoming;
};
Message messages[kMost];

// A message, or a call of all processes: what comes, what goes, and where blocks of several lengths lie.
struct Persistent {
  int kind;
  HANDLE type, comm, begun;
  void *buffer;
  int count, peer, tag;
  const void *out;
  int out_count;
  const int *counts, *starts, *out_counts, *out_starts;
};
Persistent persistent[kMost];
int requests_made;

void Refuse(const char *cause) { __assert_fail(cause, "", 0, ""); }

// A part of an item: a number, or an integer of 2 or 4 bytes, which travels as a number of its value. Those of more bits
// than a number holds are several parts. `at` has its place and its size, 0 for numbers.
constexpr long kLongest = sizeof(REAL) / 2;
bool any_integers;
long Part(long place, long size) { return 8 * place + size; }
// Said to be a member behind numbers, whose places it has none of, an integer is known to be none of them.
template <class Integer>
struct Member {
  REAL numbers[1 << 20];
  Integer own;
};
constexpr long kApart = offsetof(Member<char>, own);
REAL PartOf(const char *item, long part) {
  const char *at = item + (part >> 3);
  if (any_integers) switch (part & 7) {
      case 2: return reinterpret_cast<const Member<unsigned short> *>(at)->own;
      case 4: return static_cast<REAL>(reinterpret_cast<const Member<unsigned> *>(at)->own);
    }
  return *reinterpret_cast<const REAL *>(at);
}
void SetPart(char *item, long part, REAL value) {
  char *at = item + (part >> 3);
  if (any_integers) switch (part & 7) {
      case 2: reinterpret_cast<Member<unsigned short> *>(at)->own = static_cast<unsigned short>(value); return;
      case 4: reinterpret_cast<Member<unsigned> *>(at)->own = static_cast<unsigned>(value); return;
    }
  *reinterpret_cast<REAL *>(at) = value;
}

Type *Known(HANDLE handle) {
  const unsigned long number = AS_NUMBER(handle) - kMost;
  if (number < kMost) return &types[number];
  if (handle != (HANDLE)DATATYPE && !IS_ALSO(handle))
    Refuse("a kernel's derived datatypes of MPI are all of one kind of numbers");
  return nullptr;
}

long Count(HANDLE handle) {
  const Type *type = Known(handle);
  return type ? type->count : 1;
}
long Extent(HANDLE handle) {
  const Type *type = Known(handle);
  return type ? type->extent : sizeof(REAL);
}
long Low(HANDLE handle) {
  const Type *type = Known(handle);
  return type ? type->low : 0;
}

struct Maker {
  Type type;

  explicit Maker(long count) : type{0, 0, 0, static_cast<long *>(malloc(count * sizeof(long))), 0, 0} {}

  void Add(long start, long length, HANDLE old) {
    const Type *inner = Known(old);
    const long extent = Extent(old);
    if (start < 0) Refuse("a derived datatype of MPI begins before its address");
    if (length <= 0) return;
    Cover(start + Low(old), length * extent);
    for (long i = 0; i < length; i++) {
      if (inner)
        for (long e = 0; e < inner->count; e++) type.at[type.count++] = Part(start + i * extent, 0) + inner->at[e];
      else
        type.at[type.count++] = Part(start + i * extent, 0);
    }
  }
  // Of so many bytes each.
  void AddIntegers(long start, long length, long bytes) {
    if (start < 0) Refuse("a derived datatype of MPI begins before its address");
    if (length <= 0) return;
    any_integers = true;
    Cover(start, length * bytes);
    const long size = bytes < kLongest ? bytes : kLongest;
    for (long i = 0; i < length * bytes; i += size) type.at[type.count++] = Part(start + i - kApart, size);
  }
  // The extent of a type is from the lowest bound of its parts, not from its address.
  void Cover(long low, long bytes) {
    const bool first = type.count == 0;
    const long old_high = type.low + type.extent, high = low + bytes;
    if (first || low < type.low) type.low = low;
    type.extent = (first || high > old_high ? high : old_high) - type.low;
  }
  int Done(HANDLE *handle) {
    if (made == kMost) Refuse("a kernel makes at most 256 derived datatypes of MPI");
    types[made] = type;
    *handle = AS_HANDLE(kMost + made++);
    return 0;
  }
};

void Pack(REAL *packed, const void *buffer, long count, const Type &type) {
  for (long i = 0; i < count; i++)
    for (long e = 0; e < type.count; e++)
      packed[i * type.count + e] = PartOf(static_cast<const char *>(buffer) + i * type.extent, type.at[e]);
}
REAL *Packed(const void *buffer, long count, const Type &type) {
  REAL *packed = static_cast<REAL *>(malloc(count * type.count * sizeof(REAL)));
  Pack(packed, buffer, count, type);
  return packed;
}

void Unpack(const REAL *packed, void *buffer, long count, const Type &type) {
  for (long i = 0; i < count; i++)
    for (long e = 0; e < type.count; e++)
      SetPart(static_cast<char *>(buffer) + i * type.extent, type.at[e], packed[i * type.count + e]);
}

int Place() {
  for (int i = 0; i < kMost; i++)
    if (!messages[i].packed) return i;
  Refuse("a kernel has at most 256 messages of derived datatypes of MPI under way");
  return 0;
}

int Begun(Message &message, HANDLE *request, int place) {
  messages[place].packed = message.packed;
  messages[place].buffer = message.buffer;
  messages[place].type = message.type;
  messages[place].count = message.count;
  messages[place].incoming = message.incoming;
  Known(message.type)->messages++;
  *request = AS_HANDLE(place);
  return 0;
}

void Finish(int place) {
  Message &message = messages[place];
  Type *type = Known(message.type);
  if (message.incoming) Unpack(message.packed, message.buffer, message.count, *type);
  if (--type->messages == 0 && type->freed) free(type->at);
  free(message.packed);
  message.packed = nullptr;
}

// What a program completes: its persistent requests, then its packed messages, are replaced by those that MPI knows. What is
// complete is nothing afterwards.
HANDLE *Latest(HANDLE *request) {
  const unsigned long number = AS_NUMBER(*request) - 2 * kMost;
  return number < kMost ? &persistent[number].begun : request;
}
HANDLE *Pending(int count, HANDLE *requests) {
  HANDLE *pending = static_cast<HANDLE *>(malloc(count * sizeof(HANDLE)));
  for (int i = 0; i < count; i++) {
    const HANDLE latest = *Latest(&requests[i]);
    const unsigned long place = AS_NUMBER(latest);
    pending[i] = place < kMost ? messages[place].begun : latest;
  }
  return pending;
}
int Ended(int count, HANDLE *requests, HANDLE *pending, int error) {
  for (int i = 0; i < count; i++) {
    HANDLE *latest = Latest(&requests[i]);
    const unsigned long place = AS_NUMBER(*latest);
    if (place >= kMost) {
      *latest = pending[i];
    } else if (pending[i] == NOTHING) {
      Finish(place);
      *latest = NOTHING;
    }
  }
  free(pending);
  return error;
}

}  // namespace

extern "C" {

int OWN(Type_contiguous)(int count, HANDLE old, HANDLE *type) {
  Maker maker(count * Count(old));
  maker.Add(0, count, old);
  return maker.Done(type);
}
int OWN(Type_create_hvector)(int count, int length, long stride, HANDLE old, HANDLE *type) {
  Maker maker(static_cast<long>(count) * length * Count(old));
  for (int i = 0; i < count; i++) maker.Add(i * stride, length, old);
  return maker.Done(type);
}
int OWN(Type_vector)(int count, int length, int stride, HANDLE old, HANDLE *type) {
  Maker maker(static_cast<long>(count) * length * Count(old));
  for (int i = 0; i < count; i++) maker.Add(i * stride * Extent(old), length, old);
  return maker.Done(type);
}
int OWN(Type_indexed)(int count, const int *lengths, const int *starts, HANDLE old, HANDLE *type) {
  long total = 0;
  for (int i = 0; i < count; i++) total += lengths[i];
  Maker maker(total * Count(old));
  for (int i = 0; i < count; i++) maker.Add(starts[i] * Extent(old), lengths[i], old);
  return maker.Done(type);
}
int OWN(Type_create_hindexed)(int count, const int *lengths, const long *starts, HANDLE old, HANDLE *type) {
  long total = 0;
  for (int i = 0; i < count; i++) total += lengths[i];
  Maker maker(total * Count(old));
  for (int i = 0; i < count; i++) maker.Add(starts[i], lengths[i], old);
  return maker.Done(type);
}
int OWN(Type_create_indexed_block)(int count, int length, const int *starts, HANDLE old, HANDLE *type) {
  Maker maker(static_cast<long>(count) * length * Count(old));
  for (int i = 0; i < count; i++) maker.Add(starts[i] * Extent(old), length, old);
  return maker.Done(type);
}
int OWN(Type_create_struct)(int count, const int *lengths, const long *starts, const HANDLE *olds, HANDLE *type) {
  long total = 0, integers = 0;
  for (int i = 0; i < count; i++) {
    const long bytes = IntegerBytes(olds[i]);
    total += lengths[i] * (bytes ? (bytes + kLongest - 1) / kLongest : Count(olds[i]));
    integers += bytes > 0;
  }
  if (integers == count && count) Refuse("a structure of MPI of integers alone, in a kernel that has others");
  Maker maker(total);
  for (int i = 0; i < count; i++) {
    if (const long bytes = IntegerBytes(olds[i]))
      maker.AddIntegers(starts[i], lengths[i], bytes);
    else
      maker.Add(starts[i], lengths[i], olds[i]);
  }
  return maker.Done(type);
}
int OWN(Type_create_subarray)(int rank, const int *sizes, const int *parts, const int *starts, int order, HANDLE old,
                              HANDLE *type) {
  long total = 1, whole = 1;
  for (int d = 0; d < rank; d++) total *= parts[d], whole *= sizes[d];
  Maker maker(total * Count(old));
  for (long item = 0; item < total; item++) {
    long rest = item, stride = 1, place = 0;
    for (int k = 0; k < rank; k++) {
      const int d = order == ROWS_FIRST ? rank - 1 - k : k;
      place += (rest % parts[d] + starts[d]) * stride;
      rest /= parts[d];
      stride *= sizes[d];
    }
    maker.Add(place * Extent(old), 1, old);
  }
  maker.type.low = 0;
  maker.type.extent = whole * Extent(old);
  return maker.Done(type);
}
int OWN(Type_create_resized)(HANDLE old, long low, long extent, HANDLE *type) {
  Maker maker(Count(old));
  maker.Add(0, 1, old);
  maker.type.low = low;
  maker.type.extent = extent;
  return maker.Done(type);
}
int OWN(Type_commit)(HANDLE *) { return 0; }
int OWN(Type_free)(HANDLE *type) {
  const unsigned long number = AS_NUMBER(*type) - kMost;
  if (number < kMost) {
    types[number].freed = 1;
    if (types[number].messages == 0) free(types[number].at);
  }
  *type = NO_TYPE;
  return 0;
}

int OWN(Type_size)(HANDLE type, int *size) {
  *size = Count(type) * sizeof(REAL);
  return 0;
}
int OWN(Type_get_extent)(HANDLE type, long *begin, long *extent) {
  *begin = Low(type);
  *extent = Extent(type);
  return 0;
}
int OWN(Get_count)(const Status *status, HANDLE handle, int *count) {
  const Type *type = Known(handle);
  const int error = MPI_Get_count(status, DATATYPE, count);
  if (type) *count = type->count == 0 ? 0 : *count % type->count ? -32766 : *count / type->count;  // or MPI_UNDEFINED
  return error;
}

#define SEND(name) \
  int OWN(name)(const void *buffer, int count, HANDLE handle, int to, int tag, HANDLE comm) { \
    const Type *type = Known(handle); \
    if (!type) return MPI_##name(buffer, count, DATATYPE, to, tag, comm); \
    REAL *packed = Packed(buffer, count, *type); \
    const int error = MPI_##name(packed, count * type->count, DATATYPE, to, tag, comm); \
    free(packed); \
    return error; \
  }
SEND(Send)
SEND(Ssend)
SEND(Rsend)

// Of what is received there may be less than there is room for: the rest keeps what it was.
int OWN(Recv)(void *buffer, int count, HANDLE handle, int from, int tag, HANDLE comm, Status *status) {
  const Type *type = Known(handle);
  if (!type) return MPI_Recv(buffer, count, DATATYPE, from, tag, comm, status);
  REAL *packed = Packed(buffer, count, *type);
  const int error = MPI_Recv(packed, count * type->count, DATATYPE, from, tag, comm, status);
  Unpack(packed, buffer, count, *type);
  free(packed);
  return error;
}
int OWN(Bcast)(void *buffer, int count, HANDLE handle, int root, HANDLE comm) {
  const Type *type = Known(handle);
  if (!type) return MPI_Bcast(buffer, count, DATATYPE, root, comm);
  REAL *packed = Packed(buffer, count, *type);
  const int error = MPI_Bcast(packed, count * type->count, DATATYPE, root, comm);
  Unpack(packed, buffer, count, *type);
  free(packed);
  return error;
}

int OWN(Sendrecv)(const void *out, int sent, HANDLE given, int to, int send_tag, void *in, int wanted, HANDLE taken,
                  int from, int tag, HANDLE comm, Status *status) {
  const Type *gives = Known(given), *takes = Known(taken);
  REAL *outgoing = gives ? Packed(out, sent, *gives) : nullptr;
  REAL *incoming = takes ? Packed(in, wanted, *takes) : nullptr;
  const int error = MPI_Sendrecv(
      gives ? outgoing : out, gives ? sent * gives->count : sent, DATATYPE, to, send_tag, takes ? incoming : in,
      takes ? wanted * takes->count : wanted, DATATYPE, from, tag, comm, status);
  if (takes) Unpack(incoming, in, wanted, *takes);
  free(outgoing);
  free(incoming);
  return error;
}

int OWN(Sendrecv_replace)(void *buffer, int count, HANDLE handle, int to, int send_tag, int from, int tag, HANDLE comm,
                          Status *status) {
  const Type *type = Known(handle);
  if (!type) return MPI_Sendrecv_replace(buffer, count, DATATYPE, to, send_tag, from, tag, comm, status);
  REAL *packed = Packed(buffer, count, *type);
  const int error =
      MPI_Sendrecv_replace(packed, count * type->count, DATATYPE, to, send_tag, from, tag, comm, status);
  Unpack(packed, buffer, count, *type);
  free(packed);
  return error;
}

#define BEGIN(name) \
  int OWN(name)(const void *buffer, int count, HANDLE handle, int to, int tag, HANDLE comm, HANDLE *request) { \
    const Type *type = Known(handle); \
    if (!type) return MPI_##name(buffer, count, DATATYPE, to, tag, comm, request); \
    const int place = Place(); \
    Message message = {Packed(buffer, count, *type), const_cast<void *>(buffer), handle, NOTHING, count, 0}; \
    MPI_##name(message.packed, count * type->count, DATATYPE, to, tag, comm, &messages[place].begun); \
    return Begun(message, request, place); \
  }
BEGIN(Isend)
BEGIN(Issend)
int OWN(Irecv)(void *buffer, int count, HANDLE handle, int from, int tag, HANDLE comm, HANDLE *request) {
  const Type *type = Known(handle);
  if (!type) return MPI_Irecv(buffer, count, DATATYPE, from, tag, comm, request);
  const int place = Place();
  Message message = {Packed(buffer, count, *type), buffer, handle, NOTHING, count, 1};
  MPI_Irecv(message.packed, count * type->count, DATATYPE, from, tag, comm, &messages[place].begun);
  return Begun(message, request, place);
}

#define COMPLETE(name, count, PARAMETERS, call) \
  int OWN(name) PARAMETERS { \
    HANDLE *pending = Pending(count, requests); \
    const int error = call; \
    return Ended(count, requests, pending, error); \
  }
COMPLETE(Wait, 1, (HANDLE *requests, Status *status), MPI_Wait(pending, status))
COMPLETE(Test, 1, (HANDLE *requests, int *flag, Status *status), MPI_Test(pending, flag, status))
COMPLETE(Waitall, count, (int count, HANDLE *requests, Status *statuses), MPI_Waitall(count, pending, statuses))
COMPLETE(Testall, count, (int count, HANDLE *requests, int *flag, Status *statuses),
         MPI_Testall(count, pending, flag, statuses))
COMPLETE(Waitany, count, (int count, HANDLE *requests, int *index, Status *status),
         MPI_Waitany(count, pending, index, status))
COMPLETE(Testany, count, (int count, HANDLE *requests, int *index, int *flag, Status *status),
         MPI_Testany(count, pending, index, flag, status))
COMPLETE(Waitsome, count, (int count, HANDLE *requests, int *many, int *places, Status *statuses),
         MPI_Waitsome(count, pending, many, places, statuses))
COMPLETE(Testsome, count, (int count, HANDLE *requests, int *many, int *places, Status *statuses),
         MPI_Testsome(count, pending, many, places, statuses))

}  // extern "C"

#include "mpi_object_blocks.h"
#include "mpi_object_buffered.h"
#include "mpi_object_operations.h"
#include "mpi_object_packed.h"
#include "mpi_object_persistent.h"
