"""What nobody asks for costs nothing: unused results, arguments without a gradient, cotangents that are zero."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je

SOURCE = """
#include <math.h>
void two(int n, const double *a, const double *b, double *p, double *q) {
  for (int i = 0; i < n; i++) { p[i] = exp(sin(a[i])); q[i] = exp(cos(b[i]) * a[i]); }
}
"""


@cache
def _two() -> je.Kernel:
    return je.kernel(SOURCE, "two", "n: i32, a: f64[n], b: f64[n], out p: f64[n], out q: f64[n]", lang="c")


A, B = np.linspace(0.1, 1, 100), np.linspace(1, 2, 100)


def _temp_bytes(function: Any, *args: Any) -> int:
    return int(jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes)


def _calls(function: Any, *args: Any) -> list[str]:
    """The kernel's equations in what is left of a program after dead code is gone."""
    text = jax.jit(function).lower(*args).as_text()
    return sorted(line.split('name = "')[1].split('"')[0] for line in text.splitlines() if "@jax_enzyme_cpu" in line)


def test_a_gradient_that_nobody_reads_is_not_computed() -> None:
    def value_only(a: Any, b: Any) -> Any:
        return jax.value_and_grad(lambda a, b: jnp.sum(_two()(a, b)[0]), (0, 1))(a, b)[0]

    assert _calls(value_only, A, B) == ["two"]


def test_tangents_that_nobody_reads_are_not_computed() -> None:
    assert _calls(lambda a, b: jax.jvp(_two(), (a, b), (a, b))[0], A, B) == ["two"]


def test_an_argument_without_a_gradient_does_not_enlarge_the_tape() -> None:
    steps = je.kernel(
        """
        #include <math.h>
        double steps(int n, const double *a, const double *b) {
          double s = 0;
          for (int i = 0; i < n; i++) {
            double x = a[i], y = b[i];
            for (int k = 0; k < 50; k++) { x += 0.1 * sin(x); y += 0.1 * sin(y); }
            s += x + y;
          }
          return s;
        }
        """,
        "steps",
        "n: i32, a: f64[n], b: f64[n] -> f64",
        lang="c",
    )
    one, both = _temp_bytes(jax.grad(steps), A, B), _temp_bytes(jax.grad(steps, (0, 1)), A, B)
    assert one < 0.6 * both


def test_an_output_without_a_cotangent_costs_nothing_in_the_pullback() -> None:
    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(_two()(a, b)[0])

    gradient = jax.grad(loss, (0, 1))(A, B)
    np.testing.assert_allclose(gradient[0], np.exp(np.sin(A)) * np.cos(A))
    np.testing.assert_array_equal(gradient[1], 0)


def test_symbolic_zeros() -> None:
    """A tangent that is known to be zero stays out of the derivative; so does a result that is known not to vary."""
    fixed = jax.lax.stop_gradient
    text = str(jax.make_jaxpr(lambda a: jax.jvp(lambda a: _two()(a, fixed(a)), (a,), (a,)))(A))
    assert "two[" in text
    assert str(jax.make_jaxpr(jax.grad(lambda a: jnp.sum(_two()(fixed(a), fixed(a))[0])))(A)).count("two[") <= 1
    np.testing.assert_array_equal(jax.grad(lambda a: jnp.sum(_two()(fixed(a), fixed(a))[0]))(A), 0)


def test_integers_have_float0_cotangents() -> None:
    pick = je.kernel(
        "double pick(int n, const int *i, const double *x) { return x[i[0]] * x[i[1]]; }",
        "pick",
        "n: i32, i: i32[2], x: f64[n] -> f64",
        lang="c",
    )
    index = jnp.array([0, 2], jnp.int32)
    cotangents = jax.vjp(pick, index, jnp.arange(3.0))[1](1.0)
    assert cotangents[0].dtype == jax.dtypes.float0
    np.testing.assert_array_equal(cotangents[1], [2.0, 0.0, 0.0])
    tangent = np.zeros(2, jax.dtypes.float0)
    _, moved = jax.jvp(pick, (index, jnp.arange(3.0)), (tangent, jnp.ones(3)))
    assert moved == 2.0


def test_results_are_not_weakly_typed() -> None:
    half = je.kernel("float half(float x) { return x / 2; }", "half", "x: f32 -> f32", lang="c")
    for result in (half(1.0), jax.jit(half)(1), jax.grad(half)(jnp.float32(1))):
        assert result.dtype == jnp.float32
    assert jax.grad(half)(1.0) == jax.grad(lambda x: x / 2)(1.0)
    assert not jax.eval_shape(half, 1.0).weak_type
