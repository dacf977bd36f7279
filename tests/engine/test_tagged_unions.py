"""Integers that share their place with numbers: a tag says which of them is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)
pytestmark = pytest.mark.slow

RECORDS = """
#include <stdlib.h>
typedef struct { int kind; union { double d; long i; } u; } value;
double f(int n, const double *x) {
  int room = 2, m = 0;
  long sum = 1;
  double s = 0;
  value *v = malloc(room * sizeof *v);
  for (int k = 0; k < n; k++) {
    value t;
    if (m == room) v = realloc(v, (room *= 2) * sizeof *v);
    if (k % 2) t.kind = 0, t.u.i = k;
    else t.kind = 1, t.u.d = x[k] * x[(k + 1) % n];
    v[m++] = t;
  }
  for (int a = 0; a < m; a++)
    for (int b = a + 1; b < m; b++)
      if (v[b].kind < v[a].kind) { value t = v[a]; v[a] = v[b]; v[b] = t; }
  for (int k = 0; k < m; k++) {
    if (v[k].kind) { v[k].u.d *= 2; s += v[k].u.d * v[k].u.d; continue; }
    sum = sum * 3 + v[k].u.i;
    v[k].u.i = sum % 7;
    s += x[k] * v[k].u.i;
  }
  free(v);
  return s;
}"""
MACHINE = """
typedef union { double d; long i; } word;
double f(int n, const double *x) {
  word r[8];
  double s = 0;
  for (int k = 0; k < 8; k++) r[k].i = 0;
  r[0].i = n, r[1].d = x[0], r[2].i = 0, r[3].d = 1;
  while (r[2].i < r[0].i) {
    r[3].d = r[3].d * 0.9 + x[r[2].i] * r[1].d;
    if (r[2].i % 2) r[4].i = r[2].i * 2, r[5].d = (double)r[4].i * x[1];
    else r[4].d = x[2], r[5].d = r[4].d * r[4].d;
    s += r[5].d;
    r[2].i = r[2].i + 1;
  }
  return s + r[3].d;
}"""
VARIANT = """
#include <cstdint>
#include <variant>
#include <vector>
using V = std::variant<std::int64_t, double>;
static double real(const V &v) { return v.index() ? std::get<1>(v) : double(std::get<0>(v)); }
static V add(const V &a, const V &b) {
  if (a.index() == 0 && b.index() == 0) return std::get<0>(a) + std::get<0>(b);
  return real(a) + real(b);
}
static V mul(const V &a, const V &b) { return std::visit([](auto p, auto q) -> V { return p * q; }, a, b); }
extern "C" double f(int n, const double *x) {
  std::vector<V> v;
  V s = std::int64_t(0), p = std::int64_t(1);
  for (int k = 0; k < n; k++) k % 3 == 1 ? v.push_back(std::int64_t(k)) : v.push_back(x[k]);
  for (auto &e : v) s = add(s, e), p = mul(p, e);
  return real(s) * real(s) + real(p);
}"""
ENUMERATION = """
#[derive(Clone, Copy)]
enum V { F(f64), I(i64) }
use V::*;
fn add(a: V, b: V) -> V {
    match (a, b) { (I(p), I(q)) => I(p + q), (F(p), F(q)) => F(p + q), (I(p), F(q)) | (F(q), I(p)) => F(p as f64 + q) }
}
fn real(v: V) -> f64 { match v { I(p) => p as f64, F(q) => q } }
#[no_mangle]
pub extern "C" fn f(n: i32, x: *const f64) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n as usize) };
    let v: Vec<V> = (0..x.len()).map(|k| if k % 3 == 1 { I(k as i64) } else { F(x[k]) }).collect();
    let s = v.iter().fold(I(0), |s, e| add(s, *e));
    real(s) * real(s) + v.iter().enumerate().map(|(k, e)| real(*e) * x[k] * x[0]).sum::<f64>()
}"""
CONFUSED = """
typedef struct { int kind; union { double d; long i; } u; } value;
double f(int n, const double *x) {
  value v[16];
  double s = 0;
  for (int k = 0; k < n; k++)
    if (k % 2) v[k].u.i = 3 * k + n;
    else v[k].u.d = x[k] * x[k];
  for (int k = 0; k < n; k++) s += 1e-18 * (double)(v[k].u.i >> 3);
  return s;
}"""
NEXT = """
double f(int n, const double *x) {
  union { double d; long i; } v[16];
  double s = 0;
  for (int k = 0; k < n; k++)
    if (k % 2) v[k].i = k;
    else v[k].d = x[k];
  for (int k = 0; k < n; k++) v[k].i++;
  for (int k = 0; k < n; k++) s += k % 2 ? x[k] * v[k].i : v[k].d * v[k].d;
  return s;
}"""
TAGGED = """
struct value { int tag; union { double d; int i; } u; };
static double number(const struct value *v) { return v->tag ? v->u.d : v->u.i; }
double f(int n, const double *x) {
  struct value a[64], st[64];
  int top = 0;
  double s = 0;
  for (int r = 0; r < 3; r++) {
    for (int k = 0; k < n; k++)
      if ((k + r) % 3 == 1) a[k].tag = 0, a[k].u.i = r - k;
      else a[k].tag = 1, a[k].u.d = x[k] * (r + 1);
    for (int k = 0; k < n; k++) s += a[k].tag ? a[k].u.d * a[k].u.d : x[0] * x[k] * a[k].u.i;
  }
  for (int k = 0; k < 3 * n; k++) {
    if (k % 3 == 0) st[top].tag = 1, st[top++].u.d = x[k / 3];
    else if (k % 3 == 1) st[top].tag = 0, st[top++].u.i = k - 4;
    else top--, st[top - 1].u.d = number(st + top) * number(st + top - 1) + x[0], st[top - 1].tag = 1;
  }
  while (top) { double t = number(st + --top); s += t * t; }
  return s;
}"""
SORTED = """
#include <stdlib.h>
typedef struct { int tag, key; union { double d; int i; } u; } value;
static double number(const value *v) { return v->tag ? v->u.d : v->u.i; }
double f(int n, const double *x) {
  value *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
  double s = 0;
  for (int k = 0; k < n; k++) {
    a[k].key = k * 5 % n;
    if (k % 2) a[k].tag = 0, a[k].u.i = -k;
    else a[k].tag = 1, a[k].u.d = x[k] * x[k];
  }
  for (int i = 0; i < n; i++)
    for (int j = i; j > 0 && a[j - 1].key > a[j].key; j--) { value t = a[j]; a[j] = a[j - 1]; a[j - 1] = t; }
  for (int k = 0; k < n; k++) b[k] = a[k];
  for (int k = 0; k < n; k++) s += number(a + k) * number(b + (k + 1) % n) * x[k];
  free(a), free(b);
  return s;
}"""
SHARED = """
typedef struct { int tag; union { double d; int i; } u; } value;
double f(int n, const double *x) {
  value a[64], b[64];
  double s = 0;
  for (int r = 0; r < 2; r++) {
    for (int k = 0; k < n; k++)
      if ((k + r) % 2) a[k].tag = 0, a[k].u.i = k;
      else a[k].tag = 1, a[k].u.d = x[k] * x[0];
#pragma omp parallel for
    for (int k = 0; k < n; k++) b[k] = a[(k + 1) % n];
    for (int k = 0; k < n; k++) s += (b[k].tag ? b[k].u.d : b[k].u.i) * x[k];
  }
  return s;
}"""
VECTOR = """
#include <variant>
#include <vector>
extern "C" double f(int n, const double *x) {
  std::vector<std::variant<int, double>> v;
  double s = 0;
  for (int k = 0; k < n; k++) if (k % 2) v.push_back(k - 3); else v.push_back(x[k] * x[0]);
  for (auto &e : v) s += std::visit([&](auto a) { return double(a) * x[1] * double(a); }, e);
  return s;
}"""
INDICES = """#include <math.h>
struct value { int tag; union { double d; int i; } u; };
double f(int n, const double *x) {
  struct value a[64];
  double s = 0;
  for (int k = 0; k < n; k++)
    if (k % 3 == 1) a[k].tag = 0, a[k].u.i = n - 1 - k;
    else a[k].tag = 1, a[k].u.d = x[k] * x[k];
  for (int k = 0; k < n; k += STEP) a[k].u.i = k / 2, a[k].tag *= STEP == n;
  for (int k = 0; k < n; k++) s += a[k].tag ? sin(a[k].u.d) : x[a[k].u.i];
  return s;
}"""
HALVES = """
struct value { int tag; union { double d; int i[2]; } u; };
double f(int n, const double *x) {
  struct value a[64];
  double s = 0;
  for (int k = 0; k < n; k++)
    if (k % 3 == 1) a[k].tag = 0, a[k].u.i[0] = -k, a[k].u.i[1] = k;
    else {
      a[k].tag = 1, a[k].u.d = x[k] * x[k];
      if (k % 3 == 0) a[k].u.i[HALF] = 0x3ff00000;
    }
  for (int k = 0; k < n; k++) s += a[k].tag ? a[k].u.d * x[1] : a[k].u.i[0] * x[1] + a[k].u.i[1] * x[4];
  return s;
}"""
READ = """
struct value { int tag; union { double d; int i; } u; };
double f(int n, const double *x) {
  struct value a[64];
  double s = 0;
  for (int k = 0; k < n; k++)
    if (k % 3 == 1) a[k].tag = 0, a[k].u.i = -k;
    else a[k].tag = 1, a[k].u.d = x[k];
  for (int k = 0; k < n; k++) {
    double d = a[k].u.d;
    s += a[k].u.i * x[1] * 1e-9;
    if (k % 3 == 0) a[k].u.d = d * d * x[1];
  }
  for (int k = 0; k < n; k++) s += a[k].tag ? a[k].u.d : a[k].u.i;
  return s;
}"""
SHORT = INDICES.replace("int i;", "short i;")
SPLIT = (
    READ.replace("int i;", "short i[2];")
    .replace("u.i = -k", "u.i[1] = -k")
    .replace(".u.i;", ".u.i[0];")
    .replace("u.i *", "u.i[0] *")
)
MOVED = """
union word { double d; int i[2]; };
double f(int n, const double *x) {
  union word a[16];
  double s = 0;
  for (int k = 0; k < n; k++) a[k].d = x[k] * x[k];
  for (int k = 0; k < n; k += 3) a[k].i[1] = 0x3ff00000 + k;
  for (int k = 0; k < n; k++) a[k].d += x[1];
  for (int k = 0; k < n; k += 3) s += a[k].i[1] * x[4] * 1e-9;
  return s;
}"""
PACKED = """
struct __attribute__((packed)) value { int tag; union { double d; int i; } u; };
double f(int n, const double *x) {
  struct value a[64];
  double s = 0;
  for (int k = 0; k < n; k++)
    if (k % 3 == 1) a[k].tag = 0, a[k].u.i = -k;
    else a[k].tag = 1, a[k].u.d = x[k];
  for (int k = 0; k < n; k++) s += a[k].tag ? a[k].u.d : a[k].u.i * x[0];
  return s;
}"""
UNNAMED = """
#include <stdarg.h>
static double total(int n, ...) {
  double s = 0;
  va_list rest;
  va_start(rest, n);
  for (int k = 0; k < n; k++)
    if (k % 2) s += va_arg(rest, double);
    else s -= va_arg(rest, int);
  s *= va_arg(rest, double);
  va_end(rest);
  return s;
}
double f(int n, const double *x) { return total(n, 1, x[0], 2, x[1], 3, x[0] * x[2], x[3] * x[5]); }"""
X = np.linspace(0.6, 1.5, 6)


def kernel(source: str, lang: Literal["c", "c++", "rust"]) -> je.Kernel:
    flags = ["-fopenmp"] if "#pragma omp" in source else []
    return je.kernel(source, "f", "n: i32, x: f64[n] -> f64", lang=lang, flags=flags)


@pytest.mark.parametrize(
    ("source", "lang"), [(RECORDS, "c"), (MACHINE, "c"), (VARIANT, "c++"), (ENUMERATION, "rust")],
    ids=["records", "machine", "variant", "enumeration"],
)  # fmt: skip
def test_the_tag_says_what_is_there(source: str, lang: Literal["c", "c++", "rust"]) -> None:
    f = kernel(source, lang)
    je.check_grads(f, (X,))
    gradient = jax.grad(f)
    step = 1e-5 * X
    differences = (gradient(X + step) - gradient(X - step)) / 2
    np.testing.assert_allclose(jax.hessian(f)(X) @ step, differences, rtol=1e-5, atol=1e-10)


def test_what_lies_around_a_short_integer_is_of_no_number() -> None:
    f = kernel(UNNAMED, "c")
    for function in (f, jax.grad(f)):
        assert np.isfinite(jax.jacfwd(function)(X)).all()


def test_where_a_number_lies_after_all_derivatives_are_no_numbers() -> None:
    f = kernel(CONFUSED, "c")
    for gradient in (jax.grad(f)(X), jax.jacfwd(f)(X)):
        np.testing.assert_array_equal(np.isnan(gradient), np.arange(6) % 2 == 0)
        np.testing.assert_array_equal(gradient[1::2], 0)


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_where_a_number_lies_after_all_second_derivatives_are_no_numbers(
    inner: Callable[..., Any], outer: Callable[..., Any]
) -> None:
    curvature = np.diag(outer(inner(kernel(NEXT, "c")))(np.linspace(0.4, 1.3, 9)))
    np.testing.assert_array_equal(np.isnan(curvature), np.arange(9) % 2 == 0)
    np.testing.assert_array_equal(curvature[1::2], 0)


@pytest.mark.parametrize(
    ("source", "lang"),
    [(TAGGED, "c"), (SORTED, "c"), (SHARED, "c"), (VECTOR, "c++"), (SHORT.replace("STEP", "2"), "c")],
    ids=["tagged", "sorted", "shared", "vector", "indices"],
)
def test_an_int_beside_a_double_has_first_derivatives(source: str, lang: Literal["c", "c++"]) -> None:
    f = kernel(source, lang)
    je.check_grads(f, (X,), order=1)
    with pytest.raises(je.DifferentiationError) as refused:  # and no second ones that could hide those of a number
        jax.jacfwd(jax.grad(f))(X)
    assert refused.value.place and refused.value.place.startswith("kernel.c")  # though derivatives have no lines


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        (HALVES.replace("HALF", "0"), [0, 3]),
        (HALVES.replace("HALF", "1"), [0, 3]),
        (READ, [0, 2, 3, 5]),
        (MOVED, [0, 1, 3]),
        (INDICES.replace("STEP", "n"), [0]),
        (SHORT.replace("STEP", "n"), [0]),
    ],
    ids=["low", "high", "read", "moved", "index", "short index"],
)
def test_a_half_of_a_number_has_derivatives_that_are_no_numbers(source: str, lost: list[int]) -> None:
    f = kernel(source, "c")
    for gradient in (jax.grad(f)(X), jax.jacfwd(f)(X)):
        assert np.flatnonzero(np.isnan(gradient)).tolist() == lost


@pytest.mark.parametrize("source", [PACKED, SPLIT], ids=["between words", "two in a half"])
def test_integers_that_are_no_halves_of_their_own_are_refused(source: str) -> None:
    for derivative in (jax.grad, jax.jacfwd):
        with pytest.raises(je.DifferentiationError, match="where a number may lie"):
            derivative(kernel(source, "c"))(X)


_WRITTEN_BY_A_ROUTINE = """
extern void daxpy_(const int *, const double *, const double *, const int *, double *, const int *);
double f(int n, const double *x) {
  double y[16] = {0}, two = 2, s = 0;
  int one = 1;
  daxpy_(&n, &two, x, &one, y, &one);
  for (int k = 0; k < n; k++) s += (((int *)y)[2 * k + 1] & 0xfffff) * 1e-6;
  return s;
}"""


def _reads_words(number: str, integer: str, change: str) -> str:
    """Numbers in an array, whose bits the source reads by way of a pointer to integers, in spite of C's rules."""
    return f"""double f(int n, const double *x) {{
      {number} a[16];
      double s = 0;
      for (int k = 0; k < n; k++) a[k] = x[k] * x[k];
      for (int k = 0; k < n; k++) {{ {integer} *p = ({integer} *)&a[k]; {change} }}
      for (int k = 0; k < n; k++) s += a[k] * x[0];
      return s;
    }}"""


