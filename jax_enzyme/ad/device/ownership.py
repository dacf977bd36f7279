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
apart, as each thread's do where an axis is gone through number by number.

What some terms come to together may have narrower bounds than each of them: `for (i = threadIdx.x; i < n; i += 96)`
goes to `n - 1`, whatever the last of its iterations could reach. An index that the address is made from says that.

In memory of a block, loads between the same two barriers alone may meet: if each place is loaded there by one thread of
the block, what their reverses add to it needs no atomic addition either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import gcd

from jax_enzyme.ad.device.axes import Axes, Digit, Terms
from jax_enzyme.ad.device.intervals import Intervals
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.polynomials import Atom, Iteration, Leaf, Polynomial
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reach import Reached, made_of
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.signature.launch import Shape

_AS_A_WHOLE = (Effect.MEMORY_COPY, Effect.MEMORY_SET)
_Access = tuple[I.Instruction, Value, int | None]
"""What accesses memory, where, and how many bytes; None of what does it atomically, or as a whole."""
_ANYWHERE = (-(1 << 62), 1 << 62)
_MOST_INDICES = 60
"""Of an address that is made of more numbers, not all are asked how far they go."""


@dataclass(frozen=True, eq=False)
class _Places:
    """The addresses of one access, in a block of code: `first` and `last` byte where all numbers are 0, what depends on
    each axis, and of loops the factor and how many values it multiplies."""

    first: int
    last: int
    block: BasicBlock
    axes: tuple[tuple[str, Terms], ...]
    loops: tuple[tuple[int, int], ...]
    factors: dict[Atom, int]
    pointer: Value


@dataclass(frozen=True, eq=False)
class _Part:
    """The first and last byte of what some accesses touch by the terms that have been looked at."""

    first: int
    last: int
    members: tuple[_Places, ...]


