"""How XLA compiles the programs of tests."""

from __future__ import annotations

import jax
import pytest


def compile_without_optimising() -> None:
    """In this process, before it compiles anything: what XLA makes of the programs around kernels runs once, and to
    optimise it took a third of the tests of JAX."""
    jax.config.update("jax_disable_most_optimizations", True)
    if jax.__version_info__ < (0, 11):  # XLA ends the process where it does not know a flag
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false", prepend=" ")
            jax.jit(lambda: 0.0)()
