// MPI's functions as Fortran calls them, arguments by reference and the error last, by those of C, which have rules. Their
// handles are those of MPICH, where Fortran's and C's are the same numbers; another MPI's communicator ends the program.
// `mpi_f08` calls them as well (`fortran_include/mpi.f90`): its handles are structures of one number, and there may be
// nowhere for the error.
// provides: mpi_(send|ssend|rsend|recv|sendrecv|sendrecv_replace|isend|issend|irecv|bcast|reduce|allreduce)_
// provides: mpi_(wait|waitall|waitany|waitsome|test|testall|testany|testsome|probe|iprobe)_
// provides: mpi_(scan|exscan|reduce_scatter|reduce_scatter_block|gather|scatter|allgather|alltoall)_
// provides: mpi_(gatherv|scatterv|allgatherv|alltoallv|barrier|ibarrier|ibcast|ireduce|iallreduce|ireduce_scatter)_
// provides: mpi_(ireduce_scatter_block|igather|iscatter|iallgather|ialltoall|igatherv|iscatterv|iallgatherv|ialltoallv)_
// provides: mpi_(irsend|send_init|ssend_init|rsend_init|recv_init|start|startall|request_free|get_count|abort|initialized|finalized|wtime|wtick)_
// provides: mpi_comm_(rank|size|dup|split|free)_ mpi_cart_(create|coords|rank|shift|get|sub)_ mpi_dims_create_
// provides: mpi_type_(contiguous|vector|create_hvector|indexed|create_indexed_block|create_struct|create_subarray)_
// provides: mpi_(pack|unpack|pack_size)_
// provides: mpi_(bsend|buffer_attach|buffer_detach|op_create|op_free|alltoallw)_
// provides: mpi_type_(create_hindexed|create_resized|commit|free|size|get_extent)_ je_mpi_(same|other)_(comm|group|request|datatype|op)_
extern "C" {

// mpif.h: MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE. Fortran tells them by
// their addresses.
struct Private {
  int bottom, in_place, ignored[5];
};
struct Privates {
  int ignored[5], errors[1];
};
__attribute__((weak)) Private mpipriv1_;
__attribute__((weak)) Privates mpipriv2_;
void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn));

static int of_mpich(const int *comm) {
  if (!(*comm & 0x04000000)) __assert_fail("a communicator of MPICH: Fortran's calls of another MPI", "", 0, "");
  return *comm;
}
static void *given(const void *buffer) {
  return buffer == &mpipriv1_.in_place ? reinterpret_cast<void *>(-1L) : const_cast<void *>(buffer);
}
static void *told(void *status) {
  return status == mpipriv1_.ignored || status == mpipriv2_.ignored ? reinterpret_cast<void *>(1L) : status;
}

#define IN const void *
#define OUT void *
#define INT const int *
#define LONG const long *
static void tell(int *error, int code) {
  if (error) *error = code;
}

