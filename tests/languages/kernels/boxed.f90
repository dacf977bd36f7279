module anything
  implicit none
  type pair
    real(8) :: a, b
  end type
  type box
    class(*), allocatable :: held
  end type
end module

subroutine boxed(n, x, y)
  use anything
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  type(box) :: boxes(n)
  do i = 1, n
    if (mod(i, 3) == 0) then
      boxes(i)%held = x(i) * x(1)
    else if (mod(i, 3) == 1) then
      boxes(i)%held = pair(x(i), x(1))
    else
      boxes(i)%held = int(i, 8)
    end if
  end do
  boxes(1)%held = x(2)**2
  do i = 1, n
    select type (held => boxes(i)%held)
    type is (integer(8))
      y(i) = held * x(i)
    type is (real(8))
      y(i) = 3 * held
    type is (pair)
      y(i) = held%a * held%b
    end select
  end do
end subroutine
