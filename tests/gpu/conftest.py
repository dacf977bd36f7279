"""Tests on a real GPU. `make gpu-test` runs them, and fails where there is none; elsewhere they are skipped."""

from __future__ import annotations

import os
from typing import Any

import jax
import pytest

jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="session", autouse=True)
def device() -> Any:
    """The first CUDA device, which everything runs on unless a test says otherwise."""
    try:
        found = jax.devices("cuda")[0]
    except RuntimeError as error:
        if os.environ.get("JAX_ENZYME_GPU_TEST") == "1":
            pytest.fail(f"no CUDA device: {error}")
        pytest.skip("needs a CUDA device: make gpu-test")
    with jax.default_device(found):
        yield found
