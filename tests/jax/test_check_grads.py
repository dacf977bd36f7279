"""The comparison of forward mode, reverse mode and finite differences."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.jax.conftest import Subject


def test_kernels_agree(few_subject: Subject) -> None:
    subject = few_subject
    report = je.check_grads(subject.kernel, subject.args, order=2 if subject.example.symbol == "poly" else 1)
    assert report.ok
    assert len(report.comparisons) == (6 if subject.example.symbol == "poly" else 2)
    assert subject.example.symbol in str(report)


def test_a_wrong_gradient_is_found() -> None:
    @jax.custom_jvp
    def wrong(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    wrong.defjvp(lambda x, t: (wrong(*x), 2.0 * t[0]))
    with pytest.raises(je.DifferentiationError, match="differs"):
        je.check_grads(wrong, (jnp.float64(0.3),))


def test_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="modes"):
        je.check_grads(jnp.sin, (1.0,), modes=("backwards",))
    with pytest.raises(ValueError, match="nothing to differentiate"):
        je.check_grads(jnp.abs, (jnp.int32(1),))


def test_a_report_knows_what_differs() -> None:
    report = je.check_grads(jnp.sin, (jnp.float64(0.3),))
    bad = replace(report, comparisons=(replace(report.comparisons[0], error=1.0),))
    assert not bad.ok
    assert "<- differs" in str(bad)
