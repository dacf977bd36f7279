! Derived types, allocatable arrays, array expressions, complex numbers, output.
module particles
  use iso_c_binding
  implicit none
  type :: particle
    real(8) :: place(3)
    character(len=8) :: label
  end type
contains
  subroutine advance(n, all, energy) bind(c)
    integer(c_int), value :: n
    type(particle), intent(inout) :: all(n)
    real(c_double), intent(out) :: energy(n)
    real(8), allocatable :: work(:, :)
    complex(8) :: wave
    integer :: i
    allocate (work(n, n))
    work = 0.5d0
    do i = 1, n
      select case (mod(i, 4))
      case (1)
        energy(i) = sum(all(i)%place**2)
      case (2)
        energy(i) = maxval(all(i)%place)
      case default
        energy(i) = sqrt(abs(all(i)%place(1)))
      end select
      wave = cmplx(energy(i), 1.0d0, 8)
      energy(i) = real(exp(wave)*conjg(wave))
      if (all(i)%label == 'fixed') cycle
      all(i)%place = all(i)%place + 0.1d0
    end do
    work = matmul(work, transpose(work))
    where (energy > 3.0d0) energy = work(1, 1)
    print *, work(1, 1)
  end subroutine
end module
