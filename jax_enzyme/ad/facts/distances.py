"""Distances of two objects, which lead from one of them into the other where they are added to an address.

    %d = sub (ptrtoint %b), (ptrtoint %a)
    %q = getelementptr i8, ptr %a, i64 %d        a place in what %a leads to, as far as the map of pointers can tell

Shadows lie as far from one another as the allocator has it, and not as the objects do. A distance of two places in one
object is the same in its shadow; what is only compared says where memory overlaps.

What is one object in the map may be several at run time: the nodes of a list. Two places there are mostly in one of
them (the end of a vector and its start), unless their distance is kept in memory and added to an address where it is
found, and is a number of bytes, of any width (the relative pointers of shared memory), or leads from what has just been
allocated to what was there before, counted in anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from types import UnionType

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Uses, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Constant, Value

_SAME = I.Phi | I.Select | I.Freeze | I.Cast


@dataclass(frozen=True, eq=False)
class Distances:
    """Those of a program; `varied` are the objects that hold numbers with derivatives, or pointers to such."""

    points_to: PointsTo
    varied: AbstractSet[MemoryObject]

    def lead_across(self, difference: I.BinaryOp) -> bool:
        """Whether this may be one of two objects, and reach an address, a call or memory."""
        first, second = map(self.points_to.of, difference.operands)
        if not first or not second or (first | second).isdisjoint(self.varied):
            return False
        if not self.points_to.may_meet(first, second):
            return any(map(_hands_over, self._users([difference], _SAME | I.BinaryOp)))
        many = frozenset(filter(self._is_of_many, first & second))
        if not many:
            return False
        return self._is_kept(difference, many, _SAME) or (
            self._leads_back(difference, many) and self._is_kept(difference, many, _SAME | I.BinaryOp)
        )

    def _users(self, values: Iterable[Value], through: type | UnionType) -> Iterable[tuple[I.Instruction, int]]:
        """What uses some integers, or what some instructions make of them."""
        made = Reached(values)
        for value in made:
            for user, index in self._uses.get(value, ()):
                if isinstance(user, through) and T.is_int(user.type):
                    made.add([user])
                else:
                    yield user, index

    def _is_kept(
        self, difference: I.BinaryOp, many: AbstractSet[MemoryObject], through: type[I.Instruction] | UnionType
    ) -> bool:
        """Whether this, or what some instructions make of it, is found in memory and added to an address: as bytes, or
        to that of one of `many` where it is counted in anything else."""
        users = self._users([difference], through)
        places = [user.operands[1] for user, index in users if isinstance(user, I.Store) and index == 0]
        if not places:
            return False
        held = frozenset(o for place in places for o in self.points_to.of(place))
        loads = (i for i in self.points_to.instructions() if isinstance(i, I.Load) and T.is_int(i.type))
        found = [i for i in loads if self.points_to.may_meet(held, self.points_to.of(i.operands[0]))]
        return any(
            isinstance(user, I.GetElementPtr)
            and index > 0
            and (user.source_type == T.I8 if through is _SAME else self._is_in(user, many))
            for user, index in self._users(found, through)
        )

    def _is_in(self, pointer: Value, objects: AbstractSet[MemoryObject]) -> bool:
        return not objects.isdisjoint(self.points_to.of(pointer))

    def _leads_back(self, difference: I.BinaryOp, many: AbstractSet[MemoryObject]) -> bool:
        """Whether one place is in what a call has just allocated, and the other may be in what was there before."""
        first, second = map(_starts, difference.operands)
        sites = {item.site for item in many}
        for new, other in ((first, second), (second, first)):
            if len(new) == 1 and isinstance(site := next(iter(new)), I.CallBase) and site in sites:
                return any(start is not site and not self._follows(start, site) for start in other)
        return False

    def _follows(self, start: Value, site: I.CallBase) -> bool:
        """Whether a phi, whose own starts are looked at as well, is reached through a call alone."""
        if not isinstance(start, I.Phi):
            return False
        for function in self.points_to.functions:
            around = {i: block for block in function.blocks for i in block.instructions}
            if site in around and start in around:
                call, phi = around[site], around[start]
                return call is not phi and Dominators(Cfg(function)).dominates(call, phi)
        return False

    def _is_of_many(self, item: MemoryObject) -> bool:
        """Whether there may be several of an object at once: what is allocated in a loop, or in a function that others
        call."""
        return isinstance(item.site, I.CallBase) and item.site not in self._once

    @cached_property
    def _once(self) -> frozenset[I.Instruction]:
        loops = Loops.of(self.points_to.root)
        return frozenset(i for b in self.points_to.root.blocks if loops.loop_of.get(b) is None for i in b.instructions)

    @cached_property
    def _uses(self) -> Uses:
        found = (uses(f) for f in self.points_to.functions)
        return {v: users for known in found for v, users in known.items() if not isinstance(v, Constant)}


def _hands_over(use: tuple[I.Instruction, int]) -> bool:
    user, index = use
    if isinstance(user, I.Store):
        return index == 0
    return isinstance(user, I.Return | I.CallBase | I.GetElementPtr | I.Cast)


def _starts(value: Value) -> frozenset[Value]:
    """What a pointer, or the integer made of it, is computed from: constants aside, and the phis on the way with it."""
    found: set[Value] = set()
    passed = Reached([value])
    for made in passed:
        if isinstance(made, I.GetElementPtr | I.Cast | I.Freeze):
            passed.add(made.operands[:1])
        elif isinstance(made, I.Select):
            passed.add(made.operands[1:])
        elif not isinstance(made, Constant):
            found.add(made)
            passed.add(made.operands if isinstance(made, I.Phi) else ())
    return frozenset(found)
