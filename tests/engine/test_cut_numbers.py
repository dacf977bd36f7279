"""Copies and clearings of memory at places, and of lengths, that only the run knows: whole numbers, texts and integers
beside numbers have derivatives; where a number is cut in two that a derivative depends on, the derivative says so."""

import ctypes
import mmap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ad.emit.cut_number_texts import Look, grid_text
from jax_enzyme.ad.facts.cut_numbers import Grid
from jax_enzyme.ir.reader import parse
from tests.rules.native import Compiled

X = np.array([1.3, 0.7, -0.4, 2.1, 0.9])
_COPIES = r"""
#include <stdlib.h>
#include <string.h>
double f(const int at[4], const double x[5]) {
  int which = at[0], to = at[1], from = at[2], n = at[3];
  double a[8], b[8], s = 0, *p = malloc(64);
  float u[8], v[8];
  struct { char name[13]; double d; char more[8]; } r[4];
  for (int k = 0; k < 8; k++) {
    p[k] = a[k] = x[k % 5] * (k + 1), b[k] = x[(k + 1) % 5] + k;
    u[k] = (float)a[k], v[k] = (float)(x[k % 5] * 3);
    r[k % 4].d = x[k % 5] * k, strcpy(r[k % 4].name, "a name"), strcpy(r[k % 4].more, "more");
  }
  switch (which) {
    case 0: memcpy((char *)a + to, (char *)b + from, n); break;
    case 1: memmove((char *)a + to, (char *)a + from, n); break;
    case 2: memset((char *)a + to, 0, n); break;
    case 3: { char *t = (char *)a + to, *o = (char *)p + from; for (int k = 0; k < n; k++) t[k] = o[k]; break; }
    case 4: memcpy((char *)a + to, (char *)x + from, n); break;
    case 5: memcpy((char *)u + to, (char *)v + from, n); break;
    case 6: memmove((char *)r[to].name + 1, r[from].name, n); memset(r[to].more + 1, 'c', n); break;
    case 7: memcpy((char *)&r[to] + from, (char *)&r[3] + from, n); break;
  }
  for (int k = 0; k < 8; k++) s += a[k] * x[k % 5] + b[k] * p[k] + u[k] * v[k] * x[0] + r[k % 4].d * k;
  s += strlen(r[1].name) + strcmp(r[2].more, "mine");
  free(p);
  return s;
}"""
_KERNEL = je.kernel(_COPIES, "f", "at: i32[4], x: f64[5] -> f64", lang="c")


def _copied(what: tuple[int, int, int, int], x: jax.Array) -> jax.Array:
    return _KERNEL(np.array(what, np.int32), x)


def _tangent(what: tuple[int, int, int, int]) -> jax.Array:
    return jax.jvp(lambda x: _copied(what, x), (X,), (np.cos(X),))[1]


