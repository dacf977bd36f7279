#pragma once
// Messages that go by way of an attached buffer, as copies whose messages are begun, and waited for where the buffer is
// taken back. The buffer itself is left alone.

namespace {

struct Buffered {
  Buffered *next;
  void *copy;
  HANDLE request;
};
Buffered *buffered, **last_buffered = &buffered;
void *attached;
int attached_bytes;

}  // namespace

extern "C" {

int OWN(Buffer_attach)(void *buffer, int bytes) {
  attached = buffer;
  attached_bytes = bytes;
  return 0;
}
int OWN(Bsend)(const void *buffer, int count, HANDLE handle, int to, int tag, HANDLE comm) {
  const Type &type = KnownOrPlain(handle);
  REAL *copy = Packed(buffer, count, type);
  Buffered *message = static_cast<Buffered *>(malloc(sizeof(Buffered)));
  *message = {nullptr, copy, NOTHING};
  *last_buffered = message;
  last_buffered = &message->next;
  return MPI_Isend(copy, count * type.count, DATATYPE, to, tag, comm, &message->request);
}
int OWN(Buffer_detach)(void *buffer, int *bytes) {
  while (Buffered *message = buffered) {
    MPI_Wait(&message->request, NO_STATUS);
    buffered = message->next;
    free(message->copy);
    free(message);
  }
  last_buffered = &buffered;
  *static_cast<void **>(buffer) = attached;
  *bytes = attached_bytes;
  return 0;
}

}  // extern "C"
