! As heat of kernels.c for one step: halos are exchanged, and all processes have the sum of the squares of their points.
! The parameters are those of MPICH's mpif.h.
subroutine fortran(n, x, y)
  integer, parameter :: world = int(z'44000000'), double = int(z'4C00081F'), sum_ = int(z'58000003'), nobody = -1
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: u(0:n + 1), total
  integer :: rank, size, left, right, error, status(5), statuses(5, 2), requests(2), bottom, in_place, ignored(5)
  common /mpipriv1/ bottom, in_place, ignored
  call mpi_comm_rank(world, rank, error)
  call mpi_comm_size(world, size, error)
  left = merge(rank - 1, nobody, rank > 0)
  right = merge(rank + 1, nobody, rank + 1 < size)
  u = 0
  u(1:n) = x
  call mpi_sendrecv(u(n), 1, double, right, 1, u(0), 1, double, left, 1, world, status, error)
  call mpi_irecv(u(n + 1), 1, double, right, 2, world, requests(1), error)
  call mpi_isend(u(1), 1, double, left, 2, world, requests(2), error)
  total = sum(u(1:n)**2)
  call mpi_allreduce(in_place, total, 1, double, sum_, world, error)
  call mpi_waitall(2, requests, statuses, error)
  y = total * u(1:n) + u(0:n - 1) * u(2:n + 1)
end subroutine

