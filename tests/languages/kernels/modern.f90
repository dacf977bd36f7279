! Modules, procedures, pointers, control flow and output in Fortran.
module tools
  implicit none
  interface operator(.dot.)
    module procedure mydot
  end interface
contains
  function mydot(a,b) result(r)
    real(8), intent(in) :: a(:), b(:)
    real(8) :: r
    r = sum(a*b)
  end function
  elemental function sq(x) result(r)
    real(8), intent(in) :: x
    real(8) :: r
    r = x*x + 1
  end function
  subroutine axpy_assumed(a, x, y)
    real(8), intent(in) :: a, x(:)
    real(8), intent(inout) :: y(:)
    y = y + a*x
  end subroutine
  function makevec(n, x) result(v)
    integer, intent(in) :: n
    real(8), intent(in) :: x(:)
    real(8), allocatable :: v(:)
    allocate(v(n))
    v = x(1:n)*2
  end function
  recursive function fact(n, x) result(r)
    integer, intent(in) :: n
    real(8), intent(in) :: x
    real(8) :: r
    if (n <= 0) then
      r = 1
    else
      r = x*fact(n-1, x) + n
    end if
  end function
end module

subroutine assumed_shape(n,x,y)
  use tools
  integer :: n
  real(8) :: x(n), y(n)
  y = sq(x)
  call axpy_assumed(x(1), x(1:n:2), y(2:n:2))
  y = y * (x .dot. y)
end subroutine

subroutine moved_and_sourced(n,x,y)
  use tools
  integer :: n
  real(8) :: x(n), y(n)
  real(8), allocatable :: a(:), b(:)
  integer :: st
  a = makevec(n, x)
  allocate(b, source=a)
  b(1) = b(1)*a(2)
  call move_alloc(b, a)
  y = a + fact(4, x(1))
  allocate(b(n), stat=st)
  if (st /= 0) stop 1
  b = 3
  y = y*b
end subroutine

subroutine gathered(n,a,y)
  integer :: n
  real(8) :: a(n,n), y(n), b(n,n), c(n*n)
  integer :: loc(2), i
  loc = maxloc(a)
  y = a(loc(1), :)
  b = cshift(a, 1, dim=2)
  b = b + reshape(a, (/n,n/), order=(/2,1/))
  c = pack(a, .true.)
  b = b + unpack(c, a > 0.5, a)
  y = y + matmul(b(:, 1:2), y(1:2)) + matmul(y, b) + findloc(y, maxval(y), 1)
  y = y + dot_product(b(1,:), b(:,1))
  y = y + sum(b, dim=2, mask=b>1) + [ (b(i,i), i=1,n) ]
end subroutine

subroutine copied_in_and_out(n,x,y)
  integer :: n
  real(8) :: x(n), y(n)
  interface
   subroutine ext(n, x, y)
    integer :: n
    real(8) :: x(n), y(n)
   end subroutine
  end interface
  real(8) :: a(n, n)
  a = 0
  a(1,:) = x
  call ext(n, a(1,:), a(2,:))
  y = a(2,:)
end subroutine

subroutine ext(n, x, y)
  integer :: n
  real(8) :: x(n), y(n)
  y = x*x
end subroutine

subroutine powers(n,x,y)
  integer :: n, k
  real(8) :: x(n), y(n)
  complex(8) :: z
  complex(8) :: zc
  real(8) :: s
  k = n
  z = cmplx(x(1), x(2), 8)
  z = z**k + z**2.5d0 + z**z + log(z) + sin(z) + cosh(z)
  s = x(1)
  s = s**k
  zc = cmplx(s, s, 8)
  zc = zc**k
  y = x**k + 2.d0**x + abs(z) + s + real(zc)
  y(1) = exponent(x(1)) + fraction(x(1)) + scale(x(1), 2) + set_exponent(x(1), 3)
end subroutine

subroutine control_and_output(n,x,y)
  integer :: n, k, i
  real(8) :: x(n), y(n), r, t0
  integer, save :: calls = 0
  character(len=20) :: buf
  real(8) :: e(4)
  real(8) :: e2(2,2)
  equivalence (e, e2)
  calls = calls + 1
  call cpu_time(t0)
  call system_clock(k)
  call random_number(r)
  write(buf, '(I5)') n
  if (len_trim(buf) > 30) print *, trim(buf)
  select case (n)
  case (1)
    y = x
  case (2:5)
    y = 2*x
  case default
    y = 3*x
  end select
  e = x(1:4)
  y(1) = e2(1,1)*e2(2,2) - e2(1,2)*e2(2,1)
  do i = n, 1, -2
    if (x(i) > 1.5) exit
    if (x(i) < 0.1) cycle
    y(i) = y(i) * x(i)
  end do
  if (x(1) - 1) 10, 20, 30
10 y(2) = x(2)
  goto 40
20 y(2) = 0
  goto 40
30 y(2) = x(1)
40 continue
end subroutine

function by_value(n, x) bind(c, name="by_value") result(r)
  use iso_c_binding
  integer(c_int), value :: n
  real(c_double), intent(in) :: x(n)
  real(c_double) :: r
  r = sum(x**2)
end function

