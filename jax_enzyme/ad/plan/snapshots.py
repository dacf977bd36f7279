"""Memory that a loop reads as it was in front of the loop, and that is overwritten later: kept once as it was there,
for all that the loop reads of it.

    for t:                                              on the tape, for each t, either
        for i: next[i] = f(u[i-1], u[i], u[i+1])            three numbers for each i, or
        u = next                                            a copy of u

What is copied has to be there whether or not the loop reads it: it lies in a buffer, a local variable or an allocation
of known size, or between two places that the loop reads in any case. What is cheaper is the minimum cut's business.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ad.facts.instrument import Instrumented
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.extents import argument_size, extent
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Atom, Iteration, Leaf, Polynomial
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import run_through
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.remembered import remembered


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A copy of `size` bytes at `offset` from `base`, as they are when control comes to `loop`."""

    loop: Loop
    base: Value
    offset: Polynomial
    size: int

    def __str__(self) -> str:
        return f"memory at %{self.base.name} in front of %{self.loop.header.name}"


@dataclass(frozen=True, eq=False)
class _Address:
    """What a load reads: `size` bytes, `inner` behind the place that is `outer` behind `base`, and the same in all
    iterations of a loop. (Both are right modulo 2**64, and so is what is within bounds.)"""

    base: Value
    outer: Polynomial
    inner: Polynomial
    size: int

    @property
    def key(self) -> tuple[Value, frozenset[object]]:
        return self.base, frozenset(self.outer.terms.items())


class Snapshots:
    """Those that there may be of what one function reads."""

    def __init__(self, code: Instrumented, recurrences: Recurrences, memory: MemoryUses, alias: Alias) -> None:
        self._code = code
        self._recurrences = recurrences
        self._memory = memory
        self._points_to = memory.points_to
        self._alias = alias
        self._block_of = recurrences.block_of

    def of(self, load: I.Load) -> tuple[Snapshot, Polynomial] | None:
        """A snapshot that has what a load reads, and at how many bytes of it."""
        loop = self._loop(load)
        address = None if loop is None else self._address(load, loop)
        if loop is None or address is None:
            return None
        start, snapshot = self._taken(loop).get(address.key, (0, None))
        reach = self._reach(load, address, loop)
        if snapshot is None or reach is None or reach.low < start or reach.high > start + snapshot.size:
            return None
        return snapshot, address.inner.add_constant(-start)

    @remembered
    def _loop(self, load: I.Load) -> Loop | None:
        """The outermost loop around a load of a number that finds in memory what was there in front of the loop, where
        no addresses are."""
        objects = self._points_to.of(load.operands[0])
        if not objects or not T.is_float(load.type) or any(self._points_to.contents.get(item) for item in objects):
            return None
        found, loop = None, self._code.loop_of(self._block_of[load])
        while loop is not None and self._alias.finds(load, loop):
            found, loop = loop, loop.parent
        return found

    @remembered
    def _address(self, load: I.Load, loop: Loop) -> _Address | None:
        place = self._recurrences.form(load.operands[0]).polynomial
        bases = [a.value for a in place.atoms if isinstance(a, Leaf) and T.is_pointer(a.value.type)]
        if len(bases) != 1:
            return None
        rest = place - Polynomial.atom(Leaf(bases[0]))
        parts = [{}, {}]
        for monomial, factor in rest.terms.items():
            atoms = [atom for atom, _ in monomial]
            if Leaf(bases[0]) in atoms:
                return None
            parts[not atoms or not all(self._is_outer(atom, loop) for atom in atoms)][monomial] = factor
        outer, inner = map(Polynomial, parts)
        nest = self._code.nest(self._block_of[load])
        if not self._is_outer(Leaf(bases[0]), loop) or not all(self._is_at_hand(a, nest) for a in inner.atoms):
            return None
        return _Address(bases[0], outer, inner, self._memory.layout.store_size(load.type))

    def _is_outer(self, atom: Atom, loop: Loop) -> bool:
        """Whether an atom is known in front of a loop."""
        if isinstance(atom, Iteration):
            return atom.loop is not loop and atom.loop.encloses(loop)
        block = self._block_of.get(atom.value)
        return block is None or self._code.dominators.dominates(block, loop.front)

    def _is_at_hand(self, atom: Atom, nest: list[Loop]) -> bool:
        """Whether an atom means something where the loops `nest` are being run."""
        if isinstance(atom, Iteration):
            return atom.loop in nest
        block = self._block_of.get(atom.value)
        loop = None if block is None else self._code.loop_of(block)
        return loop is None or loop in nest

    @remembered
    def _taken(self, loop: Loop) -> dict[tuple[Value, frozenset[object]], tuple[int, Snapshot]]:
        """What may be copied in front of a loop, and at which distance from the place that addresses count from."""
        ranges: dict[tuple[Value, frozenset[object]], tuple[_Address, Interval]] = {}
        for load in self._loads(loop):
            address = self._address(load, loop)
            reach = None if address is None else self._reach(load, address, loop)
            if address is not None and reach is not None:
                _, known = ranges.get(address.key, (address, reach))
                ranges[address.key] = address, known.hull(reach)
        return {
            key: (reach.low, Snapshot(loop, a.base, a.outer.add_constant(reach.low), reach.high - reach.low))
            for key, (a, reach) in ranges.items()
        }

    def _loads(self, loop: Loop) -> Iterator[I.Load]:
        for access in self._memory.inside(loop):
            load = access.instruction
            if isinstance(load, I.Load) and I.is_plain(load) and self._loop(load) is loop:
                yield load

    def _reach(self, load: I.Load, address: _Address, loop: Loop) -> Interval | None:
        """The first byte of what a load reads in a loop, at least, and the one behind the last, at most."""
        reach = self._recurrences.interval(address.inner) + Interval(0, address.size)
        room = self._room(address, loop)
        if room is None:
            return reach if self._is_sure(load, address, loop) else None
        # Outside there is nothing to be read: nothing, if that is all.
        low, high = max(reach.low, 0), min(reach.high, room)
        return Interval(low, high) if low < high else None

    def _room(self, address: _Address, loop: Loop) -> int | None:
        """The size of the object whose address the base is, where that is known and it is there in any case."""
        item = self._points_to.objects.get(address.base)
        if address.outer.terms or item is None:
            return None
        match address.base:
            case Argument():  # one that is no object says how much there is at least
                return argument_size(address.base)
            case I.CallBase() if not self._is_held(address.base, item, loop):
                return None
            case I.Alloca() | I.CallBase():
                return extent(self._memory.layout, item)
            case _:
                return None

    @remembered
    def _is_held(self, allocation: I.CallBase, item: MemoryObject, loop: Loop) -> bool:
        """Whether memory that was allocated is not given back when control comes to a loop, as far as can be seen."""
        home = self._block_of[allocation]
        ends = (a for a in self._memory.all if a.kills and self._points_to.may_meet(a.objects, (item,)))
        blocks = [self._block_of.get(a.instruction) for a in ends]
        known = [block for block in blocks if block is not None]
        behind = reached(known, lambda block: block.successors, lambda block: block is not home)
        return len(known) == len(blocks) and loop.preheader not in behind and home not in known

    def _is_sure(self, load: I.Load, address: _Address, loop: Loop) -> bool:
        """Whether a load runs in every iteration that there may be of the loops around it, and reads at both ends of
        its range: it is a sum of multiples of iteration numbers."""
        slopes = address.inner.linear
        if slopes is None or not all(isinstance(atom, Iteration) for atom in slopes):
            return False
        return run_through(self._recurrences, self._block_of[load], loop.parent) is not None
