// Persistent requests by requests that are begun each time, and derived datatypes of numbers by messages of these numbers
// alone: what is sent is packed before, what came is unpacked. REAL is the type of the numbers, DATATYPE MPI's name of it
// (rules want it to be a constant), IS_ALSO(handle) whether a handle is another one, OWN(name) the name of a function
// here; mpi_handles_*.h has HANDLE, the type of MPI's handles, NOTHING, the request that is none, AS_HANDLE, the handle of
// a number below 1024, and AS_NUMBER, that number. Messages have the first 256 numbers, datatypes the next ones, persistent
// requests those behind them, operations the last ones.
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

// `count` numbers, so many bytes behind the start of an item each; the next item is `extent` bytes on. One that is freed
// is there as long as messages of it are under way.
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

struct Persistent {
  void *buffer;
  HANDLE type, comm, begun;
  int count, peer, tag, incoming;
};
Persistent persistent[kMost];
int requests_made;

void Refuse(const char *cause) { __assert_fail(cause, "", 0, ""); }

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
        for (long e = 0; e < inner->count; e++) type.at[type.count++] = start + i * extent + inner->at[e];
      else
        type.at[type.count++] = start + i * extent;
    }
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
      packed[i * type.count + e] =
          *reinterpret_cast<const REAL *>(static_cast<const char *>(buffer) + i * type.extent + type.at[e]);
}
REAL *Packed(const void *buffer, long count, const Type &type) {
  REAL *packed = static_cast<REAL *>(malloc(count * type.count * sizeof(REAL)));
  Pack(packed, buffer, count, type);
  return packed;
}

void Unpack(const REAL *packed, void *buffer, long count, const Type &type) {
  for (long i = 0; i < count; i++)
    for (long e = 0; e < type.count; e++)
      *reinterpret_cast<REAL *>(static_cast<char *>(buffer) + i * type.extent + type.at[e]) = packed[i * type.count + e];
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
  long total = 0;
  for (int i = 0; i < count; i++) total += lengths[i] * Count(olds[i]);
  Maker maker(total);
  for (int i = 0; i < count; i++) maker.Add(starts[i], lengths[i], olds[i]);
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

// Who waits for a message to be received, or says that its receiver is ready, sends the same numbers.
#define MAKE(name, incoming) \
  int OWN(name)(void *buffer, int count, HANDLE type, int peer, int tag, HANDLE comm, HANDLE *request) { \
    if (requests_made == kMost) Refuse("a kernel makes at most 256 persistent requests of MPI"); \
    if (Type *known = Known(type)) known->messages++; \
    persistent[requests_made] = {buffer, type, comm, NOTHING, count, peer, tag, incoming}; \
    *request = AS_HANDLE(2 * kMost + requests_made++); \
    return 0; \
  }
MAKE(Send_init, 0)
MAKE(Ssend_init, 0)
MAKE(Rsend_init, 0)
MAKE(Recv_init, 1)

int OWN(Start)(HANDLE *request) {
  Persistent &r = persistent[AS_NUMBER(*request) - 2 * kMost];
  return r.incoming ? OWN(Irecv)(r.buffer, r.count, r.type, r.peer, r.tag, r.comm, &r.begun)
                    : OWN(Isend)(r.buffer, r.count, r.type, r.peer, r.tag, r.comm, &r.begun);
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

#include "mpi_object_blocks.h"
#include "mpi_object_buffered.h"
#include "mpi_object_operations.h"
