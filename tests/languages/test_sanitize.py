"""What Fortran and Rust leave undefined, under Options(sanitize=True), where optimisers make use of it as well."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.sanitize import outside
from tests.support.tools import need

X = np.arange(1.0, 5.0)
CHECKED = je.Options(sanitize=True)
FORTRAN = """
module weights
  type entry
    real(8) :: value
    integer :: many
  end type
end module
real(8) function k(n, which, x) bind(c)
  use weights
  integer, value :: n, which
  real(8), intent(in) :: x(n)
  real(8), allocatable :: grown(:)
  real(8), pointer :: aimed(:)
  type(entry) :: one
  integer :: at(3), i
  k = x(1)
  select case (which)
  case (1)
    i = int(x(4) * 1d12) ! conversion
  case (2)
    i = nint(x(4) * 1d12) ! rounding
  case (3)
    i = ishft(1, n * 20) ! shift
  case (4)
    at(1) = 1
    i = at(1) + at(n - 2) ! element
  case (5)
    allocate(grown(n))
    grown(1) = x(1)
    k = grown(1) * grown(3) ! allocated
  case (6)
    one%value = x(1)
    k = one%value * one%many ! member
  case (7)
    nullify(aimed)
    k = aimed(1) * x(1) ! nullified
  case (8)
    allocate(grown(n))
    deallocate(grown)
    deallocate(grown) ! deallocated
  case (9)
    allocate(grown(n))
    if (n > 3) allocate(grown(n)) ! again
  case default
    i = int(x(4) * 1d8) + nint(-x(4)) + floor(-x(1))
  end select
  if (which < 5) k = k * i
end function
"""
MISTAKES = [
    "conversion: converts a number to 32 bits of signed integer that is out of range",
    "rounding: converts a number to 32 bits of signed integer that is out of range",
    "shift: shifts a number of 32 bits",
    "element: reads what nothing wrote: local variable `at`, index 1",
    "allocated: reads what nothing wrote: allocated memory, index 2",
    "member: reads what nothing wrote: local variable `one`",
    "nullified: reads at a null pointer",
    "deallocated: deallocates what is not allocated",
    "again: allocates what is allocated already",
]
RUST = """
#[no_mangle]
pub unsafe extern "C" fn ended(n: i32, x: *const f64) -> f64 {
    let mut p = x;
    if n > 3 { let own = *x * 2.0; p = &own; }
    *p * (i32::MAX - 3 + n) as f64
}
#[no_mangle]
pub unsafe extern "C" fn k(n: i32, x: *const f64) -> f64 {
    let mut b = [0.0f64; 4];
    std::ptr::copy_nonoverlapping(x, b.as_mut_ptr(), n as usize);
    b[0] * b[1] + (1e300 * *x) as i32 as f64 / (5 - n) as f64 + (7 / (4 - n)) as f64
}
"""

SORTED = """
#include <algorithm>
#include <vector>
extern "C" double k(int n, int more, const double *x) {
    double v[4];
    std::copy(x, x + n, v);
    if (more < 0) return std::vector<double>(x, x + n).at(n);
    std::sort(v, v);
    std::sort(v, v + n + more);
    return v[1];
}
"""


def test_numbers_are_sorted_inside_of_their_array() -> None:
    """libc++ has `std::sort` of numbers in its binary: the body here is ours."""
    kernel = je.kernel(SORTED, "k", "n: i32, more: i32, x: f64[n] -> f64", lang="c++", options=CHECKED)
    with jax.enable_x64(True):
        assert kernel(np.int32(0), X[::-1]) == 2
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"outside of .*variable `v`.*40 bytes \(kernel\.cpp:9:"):
            jax.block_until_ready(kernel(np.int32(1), X))
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"C\+\+ exception `std::out_of_range` \(kernel\.cpp:7:"):
            jax.block_until_ready(kernel(np.int32(-1), X))


def test_mistakes_in_fortran_are_errors_with_their_lines() -> None:
    need("flang-22")
    text = "n: i32, which: i32, x: f64[n] -> f64"
    kernel = je.kernel(FORTRAN, "k", text, lang="fortran", options=CHECKED)
    assert kernel(0, X) == 399999995.0
    assert jax.grad(kernel, argnums=1)(0, X).tolist() == [399999995.0, 0.0, 0.0, 0.0]
    for which, mistake in enumerate(MISTAKES, 1):
        mark, what = mistake.split(": ", 1)
        line = 1 + next(n for n, line in enumerate(FORTRAN.splitlines()) if line.endswith(f"! {mark}"))
        for run in (kernel, jax.jit(jax.grad(kernel, argnums=1))):
            with pytest.raises(jax.errors.JaxRuntimeError, match=rf"kernel `k` (?s:.*){what}.*\(kernel\.f90:{line}\b"):
                jax.block_until_ready(run(which, X))


TWO = """
subroutine k(n, x, y) bind(c)
  integer, value :: n
  real(8) :: x(n), y
  real(8), allocatable :: a(:), b(:)
  allocate(a(n), b(n))
  a = x
  b = a
  y = b(n) / (n / 2)
