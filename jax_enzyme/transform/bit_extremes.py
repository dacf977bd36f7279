"""The larger of two integers that are bits of numbers, as a comparison and a choice: a copy of one of them.

    before    %b = bitcast float %x to i32                    after    %b = bitcast float %x to i32
              %m = call i32 @llvm.smax.i32(i32 %a, i32 %b)             %c = icmp sgt i32 %a, %b
                                                                       %m = select i1 %c, i32 %a, i32 %b

Programs have an extremum of numbers by one of integers, since atomic operations are there for these: bits of numbers
that are not negative stand in the order of the numbers, those of negative ones in the other.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.rewriting import Change, rewrite

_GREATER = {"llvm.smax.": "sgt", "llvm.smin.": "slt", "llvm.umax.": "ugt", "llvm.umin.": "ult"}


def choose_extremes(functions: list[Function]) -> bool:
    """Rewrites those of these functions in place; whether there were any."""
    return any([_rewrite(function) for function in functions])


def _rewrite(function: Function) -> bool:
    extremes = [i for i in function.instructions() if _predicate(i)]
    if not extremes:
        return False
    users = uses(function)
    found = {i for i in extremes if any(map(_is_bits, reached([i], _copied)))}
    found |= {i for i in extremes if any(u.opcode == "bitcast" and T.is_float(u.type) for u, _ in users.get(i, ()))}

    def change_of(instruction: I.Instruction) -> Change | None:
        if instruction not in found:
            return None
        x, y = instruction.operands[:2]
        return lambda at: at.select(at.icmp(_predicate(instruction), x, y), x, y)

    if found:
        rewrite(function, change_of)
    return bool(found)


def _predicate(value: Value) -> str:
    """The comparison by which an extremum is its first operand; empty for anything else."""
    return _GREATER.get(callee_name(value)[:10], "")


def _copied(value: Value) -> list[Value]:
    """What a value is one of."""
    return value.operands[:2] if isinstance(value, I.CallBase) and _predicate(value) else I.merged(value)


def _is_bits(value: Value) -> bool:
    return isinstance(value, I.Cast) and value.opcode == "bitcast" and T.is_float(value.operands[0].type)
