"""Loops that threads run differently often become ones that all run as often as any may, most of them idly at the end.

    before    do { x; i += s; } while (i < n);

    after     for (k = 0; k <= most; k++) { if (k == 0 || i < n) x; i += s; }     most: no thread goes on more often

Loops over a grid (`i += gridDim.x * blockDim.x`) are such: only their last iteration differs between threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jax_enzyme.analysis.guards import INVERSE
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial
from jax_enzyme.analysis.ranges import Interval, full_range, unsigned_range
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.transform.cuda.uniform import speculatable
from jax_enzyme.transform.rewriting import phis, redirect_phis, replace_operands, split_before, split_edge, substitute

_MOST = 1 << 31
"""A loop that may take as many turns stays as it is."""


@dataclass(frozen=True)
class Counter:
    """A number or address that goes up by a constant step in each iteration; `flags` say that it does not wrap."""

    phi: I.Phi
    start: Value
    step: int
    flags: tuple[str, ...]

    def after(self, at: Builder, number: Value, flags: tuple[str, ...]) -> Value:
        """Its value after so many iterations, an i64."""
        kind = self.phi.type
        if not isinstance(kind, T.IntType):
            return at.gep(T.I8, self.start, [at.binary("mul", number, const_int(T.I64, self.step))], ())
        narrow = at.narrow(number, kind)
        steps = at.binary("mul", narrow, const_int(kind, self.step), flags)
        return at.binary("add", self.start, steps, flags)


def counters_of(facts: Recurrences, loop: Loop) -> list[Counter]:
    """The counters of a loop with one latch."""
    found: list[Counter] = []
    for phi in phis(loop.header):
        step, ends = facts.step(phi, loop), facts.header_operands(phi, loop)
        if step is not None and ends is not None:
            steps = Polynomial.atom(facts.iteration(loop)).scale(step)
            narrow = full_range(facts.bits(phi.type) or 0)
            exact = facts.form(phi).signed and facts.interval(steps).within(narrow)
            found.append(Counter(phi, ends[0][0], step, ("nsw",) if exact else ()))
    return found


def with_preheaders(kernel: Function, loops: Iterable[Loop]) -> None:
    """Puts a block of its own on the way into each loop, in place."""
    for loop in loops:
        before = [b for b in kernel.blocks if b not in loop and loop.header in b.successors]
        if loop.preheader is None and len(before) == 1:
            split_edge(kernel, before[0], loop.header)


def _number(loop: Loop) -> I.Phi:
    """The number of the iteration, still without its next value."""
    return I.Phi(T.I64, "phi", [const_int(T.I64, 0)], targets=[loop.front], name="turn")


def _counted(kernel: Function, loop: Loop, counters: list[Counter], number: I.Phi) -> int:
    """Counters of a thread become expressions of the number that all threads have in common, so that none has to be
    kept. Where in the header other instructions than these begin."""
    at = Builder.behind_phis(loop.header)
    replaced: dict[Value, Value] = {c.phi: c.after(at, number, c.flags) for c in counters}
    loop.header.instructions.insert(0, number)
    substitute(kernel, replaced)
    return 1 + (at.place or 0) - len(counters)


def _count_on(number: I.Phi, latch: BasicBlock) -> Value:
    """The number's next value, at the end of the latch."""
    following = Builder.at_end(latch).binary("add", number, const_int(T.I64, 1), ("nuw", "nsw"))
    number.add(following, latch)
    return following


def count_once(kernel: Function, loop: Loop, counters: list[Counter]) -> None:
    """A loop with a preheader and one latch counts by a number that all threads have in common."""
    number = _number(loop)
    _counted(kernel, loop, counters, number)
    _count_on(number, loop.latches[0])


def even_loop(kernel: Function, facts: Recurrences, loop: Loop, counters: list[Counter]) -> BasicBlock | None:
    """Changes a loop with a preheader and one latch. Its new latch; None where that cannot be done, and nothing was."""
    latch = loop.latches[0]
    branch = latch.terminator
    most = facts.trip_count(loop).maximum
    if loop.exiting != [latch] or not isinstance(branch, I.CondBranch) or most is None or most + 1 >= _MOST:
        return None
    known: dict[Value, Counter] = {c.phi: c for c in counters}
    carried = {p: next(v for v, b in p.incoming if b in loop) for p in phis(loop.header) if p not in known}
    condition, stays = branch.operands[0], branch.targets[0] in loop
    if not _leaves_only(kernel, loop, carried.values()) or not _computed(loop, condition, known):
        return None
    if not _is_of_launch(condition):
        return None
    settled = _stays_false(facts, loop, condition, stays, Interval(0, most))
    out = next(t for t in branch.targets if t not in loop)
    left = split_edge(kernel, latch, out)
    number, header, at = _number(loop), loop.header, Builder(BasicBlock())
    alive: I.Phi | None = None
    if settled:
        active = _again(at, loop, condition, known, at.binary("sub", number, const_int(T.I64, 1)))
        if not stays:
            active = at.binary("xor", active, const_int(T.I1, 1))
        active = at.binary("or", active, at.icmp("eq", number, const_int(T.I64, 0)))
    else:
        active = alive = _alive(loop)
        carried[alive] = condition if stays else Builder.at_end(latch).binary("xor", condition, const_int(T.I1, 1))
    start = _counted(kernel, loop, counters, number) + (alive is not None)
    if alive is not None:
        header.instructions.insert(0, alive)
    body = split_before(kernel, header, start, "body")
    end = BasicBlock(name="turned")
    at.cond_br(active, body, end)
    header.instructions += at.block.instructions
    if latch is header:
        latch = body
    kernel.blocks.insert(kernel.blocks.index(latch) + 1, end)
    del latch.instructions[-1]
    Builder(latch).br(end)
    _finish(kernel, _Evened(loop, header, latch, end, left, number, carried, alive), most)
    return end