@pytest.mark.parametrize(
    "source",
    [
        _reads_words("double", "int", "s += p[1] >> 20; p[1] = (p[1] & 0xfffff) | 0x3ff00000;"),
        _reads_words("double", "int", "s += (p[1] & 0xfffff) * 1e-6;"),
        _reads_words("float", "int", "*p = 0x5f3759df - (*p >> 1);"),
        _reads_words("double", "long", "*p = (*p & 0xfffffffffffff) | 0x3ff0000000000000;"),
        _WRITTEN_BY_A_ROUTINE,
    ],
    ids=["frexp", "digits", "root", "word", "routine"],
)
def test_words_of_numbers_that_are_read_as_integers_are_refused(source: str) -> None:
    for derivative in (jax.grad, jax.jacfwd):
        with pytest.raises(je.DifferentiationError, match="where a number may lie"):
            derivative(kernel(source, "c"))(X)


@pytest.mark.parametrize("word", ["((int *)a)[13]", "((struct { int low, high; } *)a)[6].high"])
def test_a_word_of_one_of_the_numbers_that_a_loop_reads_is_refused(word: str) -> None:
    source = f"""double f(int n, const double *x) {{
      double a[16], s = 0;
      for (int k = 0; k < n + 5; k++) a[k] = x[k % n] * x[k % n];
      {word} = 0x3ff00000;
      for (int k = 0; k < n; k++) s += a[k + 5] * x[k];
      return s;
    }}"""
    for derivative in (jax.grad, jax.jacfwd):
        with pytest.raises(je.DifferentiationError, match="a part of a number"):
            derivative(kernel(source, "c"))(X)