int MPI_Recv(OUT, int, int, int, int, int, OUT);
int MPI_Sendrecv(IN, int, int, int, int, OUT, int, int, int, int, int, OUT);
int MPI_Irecv(OUT, int, int, int, int, int, int *);
int MPI_Wait(int *, OUT);
int MPI_Waitall(int, int *, OUT);
int MPI_Waitany(int, int *, int *, OUT);
int MPI_Test(int *, int *, OUT);
int MPI_Testall(int, int *, int *, OUT);
int MPI_Testany(int, int *, int *, int *, OUT);
int MPI_Probe(int, int, int, OUT);
int MPI_Iprobe(int, int, int, int *, OUT);
int MPI_Reduce_scatter(IN, OUT, INT, int, int, int);
int MPI_Alltoallw(IN, INT, INT, INT, OUT, INT, INT, INT, int);
int MPI_Pack(IN, int, int, OUT, int, int *, int);
int MPI_Unpack(IN, int, int *, OUT, int, int, int);
int MPI_Pack_size(int, int, int, int *);
int MPI_Buffer_attach(OUT, int);
int MPI_Buffer_detach(OUT, int *);
int MPI_Op_create(void (*)(OUT, OUT, int *, int *), int, int *);
int MPI_Op_free(int *);
int MPI_Bcast(OUT, int, int, int, int);
int MPI_Reduce(IN, OUT, int, int, int, int, int);
int MPI_Gatherv(IN, int, int, OUT, INT, INT, int, int, int);
int MPI_Scatterv(IN, INT, INT, int, OUT, int, int, int, int);
int MPI_Allgatherv(IN, int, int, OUT, INT, INT, int, int);
int MPI_Alltoallv(IN, INT, INT, int, OUT, INT, INT, int, int);
int MPI_Sendrecv_replace(OUT, int, int, int, int, int, int, int, OUT);
int MPI_Recv_init(OUT, int, int, int, int, int, int *);
int MPI_Start(int *);
int MPI_Startall(int, int *);
int MPI_Request_free(int *);
int MPI_Get_count(IN, int, int *);
int MPI_Abort(int, int);
int MPI_Initialized(int *);
int MPI_Finalized(int *);
int MPI_Barrier(int);
int MPI_Comm_rank(int, int *);
int MPI_Comm_size(int, int *);
int MPI_Comm_dup(int, int *);
int MPI_Comm_split(int, int, int, int *);
int MPI_Comm_free(int *);
int MPI_Cart_create(int, int, INT, INT, int, int *);
int MPI_Cart_coords(int, int, int, int *);
int MPI_Cart_rank(int, INT, int *);
int MPI_Cart_shift(int, int, int, int *, int *);
int MPI_Cart_get(int, int, int *, int *, int *);
int MPI_Cart_sub(int, INT, int *);
int MPI_Dims_create(int, int, int *);
int MPI_Type_contiguous(int, int, int *);
int MPI_Type_vector(int, int, int, int, int *);
int MPI_Type_create_hvector(int, int, long, int, int *);
int MPI_Type_indexed(int, INT, INT, int, int *);
int MPI_Type_create_hindexed(int, INT, LONG, int, int *);
int MPI_Type_get_extent(int, long *, long *);
int MPI_Type_create_indexed_block(int, int, INT, int, int *);
int MPI_Type_create_struct(int, INT, LONG, INT, int *);
int MPI_Type_create_subarray(int, INT, INT, INT, int, int, int *);
int MPI_Type_create_resized(int, long, long, int *);
int MPI_Type_commit(int *);
int MPI_Type_free(int *);
int MPI_Type_size(int, int *);
double MPI_Wtime(void);
double MPI_Wtick(void);

#define SEND(name, of) \
  int of(IN, int, int, int, int, int); \
  void name(IN x, INT n, INT type, INT to, INT tag, INT comm, int *error) { \
    tell(error, of(x, *n, *type, *to, *tag, of_mpich(comm))); \
  }
SEND(mpi_send_, MPI_Send)
SEND(mpi_ssend_, MPI_Ssend)
SEND(mpi_rsend_, MPI_Rsend)
SEND(mpi_bsend_, MPI_Bsend)
void mpi_buffer_attach_(OUT buffer, INT bytes, int *error) { tell(error, MPI_Buffer_attach(buffer, *bytes)); }
// The address is of no use to Fortran.
void mpi_buffer_detach_(OUT, int *bytes, int *error) {
  void *buffer;
  tell(error, MPI_Buffer_detach(&buffer, bytes));
}

void mpi_pack_(IN x, INT n, INT type, OUT packed, INT size, int *position, INT comm, int *error) {
  tell(error, MPI_Pack(x, *n, *type, packed, *size, position, of_mpich(comm)));
}
void mpi_unpack_(IN packed, INT size, int *position, OUT y, INT n, INT type, INT comm, int *error) {
  tell(error, MPI_Unpack(packed, *size, position, y, *n, *type, of_mpich(comm)));
}
void mpi_pack_size_(INT n, INT type, INT comm, int *size, int *error) {
  tell(error, MPI_Pack_size(*n, *type, of_mpich(comm), size));
}

#define REDUCE(name, of) \
  int of(IN, OUT, int, int, int, int); \
  void name(IN x, OUT y, INT n, INT type, INT op, INT comm, int *error) { \
    tell(error, of(given(x), y, *n, *type, *op, of_mpich(comm))); \
  }
REDUCE(mpi_allreduce_, MPI_Allreduce)
REDUCE(mpi_scan_, MPI_Scan)
REDUCE(mpi_exscan_, MPI_Exscan)
REDUCE(mpi_reduce_scatter_block_, MPI_Reduce_scatter_block)
void mpi_reduce_scatter_(IN x, OUT y, INT counts, INT type, INT op, INT comm, int *error) {
  tell(error, MPI_Reduce_scatter(given(x), y, counts, *type, *op, of_mpich(comm)));
}

