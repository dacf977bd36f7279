! Numbers and integers in one work array, as old libraries keep them: room for intermediate results, a table of cosines
! and sines, and behind these, where only the run knows, how many steps there are and how long each is.
subroutine set_up(n, w)
  integer :: n
  double precision :: w(*)
  call set_up_parts(n, w(n + 1), w(3 * n + 1))
end subroutine

subroutine set_up_parts(n, table, steps)
  integer :: n, steps(*), rest, factor, k
  double precision :: table(2, *)
  do k = 1, n
    table(1, k) = cos(6.283185307179586d0 * (k - 1) / n)
    table(2, k) = sin(6.283185307179586d0 * (k - 1) / n)
  end do
  rest = n
  factor = 2
  steps(1) = 0
  do while (rest > 1)
    if (mod(rest, factor) == 0) then
      steps(1) = steps(1) + 1
      steps(steps(1) + 1) = factor
      rest = rest / factor
    else
      factor = factor + 1
    end if
  end do
end subroutine

subroutine transform(n, x, w)
  integer :: n
  double precision :: x(*), w(*)
  call transform_parts(n, x, w, w(n + 1), w(3 * n + 1))
end subroutine

subroutine transform_parts(n, x, t, table, steps)
  integer :: n, steps(*), step, i, j, length
  double precision :: x(*), t(*), table(2, *)
  length = 1
  do step = 1, steps(1)
    length = length * steps(step + 1)
    do i = 1, n
      t(i) = 0
      do j = 0, steps(step + 1) - 1
        t(i) = t(i) + x(1 + mod(i - 1 + j * length, n)) * table(1 + mod(step, 2), 1 + mod(i * j, n))
      end do
    end do
    do i = 1, n
      x(i) = t(i)
    end do
  end do
end subroutine

subroutine transformed(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), w(100)
  call set_up(n, w)
  do i = 1, n
    y(i) = x(i) * x(i)
  end do
  call transform(n, y, w)
end subroutine

subroutine transformed_twice(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), w
  common /work/ w(100)
  call set_up(n, w)
  do i = 1, n
    y(i) = x(i) * x(i)
  end do
  call transform(n, y, w)
  call set_up(n, w)
  call transform(n, y, w)
end subroutine

! What is no Fortran: numbers whose halves are overwritten with integers, and read all the same.
subroutine spoiled(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), d(50)
  do i = 1, n
    d(i) = x(i) * x(i)
  end do
  do i = 1, n
    call overwrite(d(i), 1072693248)
  end do
  do i = 1, n
    y(i) = d(i) * x(i)
  end do
end subroutine

subroutine overwrite(halves, k)
  integer :: halves(2), k
  halves(2) = k
end subroutine

! Numbers that are copied as integers stay numbers.
subroutine copied(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), w(50)
  do i = 1, n
    w(i) = x(i) * x(i)
  end do
  call copy_integers(2 * n, w, w(n + 1))
  do i = 1, n
    y(i) = w(n + i) * x(i)
  end do
end subroutine

subroutine copy_integers(n, from, to)
  integer :: n, from(*), to(*), i
  do i = 1, n
    to(i) = from(i)
  end do
end subroutine
