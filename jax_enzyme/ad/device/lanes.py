"""Integers of a kernel that depend on nothing but the thread: what they are, for every thread of a block."""

from __future__ import annotations

import numpy as np

from jax_enzyme.analysis.folding import Numbers, evaluated
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.registers import LANE, REGISTER


class Lanes:
    """Evaluates integers for one block of threads after the other; all blocks are the same."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._known: dict[Value, Numbers | None] = {}

    @property
    def threads(self) -> int:
        """Of a block."""
        return self._shape.threads

    def of(self, value: Value) -> list[int] | None:
        """A value for each thread of a block, None where it depends on more than the thread."""
        found = evaluated(value, self._known, self._register)
        return None if found is None else np.broadcast_to(found, self.threads).tolist()

    def by_lane(self, value: Value) -> list[int] | None:
        """A value for each lane of a warp, where it is the same in all warps; lanes that no warp has are left out."""
        found = self.of(value)
        if found is None:
            return None
        first = found[:WARP_SIZE]
        same = all(v == first[t % WARP_SIZE] for t, v in enumerate(found))
        return first if same else None

    def _register(self, call: I.Call) -> Numbers | None:
        x, y, _ = self._shape.block
        threads = np.arange(self.threads)
        match call.callee.name.removeprefix(REGISTER):
            case "tid.x":
                return threads % x
            case "tid.y":
                return threads // x % y
            case "tid.z":
                return threads // (x * y)
            case name:
                return threads % WARP_SIZE if name == LANE else None
