"""Which buffers a thread has places in that no other thread touches: cotangents there need no atomic addition.

Every access of the buffer that the reverse sweep reverses has an address of the form

    constant + f(x) + g(y) + h(z) + c1 k1 + c2 k2 + ...

    x, y, z    the numbers of the thread along an axis, in its block and of its block: the launch says which there are,
               and conditions in front of the access which of them come to it. `f` is tabulated: of `i`, `(i + 1) % n`
    k          iteration numbers, each with a known range

Take the terms by the least distance of two of their numbers, the smallest first. If that is never less than what the
terms before it (and the access itself) span, the address determines all the numbers, as digits do. If every axis along
which threads differ is among them, no two threads have an address in common. Accesses whose terms are the same differ
in the constant: those which lie so close that the next term steps over all of them count as one, others have to stay
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from jax_enzyme.ad.device.axes import Axes, Digit, Terms
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.signature.launch import Shape

_AS_A_WHOLE = (Effect.MEMORY_COPY, Effect.MEMORY_SET)


@dataclass(frozen=True, eq=False)
class _Places:
    """The addresses of one access, in a block of code: `first` and `last` byte where all numbers are 0, what depends on
    each axis, and of loops the factor and how many values it multiplies."""

    first: int
    last: int
    block: BasicBlock
    axes: tuple[tuple[str, Terms], ...]
    loops: tuple[tuple[int, int], ...]


class Ownership:
    """The facts about one function."""

    def __init__(self, facts: Facts, recurrences: Recurrences, shape: Shape) -> None:
        self._facts = facts
        self._recurrences = recurrences
        self._layout = DataLayout(facts.module)
        self._axes = Axes(shape, recurrences)

    def is_owned(self, item: MemoryObject) -> bool:
        """Whether each place of an object that is touched at all is touched by one thread alone."""
        return self.hindrance(item) is None

    @remembered
    def is_touched_once(self, item: MemoryObject, how: type[I.Load | I.Store]) -> bool:
        """Whether each place of an object is loaded (or stored to) once at most, by all threads together, and not
        touched else."""
        if not self.is_owned(item):
            return False
        places: list[_Places] = []
        for instruction, pointer, size in self._accesses(item):
            found = None if size is None or item.site is None else self._places(instruction, pointer, size, item.site)
            if found is None or not isinstance(instruction, how):
                return False
            loop = self._recurrences.loops.loop_of[self._recurrences.block_of[instruction]]
            if len({factor for factor, _ in found.loops}) != (0 if loop is None else loop.depth):
                return False  # a loop comes back to one place
            places.append(found)
        ends = sorted((p.first, p.last) for p in places)
        return self._overlap(places, exact=True) is None and all(a[1] < b[0] for a, b in pairwise(ends))

    @remembered
    def hindrance(self, item: MemoryObject) -> str | None:
        """Why several threads may touch one place of an object; None where they certainly do not."""
        if item.kind != "buffer" or not isinstance(item.site, Argument):
            return "it is memory of a block"
        places: list[_Places] = []
        for instruction, pointer, size in self._accesses(item):
            if size is None:
                return "it is read or written atomically, or as a whole"
            if len(self._facts.points_to.of(pointer)) != 1:
                return "a pointer may lead to it or elsewhere"
            found = self._places(instruction, pointer, size, item.site)
            if found is None:
                return "an index is data, or not linear in the thread's number"
            places.append(found)
        return self._overlap(places)

    def _accesses(self, item: MemoryObject) -> Iterator[tuple[I.Instruction, Value, int | None]]:
        for instruction in self._facts.points_to.root.instructions():
            accessed = I.accessed(instruction)
            if accessed is not None:
                pointer, type_ = accessed
                if item in self._facts.points_to.of(pointer) and self._facts.has_adjoint(instruction):
                    plain = isinstance(instruction, I.Load | I.Store)
                    yield instruction, pointer, self._layout.store_size(type_) if plain else None
            elif isinstance(instruction, I.CallBase) and call_effect(instruction) in _AS_A_WHOLE:
                yield from (
                    (instruction, o, None) for o in instruction.operands[:2] if item in self._facts.points_to.of(o)
                )

    def _places(self, instruction: I.Instruction, pointer: Value, size: int, site: Value) -> _Places | None:
        polynomial = self._recurrences.form(pointer).polynomial - Polynomial.atom(Leaf(site))
        factors = polynomial.linear
        if factors is None:
            return None
        axes: dict[str, list[tuple[int, Value]]] = {}
        loops: list[tuple[int, int]] = []
        start = polynomial.constant_term
        for atom in polynomial.atoms:
            if isinstance(atom, Iteration):
                limits = self._recurrences.interval(Polynomial.atom(atom))
                if limits.low < 0:
                    return None
                start += min(factors[atom] * limits.high, 0)  # a loop that counts down comes to what one up does
                loops.append((abs(factors[atom]), limits.high + 1))
            else:
                axis = self._axes.of(atom.value)
                if axis is None:
                    return None
                axes.setdefault(axis, []).append((factors[atom], atom.value))
        block = self._recurrences.block_of[instruction]
        terms = tuple((axis, tuple(found)) for axis, found in sorted(axes.items()))
        return _Places(start, start + size - 1, block, terms, tuple(loops))

    def _overlap(self, places: list[_Places], *, exact: bool = False) -> str | None:
        """Why threads share some places; with `exact`, also where a loop comes to one place again."""
        groups: dict[object, list[_Places]] = {}
        for found in places:
            groups.setdefault(found.axes, []).append(found)
        spans: list[tuple[int, int]] = []
        for group in groups.values():
            found = self._span(group, exact)
            if isinstance(found, str):
                return found
            spans += found
        if any(before[1] >= after[0] for before, after in pairwise(sorted(spans))):
            return "accesses depend on the thread's number in different ways"
        return None

    def _span(self, group: list[_Places], exact: bool) -> list[tuple[int, int]] | str:
        """The bytes that accesses of the same terms touch, in parts that are apart; or why threads share some."""
        if not self._axes.needed <= {axis for axis, _ in group[0].axes}:
            return "the address is the same for threads that differ"
        digits: list[Digit] = []
        for axis, terms in group[0].axes:
            found = self._axes.digits(axis, terms, [p.block for p in group])
            if found is None:
                return "the address is the same for threads that differ"
            digits += found
        digits += _loop_digits(group)
        spans = sorted({(p.first, p.last) for p in group})
        is_exact = exact
        for digit in sorted(digits, key=lambda d: d.rank):
            spans, more = (spans, 0) if exact or digit.is_axis else _in_one_step(spans, digit.gap)
            near: list[tuple[int, int]] = []
            for first, last in spans:
                if near and max(last, near[-1][1]) - near[-1][0] < digit.gap:
                    near[-1] = near[-1][0], max(last, near[-1][1])
                else:
                    near.append((first, last))
            is_exact |= digit.is_axis
            if is_exact and any(last - first >= digit.gap for first, last in near):
                return "the places of neighbouring threads overlap"
            spans = [(first + digit.low, last + digit.high + more) for first, last in near]
            if is_exact and any(before[1] >= after[0] for before, after in pairwise(spans)):
                return "the places of neighbouring threads overlap"
        return spans


def _in_one_step(spans: list[tuple[int, int]], gap: int) -> tuple[list[tuple[int, int]], int]:
    """Parts that lie steps of a loop apart, as those of `u[i]` and `u[i - n]` where `i` grows by `n`, as one that the
    loop begins with, and how much further it goes; as they are, where they do not fit into one step so."""
    start = spans[0][0]
    steps = [(first - start) // gap for first, _ in spans]
    moved = sorted({(f - n * gap, t - n * gap) for (f, t), n in zip(spans, steps, strict=True)})
    fits = moved[-1][1] - start < gap and all(a[1] < b[0] for a, b in pairwise(moved))
    return (moved, max(steps) * gap) if fits else (spans, 0)


def _loop_digits(group: Iterable[_Places]) -> Iterator[Digit]:
    """Loops with one factor are one term, whose numbers are their sums."""
    longest: dict[int, int] = {}
    for found in group:
        own: dict[int, int] = {}
        for factor, count in found.loops:
            own[factor] = own.get(factor, 0) + count - 1
        for factor, last in own.items():
            longest[factor] = max(last, longest.get(factor, 0))
    for factor, last in longest.items():
        yield Digit(factor, False, 0, factor * last)
