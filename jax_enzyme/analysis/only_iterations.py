"""Values that one iteration of a short loop alone reads or changes: what a section leaves, or a step that a `switch`
chooses. All other iterations hand them on.

    %s = phi double [ %s0, %entry ], [ %out, %latch ]        %out = phi double [ %sum, %first ], [ %s, %second ]

Here %out is %sum after the iteration that comes by `first`, and %s after all others. Each iteration is gone through by
its number: branches on what follows from that go one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jax_enzyme.analysis.accumulation import Chain
from jax_enzyme.analysis.folding import evaluated, wrapped
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Uses, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.sameness import is_same
from jax_enzyme.ir.values import BasicBlock, Constant, Value, int_value
from jax_enzyme.rules.effects import SECTION

_MOST = 16
"""Iterations of a loop that is looked at."""


def only_chains(
    loop: Loop, phis: Iterable[I.Phi], steps: Mapping[I.Phi, int], count: int, uses: Uses
) -> dict[I.Phi, Chain]:
    """Those of some phis of the header that one iteration alone reads or changes, with which one; `steps` are those of
    the loop's counters."""
    numbers = {phi: ends for phi in phis if isinstance(phi.type, T.FloatType | T.IntType) and (ends := loop.ends(phi))}
    starts = {p: n for p in steps if (ends := loop.ends(p)) and (n := int_value(ends[0])) is not None}
    if not numbers or count > _MOST or not starts:
        return {}
    ways = [
        _Way(loop, {p: wrapped(start + n * steps[p], T.bits(p.type)) for p, start in starts.items()})
        for n in range(count)
    ]
    search = _Search(loop, ways, uses)
    found: dict[I.Phi, Chain] = {}
    for phi, (_, following) in numbers.items():
        only = search.of(phi, following)
        if only is not None and isinstance(following, I.Instruction):
            ends = tuple((u, n) for u, n in uses[following] if not search.is_inside(u))
            found[phi] = Chain(phi, "only", following, frozenset((phi, following)), ends, only=only)
    return found


def settled(loop: Loop, phi: I.Phi, following: Value, counters: Iterable[I.Phi]) -> Value | None:
    """The constant that a phi of the header is in all iterations but the first one, which sets it, where none sets it
    to anything else."""
    starts = {p: int_value(ends[0]) for p in counters if (ends := loop.ends(p))}
    first = _Way(loop, {p: start for p, start in starts.items() if start is not None})
    set_to = first.sources(following)
    if len(set_to) != 1 or not isinstance(set_to[0], Constant):
        return None
    others = _Way(loop, {}).sources(following)
    return set_to[0] if all(v is phi or is_same(v, set_to[0]) for v in others) else None


def is_last_alone(loop: Loop, phi: I.Phi, following: Value, steps: Mapping[I.Phi, int], count: int, uses: Uses) -> bool:
    """Does no iteration read a phi of the header, while the last one leaves something else?"""
    starts = {p: int_value(ends[0]) for p in steps if (ends := loop.ends(p))}
    behind = {p: start + (count - 1) * steps[p] for p, start in starts.items() if start is not None}
    last = _Way(loop, {p: wrapped(number, T.bits(p.type)) for p, number in behind.items()})
    begun = [p for p in loop.header.instructions if isinstance(p, I.Phi) and p not in steps]
    if any(source in begun for source in last.sources(following)):
        return False
    return not _Search(loop, [], uses).is_needed(phi, following, _Way(loop, {}))