! A column to the right and two columns of a part to the left, as columns of kernels.c, by derived datatypes.
subroutine fortran_types(n, x, y)
  use mpi_f08
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: u(4, n)
  integer :: rank, size, left, right
  type(MPI_Datatype) :: row
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  left = modulo(rank - 1, size)
  right = modulo(rank + 1, size)
  call MPI_Type_vector(n, 1, 4, MPI_DOUBLE_PRECISION, row)
  call MPI_Type_commit(row)
  u = 0
  u(1, :) = x**2
  u(3, :) = x
  call MPI_Irecv(u(2, 1), 1, row, left, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(u(1, 1), 1, row, right, 3, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Sendrecv(u(3, 1), 1, row, left, 4, u(4, 1), 1, row, right, 4, MPI_COMM_WORLD, status)
  if (.not. (row == MPI_DATATYPE_NULL)) call MPI_Type_free(row)
  y = u(2, :)*x + u(4, :)**3
end subroutine

! Sums by the old module, a scalar in place, and what a persistent request brings.
subroutine fortran_totals(n, x, y)
  use mpi
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: total, before(n)
  integer :: rank, size, error, requests(2)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Recv_init(before, n, MPI_REAL8, modulo(rank - 1, size), 0, MPI_COMM_WORLD, requests(1), error)
  call MPI_Send_init(x, n, MPI_REAL8, modulo(rank + 1, size), 0, MPI_COMM_WORLD, requests(2), error)
  call MPI_Startall(2, requests, error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  total = sum(x**2)
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, error)
  y = total*x*before
end subroutine

! The first of two messages that comes, which is counted from 1, and what is asked for; parts of a product; a block of the
! first process's that stays in place.
subroutine fortran_any(n, x, y)
  use mpi_f08
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: came(n), own(n), block(n), part
  integer :: rank, size, at
  logical :: gone
  type(MPI_Request) :: requests(2), sent
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  requests(1) = MPI_REQUEST_NULL
  call MPI_Irecv(came, n, MPI_DOUBLE_PRECISION, modulo(rank - 1, size), 1, MPI_COMM_WORLD, requests(2))
  call MPI_Issend(x, n, MPI_DOUBLE_PRECISION, modulo(rank + 1, size), 1, MPI_COMM_WORLD, sent)
  call MPI_Waitany(2, requests, at, MPI_STATUS_IGNORE)
  gone = .false.
  do while (.not. gone)
    call MPI_Test(sent, gone, MPI_STATUS_IGNORE)
  end do
  own = x
  call MPI_Reduce_scatter_block(MPI_IN_PLACE, own, 1, MPI_DOUBLE_PRECISION, MPI_PROD, MPI_COMM_WORLD)
  block = x(1)
  if (rank == 0) then
    call MPI_Scatter(block, 1, MPI_DOUBLE_PRECISION, MPI_IN_PLACE, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
    part = block(1)
  else
    call MPI_Scatter(block, 1, MPI_DOUBLE_PRECISION, part, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end if
  call MPI_Bcast(own(2), 1, MPI_DOUBLE_PRECISION, size - 1, MPI_COMM_WORLD)
  block(2) = x(1)
  call MPI_Bcast(block(2), 1, MPI_DOUBLE_PRECISION, size - 1, MPI_COMM_WORLD)
  y = came**2*x*(at - 1) + own(1) + part*block(2)
end subroutine

! The least of all processes, and what stands beside it.
subroutine fortran_located(n, x, y)
  implicit none
  include 'mpif.h'
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: own(2, n), best(2, n)
  integer :: error
  own(1, :) = x**2
  own(2, :) = 3 * x
  call MPI_Allreduce(own, best, n, MPI_2DOUBLE_PRECISION, MPI_MINLOC, MPI_COMM_WORLD, error)
  y = best(1, :) * best(2, :) * x
end subroutine

! Begun for all processes.
subroutine fortran_begun(n, x, y)
  use mpi_f08
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: own, total, first(n), all(n, 8)
  integer :: processes
  type(MPI_Request) :: requests(4)
  call MPI_Comm_size(MPI_COMM_WORLD, processes)
  own = sum(exp(x))
  first = x
  call MPI_Iallreduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1))
  call MPI_Iallgather(x, n, MPI_DOUBLE_PRECISION, all, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, requests(2))
  call MPI_Ibcast(first, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, requests(3))
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(4))
  call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
  y = total * first * sum(all(:, 1:processes), dim=2)
end subroutine

! By an operation of its own.
module operations
contains
  subroutine hypotenuse(one, other, n, datatype)
    integer :: n, datatype
    real(8) :: one(n), other(n)
    other = sqrt(one**2 + other**2)
  end subroutine
end module
subroutine fortran_combined(n, x, y)
  use mpi
  use operations
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  integer :: norm, error
  call MPI_Op_create(hypotenuse, .true., norm, error)
  call MPI_Allreduce(x, y, n, MPI_DOUBLE_PRECISION, norm, MPI_COMM_WORLD, error)
  call MPI_Op_free(norm, error)
  y = y*x
end subroutine

! Integers and numbers of the process before, packed.
subroutine fortran_packed(n, x, y)
  use mpi_f08
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  type(MPI_Status) :: status
  integer :: rank, size, at, integers, numbers, given(2), taken(2)
  integer(1), allocatable :: out(:), in(:)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Pack_size(2, MPI_INTEGER, MPI_COMM_WORLD, integers)
  call MPI_Pack_size(n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, numbers)
  allocate(out(integers + numbers), in(integers + numbers))
  given = [rank - 5, 3]
  at = 0
  call MPI_Pack(given, 2, MPI_INTEGER, out, integers + numbers, at, MPI_COMM_WORLD)
  call MPI_Pack(x**2, n, MPI_DOUBLE_PRECISION, out, integers + numbers, at, MPI_COMM_WORLD)
  call MPI_Sendrecv(out, at, MPI_PACKED, mod(rank + 1, size), 1, in, integers + numbers, MPI_PACKED, &
                    mod(rank + size - 1, size), 1, MPI_COMM_WORLD, status)
  call MPI_Get_count(status, MPI_PACKED, numbers)
  at = 0
  call MPI_Unpack(in, numbers, at, taken, 2, MPI_INTEGER, MPI_COMM_WORLD)
  call MPI_Unpack(in, numbers, at, y, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
  y = y*taken(2)*x + taken(1)*sin(x)
end subroutine
