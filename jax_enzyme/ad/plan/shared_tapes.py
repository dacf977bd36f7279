"""What iterations of marked loops write of a tape that is memory like any other to those who share loops out.

Slots are each iteration's own. But local objects live in a tape too, as their owner has them: one that every iteration
fills anew, as a thread does with an array of its own, is written at the same places by all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.taping import Plan
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.digits import overlap, place_of
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.ir.marks import Mark, is_common, mark_tape, marks_of
from jax_enzyme.ir.values import Value


def mark_residents(plan: Plan, tape: Value) -> None:
    """Says of the memory of a tape, in place, what is known of what iterations write of it."""
    meeting = [item for item in plan.residents if plan.recipes.begin(item) is None and _may_meet(plan.recipes, item)]
    mark_tape(tape, common=all(is_common(item.site) for item in meeting), slots=not meeting)


def _may_meet(recipes: Recipes, item: MemoryObject) -> bool:
    """May two iterations of a marked loop touch the same place of an object that one of them writes?"""
    module = recipes.points_to.module
    for loop in recipes.code.loops.all:
        marks = {mark for latch in loop.latches for mark in marks_of(module, latch.terminator)}
        if Mark.PARALLEL in marks:
            inside = [a for a in recipes.memory.inside(loop) if recipes.points_to.may_meet(a.objects, (item,))]
            written = [a for a in inside if a.writes]
            # Data may say where iterations write: then the directive says that they do not meet.
            if Mark.EXCLUSIVE in marks and Mark.REVERSED not in marks and is_common(item.site):
                written = [a for a in written if recipes.block_of.get(a.pointer) not in loop.blocks]
            if written and not _is_divided(recipes, item, inside, loop):
                return True
    return False


def _is_divided(recipes: Recipes, item: MemoryObject, inside: Iterable[Access], loop: Loop) -> bool:
    if item.site is None:
        return False
    places = [place_of(recipes.recurrences, access, item.site, loop, None) for access in inside]
    known = [place for place in places if place is not None]
    return len(known) == len(places) and overlap(known) is None
