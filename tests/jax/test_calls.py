"""Eager and compiled calls."""

from __future__ import annotations

import jax
import numpy as np

from tests.jax.conftest import Subject


def test_eager(subject: Subject) -> None:
    subject.close(subject.kernel(*subject.args), subject.expected(*subject.args))


def test_jit(subject: Subject) -> None:
    subject.close(jax.jit(subject.kernel)(*subject.args), subject.expected(*subject.args))


def test_the_callers_arrays_stay(subject: Subject) -> None:
    args = tuple(jax.numpy.asarray(a) for a in subject.args)
    before = [np.array(a) for a in args]
    subject.kernel(*args)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_eval_shape(subject: Subject) -> None:
    shapes = jax.eval_shape(subject.kernel, *subject.args)
    actual = subject.kernel(*subject.args)
    assert jax.tree.map(lambda s: (s.shape, s.dtype), shapes) == jax.tree.map(lambda a: (a.shape, a.dtype), actual)


def test_the_jaxpr_names_the_kernel(subject: Subject) -> None:
    assert f"{subject.example.symbol}[" in str(jax.make_jaxpr(subject.kernel)(*subject.args))
