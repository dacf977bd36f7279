"""Signatures from debug information."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.support.tools import need

AXPY = "void axpy(int n, double a, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }"
MATVEC = """void matvec(int n, int m, const double *A, const double *x, double *y, double *e) {
  *e = 0;
  for (int i = 0; i < n; i++) { y[i] = 0; for (int j = 0; j < m; j++) y[i] += A[i * m + j] * x[j + 1]; *e += y[i]; }
}"""
ROWS = """float sum(int n, int m, float **A, const int *at) {
  float s = 0;
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s += A[i][j] * at[j];
  return s;
}"""
SQUARE = """double f(int n, long m, const double *A, const double *packed, const double *rest) {
  double s = 0;
  for (int i = 0; i < n * n; i++) s += A[i];
  for (long i = 0, k = 0; i < m; i++) for (long j = 0; j <= i; j++) s += packed[k++];
  for (int i = 0; i < (n + 2) * (n - 1); i++) s *= rest[i];
  return s;
}"""
PARTS = """#include <complex.h>
void f(int n, const double complex *z, double *halves, double *odd) {
  float *to = (float *)halves;
  for (int i = 0; i < n; i++) to[2 * i] = creal(z[i]);
  for (int i = 0; i < n; i++) ((float *)odd)[i] = 0;
}"""
BYTES = (
    "void f(int n, const unsigned char *a, signed char *b, char *c) { for (int i = 0; i < n; i++) b[i] = c[i] = a[i]; }"
)
RECORD = """struct s { int n; double k; double *x, *unused; double v[3]; struct { float a; } in; };
double f(struct s *p, const double *table, const int *at) {
  double t = 0;
  for (int i = 0; i < p->n; i++) t += p->x[i] * p->v[i % 3] * table[at[i]] * p->in.a;
  return p->k = t;
}"""


def suggested(source: str, symbol: str) -> str:
    return je.suggest_signature(source, symbol, lang="c").partition("  #")[0]


@pytest.mark.parametrize(
    ("source", "symbol", "signature"),
    [
        (AXPY, "axpy", "n: i32, a: f64, x: f64[n], inout y: f64[n]"),
        (MATVEC, "matvec", "n: i32, m: i32, A: f64[n,m], x: f64[m+1], out y: f64[n], out e: f64[]"),
        (ROWS, "sum", "n: i32, m: i32, A: f32[n][m], at: i32[m] -> f32"),
        (SQUARE, "f", "n: i32, m: i64, A: f64[n*n], packed: f64[(m*m+m)/2], rest: f64[n*n+n-2] -> f64"),
        (PARTS, "f", "n: i32, z: c128[n], out halves: f64[n], out odd: f64[n/2]"),
        (BYTES, "f", "n: i32, a: u8[n], out b: i8[n], out c: i8[n]"),
    ],
)
def test_types_shapes_and_directions(source: str, symbol: str, signature: str) -> None:
    assert suggested(source, symbol) == signature
    je.kernel(source, symbol, je.suggest_signature(source, symbol, lang="c"), lang="c")


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        ("for (; p; p = p->next) s += p->v;", "p: {v: f64, next: ?}*"),
        ("while (p->next) { p = p->next; s += p->v; }", "p: {v: f64, next: ?}*"),
        ("s = p->v + (p->next ? f(p->next) * f(p->next) : 0);", "p: {v: f64, next: ?}*"),
        ("s = p->v + p->next->v;", "p: {v: f64, next: {v: f64, next: null}*}*"),
        ("s = p->v;", "p: {v: f64, next: null}*"),
    ],
)
def test_chains_of_nodes_are_not_taken_for_one_node(body: str, signature: str) -> None:
    source = "struct node { double v; struct node *next; };\n"
    source += f"double f(struct node *p) {{ double s = 0; {body} return s; }}"
    assert suggested(source, "f") == f"{signature} -> f64"
    if "?" in signature:
        with pytest.raises(je.SignatureError, match=r"chain at p\.next: write a function beside it"):
            je.kernel(source, "f", out="", lang="c")


def test_templates_and_static_functions() -> None:
    source = "namespace n { template <class T> T sum(const T *x, int n) {"
    source += " T s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; } }"
    text = je.suggest_signature(source, "n::sum<double>", lang="c++")
    assert text.partition("  #")[0] == "x: f64[n], n: i32 -> f64"
    assert repr(je.kernel(source, "n::sum<double>", text, lang="c++")).startswith("Kernel n::sum<double>(x)")
    assert suggested(AXPY.replace("void", "static inline void"), "axpy").startswith("n: i32, a: f64, x: f64[n]")


def test_what_is_guessed_is_marked() -> None:
    text = je.suggest_signature(AXPY, "axpy", lang="c")
    assert text.endswith("# guessed: shapes of x, y; directions of y")
    assert je.library(AXPY, lang="c").suggest_signature("axpy") == text


def test_structures_and_what_is_not_known() -> None:
    text = suggested(RECORD, "f")
    assert "{n: i32, k: f64, x: f64[p.n]*, unused: null, v: f64[3], in_: {a: f32}}*" in text
    assert "table: f64[?], at: i32[p.n] -> f64" in text
    with pytest.raises(je.SignatureError, match="nobody knows but you"):
        je.kernel(RECORD, "f", text, lang="c")


def test_arrays_of_structures_behind_a_pointer_of_a_structure() -> None:
    source = """struct point { double x, y; }; struct curve { int n; const struct point *at, *other; };
    double f(const struct curve *c) {
      double s = 0;
      for (int i = 0; i < c->n; i++) s += c->at[i].x * c->at[i].y;
      return s * c->other->x;
    }"""
    text = suggested(source, "f")
    point = "{x: f64, y: f64}"
    assert text == f"c: {{n: i32, at: {point}[c.n]*, other: {point}*}}* -> f64"
    f = je.kernel(source, "f", text, lang="c")
    at, other = {"x": jnp.arange(3.0), "y": jnp.ones(3)}, {"x": 2.0, "y": 0.0}
    (found,) = jax.tree.leaves(jax.grad(lambda y: f({"at": {**at, "y": y}, "other": other}))(at["y"]))
    np.testing.assert_allclose(found, 2 * at["x"])


@pytest.mark.parametrize(("given", "brackets"), [("struct s o", ""), ("struct s *p", "*")])
def test_structures_inside_of_structures(given: str, brackets: str) -> None:
    o = "o" if not brackets else "(*p)"
    source = f"""struct row {{ const double *x, *unused; int n; }};
    struct s {{ double c; struct {{ int k; struct row a, b; }} m; }};
    double f({given}) {{
      double s = 0;
      for (int i = 0; i < {o}.m.b.n; i++) s += {o}.c * {o}.m.b.x[i];
      return s;
    }}"""
    text = je.suggest_signature(source, "f", lang="c").partition("  #")[0]
    name = given[-1]
    a, b = (f"{{x: {x}, unused: null, n: i32}}" for x in ("null", f"f64[{name}.m.b.n]*"))
    assert text == f"{name}: {{c: f64, m: {{k: i32, a: {a}, b: {b}}}}}{brackets} -> f64"
    f = je.kernel(source, "f", text, lang="c")
    x = jnp.arange(3.0)
    m = {"k": jnp.int32(0), "a": {"n": jnp.int32(0)}, "b": {"x": x}}
    np.testing.assert_allclose(jax.grad(lambda c: f({"c": c, "m": m}))(2.0), x.sum())


def test_fortran() -> None:
    need("flang-22")
    source = """
    subroutine smooth(n, m, x, y)
      integer, intent(in) :: n, m
      real(8), intent(in) :: x(n, m)
      real(8), intent(out) :: y(n)
      integer :: i, j
      do i = 1, n
        y(i) = 0
        do j = 1, m
          y(i) = y(i) + x(i, j)**2
        end do
      end do
    end subroutine"""
    text = je.suggest_signature(source, "smooth", lang="fortran")
    assert text == "n: i32[], m: i32[], x: f64[m,n], out y: f64[n]"  # as it is declared, however it is used
    smooth = je.kernel(source, "smooth", text, lang="fortran")
    x = jnp.arange(6.0).reshape(3, 2)  # m rows of n in C's order
    np.testing.assert_allclose(smooth(x), (x**2).sum(0))


def test_fortran_parameters_by_value() -> None:
    need("flang-22")
    source = """
    subroutine scaled(n, a, b, x, y)
      integer, value :: n
      real(8), value :: a
      real(8), intent(in) :: b, x(n)
      real(8), intent(out) :: y(n)
      y = a * x + b
    end subroutine"""
    text = je.suggest_signature(source, "scaled", lang="fortran")
    assert text == "n: i32, a: f64, b: f64[], x: f64[n], out y: f64[n]"
    scaled = je.kernel(source, "scaled", lang="fortran")
    x = jnp.arange(3.0)
    np.testing.assert_allclose(scaled(2.0, 1.0, x), 2 * x + 1)
    np.testing.assert_allclose(jax.grad(lambda a: scaled(a, 1.0, x).sum())(2.0), 3.0)


def test_fortran_functions_of_arrays_and_what_is_no_plain_memory() -> None:
    """The result comes first, under its own name."""
    need("flang-22")
    source = """
    function squares(n, x) result(r)
      integer, intent(in) :: n
      real(8), intent(in) :: x(n)
      real(8) :: r(n)
      r = x**2
    end function
    module m
    contains
      subroutine grow(n, x)
        integer, intent(in) :: n
        real(8), allocatable, intent(out) :: x(:)
        allocate (x(n), source=1.0d0)
      end subroutine
      subroutine sums(x, total, first)
        real(8), intent(inout) :: x(2)
        real(8), intent(out), optional :: total, first
        if (present(total)) total = sum(x)
        if (present(first)) then
          if (x(1) > 0) first = x(1)
        end if
        x = 0
      end subroutine
    end module"""
    text = je.suggest_signature(source, "squares", lang="fortran")
    assert text.startswith("out r: f64[n], n: i32[], x: f64[n]  # guessed: directions of r")
    x = jnp.arange(3.0)
    np.testing.assert_allclose(je.kernel(source, "squares", text, lang="fortran")(x), x**2)
    # What is said to be an output is no guess, however it is written.
    assert je.suggest_signature(source, "m::grow", lang="fortran") == "n: i32[], out x: f64[x_size]"
    text = je.suggest_signature(source, "m::sums", lang="fortran")
    assert text == "inout x: f64[2], out total: f64[], out first: f64[]  # guessed: directions of x"
    sums = je.kernel(source, "m::sums", lang="fortran")
    np.testing.assert_array_equal(jnp.stack(sums(jnp.array([2.0, 3.0]))[1:]), [5, 2])


def test_fortran_arrays_of_which_parts_are_touched() -> None:
    """What is declared counts, where arguments say it: with bounds, strides, and in the words of FORTRAN 77."""
    need("flang-22")
    source = """
      subroutine old(n, incfd, x, f, d, t, u, work, ldw)
      integer n, incfd, ldw, i
      double precision x(n), f(incfd, n), t
      real*8 d
      dimension d(incfd, *), t(0:2*n), u(3, -1:n),
     +          work(ldw, 1)
      double precision u, work
      do 10 i = 1, n
        d(1, i) = f(1, i)**2 * x(i) + t(i) + u(1, i)
   10   work(1, i) = 0
      end"""
    text = je.suggest_signature(source, "old", lang="fortran", flags=("-ffixed-form",)).partition("  #")[0]
    assert "x: f64[n], f: f64[n,incfd], " in text and ", t: f64[2*n+1], u: f64[n+2,3], " in text
    assert ", out d: f64[n,incfd], " in text and "work: f64[n,ldw], " in text


def test_fortran_scalars_that_are_handed_on() -> None:
    need("flang-22")
    source = """
    subroutine f(x, y)
      real(8), intent(in) :: x
      real(8), intent(out) :: y
      call g(x, y)
    end subroutine"""
    assert je.suggest_signature(source, "f", lang="fortran").startswith("x: f64[], out y: f64[]")


def test_numbers_without_a_dtype() -> None:
    source = "long double mean(int n, const long double *x) { return (x[0] + x[n - 1]) / 2; }"
    assert suggested(source, "mean") == "n: i32, x: ?[?] -> ?"
    with pytest.raises(je.SignatureError, match="no dtype stands for `long double`"):
        je.kernel(source, "mean", lang="c", shapes="x[n]")


def test_the_rest_is_filled_in() -> None:
    f = je.kernel(MATVEC, "matvec", lang="c", shapes="x[m+1], A[n,m]", out="y")
    assert str(f.signature) == "n: i32, m: i32, A: f64[n,m], x: f64[m+1], out y: f64[n], e: f64[]"
    A, x = jnp.arange(6.0).reshape(2, 3), jnp.arange(4.0)
    np.testing.assert_allclose(f(A, x, 0.0), A @ x[1:])
    with pytest.raises(je.SignatureError, match="no parameter `z`"):
        je.kernel(MATVEC, "matvec", lang="c", out="z")
    with pytest.raises(je.SignatureError, match="sizes of `table`"):
        je.kernel(RECORD, "f", lang="c", inout="p")
    with pytest.raises(je.SignatureError, match="no brackets"):
        je.kernel(MATVEC, "matvec", lang="c", shapes="x")


def test_nothing_is_said() -> None:
    f = je.kernel("void f(int n, const double *x, double *y) { while (n--) y[n] = x[n] * x[n]; }", "f", lang="c")
    assert str(f.signature) == "n: i32, x: f64[n], out y: f64[n]"
    assert str(je.library("double g(double x) { return x; }", lang="c").kernel().signature) == "x: f64 -> f64"
    scaled = je.kernel(MATVEC, "matvec", lang="c", shapes="x[m+1], A[n,m]")
    assert "out y: f64[n]" in str(scaled.signature)
    with pytest.raises(je.SignatureError, match=r"`\?`: x: f64, f: fn\(\?\) -> f64"):
        je.kernel("double f(double x, double (*f)(double)) { return f(x); }", "f", lang="c")
    with pytest.raises(je.SignatureError, match="the sizes of `x` are not known"):
        je.kernel("double f(int n, const double *x) { return n > 3 ? x[n / 3] : *x; }", "f", lang="c")
    with pytest.raises(je.SignatureError, match="nothing is known"):
        je.kernel("define double @f(double %x) {\n  ret double %x\n}", "f", lang="llvm")
    with pytest.raises(je.SignatureError, match="the symbol comes before"):
        je.kernel("double f(double x) { return x; }", "x: f64 -> f64", lang="c")


def test_without_debug_information() -> None:
    ir = "define double @f(double %x) {\n  ret double %x\n}"
    with pytest.raises(je.SignatureError, match="nothing is known"):
        je.suggest_signature(ir, "f", lang="llvm")
