! Statements that print, write files, and put text into variables.
subroutine text_decides(n, x, y)
  implicit none
  integer :: n, i
  real(8) :: x(n), y(n)
  character(len=8) :: line
  do i = 1, n
    write (line, '(i1)') mod(i, 2)
    if (line(1:1) == '1') then
      y(i) = x(i)**2
    else
      y(i) = sin(x(i))
    end if
  end do
  print *, 'the last line is ', line, y(n)
end subroutine

subroutine text_is_read(n, x, y)
  implicit none
  integer :: n, i, k
  real(8) :: x(n), y(n)
  character(len=8) :: line
  do i = 1, n
    write (line, '(i4)') 2*i
    read (line, '(i4)') k
    y(i) = k*x(i)**2
  end do
end subroutine

subroutine scratch_file(n, x, y)
  implicit none
  integer :: n, i, k
  real(8) :: x(n), y(n)
  open (unit=33, status='scratch')
  write (33, *) n, 7
  rewind (33)
  read (33, *) i, k
  close (33)
  y = x**2*k
end subroutine

subroutine written_file(n, x, y, k, name)
  implicit none
  integer :: n, k, unit
  real(8) :: x(n), y(n)
  character(len=k) :: name
  open (newunit=unit, file=name, status='replace')
  write (unit, '(i3)') n
  close (unit)
  y = x**2
end subroutine

subroutine number_through_text(n, x, y)
  implicit none
  integer :: n
  real(8) :: x(n), y(n), z
  character(len=40) :: line
  write (line, '(f30.20)') x(1)
  read (line, *) z
  y = z*x
end subroutine

subroutine number_through_file(n, x, y)
  implicit none
  integer :: n
  real(8) :: x(n), y(n), z
  open (unit=35, status='scratch')
  write (35, '(f30.20)') x(1)
  rewind (35)
  read (35, *) z
  close (35)
  y = z*x
end subroutine
