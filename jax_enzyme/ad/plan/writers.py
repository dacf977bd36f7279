"""What functions and calls of them write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import NOTHING, Objects
from jax_enzyme.ir.module import Function, callee_of, callers_of


def writing_calls(function: Function, writers: dict[Function, Objects]) -> Iterator[Access]:
    """Calls of functions with bodies, as writes to all that they may write."""
    for instruction in function.instructions():
        callee = callee_of(instruction)
        if callee is not None and (objects := writers.get(callee)):
            yield Access(instruction, callee, objects, None, True, True)


def written_objects(points_to: PointsTo, layout: DataLayout) -> dict[Function, Objects]:
    """The objects that each function, or anything it calls, may write."""
    own: dict[Function, Objects] = {}
    callees: dict[Function, list[Function]] = {}
    callers = callers_of(points_to.functions)
    for function in points_to.functions:
        own[function] = frozenset().union(*(a.objects for a in accesses(points_to, function, layout) if a.writes))
        callees[function] = list(dict.fromkeys(f for i in function.instructions() if (f := callee_of(i)) is not None))

    def evaluate(function: Function, written: Mapping[Function, Objects]) -> Objects:
        return own[function].union(*(written.get(callee, NOTHING) for callee in callees[function]))

    return fixpoint(list(points_to.functions), lambda f: callers.get(f, ()), evaluate, NOTHING)
