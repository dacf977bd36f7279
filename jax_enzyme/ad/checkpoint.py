"""Checkpointing: which loops are cut into segments, and how long those are.

A loop of n iterations is cut into segments of m iterations. The forward sweep keeps the memory that a segment
changes, as it was at the segment's start, and runs the segment untaped. The reverse sweep puts that memory back, runs
the segment again, taping, reverses it, and frees the tape: every iteration is computed twice, and memory is

    n / m x (bytes of state) + m x (bytes of tape per iteration),

least for m = sqrt(n x state / tape per iteration): O(sqrt n) (Griewank and Walther 2008, section 12.3, with two
levels). Where n or the sizes are known only at run time, `ad.emit.segments` finds m as the loop goes.

Loops are compared by what cutting them saves, with guesses for what is not known. Of loops inside one another one is
cut; loops that follow one another can all be.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

from jax_enzyme.ad.emit.segments import Schedule
from jax_enzyme.ad.facts.causes import NO_LOOP
from jax_enzyme.ad.facts.hindrances import RECURSIVE, Hindrance
from jax_enzyme.ad.plan.outline import Outlined, hindrance, outline
from jax_enzyme.ad.plan.state import StateError, object_bytes
from jax_enzyme.ad.plan.tape import Slot, Tape
from jax_enzyme.ad.reversal import Cut, Reversal, plan_reversal
from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import MemoryObject, called_routine, is_defined_call
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.debug import location

_FEWEST = 4
_MANY = 4096
"""The guess for the number of iterations of a loop that might be worth cutting."""
_SOME = 64
"""The guess for loops around it and inside it."""
_GUESSED_STATE = 4096


@dataclass(frozen=True, eq=False)
class Candidate:
    """A loop that can be cut: `count` is its number of iterations where that is known, `state` what it changes and
    `tape` what an iteration tapes, in bytes; `exact` says that neither is a guess. `runs` is how often the loop
    runs."""

    loop: Loop
    count: int | None
    state: int
    tape: int
    runs: int
    exact: bool

    @property
    def saving(self) -> int:
        """The bytes that cutting the loop saves."""
        count = self.count or _MANY
        return self.runs * (count * self.tape - 2 * isqrt(count * self.tape * self.state))

    def schedule(self, option: str | int | None) -> Schedule:
        if type(option) is int:
            return Schedule(min(option, self.count or option))
        if option == "log" or self.count is None or not self.exact:
            return Schedule(None, halves=option == "log")
        return Schedule(
            max(1, min(self.count, isqrt(self.count * self.state * self.count // (self.count * self.tape))))
        )


def checkpointed(reversal: Reversal, option: str | int | None) -> Reversal:
    """The reversal with loops cut: "sqrt" and "log" as the options have them, a number of iterations, or None, which
    cuts only where that saves something.

    Raises DifferentiationError where no loop can be cut; where one is asked for, also if the best cannot.
    """
    found, hindrances = candidates(reversal)
    if option is None:
        found = [c for c in found if c.saving > 0]
    chosen = _apart(found)
    while chosen:
        base, names = _outlined(reversal.base, tuple(_header_number(reversal, c.loop) for c in chosen))
        cuts = tuple(Cut(n, c.schedule(option)) for n, c in zip(names, chosen, strict=True))
        try:
            return plan_reversal(base, reversal.step, reversal.facts.rules, cuts, choices=reversal.choices)
        except StateError as error:
            failed = next(c for n, c in zip(names, chosen, strict=True) if n.loop == error.loop)
            if failed is chosen[0] and len(chosen) > 1:
                chosen = chosen[:1]  # what is cut besides may be in its way: a loop that frees its memory, say
                continue
            if option is not None and failed is found[0]:
                raise
            found.remove(failed)
            chosen = _apart(found)
    raise _nothing([*hindrances, *_inside_recursion(reversal)])


def _nothing(hindrances: list[tuple[str | None, Hindrance]]) -> DifferentiationError:
    if not hindrances:
        return NO_LOOP.error()
    place, why = hindrances[0]
    return why.error(place)


def _inside_recursion(reversal: Reversal) -> list[tuple[str | None, Hindrance]]:
    """Loops that are not looked at, since each call would have its own states."""
    loops = [x for r in reversal.inner.values() for x in r.code.loops if taped_bytes(r.plan.tape, x)]
    return [(_place(reversal, x), RECURSIVE) for x in loops]


def candidates(reversal: Reversal) -> tuple[list[Candidate], list[tuple[str | None, Hindrance]]]:
    """The loops that can be cut, the most worthwhile first, and why others cannot, with their places."""
    root = reversal.root
    found: list[Candidate] = []
    hindrances: list[tuple[str | None, Hindrance]] = []
    for loop in root.code.loops:
        repeats = root.plan.recipes.recurrences.repeats(loop)
        known = None if repeats is None else repeats + 1
        tape = taped_bytes(root.plan.tape, loop)
        if not tape or (known is not None and known < _FEWEST):
            continue
        why = hindrance(root.function, root.code.cfg, loop)
        if why is not None:
            hindrances.append((_place(reversal, loop), why))
            continue
        state, exact = state_bytes(reversal, loop)
        exact = exact and _is_static(reversal, loop)
        runs = 1
        for around in list(loop.ancestors)[1:]:
            runs *= root.plan.tape.bound(around) or _SOME
        found.append(Candidate(loop, known, max(state, 1), tape, runs, exact))
    found.sort(key=lambda c: -c.saving)
    return found, hindrances


def _apart(found: list[Candidate]) -> list[Candidate]:
    """The best candidate, and others that save something, none inside another."""
    chosen: list[Candidate] = []
    for candidate in found:
        overlaps = any(c.loop.blocks & candidate.loop.blocks for c in chosen)
        if not overlaps and (not chosen or candidate.saving > 0):
            chosen.append(candidate)
    return chosen


@lru_cache(maxsize=4)
def _outlined(base: ArrayFunction, headers: tuple[int, ...]) -> tuple[ArrayFunction, tuple[Outlined, ...]]:
    return outline(base, headers)


def taped_bytes(tape: Tape, loop: Loop) -> int:
    """What one iteration of a loop puts on the tape, with guesses where loops have no bound."""
    total = 0
    for slot in dict.fromkeys(tape.slots.values()):
        around = _loops_of(slot)
        if loop in around:
            count = slot.step
            for inner in around[around.index(loop) + 1 :]:
                count *= tape.bound(inner) or _SOME
            total += count
    return total


def _loops_of(slot: Slot) -> list[Loop]:
    """The loops that a slot is kept for, outermost first."""
    frame = slot.frame.loop
    nodes = list(reversed(list(frame.ancestors))) if frame is not None else []
    return [*nodes, *(loop for loop, _ in slot.loops)]


def state_bytes(reversal: Reversal, loop: Loop) -> tuple[int, bool]:
    """The size of the memory that a loop writes, and whether that is no guess."""
    recipes, points_to = reversal.root.plan.recipes, reversal.facts.points_to
    written: set[MemoryObject] = set()
    for access in accesses(points_to, reversal.root.function, recipes.layout):
        if access.writes and recipes.block_of[access.instruction] in loop.blocks:
            written |= access.objects
    total = sum(8 for i in loop.header.instructions if isinstance(i, I.Phi))
    exact = True
    for item in written:
        size = object_bytes(reversal.base, recipes, item)
        inside = item.site in recipes.block_of and recipes.block_of[item.site] in loop.blocks
        if size is None and not inside:
            exact = False
            size = _GUESSED_STATE
        total += size or 0
    return total, exact


def _is_static(reversal: Reversal, loop: Loop) -> bool:
    """Whether the tape of an iteration has a known size: no calls that make frames, no loop without a bound inside."""
    calls = (i for b in loop.blocks for i in b.instructions if isinstance(i, I.CallBase))
    framed = any(is_defined_call(c) or called_routine(c) is not None for c in calls)
    inner = (x for x in reversal.root.plan.tape.frames if x is not loop and loop.encloses(x))
    allocates = any(v in reversal.facts.dynamic for b in loop.blocks for v in b.instructions)
    return not framed and not allocates and not any(inner)


def _place(reversal: Reversal, loop: Loop) -> str | None:
    origin = reversal.facts.origin
    places = (location(reversal.facts.module, origin.get(i, i)) for b in loop.blocks for i in b.instructions)
    return next((p for p in places if p is not None), None)


def _header_number(reversal: Reversal, loop: Loop) -> int:
    """The number of the loop's header among the blocks of the base's function, which instrumenting keeps apart from
    blocks that cannot be reached."""
    source = reversal.originals[reversal.root.function]
    first = next(i for i in loop.header.instructions if i in reversal.facts.origin)
    original = reversal.facts.origin[first]
    return next(n for n, b in enumerate(source.blocks) if any(i is original for i in b.instructions))
