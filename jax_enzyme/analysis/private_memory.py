"""Local memory of which each thread may have its own: no iteration of a loop sees what another one left in it.

Nothing outside of the loop uses it, but to clear it before or free it behind. A loop that begins several times finds
what the last iteration left, though, so that there

- all of it is cleared each time the loop begins, or
- it is a variable that begins anew in each iteration (`analysis.instances`), or
- each iteration writes whatever it writes of it before it reads any, or
- in the reverse of a loop, each iteration clears all of it in the end, as it was in the beginning.

Memory that nobody clears, or of which a part is cleared, is no exception: a step may write one half of it and read what
the last one wrote to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cached_property

from jax_enzyme.analysis.accesses import Access, clears
from jax_enzyme.analysis.extents import room
from jax_enzyme.analysis.filling import Filling, Written, are_all
from jax_enzyme.analysis.instances import Instances
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import NOTHING, MemoryObject, Objects
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.marks import Mark, Marks, is_common
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value, int_value
from jax_enzyme.remembered import remembered


class Renewal(Enum):
    """An iteration writes all that it touches of an object before it reads or writes any of it again; or it clears all
    in the end, and so finds zeros, but for the first one."""

    WRITTEN = "written"
    CLEARED = "cleared"


@dataclass(frozen=True)
class Renewed:
    """How an object is renewed, and the bytes of it that are: the first, and the one behind the last. Iterations touch
    no others."""

    how: Renewal
    first: int
    end: int


class PrivateMemory:
    """What is asked about one function."""

    def __init__(self, function: Function, facts: Recurrences, memory: MemoryUses) -> None:
        self._function = function
        self._facts = facts
        self._loops = facts.loops
        self._memory = memory
        self._filling = Filling(function, facts)

    @cached_property
    def _instances(self) -> Instances:
        return Instances(self._loops)

    def is_private(
        self, item: MemoryObject, inside: Sequence[Access], loop: Loop, marks: Marks, *, holds_nothing: bool
    ) -> bool:
        """Is an object local memory that nothing outside of the loop uses, but to clear it before or free it behind?
        What is read of it was written in the same iteration, or all is as it was behind each. Where it `holds_nothing`
        at the start of an iteration that the program may read, it may also be cleared each time that the loop begins,
        or the loop begin once."""
        if not self._is_local(item, loop) or self.is_held(item) or is_common(item.site):
            return False
        size = room(self._memory.layout, item)
        anew = False
        for access in self._memory.touching(item):
            block = self._facts.block_of[access.instruction]
            if block in loop or access.kills:
                continue
            if size is None or not clears(access.instruction):
                return False
            if not self._loops.dominators.dominates(block, loop.front):
                return False
            anew |= block in (loop.parent or ()) and access.size is not None and access.size == size
        start = None if item.site is None else self._instances.start(item.site)
        if start is not None and self._facts.block_of[start] in loop:
            return True
        once = loop.parent is None and not self._loops.irreducible
        anew |= item.kind == "heap" and self._made_in(item, loop.parent)
        return (holds_nothing and (once or anew)) or self._is_used_anew(item, inside, loop, marks)

    def is_cleared(self, item: MemoryObject, loop: Loop) -> bool:
        """Is any of an object that is private cleared in front of the loop?"""
        outside = (a for a in self._memory.touching(item) if self._facts.block_of[a.instruction] not in loop)
        return not all(a.kills for a in outside)

    def renewal(
        self, item: MemoryObject, inside: Sequence[Access], loop: Loop, size: int, *, always: bool = True
    ) -> Renewed | None:
        """How all bytes of an object of this size, or all that a loop touches, are new in each iteration, and behind
        the last one what that one left: whoever uses it elsewhere, and whatever it holds before. `inside`: its accesses
        in the loop. Not `always`: in each iteration that uses it at all, as where a loop inside may not begin."""
        if len(loop.latches) != 1 or loop.exiting != loop.latches:
            return None
        for child in loop.children:
            if all(self._facts.block_of[a.instruction] in child for a in inside):
                once = child.preheader is not None and self._facts.once_per_iteration(child.preheader, loop)
                return self.renewal(item, inside, child, size, always=always) if once or not always else None
        touched = {a.instruction: self._swept(a, item, loop) for a in inside}
        known = [bytes_ for bytes_ in touched.values() if bytes_ is not None]
        start, end = 0, size
        if known and len(known) == len(touched):
            start, end = min(k.first for k in known), max(k.end for k in known)
        swept = {a.instruction: s for a in inside if a.writes and (s := touched[a.instruction]) is not None}
        reads = [a.instruction for a in inside if a.reads]
        first = [w for w in swept if all(self._in_order(w, r, loop) for r in reads)]
        rest = [a.instruction for a in inside if a.writes and a.instruction not in first]
        if are_all((swept[w] for w in first if all(self._in_order(w, o, loop) for o in rest)), end, start):
            return Renewed(Renewal.WRITTEN, start, end)
        last = [w for w in swept if clears(w)]
        others = [a.instruction for a in inside if a.writes and a.instruction not in last]
        ends = (swept[w] for w in last if all(self._is_over(o, w, loop) for o in others))
        return Renewed(Renewal.CLEARED, start, end) if are_all(ends, end, start) else None

    def is_of_iteration(self, item: MemoryObject, loop: Loop) -> bool:
        """Is an object made in an iteration, and out of reach of all others?"""
        return item in self._of_iterations(loop)

    @remembered
    def _of_iterations(self, loop: Loop) -> frozenset[MemoryObject]:
        """What is made in an iteration, accessed there alone, and held nowhere but in what is so itself; and what
        iterations begin with does not lead there: who has no pointer from another iteration finds none."""
        points_to = self._memory.points_to
        calls = [i for b in loop.blocks for i in b.instructions if isinstance(i, I.CallBase)]
        made = {o for call in calls for o in points_to.of(call) if o.kind == "heap" and o.site is call}
        found = {o for o in made if all(self._facts.block_of[a.instruction] in loop for a in self._memory.touching(o))}
        contents = points_to.contents
        elsewhere = [o for holder, held in contents.items() if holder not in found for o in held]
        elsewhere += [o for value in self._brought(loop) for o in points_to.of(value)]

        def onward(item: MemoryObject) -> Objects:
            return contents.get(item, NOTHING)

        return frozenset(found.difference(reached(elsewhere, onward, found.__contains__)))

    def _brought(self, loop: Loop) -> set[Value]:
        """What is used in a loop and not made in it, and what its iterations hand on."""
        used = {o for b in loop.blocks for i in b.instructions for o in i.operands if not isinstance(o, Constant)}
        return {value for value in used if self._facts.block_of.get(value) not in loop.blocks}.union(
            i for i in loop.header.instructions if isinstance(i, I.Phi)
        )

    def _in_order(self, one: I.Instruction, other: I.Instruction, loop: Loop) -> bool:
        """Does an iteration that comes to the other instruction come to this one before, and not again behind it?"""
        around = next((c for c in loop.children if self._facts.block_of[one] in c), None)
        return self._loops.precedes(one, other) and (around is None or self._facts.block_of[other] not in around)

    def _is_over(self, one: I.Instruction, other: I.Instruction, loop: Loop) -> bool:
        """Does an iteration that came to the other instruction not come to this one any more? It need not have come to
        this one at all: it may stand in a branch."""
        block, there = self._facts.block_of[one], self._facts.block_of[other]

        def is_within(target: BasicBlock) -> bool:
            return target in loop and target is not loop.header

        behind = reached(there.successors, lambda b: b.successors, is_within)
        return block not in behind and (block is not there or self._loops.precedes(one, other))

    def _is_used_anew(self, item: MemoryObject, inside: Sequence[Access], loop: Loop, marks: Marks) -> bool:
        """Does no iteration see what others wrote to an object? Each writes whatever it writes before it reads, or
        clears it all in the end, in reverse."""
        writes = {a.instruction: self._swept(a, item, loop) for a in inside if a.writes}
        reads = [a.instruction for a in inside if a.reads]
        if all(s is not None and all(self._in_order(w, r, loop) for r in reads) for w, s in writes.items()):
            return True
        size = room(self._memory.layout, item)
        if size is None:
            return False
        renewed = self.renewal(item, inside, loop, size, always=False)
        if renewed is not None and (renewed.how is Renewal.WRITTEN or Mark.REVERSED in marks):
            return True
        last, others = ([w for w in writes if clears(w) is cleared] for cleared in (True, False))
        if Mark.REVERSED not in marks or not all(self._is_over(o, c, loop) for o in others for c in last):
            return False
        return are_all((s for c in last if (s := writes[c]) is not None), size)

    def _swept(self, access: Access, item: MemoryObject, loop: Loop) -> Written | None:
        """The bytes of an object that every iteration writes by an access, the same ones each time."""
        if access.size is None or item.site is None or len(access.objects) != 1:
            return None
        block = self._facts.block_of[access.instruction]
        return self._filling.written(access.pointer, access.size, block, item.site, loop)

    def is_held(self, item: MemoryObject) -> bool:
        return any(item in held for held in self._memory.points_to.contents.values())

    def _made_in(self, item: MemoryObject, loop: Loop | None) -> bool:
        return loop is not None and item.site is not None and self._facts.block_of.get(item.site) in loop.blocks

    def _is_local(self, item: MemoryObject, loop: Loop) -> bool:
        """Is an object of constant size made on every way to a loop?"""
        site = item.site
        block = None if site is None else self._facts.block_of.get(site)
        if block is None or loop.preheader is None or not self._loops.dominators.dominates(block, loop.preheader):
            return False
        if isinstance(site, I.Alloca):
            return block is self._function.entry and int_value(site.operands[0]) is not None
        fixed = isinstance(site, I.Call) and all(isinstance(a, Constant) for a in site.arguments)
        return item.kind == "heap" and fixed