subroutine pointer_targets(n,x,y)
  integer :: n
  real(8) :: x(n), y(n)
  real(8), pointer :: p(:), q(:)
  real(8), target :: t(n)
  allocate(p(n))
  p = x
  t = p*2
  q => t
  q(1) = q(1)*q(2)
  y = t + p
  deallocate(p)
end subroutine

subroutine allocatable_matrix(n,x,y)
  integer :: n, i, j
  real(8) :: x(n), y(n)
  real(8), allocatable :: a(:,:), tmp(:)
  logical :: m(n)
  allocate(a(n,0:n+1))
  do concurrent (i=1:n, j=0:n+1)
    a(i,j) = x(i)*j
  end do
  m = x > 0.8
  tmp = a(:, n)
  where (m) tmp = tmp*2
  y = tmp + sum(a, dim=2) + merge(1.d0, 2.d0, m) + maxval(a) * minval(a, mask=a>0.1) + real(count(m))
  if (allocated(a)) deallocate(a)
  associate (z => y(1:2))
    z = z*x(1)
  end associate
  block
    real(8) :: loc(n)
    loc = y
    y = loc*loc
  end block
end subroutine

subroutine single_precision(n,x,y)
  integer :: n
  real(4) :: x(n), y(n)
  real(4), allocatable :: w(:)
  w = x
  w = [w, w*2, 3.0]
  y = w(n+1:2*n) + norm2(w) + sum(w)
  y = y + spread(sum(x), 1, n)
end subroutine

subroutine matrix_norms(n,a,b)
  integer :: n
  real(8), intent(in) :: a(n,n)
  real(8), intent(out) :: b(n,n)
  b = matmul(transpose(a), a)
  b = transpose(b) + matmul(a, transpose(a))
  b = eoshift(b, 1, dim=1) + norm2(a)
  b(:,1) = norm2(a, 1)
  b(1,:) = b(1,:)/sqrt(sum(a(:,1)**2))
end subroutine

subroutine procedure_argument(n,x,y)
  integer :: n
  real(8) :: x(n), y(n)
  real(8), external :: fun
  y = x*apply(fun, x(1))
contains
  function apply(f, v) result(r)
    real(8), external :: f
    real(8) :: v, r
    r = f(v) + f(2*v)
  end function
end subroutine

function fun(v)
  real(8) :: v, fun
  fun = v*v
end function

subroutine linked_list(n,x,y)
  integer :: n, i
  real(8) :: x(n), y(n)
  type node
    real(8) :: val
    type(node), pointer :: next => null()
  end type
  type(node), pointer :: head, p
  head => null()
  do i=1,n
    allocate(p)
    p%val = x(i)
    p%next => head
    head => p
  end do
  y = 0
  i = 1
  do while (associated(head))
    y(i) = head%val**2
    p => head%next
    deallocate(head)
    head => p
    i = i + 1
  end do
end subroutine

subroutine folded(n,x,y)
  use, intrinsic :: ieee_arithmetic
  integer :: n
  real(8) :: x(n), y(n)
  y = reduce(x, mul) + merge(0d0, x, ieee_is_nan(x)) + erfc_scaled(x) + asinh(x) + bessel_jn(2, x) + x**0.5 + atan(x, 2d0) + sinh(x) + tan(x)
  contains
  pure function mul(a,b) result(c)
    real(8), intent(in) :: a,b
    real(8) :: c
    c = a*b
  end function
end subroutine

module products
contains
  ! Inlined twice: what the first call returns, the second one reads as its argument.
  pure function crossed(u, v) result(w)
    real(8), intent(in) :: u(3), v(3)
    real(8) :: w(3)
    w = [u(2)*v(3) - v(2)*u(3), u(3)*v(1) - v(3)*u(1), u(1)*v(2) - v(1)*u(2)]
  end function
end module

subroutine crossed_twice(n,x,y)
  use products
  integer :: n
  real(8) :: x(n), y(n), u(3), v(3), w(3)
  u = x(1:3)
  v = [2d0, 3d0, 5d0]
  w = crossed(u, v)
  u = crossed(v, w)/x(1)
  y = [u, w(1:n-3)]
end subroutine

! A method of a table, found by its name among texts.
subroutine named_method(n,x,y)
  integer :: n, i, at
  real(8) :: x(n), y(n)
  type method
    procedure(scaled), pointer, nopass :: step
    character(len=8) :: name
  end type
  type(method) :: table(2)
  character(len=:), allocatable :: wanted
  interface
    function scaled(v)
      real(8) :: v, scaled
    end function
  end interface
  table(1)%step => scaled
  table(1)%name = 'scaled'
  table(2)%step => fun
  table(2)%name = ' squared'
  wanted = trim(adjustl(repeat(' ', n)//table(2)%name))//adjustr('x ')
  at = 0
  do i = 1, 2
    if (index(wanted, trim(adjustl(table(i)%name))) == 1) at = i
  end do
  if (scan(wanted, 'q') /= 2 .or. verify(wanted, 'squared') /= 8 .or. len_trim(table(1)%name) /= 6) at = 1
  if (wanted >= 'squared w' .and. len(wanted) == 9 .and. index(wanted, 'r', back=.true.) == 5) y = table(at)%step(x(1))*x
end subroutine

function scaled(v)
  real(8) :: v, scaled
  scaled = 2*v
end function
