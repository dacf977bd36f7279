"""Kernels with errors of C under Options(sanitize=True): an error with kernel and line, in derivatives too."""

from __future__ import annotations

import os
import signal
import threading

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je

SOURCE = """
#include <stdlib.h>
#include <string.h>
typedef struct { double *at; int n; } View;
static double total(const View *v) {
  double s = 0;
  for (int i = 0; i <= v->n; i++)
    s += v->at[i]; /* past_view */
  return s;
}
double view(int n, double *x) { View v = {x, n}; return total(&v); }
double local(int n, const double *x) {
  double b[4];
  for (int i = 0; i <= n; i++)
    b[i] = x[i % n]; /* past_local */
  return b[n & 1];
}
double in_front(int n, const double *x) {
  const double *p = x + n;
  double s = 0;
  for (int i = 0; i <= n; i++)
    s += *--p; /* in_front */
  return s;
}
double rows(int n, const double *x) {
  double **m = malloc(n * sizeof *m), s = 0;
  for (int i = 0; i < n; i++) {
    m[i] = malloc(8 * n);
    for (int j = 0; j < n; j++) m[i][j] = x[j] * i;
  }
  for (int i = 0; i <= n; i++)
    s += m[1][i]; /* past_row */
  return s;
}
double copied(int n, const double *x) {
  double b[8];
  memcpy(b, x, 8 * (n + 1)); /* past_copy */
  return b[0];
}
double between(int n, const double *x) {
  char b[64], *p = b, *q = b;
  for (int i = 0; i < n; i++, p += 9) *p = i, memcpy(p + 1, x + i, 8);
  double s = 0;
  for (; q < p; q += 9)
    s += *(double *)(q + 1); /* between */
  return s;
}
double freed(int n, const double *x) {
  double *t = malloc(8 * n);
  t[0] = x[0];
  free(t);
  return t[0] * 2; /* use_after_free */
}
double twice(int n, const double *x) {
  double *t = malloc(8 * n);
  double r = t[1] = x[0];
  free(t);
  free(t); /* double_free */
  return r;
}
double sum(int n, const double *x) {
  double s;
  for (int i = 0; i < n; i++)
    s += x[i]; /* unwritten_scalar */
  return s;
}
double gap(int n, const double *x) {
  double b[8], s = 0;
  for (int i = 0; i < n; i++) b[i] = x[i];
  for (int i = 0; i <= n; i++)
    s += b[i]; /* unwritten_element */
  return s;
}
double lowest(int n, const double *x) {
  struct { unsigned low : 5, high : 27; } word, other;
  int parity[8];
  word.high = n, other = word, parity[0] = other.high & 1;
  return x[parity[0]] + x[parity[n] & 1]; /* unwritten_bit */
}
double half(int n, const double *x) {
  struct { _Bool has; union { char none; int number; double d; } u; } of, moved;
  of.has = 0, of.u.none = 0;
  moved = of;
  return moved.has ? x[0] : moved.u.number * x[1]; /* half_written */
}
double flag(int n, const double *x) {
  _Bool known, copied;
  long double wide = 2;
  if (n > 4) known = 1, wide = x[0];
  copied = known;
  return copied ? x[0] : wide; /* unwritten_flag */
}
static double *table(double x) {
  double t[4] = {x, 2 * x, 3 * x, 4 * x}, *first = t;
  return first;
}
double returned(int n, const double *x) {
  double *t = table(x[0]), s = 0;
  for (int i = 0; i < n; i++)
    s += t[i]; /* after_return */
  return s;
}
static void keep(double **where, double x) { double t = x; *where = &t; }
double kept(int n, const double *x) {
  double *p = 0, again = 0;
  for (int i = 0; i < n; i++) { double own = x[i]; again += own; p = &own; again += *p; }
  keep(&p, x[n - 1]);
  *p = again; /* after_block */
  return *p;
}
double shifted(int n, const double *x) { return (1 << 10 * n) * x[0]; } /* shift */
double constant(int n, const double *x) {
  int i = (int)(x[0] * __builtin_nan("")); /* constant_conversion */
  int k = 1 << 40; /* constant_shift */
  return n > 2 ? x[i & 1] : x[k & 1];
}
double converted(int n, const double *x) { return (int)(x[0] * 1e10 * n); } /* conversion */
double rounded(int n, const double *x) { return __builtin_lround(x[0] * 1e20) + n; } /* rounding */
double wide(int n, const double *x) { return (int)((long double)x[0] * 1e10L * n); } /* wide_conversion */
double of_file(int n, const double *x) {
  static double weights[3] = {1, 2, 3};
  weights[0] = x[0];
  return weights[n]; /* past_static */
}
double divided(int n, const double *x) { return 7 / (n - 4) * x[0]; } /* division */
static double odd(double x, int n);
static double even(double x, int n) { return n == 0 ? x : odd(x, n - 1) + 1; }
static double odd(double x, int n) { return n == 0 ? x : even(x, n + 1) * 2; }
double deep(int n, const double *x) { return even(x[0], n); }
typedef double (*curve)(double);
static double once(double x) { return x; }
static double square(double x) { return x * x; }
double null_call(int n, const double *x) {
  curve of[] = {once, square, 0};
  return of[n - 2](x[1]); /* null_call */
}
double huge(int n, const double *x) {
  double t[100000000l * n]; /* huge_length */
  return t[n] = x[0];
}
double either(int n, const double *x) {
  const double *p = x, *q = x + 1;
  if (x[0] > 0) { double own = x[1]; p = &own; }
  return *q * *p; /* one_has_ended */
}
double negative(int n, const double *x) {
  double t[n - 8]; /* negative_length */
  t[0] = x[0];
  return t[0] * x[1];
}
double assumed(int n, const double *x) {
  __builtin_assume(n > 4); /* assumption */
  return n > 4 ? x[0] : x[1];
}
static int by_quotient(const void *a, const void *b) {
  return 12 / *(const int *)a - 12 / *(const int *)b; /* comparison */
}
double sorted(int n, const double *x) {
  int at[8];
  for (int i = 0; i < n; i++) at[i] = (i + 1) % 4;
  qsort(at, n, sizeof *at, by_quotient);
  return x[at[0] - 1];
}
double least(int n, const double *x) {
  int k = n - 4 + (-2147483647 - 1);
  return x[abs(k) % 4]; /* least_integer */
}
double zeros(int n, const double *x) {
  return x[__builtin_ctz(n - 4) % 4]; /* zeros_of_0 */
}
double or_null(int n, const double *x) {
  const double *p = 0;
  for (int i = 0; i < n; i++) {
    double t = x[i];
    if (i == 2) p = &t;
  }
  return *p; /* after_the_loop */
}
double overlapping(int n, const double *x) {
  double t[8];
  for (int i = 0; i < n; i++) t[i] = x[i];
  memcpy(t, t, sizeof t), memmove(t + 1, t, 8 * (n - 1)), memcpy(t + n, t, 8 * n);
  memcpy(t, t + 1, 8 * n); /* overlap */
  return t[0] * t[3];
}
double overlapping_heap(int n, const double *x) {
  double *t = malloc(16 * n), *u = n > 2 ? t + n - 1 : t + n, *low = n > 2 ? t : t + 1;
  memcpy(t, x, 8 * n);
  memcpy(u, low, 8 * n); /* heap_overlap */
  double r = u[0];
  free(t);
  return r;
}
double unreachable(int n, const double *x) {
  switch (n) {
  case 1: return x[0];
  case 2: return x[1];
  }
  __builtin_unreachable(); /* unreachable */
}
static double maybe(int n, const double *x) {
  if (n < 3) return x[0];
} /* no_value */
double no_value(int n, const double *x) { maybe(n, x); return n > 3 ? maybe(n, x) * x[1] : x[0]; }
typedef struct { double *p; int n; } Piece;
static Piece piece(int n, const double *x) {
  double b[8];
  for (int i = 0; i < n; i++) b[i] = x[i];
  Piece made = {b, n};
  return made;
}
double in_a_structure(int n, const double *x) {
  Piece own = piece(n, x);
  return own.p[1] * x[own.n - 1]; /* of_a_structure */
}
double null_member(int n, const double *x) {
  const double *p = n > 3 ? 0 : x;
  return p[2]; /* null_member */
}
double before_null(int n, const double *x) {
  const double *p = n > 3 ? 0 : x + 1;
  return p[-1]; /* before_null */
}
struct row { double *p; };
static double walk(const char *p, int n) {
  return n ? *(const double *)p + walk(p + 12, n - 1) : 0; /* in_a_recursion */
}
double strides(int n, const double *x) { return walk((const char *)x, n - 2); }
static double linked(struct row *r, int n) {
  return n ? r->p[n] + linked(r, n - 1) : 0; /* out_of_memory */
}
double offset(int n, const double *x) {
  struct row row = {(double *)((char *)x - n / 2)};
  return linked(&row, n / 2);
}
double less_than_none(int n, const double *x) {
  double *p = malloc((n - 5) * sizeof *p); /* negative_size */
  if (!p) return 0;
  free(p);
  return x[0];
}
double endless(int n, const double *x) {
  double s = 0;
  while (n > 0) /* endless */
    s = s > 1e3 ? 0 : s + x[0];
  return s;
}
"""
BAD = [
    ("between", "between", "reads at an address that is no multiple of 8"),
    ("view", "past_view", "reads outside of the bounds of argument `x`: index 4, extent 4"),
    ("local", "past_local", "writes outside of the bounds of local variable `b`: index 4, extent 4"),
    ("in_front", "in_front", "reads outside of the bounds of argument `x`: index -1, extent 4"),
    ("rows", "past_row", "reads outside of the bounds of allocated memory: index 4, extent 4"),
    ("copied", "past_copy", "reads outside of the bounds of argument `x`: index 0, extent 4, 40 bytes"),
    ("freed", "use_after_free", "reads memory that it has freed"),
    ("twice", "double_free", "frees memory that it has freed before"),
    ("sum", "unwritten_scalar", "reads what nothing wrote: local variable `s`"),
    ("gap", "unwritten_element", "reads what nothing wrote: local variable `b`, index 4"),
    ("lowest", "unwritten_bit", "reads what nothing wrote: local variable `parity`, index 4"),
    ("half", "half_written", "reads what nothing wrote: local variable `moved`"),
    ("flag", "unwritten_flag", "reads what nothing wrote: local variable `copied`"),
    ("returned", "after_return", "reads local variable `t` after the block or function that it belongs to has ended"),
    ("kept", "after_block", "writes local variable `t` after the block or function that it belongs to has ended"),
    ("shifted", "shift", "shifts a number of 32 bits"),
    ("constant", "constant_conversion", "uses an integer without a value"),
    ("converted", "conversion", "converts a number to 32 bits of signed integer that is out of range"),
    ("rounded", "rounding", "converts a number to 64 bits of signed integer that is out of range"),
    ("wide", "wide_conversion", "converts a number to 32 bits of signed integer that is out of range"),
    ("of_file", "past_static", "reads outside of the bounds of variable `weights`: index 4, extent 3"),
    ("divided", "division", "integer division by zero"),
    ("null_call", "null_call", "calls a null pointer"),
    ("huge", "huge_length", "makes local variable `t` of a gigabyte or more, which no stack holds"),
    ("either", "one_has_ended", "reads local variable `own` after the block or function that it belongs to has ended"),
    ("negative", "negative_length", "makes local variable `t` with a negative number of elements"),
    ("assumed", "assumption", "an assumption in the source does not hold"),
    ("sorted", "comparison", "integer division by zero"),
    ("least", "least_integer", "takes the absolute value of the least integer"),
    ("zeros", "zeros_of_0", "counts leading or trailing zeros of 0"),
    ("or_null", "after_the_loop", "reads local variable `t` after the block or function that it belongs to has ended"),
    ("overlapping", "overlap", "copies memory to where it overlaps itself"),
    ("overlapping_heap", "heap_overlap", "copies memory to where it overlaps itself"),
    ("unreachable", "unreachable", "gets to what its compiler takes never to be reached"),
    ("no_value", "no_value", "reads what nothing wrote"),
    (
        "in_a_structure",
        "of_a_structure",
        "reads local variable `b` after the block or function that it belongs to has ended",
    ),
    ("null_member", "null_member", "reads at a null pointer, address 16"),
    ("before_null", "before_null", "reads at a null pointer"),
    ("strides", "in_a_recursion", "reads at an address that is no multiple of 8"),
    ("offset", "out_of_memory", "reads at an address that is no multiple of 8"),
    ("less_than_none", "negative_size", "asks for memory of a negative size"),
    ("deep", None, "the recursion has used up the stack"),
    ("endless", "endless", "its time limit is over"),
]
CHECKED = je.Options(sanitize=True, time_limit=1)
X = np.arange(1.0, 5.0)


