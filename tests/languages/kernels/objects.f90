! Derived types that own memory, polymorphism, nested procedures, texts, and assignments of parts to other parts.
module fields
  implicit none
  type field
    integer :: n
    real(8), allocatable :: v(:)
    real(8) :: scale = 2
  end type
  type table
    type(field), allocatable :: rows(:)
    integer :: used = 0
  end type
  real(8), save :: history(4) = 0
contains
  function triangle(x) result(t)
    real(8), intent(in) :: x(:)
    type(table) :: t
    integer :: i
    allocate(t%rows(size(x)))
    do i = 1, size(x)
      allocate(t%rows(i)%v(i))
      t%rows(i)%v = x(1:i)
      t%used = t%used + 1
    end do
  end function
  subroutine push(v)
    real(8), intent(in) :: v
    history = cshift(history, -1)
    history(1) = v
  end subroutine
end module

subroutine owned_memory(n, x, y)
  use fields
  implicit none
  integer :: n
  real(8) :: x(n), y(n)
  type(field) :: a, b
  a%n = n
  a%v = x*x
  b = a
  b%v(1) = b%v(1)*b%scale
  b%scale = x(1)
  b = b
  y = a%v + b%v*b%scale
end subroutine

subroutine nested_tables(n, x, y)
  use fields
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  type(table) :: t
  t = triangle(x)
  do i = 1, n
    y(i) = sum(t%rows(i)%v)*t%rows(i)%scale*product(t%rows(i)%v) + t%used
  end do
end subroutine

subroutine saved_array(n, x, y)
  use fields
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  do i = 1, n
    call push(x(i)**2)
    y(i) = history(1)*history(2) + history(4)
  end do
end subroutine

module operations
  implicit none
  type, abstract :: operation
    real(8) :: c = 0
  contains
    procedure(to_be_applied), deferred :: apply
    procedure :: twice
  end type
  abstract interface
    real(8) function to_be_applied(self, v)
      import operation
      class(operation), intent(in) :: self
      real(8), intent(in) :: v
    end function
  end interface
  type, extends(operation) :: scaling
  contains
    procedure :: apply => scale
  end type
  type, extends(operation) :: power
    integer :: n = 2
  contains
    procedure :: apply => raise
  end type
  type box
    class(operation), allocatable :: held
  end type
contains
  real(8) function twice(self, v)
    class(operation), intent(in) :: self
    real(8), intent(in) :: v
    twice = self%apply(self%apply(v))
  end function
  real(8) function scale(self, v)
    class(scaling), intent(in) :: self
    real(8), intent(in) :: v
    scale = self%c*v
  end function
  real(8) function raise(self, v)
    class(power), intent(in) :: self
    real(8), intent(in) :: v
    raise = v**self%n + self%c
  end function
end module

subroutine boxes(n, x, y)
  use operations
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  type(box) :: b(2)
  allocate(scaling :: b(1)%held)
  allocate(power :: b(2)%held)
  do i = 1, 2
    b(i)%held%c = x(i)
  end do
  do i = 1, n
    y(i) = b(2)%held%apply(b(1)%held%twice(x(i)))
  end do
end subroutine

subroutine chosen_type(n, x, y)
  use operations
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  class(operation), allocatable :: p
  do i = 1, n
    if (mod(i, 2) == 0) then
      allocate(scaling :: p)
    else
      allocate(power :: p)
    end if
    p%c = x(i)
    select type (p)
    type is (power)
      p%n = i + 1
    end select
    y(i) = p%apply(x(i))
    deallocate(p)
  end do
end subroutine

subroutine assigned_type(n, x, y)
  use operations
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  class(operation), allocatable :: p
  do i = 1, n
    if (mod(i, 2) == 0) then
      p = scaling(x(i))
    else
      p = power(x(i), i + 1)
    end if
    y(i) = p%apply(x(1))
    if (i == 3) deallocate(p)
  end do
end subroutine

recursive function quadrature(f, a, b, fa, fb, tolerance) result(r)
  implicit none
  interface
    function f(t) result(v)
      real(8), intent(in) :: t
      real(8) :: v
    end function
  end interface
  real(8), intent(in) :: a, b, fa, fb, tolerance
  real(8) :: r, m, fm, coarse, fine
  m = (a + b)/2
  fm = f(m)
  coarse = (b - a)*(fa + fb)/2
  fine = (b - a)*(fa + 2*fm + fb)/4
  if (abs(coarse - fine) < tolerance) then
    r = fine
  else
    r = quadrature(f, a, m, fa, fm, tolerance/2) + quadrature(f, m, b, fm, fb, tolerance/2)
  end if
