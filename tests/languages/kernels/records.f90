! Records that hold pointers beside numbers.
module shapes
  implicit none
  type, abstract :: shape
    real(8) :: s
  contains
    procedure(ar), deferred :: area
    procedure :: twice
  end type
  abstract interface
    real(8) function ar(self); import shape; class(shape), intent(in) :: self; end function
  end interface
  type, extends(shape) :: circle
    real(8) :: r
  contains
    procedure :: area => ca
  end type
  type, extends(shape) :: rect
    real(8) :: a, b
  contains
    procedure :: area => ra
    procedure :: twice => rtwice
  end type
  type holder
    class(shape), allocatable :: p
  end type
contains
  real(8) function ca(self); class(circle), intent(in) :: self; ca = 3.14d0*self%r**2*self%s; end function
  real(8) function ra(self); class(rect), intent(in) :: self; ra = self%a*self%b+self%s; end function
  real(8) function twice(self); class(shape), intent(in) :: self; twice = 2*self%area(); end function
  real(8) function rtwice(self); class(rect), intent(in) :: self; rtwice = 2.5d0*self%area(); end function
end module
subroutine held_shapes(n, x, y)
  use shapes
  integer :: n, i
  real(8) :: x(n), y(n)
  type(holder) :: h(n)
  do i = 1, n
    if (mod(i,2) == 0) then
      allocate(h(i)%p, source=circle(s=x(i), r=x(1)))
    else
      allocate(rect :: h(i)%p)
      select type (q => h(i)%p)
      type is (rect)
        q%a = x(i); q%b = x(n)
      end select
      h(i)%p%s = x(2)**2
    end if
  end do
  do i = 1, n
    y(i) = h(i)%p%twice()
    select type (q => h(i)%p)
    class is (circle)
      y(i) = y(i) + q%r**3
    end select
  end do
end subroutine

module srt
contains
  recursive subroutine qsort(a, p)
    real(8), intent(inout) :: a(:)
    integer, intent(inout) :: p(:)
    integer :: i, j
    real(8) :: piv
    if (size(a) <= 1) return
    piv = a((size(a)+1)/2)
    i = 1; j = size(a)
    do
      do while (a(i) < piv); i = i+1; end do
      do while (piv < a(j)); j = j-1; end do
      if (i >= j) exit
      a([i,j]) = a([j,i])
      p([i,j]) = p([j,i])
      i = i+1; j = j-1
    end do
    call qsort(a(:i-1), p(:i-1))
    call qsort(a(j+1:), p(j+1:))
  end subroutine
end module
subroutine sorted_with_indices(n, x, y)
  use srt
  integer :: n, i, p(n)
  real(8) :: x(n), y(n), a(n)
  a = x; p = [(i, i=1,n)]
  call qsort(a, p)
  y(p) = a*[(real(i,8), i=1,n)]
  y = y + x(p)*a
end subroutine

! The variables that an internal procedure shares are pointers in one record.
subroutine shared_variables(n, x, y)
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: acc, tbl(n), h
  integer :: cnt
  cnt = 0; acc = 0; h = x(n)
  call walk(1)
  tbl = [x(2:n), acc]
  call relax(3)
  y = tbl*cnt
contains
  recursive subroutine walk(i)
    integer, intent(in) :: i
    if (i > n) return
    cnt = cnt + 1
    acc = acc*h + x(i)
    call walk(2*i)
    call walk(2*i+1)
  end subroutine
  subroutine relax(k)
    integer, intent(in) :: k
    integer :: j
    real(8) :: old(size(tbl))
    do j = 1, k
      old = tbl
      tbl(2:n-1) = 0.5d0*(old(:n-2) + old(3:)) + h*f(old(2:n-1))
    end do
  end subroutine
  elemental real(8) function f(t)
    real(8), intent(in) :: t
    f = t**2/(1 + t**2)*acc
  end function
end subroutine

! Pivoting by a routine whose result is an integer, of numbers that vary.
subroutine pivoted(n, x, y)
  implicit none
  integer :: n, i, k
  real(8) :: x(n), y(n), w(n)
  integer, external :: idamax
  w = x
  do i = 1, n
    k = idamax(n - i + 1, w(i), 1) + i - 1
    w([i, k]) = w([k, i])
    y(i) = w(i)*w(n)
  end do
end subroutine
