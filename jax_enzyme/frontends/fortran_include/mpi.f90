! MPI's two modules of Fortran, where nobody gives others. They consist of interfaces alone: what is called has the names
! and arguments of mpif.h's functions (`runtime/mpi_fortran.cpp`), a handle is a structure of its number.
module mpi
  implicit none
  public
  include 'mpif.h'
end module

module mpi_f08
  use mpi, i_comm_world => MPI_COMM_WORLD, i_comm_self => MPI_COMM_SELF, i_comm_null => MPI_COMM_NULL, &
    i_group_null => MPI_GROUP_NULL, i_request_null => MPI_REQUEST_NULL, i_datatype_null => MPI_DATATYPE_NULL, &
    i_byte => MPI_BYTE, i_packed => MPI_PACKED, i_character => MPI_CHARACTER, i_integer => MPI_INTEGER, i_logical => MPI_LOGICAL, &
    i_real => MPI_REAL, i_double_precision => MPI_DOUBLE_PRECISION, i_complex => MPI_COMPLEX, &
    i_double_complex => MPI_DOUBLE_COMPLEX, i_real4 => MPI_REAL4, i_real8 => MPI_REAL8, i_complex8 => MPI_COMPLEX8, &
    i_complex16 => MPI_COMPLEX16, i_integer4 => MPI_INTEGER4, i_integer8 => MPI_INTEGER8, i_op_null => MPI_OP_NULL, &
    i_max => MPI_MAX, i_min => MPI_MIN, i_sum => MPI_SUM, i_prod => MPI_PROD, i_land => MPI_LAND, i_band => MPI_BAND, &
    i_lor => MPI_LOR, i_bor => MPI_BOR, i_maxloc => MPI_MAXLOC, i_minloc => MPI_MINLOC, i_2real => MPI_2REAL, &
    i_2integer => MPI_2INTEGER, i_2double_precision => MPI_2DOUBLE_PRECISION, &
    i_status_ignore => MPI_STATUS_IGNORE, i_statuses_ignore => MPI_STATUSES_IGNORE, &
    i_bottom => MPI_BOTTOM, i_in_place => MPI_IN_PLACE, i_errcodes_ignore => MPI_ERRCODES_IGNORE
  implicit none
  type, bind(C) :: MPI_Comm
    integer :: MPI_VAL
  end type
  type, bind(C) :: MPI_Group
    integer :: MPI_VAL
  end type
  type, bind(C) :: MPI_Request
    integer :: MPI_VAL
  end type
  type, bind(C) :: MPI_Datatype
    integer :: MPI_VAL
  end type
  type, bind(C) :: MPI_Op
    integer :: MPI_VAL
  end type
  type, bind(C) :: MPI_Status
    integer :: count_low, count_high_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR
  end type
  type(MPI_Comm), parameter :: MPI_COMM_WORLD = MPI_Comm(i_comm_world)
  type(MPI_Comm), parameter :: MPI_COMM_SELF = MPI_Comm(i_comm_self)
  type(MPI_Comm), parameter :: MPI_COMM_NULL = MPI_Comm(i_comm_null)
  type(MPI_Group), parameter :: MPI_GROUP_NULL = MPI_Group(i_group_null)
  type(MPI_Request), parameter :: MPI_REQUEST_NULL = MPI_Request(i_request_null)
  type(MPI_Datatype), parameter :: MPI_DATATYPE_NULL = MPI_Datatype(i_datatype_null)
  type(MPI_Datatype), parameter :: MPI_BYTE = MPI_Datatype(i_byte)
  type(MPI_Datatype), parameter :: MPI_PACKED = MPI_Datatype(i_packed)
  type(MPI_Datatype), parameter :: MPI_CHARACTER = MPI_Datatype(i_character)
  type(MPI_Datatype), parameter :: MPI_INTEGER = MPI_Datatype(i_integer)
  type(MPI_Datatype), parameter :: MPI_LOGICAL = MPI_Datatype(i_logical)
  type(MPI_Datatype), parameter :: MPI_REAL = MPI_Datatype(i_real)
  type(MPI_Datatype), parameter :: MPI_DOUBLE_PRECISION = MPI_Datatype(i_double_precision)
  type(MPI_Datatype), parameter :: MPI_COMPLEX = MPI_Datatype(i_complex)
  type(MPI_Datatype), parameter :: MPI_DOUBLE_COMPLEX = MPI_Datatype(i_double_complex)
  type(MPI_Datatype), parameter :: MPI_REAL4 = MPI_Datatype(i_real4)
  type(MPI_Datatype), parameter :: MPI_REAL8 = MPI_Datatype(i_real8)
  type(MPI_Datatype), parameter :: MPI_COMPLEX8 = MPI_Datatype(i_complex8)
  type(MPI_Datatype), parameter :: MPI_COMPLEX16 = MPI_Datatype(i_complex16)
  type(MPI_Datatype), parameter :: MPI_INTEGER4 = MPI_Datatype(i_integer4)
  type(MPI_Datatype), parameter :: MPI_INTEGER8 = MPI_Datatype(i_integer8)
  type(MPI_Datatype), parameter :: MPI_2REAL = MPI_Datatype(i_2real)
  type(MPI_Datatype), parameter :: MPI_2DOUBLE_PRECISION = MPI_Datatype(i_2double_precision)
  type(MPI_Datatype), parameter :: MPI_2INTEGER = MPI_Datatype(i_2integer)
  type(MPI_Op), parameter :: MPI_OP_NULL = MPI_Op(i_op_null)
  type(MPI_Op), parameter :: MPI_MAX = MPI_Op(i_max)
  type(MPI_Op), parameter :: MPI_MIN = MPI_Op(i_min)
  type(MPI_Op), parameter :: MPI_SUM = MPI_Op(i_sum)
  type(MPI_Op), parameter :: MPI_PROD = MPI_Op(i_prod)
  type(MPI_Op), parameter :: MPI_LAND = MPI_Op(i_land)
  type(MPI_Op), parameter :: MPI_BAND = MPI_Op(i_band)
  type(MPI_Op), parameter :: MPI_LOR = MPI_Op(i_lor)
  type(MPI_Op), parameter :: MPI_BOR = MPI_Op(i_bor)
  type(MPI_Op), parameter :: MPI_MINLOC = MPI_Op(i_minloc)
  type(MPI_Op), parameter :: MPI_MAXLOC = MPI_Op(i_maxloc)
  integer :: MPI_BOTTOM, MPI_IN_PLACE, MPI_ERRCODES_IGNORE(1)
  type(MPI_Status) :: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE(1)
  common /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
  common /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false., MPI_ASYNC_PROTECTED_NONBLOCKING = .false.

  interface operator(==)
    logical function je_mpi_same_comm(a, b)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: a, b
    end function
    logical function je_mpi_same_group(a, b)
      import :: MPI_Group
      type(MPI_Group), intent(in) :: a, b
    end function
    logical function je_mpi_same_request(a, b)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: a, b
    end function
    logical function je_mpi_same_datatype(a, b)
      import :: MPI_Datatype
      type(MPI_Datatype), intent(in) :: a, b
    end function
    logical function je_mpi_same_op(a, b)
      import :: MPI_Op
      type(MPI_Op), intent(in) :: a, b
    end function
  end interface
  interface operator(/=)
    logical function je_mpi_other_comm(a, b)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: a, b
    end function
    logical function je_mpi_other_group(a, b)
      import :: MPI_Group
      type(MPI_Group), intent(in) :: a, b
    end function
    logical function je_mpi_other_request(a, b)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: a, b
    end function
    logical function je_mpi_other_datatype(a, b)
      import :: MPI_Datatype
      type(MPI_Datatype), intent(in) :: a, b
    end function
    logical function je_mpi_other_op(a, b)
      import :: MPI_Op
      type(MPI_Op), intent(in) :: a, b
    end function
  end interface

  interface
    subroutine MPI_Init(ierror)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Init_thread(required, provided, ierror)
      integer, intent(in) :: required
      integer, intent(out) :: provided
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Finalize(ierror)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Initialized(flag, ierror)
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Finalized(flag, ierror)
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Abort(comm, errorcode, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: errorcode
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Barrier(comm, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Comm_rank(comm, rank, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out) :: rank
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Comm_size(comm, size, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Comm_dup(comm, newcomm, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Comm), intent(out) :: newcomm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Comm_split(comm, color, key, newcomm, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: color, key
      type(MPI_Comm), intent(out) :: newcomm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Comm_free(comm, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(inout) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Cart_create(comm_old, ndims, dims, periods, reorder, comm_cart, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm_old
      integer, intent(in) :: ndims, dims(*)
      logical, intent(in) :: periods(*), reorder
      type(MPI_Comm), intent(out) :: comm_cart
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Cart_coords(comm, rank, maxdims, coords, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: rank, maxdims
      integer, intent(out) :: coords(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Cart_rank(comm, coords, rank, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: coords(*)
      integer, intent(out) :: rank
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Cart_shift(comm, direction, disp, rank_source, rank_dest, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: direction, disp
      integer, intent(out) :: rank_source, rank_dest
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Cart_get(comm, maxdims, dims, periods, coords, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: maxdims
      integer, intent(out) :: dims(*), coords(*)
      logical, intent(out) :: periods(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Cart_sub(comm, remain_dims, newcomm, ierror)
      import :: MPI_Comm
      type(MPI_Comm), intent(in) :: comm
      logical, intent(in) :: remain_dims(*)
      type(MPI_Comm), intent(out) :: newcomm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Dims_create(nnodes, ndims, dims, ierror)
      integer, intent(in) :: nnodes, ndims
      integer, intent(inout) :: dims(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Send(buf, count, datatype, dest, tag, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ssend(buf, count, datatype, dest, tag, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Rsend(buf, count, datatype, dest, tag, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Recv(buf, count, datatype, source, tag, comm, status, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Status
      !dir$ ignore_tkr(tkr) buf
      type(*) :: buf(*)
      integer, intent(in) :: count, source, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, &
        recvtag, comm, status, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Status
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, dest, sendtag, recvcount, source, recvtag
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, status, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Status
      !dir$ ignore_tkr(tkr) buf
      type(*) :: buf(*)
      integer, intent(in) :: count, dest, sendtag, source, recvtag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    include 'mpi_f08_requests.h'
    include 'mpi_f08_begun.h'
    include 'mpi_f08_packed.h'
    subroutine MPI_Bcast(buffer, count, datatype, root, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) buffer
      type(*) :: buffer(*)
      integer, intent(in) :: count, root
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: count, root
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: recvcounts(*)
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Scan(sendbuf, recvbuf, count, datatype, op, comm, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Exscan(sendbuf, recvbuf, count, datatype, op, comm, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, recvcount, root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, recvcount, root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, recvcounts(*), displs(*), root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcounts(*), displs(*), recvcount, root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcount, recvcounts(*), displs(*)
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, &
        comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Bsend(buf, count, datatype, dest, tag, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Buffer_attach(buffer, size, ierror)
      !dir$ ignore_tkr(tkr) buffer
      type(*) :: buffer(*)
      integer, intent(in) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Buffer_detach(buffer_addr, size, ierror)
      !dir$ ignore_tkr(tkr) buffer_addr
      type(*) :: buffer_addr(*)
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, &
        comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      integer, intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      type(MPI_Datatype), intent(in) :: sendtypes(*), recvtypes(*)
      type(*) :: recvbuf(*)
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Op_create(user_fn, commute, op, ierror)
      import :: MPI_Op
      external :: user_fn
      logical, intent(in) :: commute
      type(MPI_Op), intent(out) :: op
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Op_free(op, ierror)
      import :: MPI_Op
      type(MPI_Op), intent(inout) :: op
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_contiguous(count, oldtype, newtype, ierror)
      import :: MPI_Datatype
      integer, intent(in) :: count
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_vector(count, blocklength, stride, oldtype, newtype, ierror)
      import :: MPI_Datatype
      integer, intent(in) :: count, blocklength, stride
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype, ierror)
      import :: MPI_ADDRESS_KIND, MPI_Datatype
      integer, intent(in) :: count, blocklength
      integer(MPI_ADDRESS_KIND), intent(in) :: stride
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_indexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
      import :: MPI_Datatype
      integer, intent(in) :: count, array_of_blocklengths(*), array_of_displacements(*)
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror)
      import :: MPI_ADDRESS_KIND, MPI_Datatype
      integer, intent(in) :: count, array_of_blocklengths(*)
      integer(MPI_ADDRESS_KIND), intent(in) :: array_of_displacements(*)
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_create_indexed_block(count, blocklength, array_of_displacements, oldtype, newtype, ierror)
      import :: MPI_Datatype
      integer, intent(in) :: count, blocklength, array_of_displacements(*)
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, &
        newtype, ierror)
      import :: MPI_ADDRESS_KIND, MPI_Datatype
      integer, intent(in) :: count, array_of_blocklengths(*)
      integer(MPI_ADDRESS_KIND), intent(in) :: array_of_displacements(*)
      type(MPI_Datatype), intent(in) :: array_of_types(*)
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_create_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, &
        oldtype, newtype, ierror)
      import :: MPI_Datatype
      integer, intent(in) :: ndims, array_of_sizes(*), array_of_subsizes(*), array_of_starts(*), order
      type(MPI_Datatype), intent(in) :: oldtype
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_create_resized(oldtype, lb, extent, newtype, ierror)
      import :: MPI_ADDRESS_KIND, MPI_Datatype
      type(MPI_Datatype), intent(in) :: oldtype
      integer(MPI_ADDRESS_KIND), intent(in) :: lb, extent
      type(MPI_Datatype), intent(out) :: newtype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_commit(datatype, ierror)
      import :: MPI_Datatype
      type(MPI_Datatype), intent(inout) :: datatype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_free(datatype, ierror)
      import :: MPI_Datatype
      type(MPI_Datatype), intent(inout) :: datatype
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_size(datatype, size, ierror)
      import :: MPI_Datatype
      type(MPI_Datatype), intent(in) :: datatype
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Type_get_extent(datatype, lb, extent, ierror)
      import :: MPI_ADDRESS_KIND, MPI_Datatype
      type(MPI_Datatype), intent(in) :: datatype
      integer(MPI_ADDRESS_KIND), intent(out) :: lb, extent
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
end module
