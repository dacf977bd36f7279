"""Sparse Jacobians against dense ones, and at how many derivatives they come."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.primitives import sparse

SOURCE = """
#include <math.h>
// A band, in which some entries are zero here, and some terms cancel.
void band(int n, const double *x, double *y, float *z) {
    for (int i = 0; i < n; i++) {
        const double a = i > 1 ? x[i - 2] : 0, b = i < n - 1 ? x[i + 1] : 0;
        y[i] = a * b + (x[i] > 0 ? x[i] * x[i] : 0) + 0 * x[(i + 3) % n] + (b - b);
        z[i] = (float)(x[i] * a);
    }
}
// Every column meets the first row, and every row the first column.
void arrow(int n, const double *x, double *y) {
    y[0] = 0;
    for (int i = 0; i < n; i++) y[0] += x[i] * x[i];
    for (int i = 1; i < n; i++) y[i] = x[0] * sin(x[i]);
}
// Few rows of many columns each: cotangents are cheaper.
void sums(int n, int m, const double *x, const double *w, double *y) {
    for (int i = 0; i < m; i++) {
        y[i] = 0;
        for (int j = i * (n / m); j < (i + 1) * (n / m); j++) y[i] += w[j] * exp(x[j]);
    }
}
// A grid by its five neighbours.
void grid(int n, int m, const double *u, double *r) {
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < m - 1; j++) {
            const double *c = u + i * m + j;
            r[i * m + j] = c[-1] + c[1] + c[-m] + c[m] - 4 * c[0] * c[0];
        }
    for (int j = 0; j < m; j++) r[j] = r[(n - 1) * m + j] = 1;
    for (int i = 0; i < n; i++) r[i * m] = r[i * m + m - 1] = u[i * m];
}
"""
band = je.kernel(SOURCE, "band", "n: i32, x: f64[n], out y: f64[n], out z: f32[n]", lang="c")
arrow = je.kernel(SOURCE, "arrow", "n: i32, x: f64[n], out y: f64[n]", lang="c")
sums = je.kernel(SOURCE, "sums", "n: i32, m: i32, x: f64[n], w: f64[n], out y: f64[m]", lang="c", m=3)
grid = je.kernel(SOURCE, "grid", "n: i32, m: i32, u: f64[n,m], out r: f64[n,m]", lang="c")


def numbers(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(1).normal(size=shape))


@pytest.mark.parametrize(("n", "result"), [(1, 0), (7, 0), (7, 1), (8, 1), (65, 0), (65, -1)])
def test_bands(n: int, result: int) -> None:
    x = numbers(n).at[n // 2].set(0.0)
    matrix = je.sparse_jacobian(band, (x,), result=result)
    dense = jax.jit(jax.jacfwd(band))(x)[result]
    assert matrix.dtype == dense.dtype
    np.testing.assert_allclose(matrix.todense(), dense, rtol=1e-6)
    assert matrix.nse <= 5 * n


def test_shapes_and_other_arguments() -> None:
    matrix = je.sparse_jacobian(grid, (u := numbers(6, 5),))
    assert matrix.shape == (6, 5, 6, 5)
    assert matrix.n_sparse == 4
    np.testing.assert_allclose(matrix.todense(), jax.jit(jax.jacrev(grid))(u), rtol=1e-12, atol=1e-12)
    x, w = numbers(12), numbers(12) + 2
    for argnum in (0, 1, -1):
        matrix = je.sparse_jacobian(sums, (x, w), argnum)
        dense = jax.jit(jax.jacfwd(sums, argnum))(x, w)
        np.testing.assert_allclose(matrix.todense(), dense, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(lambda m, v: m @ v)(matrix, w), np.asarray(dense) @ np.asarray(w), rtol=1e-12)


def test_functions_of_jax_and_single_numbers() -> None:
    matrix = je.sparse_jacobian(lambda x: (band(x)[0] ** 2).sum(), (x := numbers(9),))
    np.testing.assert_allclose(matrix.todense(), jax.grad(lambda x: (band(x)[0] ** 2).sum())(x), rtol=1e-12)
    assert je.sparse_jacobian(jnp.sin, (0.0,)).todense() == 1
    assert je.sparse_jacobian(lambda x: x[:0], (x,)).shape == (0, 9)
    assert je.sparse_jacobian(lambda x: jnp.zeros(4) + 0 * x.sum().astype(int), (x,)).nse == 0


def test_a_second_call_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel, at other numbers; with other integers, or another argument or result, it is another function."""
    made: list[Any] = []
    derivatives = vars(sparse)["_derivatives"]
    monkeypatch.setattr(sparse, "_derivatives", lambda function: made.append(function) or derivatives(function))
    source = """void k(int n, const double *x, double a, const double *w, int m, double *y, double *z) {
        for (int i = 0; i < n; i++) { y[i] = a * w[i] * x[i] * x[i]; z[i] = m * x[i] * w[i]; }
    }"""
    signature = "n: i32, x: f64[n], a: f64, w: f64[n], m: i32, out y: f64[n], out z: f64[n]"
    kernel = je.kernel(source, "k", signature, lang="c")
    x, w = np.arange(1.0, 5.0), np.arange(4.0)
    for k, (a, m) in enumerate(
        [(2.0, 3), (-0.5, 3), (-0.0, np.int32(3)), (0.0, np.array(3, "i4")), (0.0, jnp.int32(3))]
    ):
        x, w = x + k, w - k
        for argnum, result, expected in ((0, 0, 2 * a * w * x), (0, 1, m * w), (2, 0, a * x * x), (2, 1, m * x)):
            matrix = je.sparse_jacobian(kernel, (x, a, w, m), argnum=argnum, result=result)
            np.testing.assert_array_equal(matrix.todense(), np.diag(expected))
    keys = [(f.place, f.result, *map(str, f.fixed)) for f in made]
    assert len(keys[:8]) == len({*keys[:8]}) == 8 and len(keys) == 16  # integers as arrays are compiled each time
    assert je.sparse_jacobian(kernel, (x, 1.0, w, 4), result=1).todense()[0, 0] == 4 * w[0]


