"""Integers of a kernel that depend on nothing but the thread: what they are, for every thread of a block."""

from __future__ import annotations

from jax_enzyme.analysis.folding import folded
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.registers import LANE, REGISTER

_DEPTH = 24
"""What is computed by more steps is taken to depend on more than the thread."""


class Lanes:
    """Evaluates integers for one block of threads after the other; all blocks are the same."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._known: dict[Value, list[int] | None] = {}

    @property
    def threads(self) -> int:
        """Of a block."""
        return self._shape.threads

    def of(self, value: Value, depth: int = _DEPTH) -> list[int] | None:
        """A value for each thread of a block, None where it depends on more than the thread."""
        known = int_value(value)
        if known is not None:
            return [known & 1 if value.type == T.I1 else known] * self._shape.threads
        if value not in self._known:
            self._known[value] = self._found(value, depth) if depth else None
        return self._known[value]

    def by_lane(self, value: Value) -> list[int] | None:
        """A value for each lane of a warp, where it is the same in all warps; lanes that no warp has are left out."""
        found = self.of(value)
        if found is None:
            return None
        first = found[:WARP_SIZE]
        same = all(v == first[t % WARP_SIZE] for t, v in enumerate(found))
        return first if same else None

    def _found(self, value: Value, depth: int) -> list[int] | None:
        match value:
            case I.Call():
                return self._register(value.callee.name)
            case I.BinaryOp() | I.Compare() | I.Select() | I.Cast() | I.Freeze():
                parts: list[list[int]] = []
                for operand in value.operands:
                    part = self.of(operand, depth - 1)
                    if part is None:
                        return None
                    parts.append(part)
                found = [folded(value, x) for x in zip(*parts, strict=True)]
                return [f for f in found if f is not None] if None not in found else None
            case _:
                return None

    def _register(self, name: str) -> list[int] | None:
        x, y, _ = self._shape.block
        threads = range(self._shape.threads)
        match name.removeprefix(REGISTER):
            case "tid.x":
                return [t % x for t in threads]
            case "tid.y":
                return [t // x % y for t in threads]
            case "tid.z":
                return [t // (x * y) for t in threads]
            case _:
                return [t % WARP_SIZE for t in threads] if name == LANE else None
