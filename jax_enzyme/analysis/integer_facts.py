"""What the facts about integers are, and what each kind of them may ask of the others (`recurrences` has them all)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, TypeVar

from jax_enzyme.analysis.guards import Condition, Guards
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import Atom, Iteration, Leaf, Polynomial
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.analysis.simulation import LoopFacts, Simulation
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Value

F = TypeVar("F")


@dataclass(frozen=True)
class Form:
    """A closed form: the value is congruent to `polynomial` modulo 2**bits; where `signed` (`unsigned`) is set, the
    polynomial over the integers is known to be the value read as a signed (unsigned) integer."""

    polynomial: Polynomial
    signed: bool = False
    unsigned: bool = False


@dataclass(frozen=True)
class TripCount:
    """How often the back edge is taken between entering the loop and leaving it (iterations minus one).

    `exact`: the number as a polynomial in iteration numbers of outer loops and values from outside the loop, as an
    integer, if the loop is left at all and not by ending the program. `maximum`: no run of the loop takes its back edge
    more often.
    """

    exact: Polynomial | None = None
    maximum: int | None = None

    def text(self, name_of: Callable[[Value], str]) -> str:
        """For reading; `name_of` says how a value or block is called."""
        exact = "?" if self.exact is None else self.exact.text(name_of)
        return f"exact {exact} maximum {'?' if self.maximum is None else self.maximum}"

    def __str__(self) -> str:
        return self.text(lambda value: f"%{value.name}")


UNKNOWN = TripCount()


class IntegerFacts(LoopFacts, Protocol):
    """All facts of one function; what each says is told where it is computed."""

    loops: Loops
    guards: Guards
    sources: dict[Condition, frozenset[Value] | None]

    @staticmethod
    def bits(type_: T.Type) -> int | None: ...

    def form(self, value: Value) -> Form: ...

    def form_at(self, value: Value, block: BasicBlock) -> Form: ...

    def exact_at(self, value: Value, block: BasicBlock) -> Form: ...

    def leaf(self, value: Value) -> Leaf: ...

    def iteration(self, loop: Loop) -> Iteration: ...

    def is_invariant(self, polynomial: Polynomial, loop: Loop) -> bool: ...

    def is_signed(self, form: Form, bits: int) -> bool: ...

    def is_unsigned(self, form: Form, bits: int) -> bool: ...

    def interval(self, polynomial: Polynomial) -> Interval: ...

    def bounds(self, polynomial: Polynomial, conditions: Iterable[Condition]) -> Interval: ...

    def atom_range(self, atom: Atom) -> Interval: ...

    def range_of(self, value: Value) -> Interval: ...

    def range_at(self, value: Value, block: BasicBlock) -> Interval: ...

    def edge_range(self, value: Value, source: BasicBlock, target: BasicBlock) -> Interval: ...

    def trip_count(self, loop: Loop) -> TripCount: ...

    def simulation(self, loop: Loop, source: BasicBlock) -> Simulation | None: ...

    def once_per_iteration(self, block: BasicBlock, loop: Loop) -> bool: ...

    def ends_program(self, block: BasicBlock) -> bool: ...

    def memoised(self, key: Hashable, compute: Callable[[], F], fallback: F) -> F: ...
