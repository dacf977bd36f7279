"""Which nests of short loops are to be unrolled, since the small local arrays that they go over become values.

    double J[3][3];                                         nine values of one iteration of the loop around, which need
    for (q = 0; q < 3; q++)                                 neither memory for their adjoints, nor a place on the tape
        for (i = q + 1; i < 3; i++)                         for each time that one of them is read
            for (j = q; j < 3; j++) J[i][j] -= l[i] * J[q][j];

LLVM unrolls such nests only where each loop has a constant length, and few iterations. An array becomes values where
nothing has its address, and nothing but nests that are unrolled, and loops that are short anyway, goes over it.
The loop around has to become an innermost one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import prod

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen.short_nests import inside, iterations
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Constant, Value

_INSTRUCTIONS = 512
"""Of all iterations of a nest together."""


def nests_over_locals(facts: Recurrences, is_small: Callable[[Value], bool], short: Collection[Loop]) -> set[Loop]:
    """The loops of such nests, which are themselves in loops. `is_small` knows the arrays."""
    nests: dict[Loop, list[Loop]] = {}
    root_of: dict[Loop, Loop] = {}
    for loop in sorted(facts.loops, key=lambda loop: sum(1 for _ in loop.ancestors)):
        if loop.parent is not None and loop.children and loop not in root_of and _is_few(facts, loop):
            nests[loop] = [loop, *inside(loop)]
            root_of.update(dict.fromkeys(nests[loop], loop))
    if not nests:
        return set()
    users = uses(facts.function)
    arrays = [i for block in facts.function.blocks for i in block.instructions if is_small(i)]
    over = [loops for array in arrays if (loops := _gone_over(facts, array, users)) is not None]
    while True:
        kept = [loops for loops in over if all(loop in root_of or loop in short for loop in loops)]
        wanted = {root_of[loop] for loops in kept for loop in loops if loop in root_of}
        wanted = {root for root in wanted if _leaves_no_loop(root, wanted | set(short))}
        if len(wanted) == len(nests):
            return set(root_of)
        nests = {root: loops for root, loops in nests.items() if root in wanted}
        root_of = {loop: root for root, loops in nests.items() for loop in loops}


def _leaves_no_loop(root: Loop, gone: Collection[Loop]) -> bool:
    """Whether the loop around a nest becomes an innermost one: or else values would be computed again, one iteration
    after the other, that the tape has."""
    assert root.parent is not None
    return all(loop in gone for loop in root.parent.children)


def _is_few(facts: Recurrences, root: Loop) -> bool:
    """Whether a nest is few instructions when it is unrolled."""
    nest = [root, *inside(root)]
    if root.length > _INSTRUCTIONS:
        return False
    counts = {loop: iterations(facts, loop) for loop in nest}
    calls = (i for block in facts.loops.blocks(root) for i in block.instructions if isinstance(i, I.CallBase))
    if None in counts.values() or not all(callee_name(call).startswith("llvm.") for call in calls):
        return False
    own = {loop: sum(len(block.instructions) for block in loop.own_blocks) for loop in nest}
    times = {loop: prod(counts.get(around) or 1 for around in loop.ancestors) for loop in nest}
    return sum(own[loop] * times[loop] for loop in nest) <= _INSTRUCTIONS


def _gone_over(facts: Recurrences, array: Value, users: Uses) -> list[Loop | None] | None:
    """The innermost loops in which places of an array are not constant; None where its address goes elsewhere."""
    found: list[Loop | None] = []
    places = Reached([(array, True)])
    for pointer, is_fixed in places:
        for user, index in users.get(pointer, ()):
            match user:
                case I.GetElementPtr() if index == 0:
                    places.add([(user, is_fixed and _are_constant(user.operands[1:]))])
                case I.Phi() | I.Select():  # of two stores in the arms of a branch LLVM makes one
                    places.add([(user, False)])
                case I.Load() | I.Store() if index == len(user.operands) - 1:
                    if not is_fixed:
                        found.append(facts.loops.loop_of.get(facts.block_of[user]))
                case I.CallBase() if is_fixed and callee_name(user).startswith(("llvm.lifetime.", "llvm.mem")):
                    pass
                case _:
                    return None
    return found


def _are_constant(values: Iterable[Value]) -> bool:
    return all(isinstance(value, Constant) for value in values)