class _Search:
    """Looks at what the iterations of a loop do with a value, each of which goes its way."""

    def __init__(self, loop: Loop, ways: list[_Way], uses: Uses) -> None:
        self._loop = loop
        self._uses = uses
        self._ways = ways
        self._inside = {i for b in loop.blocks for i in b.instructions}

    def is_inside(self, instruction: I.Instruction) -> bool:
        return instruction in self._inside

    def of(self, phi: I.Phi, following: Value) -> int | None:
        """The one iteration that reads or changes a phi of the header, of which this is the next value; the first one
        where none does; None where several may."""
        if self._is_seen_outside(phi, following):
            return None
        active = [n for n, way in enumerate(self._ways) if way.changes(phi, following) or self._reads(phi, way)]
        return None if len(active) > 1 else active[0] if active else 0

    def is_needed(self, phi: I.Phi, following: Value, way: _Way) -> bool:
        """May an iteration that goes this way use a phi of the header otherwise than to hand it on, or the program
        behind the loop what it hands on, other than the next value?"""
        return self._is_seen_outside(phi, following) or self._reads(phi, way)

    def _is_seen_outside(self, phi: I.Phi, following: Value) -> bool:
        """Does the program behind the loop use the value as an iteration finds it, or on the way through that?"""

        def joined(value: Value) -> Iterable[Value]:
            return (u for u, _ in self._uses.get(value, ()) if isinstance(u, I.Phi | I.Select) and u in self._inside)

        held = reached([phi], joined, lambda v: v is phi or v not in self._loop.header.instructions)
        return any(u not in self._inside for v in held if v is not following for u, _ in self._uses.get(v, ()))

    def _reads(self, phi: I.Phi, way: _Way) -> bool:
        """May an iteration use the value otherwise than to hand it on?"""

        def handed(value: Value) -> Iterable[Value]:
            return (u for u, _ in self._uses.get(value, ()) if isinstance(u, I.Phi | I.Select) and way.passes(value, u))

        held = set(reached([phi], handed, lambda v: v is phi or v not in self._loop.header.instructions))
        return any(
            way.comes_by(user) and not self._hands_on(user, index, phi)
            for value in held
            for user, index in self._uses.get(value, ())
        )

    def _hands_on(self, user: I.Instruction, index: int, phi: I.Phi) -> bool:
        """Is a use a step of the way to the next iteration, and nothing else? Not where another value goes on from
        there."""
        if isinstance(user, I.Phi):
            return user is phi or user not in self._loop.header.instructions
        return isinstance(user, I.Select) and index > 0


@dataclass
class _Way:
    """What one iteration may come by."""

    loop: Loop
    counters: Mapping[I.Phi, int]

    def __post_init__(self) -> None:
        self.given: dict[Value, int] = {**self.counters}
        for call in (i for b in self.loop.blocks for i in b.instructions if callee_name(i) == SECTION):
            if (number := self._number(call.operands[0])) is not None:
                self.given[call] = number
        blocks = reached([self.loop.header], self._following, self.loop.blocks.__contains__)
        self.edges = {(block, target) for block in blocks for target in self._following(block)}
        self.home = {i: b for b in blocks for i in b.instructions}

    def _following(self, block: BasicBlock) -> Iterable[BasicBlock]:
        last = block.terminator
        if isinstance(last, I.CondBranch) and (number := self._number(last.operands[0])) is not None:
            return [last.targets[0 if number else 1]]
        return block.successors

    def _number(self, value: Value) -> int | None:
        return evaluated(value, dict(self.given))

    def comes_by(self, instruction: I.Instruction) -> bool:
        return instruction in self.home

    def passes(self, value: Value, join: I.Instruction) -> bool:
        """May a phi or a select be this value?"""
        return self.comes_by(join) and value in self._chosen(join)

    def changes(self, phi: I.Phi, following: Value) -> bool:
        """May the iteration leave another value than it found?"""
        return any(v is not phi for v in self.sources(following))

    def sources(self, following: Value) -> list[Value]:
        """What the iteration may leave, where selects and phis have chosen; phis of the header as it began."""

        def sources(value: Value) -> Iterable[Value]:
            begins = value in self.loop.header.instructions and isinstance(value, I.Phi)
            inside = isinstance(value, I.Phi | I.Select) and not begins and self.comes_by(value)
            return self._chosen(value) if inside and isinstance(value, I.Instruction) else ()

        return [v for v in reached([following], sources) if not list(sources(v))]

    def _chosen(self, join: I.Instruction) -> list[Value]:
        if isinstance(join, I.Phi):
            home = self.home[join]
            return [v for v, b in join.incoming if (b, home) in self.edges]
        number = self._number(join.operands[0])
        return join.operands[1:] if number is None else [join.operands[1 if number else 2]]