@pytest.mark.parametrize("change", ["p[k] += 1L << 52;", "p[k] = (p[k] & 0xfffffffffffff) | 0x3ff0000000000000;"])
def test_words_of_numbers_that_are_changed_where_integers_were_are_no_numbers(change: str) -> None:
    f = kernel(
        f"""double f(int n, const double *x) {{
      double a[16], s = 0;
      long *p = (long *)a;
      for (int k = 0; k < n; k++) p[k] = k;
      for (int k = 0; k < n; k++) s += p[k * 5 % n];
      for (int k = 0; k < n; k++) a[k] = x[k] * x[k];
      for (int k = 0; k < n; k++) {change}
      for (int k = 0; k < n; k++) s += a[k] * x[0];
      return s;
    }}""",
        "c",
    )
    assert np.isnan(jax.grad(f)(X)).any()
    assert np.isnan(jax.jacfwd(f)(X)).any()


@pytest.mark.parametrize(
    "move",
    [
        "long *p = (long *)a; const long *q = (const long *)x; for (int k = 0; k < n; k++) p[2 * k] = q[k];",
        """for (int k = 0; k < n; k++) a[0].d[1] = x[k], a[k].d[0] = a[0].d[1];
      for (int k = 1; k < n; k++) {
        long *p = (long *)&a[k - 1], *q = (long *)&a[k], m = sizeof *a / sizeof *p;
        do { long t = *p; *p++ = *q; *q++ = t; } while (--m > 0);
      }
      { double t = a[n - 1].d[0]; for (int k = n - 1; k > 0; k--) a[k].d[0] = a[k - 1].d[0]; a[0].d[0] = t; }""",
    ],
    ids=["words", "records"],
)
def test_numbers_are_moved_by_integers_as_they_are_meant(move: str) -> None:
    f = kernel(
        f"""double f(int n, const double *x) {{
      struct {{ double d[2]; }} a[16];
      double s = 0;
      for (int k = 0; k < n; k++) a[k].d[0] = a[k].d[1] = 1;
      {move}
      for (int k = 0; k < n; k++) s += a[k].d[0] * a[k].d[0] * x[0];
      return s;
    }}""",
        "c",
    )
    assert np.isclose(f(X), (X**2).sum() * X[0])
    je.check_grads(f, (X,), order=1)