def _expected(which: int, to: int, source: int, n: int, x: jax.Array) -> jax.Array:
    """The same where whole numbers are moved."""
    k = np.arange(8)
    a, b = x[k % 5] * (k + 1.0), x[(k + 1) % 5] + k
    p, u, v, d = a, a, x[k % 5] * 3, x[np.array([4, 0, 1, 2])] * np.array([4.0, 5, 6, 7])
    where, here = slice(to // 8, (to + n) // 8), slice(source // 8, (source + n) // 8)
    match which:
        case 0 | 1 | 3:
            a = a.at[where].set((b if which == 0 else a)[here])
        case 2:
            a = a.at[where].set(0)
        case 4:
            a = a.at[where].set(x[here])
        case 5:
            u = u.at[to // 4 : (to + n) // 4].set(v[source // 4 : (source + n) // 4])
        case 7:
            d = d.at[to].set(d[3])
        case _:
            pass
    return jnp.sum(a * x[k % 5] + b * p + u * v * x[0] + d[k % 4] * k)


@pytest.mark.parametrize(
    "what",
    [
        (0, 8, 16, 32),
        (0, 8, 3, 0),
        (1, 8, 0, 48),
        (1, 16, 24, 40),
        (2, 8, 0, 24),
        (3, 16, 24, 24),
        (4, 0, 8, 32),
        (5, 4, 12, 12),
        (6, 1, 2, 7),
        (6, 2, 1, 5),
        (7, 1, 11, 13),
        (7, 2, 16, 13),
    ],
)
def test_whole_numbers_and_texts_are_copied(what: tuple[int, int, int, int]) -> None:
    gradient = jax.grad(lambda x: _expected(*what, x))(X)
    np.testing.assert_allclose(jax.grad(lambda x: _copied(what, x))(X), gradient, rtol=1e-5)
    np.testing.assert_allclose(_tangent(what), gradient @ np.cos(X), rtol=1e-5)


@pytest.mark.parametrize(
    "what",
    [
        (0, 8, 16, 28),
        (0, 4, 16, 16),
        (0, 8, 20, 16),
        (0, 12, 20, 16),
        (0, 10, 10, 3),
        (1, 4, 0, 16),
        (1, 8, 0, 21),
        (1, 0, 8, 20),
        (2, 8, 0, 13),
        (2, 13, 0, 8),
        (3, 8, 16, 13),
        (4, 0, 12, 16),
        (5, 2, 4, 8),
        (5, 0, 4, 6),
        (7, 1, 11, 9),
        (7, 1, 18, 13),
    ],
)
def test_a_number_that_is_cut_in_two_is_told(what: tuple[int, int, int, int]) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"within a number .*kernel\.c:\d+"):
        jax.grad(lambda x: _copied(what, x))(X)
    try:
        assert np.isnan(_tangent(what))
    except jax.errors.JaxRuntimeError as error:
        assert "within a number" in str(error)


_GROWING = r"""
#include <stdlib.h>
#include <string.h>
void f(int n, const double *x, double *y) {
  char *packed = malloc(3), *name;
  size_t room = 3, used = 0;
  for (int i = 0; i < n; i++) {
    double square = x[i] * x[i];
    while (used + 10 > room) packed = realloc(packed, room *= 2);
    packed[used] = i, memcpy(packed + used + 1, &square, 8), used += 9;
  }
  for (int i = 0; i < n; i++) {
    int is_name = ((int)(x[i] * 100)) % 2;
    size_t size = is_name ? 4 : 8;
    char *copy = malloc(size), *home = getenv("PATH");
    double number;
    memcpy(copy, is_name && home ? home : packed + 9 * i + 1, size);
    memcpy(&number, copy, 8 * !is_name);
    y[i] = is_name ? 3 * x[i] : number * packed[9 * i];
    free(copy);
  }
  free(packed);
}"""


def test_blocks_that_grow_and_what_the_system_lends_cut_nothing() -> None:
    kernel = je.kernel(_GROWING, "f", "n: i32, x: f64[n], out y: f64[n]", lang="c")
    x = np.array([0.31, 0.5, 1.22, 0.74, 1.9, 2.42, 0.27, 0.64])
    even = (x * 100).astype(int) % 2 == 0
    slopes = np.where(even, 2 * x * np.arange(8), 3)
    np.testing.assert_allclose(jax.jvp(kernel, (x,), (np.cos(x),))[1], slopes * np.cos(x), rtol=1e-12)
    np.testing.assert_allclose(jax.vjp(kernel, x)[1](np.sin(x))[0], slopes * np.sin(x), rtol=1e-12)


_WITH_ENDS = r"""
#include <stdlib.h>
#include <string.h>
void f(int n, const double *x, double *y) {
  size_t size = 9 * n + 7 + (x[0] > 100);
  char *packed = malloc(size), *copy = malloc(size), local[88];
  double *squares = malloc(8 * n + (x[1] > 100)), beside[4];
  for (int i = 0; i < n; i++) {
    squares[i] = x[i] * x[i], beside[i % 4] = x[i % 4] * 3;
    packed[9 * i] = i, memcpy(packed + 9 * i + 1, squares + i, 8);
  }
  memcpy(packed + 9 * n, "the end", 7);
  memcpy(copy, packed, size);
  memcpy(local, packed, size < 88 ? size : 88);
  for (int i = 0; i < n; i++) {
    double number, first;
    memcpy(&number, copy + 9 * i + 1, 8), memcpy(&first, local + 1, 8);
    y[i] = number * number + first * beside[i % 4] + squares[i] * copy[9 * i];
  }
  free(packed), free(copy), free(squares);
}"""


@pytest.mark.parametrize("n", [9, 17])
def test_what_lies_behind_memory_that_ends_within_a_record_stays(n: int) -> None:
    """Numbers would end behind it there: the end of a block, another variable, another shadow."""
    kernel = je.kernel(_WITH_ENDS, "f", "n: i32, x: f64[n], out y: f64[n]", lang="c")
    i = np.arange(n)

    def same(x: jax.Array) -> jax.Array:
        return x**4 + x[0] ** 2 * x[i % 4] * 3 + x**2 * i

    x, v = np.linspace(0.3, 1.4, n), np.cos(i)
    for _ in range(3):
        np.testing.assert_allclose(jax.jvp(kernel, (x,), (v,)), jax.jvp(same, (x,), (v,)), rtol=1e-12)
    np.testing.assert_allclose(jax.vjp(kernel, x)[1](v)[0], jax.vjp(same, x)[1](v)[0], rtol=1e-12)


def test_second_derivatives_have_the_checks_of_the_first() -> None:
    source = """#include <string.h>
double f(const int at[2], const double x[5]) {
  double a[8], s = 0;
  for (int k = 0; k < 8; k++) a[k] = x[k % 5] * x[(k + 1) % 5];
  memmove((char *)a + at[0], a, at[1]);
  for (int k = 0; k < 8; k++) s += a[k] * a[k];
  return s;
}"""
    f = je.kernel(source, "f", "at: i32[2], x: f64[5] -> f64", lang="c")

    def turned(at: tuple[int, int]) -> jax.Array:
        return jax.jvp(jax.grad(lambda x: f(np.array(at, np.int32), x)), (X,), (np.cos(X),))[1]

    def moved(x: jax.Array) -> jax.Array:
        a = x[np.arange(8) % 5] * x[np.arange(1, 9) % 5]
        return jnp.sum(a.at[1:7].set(a[:6]) ** 2)

    np.testing.assert_allclose(turned((8, 48)), jax.jvp(jax.grad(moved), (X,), (np.cos(X),))[1], rtol=1e-10)
    with pytest.raises(jax.errors.JaxRuntimeError, match="within a number"):
        turned((8, 44))


_RECORDS = r"""
#include <string.h>
typedef struct { float a, b; double c; } Record;
double f(const int at[3], const double x[5]) {
  Record r[4], t[4];
  for (int k = 0; k < 4; k++) {
    r[k].a = (float)x[k], r[k].b = (float)(x[k] * 2), r[k].c = x[k] * x[4];
    t[k].a = (float)(x[k] * 3), t[k].b = (float)x[4], t[k].c = x[k] * 5;
  }
  int which = at[0], first = 4 * at[1], n = 4 * at[2];
  if (which == 0) memcpy(r, t, n);
  if (which == 1) memcpy((char *)r + 12, (char *)t + 12, n);
  if (which == 2) memmove(&r[first / 16], t, n);
  if (which == 3) memset((char *)r + 4, 0, n);
  double s = 0;
  for (int k = 0; k < 4; k++) s += r[k].a * (k + 1) + r[k].b * x[k] + r[k].c * (k + 2) + t[k].c;
  return s;
}"""
_OF_RECORDS = je.kernel(_RECORDS, "f", "at: i32[3], x: f64[5] -> f64", lang="c")


def _of_records(which: int, first: int, n: int, x: jax.Array) -> jax.Array:
    """The same by the words of four bytes, where no double is cut."""
    k = np.arange(4)
    ra, rb, rc = x[:4], x[:4] * 2, x[:4] * x[4]
    ta, tb, tc = (x[:4] * 3, x[4] + 0 * x[:4], x[:4] * 5) if which < 3 else (0 * x[:4],) * 3
    begin = {0: 0, 1: 3, 2: first - first % 4, 3: 1}[which]
    t_begin = begin if which != 2 else 0
    moved = [(w, w - begin + t_begin) for w in range(begin, min(begin + n, 16))]
    for to, source in moved:
        if to % 4 == 0:
            ra = ra.at[to // 4].set(ta[source // 4])
        if to % 4 == 1:
            rb = rb.at[to // 4].set(tb[source // 4])
        if to % 4 == 3 and to > begin:
            rc = rc.at[to // 4].set(tc[source // 4])
    return jnp.sum(ra * (k + 1) + rb * x[:4] + rc * (k + 2) + x[:4] * 5)


@pytest.mark.parametrize(
    "what", [(0, 0, 5), (0, 0, 6), (0, 0, 16), (1, 0, 0), (2, 4, 9), (2, 8, 8), (3, 0, 1), (3, 0, 3), (3, 0, 8)]
)
def test_members_of_several_sizes_are_copied(what: tuple[int, int, int]) -> None:
    gradient = jax.grad(lambda x: _of_records(*what, x))(X)
    for derivative in (jax.grad, jax.jacfwd):
        found = derivative(lambda x: _OF_RECORDS(np.array(what, np.int32), x))(X)
        np.testing.assert_allclose(found, gradient, rtol=1e-5)


@pytest.mark.parametrize("what", [(0, 0, 3), (0, 0, 15), (1, 0, 1), (1, 0, 5), (2, 4, 7), (3, 0, 2), (3, 0, 6)])
def test_a_double_is_cut_at_a_multiple_of_four_bytes(what: tuple[int, int, int]) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"within a number .*kernel\.c:\d+"):
        jax.grad(lambda x: _OF_RECORDS(np.array(what, np.int32), x))(X)
    try:
        assert np.isnan(jax.jacfwd(lambda x: _OF_RECORDS(np.array(what, np.int32), x))(X)).any()
    except jax.errors.JaxRuntimeError as error:
        assert "within a number" in str(error)


_KINDS = r"""
#include <stdlib.h>
#include <string.h>
typedef struct { double d; float f[2]; } Record;
typedef union { double d; float f[2]; } Either;
double f(const int at[3], const double x[5]) {
  int which = at[0], k = at[1], j = at[2];
  Record r[4];
  Either *u = malloc(4 * sizeof *u);
  double s = 0;
  for (int i = 0; i < 4; i++)
    r[i].d = u[i].d = x[i] * x[i], r[i].f[0] = (float)x[i], r[i].f[1] = (float)(2 * x[4]);
  float *p = r[0].f;
  if (which == 0) p[k] = (float)(x[0] * 3);
  if (which == 1) s += p[k] * x[1];
  if (which == 3) memcpy((char *)r + 4 * k, u, 8);
  if (which == 4) ((long *)r)[k] = ((long *)r)[j];
  if (which == 2) u[k].f[j & 1] = (float)(x[0] * 3), s += u[k].f[j & 1] * x[2];
  for (int i = 0; i < 4; i++) s += r[i].d * x[i] + r[i].f[0] * r[i].f[1];
  for (int i = 0; i < 4; i++) if (which != 2 || i != k || j > 1) s += u[i].d * x[4];
  free(u);
  return s;
}"""
_OF_KINDS = je.kernel(_KINDS, "f", "at: i32[3], x: f64[5] -> f64", lang="c", flags=("-fno-strict-aliasing",))


@pytest.mark.parametrize(
    "what", [(0, 1, 0), (0, 4, 0), (1, 0, 0), (1, 5, 0), (2, 1, 0), (2, 3, 1), (3, 8, 0), (4, 2, 6), (4, 5, 1)]
)
def test_each_number_is_read_as_what_was_stored(what: tuple[int, int, int]) -> None:
    which, k, j = what

    def expected(x: jax.Array) -> jax.Array:
        d, f = x[:4] ** 2, jnp.stack([x[:4], 2 * x[4] + 0 * x[:4]], axis=1).ravel()
        place = k // 4 * 2 + k % 4
        if which == 3:
            d = d.at[k // 4].set(x[0] ** 2)
        if which == 4 and k % 2 == 0:
            d = d.at[k // 2].set(d[j // 2])
        if which == 4 and k % 2 == 1:
            f = f.at[k - 1 : k + 1].set(f[j - 1 : j + 1])
        if which == 0:
            f = f.at[place].set(x[0] * 3)
        kept = x[:4] ** 2 * x[4] * (1 if which != 2 else jnp.arange(4) != k)
        more = {1: f[place] * x[1], 2: x[0] * 3 * x[2]}.get(which, 0.0)
        return jnp.sum(d * x[:4] + f[::2] * f[1::2] + kept) + more

    gradient = jax.grad(expected)(X)
    for derivative in (jax.grad, jax.jacfwd):
        np.testing.assert_allclose(derivative(lambda x: _OF_KINDS(np.array(what, np.int32), x))(X), gradient, rtol=1e-5)


@pytest.mark.parametrize(
    "what", [(0, 2, 0), (0, 7, 0), (1, 11, 0), (2, 1, 2), (2, 1, 3), (3, 2, 0), (3, 7, 0), (4, 1, 2), (4, 2, 3)]
)
def test_a_float_in_a_half_of_a_double_is_told(what: tuple[int, int, int]) -> None:
    f = lambda x: _OF_KINDS(np.array(what, np.int32), x)  # noqa: E731
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"another kind of number.*kernel\.c:\d+"):
        jax.grad(f)(X)
    assert np.isnan(jax.jacfwd(f)(X)).any()
    with pytest.raises(jax.errors.JaxRuntimeError, match="another kind of number"):
        jax.jacfwd(jax.grad(f))(X)


@pytest.mark.parametrize("look", Look)
def test_nothing_is_touched_in_front_of_memory_that_begins_with_an_integer(look: Look) -> None:
    """An integer of four bytes, then doubles: by its address alone, one might begin four bytes in front of both."""
    compiled = Compiled(parse(grid_text(look, "look", Grid(8, 4, 4, alone=True)).replace("internal ", "")))
    whole = ctypes.CFUNCTYPE(ctypes.c_bool, *2 * [ctypes.c_void_p], ctypes.c_int64, ctypes.c_bool)
    page = mmap.PAGESIZE
    with mmap.mmap(-1, 2 * page) as pages:
        numbers = ctypes.c_char.from_buffer(pages)
        front = ctypes.addressof(numbers)
        del numbers
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(front), page, 0) == 0
        assert whole(compiled.engine.get_function_address("look"))(front + page, front + page, 36, False)
        if look is Look.TANGENT:
            assert whole(compiled.engine.get_function_address("look"))(front + page, front + page, 40, True)
            assert np.isnan(np.frombuffer(pages[page + 36 : page + 44])[0])
