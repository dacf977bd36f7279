! Arrays whose memory the procedure exchanges: allocatable ones and pointers.
module exchanged
  implicit none
contains
  subroutine grown(x, y)
    real(8), allocatable, intent(inout) :: x(:)
    complex(8), allocatable, intent(out) :: y(:, :)
    real(8), allocatable :: t(:)
    integer :: i
    x = [x, x(1) * x(2)]
    allocate (t(size(x) + 1))
    t(1) = sin(x(size(x)))
    t(2:) = x
    call move_alloc(t, x)
    allocate (y(2, size(x)))
    do i = 1, size(x)
      y(1, i) = cmplx(x(i), x(i)**2, 8)
      y(2, i) = conjg(y(1, i)) * 2
    end do
  end subroutine

  subroutine led(x, here, there, every)
    real(8), pointer, intent(in) :: x(:)
    real(8), pointer :: here(:), there(:), every(:), all(:)
    here = x * x
    every = x
    allocate (all(2 * size(x)))
    all = [x, exp(x)]
    there => all(size(x) + 1:)
    if (x(1) < 0) every => all(::2)
    if (x(1) < -1) nullify (every)
  end subroutine

  function sines(x) result(y)
    real(8), intent(in) :: x(:)
    real(8), allocatable :: y(:)
    y = sin(x)
  end function
end module
