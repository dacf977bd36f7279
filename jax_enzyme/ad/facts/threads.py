"""Threads that run a function at the same time, and share its tape.

Both sweeps are what one thread does. Where others run the same code, three things change: what another thread may write
is not read again, cotangents of memory that others read too are added to it atomically, and the tape has a place per
thread. What this means for one function is its `ad.facts.functions.Execution`.
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantInt, Value, int_value


@dataclass(frozen=True, eq=False)
class Threads:
    """The threads that share a tape: how many they are, and how a thread finds its number (i64)."""

    count: int
    emit: Callable[[Builder], Value]

    def interleaved(self, builder: Builder, index: Value | None) -> Value:
        """This thread's place for the item `index` of a slot: neighbours have neighbouring places."""
        number = self.emit(builder)
        if index is None:
            return number
        scaled = builder.binary("mul", index, ConstantInt(T.I64, self.count), ("nuw", "nsw"))
        return builder.binary("add", scaled, number, ("nuw", "nsw"))

    def item(self, place: Value) -> Value | None:
        """The way back: the item of a place (None: the only one). Raises ValueError where it is no place of this
        thread."""
        if self._is_number(place):
            return None
        scaled = place.operands[0] if isinstance(place, I.BinaryOp) and place.opcode == "add" else None
        if (
            not isinstance(place, I.BinaryOp)
            or not isinstance(scaled, I.BinaryOp)
            or scaled.opcode != "mul"
            or int_value(scaled.operands[1]) != self.count
            or not self._is_number(place.operands[1])
        ):
            raise ValueError("not the place of this thread")
        return scaled.operands[0]

    def _is_number(self, value: Value) -> bool:
        return _same(value, self.emit(Builder(BasicBlock())))


def _same(a: Value, b: Value) -> bool:
    """Whether two values are computed in the same way from the same constants."""
    if isinstance(a, Constant) or isinstance(b, Constant):
        return a is b or (int_value(a) is not None and int_value(a) == int_value(b))
    if not isinstance(a, I.Instruction) or not isinstance(b, I.Instruction):
        return a is b
    if (a.opcode, a.type, len(a.operands)) != (b.opcode, b.type, len(b.operands)):
        return False
    return all(map(_same, a.operands, b.operands))


class Sums:
    """How the reverses of loads add to shadows, in one reverse sweep."""

    def add(self, load: I.Load, pointer: Value, adjoint: Value) -> bool:
        """Adds the adjoint of a load to the shadow, where others may do that too; False where nobody does."""
        return False

    def finish(self, shadow: Callable[[Value], Value]) -> None:
        """Emits what is left to be added when everything has been reversed; `shadow` gives shadows of parameters."""