def test_characters_in_records_are_moved_by_integers_as_they_are_meant() -> None:
    f = kernel(
        """struct r { char c; double d; int i; };
    static void swap(struct r *a, struct r *b) {
      long *p = (long *)a, *q = (long *)b;
      for (unsigned long k = 0; k < sizeof *a / sizeof *p; k++) { long t = p[k]; p[k] = q[k]; q[k] = t; }
    }
    double f(int n, const double *x) {
      struct r a[16];
      double s = 0;
      for (int k = 0; k < n; k++) a[k].c = k, a[k].i = k, a[k].d = x[k];
      for (int k = 0; k < n / 2; k++) swap(a + k, a + n - 1 - k);
      for (int k = 0; k < n; k++) s += a[k].d * a[k].d * a[k].c * a[k].i;
      return s;
    }""",
        "c",
    )
    assert np.isclose(f(X), (X**2 * np.arange(len(X)) ** 2).sum())


def test_members_are_reached_from_the_first_one() -> None:
    """Clang calls `(&v.x)[k]` the member `x`, so that LLVM took away what was stored in the others."""
    f = kernel(
        """struct v { double x, y, z; }; struct w { struct v a, b; };
    double f(int n, const double *x) {
      struct v v = {x[0], x[1], x[2]}; struct w w = {{x[1], 2, 3}, {x[2], 2, 3}}; double s = 0;
      for (int k = 0; k < 3; k++) s += (&v.x)[k] * (&v.x)[k];
      for (int k = 0; k < 2; k++) s += (&w.a)[k].x * x[k];
      return s;
    }""",
        "c",
    )
    assert np.isclose(f(X), (X[:3] ** 2).sum() + X[1] * X[0] + X[2] * X[1])
    je.check_grads(f, (X,), order=1)


_AT_DATA = """#include <stdlib.h>
double f(int n, const int *at, const double *x) {{
  double a[8], b[8], s = 0;
  for (int k = 0; k < 8; k++) a[k] = x[k % 5] * x[k % 5], b[k] = a[k] * 3;
  {change}
  for (int k = 0; k < n; k++) s += a[k] * x[k % 5];
  return s + a[2] * b[2];
}}"""