end function

subroutine nested_procedures(n, x, y)
  implicit none
  interface
    recursive function quadrature(f, a, b, fa, fb, tolerance) result(r)
      interface
        function f(t) result(v)
          real(8), intent(in) :: t
          real(8) :: v
        end function
      end interface
      real(8), intent(in) :: a, b, fa, fb, tolerance
      real(8) :: r
    end function
    function plain(t) result(v)
      real(8), intent(in) :: t
      real(8) :: v
    end function
  end interface
  integer :: n
  real(8) :: x(n), y(n)
  y = 0
  y(1) = quadrature(wave, 0.1d0, x(2), wave(0.1d0), wave(x(2)), 1d-3)
  y(2) = quadrature(plain, 0.1d0, x(1), plain(0.1d0), plain(x(1)), 1d-3)
contains
  function wave(t) result(v)
    real(8), intent(in) :: t
    real(8) :: v
    v = exp(-t*x(1))*sin(x(2)*t)
  end function
end subroutine

function plain(t) result(v)
  real(8), intent(in) :: t
  real(8) :: v
  v = t**3
end function

subroutine texts(mode, n, x, first, y)
  implicit none
  character(len=*), intent(in) :: mode
  character, intent(in) :: first
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  y = 0
  if (first == 'c') y = x**2
  if (trim(mode) == 'cube') y = y + x**3*len(mode)
end subroutine

subroutine overlapping(n, x, y)
  implicit none
  integer :: n
  real(8), target :: x(n), y(n)
  y = x
  call shift(y)
contains
  subroutine shift(v)
    real(8), target :: v(:)
    real(8), pointer :: p(:), q(:)
    p => v(2:)
    q => v(:size(v) - 1)
    p = q
    p => v(1:2)
    q => v(3:2:-1)
    p = q
    v(1) = v(1)*v(2)
  end subroutine
end subroutine

! Arrays of a module are assigned as wholes, and shifted to either side.
module grid
  implicit none
  real(8), allocatable, save :: height(:), speed(:)
contains
  subroutine advance(dt)
    real(8), intent(in) :: dt
    real(8) :: flux(size(height))
    speed = speed - dt*(cshift(height, 1) - cshift(height, -1))
    flux = height*speed
    height = height - dt*(cshift(flux, 1) - cshift(flux, -1))
  end subroutine
end module

subroutine shifted_grid(n, x, y)
  use grid
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  allocate(height(n), source=x)
  allocate(speed(n))
  speed = 0.1d0
  do i = 1, 3
    call advance(0.2d0)
  end do
  y = height*speed
  deallocate(height, speed)
end subroutine

subroutine shifted_onto_itself(n, x, y)
  implicit none
  integer :: n
  real(8) :: x(n), y(n)
  y = x
  y = cshift(y, -1)
end subroutine

! Nodes of a tree are made with the values that their type gives, and hold an array.
module quadrants
  implicit none
  type cell
    real(8) :: mass
    real(8) :: center(2)
    type(cell), pointer :: left => null(), right => null()
  end type
contains
  recursive subroutine insert(c, mass, center)
    type(cell), pointer :: c
    real(8), intent(in) :: mass, center(2)
    if (.not. associated(c)) then
      allocate(c)
      c%mass = mass
      c%center = center
    else if (mass < c%mass) then
      call insert(c%left, mass, center)
    else
      call insert(c%right, mass, center)
    end if
  end subroutine
  recursive function pull(c, x) result(f)
    type(cell), pointer :: c
    real(8), intent(in) :: x(2)
    real(8) :: f(2)
    f = 0
    if (.not. associated(c)) return
    f = c%mass*(c%center - x) + pull(c%left, x)*0.5d0 + pull(c%right, x)*0.25d0
    deallocate(c)
  end function
end module

subroutine cells(n, x, y)
  use quadrants
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  type(cell), pointer :: root
  nullify(root)
  do i = 1, n - 1
    call insert(root, x(i), x(i:i+1))
  end do
  y = 0
  y(1:2) = pull(root, x(1:2))
