"""Memory from an arena that iterations of one loop took, and that those of another find by its address.

    for i: %own = je.arena.allocate(...); store %own, %tape[i]     for r: %found = load %tape[n - 1 - r]; ... %found ...

Reverse gets the shadows that the forward sweep made from slots of its tape. No two iterations of the second loop reach
the same memory, where each address is in one place at most and each iteration reads places of its own: what is stored
comes straight from the allocation, at most once for each, nothing else in the function writes addresses of such memory
anywhere, and the arena never gives the same memory again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.digits import overlap, places_of
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import MemoryObject, reachable_functions
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.rules.helpers import ALLOCATE, RESET


class HandedMemory:
    """What is known of such memory in one function."""

    def __init__(self, function: Function, facts: Recurrences, loops: Loops, memory: MemoryUses) -> None:
        self._function = function
        self._facts = facts
        self._loops = loops
        self._memory = memory

    def is_of_iteration(
        self, item: MemoryObject, loop: Loop, accesses: Callable[[MemoryObject, Loop], Iterable[Access]]
    ) -> bool:
        """Is an object reached in a loop by way of places alone that are each iteration's own? `accesses`: those of an
        object in a loop."""
        site, block_of = item.site, self._facts.block_of
        if not isinstance(site, I.Call) or callee_name(site) != ALLOCATE or block_of[site] in loop.blocks:
            return False
        holder = self._holder(item, site)
        if holder is None or holder.site is None or self._may_be_reset:
            return False
        loads = {I.base_of(access.pointer) for access in accesses(item, loop)}
        if not all(isinstance(load, I.Load) and block_of[load] in loop.blocks for load in loads):
            return False
        reads = [replace(a, writes=True) for a in accesses(holder, loop) if a.instruction in loads]
        places = places_of(self._facts, reads, holder.site, loop, None)
        return len(reads) == len(loads) and places is not None and overlap(places) is None

    def _holder(self, item: MemoryObject, site: I.Call) -> MemoryObject | None:
        """The only object that holds addresses of what is allocated at a site, each in one place at most."""
        points_to = self._memory.points_to
        holders = [holder for holder, held in points_to.contents.items() if item in held]
        if len(holders) != 1:
            return None
        writes = [a.instruction for a in self._memory.touching(holders[0]) if a.writes and not a.kills]
        if not all(isinstance(write, I.Store) for write in writes):
            return None
        noted = [write for write in writes if points_to.may_meet(points_to.of(write.operands[0]), (item,))]
        if len(noted) != 1 or noted[0].operands[0] is not site or not self._is_once_each(noted[0], site):
            return None
        return holders[0]

    def _is_once_each(self, store: I.Instruction, site: I.Instruction) -> bool:
        """Does a store run once at most each time that what it stores is made?"""
        loop_of, block_of = self._loops.loop_of, self._facts.block_of
        return not self._loops.irreducible and loop_of[block_of[store]] is loop_of[block_of[site]]

    @cached_property
    def _may_be_reset(self) -> bool:
        """May an arena give the same memory again?"""
        called = (i for f in reachable_functions(self._function) for i in f.instructions() if isinstance(i, I.CallBase))
        return any(callee_name(call) == RESET for call in called)
