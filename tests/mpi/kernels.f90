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
