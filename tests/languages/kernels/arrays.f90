! Arrays in Fortran, as each of its kinds and intrinsic functions is used in kernels.
module types
  implicit none
  type particle
    real(8) :: m
    real(8) :: x(3)
    integer :: id
  end type
  real(8) :: gconst = 2.0d0
  real(8), allocatable :: work(:)
end module

subroutine elementwise(n,x,y)
  integer :: n
  real(8) :: x(n), y(n), t
  y = 2*x + sin(x)
  t = sum(x*y)
  y = y*t + sum(x) + product(x)
end subroutine


subroutine matrix_vector(n,m,a,x,y)
  integer :: n,m
  real(8) :: a(n,m),x(m),y(n)
  y = matmul(a,x)
end subroutine

subroutine matrix_products(n,m,a,b,c)
  integer :: n,m
  real(8) :: a(n,m),b(m,n),c(n,n)
  c = matmul(a,b) + transpose(matmul(transpose(b),transpose(a)))
end subroutine

subroutine reductions(n,x,y,r)
  integer :: n
  real(8) :: x(n),y(n),r
  r = dot_product(x,y)+ minval(x) + maxval(y) + norm2(x)
end subroutine

subroutine locations(n,x,y,r)
  integer :: n
  real(8) :: x(n),y(n),r
  integer :: i
  i = minloc(x,1)
  r = y(i) + x(maxloc(y,1))
end subroutine

subroutine outer_product(n,x,y)
  integer :: n
  real(8) :: x(n),y(n,n)
  y = spread(x,2,n) * spread(x,1,n)
end subroutine

subroutine reshaped(n,x,y)
  integer :: n
  real(8) :: x(n),y(n*n), z(n,n)
  z = reshape(y,(/n,n/))
  x = matmul(z, x)
  y = reshape(z,(/n*n/))
end subroutine

subroutine masks_and_shifts(n,x,y)
  integer :: n
  real(8) :: x(n),y(n)
  y = merge(x, -x, x > 0)
  y = y + cshift(x, 1) + eoshift(x, -1)
  if (any(x > 3) .and. all(y < 10)) y = y * count(x>0)
end subroutine

subroutine packed(n,x,y)
  integer :: n
  real(8) :: x(n),y(n)
  real(8), allocatable :: p(:), q(:)
  p = pack(x, x > 0)
  allocate(q(size(p)))
  q = p**2
  y = 0
  y(1:size(q)) = q
  deallocate(q)
end subroutine

subroutine allocatable(n,x,y)
  integer :: n
  real(8) :: x(n),y(n)
  real(8), allocatable :: w(:)
  integer :: i
  allocate(w(n))
  w(1)=x(1)
  do i=2,n
   w(i)=w(i-1)*x(i)
  end do
  y = w
end subroutine

subroutine sections(n,x,y)
  integer :: n
  real(8) :: x(n),y(n)
  real(8) :: w(n)
  w = x(n:1:-1)
  y(1:n-1:2) = w(2:n:2)
  y(2:n:2) = w(1:n-1:2)**2
  where (x > 0)
    y = y * x
  elsewhere
    y = -y
  end where
  forall (i=1:n) y(i) = y(i) + i
end subroutine

subroutine derived_types(n,x,y)
  use types
  integer :: n
  real(8) :: x(n),y(n)
  type(particle) :: p(n)
  integer :: i
  do concurrent (i=1:n)
    p(i)%m = x(i)
    p(i)%x = x(i)*gconst
    p(i)%id = i
  end do
  do i=1,n
   y(i) = p(i)%m*sum(p(i)%x)*p(i)%id
  end do
end subroutine

subroutine module_array(n,x,y)
  use types
  integer :: n
  real(8) :: x(n),y(n)
  if (allocated(work)) deallocate(work)
  allocate(work(n))
  work = x**2
  call inner
  contains
  subroutine inner
    y = work * x(1)
  end subroutine
end subroutine

subroutine common_block(n,x,y)
  integer :: n
  real(8) :: x(n),y(n)
  real(8) :: common_a(10)
  common /blk/ common_a, k
  integer :: k
  common_a(1) = x(1)
  k = 3
  call use_block(n, y)
end subroutine

subroutine use_block(n,y)
  integer :: n
  real(8) :: y(n)
  real(8) :: a(10)
  common /blk/ a, k
  integer :: k
  y = a(1)*k
end subroutine

subroutine complex_numbers(n, z, r)
  integer :: n
  complex(8) :: z(n)
  real(8) :: r
  complex(8) :: s
  s = sum(z) * conjg(z(1)) / z(2) + exp(z(3)) + sqrt(z(1))
  r = abs(s) + real(s) + aimag(s) + dble(dot_product(z,z))
end subroutine

subroutine array_result(n, x, y)
  integer :: n
  real(8) :: x(n), y(n)
  interface
   pure function scaled_by_sum(v)
     real(8), intent(in) :: v(:)
     real(8) :: scaled_by_sum(size(v))
   end function
  end interface
  y = scaled_by_sum(x)
end subroutine

pure function scaled_by_sum(v)
  real(8), intent(in) :: v(:)
  real(8) :: scaled_by_sum(size(v))
  scaled_by_sum = v * sum(v)
end function
subroutine assumed_size(n, x, y)
  integer :: n
  real(8) :: x(*), y(*)
  integer :: i
  i = 1
  do while (i <= n)
    y(i) = mod(x(i), 2.5d0) + sign(x(i), -1d0) + max(x(i), 0d0) + modulo(x(i), 1.3d0) + dim(x(i),.2d0) + aint(x(i)) + anint(x(i)) + nint(x(i)) + floor(x(i)) + ceiling(x(i))
    if (y(i) > 1000) stop 'too big'
    if (y(i) < -1000) error stop 3
    i = i + 1
  end do
  print *, 'done', y(1), n
  write(*,'(A,F8.3)') 'x', x(1)
end subroutine

subroutine along_dimensions(n, a, r)
  integer :: n
  real(8) :: a(n,n), r(n)
  r = sum(a, 1) + sum(a, 2) + maxval(a, dim=1) + minval(a,2) + product(a,1)
  r = r + sum(a, 1, mask=a>0) + sum(pack(a, a>0))
  r = r + sum(a(:,1:2)) + sum(matmul(a, a))
end subroutine

subroutine grown(n, x, y)
  integer :: n
  real(8) :: x(n), y(n)
  real(8), allocatable :: t(:)
  integer :: i
  t = [real(8) :: ]
  do i=1,n
    t = [t, x(i)**2]
  end do
  y = t
end subroutine

subroutine pointers(n, x, y)
  integer :: n
  real(8), target :: x(n), y(n)
  real(8), pointer :: p(:), q
  p => x(1:n:2)
  y = 0
  y(1:size(p)) = p*2
  q => x(2)
  y(1) = q
end subroutine

subroutine special_functions(n, x, y)
 integer :: n
 real(8) :: x(n), y(n)
 y = bessel_j0(x) + erf(x) + gamma(x) + log_gamma(x) + hypot(x, y) + atan2(x,y) + x**n + x**1.5d0 + acosh(1+x*x)
end subroutine
