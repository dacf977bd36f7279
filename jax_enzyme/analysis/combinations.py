"""How the iterations of a loop combine the numbers of an object in memory with others, where that is all that they do
with it: by sums, by products, or by taking the larger or the smaller ones (`analysis.accumulation`).

    m[j] = fmax(m[j], a)              if (a > m[j]) m[j] = a              h[k] += a              p[j] *= a

A loop may be cut into parts then, each with an object of its own, whose numbers are combined behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.accumulation import SET, Chain, chain, guarded
from jax_enzyme.analysis.extents import argument_size, room
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Uses
from jax_enzyme.ir.values import Argument, Value

_ADDING: dict[type[T.Type], str] = {T.FloatType: "fadd", T.IntType: "add"}
_UNDOABLE = frozenset({"fadd", "add", "fmul", "mul", "xor"})
"""How numbers are combined so that what was there before can be told from what a part of a loop makes of it."""


@dataclass(frozen=True)
class Combined:
    """Memory, by what makes it, in which iterations combine so many numbers of a type, and how."""

    site: Value
    type: T.Type
    count: int
    how: Chain


class Combinations:
    """What is asked about one function."""

    def __init__(self, facts: Recurrences, layout: DataLayout, uses: Uses) -> None:
        self._facts = facts
        self._layout = layout
        self._uses = uses

    def added(self, found: Iterable[Access], loop: Loop) -> T.Type | None:
        """The type of the numbers that iterations add to an object, which they access in no other way."""
        how = self.of(found, loop)
        return how[0] if how is not None and how[1].kind == _ADDING.get(type(how[0])) else None

    def adds(self, found: Iterable[Access], loop: Loop) -> bool:
        """Do iterations only add to an object?"""
        return self.added(found, loop) is not None

    def whole(self, item: MemoryObject, found: Iterable[Access], loop: Loop) -> Combined | None:
        """An object of known size in which iterations combine numbers, and nothing else lies."""
        how, site = self.of(found, loop), item.site
        size = argument_size(site) if isinstance(site, Argument) else room(self._layout, item)
        each = 0 if how is None else self._layout.alloc_size(how[0])
        if how is None or site is None or not size or size % each or each != self._layout.store_size(how[0]):
            return None
        return Combined(site, how[0], size // each, how[1])

    def of(self, found: Iterable[Access], loop: Loop) -> tuple[T.Type, Chain] | None:
        """The type of the numbers of an object that iterations access in no other way than to combine them with others,
        and how."""
        stores: set[I.Instruction] = set()
        reached: set[I.Instruction] = set()
        types: set[T.Type] = set()
        kinds: dict[str, Chain] = {}
        loads: dict[I.Load, Chain] = {}
        for access in found:
            if len(access.objects) != 1:
                return None
            match access.instruction:
                case I.Store():
                    stores.add(access.instruction)
                case I.Load():
                    load = access.instruction
                    sum_ = chain(load, self._uses, loop.blocks, self._facts.block_of)
                    sum_ = sum_ or guarded(load, self._uses, self._facts.cfg.preds)
                    if sum_ is None or sum_.kind == SET:
                        return None
                    if (load.align or 0) < self._layout.store_size(load.type):
                        return None
                    if any(not self._stores_back(u, n, load) for u, n in sum_.ends):
                        return None
                    reached.update(u for u, _ in sum_.ends)
                    types.add(load.type)
                    kinds.setdefault(sum_.kind, sum_)
                    loads[load] = sum_
                case _:
                    return None
        if len(types) > 1 or len(kinds) != 1 or stores != reached:
            return None
        (sum_,) = kinds.values()
        return (types.pop(), sum_) if sum_.kind in _UNDOABLE or self._in_turn(stores, loads) else None

    def _in_turn(self, stores: Set[I.Instruction], loads: Mapping[I.Load, Chain]) -> bool:
        """Does nothing write to an object between a load and the store of what it became? What is the best of a part
        would depend on what was there before."""
        home = self._facts.loops.home
        for load, sum_ in loads.items():
            (block, first), (target, last) = home[load], home[sum_.ends[0][0]]
            between = block.instructions[first : last if target is block else None]
            between += target.instructions[:last] if target is not block else []
            follows = target is block or (target in block.successors and len(self._facts.cfg.preds[target]) == 1)
            if len(sum_.ends) != 1 or not follows or not stores.isdisjoint(between):
                return False
        return True

    def _stores_back(self, user: I.Instruction, index: int, load: I.Load) -> bool:
        """Is the place where a sum is stored the one from which it was loaded? No step of a chain leads from one
        iteration of a loop into the next, so that equal forms are equal addresses."""
        if not isinstance(user, I.Store) or index != 0:
            return False
        source, target = load.operands[0], user.operands[1]
        if source is target:
            return True
        blocks = self._facts.block_of
        try:
            there = self._facts.form_at(target, blocks[user]).polynomial
            return (there - self._facts.form_at(source, blocks[load]).polynomial).value == 0
        except TooComplex:
            return False
