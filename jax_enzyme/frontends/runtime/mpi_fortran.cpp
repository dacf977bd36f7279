// MPI's functions as Fortran calls them, arguments by reference and the error last, by those of C, which have rules. Their
// handles are those of MPICH, where Fortran's and C's are the same numbers; another MPI's communicator ends the program.
// provides: mpi_(send|ssend|rsend|recv|sendrecv|isend|irecv|wait|waitall|bcast|reduce|allreduce|scan|exscan)_
// provides: mpi_(gather|scatter|allgather|alltoall|gatherv|scatterv|allgatherv|alltoallv|barrier|comm_(rank|size|dup|split)|wtime)_
extern "C" {

// mpif.h: MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE. Fortran tells them by their addresses.
struct Private {
  int bottom, in_place, ignored[5];
};
__attribute__((weak)) Private mpipriv1_;
void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));

static int of_mpich(const int *comm) {
  if (!(*comm & 0x04000000)) __assert_fail("a communicator of MPICH: Fortran's calls of another MPI", "", 0, "");
  return *comm;
}
static const void *sent(const void *buffer) {
  return buffer == &mpipriv1_.in_place ? reinterpret_cast<const void *>(-1L) : buffer;
}

#define IN const void *
#define OUT void *
#define INT const int *

int MPI_Recv(OUT, int, int, int, int, int, OUT);
int MPI_Sendrecv(IN, int, int, int, int, OUT, int, int, int, int, int, OUT);
int MPI_Irecv(OUT, int, int, int, int, int, int *);
int MPI_Isend(IN, int, int, int, int, int, int *);
int MPI_Wait(int *, OUT);
int MPI_Waitall(int, int *, OUT);
int MPI_Bcast(OUT, int, int, int, int);
int MPI_Reduce(IN, OUT, int, int, int, int, int);
int MPI_Gatherv(IN, int, int, OUT, INT, INT, int, int, int);
int MPI_Scatterv(IN, INT, INT, int, OUT, int, int, int, int);
int MPI_Allgatherv(IN, int, int, OUT, INT, INT, int, int);
int MPI_Alltoallv(IN, INT, INT, int, OUT, INT, INT, int, int);
int MPI_Barrier(int);
int MPI_Comm_rank(int, int *);
int MPI_Comm_size(int, int *);
int MPI_Comm_dup(int, int *);
int MPI_Comm_split(int, int, int, int *);
double MPI_Wtime(void);

#define SEND(name, of) \
  int of(IN, int, int, int, int, int); \
  void name(IN x, INT n, INT type, INT to, INT tag, INT comm, int *error) { \
    *error = of(x, *n, *type, *to, *tag, of_mpich(comm)); \
  }
SEND(mpi_send_, MPI_Send)
SEND(mpi_ssend_, MPI_Ssend)
SEND(mpi_rsend_, MPI_Rsend)

#define REDUCE(name, of) \
  int of(IN, OUT, int, int, int, int); \
  void name(IN x, OUT y, INT n, INT type, INT op, INT comm, int *error) { \
    *error = of(sent(x), y, *n, *type, *op, of_mpich(comm)); \
  }
REDUCE(mpi_allreduce_, MPI_Allreduce)
REDUCE(mpi_scan_, MPI_Scan)
REDUCE(mpi_exscan_, MPI_Exscan)

#define EXCHANGE(name, of) \
  int of(IN, int, int, OUT, int, int, int); \
  void name(IN x, INT n, INT type, OUT y, INT m, INT other, INT comm, int *error) { \
    *error = of(sent(x), *n, *type, y, *m, *other, of_mpich(comm)); \
  }
EXCHANGE(mpi_allgather_, MPI_Allgather)
EXCHANGE(mpi_alltoall_, MPI_Alltoall)

#define ROOTED(name, of) \
  int of(IN, int, int, OUT, int, int, int, int); \
  void name(IN x, INT n, INT type, OUT y, INT m, INT other, INT root, INT comm, int *error) { \
    *error = of(sent(x), *n, *type, y, *m, *other, *root, of_mpich(comm)); \
  }
ROOTED(mpi_gather_, MPI_Gather)
ROOTED(mpi_scatter_, MPI_Scatter)

void mpi_recv_(OUT y, INT n, INT type, INT from, INT tag, INT comm, OUT status, int *error) {
  *error = MPI_Recv(y, *n, *type, *from, *tag, of_mpich(comm), status);
}
void mpi_sendrecv_(IN x, INT n, INT type, INT to, INT tag, OUT y, INT m, INT other, INT from, INT its, INT comm,
                   OUT status, int *error) {
  *error = MPI_Sendrecv(x, *n, *type, *to, *tag, y, *m, *other, *from, *its, of_mpich(comm), status);
}
void mpi_isend_(IN x, INT n, INT type, INT to, INT tag, INT comm, int *request, int *error) {
  *error = MPI_Isend(x, *n, *type, *to, *tag, of_mpich(comm), request);
}
void mpi_irecv_(OUT y, INT n, INT type, INT from, INT tag, INT comm, int *request, int *error) {
  *error = MPI_Irecv(y, *n, *type, *from, *tag, of_mpich(comm), request);
}
void mpi_wait_(int *request, OUT status, int *error) { *error = MPI_Wait(request, status); }
void mpi_waitall_(INT n, int *requests, OUT statuses, int *error) { *error = MPI_Waitall(*n, requests, statuses); }
void mpi_bcast_(OUT x, INT n, INT type, INT root, INT comm, int *error) {
  *error = MPI_Bcast(x, *n, *type, *root, of_mpich(comm));
}
void mpi_reduce_(IN x, OUT y, INT n, INT type, INT op, INT root, INT comm, int *error) {
  *error = MPI_Reduce(sent(x), y, *n, *type, *op, *root, of_mpich(comm));
}
void mpi_gatherv_(IN x, INT n, INT type, OUT y, INT m, INT at, INT other, INT root, INT comm, int *error) {
  *error = MPI_Gatherv(sent(x), *n, *type, y, m, at, *other, *root, of_mpich(comm));
}
void mpi_scatterv_(IN x, INT n, INT at, INT type, OUT y, INT m, INT other, INT root, INT comm, int *error) {
  *error = MPI_Scatterv(x, n, at, *type, y, *m, *other, *root, of_mpich(comm));
}
void mpi_allgatherv_(IN x, INT n, INT type, OUT y, INT m, INT at, INT other, INT comm, int *error) {
  *error = MPI_Allgatherv(sent(x), *n, *type, y, m, at, *other, of_mpich(comm));
}
void mpi_alltoallv_(IN x, INT n, INT from, INT type, OUT y, INT m, INT at, INT other, INT comm, int *error) {
  *error = MPI_Alltoallv(sent(x), n, from, *type, y, m, at, *other, of_mpich(comm));
}
void mpi_barrier_(INT comm, int *error) { *error = MPI_Barrier(of_mpich(comm)); }
void mpi_comm_rank_(INT comm, int *rank, int *error) { *error = MPI_Comm_rank(of_mpich(comm), rank); }
void mpi_comm_size_(INT comm, int *size, int *error) { *error = MPI_Comm_size(of_mpich(comm), size); }
void mpi_comm_dup_(INT comm, int *made, int *error) { *error = MPI_Comm_dup(of_mpich(comm), made); }
void mpi_comm_split_(INT comm, INT color, INT key, int *made, int *error) {
  *error = MPI_Comm_split(of_mpich(comm), *color, *key, made);
}
double mpi_wtime_(void) { return MPI_Wtime(); }

}  // extern "C"