@pytest.mark.parametrize(
    "change",
    [
        "int *p = at[2] > 1 ? (int *)(a + 2) + 1 : (int *)b + at[0]; *p += 0x00100000;",
        "int **p = malloc(n * sizeof *p); for (int k = 0; k < n; k++) p[k] = (int *)(a + k) + 1;"
        " for (int k = 0; k < n; k++) *p[k] += 0x00100000; free(p);",
        "long *p = at[2] > 1 ? (long *)a + at[2] : (long *)a + 3; *p += 1L << 52;",
        "for (int t = 0; t < 2; t++) ((int *)a)[at[t]] ^= 0x80000000;",
        "for (int t = 0; t < n; t++) { long *p = (long *)a + at[t % 3]; *p += 1L << 52; if (t & 1) *p -= 1L << 52; }",
        "s = ((int *)a)[at[0]] * 1e-9;",
        "struct { double d; int i; } r[8]; for (int k = 0; k < 8; k++) r[k].d = a[k], r[k].i = k;"
        " for (int k = 0; k < n; k++) if (at[k % 3] > 2) ((int *)&r[3])[1] ^= 0x80000000;"
        " for (int k = 0; k < n; k++) s += r[k].d * x[0];",
        "__builtin_memset(a + at[2], 0, 7);",
        "__builtin_memcpy(a + at[2] % 2, x + 1, 12);",
    ],
)
def test_words_of_numbers_at_places_that_nobody_knows_are_refused(change: str) -> None:
    f = je.kernel(_AT_DATA.format(change=change), "f", "n: i32, at: i32[3], x: f64[5] -> f64", lang="c")
    for derivative in (jax.grad, jax.jacfwd):
        with pytest.raises(je.DifferentiationError, match=r"where a number may lie|a part of a number"):
            derivative(lambda x: f(7, np.array([5, 4, 2], np.int32), x))(X[:5])


def test_numbers_that_are_moved_by_words_at_one_place_have_second_derivatives() -> None:
    change = """struct { double d; int i; } *r = malloc(8 * sizeof *r);
      for (int k = 0; k < 8; k++) r[k].d = a[k], r[k].i = k;
      long *p = (long *)&r[3].d, *q = (long *)&r[at[2]].d;
      *p = at[0] % 2 ? *p : *q;
      for (int k = 0; k < 8; k++) s += r[k].d * r[k].d;
      free(r);"""
    f = je.kernel(_AT_DATA.format(change=change), "f", "n: i32, at: i32[3], x: f64[5] -> f64", lang="c")
    je.check_grads(lambda x: f(7, np.array([5, 4, 2], np.int32), x), (X[:5],), order=2)


def test_a_member_that_is_laid_over_a_number_has_derivatives_that_are_no_numbers() -> None:
    change = """struct { int n, m; double d[7]; } *r = (void *)a;
      for (int k = 0; k < 3; k++) r->m += 1 << 20, r->d[k] *= 2, s += a[k];"""
    f = je.kernel(_AT_DATA.format(change=change), "f", "n: i32, at: i32[3], x: f64[5] -> f64", lang="c")
    for derivative in (jax.grad, jax.jacfwd):
        assert np.isnan(derivative(lambda x: f(7, np.array([5, 4, 2], np.int32), x))(X[:5])).any()


@pytest.mark.parametrize(
    "change",
    [
        "struct { double d[8]; int c[8]; float w[8]; } r[2], *p = &r[at[2] % 2];"
        " for (int k = 0; k < 8; k++) p->d[k] = a[k], p->c[k] = 7 - k, p->w[k] = k;"
        " p->c[at[0] % 8]++; p->w[at[1] % 8] *= 2;"
        " for (int k = 0; k < n; k++) s += p->d[p->c[k] % 8] * p->d[k] * p->c[k] * p->w[k];",
        "struct { double d; float w[4]; } r[3]; for (int k = 0; k < 3; k++) r[k].d = a[k];"
        " for (int k = 0; k < n; k++) r[at[k % 3] % 3].w[k % 4] = 9, r[k % 3].d *= r[at[k % 3] % 3].d; s = r[1].d;",
        "struct { int c; double d[4]; float w; } *r = calloc(n, sizeof *r);"
        " for (int k = 0; k < n; k++) r[at[k % 3]].d[r[at[k % 3]].c++ % 4] += a[k], r[at[k % 3]].w += 1;"
        " for (int k = 0; k < n; k++) s += r[k].d[0] * r[k].d[1] * r[k].c * r[k].w; free(r);",
    ],
)
def test_integers_and_floats_in_structures_at_places_that_nobody_knows_are_themselves(change: str) -> None:
    f = je.kernel(_AT_DATA.format(change=change), "f", "n: i32, at: i32[3], x: f64[5] -> f64", lang="c")
    je.check_grads(lambda x: f(7, np.array([5, 4, 2], np.int32), x), (X[:5],), order=1)


@pytest.mark.parametrize("change", ["s += p[1];", "p[1] *= 2;", "p[0] = 0;"])
def test_floats_in_the_place_of_doubles_are_told(change: str) -> None:
    f = kernel(_reads_words("double", "float", change), "c")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"another kind of number.*kernel\.c:\d+"):
        jax.grad(f)(X)
    assert np.isnan(jax.jacfwd(f)(X)).any()


@pytest.mark.parametrize(
    "change",
    ["((float *)a)[13] = (float)(x[0] * x[1]);", "s = ((float *)a)[13];", "((float *)a)[at[0]] *= 2;"],
)
def test_floats_at_places_that_nobody_knows_are_told(change: str) -> None:
    f = je.kernel(_AT_DATA.format(change=change), "f", "n: i32, at: i32[3], x: f64[5] -> f64", lang="c")
    at = np.array([5, 4, 2], np.int32)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"another kind of number.*kernel\.c:\d+"):
        jax.grad(lambda x: f(7, at, x))(X[:5])
    assert np.isnan(jax.jacfwd(lambda x: f(7, at, x))(X[:5])).any()


