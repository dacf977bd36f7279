! Of module mpi_f08 (mpi.f90): calls of all processes that are begun.
    subroutine MPI_Ibarrier(comm, request, ierror)
      import :: MPI_Comm, MPI_Request
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ibcast(buffer, count, datatype, root, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buffer
      type(*) :: buffer(*)
      integer, intent(in) :: count, root
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: count, root
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: count
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ireduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: recvcounts(*)
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: recvcount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Op), intent(in) :: op
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Igather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &
        request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcount, recvcount, root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Iscatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, &
        request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcount, recvcount, root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcount, recvcount
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Igatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, &
        root, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcount, recvcounts(*), displs(*), root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Iscatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, &
        root, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcounts(*), displs(*), recvcount, root
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, &
        comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcount, recvcounts(*), displs(*)
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ialltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, &
        recvtype, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) sendbuf, recvbuf
      type(*), intent(in) :: sendbuf(*)
      type(*) :: recvbuf(*)
      integer, intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      type(MPI_Datatype), intent(in) :: sendtype, recvtype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
