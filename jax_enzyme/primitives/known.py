"""Values that are constants although they are traced: what a program under `jax.jit` makes of literals alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.core import Tracer

_PURE = frozenset(
    ("add", "sub", "mul", "neg", "max", "min", "convert_element_type", "broadcast_in_dim", "reshape", "squeeze")
)
_MOST_ELEMENTS = 1 << 16
_MOST_STEPS = 64


def known_integers(value: Any) -> np.ndarray | None:
    """The contents of an array or a tracer of integers that follow from constants; None where they are not known, or
    take more than a few steps to find."""
    return _Walk().found(value)


class _Walk:
    """Back through the equations that made a value. These attributes of JAX's tracers are not public, and have been the
    same since 0.8: where they are missing, nothing is known."""

    def __init__(self) -> None:
        self._steps = 0

    def found(self, value: Any) -> np.ndarray | None:
        if not isinstance(value, Tracer):
            return np.asarray(value)
        self._steps += 1
        if self._steps > _MOST_STEPS or value.size > _MOST_ELEMENTS:
            return None
        lowered = getattr(value, "full_lower", lambda: value)()
        if not isinstance(lowered, Tracer):
            return np.asarray(lowered)
        made_by = getattr(value, "parent", None)
        primitive = getattr(made_by, "primitive", None)
        if primitive is None or primitive.name not in _PURE:
            return None
        inputs = [self.found(one) for one in getattr(made_by, "in_tracers", (None,))]
        if any(one is None for one in inputs):
            return None
        with jax.ensure_compile_time_eval():
            return np.asarray(primitive.bind(*inputs, **getattr(made_by, "params", {})))
