"""Forward mode, reverse mode and finite differences agree on every kernel of the corpus."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.kernels.case import Case
from tests.kernels.corpus import CASES, case
from tests.support import three_way, through_engine, through_jax

ONE_INPUT_AT_A_TIME = ("gemm", "lstm_cell", "kalman", "nbody", "soft_dtw", "black_scholes")
UNDER_JIT = ("axpy", "heat", "rk4_lorenz", "newton", "softmax_f32", "struct_stack")


@pytest.mark.parametrize("row", CASES, ids=str)
def test_corpus(row: Case) -> None:
    three_way.check(through_jax.subject(row), row)


@pytest.mark.parametrize("row", CASES, ids=str)
def test_one_function(row: Case) -> None:
    """Reverse mode in one function, which JAX takes only where the tape has no static size."""
    three_way.check(through_engine.subject(row), row, salt=4)


@pytest.mark.parametrize("name", UNDER_JIT)
def test_under_jit(name: str) -> None:
    three_way.check(through_jax.subject(case(name), jit=True), case(name), salt=2)


@pytest.mark.parametrize("name", ONE_INPUT_AT_A_TIME)
def test_one_input_at_a_time(name: str) -> None:
    """The gradient of each input alone is what it is among all of them."""
    row = case(name)
    f = through_jax.active_function(row, through_jax.kernel(row))
    point = through_jax.active_arguments(row)
    out, back = jax.vjp(f, point)
    weights = through_jax.like({n: row.generator(3).normal(size=v.shape) for n, v in out.items()}, out)
    together = back(weights)[0]
    for key, value in point.items():
        alone = jax.vjp(lambda x, key=key: f(point | {key: x}), value)[1](weights)[0]
        np.testing.assert_allclose(alone, together[key], rtol=1e-10, atol=1e-12, err_msg=key)
