"""What LLVM computes on each way to a place is computed at that place.

    before    then:   %a = zext i32 %t to i64               after    join:   %p = zext i32 %t to i64
              else:   %b = zext i32 %t to i64
              join:   %p = phi i64 [ %a, %then ], [ %b, %else ]

Redundancies that are there on some ways only are taken out by computing on the others. To whoever asks whether a value
follows from the thread's number alone, the phi hides that it does: it would be kept for each thread in memory.

Two values are equal here where they are one value or one constant, or the same operation (flags included) on equal
values. Operations have no effects and cannot fail, so one of them can be computed again where the ways meet: what it is
made of in the end is one value for all ways, and was computed before they parted.
"""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.sameness import does_same, is_same
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import phis, substitute

_DEPTH = 8
_PURE = (I.BinaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)


def compute_where_joined(function: Function) -> bool:
    """Changes phis of pointers and integers in a private function. Whether there was one to change."""
    joined: dict[Value, Value] = {}
    for block in Cfg(function).rpo if function.blocks else ():
        at = Builder(BasicBlock())
        for phi in phis(block):
            values = [joined.get(v, v) for v in phi.operands]
            if len(set(phi.targets)) > 1 and not T.is_float(phi.type) and _equal(values, _DEPTH):
                joined[phi] = _computed(at, values)
        first = len(phis(block))
        block.instructions[first:first] = at.block.instructions
    substitute(function, joined)
    return bool(joined)


def _equal(values: Sequence[Value], depth: int) -> bool:
    first = values[0]
    if all(is_same(v, first) for v in values):
        return True
    if depth == 0 or not isinstance(first, _PURE) or first.opcode in I.INTEGER_DIVISIONS:
        return False
    return all(does_same(first, v) for v in values) and all(_equal(vs, depth - 1) for vs in _operands(values))


def _operands(values: Sequence[Value]) -> list[tuple[Value, ...]]:
    return list(zip(*(v.operands for v in values if isinstance(v, I.Instruction)), strict=True))


def _computed(at: Builder, values: Sequence[Value]) -> Value:
    first = values[0]
    if not isinstance(first, I.Instruction) or all(v is first for v in values):
        return first
    return at.insert(with_operands(first, [_computed(at, operands) for operands in _operands(values)]))