def test_functions_may_be_others_by_the_next_call() -> None:
    """What they are made of, and their arguments: equal ones of different types too, and what is looked at."""
    power = 2.0

    def scaled(x: Any, factor: Any, weights: Any) -> Any:
        return factor * weights * x**power if isinstance(factor, bool) else x * factor

    def first_of_two(x: Any, weights: Any) -> Any:
        return x * x if weights[0] > 0 else 3 * x

    x, w = jnp.arange(1.0, 5.0), jnp.arange(4.0)
    np.testing.assert_array_equal(je.sparse_jacobian(scaled, (x, True, w)).todense(), np.diag(2 * w * x))
    np.testing.assert_array_equal(je.sparse_jacobian(scaled, (2 * x, True, w + 1)).todense(), np.diag(4 * (w + 1) * x))
    power = 1.0
    np.testing.assert_array_equal(je.sparse_jacobian(scaled, (2 * x, True, w + 1)).todense(), np.diag(w + 1))
    np.testing.assert_array_equal(je.sparse_jacobian(scaled, (x, 1, w)).todense(), np.eye(4))
    np.testing.assert_array_equal(je.sparse_jacobian(scaled, (x, 2.0, w)).todense(), 2 * np.eye(4))
    for sign, expected in ((1, 2 * x), (-1, 3 * np.ones(4))):
        np.testing.assert_array_equal(
            je.sparse_jacobian(first_of_two, (x, sign + np.asarray(w))).todense(), np.diag(expected)
        )


def test_marks_pass_where_nan_is_an_error() -> None:
    with jax.debug_nans(True):
        np.testing.assert_allclose(je.sparse_jacobian(arrow, (x := numbers(10),)).todense(), jax.jacfwd(arrow)(x))


def test_cost_grows_with_the_logarithm_of_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    answers = sparse._Jacobian._answers

    def counted(self: Any, derivative: Any, count: int, seeds: Any) -> Any:
        counts.append(count)
        return answers(self, derivative, count, seeds)

    monkeypatch.setattr(sparse._Jacobian, "_answers", counted)
    spent: list[int] = []
    for n in (64, 512, 4096):
        counts.clear()
        je.sparse_jacobian(band, (numbers(n),))
        spent.append(sum(counts))
    assert spent[2] - spent[1] <= spent[1] - spent[0] + 8 <= 60
    counts.clear()
    je.sparse_jacobian(sums, (numbers(300), numbers(300)))
    assert counts[-2] <= 3  # cotangents


def test_a_pattern_that_misses_something_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = sparse._Jacobian._pattern
    monkeypatch.setattr(sparse._Jacobian, "_pattern", lambda self: tuple(part[:-3] for part in pattern(self)))
    with pytest.raises(je.DifferentiationError, match="does not agree"):
        je.sparse_jacobian(band, (numbers(30),))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: jax.jit(lambda x: je.sparse_jacobian(band, (x,)))(x), "outside of jit"),
        (lambda x: je.sparse_jacobian(band, x), "as one tuple"),
        (lambda x: je.sparse_jacobian(band, (x,), 1), "there are 1 arguments"),
        (lambda x: je.sparse_jacobian(band, (x,), result=2), "there are 2 results"),
        (lambda x: je.sparse_jacobian(band, (x > 0,)), "argument 0 is of bool"),
        (lambda x: je.sparse_jacobian(jnp.exp, (x + 1j,)), "argument 0 is of complex128"),
        (lambda x: je.sparse_jacobian(jnp.argmax, (x,)), "result 0 is of int"),
        (lambda x: je.sparse_jacobian(lambda p: p["x"], ({"x": x},)), "is a structure"),
    ],
)
def test_errors(call: Any, says: str) -> None:
    with pytest.raises(je.ArgumentError, match=says):
        call(numbers(4))
