! Arrays that grow by move_alloc: what was memory of one variable is memory of another from then on.
module growing
  implicit none
  type :: stack
    real(8), allocatable :: item(:)
    integer :: filled = 0
  contains
    procedure :: push
  end type
  real(8), allocatable :: pool(:)
contains
  subroutine push(self, x)
    class(stack), intent(inout) :: self
    real(8), intent(in) :: x
    real(8), allocatable :: more(:)
    if (.not. allocated(self%item)) allocate(self%item(1))
    if (self%filled == size(self%item)) then
      allocate(more(2 * self%filled))
      more(:self%filled) = self%item
      call move_alloc(from=more, to=self%item)
    end if
    self%filled = self%filled + 1
    self%item(self%filled) = x
  end subroutine

  subroutine widen(item, n)
    real(8), allocatable, intent(inout) :: item(:)
    integer, intent(in) :: n
    real(8), allocatable :: more(:)
    allocate(more(n))
    more = 0
    if (allocated(item)) more(:size(item)) = item
    call move_alloc(more, item)
  end subroutine
end module

subroutine in_a_loop(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8), allocatable :: a(:), b(:)
  integer :: i, m
  allocate(a(1))
  m = 0
  do i = 1, n
    if (m == size(a)) then
      allocate(b(2 * size(a)))
      b(1:m) = a(1:m)
      call move_alloc(b, a)
    end if
    m = m + 1
    a(m) = x(i)**2
  end do
  y = a(1:m)**2
end

subroutine in_an_argument(n, x, y)
  use growing, only: widen
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8), allocatable :: a(:)
  integer :: i
  do i = 1, n
    call widen(a, i)
    a(i) = x(i)**2
  end do
  y = a**2
end

subroutine in_a_component(n, x, y)
  use growing, only: stack
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  type(stack) :: s
  integer :: i
  do i = 1, n
    call s%push(x(i)**2)
  end do
  y = s%item(:n)**2
end

subroutine in_a_module(n, x, y)
  use growing, only: pool, widen
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8), allocatable :: more(:)
  integer :: i
  allocate(pool(0))
  do i = 1, n
    allocate(more(i))
    more(:i - 1) = pool
    more(i) = x(i)**2
    call move_alloc(more, pool)
  end do
  y = pool**2
end
