"""Kernels inside scan, cond, while_loop, fori_loop, switch and map, and derivatives of those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax import lax
from jax import numpy as jnp

from tests.jax.conftest import Subject, by_turns


def _step(subject: Subject, function: Callable[..., Any]) -> Callable[..., Any]:
    """One step of a recurrence over the first differentiable argument, of the same type as it."""
    total = subject.scalar(function)

    def step(x: Any, *rest: Any) -> Any:
        args = list(subject.args)
        args[subject.floats[0]] = x
        for i, value in zip(subject.floats[1:], rest, strict=False):
            args[i] = value
        return (x * (1 + 0.1 * jnp.tanh(total(*args)))).astype(x.dtype)

    return step


def _programs(subject: Subject, function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    step = _step(subject, function)

    def scan(x: Any, *rest: Any) -> Any:
        return lax.scan(lambda c, _: (step(c, *rest), jnp.sum(jnp.real(c))), x, None, length=3)

    def cond(x: Any, *rest: Any) -> Any:
        return lax.cond(jnp.sum(jnp.real(x)) < 1e3, step, lambda y, *_: y * 2, x, *rest)

    def switch(x: Any, *rest: Any) -> Any:
        return lax.switch(1, [lambda y: y, lambda y: step(y, *rest), lambda y: y * 3], x)

    def fori(x: Any, *rest: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, c: step(c, *rest), x)

    def mapped(x: Any, *rest: Any) -> Any:
        return lax.map(lambda c: step(x * c, *rest), jnp.asarray([0.5, 1.5], jnp.real(x).dtype))

    def checkpointed(x: Any, *rest: Any) -> Any:
        return scan_of(jax.checkpoint(lambda c: step(c, *rest)), x)

    def scan_of(f: Callable[..., Any], x: Any) -> Any:
        return lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]

    return {
        "scan": scan, "cond": cond, "switch": switch, "fori": fori, "map": mapped, "scan of checkpoint": checkpointed,
        "checkpoint": lambda *x: jax.checkpoint(scan)(*x),
    }  # fmt: skip


NAMES = ("scan", "cond", "switch", "fori", "map", "scan of checkpoint", "checkpoint")


@pytest.mark.parametrize(("chosen_subject", "name"), by_turns(NAMES), indirect=["chosen_subject"])
def test_value_and_both_modes(chosen_subject: Subject, name: str) -> None:
    subject = chosen_subject
    ours, theirs = _programs(subject, subject.kernel)[name], jax.jit(_programs(subject, subject.expected)[name])
    points, along = subject.points, subject.directions(3)
    subject.close(ours(*points), theirs(*points))
    subject.close(jax.jvp(ours, points, along), jax.jvp(theirs, points, along))

    def gradient(f: Callable[..., Any]) -> Any:
        def total(*x: Any) -> Any:
            return sum(jnp.sum(jnp.real(leaf)) for leaf in jax.tree.leaves(f(*x)))

        return jax.grad(total, tuple(range(len(points))))

    expected = jax.jit(gradient(theirs))(*points)
    subject.close(gradient(ours)(*points), expected)
    subject.close(jax.jit(gradient(ours))(*points), expected)


def test_while_loop_in_forward_mode(few_subject: Subject) -> None:
    subject = few_subject

    def loop(function: Callable[..., Any]) -> Callable[..., Any]:
        step = _step(subject, function)

        def run(x: Any) -> Any:
            return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1])), (0, x))[1]

        return run

    at, along = subject.points[:1], subject.directions(3)[:1]
    ours, theirs = loop(subject.kernel), jax.jit(loop(subject.expected))
    subject.close(jax.jvp(ours, at, along), jax.jvp(theirs, at, along))
    y, linear = jax.linearize(ours, *at)
    expected_y, expected = jax.linearize(theirs, *at)
    subject.close((y, linear(*along)), (expected_y, expected(*along)))
