"""What nobody asks for costs nothing: unused results, arguments without a gradient, cotangents that are zero."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.jax.conftest import Subject, make
from tests.jax.kernels import GATHER, POWER

SOURCE = """
#include <math.h>
void two(int n, const double *a, const double *b, double *p, double *q) {
  for (int i = 0; i < n; i++) { p[i] = exp(sin(a[i])); q[i] = exp(cos(b[i]) * a[i]); }
}
"""


@pytest.fixture
def subject(engine_subject: Subject) -> Subject:
    return engine_subject


@cache
def _two() -> je.Kernel:
    return je.kernel(SOURCE, "two", "n: i32, a: f64[n], b: f64[n], out p: f64[n], out q: f64[n]", lang="c")


A, B = np.linspace(0.1, 1, 100), np.linspace(1, 2, 100)


def _temp_bytes(function: Any, *args: Any) -> int:
    return int(jax.jit(function).lower(*args).compile().memory_analysis().temp_size_in_bytes)


def test_a_gradient_that_nobody_reads_is_not_computed(subject: Subject) -> None:
    both = jax.value_and_grad(subject.scalar(subject.kernel), subject.floats)
    assert subject.calls(lambda *a: both(*a)[0], *subject.args) == [subject.example.symbol]
    assert len(subject.calls(both, *subject.args)) == 2


def test_tangents_that_nobody_reads_are_not_computed(subject: Subject) -> None:
    def value(points: Any, along: Any) -> Any:
        return jax.jvp(subject.vary(subject.kernel), points, along)[0]

    assert subject.calls(value, subject.points, subject.directions(3)) == [subject.example.symbol]


def test_a_kernel_that_nobody_reads_is_not_called(subject: Subject) -> None:
    def run(*args: Any) -> Any:
        jax.vjp(subject.kernel, *args)
        return args[0] * 2

    assert subject.calls(run, *subject.args) == []


def test_unused_results_do_not_change_the_others(subject: Subject) -> None:
    """The cotangent of one result alone; the others stay symbolic zeros."""
    results = jax.tree.leaves(subject.kernel(*subject.args))
    for n, result in enumerate(results):
        if not jnp.issubdtype(result.dtype, jnp.inexact):
            continue

        def one(*args: Any, function: Any, n: int = n) -> Any:
            return jnp.sum(jnp.real(jax.tree.leaves(function(*args))[n]))

        ours = jax.grad(lambda *a: one(*a, function=subject.kernel), subject.floats)
        theirs = jax.grad(lambda *a: one(*a, function=subject.expected), subject.floats)
        subject.close(ours(*subject.args), theirs(*subject.args))


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


def test_an_output_without_a_cotangent_is_left_out() -> None:
    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(_two()(a, b)[0])

    gradient = jax.grad(loss, (0, 1))(A, B)
    np.testing.assert_allclose(gradient[0], np.exp(np.sin(A)) * np.cos(A))
    np.testing.assert_array_equal(gradient[1], 0)


SIDES = """
#include <math.h>
static double steps(double x, int n) { for (int k = 0; k < n; k++) x = sin(x) + 0.5 * x; return x; }
void sides(int n, const double *a, double *p, double *q, double *r) {
  for (int i = 0; i < n; i++) { p[i] = a[i] * a[i]; q[i] = steps(a[i], 20); r[i] = steps(2 * a[i], 20); }
}
"""


def _steps(x: Any) -> Any:
    for _ in range(20):
        x = jnp.sin(x) + 0.5 * x
    return x


@cache
def _sides() -> je.Kernel:
    return je.kernel(SIDES, "sides", "n: i32, a: f64[n], out p: f64[n], out q: f64[n], out r: f64[n]", lang="c")


@pytest.mark.parametrize(
    ("used", "calls", "loop"),
    [
        pytest.param((0,), ["pullback"], False, id="needs no tape"),
        pytest.param((1,), ["vjp"], False, id="half of the tape"),
        pytest.param((1, 2), ["augmented", "pullback"], False, id="all but one"),
        pytest.param((0, 1, 2), ["augmented", "pullback"], False, id="all"),
        pytest.param((0,), ["pullback"], True, id="needs no tape, scan"),
        pytest.param((1,), ["vjp"], True, id="half of the tape, scan"),
    ],
)
def test_a_gradient_of_some_results_costs_what_they_do(used: tuple[int, ...], calls: list[str], loop: bool) -> None:
    """Where the tape of what is asked for is at most half of that for everything, it is that which is made."""

    def loss(kernel: Any, a: Any) -> Any:
        def one(a: Any) -> Any:
            results = kernel(a)
            return sum(jnp.sum(results[n]) for n in used)

        return jax.lax.scan(lambda s, x: (s + one(a * x), None), 0.0, jnp.ones(2))[0] if loop else one(a)

    def expected(a: Any) -> Any:
        return a * a, _steps(a), _steps(2 * a)

    gradient = jax.grad(lambda a: loss(_sides(), a))
    np.testing.assert_allclose(gradient(A), jax.grad(lambda a: loss(expected, a))(A), rtol=1e-11)
    text = jax.jit(gradient).lower(A).as_text()
    found = {step for step in ("augmented", "pullback", "vjp") if f"[[\\22{step}\\22" in text}  # in the call's recipe
    assert found == set(calls)
    np.testing.assert_allclose(jax.jit(gradient)(A), gradient(A), rtol=1e-14)


def test_symbolic_zeros_go_in(subject: Subject) -> None:
    """A tangent that is known to be zero stays out of the derivative: only the mask of what moves is left."""
    last = subject.floats[-1]
    moving = [a if i == last else jax.lax.stop_gradient(a) for i, a in enumerate(subject.args)]

    def push(x: Any) -> Any:
        return jax.jvp(lambda x: subject.kernel(*(x if i == last else a for i, a in enumerate(moving))), (x,), (x,))

    [equation] = [e for e in jax.make_jaxpr(push)(moving[last]).eqns if "call" in e.params]
    assert len(equation.invars) == len(subject.args) + 1


def test_symbolic_zeros_come_out(subject: Subject) -> None:
    """A result that does not vary has no tangent, and a function of it no gradient."""
    stopped = [jax.lax.stop_gradient(jnp.asarray(a)) for a in subject.args]

    def none(x: Any) -> Any:
        return x.sum() + subject.scalar(subject.kernel)(*stopped)

    assert subject.calls(jax.grad(none), jnp.ones(2)) == []
    assert jax.jvp(none, (jnp.ones(2),), (jnp.ones(2),))[1] == 2


@pytest.mark.parametrize("example", [GATHER, POWER], ids=lambda e: e.symbol)
def test_integers_have_float0_cotangents(example: Any, backend: str) -> None:
    subject = make(example, backend)
    args = tuple(jnp.asarray(a) for a in subject.args)
    results, pull = jax.vjp(subject.kernel, *args)
    seeds = jax.tree.map(
        lambda r: jnp.ones_like(r) if jnp.issubdtype(r.dtype, jnp.inexact) else np.zeros(r.shape, jax.dtypes.float0),
        results,
    )
    expected = jax.vjp(subject.expected, *args)[1](seeds)
    subject.close(pull(seeds), expected)
    kinds = [c.dtype == jax.dtypes.float0 for c in pull(seeds)]
    assert kinds == [jnp.issubdtype(a.dtype, jnp.integer) for a in args]
    tangents = tuple(
        np.zeros(a.shape, jax.dtypes.float0) if k else jnp.ones_like(a) for a, k in zip(args, kinds, strict=True)
    )
    subject.close(jax.jvp(subject.kernel, args, tangents), jax.jvp(subject.expected, args, tangents))


def test_results_are_not_weakly_typed(subject: Subject) -> None:
    for shape in jax.tree.leaves(jax.eval_shape(subject.kernel, *subject.args)):
        assert not shape.weak_type
    for result in jax.tree.leaves((subject.kernel(*subject.args), jax.jit(subject.kernel)(*subject.args))):
        assert not result.weak_type


def test_python_numbers_are_weakly_typed() -> None:
    half = je.kernel("float half(float x) { return x / 2; }", "half", "x: f32 -> f32", lang="c")
    for result in (half(1.0), jax.jit(half)(1), jax.grad(half)(jnp.float32(1))):
        assert result.dtype == jnp.float32
    assert jax.grad(half)(1.0) == jax.grad(lambda x: x / 2)(1.0)
    assert not jax.eval_shape(half, 1.0).weak_type