@pytest.mark.parametrize(
    ("body", "order"),
    [
        (
            """int *count = malloc(n * sizeof(double));
        double *a = (double *)count;
        memset(count, 0, n * sizeof(double));
        for (int k = 0; k < 2 * n; k++) count[k * k % n]++;
        for (int k = 0; k < n; k++) s += count[k] * x[k];
        for (int k = 0; k < n; k++) a[k] = x[k] * x[k];
        for (int k = 0; k < n; k++) s += a[k] * a[(k + 3) % n];
        free(a);""",
            1,
        ),
        (
            """double *a = malloc(n * sizeof(double));
        float *b = (float *)a;
        for (int k = 0; k < n; k++) a[k] = x[k] * x[k];
        for (int k = 0; k < n; k++) s += a[k];
        for (int k = 0; k < n; k++) s += a[k] * a[(k + 1) % n];
        for (int k = 0; k < 2 * n; k++) b[k] = (k % 3) * 0.5f;
        for (int k = 0; k < 2 * n; k++) s += b[k] * x[k % n] * x[0];
        free(a);""",
            1,
        ),
        (
            """void *room = malloc(n * sizeof(double));
        int *count = room;
        double *a = room;
        for (int k = 0; k < 2 * n; k++) count[k] = k * k;
        for (int k = 0; k < 2 * n; k++) s += count[k] * x[k % n];
        for (int k = 0; k < n; k++) a[k] = x[k] * x[k];
        for (int k = 0; k < n; k++) s += a[k] * x[0];
        free(room);""",
            2,
        ),
        (
            """void *room = malloc(8 * sizeof(double));
        int *count = room;
        double *a = room;
        for (int t = 0; t < 3; t++) {
          for (int k = 0; k < 16; k++) count[k] = k * (t + 3) % 4;
          for (int k = 0; k < 16; k++) s += count[k] * x[k % n];
          for (int k = 0; k < 8; k++) a[k] = x[k % n] * x[(k + t) % n];
          for (int k = 0; k < 8; k++) s += a[k] * a[k];
        }
        free(room);""",
            2,
        ),
        (
            """struct { int tag; char room[8] __attribute__((aligned(8))); } a[16];
        for (int k = 0; k < n; k++) {
          if ((a[k].tag = k % 2)) *(int *)a[k].room = k;
          else *(double *)a[k].room = x[k] * x[0];
        }
        for (int k = 0; k < n; k++)
          if (a[k].tag) s += *(int *)a[k].room * x[k];
          else s += *(double *)a[k].room * *(double *)a[k].room;""",
            1,
        ),
        (
            """struct { double sum[3]; int steps; float scale; } t[2] = {{{1, x[0], 2}, 0, 1}, {{x[1], 1, 2}, 0, 1}};
        for (int i = 0; i < n; i++) {
          t[i % 2].sum[t[i % 2].steps % 3] += x[i] * x[i] * t[i % 2].scale;
          t[i % 2].steps++;
          t[i % 2].scale = i;
        }
        for (int i = 0; i < n; i++) s += t[i % 2].sum[i % 3] * t[i % 2].steps * x[i] * t[i % 2].scale;""",
            1,
        ),
        (
            """struct { double sum[3]; int steps; float scale; } t = {{1, x[0], 2}, 0, 1};
        for (int i = 0; i < n; i++) {
          t.sum[t.steps % 3] += x[i] * x[i];
          t.steps++;
          t.scale = i;
        }
        for (int i = 0; i < n; i++) s += t.sum[i % 3] * x[i] * t.scale;""",
            2,
        ),
        (
            """
        struct { int many; double sum, number[]; } *t = malloc(sizeof *t + 10 * sizeof(double));
        t->many = 1, t->sum = t->number[0] = x[1];
        for (int k = 0; k < n; k++) {
          memmove(t->number + 1, t->number, (t->many - 1) * sizeof(double));
          if (t->many < 9) t->number[t->many++] = x[k] * t->sum;
          t->sum = t->sum * 0.5 + t->number[t->many - 1] * t->many;
        }
        s = t->sum * t->number[0];
        free(t);""",
            2,
        ),
        (
            """
        struct { int many; double number[10]; } *t = calloc(1, sizeof *t);
        t->many = 1, t->number[0] = x[1];
        for (int k = 0; k < n; k++)
          if (k % 3 < 2) t->number[t->many] = t->number[t->many - 1] * x[k], t->many++;
          else t->number[t->many - 2] += t->number[t->many - 1], t->many--;
        while (t->many) s = s * x[0] + t->number[--t->many];
        free(t);""",
            2,
        ),
    ],
    ids=[
        *("cleared", "floats", "allocated", "in a loop", "any", "members of several", "members"),
        *("a member in front of an array", "a stack"),
    ],
)
def test_memory_that_numbers_and_integers_use_in_turn(body: str, order: int) -> None:
    head = "#include <stdlib.h>\n#include <string.h>\n"
    source = head + f"double f(int n, const double *x) {{ double s = 0; {body} return s; }}"
    je.check_grads(kernel(source, "c"), (X,), order=order)


_KINDS = r"""#include <stdint.h>
#include <stdlib.h>
typedef union {{ double d; float f[2]; int64_t i; int k[2]; }} U;
double f(int n, const int *t, const double *x) {{
  U *u = malloc(n * sizeof *u), v[8];
  double s = 0;
  for (int i = 0; i < n; i++) {{
    if (t[i] == 0) u[i].d = x[i] * x[i];
    else if (t[i] == 1) u[i].f[0] = (float)x[i], u[i].f[1] = (float)(x[4] * 2);
    else if (t[i] == 2) u[i].i = t[i] + 7;
    else u[i].k[0] = 3, u[i].k[1] = 4;
  }}
  for (int i = 0; i < n; i++) v[(i * 2) % n] = u[i];
  for (int i = 0; i < n; i++) {{ U *w = &v[(i * 2) % n]; {body} }}
  free(u);
  return s;
}}"""


def _of_kinds(body: str, kinds: list[int]) -> Callable[[Any], Any]:
    f = je.kernel(_KINDS.format(body=body), "f", "n: i32, t: i32[n], x: f64[n] -> f64", lang="c")
    return lambda x: f(np.array(kinds, np.int32), x)


