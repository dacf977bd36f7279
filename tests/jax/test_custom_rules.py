"""Rules of the caller's own around a kernel: custom_vjp, custom_jvp, custom_gradient, and what they are inside of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax import lax
from jax import numpy as jnp

from tests.jax.conftest import Subject

Function = Callable[..., Any]


@pytest.fixture
def subject(few_subject: Subject) -> Subject:
    return few_subject


def _clipped(subject: Subject, function: Function) -> Function:
    """Half of the cotangents, by a rule of its own that calls the kernel's."""
    total = subject.scalar(subject.vary(function))

    @jax.custom_vjp
    def halved(*x: Any) -> Any:
        return total(*x)

    halved.defvjp(
        lambda *x: jax.vjp(total, *x), lambda pull, ct: tuple(jnp.asarray(0.5 * g, g.dtype) for g in pull(ct))
    )
    return halved


def test_custom_vjp(subject: Subject) -> None:
    where = tuple(range(len(subject.points)))
    expected = [0.5 * g for g in jax.grad(subject.scalar(subject.vary(subject.expected)), where)(*subject.points)]
    halved = _clipped(subject, subject.kernel)
    subject.close(list(jax.grad(halved, where)(*subject.points)), expected)
    subject.close(list(jax.jit(jax.grad(jax.checkpoint(halved), where))(*subject.points)), expected)


def test_custom_vjp_in_cond_in_scan(subject: Subject) -> None:
    def gradient(function: Function) -> Any:
        halved = _clipped(subject, function)

        def step(c: Any, i: Any) -> Any:
            return lax.cond(i % 2 == 0, lambda c: jnp.tanh(halved(*c)), lambda c: jnp.real(jnp.sum(c[0])), c) * 1.0

        def run(*x: Any) -> Any:
            return lax.scan(lambda c, i: (tuple(v * 0.9 for v in c), step(c, i)), x, jnp.arange(3))[1].sum()

        return jax.jit(jax.grad(run, tuple(range(len(subject.points)))))(*subject.points)

    subject.close(gradient(subject.kernel), gradient(subject.expected))


def test_custom_jvp(subject: Subject) -> None:
    """Tangents doubled by a rule of its own: in both modes, twice over, and batched."""
    along = subject.directions(3)

    def derivatives(function: Function) -> Any:
        total = subject.scalar(subject.vary(function))

        @jax.custom_jvp
        def doubled(*x: Any) -> Any:
            return total(*x)

        @doubled.defjvp
        def _(x: Any, t: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
            value, slope = jax.jvp(total, x, t)
            return value, slope * jnp.asarray(2, slope.dtype)

        gradient = jax.grad(doubled, tuple(range(len(along))))
        return jax.jvp(doubled, subject.points, along), gradient(*subject.points)

    subject.close(derivatives(subject.kernel), derivatives(subject.expected))


def test_custom_gradient(subject: Subject) -> None:
    total = subject.scalar(subject.vary(subject.kernel))
    first, *rest = subject.points
    sevens = jax.custom_gradient(lambda x: (total(x, *rest), lambda ct: jnp.full_like(x, 7) * ct.astype(x.dtype)))
    subject.close(jax.grad(sevens)(first), jnp.full_like(first, 7))
