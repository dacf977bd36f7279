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
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import is_memory_free
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value

_SHORT = 256
"""Nests of fewer iterations, inside of a loop that is not turned, stay as they are."""
_MANY_PAIRS = 256
"""So many pairs of accesses, one of which writes, are looked at in a loop."""


def turned_loops(recipes: Recipes, facts: Facts) -> dict[Loop, int]:
    """The loops of a function that are turned, with the number of the last iteration of each."""
    if recipes.execution is not ALONE or not recipes.choices.turned_loops or facts.activity.halves:
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
            if value in _phis(loop) or not all(self._is_in(user, loop) for user in self._readers(value)):
                return False
        return self._is_divided(loop)

    def _summed(self, loop: Loop) -> set[Value]:
        """What is made, in a loop, of sums that go around it, by adding to them, and for nothing else: behind the loop,
        only what they come to is read."""
        found: set[Value] = set()
        for phi in _phis(loop):
            if not T.is_float(phi.type) or not self._facts.has_adjoint(phi):
                continue
            web = self._web(phi, loop)
            (last,) = (value for value, block in phi.incoming if block in loop.blocks)
            inside = all(part is last or all(self._is_in(u, loop) for u in self._readers(part)) for part in web)
            alone = all(other is phi or other not in web for other in _phis(loop))
            if inside and alone and last in web and all(part is phi or self._only_adds(part, web) for part in web):
                found |= web
        return found

    def _web(self, start: Value, loop: Loop) -> set[Value]:
        """What a value goes into, in a loop."""
        return set(reached([start], lambda part: [u for u in self._readers(part) if self._is_in(u, loop)]))

    def _readers(self, value: Value) -> list[I.Instruction]:
        return [user for user, _ in self._users.get(value, ())]

    def _is_in(self, user: I.Instruction, loop: Loop) -> bool:
        return self._recipes.block_of[user] in loop.blocks

    def _only_adds(self, part: Value, web: set[Value]) -> bool:
        """Whether a part of a sum is one of its other parts, or one of them with something added that is none."""
        match part:
            case I.Phi():
                return all(value in web for value in part.operands)
            case I.Select():
                return all(value in web for value in part.operands[1:])
            case I.BinaryOp():
                adds = part.opcode == "fadd" or (part.opcode == "fsub" and part.operands[0] in web)
                return adds and sum(v in web for v in part.operands) == 1
            case I.Call() if callee_name(part).startswith(("llvm.fmuladd.", "llvm.fma.")):
                first, second, last = part.arguments
                return last in web and first not in web and second not in web
            case _:
                return False

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
        apart = one is not other and self._recipes.unwritten.are_apart(one, other, loop)
        return apart or self._recipes.later_writes.are_divided(one, other, loop)


def _phis(loop: Loop) -> list[I.Phi]:
    return [i for i in loop.header.instructions if isinstance(i, I.Phi)]