#define EXCHANGE(name, of) \
  int of(IN, int, int, OUT, int, int, int); \
  void name(IN x, INT n, INT type, OUT y, INT m, INT other, INT comm, int *error) { \
    tell(error, of(given(x), *n, *type, y, *m, *other, of_mpich(comm))); \
  }
EXCHANGE(mpi_allgather_, MPI_Allgather)
EXCHANGE(mpi_alltoall_, MPI_Alltoall)

#define ROOTED(name, of) \
  int of(IN, int, int, OUT, int, int, int, int); \
  void name(IN x, INT n, INT type, OUT y, INT m, INT other, INT root, INT comm, int *error) { \
    tell(error, of(given(x), *n, *type, given(y), *m, *other, *root, of_mpich(comm))); \
  }
ROOTED(mpi_gather_, MPI_Gather)
ROOTED(mpi_scatter_, MPI_Scatter)

void mpi_recv_(OUT y, INT n, INT type, INT from, INT tag, INT comm, OUT status, int *error) {
  tell(error, MPI_Recv(y, *n, *type, *from, *tag, of_mpich(comm), told(status)));
}
void mpi_sendrecv_(IN x, INT n, INT type, INT to, INT tag, OUT y, INT m, INT other, INT from, INT its, INT comm,
                   OUT status, int *error) {
  tell(error, MPI_Sendrecv(x, *n, *type, *to, *tag, y, *m, *other, *from, *its, of_mpich(comm), told(status)));
}
#define BEGIN(name, of) \
  int of(IN, int, int, int, int, int, int *); \
  void name(IN x, INT n, INT type, INT to, INT tag, INT comm, int *request, int *error) { \
    tell(error, of(x, *n, *type, *to, *tag, of_mpich(comm), request)); \
  }
BEGIN(mpi_isend_, MPI_Isend)
BEGIN(mpi_issend_, MPI_Issend)
BEGIN(mpi_irsend_, MPI_Irsend)
BEGIN(mpi_send_init_, MPI_Send_init)
BEGIN(mpi_ssend_init_, MPI_Ssend_init)
BEGIN(mpi_rsend_init_, MPI_Rsend_init)
void mpi_irecv_(OUT y, INT n, INT type, INT from, INT tag, INT comm, int *request, int *error) {
  tell(error, MPI_Irecv(y, *n, *type, *from, *tag, of_mpich(comm), request));
}
void mpi_wait_(int *request, OUT status, int *error) { tell(error, MPI_Wait(request, told(status))); }
void mpi_waitall_(INT n, int *requests, OUT statuses, int *error) {
  tell(error, MPI_Waitall(*n, requests, told(statuses)));
}
// Places are counted from 1; that of no request is MPI_UNDEFINED.
static void counted(int *places, int many) {
  for (int i = 0; i < many; i++)
    if (places[i] >= 0) places[i]++;
}
void mpi_waitany_(INT n, int *requests, int *index, OUT status, int *error) {
  tell(error, MPI_Waitany(*n, requests, index, told(status)));
  counted(index, 1);
}
void mpi_test_(int *request, int *flag, OUT status, int *error) {
  tell(error, MPI_Test(request, flag, told(status)));
}
void mpi_testall_(INT n, int *requests, int *flag, OUT statuses, int *error) {
  tell(error, MPI_Testall(*n, requests, flag, told(statuses)));
}
void mpi_testany_(INT n, int *requests, int *index, int *flag, OUT status, int *error) {
  tell(error, MPI_Testany(*n, requests, index, flag, told(status)));
  counted(index, 1);
}
#define SOME(name, of) \
  int of(int, int *, int *, int *, OUT); \
  void name(INT n, int *requests, int *many, int *places, OUT statuses, int *error) { \
    tell(error, of(*n, requests, many, places, told(statuses))); \
    counted(places, *many); \
  }
