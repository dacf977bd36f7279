"""Batches of tangents and cotangents of one point: Jacobians through JAX, several directions in one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je

_SOURCE = """
#include <math.h>
#include <stdlib.h>
int twist(int n, int m, const double *a, double *x, float *y)
{
    if (a[0] > 100) return 3;
    double *u = malloc(n * sizeof(double));
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < n; i++) u[i] = sin(x[i]) * a[i % m] + (x[i] > 0 ? x[(i + 1) % n] : 0.5 * x[i]);
        for (int i = 0; i < n; i++) x[i] = u[i];
    }
    for (int i = 0; i < n; i++) y[i] = (float)(x[i] * x[i]);
    free(u);
    return 0;
}
void product(int n, const double *a, const double *b, double *c)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 3; j++) c[i + n * j] = a[i + n * j] * b[j] + a[i];
}
void added(int n, int m, const double *a, const double *x, double *y)
{
    for (int j = 0; j < m; j++) y[j] = 2 * x[j];
    for (int i = 0; i < n; i++) y[i % m] += a[i];
}
"""


@cache
def _twist() -> je.Kernel:
    signature = "n: i32, m: i32, a: f64[m], inout x: f64[n], out y: f32[n] -> status"
    return je.kernel(_SOURCE, "twist", signature, lang="c")


def _function(a: jax.Array, x: jax.Array) -> Any:
    moved, y = _twist()(a, x)
    return moved + 0.5 * y


def _model(a: jax.Array, x: jax.Array) -> Any:
    for _ in range(3):
        scaled = jnp.sin(x) * a[jnp.arange(len(x)) % len(a)]
        x = scaled + jnp.where(x > 0, jnp.roll(x, -1), 0.5 * x)
    return x + 0.5 * (x * x).astype(jnp.float32)


def _point(n: int, m: int) -> tuple[jax.Array, jax.Array]:
    noise = np.random.default_rng(n)
    return jnp.asarray(noise.normal(size=m)), jnp.asarray(noise.normal(size=n))


_MODES: dict[str, Callable[..., Any]] = {
    "jacfwd": lambda f: jax.jacfwd(f, (0, 1)),
    "jacrev": lambda f: jax.jacrev(f, (0, 1)),
    "hessian": lambda f: jax.hessian(lambda a, x: jnp.sum(jnp.cos(f(a, x))), (0, 1)),
    "of a batch of points": lambda f: lambda a, x: jax.vmap(jax.jacfwd(f), (None, 0))(a, jnp.stack([x, -x, 2 * x])),
    "of two batches": lambda f: lambda a, x: jax.vmap(lambda s: jax.jacrev(f)(s * a, x))(jnp.arange(5.0)),
}


def _close(ours: Any, theirs: Any) -> None:
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", _MODES)
def test_jacobians(mode: str) -> None:
    derivative, point = _MODES[mode], _point(11, 4)
    _close(jax.jit(derivative(_function))(*point), derivative(_model)(*point))


def test_the_value_comes_once_with_all_tangents() -> None:
    point = _point(6, 4)
    tangents = jnp.eye(6)
    value, dots = jax.jit(jax.vmap(lambda t: jax.jvp(lambda x: _function(point[0], x), point[1:], (t,))))(tangents)
    assert value.shape == (6, 6)
    _close(value, jnp.broadcast_to(_model(*point), (6, 6)))
    _close(dots.T, jax.jacfwd(_model, 1)(*point))


def test_directions_are_lanes_of_one_call() -> None:
    """Eleven tangents are two calls of eight; three are three calls."""
    shapes = {}
    for n in (3, 11):
        point = _point(n, 2)
        text = jax.jit(jax.jacfwd(_function, 1)).lower(*point).as_text()
        shapes[n] = [part for part in ("tensor<2x11x8xf64>", "tensor<3x3xf64>") if part in text]
    assert shapes == {3: ["tensor<3x3xf64>"], 11: ["tensor<2x11x8xf64>"]}


def test_arrays_of_fortran() -> None:
    product = je.kernel(_SOURCE, "product", "n: i32, a: f64[n,3], b: f64[3], out c: f64[n,3]", lang="c", order="F")
    noise = np.random.default_rng(2)
    a, b = jnp.asarray(noise.normal(size=(4, 3))), jnp.asarray(noise.normal(size=3))

    def model(a: jax.Array, b: jax.Array) -> jax.Array:
        return a * b + a[:, :1]

    for jacobian in (jax.jacfwd, jax.jacrev):
        _close(jacobian(product, (0, 1))(a, b), jacobian(model, (0, 1))(a, b))


def test_an_argument_of_no_elements() -> None:
    added = je.kernel(_SOURCE, "added", "n: i32, m: i32, a: f64[n], x: f64[m], out y: f64[m]", lang="c")
    by_a, by_x = jax.jacrev(added, (0, 1))(jnp.zeros(0), jnp.ones(4))
    assert by_a.shape == (4, 0)
    _close(by_x, 2 * jnp.eye(4))


def test_a_failure_is_one_of_all_directions() -> None:
    a, x = _point(8, 2)
    with pytest.raises(jax.errors.JaxRuntimeError, match="twist"):
        jax.jacfwd(_function, 1)(a.at[0].set(200.0), x)
