"""Second and third derivatives, in every order of modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

from tests.jax.conftest import Subject, by_turns, compiled


@pytest.fixture
def subject(deep_subject: Subject) -> Subject:
    return deep_subject


Transform = Callable[..., Any]
JACOBIANS = (jax.jacfwd, jax.jacrev)
ORDERS = {f"{a.__name__} of {b.__name__}": (a, b) for a in JACOBIANS for b in JACOBIANS}


@pytest.mark.parametrize(("chosen_subject", "order"), by_turns(ORDERS), indirect=["chosen_subject"])
def test_hessian(chosen_subject: Subject, order: str) -> None:
    """Every kernel has every order of modes in the products below."""
    subject = chosen_subject
    if subject.is_complex:
        pytest.skip("Jacobians take real inputs")
    outer, inner = ORDERS[order]
    which = tuple(range(len(subject.floats)))

    def hessian(function: Transform) -> Any:
        return outer(inner(subject.scalar(subject.vary(function)), which), which)(*subject.points)

    subject.close(compiled(hessian, subject.kernel), compiled(hessian, subject.expected))


def test_hessian_vector_products(subject: Subject) -> None:
    """Forward over reverse, reverse over forward, reverse over reverse, forward over forward: also where inputs are
    complex."""
    along = subject.directions(3)

    def products(function: Transform) -> Any:
        f = subject.scalar(subject.vary(function))
        g = jax.grad(f, tuple(range(len(subject.floats))))

        def slope(*x: Any) -> Any:
            return jax.jvp(f, x, along)[1]

        def inner(*x: Any) -> Any:
            return sum(jax.numpy.sum(jax.numpy.real(a * b)) for a, b in zip(g(*x), along, strict=True))

        where = tuple(range(len(subject.floats)))
        return (
            jax.jvp(g, subject.points, along),
            jax.grad(slope, where)(*subject.points),
            jax.grad(inner, where)(*subject.points),
            jax.jvp(slope, subject.points, along),
        )

    expected = compiled(products, subject.expected)
    if subject.stand_in is not None:  # what JAX does outside of `jit` is the same for all
        subject.close(products(subject.kernel), expected)
    subject.close(compiled(products, subject.kernel), expected)


def test_third_derivatives(few_subject: Subject) -> None:
    subject = few_subject
    along = subject.directions(3)

    def thirds(function: Transform) -> Any:
        f = subject.scalar(subject.vary(function))
        where = tuple(range(len(subject.floats)))

        def slope(h: Transform) -> Transform:
            return lambda *x: jax.jvp(h, x, along)[1]

        def through_reverse(h: Transform) -> Transform:
            return lambda *x: sum(
                jax.numpy.sum(jax.numpy.real(a * b)) for a, b in zip(jax.grad(h, where)(*x), along, strict=True)
            )

        out = [jax.grad(slope(slope(f)), where)(*subject.points)]
        out.append(jax.grad(slope(through_reverse(f)), where)(*subject.points))
        out.append(jax.grad(through_reverse(slope(f)), where)(*subject.points))
        out.append(jax.grad(through_reverse(through_reverse(f)), where)(*subject.points))
        out.append(slope(slope(slope(f)))(*subject.points))
        return out

    subject.close(compiled(thirds, subject.kernel), compiled(thirds, subject.expected))


def test_vmap_of_hessian(few_subject: Subject) -> None:
    """Of complex arguments, which Jacobians do not take, Hessian-vector products."""
    subject = few_subject
    args = subject.batch_args(2)

    along = args[subject.floats[0]][0]

    def hessian(function: Transform) -> Any:
        total = subject.scalar(function)
        if not subject.is_complex:
            return jax.vmap(jax.hessian(total, subject.floats[0]))(*args)

        def product(*args: Any) -> Any:
            return jax.jvp(lambda x: jax.grad(total)(x, *args[1:]), args[:1], (along,))[1]

        return jax.vmap(product)(*args)

    subject.close(compiled(hessian, subject.kernel), compiled(hessian, subject.expected))


def test_linearize_of_grad_and_vjp_of_linear(subject: Subject) -> None:
    along = subject.directions(3)
    where = tuple(range(len(subject.floats)))

    def products(function: Transform) -> Any:
        g = jax.grad(subject.scalar(subject.vary(function)), where)
        y, linear = jax.linearize(g, *subject.points)
        back = jax.linear_transpose(linear, *subject.points)
        return y, linear(*along), back(along)

    subject.close(compiled(products, subject.kernel), compiled(products, subject.expected))
