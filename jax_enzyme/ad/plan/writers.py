"""What functions and calls of them write."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import NOTHING, Objects
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function


def writing_calls(function: Function, writers: dict[Function, Objects]) -> Iterator[Access]:
    """Calls of functions with bodies, as writes to all that they may write."""
    for instruction in function.instructions():
        if isinstance(instruction, I.CallBase) and isinstance(instruction.callee, Function):
            objects = writers.get(instruction.callee)
            if objects:
                yield Access(instruction, instruction.callee, objects, None, True, True)


def written_objects(points_to: PointsTo, layout: DataLayout) -> dict[Function, Objects]:
    """The objects that each function, or anything it calls, may write."""
    written = {
        f: frozenset().union(*(a.objects for a in accesses(points_to, f, layout) if a.writes))
        for f in points_to.functions
    }
    changed = True
    while changed:
        changed = False
        for function in points_to.functions:
            for instruction in function.instructions():
                callee = instruction.callee if isinstance(instruction, I.CallBase) else None
                if isinstance(callee, Function) and not written.get(callee, NOTHING) <= written[function]:
                    written[function] |= written[callee]
                    changed = True
    return written
