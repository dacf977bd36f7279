"""Pointers that lead nowhere: no program that is right reads or writes through one.

    struct plan { double *work; struct plan *half; };
    p->half = NULL;                  and nothing else is ever stored there
    run(p->half, x, y);              what `run` is given is null, and so is `p->half->work`

Where such a pointer is of unknown origin to the map of pointers, nothing is lost by it, and where a shadow of it is
wanted it does as well itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import is_near_null
from jax_enzyme.analysis.zeros import Zeros
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, ConstantExpr, Poison, Undef, Value


@dataclass(frozen=True, eq=False)
class Nowhere:
    """Those of a program."""

    points_to: PointsTo

    def leads(self, pointer: Value) -> bool:
        """Whether an address can only be null, made of it, what nobody has written, or loaded through such an
        address."""
        if self.points_to.of(pointer):
            return False
        found = Reached([pointer])
        for value in found:
            match value:
                case Poison() | Undef():
                    pass
                case _ if is_near_null(value):
                    pass
                case I.Phi() | I.Select():
                    found.add(I.merged(value))
                case I.GetElementPtr() | I.Freeze() | ConstantExpr(opcode="getelementptr"):
                    found.add(value.operands[:1])
                case Argument() if (given := self._given.get(value)) is not None:
                    found.add(given)
                case I.Load(operands=[address]) if not self.points_to.of(address):
                    found.add([address])
                case I.Load() if (stored := self._zeros.stored(value)) is not None:
                    found.add(stored)
                case _:
                    return False
        return True

    @cached_property
    def _zeros(self) -> Zeros:
        return Zeros(self.points_to)

    @cached_property
    def _given(self) -> Mapping[Value, Sequence[Value]]:
        """What calls pass to the parameters of the functions that the root calls."""
        found: dict[Value, list[Value]] = {}
        for call in (i for i in self.points_to.instructions() if isinstance(i, I.CallBase)):
            for callee in self.points_to.callees(call):
                for parameter, value in zip(callee.arguments, call.arguments, strict=False):
                    found.setdefault(parameter, []).append(value)
        return found
