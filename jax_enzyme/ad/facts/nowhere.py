"""Pointers that lead nowhere: no program that is right reads or writes through one.

    struct plan { double *work; struct plan *half; };
    p->half = NULL;                  and nothing else is ever stored there
    run(p->half, x, y);              what `run` is given is null, and so is `p->half->work`

Where such a pointer is of unknown origin to the map of pointers, nothing is lost by it, and where a shadow of it is
wanted it does as well itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import call_effect, is_near_null
from jax_enzyme.analysis.zeros import Zeros
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, ConstantExpr, Poison, Undef, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect


@dataclass(frozen=True, eq=False)
class Nowhere:
    """Those of a program."""

    points_to: PointsTo
    activity: Activity

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
                case I.Load() if self._zeros.is_null(value):
                    pass
                case I.Load() if (stored := self._stored_pointers(value)) is not None:
                    found.add(stored)
                case _:
                    return False
        return True

    @cached_property
    def _zeros(self) -> Zeros:
        return Zeros(self.points_to)

    @remembered
    def _stored_pointers(self, load: I.Load) -> Sequence[Value] | None:
        """The pointers that may be where one is loaded from memory of the kernel's own; None where anything else may
        be."""
        ranges = self.activity.numbers.ranges
        objects = self.points_to.of(load.operands[0])
        if not objects or any(o.kind not in ("stack", "heap") for o in objects):
            return None
        parts = list(ranges.accessed(load, load.operands[0], load.type))
        found: list[Value] = []
        for access in (a for f in self.points_to.functions for a in accesses(self.points_to, f, ranges.layout)):
            if not access.writes or access.kills or objects.isdisjoint(access.objects):
                continue
            match access.instruction:
                case I.Store(operands=[value, pointer]) as store:
                    written = list(ranges.accessed(store, pointer, value.type))
                    if any(a is b and p.meets(q) for a, p in parts for b, q in written):
                        if not T.is_pointer(value.type):
                            return None
                        found.append(value)
                case I.CallBase() as call if call_effect(call) is Effect.MEMORY_SET or self.points_to.callees(call):
                    pass  # nothing, or what the functions' own instructions say
                case _:
                    return None
        return found

    @cached_property
    def _given(self) -> Mapping[Value, Sequence[Value]]:
        """What calls pass to the parameters of the functions that the root calls."""
        found: dict[Value, list[Value]] = {}
        for call in (i for i in self.points_to.instructions() if isinstance(i, I.CallBase)):
            for callee in self.points_to.callees(call):
                for parameter, value in zip(callee.arguments, call.arguments, strict=False):
                    found.setdefault(parameter, []).append(value)
        return found