class Ownership:
    """The facts about one function; with `of_block`, of what the threads of one block do alone."""

    def __init__(self, facts: Facts, recurrences: Recurrences, shape: Shape, of_block: bool = False) -> None:
        self._facts = facts
        self._recurrences = recurrences
        self._layout = DataLayout(facts.module)
        self._axes = Axes(shape, recurrences, of_block)
        self._intervals = Intervals(recurrences.cfg)

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
        return self._hindrance(item, item.site, self._accesses(item))

    def is_loaded_by_one(self, load: I.Load) -> bool:
        """Whether a load is of a variable of the block, each place of which one thread loads between two barriers."""
        objects = self._facts.points_to.of(load.operands[0])
        return len(objects) == 1 and self._is_loaded_by_one(next(iter(objects)), self._intervals.of(load))

    @remembered
    def _is_loaded_by_one(self, item: MemoryObject, interval: int) -> bool:
        if not isinstance(item.site, GlobalVariable):
            return False
        # What one thread stores no other one touches before the next barrier.
        found = (a for a in self._accesses(item) if not isinstance(a[0], I.Store))
        return self._hindrance(item, item.site, (a for a in found if self._intervals.of(a[0]) == interval)) is None

    def _hindrance(self, item: MemoryObject, site: Value, accesses: Iterable[_Access]) -> str | None:
        places: list[_Places] = []
        for instruction, pointer, size in accesses:
            if size is None:
                return "it is read or written atomically, or as a whole"
            if len(self._facts.points_to.of(pointer)) != 1:
                return "a pointer may lead to it or elsewhere"
            found = self._places(instruction, pointer, size, site)
            if found is None:
                return "an index is data, or not linear in the thread's number"
            places.append(found)
        return self._overlap(places)

    def _accesses(self, item: MemoryObject) -> Iterator[_Access]:
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
        return _Places(start, start + size - 1, block, terms, tuple(loops), factors, pointer)

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
        why = "the address is the same for threads that differ"
        for tabulated in (True, False):  # an axis as a whole; its blocks, and the threads in them
            axes = [self._axes.digits(axis, t, [p.block for p in group], tabulated) for axis, t in group[0].axes]
            digits = [digit for of_axis in axes if of_axis is not None for digit in of_axis]
            found = None if None in axes else self._in_steps(group, [*digits, *_loop_digits(group)], exact)
            if found is not None:
                return found
            why = why if None in axes else "the places of neighbouring threads overlap"
        return why

    def _in_steps(self, group: list[_Places], digits: list[Digit], exact: bool) -> list[tuple[int, int]] | None:
        """The same, by one term after the other; None where threads share some."""
        parts = _joined([_Part(p.first, p.last, (p,)) for p in group], 0)
        is_exact, seen = exact, list[Digit]()
        for digit in sorted(digits, key=lambda d: d.rank):
            parts, more = (parts, 0) if exact or digit.is_axis else _in_one_step(parts, digit.gap)
            near = _joined(parts, digit.gap)
            is_exact |= digit.is_axis
            seen.append(digit)
            parts = [_Part(p.first + digit.low, p.last + digit.high + more, p.members) for p in near]
            if is_exact and (any(p.last - p.first >= digit.gap for p in near) or _meet(parts)):
                apart = self._apart(near, digit, exact)
                if apart is None:
                    return None
                parts = [apart]
            parts = [self._narrowed(part, seen) for part in parts]
        return [(p.first, p.last) for p in parts]

    def _apart(self, parts: list[_Part], digit: Digit, exact: bool) -> _Part | None:
        """All that is touched, as one part, where threads stay apart number by number."""
        members = tuple(m for p in parts for m in p.members)
        terms = dict(members[0].axes).get(digit.axis)
        if terms is None:
            return None
        hull = self._axes.apart(
            digit.axis, terms, [(p.first, p.last, [m.block for m in p.members]) for p in parts], exact
        )
        return None if hull is None else _Part(*hull, members)

    def _narrowed(self, part: _Part, seen: list[Digit]) -> _Part:
        """A part, as far as its accesses go by what is known of the sum of the terms that have been looked at."""
        ends = [self._reach(member, seen) for member in part.members]
        first, last = min(low for low, _ in ends), max(high for _, high in ends)
        narrow = max(first, part.first), min(last, part.last)
        return _Part(*narrow, part.members) if narrow[0] <= narrow[1] else part

    def _reach(self, place: _Places, seen: list[Digit]) -> tuple[int, int]:
        """How far an access goes by the terms that have been looked at, where an index that is made of no others says
        so."""
        steps = {digit.gap for digit in seen if not digit.is_axis}
        of_axes = frozenset[Value]().union(*(digit.values for digit in seen))
        sum_: dict[Atom, int] = {}
        for atom, factor in place.factors.items():
            if isinstance(atom, Iteration) and factor < 0:
                return _ANYWHERE  # `first` is where it ends
            if abs(factor) in steps if isinstance(atom, Iteration) else atom.value in of_axes:
                sum_[atom] = factor
        common = gcd(*sum_.values())
        limits = self._limits(place.pointer, place.block).get(_of_one(sum_, common))
        if limits is None:
            return _ANYWHERE
        return place.first + common * limits.low, place.last + common * limits.high

    @remembered
    def _limits(self, pointer: Value, block: BasicBlock) -> dict[frozenset[tuple[Atom, int]], Interval]:
        """What sums of terms that an address is made from come to in a block of code, by the ranges of indices: of
        `8 t + 768 k` what is known of `t + 96 k`."""
        known: dict[frozenset[tuple[Atom, int]], Interval] = {}
        found = Reached([pointer])
        for value in found:
            if isinstance(value, I.GetElementPtr | I.BinaryOp | I.Cast) and len(found) <= _MOST_INDICES:
                found.add(made_of(value))
            bits = self._recurrences.bits(value.type)
            if bits is None or not isinstance(value.type, T.IntType):
                continue
            form = self._recurrences.form_at(value, block)
            factors = form.polynomial.linear
            if not factors or not self._recurrences.is_signed(form, bits):
                continue
            common, constant = gcd(*factors.values()), form.polynomial.constant_term
            limits = self._recurrences.range_at(value, block)
            limits = Interval(-((constant - limits.low) // common), (limits.high - constant) // common)
            sum_ = _of_one(factors, common)
            known[sum_] = known[sum_].meet(limits) if sum_ in known else limits
        return known


def _of_one(factors: dict[Atom, int], common: int) -> frozenset[tuple[Atom, int]]:
    """A sum of terms without what its factors have in common."""
    return frozenset((atom, factor // common) for atom, factor in factors.items())


def _joined(parts: Iterable[_Part], gap: int) -> list[_Part]:
    """The parts in order, those as one that lie within a gap together, or are the same."""
    near: list[_Part] = []
    for part in sorted(parts, key=lambda p: (p.first, p.last)):
        before = near[-1] if near else None
        if before is not None and (
            max(part.last, before.last) - before.first < gap or (part.first, part.last) == (before.first, before.last)
        ):
            near[-1] = _Part(before.first, max(part.last, before.last), before.members + part.members)
        else:
            near.append(part)
    return near


def _meet(parts: list[_Part]) -> bool:
    return any(before.last >= after.first for before, after in pairwise(parts))


def _in_one_step(parts: list[_Part], gap: int) -> tuple[list[_Part], int]:
    """Parts that lie steps of a loop apart, as those of `u[i]` and `u[i - n]` where `i` grows by `n`, as one that the
    loop begins with, and how much further it goes; as they are, where they do not fit into one step so."""
    start = min(p.first for p in parts)
    steps = [(p.first - start) // gap for p in parts]
    moved: dict[tuple[int, int, frozenset[int]], _Part] = {}
    for part, n in zip(parts, steps, strict=True):
        first, last = part.first - n * gap, part.last - n * gap
        # Conditions may leave two parts as much of different numbers: those are the same whose accesses are.
        alike = first, last, frozenset(m.first - n * gap for m in part.members)
        before = moved[alike].members if alike in moved else ()
        moved[alike] = _Part(first, last, before + part.members)
    found = sorted(moved.values(), key=lambda p: (p.first, p.last))
    fits = max(p.last for p in found) - start < gap and not _meet(found)
    return (found, max(steps) * gap) if fits else (parts, 0)


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
