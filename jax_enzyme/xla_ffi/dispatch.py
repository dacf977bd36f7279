"""How a call of a function becomes one of each platform: the one place that knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from jax_enzyme.xla_ffi import gpu
from jax_enzyme.xla_ffi.call import Batch, call
from jax_enzyme.xla_ffi.function import Function

Run = Callable[[Function, Batch, Sequence[jax.Array]], list[jax.Array]]


def call_on(platform: str) -> Run:
    """What calls functions that are for this platform (`Function.on`)."""
    return gpu.call if platform == "cuda" else call
