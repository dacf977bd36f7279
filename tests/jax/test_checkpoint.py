"""jax.checkpoint, with and without policies."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from tests.jax.conftest import Subject


@pytest.fixture
def subject(few_subject: Subject) -> Subject:
    return few_subject


POLICIES = {
    "default": None,
    "everything": jax.checkpoint_policies.everything_saveable,
    "nothing": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_saveable,
}


@pytest.mark.parametrize("policy", POLICIES)
def test_gradients(subject: Subject, policy: str) -> None:
    def total(function: Any) -> Any:
        f = subject.scalar(function)
        return lambda *args: jax.numpy.sin(f(*args))

    ours = jax.grad(jax.checkpoint(total(subject.kernel), policy=POLICIES[policy]), subject.floats)
    expected = jax.grad(total(subject.expected), subject.floats)(*subject.args)
    subject.close(ours(*subject.args), expected)
    subject.close(jax.jit(ours)(*subject.args), expected)


def test_hessian(subject: Subject) -> None:
    if subject.example.symbol == "spin":
        pytest.skip("Jacobians take real inputs")

    def hessian(function: Any) -> Any:
        return jax.hessian(subject.scalar(jax.checkpoint(function)), subject.floats[0])(*subject.args)

    def plain(function: Any) -> Any:
        return jax.hessian(subject.scalar(function), subject.floats[0])(*subject.args)

    subject.close(hessian(subject.kernel), plain(subject.expected))