end subroutine

! Objects end by a procedure: of a scalar, of each element of an array, and of the parent's after that.
module endings
  implicit none
  type lease
    real(8) :: rate = 0
  contains
    final :: close_lease
  end type
  type, extends(lease) :: fund
    real(8), allocatable :: shares(:)
    type(lease) :: parts(2)
  contains
    final :: close_fund
  end type
  real(8), save :: balance = 0
contains
  elemental impure subroutine close_lease(l)
    type(lease), intent(inout) :: l
    balance = balance*1.5d0 + l%rate
  end subroutine
  subroutine close_fund(f)
    type(fund), intent(inout) :: f
    if (allocated(f%shares)) balance = balance*2 + sum(f%shares)
  end subroutine
  function opened(x) result(f)
    real(8), intent(in) :: x(:)
    type(fund) :: f
    f%rate = x(1)
    f%shares = x*x
    f%parts(2)%rate = x(2)
  end function
end module

subroutine ended(n, x, y)
  use endings
  implicit none
  integer :: n
  real(8) :: x(n), y(n)
  balance = 0
  call keep
  y = balance*x
contains
  subroutine keep
    type(fund) :: f
    type(lease), allocatable :: some(:)
    f = opened(x)
    allocate(some(n))
    some%rate = x
    deallocate(some)
  end subroutine
end subroutine

! Lists of objects that own memory are made with copies of it.
subroutine listed(n, x, y)
  use fields
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  type(field) :: f(2), g(2)
  type(field), allocatable :: all(:)
  do i = 1, 2
    f(i)%v = x*i
  end do
  all = [f, f(1)]
  all(3)%v = all(3)%v**2
  i = 2
  g = all([i + 1, i])
  y = f(1)%v + g(1)%v*g(2)%v
end subroutine

! An argument of any rank.
module ranks
  implicit none
contains
  function total(a) result(s)
    real(8), intent(in) :: a(..)
    real(8) :: s
    select rank (a)
    rank (0)
      s = a
    rank (1)
      s = sum(a)
    rank (2)
      s = sum(a**2)
    rank default
      s = 0
    end select
  end function
end module

subroutine any_rank(n, x, y)
  use ranks
  implicit none
  integer :: n
  real(8) :: x(n), y(n)
  y = x*total(x(::2)) + total(x(1))*total(spread(x, 1, 2))
end subroutine

! An object that is cleared (`intent(out)`) before it is given a procedure that it calls, and again afterwards.
module machines
  implicit none
  type :: machine
    real(8) :: tolerance = 1d-6, largest = 0
    integer :: n = 0
    procedure(rate), pointer :: f => null()
  contains
    procedure :: set_up, run, clear
  end type
  type, extends(machine) :: spring
    real(8) :: k = 1
  end type
  abstract interface
    subroutine rate(me, x, dx)
      import machine
      class(machine), intent(inout) :: me
      real(8), intent(in) :: x(:)
      real(8), intent(out) :: dx(:)
    end subroutine
  end interface
contains
  subroutine set_up(me, n, f)
    class(machine), intent(inout) :: me
    integer, intent(in) :: n
    procedure(rate) :: f
    call me%clear()
    me%n = n
    me%f => f
  end subroutine
  subroutine run(me, x, steps)
    class(machine), intent(inout) :: me
    real(8), intent(inout) :: x(:)
    integer, intent(in) :: steps
    real(8) :: dx(me%n)
    integer :: i
    do i = 1, steps
      call me%f(x, dx)
      x = x + 0.1d0*dx
      me%largest = maxval(abs(dx))
    end do
  end subroutine
  subroutine clear(me)
    class(machine), intent(out) :: me
  end subroutine
  subroutine swinging(me, x, dx)
    class(machine), intent(inout) :: me
    real(8), intent(in) :: x(:)
    real(8), intent(out) :: dx(:)
    select type (me)
    class is (spring)
      dx = cshift(x, 1)*(x*x - me%k)
    end select
  end subroutine
end module

subroutine driven(n, x, y)
  use machines
  implicit none
  integer :: n
  real(8) :: x(n), y(n)
  type(spring) :: s
  call s%set_up(n, swinging)
  s%k = x(1)
  y = x
  call s%run(y, 4)
  y(1) = y(1)*s%largest
  call s%clear()
  y(2) = y(2) + s%k
end subroutine
