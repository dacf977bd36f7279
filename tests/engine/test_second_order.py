"""Hessian-vector products by forward mode over reverse mode are finite differences of the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pytest

from tests.kernels.case import Case
from tests.kernels.corpus import CASES
from tests.support import through_jax
from tests.support.differences import derivative

DOUBLE = tuple(row for row in CASES if not row.single)


@pytest.mark.parametrize("row", DOUBLE, ids=str)
def test_forward_over_reverse(row: Case) -> None:
    f = through_jax.active_function(row, through_jax.kernel(row))
    point = through_jax.active_arguments(row)
    r = row.generator(5)
    out = f(point)
    weights = through_jax.like({n: r.normal(size=v.shape) for n, v in out.items()}, out)
    direction = through_jax.like({n: r.normal(size=v.shape) for n, v in point.items()}, point)
    gradient = jax.jit(lambda x: jax.vjp(f, x)[1](weights)[0])

    def flat(values: Mapping[str, Any]) -> np.ndarray:
        return np.concatenate([np.ravel(values[name]) for name in point])

    def along(t: float) -> np.ndarray:
        return flat(gradient({n: x + t * direction[n] for n, x in point.items()}))

    _, product = jax.jvp(gradient, (point,), (direction,))
    expected = derivative(along, row.step)
    size = max(float(np.max(np.abs(expected.value))), 1e-3 * float(np.max(np.abs(flat(gradient(point))))))
    away = np.abs(flat(product) - expected.value)
    assert np.all(away <= 1e-7 * size + 10 * expected.error), (
        f"{row}: off by {np.max(away):.3g}, size {size:.3g}\n{flat(product)[:8]}\n{expected.value[:8]}"
    )
