"""Procedures that are passed where they are not called: what does not fit a call fails only where a run gets there."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.errors import LoweringError
from tests.support.engine import native, three_way
from tests.support.native import KernelStatus

_SOLVER = """
recursive subroutine solve(f, jac, n, t, y, w, how, depth)
  implicit none
  external f, jac
  integer n, how, depth, i
  double precision t, y(n), w(n)
  do i = 1, 3
    call f(n, t, y, w)
    if (how == 1) call jac(n, t, y, 0, 0, w, n)
    y = y + 0.1d0 * w
  end do
  if (depth > 0) call solve(f, jac, n, t, y, w, how, depth - 1)
end subroutine
"""
_RUN = """
subroutine run(n, a, x, y, how)
  implicit none
  integer n, how
  double precision a, x(n), y(n), w(n), dummy
  external other
  y = x
  call solve(rhs, PASSED, n, 0d0, y, w, how, how)
contains
  subroutine rhs(m, t, u, du)
    integer m
    double precision t, u(m), du(m)
    du = -a * u * u
  end subroutine
end subroutine
"""
_OTHER = """
subroutine other(m, u)
  integer m
  double precision u(m)
  u = 2 * u
end subroutine
"""
_CALLBACKS = """
typedef void (*rhs)(int, double, const double *, double *);
typedef void (*jacobian)(int, double, const double *, int, double *);
static void f(int n, double a, const double *y, double *w) { for (int i = 0; i < n; i++) w[i] = -a * y[i] * y[i]; }
static void solve(rhs g, jacobian jac, int n, double a, double *y, double *w, int how, int depth) {
    for (int k = 0; k < 3; k++) {
        g(n, a, y, w);
        if (how == 1) jac(n, a, y, 0, w);
        for (int i = 0; i < n; i++) y[i] += 0.1 * w[i];
    }
    if (depth > 0) solve(g, jac, n, a, y, w, how, depth - 1);
}
void run(int n, double a, const double *x, double *y, double *w, int how) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    solve(f, (jacobian)f, n, a, y, w, how, how);
}
"""
_TABLE = """
typedef void (*rhs)(int, double, const double *, double *);
static void f(int n, double a, const double *y, double *w) { for (int i = 0; i < n; i++) w[i] = -a * y[i] * y[i]; }
static void g(int n, const double *y, double *w, double a) { f(n, 2 * a, y, w); }
static int h(int n, double a, const double *y, double *w) { return f(n, a + 1, y, w), n; }
static rhs table[] = {f, (rhs)g, (rhs)h};
void run(int n, double a, const double *x, double *y, double *w, int how) {
    for (int i = 0; i < n; i++) y[i] = x[i];
    for (int k = 0; k < 3; k++) {
        table[k % 2 ? how : 0](n, a, y, w);
        for (int i = 0; i < n; i++) y[i] += 0.1 * w[i];
    }
}
"""
_FORTRAN = "n: i32[], a: f64[], x: f64[n], out y: f64[n], how: i32[]"
_C = "n: i32, a: f64, x: f64[n], out y: f64[n], scratch w: f64[n], how: i32"
SOURCES = {
    "nested": (_SOLVER + _RUN.replace("PASSED", "rhs"), _FORTRAN, "fortran"),
    "not nested": (_SOLVER + _OTHER + _RUN.replace("PASSED", "other"), _FORTRAN, "fortran"),
    "not there": (_SOLVER + _RUN.replace("PASSED", "other"), _FORTRAN, "fortran"),
    "a number": (_SOLVER + _RUN.replace("external other", "").replace("PASSED", "dummy"), _FORTRAN, "fortran"),
    "another type in C": (_CALLBACKS, _C, "c"),
    "another type in a table": (_TABLE, _C, "c"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_procedure_that_does_not_fit(name: str) -> None:
    source, signature, lang = SOURCES[name]
    kernel = native(source, "run", signature, {"n": 2}, lang)
    inputs = [np.float64(0.7), np.array([1.0, 2.0])]
    three_way(kernel, [*inputs, np.int32(2)])
    with pytest.raises(KernelStatus) as caught:
        kernel.run((), [*inputs, np.int32(1)])
    assert caught.value.kind == 3


_UNKNOWN = """
subroutine run(x, n, y)
  use iso_c_binding
  implicit none
  real(8), intent(in) :: x
  integer(8), intent(in) :: n
  real(8), intent(out) :: y
  abstract interface
    function fn(u) result(v)
      real(8), intent(in) :: u
      real(8) :: v
    end function
  end interface
  procedure(fn), pointer :: p
  p => inner
  if (n > 0) call c_f_procpointer(transfer(n, c_null_funptr), p)
  y = p(x)
contains
  function inner(u) result(v)
    real(8), intent(in) :: u
    real(8) :: v
    v = x * u
  end function
end subroutine
"""


def test_a_nested_procedure_or_an_unknown_one() -> None:
    kernel = native(_UNKNOWN, "run", "x: f64[], n: i64[], out y: f64[]", {}, "fortran")
    with pytest.raises(LoweringError, match="may be nested") as caught:
        kernel.run((), [np.float64(1.0), np.int64(0)])
    assert (caught.value.place or "").split(":")[1] == "17"
