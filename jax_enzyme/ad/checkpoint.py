"""Checkpointing: which loop is cut into segments, and what is kept of the state at the start of each.

A loop of n iterations is cut into segments of m iterations. The forward sweep keeps the memory that a segment
changes, as it was at the segment's start, and runs the segment untaped. The reverse sweep puts that memory back, runs
the segment again, taping, reverses it, and frees the tape: every iteration is computed twice, and memory is

    n / m x (bytes of state) + m x (bytes of tape per iteration),

least for m = sqrt(n x state / tape per iteration): O(sqrt n) (Griewank and Walther 2008, section 12.3, with two
levels).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from jax_enzyme.ad.outline import can_be_outlined, is_segment, outline
from jax_enzyme.ad.recipes import Recipes
from jax_enzyme.ad.reversal import Reversal
from jax_enzyme.ad.tape import Tape
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import MemoryObject, reachable_objects
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.values import Argument

_FEWEST = 4


@dataclass(frozen=True)
class Cut:
    """Loop number `header` (by block) of `iterations`, to be cut into segments of `length`."""

    header: int
    iterations: int
    length: int


def choose(reversal: Reversal, length: int | None) -> Cut | None:
    """The loop to cut: of those that can be, the one that tapes most. None where there is none worth it."""
    root = reversal.root
    best: tuple[int, Loop, int] | None = None
    for loop in root.code.loops:
        count = root.plan.recipes.recurrences.trip_count(loop).exact
        if not can_be_outlined(loop) or count is None or count.value is None or count.value + 1 < _FEWEST:
            continue
        size = taped_bytes(root.plan.tape, loop)
        if size and (best is None or size > best[0]):
            best = size, loop, count.value + 1
    if best is None:
        return None
    size, loop, iterations = best
    header = _header_number(reversal, loop)
    if length is None:
        state = max(state_bytes(reversal, loop), 1)
        length = isqrt(iterations * state * iterations // size) or 1
    return Cut(header, iterations, max(1, min(length, iterations)))


def cut(base: ArrayFunction, where: Cut) -> ArrayFunction:
    """The array function with a loop cut."""
    return outline(base, where.header, where.iterations, where.length)


def taped_bytes(tape: Tape, loop: Loop) -> int:
    """What a loop's iterations put on the tape, in the frame around it; a guess for nodes."""
    total = 0
    for slot in tape.slots.values():
        if any(x is loop for x, _ in slot.loops):
            count = slot.step
            for _, bound in slot.loops:
                count *= bound
            total += count
    return total


def state_bytes(reversal: Reversal, loop: Loop) -> int:
    """The size of the memory that a loop writes."""
    recipes = reversal.root.plan.recipes
    objects: set[MemoryObject] = set()
    for block in loop.blocks:
        for instruction in block.instructions:
            if isinstance(instruction, I.Store):
                objects |= reversal.facts.points_to.of(instruction.operands[1])
    phis = sum(8 for i in loop.header.instructions if isinstance(i, I.Phi))
    return phis + sum(object_bytes(reversal, recipes, o) or 0 for o in objects)


def object_bytes(reversal: Reversal, recipes: Recipes, item: MemoryObject) -> int | None:
    """The size of an object that exists once per call."""
    if item.kind == "buffer":
        assert isinstance(item.site, Argument)
        return reversal.base.buffers[item.site.index].nbytes
    return recipes.object_size(item)


def _header_number(reversal: Reversal, loop: Loop) -> int:
    """The number of the loop's header among the blocks of the base's function, which instrumenting keeps apart from
    blocks that cannot be reached."""
    source = reversal.originals[reversal.root.function]
    first = next(i for i in loop.header.instructions if i in reversal.facts.origin)
    wanted = reversal.facts.origin[first]
    return next(n for n, b in enumerate(source.blocks) if any(i is wanted for i in b.instructions))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is kept for one segment: offsets of the arguments and of their shadows, of the objects, and, for objects
    that hold pointers, of their shadows."""

    arguments: tuple[int, ...]
    shadows: tuple[int, ...]
    objects: tuple[tuple[MemoryObject, int, int], ...]
    shadow_objects: tuple[tuple[MemoryObject, int, int], ...]
    size: int


def snapshot(reversal: Reversal, call: I.CallBase, shadow_count: int) -> Snapshot:
    """Lays out the snapshot of a segment's call. Raises DifferentiationError where the state has no fixed size."""
    assert is_segment(call.callee)
    recipes = reversal.root.plan.recipes
    facts = reversal.facts
    offset = 0

    def place(size: int) -> int:
        nonlocal offset
        start = offset
        offset += -(-size // 16) * 16
        return start

    arguments = tuple(place(8) for _ in call.arguments)
    shadows = tuple(place(8) for _ in range(shadow_count))
    objects: list[tuple[MemoryObject, int, int]] = []
    pointers: list[tuple[MemoryObject, int, int]] = []
    for item in sorted(
        reachable_objects(facts.points_to, call), key=lambda o: o.site.name if o.site is not None else ""
    ):
        if item.kind == "global" or recipes.is_unchanged(call, item):
            continue
        size = object_bytes(reversal, recipes, item)
        if size is None:
            raise DifferentiationError(
                f"the state of the loop that is to be checkpointed has no fixed size ({item})",
                remedy="allocate its memory once, in front of the loop, or give checkpoint=False",
            )
        objects.append((item, place(size), size))
        if facts.points_to.contents[item] and item in facts.shadowed:
            if reversal.kinds.of(item):
                raise DifferentiationError(
                    f"the state of the loop that is to be checkpointed mixes pointers and numbers ({item})",
                    remedy="keep them apart, or give checkpoint=False",
                )
            pointers.append((item, place(size), size))
    return Snapshot(arguments, shadows, tuple(objects), tuple(pointers), offset)
