"""The structural check of shadows: memory for them that a derivative makes is zero before it is used."""

from __future__ import annotations

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import is_zero


def check_shadows(caller: Function, callee: Function, first: int, count: int) -> None:
    """Raises EmissionError where a shadow that `caller` makes for `callee` may hold something."""
    (block,) = caller.blocks
    calls = [i for i in block.instructions if isinstance(i, I.Call) and i.callee is callee]
    for call in calls:
        for value in call.arguments[first : first + count]:
            if isinstance(value, I.Call) and value.callee.name == "calloc":
                continue
            if isinstance(value, I.Alloca):
                users = [i for i in block.instructions if value in i.operands]
                start = users[0]
                if isinstance(start, I.Store) and is_zero(start.operands[0]) and _fills(start, value):
                    continue
            elif not isinstance(value, I.Instruction):
                continue
            raise EmissionError(caller, "a shadow is not zero when the reverse begins")


def _fills(store: I.Store, variable: I.Alloca) -> bool:
    return store.operands[1] is variable and store.operands[0].type == variable.allocated_type