SOME(mpi_waitsome_, MPI_Waitsome)
SOME(mpi_testsome_, MPI_Testsome)
void mpi_probe_(INT from, INT tag, INT comm, OUT status, int *error) {
  tell(error, MPI_Probe(*from, *tag, of_mpich(comm), told(status)));
}
void mpi_iprobe_(INT from, INT tag, INT comm, int *flag, OUT status, int *error) {
  tell(error, MPI_Iprobe(*from, *tag, of_mpich(comm), flag, told(status)));
}
void mpi_bcast_(OUT x, INT n, INT type, INT root, INT comm, int *error) {
  tell(error, MPI_Bcast(x, *n, *type, *root, of_mpich(comm)));
}
void mpi_reduce_(IN x, OUT y, INT n, INT type, INT op, INT root, INT comm, int *error) {
  tell(error, MPI_Reduce(given(x), y, *n, *type, *op, *root, of_mpich(comm)));
}
void mpi_gatherv_(IN x, INT n, INT type, OUT y, INT m, INT at, INT other, INT root, INT comm, int *error) {
  tell(error, MPI_Gatherv(given(x), *n, *type, y, m, at, *other, *root, of_mpich(comm)));
}
void mpi_scatterv_(IN x, INT n, INT at, INT type, OUT y, INT m, INT other, INT root, INT comm, int *error) {
  tell(error, MPI_Scatterv(x, n, at, *type, given(y), *m, *other, *root, of_mpich(comm)));
}
void mpi_allgatherv_(IN x, INT n, INT type, OUT y, INT m, INT at, INT other, INT comm, int *error) {
  tell(error, MPI_Allgatherv(given(x), *n, *type, y, m, at, *other, of_mpich(comm)));
}
void mpi_alltoallv_(IN x, INT n, INT from, INT type, OUT y, INT m, INT at, INT other, INT comm, int *error) {
  tell(error, MPI_Alltoallv(given(x), n, from, *type, y, m, at, *other, of_mpich(comm)));
}
void mpi_alltoallw_(IN x, INT n, INT from, INT types, OUT y, INT m, INT at, INT others, INT comm, int *error) {
  tell(error, MPI_Alltoallw(given(x), n, from, types, y, m, at, others, of_mpich(comm)));
}
// An operation takes its arguments as one of C does.
void mpi_op_create_(void (*combines)(OUT, OUT, int *, int *), INT commutes, int *made, int *error) {
  tell(error, MPI_Op_create(combines, *commutes, made));
}
void mpi_op_free_(int *op, int *error) { tell(error, MPI_Op_free(op)); }
void mpi_barrier_(INT comm, int *error) { tell(error, MPI_Barrier(of_mpich(comm))); }
void mpi_comm_rank_(INT comm, int *rank, int *error) { tell(error, MPI_Comm_rank(of_mpich(comm), rank)); }
void mpi_comm_size_(INT comm, int *size, int *error) { tell(error, MPI_Comm_size(of_mpich(comm), size)); }
void mpi_comm_dup_(INT comm, int *made, int *error) { tell(error, MPI_Comm_dup(of_mpich(comm), made)); }
void mpi_comm_split_(INT comm, INT color, INT key, int *made, int *error) {
  tell(error, MPI_Comm_split(of_mpich(comm), *color, *key, made));
}
void mpi_sendrecv_replace_(OUT x, INT n, INT type, INT to, INT tag, INT from, INT its, INT comm, OUT status,
                           int *error) {
  tell(error, MPI_Sendrecv_replace(x, *n, *type, *to, *tag, *from, *its, of_mpich(comm), told(status)));
}
void mpi_recv_init_(OUT y, INT n, INT type, INT from, INT tag, INT comm, int *request, int *error) {
  tell(error, MPI_Recv_init(y, *n, *type, *from, *tag, of_mpich(comm), request));
}
void mpi_start_(int *request, int *error) { tell(error, MPI_Start(request)); }
void mpi_startall_(INT n, int *requests, int *error) { tell(error, MPI_Startall(*n, requests)); }
void mpi_request_free_(int *request, int *error) { tell(error, MPI_Request_free(request)); }
void mpi_get_count_(IN status, INT type, int *count, int *error) { tell(error, MPI_Get_count(status, *type, count)); }
void mpi_abort_(INT comm, INT code, int *error) { tell(error, MPI_Abort(of_mpich(comm), *code)); }
void mpi_initialized_(int *answer, int *error) { tell(error, MPI_Initialized(answer)); }
void mpi_finalized_(int *answer, int *error) { tell(error, MPI_Finalized(answer)); }
double mpi_wtime_(void) { return MPI_Wtime(); }
double mpi_wtick_(void) { return MPI_Wtick(); }

