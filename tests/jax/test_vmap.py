"""vmap over any subset of the arguments, and its compositions."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from tests.jax.conftest import Subject, make
from tests.jax.kernels import POLY


def _subsets(count: int) -> list[tuple[int, ...]]:
    return [s for n in range(1, count + 1) for s in itertools.combinations(range(count), n)]


def test_any_subset_of_arguments(subject: Subject) -> None:
    for which in _subsets(len(subject.args)):
        args = subject.batch_args(3, which)
        axes = tuple(0 if i in which else None for i in range(len(args)))
        actual = jax.vmap(subject.kernel, axes)(*args)
        subject.close(actual, jax.vmap(subject.expected, axes)(*args))


def test_other_axes(subject: Subject) -> None:
    args = tuple(np.moveaxis(a, 0, -1) for a in subject.batch_args(3))
    actual = jax.vmap(subject.kernel, -1, -1)(*args)
    subject.close(actual, jax.vmap(subject.expected, -1, -1)(*args))


def test_nested_over_different_arguments(subject: Subject) -> None:
    if len(subject.args) < 2:
        pytest.skip("needs two arguments")
    args = (*subject.batch_args(2, (0,))[:1], *subject.batch_args(3, (1,))[1:])
    outer = (0, *(None for _ in args[1:]))
    inner = (None, 0, *(None for _ in args[2:]))
    actual = jax.jit(jax.vmap(jax.vmap(subject.kernel, inner), outer))(*args)
    subject.close(actual, jax.vmap(jax.vmap(subject.expected, inner), outer)(*args))


def test_of_grad_and_grad_of(subject: Subject) -> None:
    args = subject.batch_args(3)
    ours = jax.grad(subject.scalar(subject.kernel), subject.floats)
    theirs = jax.grad(subject.scalar(subject.expected), subject.floats)
    subject.close(jax.jit(jax.vmap(ours))(*args), jax.jit(jax.vmap(theirs))(*args))
    ours = jax.grad(subject.scalar(jax.vmap(subject.kernel)), subject.floats)
    theirs = jax.grad(subject.scalar(jax.vmap(subject.expected)), subject.floats)
    subject.close(jax.jit(ours)(*args), jax.jit(theirs)(*args))


def test_grad_with_shared_arguments(few_subject: Subject) -> None:
    subject = few_subject
    for which in _subsets(len(subject.args)):
        args = subject.batch_args(3, which)
        axes = tuple(0 if i in which else None for i in range(len(args)))
        ours = jax.grad(subject.scalar(jax.vmap(subject.kernel, axes)), subject.floats)
        theirs = jax.grad(subject.scalar(jax.vmap(subject.expected, axes)), subject.floats)
        subject.close(jax.jit(ours)(*args), jax.jit(theirs)(*args))


def test_of_jvp(subject: Subject) -> None:
    points = tuple(subject.batch_args(3)[i] for i in subject.floats)
    fixed = subject.directions(3)

    def push(function: object, *x: object) -> object:
        return jax.jvp(subject.vary(function), x, fixed)  # type: ignore[arg-type]

    actual = jax.vmap(lambda *x: push(subject.kernel, *x))(*points)
    subject.close(actual, jax.vmap(lambda *x: push(subject.expected, *x))(*points))


def test_jacobians_of_empty_arrays(backend: str) -> None:
    """A batch of no directions: the value beside it is there all the same."""
    poly = make(POLY, backend)
    empty = np.zeros(0)
    for jacobian in (jax.jacfwd, jax.jacrev, jax.hessian):
        ours, theirs = (jacobian(lambda x, f=f: f(x, 2.0)) for f in (poly.kernel, poly.expected))
        poly.close(ours(empty), theirs(empty))
    poly.close(jax.vmap(jax.jacfwd(poly.kernel), (0, None))(np.ones((2, 0)), 2.0), jnp.zeros((2, 0, 0)))


def test_empty_batch(subject: Subject) -> None:
    args = tuple(np.zeros((0, *np.shape(a)), np.asarray(a).dtype) for a in subject.args)
    subject.close(jax.vmap(subject.kernel)(*args), jax.vmap(subject.expected)(*args))