def line_of(mark: str) -> int:
    return 1 + next(n for n, text in enumerate(SOURCE.splitlines()) if f"/* {mark} */" in text)


@pytest.mark.parametrize(("symbol", "mark", "what"), BAD, ids=[symbol for symbol, _, _ in BAD])
def test_what_c_leaves_undefined_is_an_error_with_its_line(symbol: str, mark: str | None, what: str) -> None:
    kernel = je.kernel(SOURCE, symbol, "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)
    place = r"kernel\.c:\d+" if mark is None else rf"kernel\.c:{line_of(mark)}\b"
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"kernel `{symbol}` (?s:.*){what}.*\({place}"):
        jax.block_until_ready(kernel(X))


def test_derivatives_fail_as_the_kernel_does_and_inputs_stay() -> None:
    kernel = je.kernel(SOURCE, "local", "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)
    x = jnp.array(X)
    assert je.kernel(SOURCE, "sorted", "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)(x[:3]) == 3.0
    for derivative in (jax.grad(kernel), jax.jit(jax.grad(kernel)), jax.jacfwd(kernel)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="writes outside of the bounds of local variable `b`"):
            jax.block_until_ready(derivative(x))
    assert kernel(x[:3]) == 2.0
    assert jax.grad(kernel)(x[:3]).tolist() == [0.0, 1.0, 0.0]
    assert x.tolist() == X.tolist()


@pytest.mark.parametrize("symbol", ["unreachable", "null_member", "before_null"])
def test_derivatives_of_what_is_wrong_for_certain_fail_as_the_kernel_does(symbol: str) -> None:
    """Where the size says that a pointer is null, or that the end is reached, compilers find it out as well."""
    kernel = je.kernel(SOURCE, symbol, "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)
    for derivative in (lambda: jax.jvp(kernel, (X,), (X,)), lambda: jax.grad(kernel)(X)):
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"\(kernel\.c:{line_of(symbol)}\b"):
            jax.block_until_ready(derivative())
    np.testing.assert_allclose(jax.grad(kernel)(X[:2]) if symbol == "unreachable" else [0, 1], [0, 1])


def test_a_row_of_an_argument_has_the_argument_s_name() -> None:
    source = "double k(int n, double **a) {\n return a[n - 4][0] + a[n][0]; }"
    kernel = je.kernel(source, "k", "n: i32, a: f64[n][2] -> f64", lang="c", options=CHECKED)
    for n, index in ((3, -1), (4, 4)):
        message = rf"reads outside of the bounds of argument `a`: index {index}, extent {n} \(kernel\.c:2"
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            jax.block_until_ready(kernel(np.ones((n, 2))))


RIGHT = """
#include <stdlib.h>
typedef struct { double *at; int n; } View;
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static View *made(int n) {
  View *v = malloc(sizeof *v);
  v->at = calloc(n, 8);
  v->n = n;
  return v;
}
void k(int n, int m, const int *at, const double *x, double *state, double *y) {
  View *v = made(2);
  v->at = realloc(v->at, 8 * n);
  for (int i = 0; i < n; i++) v->at[i] = x[i] * x[i] * fib(5);
  const double *p = n > 2 ? v->at : x, *q;
  for (q = p; q < p + n; q++) state[q - p] += *q;
  for (int i = 0; i < m; i++) y[i] = p[at[i]] / (7 / (m - 2)) + (long)x[i];
  free(v->at);
  free(v);
}
"""


def test_a_right_kernel_stays_right_in_batches_and_derivatives() -> None:
    signature = "n: i32, m: i32, at: i32[m], x: f64[n], inout state: f64[n], out y: f64[m]"
    plain, checked = (
        je.kernel(RIGHT, "k", signature, lang="c", options=je.Options(sanitize=sanitize)) for sanitize in (False, True)
    )
    at, state = np.array([3, 0, 1], np.int32), jnp.ones(4)

    def loss(kernel: je.Kernel, x: jax.Array) -> jax.Array:
        new, y = kernel(at, x, state)
        return new.sum() + (y * y).sum()

    xs = jnp.stack([jnp.array(X), jnp.array(X) + 1])
    for wrap in (lambda f: f, jax.grad):
        expected, found = (jax.vmap(wrap(lambda x, k=k: loss(k, x)))(xs) for k in (plain, checked))
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert state.tolist() == [1.0] * 4


def test_an_output_that_is_not_written_is_named() -> None:
    source = "void k(int n, const double *x, double *y) { for (int i = 0; i < n; i += 2) y[i] = x[i]; }"
    kernel = je.kernel(source, "k", "n: i32, x: f64[n], out y: f64[n]", lang="c", options=CHECKED)
    message = r"kernel `k` .*output `y` .* index 1 of 4 is not written \(kernel\.c:1\)"
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(kernel(X))


@pytest.mark.parametrize(
    "local", ["double v", "union { char none; double v; } s; s.none = 0"]
)  # an empty std::optional
def test_a_returned_value_that_nothing_wrote_is_an_error_in_derivatives_too(local: str) -> None:
    value = "s.v" if "union" in local else "v"
    source = f"double k(int n, const double *x) {{ {local}; if (n < 2) {value} = x[0]; return {value}; }}"
    kernel = je.kernel(source, "k", "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)
    assert kernel(X[:1]) == X[0]
    for run in (kernel, jax.grad(kernel)):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"`k` .*returns what nothing wrote \(kernel\.c:1\)"):
            jax.block_until_ready(run(X))


def test_ctrl_c_ends_a_kernel() -> None:
    kernel = je.kernel(SOURCE, "endless", "n: i32, x: f64[n] -> f64", lang="c", options=je.Options(sanitize=True))
    compiled = jax.jit(kernel).lower(X).compile()
    heard, over = list[int](), threading.Event()

    def interrupt() -> None:
        while not over.wait(0.3):  # one that comes before the kernel has begun is not for it
            os.kill(os.getpid(), signal.SIGINT)

    # A handler that does not raise: what ends is the kernel, wherever Python is then.
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"was interrupted \(kernel\.c:{line_of('endless')}\b"):
            jax.block_until_ready(compiled(X))
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert signal.SIGINT in heard


def test_a_time_limit_needs_the_mode() -> None:
    with pytest.raises(ValueError, match="sanitize=True"):
        je.Options(time_limit=1.0)
    for limit in ("3", 0, [1.0]):
        with pytest.raises(ValueError, match=r"time_limit is a number of seconds.* not "):
            je.Options(sanitize=True, time_limit=limit)  # type: ignore[arg-type]


def test_shared_memory_of_a_cuda_kernel_has_bounds() -> None:
    source = (
        "__global__ void k(int n, const double *x, double *y) { __shared__ double t[4];\n"
        "int i = threadIdx.x; t[i] = x[i];\n"
        "__syncthreads(); y[i] = t[n - 1 - i]; }"
    )
    text = "n: i32, x: f64[n], out y: f64[n]"
    kernel = je.kernel(source, "k", text, lang="cuda", grid=1, block="n", options=CHECKED)
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"writes outside of the bounds.*index 4, extent 4 \(kernel\.cu:2"
    ):
        jax.block_until_ready(kernel(np.arange(8.0)))
    assert jax.grad(lambda v: kernel(v)[0])(X).tolist() == [0.0, 0.0, 0.0, 1.0]
