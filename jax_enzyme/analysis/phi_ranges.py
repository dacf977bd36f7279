"""Ranges of loop headers' phis: by running the loop, by choice among values, by steps of bounded size."""

from __future__ import annotations

from jax_enzyme.analysis.integer_facts import IntegerFacts
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.ranges import Interval, full_range
from jax_enzyme.analysis.simulation import run
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value

_LONGEST = 40
"""What is computed by more additions and choices than these moves by an amount that is not known."""
_PICKS_ONE = ("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin.")


def header_phi_range(facts: IntegerFacts, phi: I.Phi, loop: Loop) -> Interval:
    """The range of a phi in the header of a loop; the full range if nothing is known."""
    full = full_range(T.bits(phi.type))
    if facts.bits(phi.type) is not None and not facts.form(phi).polynomial.is_atom(facts.leaf(phi)):
        return full  # the closed form says more than what follows
    known = full
    for found in (_simulated(facts, phi, loop), _chosen(facts, phi), _stepped(facts, phi, loop)):
        if found is not None and found.within(full):
            known = known.meet(found)
    return known


def _simulated(facts: IntegerFacts, phi: I.Phi, loop: Loop) -> Interval | None:
    for source in dict.fromkeys(source for source, _ in loop.exit_edges):
        branch = source.terminator
        if not isinstance(branch, I.CondBranch) or not facts.once_per_iteration(source, loop):
            continue
        simulation = facts.simulation(loop, source)
        if simulation is not None and phi in simulation.ranges:
            return simulation.ranges[phi]
    most = facts.trip_count(loop).maximum
    return None if most is None else run(facts, loop, phi, most)


def _choices(value: Value) -> list[Value] | None:
    """The values one of which this one is."""
    match value:
        case I.Phi() | I.Select():
            return I.merged(value)
        case I.Call() if callee_name(value).startswith(_PICKS_ONE):
            return value.arguments
        case _:
            return None


def _chosen(facts: IntegerFacts, phi: I.Phi) -> Interval | None:
    """The hull of everything that flows into the phi, if there is nothing but choosing on the way."""
    known: Interval | None = None
    start: list[Value] = [phi]
    for value in reached(start, lambda v: _choices(v) or ()):
        if _choices(value) is None:
            here = facts.range_of(value)
            known = here if known is None else known.hull(here)
    return known


def _stepped(facts: IntegerFacts, phi: I.Phi, loop: Loop) -> Interval | None:
    """Start plus as many steps as the back edge is taken. If that stays in the type's range, no step wraps."""
    ends = facts.header_operands(phi, loop)
    if ends is None:
        return None
    total = _Drift(facts).of(ends[1][0], phi, loop, frozenset())
    start = facts.edge_range(ends[0][0], ends[0][1], loop.header)
    return None if total is None else start + _repeated(facts, total, loop)


def _repeated(facts: IntegerFacts, step: Interval, loop: Loop) -> Interval:
    maximum = facts.trip_count(loop).maximum
    times = Interval(0, (1 << 63) - 1 if maximum is None else maximum)
    return (step * times).hull(Interval(0, 0))


class _Drift:
    """How far values are from the phi of a loop's header that they are made from, by additions, choices and inner loops
    of these. Where ways to a value meet again and again there are very many of them: each value is asked once, and
    nothing further as soon as one answer is missing, which is what happens mostly."""

    def __init__(self, facts: IntegerFacts) -> None:
        self._facts = facts
        self._known: dict[tuple[Value, I.Phi], Interval] = {}

    def of(self, value: Value, origin: I.Phi, loop: Loop, busy: frozenset[Value]) -> Interval | None:
        """The range of value - origin; None where it is not known. `busy` are the values on the way to this one."""
        if value is origin:
            return Interval(0, 0)
        found = self._known.get((value, origin))
        if found is None and value not in busy and len(busy) <= _LONGEST:
            found = self._found(value, origin, loop, busy | {value})
            if found is not None:
                self._known[value, origin] = found
        return found

    def _found(self, value: Value, origin: I.Phi, loop: Loop, busy: frozenset[Value]) -> Interval | None:
        facts = self._facts
        block = facts.block_of.get(value)
        if block is None or block not in loop.blocks:
            return None
        inner = facts.loops.loop_of.get(block)
        if isinstance(value, I.Phi) and inner is not None and inner.header is block:
            ends = facts.header_operands(value, inner)
            before = self.of(ends[0][0], origin, loop, busy) if ends is not None else None
            step = self.of(ends[1][0], value, inner, busy) if ends is not None and before is not None else None
            return None if before is None or step is None else before + _repeated(facts, step, inner)
        choices = _choices(value)
        if choices is not None:
            return self._hull(choices, origin, loop, busy)
        if isinstance(value, I.BinaryOp) and value.opcode in ("add", "sub"):
            x, y = value.operands
            left = self.of(x, origin, loop, busy)
            if left is not None:
                step = facts.range_at(y, block)
                return left + (step if value.opcode == "add" else -step)
            right = self.of(y, origin, loop, busy) if value.opcode == "add" else None
            return None if right is None else right + facts.range_at(x, block)
        return None

    def _hull(self, values: list[Value], origin: I.Phi, loop: Loop, busy: frozenset[Value]) -> Interval | None:
        known: Interval | None = None
        for value in values:
            here = self.of(value, origin, loop, busy)
            if here is None:
                return None
            known = here if known is None else known.hull(here)
        return known
