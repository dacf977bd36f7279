! Interfaces of what packs: mpi.f90.
    subroutine MPI_Pack(inbuf, incount, datatype, outbuf, outsize, position, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) inbuf, outbuf
      type(*), intent(in) :: inbuf(*)
      type(*) :: outbuf(*)
      integer, intent(in) :: incount, outsize
      type(MPI_Datatype), intent(in) :: datatype
      integer, intent(inout) :: position
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm, ierror)
      import :: MPI_Comm, MPI_Datatype
      !dir$ ignore_tkr(tkr) inbuf, outbuf
      type(*), intent(in) :: inbuf(*)
      type(*) :: outbuf(*)
      integer, intent(in) :: insize, outcount
      integer, intent(inout) :: position
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Pack_size(incount, datatype, comm, size, ierror)
      import :: MPI_Comm, MPI_Datatype
      integer, intent(in) :: incount
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
