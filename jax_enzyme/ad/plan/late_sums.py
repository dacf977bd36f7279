"""Loads whose adjoints are added to memory after their loop instead of in it, so that the loop can be vectorised.

    forward   for i: y[i] = f(x[i-1], x[i], x[i+1])

    reverse   for i: x_[i-1] += a; x_[i] += b; x_[i+1] += c       each addition waits for that of the iteration before
    so        for i: x_[i-1] += a; B[i] = b; C[i] = c             and no two iterations touch the same place
              for i: x_[i] += B[i]
              for i: x_[i+1] += C[i]

The order of additions to an adjoint is ours to choose, if nothing else happens to it in between: nothing in the loop
writes what is loaded. `B` and `C` are local memory, small enough for the nearest cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.accesses import Access, accesses
from jax_enzyme.analysis.apart import Apart
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial, TooComplex
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.marks import marks_of
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.carried_loads import LENGTHS

_BUFFERS = 1 << 18
"""Bytes of local memory, of all loops of a function together."""
_NEAR = 4096
"""Places at so small a distance that LLVM's vectoriser sees a store that the next load must wait for."""


@dataclass(frozen=True)
class LateSum:
    """The loop at whose end a load's adjoints are added, its iterations, and the bytes from one place to the next."""

    loop: Loop
    count: int
    step: int


@dataclass(frozen=True)
class _Stream:
    """Loads of consecutive numbers: `place` is where the first one lies, without constants."""

    load: I.Load
    place: frozenset[tuple[object, int]]
    offset: int
    step: int


def late_sums(recipes: Recipes, facts: Facts, inert: Collection[Loop]) -> dict[I.Instruction, LateSum]:
    """The loads of a function whose adjoints wait; `inert` are the loops that have no reverse."""
    if recipes.execution is not ALONE:
        return {}
    found: dict[I.Instruction, LateSum] = {}
    room = _BUFFERS
    written: list[Access] | None = None
    for loop in recipes.code.loops:
        count = None if loop.children or loop in inert else _count(recipes, loop)
        if count is None or any(marks_of(facts.module, latch) for latch in _latches(loop)):
            continue
        waiting = _waiting(_streams(recipes, facts, loop), count)
        if not waiting:
            continue
        if written is None:
            layout = recipes.layout
            written = [a for a in accesses(recipes.points_to, recipes.code.function, layout) if a.writes]
        for stream in waiting:
            size = count * abs(stream.step)
            if size <= room and not _is_written(recipes, loop, stream.load.operands[0], written):
                found[stream.load] = LateSum(loop, count, stream.step)
                room -= size
    return found


def _count(recipes: Recipes, loop: Loop) -> int | None:
    """The iterations of a loop with one latch, at which alone it is left, where they are few enough to wait."""
    if len(loop.latches) != 1 or loop.exiting != loop.latches or loop.preheader is None:
        return None
    repeats = recipes.recurrences.repeats(loop)
    return repeats + 1 if repeats is not None and repeats + 1 in LENGTHS else None


def _latches(loop: Loop) -> list[I.Instruction]:
    return [latch.terminator for around in loop.ancestors for latch in around.latches]


def _streams(recipes: Recipes, facts: Facts, loop: Loop) -> list[_Stream]:
    """The loads of a loop with adjoints, in all its iterations, of numbers that lie side by side."""
    recurrences = recipes.recurrences
    found: list[_Stream] = []
    for block in loop.blocks:
        if not recurrences.once_per_iteration(block, loop):
            continue
        for load in block.instructions:
            if not isinstance(load, I.Load) or not isinstance(load.type, T.FloatType) or load.ordering:
                continue
            if "volatile" in load.flags or not facts.has_adjoint(load):
                continue
            try:
                place = recurrences.form_at(load.operands[0], block).polynomial
                first, *steps = place.coefficients(recurrences.iteration(loop))
            except TooComplex:
                continue
            step = steps[0].value if len(steps) == 1 else None
            if step is None or abs(step) != recipes.layout.store_size(load.type):
                continue
            if recurrences.is_invariant(first, loop):
                rest = first - Polynomial.constant(first.constant_term)
                found.append(_Stream(load, frozenset(rest.terms.items()), first.constant_term, step))
    return sorted(found, key=lambda s: s.offset)


def _waiting(streams: Sequence[_Stream], count: int) -> list[_Stream]:
    """All but one of those that come to the same places, or to near ones."""
    kept: list[_Stream] = []
    waiting: list[_Stream] = []
    for stream in streams:
        reach = max(count * abs(stream.step), _NEAR)
        meets = any(k.place == stream.place and 0 < stream.offset - k.offset < reach for k in kept)
        (waiting if meets else kept).append(stream)
    return waiting


def _is_written(recipes: Recipes, loop: Loop, pointer: Value, written: Sequence[Access]) -> bool:
    """Whether anything in a loop may write what is loaded there."""
    block_of = recipes.recurrences.block_of
    apart = Apart(recipes.points_to, block_of)
    for access in written:
        if block_of.get(access.instruction) not in loop.blocks or apart.always(access.pointer, pointer):
            continue
        bases = I.base_of(access.pointer), I.base_of(pointer)
        if any(block_of.get(base) in loop.blocks for base in bases) or not apart.together(*bases):
            return True
    return False
