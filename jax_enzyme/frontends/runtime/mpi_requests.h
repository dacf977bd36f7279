// Persistent requests by those that are begun once: OWN(name) the name of a function here, DATATYPE that of the numbers in
// all of a program's persistent requests (rules want it to be a constant); mpi_handles_*.h has HANDLE, the type of MPI's
// handles, NOTHING, the request that is none, AS_HANDLE, the handle of a number below 512, and AS_NUMBER, that number.
#include <stddef.h>

extern "C" {

struct Status;
void *malloc(size_t);
void free(void *);
void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));
int MPI_Isend(const void *, int, HANDLE, int, int, HANDLE, HANDLE *);
int MPI_Irecv(void *, int, HANDLE, int, int, HANDLE, HANDLE *);
int MPI_Wait(HANDLE *, Status *);
int MPI_Waitall(int, HANDLE *, Status *);

}  // extern "C"

namespace {

struct Persistent {
  void *buffer;
  HANDLE comm, begun;
  int count, peer, tag, incoming;
};

constexpr int kMost = 256;
Persistent persistent[kMost];
int made;

int Make(const void *buffer, int count, int peer, int tag, HANDLE comm, HANDLE *request, int incoming) {
  if (made == kMost) __assert_fail("a kernel makes at most 256 persistent requests of MPI", "", 0, "");
  persistent[made] = {const_cast<void *>(buffer), comm, NOTHING, count, peer, tag, incoming};
  *request = AS_HANDLE(made++);
  return 0;
}

}  // namespace

extern "C" {

#define SEND_INIT(name) \
  int OWN(name)(const void *buffer, int count, HANDLE, int to, int tag, HANDLE comm, HANDLE *request) { \
    return Make(buffer, count, to, tag, comm, request, 0); \
  }
// Who waits for a message to be received, or says that its receiver is ready, sends the same numbers.
SEND_INIT(Send_init)
SEND_INIT(Ssend_init)
SEND_INIT(Rsend_init)
int OWN(Recv_init)(void *buffer, int count, HANDLE, int from, int tag, HANDLE comm, HANDLE *request) {
  return Make(buffer, count, from, tag, comm, request, 1);
}

int OWN(Start)(HANDLE *request) {
  Persistent &r = persistent[AS_NUMBER(*request)];
  return r.incoming ? MPI_Irecv(r.buffer, r.count, DATATYPE, r.peer, r.tag, r.comm, &r.begun)
                    : MPI_Isend(r.buffer, r.count, DATATYPE, r.peer, r.tag, r.comm, &r.begun);
}
int OWN(Startall)(int count, HANDLE *requests) {
  for (int i = 0; i < count; i++) OWN(Start)(requests + i);
  return 0;
}

int OWN(Wait)(HANDLE *request, Status *status) {
  return MPI_Wait(AS_NUMBER(*request) < kMost ? &persistent[AS_NUMBER(*request)].begun : request, status);
}
int OWN(Waitall)(int count, HANDLE *requests, Status *statuses) {
  HANDLE *begun = static_cast<HANDLE *>(malloc(count * sizeof(HANDLE)));
  for (int i = 0; i < count; i++)
    begun[i] = AS_NUMBER(requests[i]) < kMost ? persistent[AS_NUMBER(requests[i])].begun : requests[i];
  const int error = MPI_Waitall(count, begun, statuses);
  for (int i = 0; i < count; i++) {
    if (AS_NUMBER(requests[i]) < kMost)
      persistent[AS_NUMBER(requests[i])].begun = begun[i];
    else
      requests[i] = begun[i];
  }
  free(begun);
  return error;
}
int OWN(Request_free)(HANDLE *request) {
  if (AS_NUMBER(*request) >= kMost) __assert_fail("MPI_Request_free of a persistent request alone, where there are such", "", 0, "");
  *request = NOTHING;
  return 0;
}

}  // extern "C"
