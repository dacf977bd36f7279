! Of module mpi_f08 (mpi.f90): messages that are begun, waited for, asked for.
    subroutine MPI_Isend(buf, count, datatype, dest, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Irecv(buf, count, datatype, source, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*) :: buf(*)
      integer, intent(in) :: count, source, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Send_init(buf, count, datatype, dest, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Ssend_init(buf, count, datatype, dest, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Rsend_init(buf, count, datatype, dest, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Irsend(buf, count, datatype, dest, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Recv_init(buf, count, datatype, source, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*) :: buf(*)
      integer, intent(in) :: count, source, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Start(request, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(inout) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Startall(count, array_of_requests, ierror)
      import :: MPI_Request
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Wait(request, status, ierror)
      import :: MPI_Request, MPI_Status
      type(MPI_Request), intent(inout) :: request
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Waitall(count, array_of_requests, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Request_free(request, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(inout) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Get_count(status, datatype, count, ierror)
      import :: MPI_Datatype, MPI_Status
      type(MPI_Status) :: status
      type(MPI_Datatype), intent(in) :: datatype
      integer, intent(out) :: count
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Issend(buf, count, datatype, dest, tag, comm, request, ierror)
      import :: MPI_Comm, MPI_Datatype, MPI_Request
      !dir$ ignore_tkr(tkr) buf
      type(*), intent(in) :: buf(*)
      integer, intent(in) :: count, dest, tag
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Request), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Test(request, flag, status, ierror)
      import :: MPI_Request, MPI_Status
      type(MPI_Request), intent(inout) :: request
      logical, intent(out) :: flag
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Testall(count, array_of_requests, flag, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      logical, intent(out) :: flag
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Waitany(count, array_of_requests, indx, status, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      integer, intent(out) :: indx
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Testany(count, array_of_requests, indx, flag, status, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: count
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      integer, intent(out) :: indx
      logical, intent(out) :: flag
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Waitsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: incount
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      integer, intent(out) :: outcount, array_of_indices(*)
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, ierror)
      import :: MPI_Request, MPI_Status
      integer, intent(in) :: incount
      type(MPI_Request), intent(inout) :: array_of_requests(*)
      integer, intent(out) :: outcount, array_of_indices(*)
      type(MPI_Status) :: array_of_statuses(*)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Probe(source, tag, comm, status, ierror)
      import :: MPI_Comm, MPI_Status
      integer, intent(in) :: source, tag
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Iprobe(source, tag, comm, flag, status, ierror)
      import :: MPI_Comm, MPI_Status
      integer, intent(in) :: source, tag
      type(MPI_Comm), intent(in) :: comm
      logical, intent(out) :: flag
      type(MPI_Status) :: status
      integer, optional, intent(out) :: ierror
    end subroutine