// -- calls of all processes that are begun -------------------------------------------------------------------------

int MPI_Ibarrier(int, int *);
int MPI_Ibcast(OUT, int, int, int, int, int *);
int MPI_Ireduce(IN, OUT, int, int, int, int, int, int *);
int MPI_Ireduce_scatter(IN, OUT, INT, int, int, int, int *);
int MPI_Igatherv(IN, int, int, OUT, INT, INT, int, int, int, int *);
int MPI_Iscatterv(IN, INT, INT, int, OUT, int, int, int, int, int *);
int MPI_Iallgatherv(IN, int, int, OUT, INT, INT, int, int, int *);
int MPI_Ialltoallv(IN, INT, INT, int, OUT, INT, INT, int, int, int *);

void mpi_ibarrier_(INT comm, int *request, int *error) { tell(error, MPI_Ibarrier(of_mpich(comm), request)); }
void mpi_ibcast_(OUT x, INT n, INT type, INT root, INT comm, int *request, int *error) {
  tell(error, MPI_Ibcast(x, *n, *type, *root, of_mpich(comm), request));
}
void mpi_ireduce_(IN x, OUT y, INT n, INT type, INT op, INT root, INT comm, int *request, int *error) {
  tell(error, MPI_Ireduce(given(x), y, *n, *type, *op, *root, of_mpich(comm), request));
}
void mpi_ireduce_scatter_(IN x, OUT y, INT counts, INT type, INT op, INT comm, int *request, int *error) {
  tell(error, MPI_Ireduce_scatter(given(x), y, counts, *type, *op, of_mpich(comm), request));
}
#define BEGIN_REDUCE(name, of) \
  int of(IN, OUT, int, int, int, int, int *); \
  void name(IN x, OUT y, INT n, INT type, INT op, INT comm, int *request, int *error) { \
    tell(error, of(given(x), y, *n, *type, *op, of_mpich(comm), request)); \
  }
BEGIN_REDUCE(mpi_iallreduce_, MPI_Iallreduce)
BEGIN_REDUCE(mpi_ireduce_scatter_block_, MPI_Ireduce_scatter_block)
#define BEGIN_EXCHANGE(name, of) \
  int of(IN, int, int, OUT, int, int, int, int *); \
  void name(IN x, INT n, INT type, OUT y, INT m, INT other, INT comm, int *request, int *error) { \
    tell(error, of(given(x), *n, *type, y, *m, *other, of_mpich(comm), request)); \
  }
BEGIN_EXCHANGE(mpi_iallgather_, MPI_Iallgather)
BEGIN_EXCHANGE(mpi_ialltoall_, MPI_Ialltoall)
#define BEGIN_ROOTED(name, of) \
  int of(IN, int, int, OUT, int, int, int, int, int *); \
  void name(IN x, INT n, INT type, OUT y, INT m, INT other, INT root, INT comm, int *request, int *error) { \
    tell(error, of(given(x), *n, *type, given(y), *m, *other, *root, of_mpich(comm), request)); \
  }
BEGIN_ROOTED(mpi_igather_, MPI_Igather)
BEGIN_ROOTED(mpi_iscatter_, MPI_Iscatter)
void mpi_igatherv_(IN x, INT n, INT type, OUT y, INT m, INT at, INT other, INT root, INT comm, int *request,
                   int *error) {
  tell(error, MPI_Igatherv(given(x), *n, *type, y, m, at, *other, *root, of_mpich(comm), request));
}
void mpi_iscatterv_(IN x, INT n, INT at, INT type, OUT y, INT m, INT other, INT root, INT comm, int *request,
                    int *error) {
  tell(error, MPI_Iscatterv(x, n, at, *type, given(y), *m, *other, *root, of_mpich(comm), request));
}
void mpi_iallgatherv_(IN x, INT n, INT type, OUT y, INT m, INT at, INT other, INT comm, int *request, int *error) {
  tell(error, MPI_Iallgatherv(given(x), *n, *type, y, m, at, *other, of_mpich(comm), request));
}
void mpi_ialltoallv_(IN x, INT n, INT from, INT type, OUT y, INT m, INT at, INT other, INT comm, int *request,
                     int *error) {
  tell(error, MPI_Ialltoallv(given(x), n, from, *type, y, m, at, *other, of_mpich(comm), request));
}

