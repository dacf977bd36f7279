"""Loops whose iterations may be reversed in any order: the reverse sweep goes through them from the first to the last.

    forward   for i: y[i] = f(x[i])       reverse   for i, from the last: x_[i] += f'(x[i]) * y_[i]; y_[i] = 0
                                          so        for i, from the first: the same

Nothing that lies side by side is turned around in a vector then, and what is read follows in the order of memory. That
is so where

- what goes around the loop with an adjoint are sums, whose adjoint is the same in all iterations,
- no other value with an adjoint is read behind the loop, where its adjoint would be that of the last iteration,
- what has an adjoint and is written in one iteration is neither read nor written in another one.

Nests are turned as a whole: short rows that follow in one direction, each in the other one, are what caches do not
expect.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import prod

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.accumulation import carried_sum
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import is_memory_free
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import uses
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.rewriting import phis

_SHORT = 256
"""Nests of fewer iterations, inside of a loop that is not turned, stay as they are."""
_MANY_PAIRS = 256
"""So many pairs of accesses, one of which writes, are looked at in a loop."""


def turned_loops(recipes: Recipes, facts: Facts) -> dict[Loop, int]:
    """The loops of a function that are turned, with the number of the last iteration of each."""
    if recipes.execution is not ALONE or not recipes.choices.turned_loops or facts.activity.has_codes:
        return {}
    finder = _Finder(recipes, facts)
    return {loop: last for nest in recipes.code.loops if nest.parent is None for loop, last in finder.turned(nest)}


class _Finder:
    def __init__(self, recipes: Recipes, facts: Facts) -> None:
        self._recipes = recipes
        self._facts = facts
        self._users = uses(recipes.code.function)

    def turned(self, loop: Loop) -> Iterator[tuple[Loop, int]]:
        """A nest as a whole, or what is inside of it."""
        nest = [loop]
        for inner in nest:
            nest += inner.children
        lasts = [self._last(inner) for inner in nest]
        known = [last for last in lasts if last is not None]
        longest = prod(last + 1 for last in known)
        if len(known) == len(nest) and (loop.parent is None or longest >= _SHORT) and all(map(self._is_free, nest)):
            yield from zip(nest, known, strict=True)
        else:
            for inner in loop.children:
                yield from self.turned(inner)

    def _last(self, loop: Loop) -> int | None:
        """The number of the last iteration of a loop with one latch, at which alone it is left."""
        if len(loop.latches) != 1 or loop.exiting != loop.latches or self._recipes.is_shared(loop):
            return None
        return self._recipes.recurrences.repeats(loop)

    def _is_free(self, loop: Loop) -> bool:
        """Whether the reverse of iterations may come in any order."""
        own = [i for block in loop.blocks for i in block.instructions]
        if not all(is_memory_free(i) for i in own if isinstance(i, I.CallBase)):
            return False
        summed = self._summed(loop)
        for value in own:
            if value in summed or not self._facts.activity.value(value):
                continue
            if value in phis(loop.header) or not all(self._is_in(u, loop) for u, _ in self._users.get(value, ())):
                return False
        return self._is_divided(loop)

    def _summed(self, loop: Loop) -> set[Value]:
        """What is made, in a loop, of sums that go around it, by adding to them, and for nothing else: behind the loop,
        only what they come to is read."""
        carried = [phi for phi in phis(loop.header) if T.is_float(phi.type) and self._facts.has_adjoint(phi)]
        sums = [carried_sum(phi, loop, self._users, self._recipes.block_of) for phi in carried]
        return {step for sum_ in sums if sum_ is not None and sum_.kind == "fadd" for step in sum_.steps}

    def _is_in(self, user: I.Instruction, loop: Loop) -> bool:
        return self._recipes.block_of[user] in loop.blocks

    def _is_divided(self, loop: Loop) -> bool:
        """Whether no two iterations touch the same place, of what has adjoints, and one of them writes it."""
        reversed_ = [a for a in self._recipes.memory.inside(loop) if self._facts.has_adjoint(a.instruction)]
        written = [a for a in reversed_ if a.writes]
        plain = [isinstance(i := a.instruction, I.Load | I.Store) and I.is_plain(i) for a in reversed_]
        if len(reversed_) * len(written) > _MANY_PAIRS or not all(plain):
            return False
        read = [a for a in reversed_ if not a.writes]
        pairs = [(a, b) for a in read for b in written] + list(combinations_with_replacement(written, 2))
        return all(self._never_meet(a, b, loop) for a, b in pairs)

    def _never_meet(self, one: Access, other: Access, loop: Loop) -> bool:
        apart = one.pointer is not other.pointer and self._recipes.alias.never_meet(one, other, loop)
        return apart or self._recipes.alias.later.are_divided(one, other, loop)