end subroutine
"""


def test_variables_behind_checks_stay_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the heap, LLVM would read what describes an array anew for each element that is assigned."""
    need("flang-22")
    made: list[str] = []
    whole = outside.sanitized

    def kept(*given: Any) -> ArrayFunction:
        result = whole(*given)
        made.append(to_text(result.module))
        return result

    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    monkeypatch.setattr(outside, "sanitized", kept)
    kernel = je.kernel(TWO, "k", "n: i32, x: f64[n], out y: f64[]", lang="fortran", options=CHECKED)
    assert kernel(X) == 2.0
    own = made[0][made[0].index("@je.primal(") :]
    assert "@malloc" not in own[: own.index("\n}")]


def test_mistakes_in_rust_have_the_lines_of_the_kernel() -> None:
    need("rustc")
    kernel = je.kernel(RUST, "k", "n: i32, x: f64[n] -> f64", lang="rust", options=CHECKED)
    assert kernel(X[:2]) == 2.0 + 2147483647.0 / 3 + 3
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"writes outside of .* `b`.* 40 bytes \(kernel\.rs:11:"):
        jax.block_until_ready(kernel(np.append(X, 1.0)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Rust panic: div by zero \(kernel\.rs:12:"):
        jax.block_until_ready(kernel(X))


def test_rust_tells_of_sums_that_overflow_and_of_variables_that_have_ended() -> None:
    need("rustc")
    kernel = je.kernel(RUST, "ended", "n: i32, x: f64[n] -> f64", lang="rust", options=CHECKED)
    assert kernel(X[:3]) == 2147483647.0
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"reads local variable `own` after .* ended \(kernel\.rs:6:"):
        jax.block_until_ready(kernel(X))
    kernel = je.kernel(
        RUST.replace("n > 3", "n > 4"), "ended", "n: i32, x: f64[n] -> f64", lang="rust", options=CHECKED
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Rust panic: add overflow \(kernel\.rs:6:"):
        jax.block_until_ready(kernel(X))


def test_mistakes_in_python_have_their_lines() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def inner(x: np.ndarray, i: int) -> float:
        return x[i]

    def outer(n: int, x: np.ndarray) -> float:
        y = np.empty(n)
        y[0] = inner(x, n)
        return y[0] + y[n - 1]

    kernel = je.kernel(numba.njit(outer), "outer", "n: i64, x: f64[4] -> f64", options=CHECKED)
    line = outer.__code__.co_firstlineno
    assert kernel(1, X) == 4
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"argument `x`: index 4, extent 4 \(\S*py:{line - 2}:"):
        jax.block_until_ready(kernel(4, X))
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"memory, index 2 \(\S*py:{line + 3}:"):
        jax.block_until_ready(kernel(3, X))