def test_doubles_pairs_of_floats_and_integers_share_a_word_under_a_tag() -> None:
    body = """s += t[i] == 0 ? w->d * x[i] + u[i].d : t[i] == 1 ? w->f[0] * w->f[1] + u[i].f[0] * x[0]
      : t[i] == 2 ? w->i * x[i] : w->k[0] * x[1] + w->k[1];"""
    x = X[:5]
    expected = jax.grad(lambda x: x[0] ** 3 + x[0] ** 2 + (2 * x[1] * x[4] + x[1] * x[0]) + 9 * x[2])(x)
    expected += jax.grad(lambda x: 3 * x[1] + 2 * x[4] ** 2 + x[4] * x[0])(x)
    for derivative in (jax.grad, jax.jacfwd):
        found = derivative(_of_kinds(body, [0, 1, 2, 3, 1]))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("s += w->d;", [0, 1, 0, 1, 0]),
        ("s += w->f[1];", [0, 0, 1, 1, 0]),
        ("s += w->i * x[0] * 1e-18;", [0, 2, 2, 2, 0]),
        ("s += u[i].k[0] * x[0] * 1e-9;", [3, 2, 1, 2, 3]),
        ("u[i].k[0] = 0; s += u[i].d * x[0];", [0, 0, 0, 0, 0]),
    ],
    ids=["pair as a double", "double as a float", "double as an integer", "float as an integer", "half overwritten"],
)
def test_what_is_read_as_another_kind_is_told(body: str, kinds: list[int]) -> None:
    f = _of_kinds(body, kinds)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"another kind of number.*kernel\.c:\d+"):
        jax.grad(f)(X[:5])
    assert np.isnan(jax.jacfwd(f)(X[:5])).any()


_WORDS_OF_KINDS = r"""#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef union {{ double d; float f[2]; int64_t i; }} U;
double f(int n, const int *t, const double *x) {{
  U *u = malloc(8 * sizeof *u), *v = malloc(64 * sizeof *v);
  double s = 0;
  for (int i = 0; i < n; i++) {{
    v[i].d = 0;
    if (t[i] == 0) u[i].d = x[i] * x[i];
    else u[i].f[0] = (float)x[i], u[i].f[1] = (float)(x[4] * 2);
  }}
  {body}
  free(u), free(v);
  return s;
}}"""


def _of_words(body: str, kinds: list[int]) -> Callable[[Any], Any]:
    f = je.kernel(_WORDS_OF_KINDS.format(body=body), "f", "n: i32, t: i32[n], x: f64[n] -> f64", lang="c")
    return lambda x: f(np.array(kinds, np.int32), x)


def test_a_word_that_is_stored_at_many_places_has_the_sum_of_their_adjoints() -> None:
    body = """for (int i = 0; i < n; i++) {
      int j = (3 * i + t[0]) % n;
      int64_t w = u[j].i;
      for (int k = 0; k < 4; k++) v[4 * j + k * (x[j] < 50)].i = w;
    }
    for (int i = 0; i < n; i++) for (int k = 0; k < 4; k++)
      s += t[i] == 0 ? v[4 * i + k].d * x[i] * k : v[4 * i + k].f[0] * (i + 1) + k * v[4 * i + k].f[1];"""

    def expected(x: jax.Array) -> jax.Array:
        return 6 * (x[0] ** 3 + x[3] ** 3) + 4 * (2 * x[1] + 3 * x[2] + 5 * x[4]) + 3 * 6 * 2 * x[4]

    f, x = _of_words(body, [0, 1, 1, 0, 1]), X[:5]
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(f)(x), jax.grad(expected)(x), rtol=1e-6)


def test_words_that_are_merged_are_moved_as_what_they_hold() -> None:
    body = """int64_t w = u[0].i;
        for (int i = 0; i < n; i++) { v[i].i = w; w = u[(i + 1) % n].i; if (x[i] > 50) w = 7; }
        for (int i = 0; i < n; i++) s += t[i] == 0 ? v[i].d * x[i] : v[i].f[0] * (i + 1);"""

    def expected(x: jax.Array) -> jax.Array:
        return x[0] ** 3 + x[2] ** 3 + x[3] ** 3 + 2 * x[1] + 5 * x[4]

    f, x = _of_words(body, [0, 1, 0, 0, 1]), X[:5]
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(f)(x), jax.grad(expected)(x), rtol=1e-6)


_STREAM = """char *p = (char *)u, *q = (char *)v;
  for (int i = 0; i < n; i++) {
    double d = x[i] * x[4]; float a = (float)(x[i] * x[i]);
    if (t[i] == 1) memcpy(p, &a, 4), p += 4; else memcpy(p, &d, 8), p += 8;
  }
  memcpy(q, %s);
  for (int i = 0; i < 3; i++) memmove(q + 4, q, p - (char *)u), q += 4;
  for (int i = 0; i < n; i++) {
    double d; float a;
    if (t[i] == 1) memcpy(&a, q, 4), q += 4, s += a * x[0]; else memcpy(&d, q, 8), q += 8, s += d * x[1];
  }"""


@pytest.mark.parametrize("rest", ["u, p - (char *)u", "u, 32"])
@pytest.mark.parametrize("checkpoint", [None, "sqrt"])
def test_floats_and_doubles_are_packed_in_a_stream_of_bytes(rest: str, checkpoint: Any) -> None:
    f = je.kernel(
        _WORDS_OF_KINDS.format(body=_STREAM % rest),
        "f",
        "n: i32, t: i32[n], x: f64[n] -> f64",
        lang="c",
        options=je.Options(checkpoint=checkpoint),
    )
    kinds = np.array([0, 1, 0, 0, 1], np.int32)

    def expected(x: jax.Array) -> jax.Array:
        return (x[1] ** 2 + x[4] ** 2) * x[0] + (x[0] + x[2] + x[3]) * x[4] * x[1]

    x = X[:5] * 0.5
    derivatives = [jax.grad] if checkpoint else [jax.grad, jax.jacfwd, jax.hessian]
    for derivative in derivatives:
        wanted = jax.hessian(expected) if derivative is jax.hessian else jax.grad(expected)
        np.testing.assert_allclose(derivative(lambda x: f(kinds, x))(x), wanted(x), rtol=1e-6, atol=1e-6)


