! Heat on a line of points that is split among the processes of MPI, as in heat.c.

!> By how much the squares of end - seen add up, over the points of this process.
subroutine misfit(n, steps, start, conductivity, seen, total)
  use mpi
  implicit none
  integer, intent(in) :: n, steps
  double precision, intent(in) :: start(n), conductivity(n), seen(n)
  double precision, intent(out) :: total
  double precision :: u(0:n + 1)
  integer :: rank, size, left, right, t, error

  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank + 1 < size)
  u = 0
  u(1:n) = start
  do t = 1, steps
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 0, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Sendrecv(u(n), 1, MPI_DOUBLE_PRECISION, right, 1, u(0), 1, MPI_DOUBLE_PRECISION, left, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    u(1:n) = u(1:n) + conductivity*(u(0:n - 1) - 2*u(1:n) + u(2:n + 1))
  end do
  total = sum((u(1:n) - seen)**2)
end subroutine
