module tridiagonal
  use kinds, only: dp
  implicit none
contains
  ! Solves a tridiagonal system by elimination without pivoting; the right-hand side becomes the solution.
  pure subroutine solve(below, diagonal, above, x)
    real(dp), intent(in) :: below(:), diagonal(:), above(:)
    real(dp), intent(inout) :: x(:)
    real(dp) :: factor(size(x)), pivot
    integer :: i
    pivot = diagonal(1)
    x(1) = x(1) / pivot
    do i = 2, size(x)
       factor(i) = above(i - 1) / pivot
       pivot = diagonal(i) - below(i - 1) * factor(i)
       x(i) = (x(i) - below(i - 1) * x(i - 1)) / pivot
    end do
    do i = size(x) - 1, 1, -1
       x(i) = x(i) - factor(i + 1) * x(i + 1)
    end do
  end subroutine solve
end module tridiagonal
