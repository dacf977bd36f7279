"""The structural check of shadows: memory for them that a derivative makes is zero before it is used."""

from __future__ import annotations

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import Value, int_value


def check_shadows(caller: Function, callee: Function, first: int, count: int) -> None:
    """Raises EmissionError where a shadow that `caller` makes for `callee` may hold something."""
    instructions = list(caller.instructions())
    first_user: dict[Value, I.Instruction] = {}
    for instruction in instructions:
        for operand in instruction.operands:
            first_user.setdefault(operand, instruction)
    calls = [i for i in instructions if isinstance(i, I.Call) and i.callee is callee]
    for call in calls:
        for value in call.arguments[first : first + count]:
            if callee_name(value) == "calloc":
                continue
            if isinstance(value, I.Alloca):
                if _clears(first_user[value], value):
                    continue
            elif not isinstance(value, I.Instruction):
                continue
            raise EmissionError(caller, "a shadow is not zero when the reverse begins")


def _clears(start: I.Instruction, variable: I.Alloca) -> bool:
    """Whether an instruction fills a local array of bytes with zeros."""
    if not isinstance(start, I.Call) or not callee_name(start).startswith("llvm.memset"):
        return False
    target, byte, length = start.arguments[:3]
    size = variable.allocated_type.count if isinstance(variable.allocated_type, T.ArrayType) else None
    return target is variable and int_value(byte) == 0 and int_value(length) == size
