/* The three binary interfaces of MPI: what a handle is, and the constants that rules need. Handles are integers in
   MPICH (and what is compatible with it), addresses of the library's variables in Open MPI, small constant addresses in
   the standard interface of MPI 5. */

extern void *malloc(unsigned long);
extern void *calloc(unsigned long, unsigned long);
extern void free(void *);
extern int dprintf(int file, const char *format, ...);
extern int usleep(unsigned microseconds);
extern int sched_yield(void);
extern char *getenv(const char *name);
extern double atof(const char *text);
extern void _exit(int code);
extern void *je_arena_allocate(void *arena, long bytes);

#if defined(ABI_mpich)

typedef int handle;
struct je_mpi_status {
  int count[2], source, tag, error;
};
#define JE_IN_PLACE ((void *)-1)
#define JE_NO_STATUS ((struct je_mpi_status *)1)
#define JE_ANY_SOURCE (-2)
#define JE_ANY_TAG (-1)
#define JE_PROC_NULL (-1)
#define JE_MAX 0x58000001
#define JE_MIN 0x58000002
#define JE_SUM 0x58000003
#define JE_WORLD 0x44000000
#define JE_NO_COMM 0x04000000
#define JE_NO_REQUEST 0x2c000000
#define JE_UNDEFINED (-32766)
#define JE_CART 2
#define JE_INT 0x4c000405
#define JE_s 0x4c00040a
#define JE_d 0x4c00080b
#define JE_c 0x4c000840
#define JE_z 0x4c001041

#elif defined(ABI_openmpi)

typedef void *handle;
struct je_mpi_status {
  int source, tag, error, cancelled;
  unsigned long count;
};
extern char ompi_mpi_op_max[], ompi_mpi_op_min[], ompi_mpi_op_sum[], ompi_mpi_int[], ompi_mpi_float[],
    ompi_mpi_double[], ompi_mpi_c_float_complex[], ompi_mpi_c_double_complex[], ompi_mpi_comm_world[],
    ompi_mpi_comm_null[], ompi_request_null[];
#define JE_IN_PLACE ((void *)1)
#define JE_NO_STATUS ((struct je_mpi_status *)0)
#define JE_ANY_SOURCE (-1)
#define JE_ANY_TAG (-1)
#define JE_PROC_NULL (-2)
#define JE_MAX ((handle)ompi_mpi_op_max)
#define JE_MIN ((handle)ompi_mpi_op_min)
#define JE_SUM ((handle)ompi_mpi_op_sum)
#define JE_WORLD ((handle)ompi_mpi_comm_world)
#define JE_NO_COMM ((handle)ompi_mpi_comm_null)
#define JE_NO_REQUEST ((handle)ompi_request_null)
#define JE_UNDEFINED (-32766)
#define JE_CART 1
#define JE_INT ((handle)ompi_mpi_int)
#define JE_s ((handle)ompi_mpi_float)
#define JE_d ((handle)ompi_mpi_double)
#define JE_c ((handle)ompi_mpi_c_float_complex)
#define JE_z ((handle)ompi_mpi_c_double_complex)

#elif defined(ABI_standard)

typedef void *handle;
struct je_mpi_status {
  int source, tag, error, internal[5];
};
#define JE_IN_PLACE ((void *)1)
#define JE_NO_STATUS ((struct je_mpi_status *)0)
#define JE_ANY_SOURCE (-1)
#define JE_ANY_TAG (-2)
#define JE_PROC_NULL (-3)
#define JE_MAX ((handle)0x23)
#define JE_MIN ((handle)0x22)
#define JE_SUM ((handle)0x21)
#define JE_WORLD ((handle)0x101)
#define JE_NO_COMM ((handle)0x100)
#define JE_NO_REQUEST ((handle)0x180)
#define JE_UNDEFINED (-32766)
#define JE_CART 211
#define JE_INT ((handle)0x209)
#define JE_s ((handle)0x210)
#define JE_d ((handle)0x214)
#define JE_c ((handle)0x212)
#define JE_z ((handle)0x216)