def _stays_false(facts: Recurrences, loop: Loop, condition: Value, stays: bool, turns: Interval) -> bool:
    """Does the question that ends the loop get the same answer in every later iteration, for iterations in an interval?
    An order of numbers that move towards each other does, as long as they do not wrap."""
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
        return False
    predicate = condition.predicate if stays else INVERSE[condition.predicate]
    bits = facts.bits(condition.operands[0].type)
    if bits is None or predicate in ("eq", "ne"):
        return False
    limits = full_range(bits) if predicate[0] == "s" else unsigned_range(bits)
    slopes: list[int] = []
    for operand in condition.operands:
        parts = facts.form_at(operand, loop.header).polynomial.coefficients(facts.iteration(loop))
        slope = parts[1].value if len(parts) == 2 else 0 if len(parts) == 1 else None
        if slope is None or not facts.is_invariant(parts[0], loop):
            return False
        if not (facts.interval(parts[0]) + turns * Interval(slope, slope)).within(limits):
            return False
        slopes.append(slope)
    closing = slopes[0] - slopes[1]
    return closing >= 0 if predicate[1] == "l" else closing <= 0


def _alive(loop: Loop) -> I.Phi:
    """Whether a thread has not come to its end yet, still without what it is in the next iteration."""
    latch = loop.latches[0]
    return I.Phi(T.I1, "phi", [const_int(T.I1, 1), const_int(T.I1, 0)], targets=[loop.front, latch], name="alive")


@dataclass(frozen=True)
class _Evened:
    loop: Loop
    header: BasicBlock
    latch: BasicBlock
    end: BasicBlock
    left: BasicBlock
    number: I.Phi
    carried: Mapping[I.Phi, Value]
    alive: I.Phi | None


def _finish(kernel: Function, made: _Evened, most: int) -> None:
    """The end of the loop: what it carries stays as it is for threads that are idle."""
    at = Builder(made.end)
    merged: dict[Value, Value] = {}
    for phi, following in made.carried.items():
        idle = const_int(T.I1, 0) if phi is made.alive else phi
        value = at.phi(phi.type, [(following, made.latch), (idle, made.header)])
        merged.setdefault(following, value)
        place = next(n for n, b in enumerate(phi.targets) if b is made.latch or b in made.loop)
        phi.operands[place], phi.targets[place] = value, made.end
    at.cond_br(const_int(T.I1, 1), made.header, made.left)
    following = _count_on(made.number, made.end)
    made.end.terminator.operands[0] = Builder.at_end(made.end).icmp("ult", following, const_int(T.I64, most + 1))
    redirect_phis(made.left, made.loop.latches[0], made.end)
    inside = {*made.loop.blocks, made.latch, made.end, made.header}
    replace_operands((i for b in kernel.blocks if b not in inside for i in b.instructions), merged)


def _leaves_only(kernel: Function, loop: Loop, values: Iterable[Value]) -> bool:
    """Is nothing of the loop used behind it but these values?"""
    inside: set[Value] = {i for b in loop.blocks for i in b.instructions}
    inside -= set(values)
    return not any(o in inside for b in kernel.blocks if b not in loop for i in b.instructions for o in i.operands)


def _computed(loop: Loop, value: Value, known: Mapping[Value, Counter]) -> bool:
    """Is a value computed from counters and from what does not change in the loop, without memory?"""
    inside = {i for b in loop.blocks for i in b.instructions}
    needed = reached([value], made_of, lambda v: v not in known and v in inside)
    return all(isinstance(v, I.Instruction) and not isinstance(v, I.Phi) and speculatable(v) for v in needed)


def _is_of_launch(value: Value) -> bool:
    """Does a value follow from the launch alone? Where data decide how often a thread goes on, the most that any may go
    on says nothing: all would idle for long."""
    needed = reached([value], made_of, lambda v: not isinstance(v, Constant))
    return all(isinstance(v, I.Instruction) and (isinstance(v, I.Phi) or speculatable(v)) for v in needed)


def _again(at: Builder, loop: Loop, value: Value, known: Mapping[Value, Counter], number: Value) -> Value:
    """Computes such a value as it is in iteration `number`. It may be one that no iteration has: no flag holds."""
    if value in known:
        return known[value].after(at, number, ())
    if not isinstance(value, I.Instruction) or not any(value in b.instructions for b in loop.blocks):
        return value
    copy = with_operands(value, [_again(at, loop, o, known, number) for o in value.operands])
    copy.metadata, copy.flags = [], ()
    return at.insert(copy)
