"""jvp, linearize, linear_transpose, jacfwd."""

from __future__ import annotations

import jax
import pytest
from jax import numpy as jnp

from tests.jax.conftest import Subject


def test_jvp(subject: Subject) -> None:
    ours, theirs = subject.vary(subject.kernel), subject.vary(subject.expected)
    at, along = subject.points, subject.directions(3)
    subject.close(jax.jvp(ours, at, along), jax.jvp(theirs, at, along))
    subject.close(jax.jit(lambda a, d: jax.jvp(ours, a, d))(at, along), jax.jvp(theirs, at, along))


def test_jvp_is_one_fused_call(subject: Subject) -> None:
    if subject.stand_in is None:
        pytest.skip("counts calls of the stand-in")
    push = jax.jit(lambda a, d: jax.jvp(subject.vary(subject.kernel), a, d))
    subject.stand_in.calls.clear()
    jax.block_until_ready(push(subject.points, subject.directions(3)))
    assert len(subject.stand_in.calls) == 1


def test_jvp_in_one_argument(subject: Subject) -> None:
    for n, i in enumerate(subject.floats):

        def one(function: object, n: int = n) -> object:
            def of(x: object) -> object:
                full = list(subject.points)
                full[n] = x
                return subject.vary(function)(*full)  # type: ignore[arg-type]

            return of

        at, along = (subject.points[n],), (subject.directions(i)[n],)
        subject.close(jax.jvp(one(subject.kernel), at, along), jax.jvp(one(subject.expected), at, along))


def test_linearize(subject: Subject) -> None:
    y, linear = jax.linearize(subject.vary(subject.kernel), *subject.points)
    expected_y, expected = jax.linearize(subject.vary(subject.expected), *subject.points)
    subject.close(y, expected_y)
    for seed in (3, 4):
        subject.close(linear(*subject.directions(seed)), expected(*subject.directions(seed)))
    along = subject.directions(5)
    subject.close(jax.jvp(linear, along, along), jax.jvp(expected, along, along))


def test_linear_transpose(subject: Subject) -> None:
    def transposed(function: object) -> object:
        y, linear = jax.linearize(subject.vary(function), *subject.points)  # type: ignore[arg-type]
        return jax.linear_transpose(linear, *subject.points)(y)

    if any(leaf.dtype.kind == "i" for leaf in jax.tree.leaves(subject.kernel(*subject.args))):
        pytest.skip("JAX cannot transpose a function with an integer result")
    subject.close(transposed(subject.kernel), transposed(subject.expected))


def test_linear_transpose_in_one_tangent(subject: Subject) -> None:
    """The others are known: what is asked for is less than what was kept."""

    def transposed(function: object, n: int) -> object:
        y, linear = jax.linearize(subject.vary(function), *subject.points)  # type: ignore[arg-type]
        fixed = [jnp.zeros_like(p) for p in subject.points]
        return jax.linear_transpose(lambda t: linear(*fixed[:n], t, *fixed[n + 1 :]), subject.points[n])(y)

    if any(leaf.dtype.kind == "i" for leaf in jax.tree.leaves(subject.kernel(*subject.args))):
        pytest.skip("JAX cannot transpose a function with an integer result")
    for n in range(len(subject.floats)):
        subject.close(transposed(subject.kernel, n), transposed(subject.expected, n))


def test_jacfwd(subject: Subject) -> None:
    which = tuple(range(len(subject.floats)))
    if subject.example.symbol == "spin":
        pytest.skip("jacfwd takes real inputs")
    ours, theirs = (jax.jit(jax.jacfwd(subject.vary(f), which)) for f in (subject.kernel, subject.expected))
    subject.close(ours(*subject.points), theirs(*subject.points))
