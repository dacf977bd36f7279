"""Loads whose reverse is the first to come to the cotangent of their place: it is set, not added to.

    forward   for i: y[i] = f(x[i])      reverse   for all i: x_[i] = 0;  for i: x_[i] += f'(x[i]) * y_[i]
                                         so                               for i: x_[i] = f'(x[i]) * y_[i]

A cotangent starts from zero where nobody gives it. So it is as long as the reverse of nothing that comes later has read
from the same place. Where such loads come to all places of a buffer, not even the zeros are needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.extents import argument_size
from jax_enzyme.analysis.filling import Filling, are_all
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject, is_defined_call
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Argument, Value

_MANY_PAIRS = 64
"""So many pairs of what may add to one object are looked at."""


@dataclass(frozen=True)
class FirstSums:
    """The loads whose reverse sets, and the buffers whose cotangents need no zeros at the start."""

    loads: frozenset[I.Instruction] = frozenset()
    filled: frozenset[Value] = frozenset()


def first_sums(
    recipes: Recipes, facts: Facts, others: Collection[I.Instruction], turned: Collection[Loop]
) -> FirstSums:
    """What is set in a function. `others` are loads that are reversed in another way, `turned` the loops that are gone
    through from the first iteration on."""
    function = recipes.code.function
    inner = any(is_defined_call(i) and facts.has_adjoint(i) for i in function.instructions())
    if recipes.execution is not ALONE or not recipes.is_root or inner or not recipes.choices.later_writes:
        return FirstSums()
    search = _Search(recipes, facts, others, turned)
    found = {item: list(search.first(item)) for item in facts.cleared}
    filled = (item.site for item, accesses in found.items() if accesses and search.fill(item, accesses))
    loads = frozenset(access.instruction for accesses in found.values() for access in accesses)
    return FirstSums(loads, frozenset(site for site in filled if site is not None))


class _Search:
    def __init__(
        self, recipes: Recipes, facts: Facts, others: Collection[I.Instruction], turned: Collection[Loop]
    ) -> None:
        self._recipes = recipes
        self._facts = facts
        self._others = others
        self._turned = turned
        self._filling = Filling(recipes.code.function, recipes.recurrences)

    def first(self, item: MemoryObject) -> Iterator[Access]:
        """The loads from an object behind which nothing with a reverse reads the same place. Nothing writes there."""
        reading = [a for a in self._recipes.memory.touching(item) if self._facts.has_adjoint(a.instruction)]
        if len(reading) ** 2 > _MANY_PAIRS or any(a.writes for a in reading):
            return
        for access in reading:
            load = access.instruction
            if not isinstance(load, I.Load) or not I.is_plain(load) or not T.is_float(load.type):
                continue
            alone = load not in self._others and access.objects == frozenset((item,))
            if alone and all(self._is_before(other, access) for other in (access, *reading)):
                yield access

    def _is_before(self, other: Access, access: Access) -> bool:
        """Whether the reverse sweep comes to none of the places of an access by another one first."""
        later = self._recipes.later_writes
        if not later.miss(access.instruction, other):
            return False
        around = self._recipes.code.nest(self._recipes.block_of[access.instruction])
        shared = (x for x in around if x in self._turned and self._recipes.block_of[other.instruction] in x.blocks)
        return all(later.are_divided(access, other, loop) for loop in shared)

    def fill(self, item: MemoryObject, accesses: list[Access]) -> bool:
        """Whether some accesses come to all of a buffer."""
        buffer, recipes = item.site, self._recipes
        room = argument_size(buffer) if isinstance(buffer, Argument) else None
        if not isinstance(buffer, Argument) or room is None:
            return False
        blocks = [recipes.block_of[a.instruction] for a in accesses]
        places = [self._filling.places(a.pointer, b, buffer) for a, b in zip(accesses, blocks, strict=True)]
        known = [p for p in places if p is not None and p.once]
        alike = [p for p in known if p.steps == known[0].steps]
        sizes = {a.size for a in accesses}
        size = sizes.pop()
        return bool(alike) and not sizes and size is not None and are_all(alike, size, room)
