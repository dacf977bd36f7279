"""What iterations of marked loops write of a tape that is memory like any other to those who share loops out.

Slots are each iteration's own. But local objects live in a tape too, as their owner has them: one that every iteration
fills anew, as a thread does with an array of its own, or adds to, is written at the same places by all of them. Where
its address goes nowhere, such an object stays where it is, and is copied to the tape in the end. What functions do that
are called, as a loop that is cut by checkpoints is, is not looked into: with marked loops, they may do it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.taping import Plan
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.digits import overlap, place_of
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject, is_defined_call, reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.marks import Mark, is_common, mark_tape, marks_of
from jax_enzyme.ir.module import Function, Module, callee_name, callee_of
from jax_enzyme.ir.values import Value


def mark_residents(plan: Plan, tape: Value) -> None:
    """Says of the memory of a tape, in place, what is known of what iterations write of it."""
    meeting = [item for item in _meeting(plan) if not _stays(plan, item)]
    mark_tape(tape, common=all(is_common(item.site) for item in meeting), slots=not meeting)


def late_residents(plan: Plan) -> list[MemoryObject]:
    """The objects of a tape that are copied to it in the end, before which they are memory of their own."""
    return [item for item in _meeting(plan) if _stays(plan, item)]


def _meeting(plan: Plan) -> list[MemoryObject]:
    module, code = plan.recipes.points_to.module, plan.recipes.code
    if not plan.residents or not _has_marked_loops(module, code.function):
        return []
    marks = {loop: {m for latch in loop.latches for m in marks_of(module, latch.terminator)} for loop in code.loops.all}
    marked = {loop: found for loop, found in marks.items() if Mark.PARALLEL in found}
    return [item for item in plan.residents if _may_meet(plan.recipes, item, marked)]


def _stays(plan: Plan, item: MemoryObject) -> bool:
    """Is an object made once, where the function begins, and is it reached through its own address alone, which is no
    part of what is kept?"""
    recipes, points_to = plan.recipes, plan.recipes.points_to
    if recipes.begin(item) is not None:
        return False
    made = isinstance(item.site, I.Alloca) or (item.site and callee_name(item.site) in ("malloc", "calloc"))
    if not made or item.site not in recipes.code.function.entry.instructions:
        return False
    if any(item in held for held in points_to.contents.values()):
        return False
    if any(T.is_pointer(value.type) and item in points_to.of(value) for value in plan.taped):
        return False
    found = list(recipes.memory.touching(item))
    if any(is_defined_call(a.instruction) for a in found):
        return False
    return all(len(a.objects) == 1 and I.base_of(a.pointer) is item.site for a in found)


def _may_meet(recipes: Recipes, item: MemoryObject, marked: Mapping[Loop, Set[Mark]]) -> bool:
    """May two iterations of a marked loop touch the same place of an object that one of them writes? Iterations in
    which it begins have each their own."""
    module, begin = recipes.points_to.module, recipes.begin(item)
    if any(a.writes and _has_marked_loops(module, callee_of(a.instruction)) for a in recipes.memory.touching(item)):
        return True
    for loop, marks in marked.items():
        if begin is not None and recipes.block_of[begin] in loop.blocks:
            continue
        inside = [a for a in recipes.memory.inside(loop) if recipes.points_to.may_meet(a.objects, (item,))]
        written = [a for a in inside if a.writes]
        # Data may say where iterations write: then the directive says that they do not meet.
        if Mark.EXCLUSIVE in marks and Mark.REVERSED not in marks and is_common(item.site):
            written = [a for a in written if recipes.block_of.get(a.pointer) not in loop.blocks]
        if written and not _is_divided(recipes, item, inside, loop):
            return True
    return False


def _has_marked_loops(module: Module, function: Function | None) -> bool:
    """Has a function that is called, if any is, such loops, or one that it calls in turn?"""
    if function is None or function.is_declaration:
        return False
    blocks = (block for called in reachable_functions(function) for block in called.blocks)
    return any(Mark.PARALLEL in marks_of(module, block.terminator) for block in blocks)


def _is_divided(recipes: Recipes, item: MemoryObject, inside: Iterable[Access], loop: Loop) -> bool:
    if item.site is None:
        return False
    places = [place_of(recipes.recurrences, access, item.site, loop, None) for access in inside]
    known = [place for place in places if place is not None]
    return len(known) == len(places) and overlap(known) is None
