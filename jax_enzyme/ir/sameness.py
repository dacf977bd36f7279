"""Whether two values are one, and whether two instructions do the same.

i32 7, i32 7                                          one number
%a = add nsw i64 %x, 1   %b = add nsw i64 %y, 1       the same of x and y; made alike where x and y are
"""

from __future__ import annotations

from dataclasses import fields

from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.values import ConstantFloat, Value, int_value

_APART = frozenset(("operands", "metadata", "records", "name"))
"""Fields in which instructions that do the same may differ."""


def is_same(x: Value, y: Value) -> bool:
    """Whether two values are one, or numbers of one type and of the same bits."""
    if x is y or x.type != y.type:
        return x is y
    if isinstance(x, ConstantFloat) and isinstance(y, ConstantFloat):
        return x.text == y.text
    return int_value(x) is not None and int_value(x) == int_value(y)


def does_same(x: Instruction, y: Value) -> bool:
    """Whether an instruction does what another one does, with values of the same types."""
    if not isinstance(y, Instruction) or type(x) is not type(y):
        return False
    if any(getattr(x, f.name) != getattr(y, f.name) for f in fields(x) if f.name not in _APART):
        return False
    return [o.type for o in x.operands] == [o.type for o in y.operands]
