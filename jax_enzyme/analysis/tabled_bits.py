"""Numbers whose digits are read from a table: libraries of elementary functions make 2^(k/n) so, for integers k.

    %j = and i64 %k, 127                              the last seven binary digits of %k
    %a = getelementptr [128 x i64], ptr @table, i64 0, i64 %j
    %t = load i64, ptr %a                             the bits of 2^(j/128), less j << 45
    %s = shl i64 %k, 45
    %v = add i64 %t, %s                               the bits of 2^(k/128)

The digits of %k that come to those of the number are the ones that chose the entry: the table says what the number is,
whatever it holds, and what is multiplied by it stands for how the function goes on between.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import Constant, ConstantExpr, Value, int_value, lane_of


def is_tabled(value: Value, digits: int) -> bool:
    """Whether an integer is such a sum, for numbers of so many digits."""
    if not isinstance(value, I.BinaryOp) or value.opcode != "add":
        return False
    return any(_adds(entry, moved, digits) for entry, moved in (value.operands, value.operands[::-1]))


def _adds(entry: Value, moved: Value, digits: int) -> bool:
    if not isinstance(moved, I.BinaryOp) or moved.opcode != "shl" or not isinstance(entry, I.Load):
        return False
    base = I.base_of(entry.operands[0])
    while isinstance(base, ConstantExpr) and base.opcode == "getelementptr":  # a member of a table's structure
        base = base.operands[0]
    if not isinstance(base, GlobalVariable) or not base.is_constant:
        return False
    by = int_value(lane_of(moved.operands[1]))
    if by is None or not 0 < by <= digits:
        return False
    wanted = (1 << digits - by) - 1
    index: Value | None = entry.operands[0]
    while index is not None and not _has(index, moved.operands[0], wanted):
        index = _told_by(index)
    return index is not None


def _told_by(value: Value) -> Value | None:
    """What an address, or an integer, is another one for each of: none of its bits is lost on the way."""
    match value:
        case I.GetElementPtr():
            varying = [v for v in value.operands if not isinstance(v, Constant)]
            return varying[0] if len(varying) == 1 else None
        case I.Cast(opcode="zext" | "sext"):
            return value.operands[0]
        case I.BinaryOp(opcode="add" | "sub" | "mul" | "shl" | "or", operands=[x, y]) if int_value(lane_of(y)):
            return x if value.opcode in ("add", "sub") or {"nuw", "nsw", "disjoint"} & {*value.flags} else None
        case _:
            return None


def _has(value: Value, whole: Value, wanted: int) -> bool:
    """Whether a value is made of just the wanted low bits of another one."""
    if not isinstance(value, I.BinaryOp) or value.opcode != "and":
        return False
    mask, source = int_value(lane_of(value.operands[1])), value.operands[0]
    if isinstance(source, I.BinaryOp) and source.opcode == "shl" and mask is not None:
        by = int_value(lane_of(source.operands[1]))
        mask, source = None if by is None else mask >> by, source.operands[0]
    return mask is not None and mask & wanted == wanted and _have_low_bits(whole, source, wanted)


def _have_low_bits(one: Value, other: Value, wanted: int) -> bool:
    """Whether such bits of two integers are the same: one is the other, or that and a multiple of what is above."""
    if one is other:
        return True
    if isinstance(one, I.Cast) and one.opcode in ("zext", "sext", "trunc"):
        return _have_low_bits(one.operands[0], other, wanted)
    if isinstance(other, I.Cast) and other.opcode in ("zext", "sext", "trunc"):
        return _have_low_bits(one, other.operands[0], wanted)
    if not isinstance(one, I.BinaryOp) or one.opcode != "add":
        return False
    return any(
        _have_low_bits(a, other, wanted) and _is_multiple(b, wanted) for a, b in (one.operands, one.operands[::-1])
    )


def _is_multiple(value: Value, wanted: int) -> bool:
    number = int_value(lane_of(value))
    if number is not None:
        return number & wanted == 0
    merged = I.merged(value)
    return bool(merged) and all(not I.merged(v) and _is_multiple(v, wanted) for v in merged)
