"""Which buffers a thread has places in that no other thread touches: cotangents there need no atomic addition.

Every access of the buffer that the reverse sweep reverses has an address of the form

    constant + c1 a1 + c2 a2 + ...        a: thread and block numbers, iteration numbers, each with a known range

If, in ascending order, every coefficient is at least what the terms before it (and the access itself) span, the address
determines all the numbers, as digits do; and if every number in which two threads can differ is among them, no two
threads have an address in common. Bytes that different accesses reach from one set of numbers count as one access.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device.registers import REGISTER

_AS_A_WHOLE = (Effect.MEMORY_COPY, Effect.MEMORY_SET)


@dataclass(frozen=True)
class _Places:
    """The addresses of one access: `first` and `last` byte where all numbers are 0, and per coefficient what it
    multiplies: a register by name, or nothing, and how many values that has."""

    first: int
    last: int
    digits: tuple[tuple[int, str, int], ...]


class Ownership:
    """The facts about one function."""

    def __init__(self, facts: Facts, recurrences: Recurrences, shape: Shape) -> None:
        self._facts = facts
        self._recurrences = recurrences
        self._layout = DataLayout(facts.module)
        extents = {f"tid.{a}": e for a, e in zip("xyz", shape.block, strict=True)}
        extents |= {f"ctaid.{a}": e for a, e in zip("xyz", shape.grid, strict=True)}
        self._needed = {name for name, extent in extents.items() if extent > 1}
        self._why: dict[MemoryObject, str | None] = {}

    def is_owned(self, item: MemoryObject) -> bool:
        """Whether each place of an object that is touched at all is touched by one thread alone."""
        return self.hindrance(item) is None

    def hindrance(self, item: MemoryObject) -> str | None:
        """Why several threads may touch one place of an object; None where they certainly do not."""
        if item not in self._why:
            self._why[item] = self._found(item)
        return self._why[item]

    def _found(self, item: MemoryObject) -> str | None:
        if item.kind != "buffer" or not isinstance(item.site, Argument):
            return "it is memory of a block"
        places: list[_Places] = []
        for pointer, size in self._accesses(item):
            if size is None:
                return "it is read or written atomically, or as a whole"
            if len(self._facts.points_to.of(pointer)) != 1:
                return "a pointer may lead to it or elsewhere"
            found = self._places(pointer, size, item.site)
            if found is None:
                return "an index is data, or not linear in the thread's number"
            places.append(found)
        return self._overlap(places)

    def _accesses(self, item: MemoryObject) -> Iterator[tuple[Value, int | None]]:
        for instruction in self._facts.points_to.root.instructions():
            accessed = I.accessed(instruction)
            if accessed is not None:
                pointer, type_ = accessed
                if item in self._facts.points_to.of(pointer) and self._facts.has_adjoint(instruction):
                    plain = isinstance(instruction, I.Load | I.Store)
                    yield pointer, self._layout.store_size(type_) if plain else None
            elif isinstance(instruction, I.CallBase) and call_effect(instruction) in _AS_A_WHOLE:
                yield from ((o, None) for o in instruction.operands[:2] if item in self._facts.points_to.of(o))

    def _places(self, pointer: Value, size: int, site: Value) -> _Places | None:
        polynomial = self._recurrences.form(pointer).polynomial - Polynomial.atom(Leaf(site))
        factors, start = polynomial.linear, polynomial.constant_term
        digits: list[tuple[int, str, int]] = []
        for atom, factor in ({} if factors is None else factors).items():
            limits = self._recurrences.interval(Polynomial.atom(atom))
            name = "" if isinstance(atom, Iteration) else _register(atom.value)
            if factor <= 0 or name is None or limits.low < 0:
                return None
            digits.append((factor, name, limits.high + 1))
        return None if factors is None else _Places(start, start + size - 1, tuple(sorted(digits)))

    def _overlap(self, places: list[_Places]) -> str | None:
        if not places:
            return None
        registers = [[d for d in p.digits if d[1]] for p in places]
        if any(r != registers[0] for r in registers):
            return "accesses depend on the thread's number in different ways"
        if {name for _, name, _ in registers[0]} != self._needed or len(registers[0]) != len(self._needed):
            return "the address is the same for threads that differ"
        span = max(p.last for p in places) - min(p.first for p in places) + 1
        extents: dict[tuple[int, str], int] = {}
        for factor, name, extent in (d for p in places for d in p.digits):
            extents[factor, name] = max(extent, extents.get((factor, name), 0))
        for (factor, _), extent in sorted(extents.items()):
            if factor < span:
                return "the places of neighbouring threads overlap"
            span += factor * (extent - 1)
        return None


def _register(value: Value) -> str | None:
    """`tid.x` and its like; None for any other number."""
    name = value.callee.name if isinstance(value, I.Call) else ""
    found = name.removeprefix(REGISTER)
    return found if found != name and found.partition(".")[0] in ("tid", "ctaid") else None
