subroutine heat(n, steps, alpha, u, res) bind(c)
  use iso_c_binding, only: c_double, c_int
  integer(c_int), value :: n, steps
  real(c_double), value :: alpha
  real(c_double), intent(in) :: u(n)
  real(c_double), intent(out) :: res(n)
  real(c_double) :: before(n)
  integer :: s
  res = u
  do s = 1, steps
     before = res
     associate (mid => before(2:n-1))
        res(2:n-1) = mid + alpha * (1 + 0.1_c_double * mid**2) * (before(1:n-2) - 2 * mid + before(3:n))
     end associate
  end do
end subroutine heat
