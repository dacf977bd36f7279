"""What an installed package must be able to do: `.ci/test-wheel` runs this file on a wheel, outside the checkout."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

SOURCE = """
#include <math.h>

double soft_norm(int n, const double *x) {
    double sum = 1;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}
"""


@pytest.fixture(autouse=True)
def _double_precision() -> None:
    jax.config.update("jax_enable_x64", True)


def test_installed_files() -> None:
    folder = Path(je.__file__).parent
    checkout = os.environ.get("JAX_ENZYME_CHECKOUT")
    if checkout is not None:
        assert Path(checkout) not in folder.parents
    assert (folder / "py.typed").exists()
    assert metadata.version("jax-enzyme") == je.__version__
    assert metadata.metadata("jax-enzyme")["License-Expression"] == "Apache-2.0"


def test_kernel_inside_grad() -> None:
    soft_norm = je.kernel(SOURCE, "soft_norm", "n: i32, x: f64[n] -> f64", lang="c")
    x = jnp.arange(1.0, 5.0)
    length = float(np.sqrt(1 + np.sum(np.square(x))))
    assert np.isclose(soft_norm(x), length, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.grad(soft_norm))(x), x / length, rtol=1e-13)
    np.testing.assert_allclose(jax.vmap(jax.grad(soft_norm))(jnp.stack([x, 0 * x]))[0], x / length, rtol=1e-13)