def test_a_half_of_a_double_beside_that_of_another_is_none() -> None:
    body = """int32_t *w = (int32_t *)v, *r = (int32_t *)u;
        memcpy(w + 2 * t[0], r + 4 * t[0], 4 + 4 * t[3]);
        s = v[0].d * x[1];"""
    f = _of_words(body.replace("t[0]", "t[1]"), [0, 0, 0, 0, 1])
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"(another kind of number|cut).*kernel\.c:\d+"):
        jax.grad(f)(X[:5])
    assert np.isnan(jax.jacfwd(f)(X[:5])).any()


@pytest.mark.parametrize(
    "body",
    [
        """struct { int tag; union { double d; float f[2]; int i; } u; } v[8];
        for (int k = 0; k < n; k++)
          if ((v[k].tag = k % 3) == 0) v[k].u.d = x[k] * x[k] * x[k];
          else if (k % 3 == 1) v[k].u.f[0] = (float)x[k], v[k].u.f[1] = 2;
          else v[k].u.i = k;
        for (int k = 0; k < n; k++)
          s += v[k].tag == 0 ? v[k].u.d * v[k].u.d
            : v[k].tag == 1 ? v[k].u.f[0] * v[k].u.f[1] * x[0] * x[0] : v[k].u.i * x[k] * x[k];""",
        """union { double d; float f; long i; } r[8], t;
        for (int k = 0; k < 8; k++) r[k].d = x[k % n];
        for (int p = 0; p < 14; p++) {
          int a = p % 8, b = (p * 3 + 1) % 8;
          if (p % 4 == 1) r[a].f = (float)x[p % n], r[b] = r[a], s += r[b].f * r[a].f, r[a].d = x[0], r[b].d = x[1];
          else if (p % 4 == 2) r[a].i = p, s += r[a].i * x[a % n], r[a].d = x[b % n] * x[b % n];
          else t = r[a], r[a] = r[b], r[b] = t;
        }
        for (int k = 0; k < 8; k++) s += r[k].d * (k + 1);""",
        """typedef struct { double v[2]; float w[4]; } R;
        R q[8], *p = malloc(n * sizeof *p);
        for (int k = 0; k < n; k++) {
          for (int j = 0; j < 4; j++) q[k].w[j] = (float)(x[k] * (j + 1));
          q[k].v[0] = x[k] * x[0], q[k].v[1] = 1;
        }
        memcpy(p, q, n * sizeof *p);
        for (int k = 0; k < n; k++)
          for (int j = 0; j < 4; j++) s += p[k].w[j] * p[(k + 1) % n].w[3 - j] * p[k].v[j % 2];
        free(p);""",
    ],
    ids=["tagged", "registers of a machine", "rows of floats"],
)
def test_records_of_doubles_floats_and_integers_have_second_derivatives(body: str) -> None:
    head = "#include <stdlib.h>\n#include <string.h>\n"
    f = kernel(head + f"double f(int n, const double *x) {{ double s = 0; {body} return s; }}", "c")
    step, x = 1e-3, X[:6] / 2
    wanted = np.stack([(jax.grad(f)(x + e) - jax.grad(f)(x - e)) / (2 * step) for e in np.eye(6) * step])
    np.testing.assert_allclose(jax.hessian(f)(x), wanted, rtol=1e-3, atol=1e-3)
    slopes = [(f(x + e) - f(x - e)) / (2 * step) for e in np.eye(6) * step]
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(f)(x), slopes, rtol=1e-3, atol=1e-3)


def test_variants_of_doubles_and_floats_are_assigned_and_visited() -> None:
    source = r"""#include <variant>
    using V = std::variant<double, float>;
    extern "C" double f(int n, const double *x) {
      V v[4];
      double s = 0;
      for (int t = 0; t < 16; t++) {
        if (t % 3) v[t % 4] = x[t % n] * x[0];
        else v[t % 4] = (float)x[t % n];
        V w = v[(t * 3) % 4];
        v[(t + 1) % 4] = w;
        s += std::visit([](auto a) { return (double)a * a; }, w);
      }
      return s;
    }"""
    f, step = kernel(source, "c++"), 1e-3
    slopes = [(f(X + e) - f(X - e)) / (2 * step) for e in np.eye(6) * step]
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(f)(X), slopes, rtol=1e-3)


def test_an_arena_hands_out_arrays_of_doubles_floats_and_integers() -> None:
    source = r"""#include <stddef.h>
    static char pool[4096]; static size_t used;
    static void *take(size_t n) { void *p = pool + used; used += (n + 7) & ~(size_t)7; return p; }
    double f(int n, const double *x) {
      double s = 0;
      for (int i = 0; i < n; i++) {
        if (i % 3 == 0) used = 0;
        int m = i % 4 + 2;
        double *d = take(m * sizeof(double));
        float *g = take(m * sizeof(float));
        int *k = take(m * sizeof(int));
        for (int j = 0; j < m; j++) d[j] = x[i] * j, g[j] = (float)(x[(i + j) % n] * 2), k[j] = j * i;
        for (int j = 0; j < m; j++) s += d[j] * g[j] * (k[j] + 1);
      }
      return s;
    }"""

    def expected(x: jax.Array) -> jax.Array:
        terms = [x[i] * j * 2 * x[(i + j) % 5] * (j * i + 1) for i in range(5) for j in range(i % 4 + 2)]
        return jnp.sum(jnp.stack(terms))

    x = X[:5]
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(kernel(source, "c"))(x), jax.grad(expected)(x), rtol=1e-6)