#endif

extern int MPI_Initialized(int *flag);
extern int MPI_Abort(handle comm, int code);
extern int MPI_Comm_rank(handle comm, int *rank);
extern int MPI_Comm_size(handle comm, int *size);
extern int MPI_Comm_split(handle comm, int color, int key, handle *made);
extern int MPI_Comm_free(handle *comm);
extern int MPI_Get_count(const struct je_mpi_status *status, handle type, int *count);
extern int MPI_Send(const void *buf, int count, handle type, int to, int tag, handle comm);
extern int MPI_Recv(void *buf, int count, handle type, int from, int tag, handle comm, struct je_mpi_status *status);
extern int MPI_Isend(const void *buf, int count, handle type, int to, int tag, handle comm, handle *request);
extern int MPI_Irecv(void *buf, int count, handle type, int from, int tag, handle comm, handle *request);
extern double MPI_Wtime(void);
extern int MPI_Wait(handle *request, struct je_mpi_status *status);
extern int MPI_Waitany(int count, handle *requests, int *index, struct je_mpi_status *status);
extern int MPI_Waitsome(int count, handle *requests, int *many, int *indices, struct je_mpi_status *statuses);
extern int MPI_Test(handle *request, int *flag, struct je_mpi_status *status);
extern int MPI_Testany(int count, handle *requests, int *index, int *flag, struct je_mpi_status *status);
extern int MPI_Testsome(int count, handle *requests, int *many, int *indices, struct je_mpi_status *statuses);
extern int MPI_Testall(int count, handle *requests, int *flag, struct je_mpi_status *statuses);
extern int MPI_Request_get_status(handle request, int *flag, struct je_mpi_status *status);
extern int MPI_Sendrecv(const void *out, int out_count, handle out_type, int to, int out_tag, void *in, int in_count,
                        handle in_type, int from, int in_tag, handle comm, struct je_mpi_status *status);
extern int MPI_Sendrecv_replace(void *buf, int count, handle type, int to, int out_tag, int from, int in_tag,
                                handle comm, struct je_mpi_status *status);
extern int MPI_Bcast(void *buf, int count, handle type, int root, handle comm);
extern int MPI_Reduce(const void *out, void *in, int count, handle type, handle op, int root, handle comm);
extern int MPI_Allreduce(const void *out, void *in, int count, handle type, handle op, handle comm);
extern int MPI_Reduce_scatter_block(const void *out, void *in, int count, handle type, handle op, handle comm);
extern int MPI_Reduce_scatter(const void *out, void *in, const int *counts, handle type, handle op, handle comm);
extern int MPI_Scan(const void *out, void *in, int count, handle type, handle op, handle comm);
extern int MPI_Exscan(const void *out, void *in, int count, handle type, handle op, handle comm);
extern int MPI_Gather(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type, int root,
                      handle comm);
extern int MPI_Scatter(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                       int root, handle comm);
extern int MPI_Allgather(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                         handle comm);
extern int MPI_Gatherv(const void *out, int out_count, handle out_type, void *in, const int *counts, const int *starts,
                       handle in_type, int root, handle comm);
extern int MPI_Scatterv(const void *out, const int *counts, const int *starts, handle out_type, void *in, int in_count,
                        handle in_type, int root, handle comm);
extern int MPI_Allgatherv(const void *out, int out_count, handle out_type, void *in, const int *counts,
                          const int *starts, handle in_type, handle comm);
extern int MPI_Alltoallv(const void *out, const int *out_counts, const int *out_starts, handle out_type, void *in,
                         const int *counts, const int *starts, handle in_type, handle comm);
extern int MPI_Alltoall(const void *out, int out_count, handle out_type, void *in, int in_count, handle in_type,
                        handle comm);
