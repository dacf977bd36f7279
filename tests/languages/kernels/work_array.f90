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

! The same with the work array as an argument, and the order of the steps turned around in it.
subroutine transformed_in(n, x, y, w)
  integer :: n, i
  double precision :: x(*), y(*), w(*)
  call set_up(n, w)
  call turn(w(3 * n + 1))
  do i = 1, n
    y(i) = x(i) * x(i)
  end do
  call transform(n, y, w)
end subroutine

subroutine turn(steps)
  integer :: steps(*), i, kept
  do i = 1, steps(1) / 2
    kept = steps(i + 1)
    steps(i + 1) = steps(steps(1) + 2 - i)
    steps(steps(1) + 2 - i) = kept
  end do
end subroutine

! Room for numbers, then for integers, then for numbers again.
subroutine reused(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), w(50)
  do i = 1, n
    w(i) = x(i) * x(i)
    y(i) = w(i)
  end do
  call count_up(n, w)
  call scale_by(n, w, y)
  do i = 1, n
    w(i) = y(i) * x(i)
  end do
  do i = 1, n
    y(i) = w(i)
  end do
end subroutine

subroutine count_up(n, k)
  integer :: n, k(*), i
  do i = 1, n
    k(i) = i + 2
  end do
end subroutine

subroutine scale_by(n, k, y)
  integer :: n, k(*), i
  double precision :: y(*)
  do i = 1, n
    y(i) = y(i) * k(i)
  end do
end subroutine

! The same with the integers read in a function of its own, which is not inlined.
subroutine reused_below(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), w(50)
  call squares(n, x, w)
  do i = 1, n
    y(i) = w(i)
  end do
  call count_up(2 * n, w)
  call scale_from(1, n, w, y)
  call squares(n, y, w)
  do i = 1, n
    y(i) = w(i)
  end do
end subroutine

recursive subroutine scale_from(i, n, k, y)
  integer :: i, n, k(*)
  double precision :: y(*)
  if (i > n) return
  call scale_from(i + 1, n, k, y)
  y(i) = y(i) * k(2 * i)
end subroutine

subroutine squares(n, x, d)
  integer :: n, i
  double precision :: x(*), d(*)
  do i = 1, n
    d(i) = x(i) * x(i)
  end do
end subroutine

! Integers in the place of numbers, copied whole before numbers take their place again.
subroutine copied_whole(n, x, y, w, kept)
  integer :: n, i
  double precision :: x(*), y(*), w(n), kept(n)
  call squares(n, x, w)
  do i = 1, n
    y(i) = w(i)
  end do
  call count_up(2 * n, w)
  kept = w
  call squares(n, x, w)
  call scale_from(1, n, kept, y)
  do i = 1, n
    y(i) = y(i) + w(i)
  end do
end subroutine

! What is no Fortran: the same of the numbers themselves.
subroutine read_copies(n, x, y, w, kept)
  integer :: n, i
  double precision :: x(*), y(*), w(n), kept(n)
  call squares(n, x, w)
  kept = w
  do i = 1, n
    y(i) = x(i)
  end do
  call count_up(2 * n, w)
  call scale_from(1, n, w, y)
  call scale_from(1, n, kept, y)
end subroutine

! What is no Fortran: halves of numbers that are read as integers, and computed with.
subroutine read_halves(n, x, y)
  integer :: n, i, k
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    call upper(d(n + 1 - i), k)
    y(n + 1 - i) = k / 1048576d0
  end do
end subroutine

subroutine upper(halves, k)
  integer :: halves(2), k
  k = halves(2)
end subroutine

! The same of a half beside one that was overwritten.
subroutine read_rests(n, x, y)
  integer :: n, i, k
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    call clear(d(i))
  end do
  do i = 1, n
    call upper(d(n + 1 - i), k)
    y(n + 1 - i) = k / 1048576d0
  end do
end subroutine

subroutine clear(halves)
  integer :: halves(2)
  halves(1) = 0
end subroutine

! The same in a function of its own, which is not inlined.
subroutine read_below(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    y(i) = x(i)
  end do
  call scale_from(1, n, d, y)
end subroutine

! The same of whole numbers, and of quarters.
subroutine read_words(n, x, y)
  integer :: n, i
  integer(8) :: k
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    call word(d(n + 1 - i), k)
    y(n + 1 - i) = k * 1d-18
  end do
end subroutine

subroutine word(whole, k)
  integer(8) :: whole, k
  k = whole
end subroutine

subroutine read_quarters(n, x, y)
  integer :: n, i, k
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    call quarter(d(n + 1 - i), k)
    y(n + 1 - i) = k
  end do
end subroutine

subroutine quarter(quarters, k)
  integer(2) :: quarters(4)
  integer :: k
  k = quarters(4)
end subroutine

! A number made of halves, one of which is computed from another number, in an array of numbers.
subroutine made(n, x, y)
  integer :: n, i
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    call clear(d(n + i))
    call overwrite(d(n + i), int(1512775 * x(i) + 1072632447))
  end do
  do i = 1, n
    y(i) = d(i) + d(n + i)
  end do
end subroutine

! Halves that only decide have no part in derivatives.
subroutine decided(n, x, y)
  integer :: n, i, k
  double precision :: x(*), y(*), d(50)
  call squares(n, x, d)
  do i = 1, n
    call upper(d(n + 1 - i), k)
    if (k > 1072693248) then
      y(n + 1 - i) = 2 * d(n + 1 - i)
    else
      y(n + 1 - i) = 3 * d(n + 1 - i)
    end if
  end do
end subroutine
