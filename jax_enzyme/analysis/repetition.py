"""Addresses that are the same in all iterations of a loop, at the same iterations of the loops inside of it.

for g: for j: z[g] += U[g][j] * s[j]         s + 8 * j: the same for all g
"""

from __future__ import annotations

from collections.abc import Mapping

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value

_ARITHMETIC = (I.GetElementPtr, I.BinaryOp, I.Cast, I.Select, I.Compare)


def is_repeated(pointer: Value, at: BasicBlock, loop: Loop, loops: Loops, home: Mapping[Value, BasicBlock]) -> bool:
    """Whether an address that is used in a block inside of `loop` is made of what comes from outside of it, and of what
    the loops around the block and inside of `loop` carry from one iteration to the next."""

    def made_of(value: Value) -> list[Value]:
        return list(value.operands) if isinstance(value, I.Instruction) and home.get(value) in loop.blocks else []

    def follows(value: Value) -> bool:
        block = home.get(value)
        if block not in loop.blocks or isinstance(value, _ARITHMETIC):
            return True
        inner = loops.loop_of[block]
        if not isinstance(value, I.Phi) or inner is None or inner.header is not block:
            return False
        return inner is not loop and at in inner.blocks

    return all(map(follows, reached([pointer], made_of)))