// -- grids of processes: a true LOGICAL of flang is 1 --------------------------------------------------------------

void mpi_comm_free_(int *comm, int *error) { tell(error, MPI_Comm_free(comm)); }
void mpi_cart_create_(INT comm, INT n, INT sizes, INT periodic, INT reorder, int *made, int *error) {
  tell(error, MPI_Cart_create(of_mpich(comm), *n, sizes, periodic, *reorder, made));
}
void mpi_cart_coords_(INT comm, INT rank, INT n, int *place, int *error) {
  tell(error, MPI_Cart_coords(of_mpich(comm), *rank, *n, place));
}
void mpi_cart_rank_(INT comm, INT place, int *rank, int *error) {
  tell(error, MPI_Cart_rank(of_mpich(comm), place, rank));
}
void mpi_cart_shift_(INT comm, INT direction, INT by, int *from, int *to, int *error) {
  tell(error, MPI_Cart_shift(of_mpich(comm), *direction, *by, from, to));
}
void mpi_cart_get_(INT comm, INT n, int *sizes, int *periodic, int *place, int *error) {
  tell(error, MPI_Cart_get(of_mpich(comm), *n, sizes, periodic, place));
}
void mpi_cart_sub_(INT comm, INT remain, int *made, int *error) {
  tell(error, MPI_Cart_sub(of_mpich(comm), remain, made));
}
void mpi_dims_create_(INT processes, INT n, int *sizes, int *error) {
  tell(error, MPI_Dims_create(*processes, *n, sizes));
}

// -- derived datatypes ---------------------------------------------------------------------------------------------

void mpi_type_contiguous_(INT n, INT old, int *made, int *error) { tell(error, MPI_Type_contiguous(*n, *old, made)); }
void mpi_type_vector_(INT n, INT length, INT stride, INT old, int *made, int *error) {
  tell(error, MPI_Type_vector(*n, *length, *stride, *old, made));
}
void mpi_type_create_hvector_(INT n, INT length, LONG stride, INT old, int *made, int *error) {
  tell(error, MPI_Type_create_hvector(*n, *length, *stride, *old, made));
}
void mpi_type_indexed_(INT n, INT lengths, INT starts, INT old, int *made, int *error) {
  tell(error, MPI_Type_indexed(*n, lengths, starts, *old, made));
}
void mpi_type_create_hindexed_(INT n, INT lengths, LONG starts, INT old, int *made, int *error) {
  tell(error, MPI_Type_create_hindexed(*n, lengths, starts, *old, made));
}
void mpi_type_create_indexed_block_(INT n, INT length, INT starts, INT old, int *made, int *error) {
  tell(error, MPI_Type_create_indexed_block(*n, *length, starts, *old, made));
}
void mpi_type_create_struct_(INT n, INT lengths, LONG starts, INT olds, int *made, int *error) {
  tell(error, MPI_Type_create_struct(*n, lengths, starts, olds, made));
}
void mpi_type_create_subarray_(INT rank, INT sizes, INT parts, INT starts, INT order, INT old, int *made, int *error) {
  tell(error, MPI_Type_create_subarray(*rank, sizes, parts, starts, *order, *old, made));
}
void mpi_type_create_resized_(INT old, LONG low, LONG extent, int *made, int *error) {
  tell(error, MPI_Type_create_resized(*old, *low, *extent, made));
}
void mpi_type_commit_(int *type, int *error) { tell(error, MPI_Type_commit(type)); }
void mpi_type_free_(int *type, int *error) { tell(error, MPI_Type_free(type)); }
void mpi_type_size_(INT type, int *size, int *error) { tell(error, MPI_Type_size(*type, size)); }
void mpi_type_get_extent_(INT type, long *low, long *extent, int *error) {
  tell(error, MPI_Type_get_extent(*type, low, extent));
}

// -- handles of mpi_f08 --------------------------------------------------------------------------------------------

#define COMPARE(of) \
  int je_mpi_same_##of##_(INT a, INT b) { return *a == *b; } \
  int je_mpi_other_##of##_(INT a, INT b) { return *a != *b; }
COMPARE(comm)
COMPARE(group)
COMPARE(request)
COMPARE(datatype)
COMPARE(op)

}  // extern "C"
