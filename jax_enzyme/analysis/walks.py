"""Walks through the blocks of a function, as far as it is clear where they go.

    .preheader: ...         a loop is gone through once for all its iterations, where none of them changes anything
    .body:      ...
    .exit:      ...         `trace` lists the blocks come by, with their phis and with what was written until then

A walk ends where it would come to a block that lies before its start, where the function returns, and where a condition
is open (`stuck`): then somebody has to assume one or the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jax_enzyme.analysis.counters import counted
from jax_enzyme.analysis.evaluation import Program, Unclear, Values, is_pure, is_silent
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.analysis.symbols import Term
from jax_enzyme.analysis.writes import Counter, Written, joined_zeros, repeated
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import bottom_up
from jax_enzyme.ir.values import BasicBlock, int_value
from jax_enzyme.rules.effects import Effect

_UNCLEAR = (*I.TOUCHES_MEMORY, I.Alloca, I.VAArg)

Edge = tuple[BasicBlock, BasicBlock]


@dataclass(frozen=True)
class Stop:
    """A block that a walk came to: the terms of its phis, and what has been written until then."""

    block: BasicBlock
    phis: tuple[Term, ...]
    written: tuple[Written, ...]


class Walk:
    """Goes from the end of the block `start` to `first` and on, a block or a loop with each step."""

    def __init__(self, program: Program, loops: Loops, values: Values, start: BasicBlock, first: BasicBlock) -> None:
        self.trace: list[Stop] = []
        self.stuck: Term | None = None
        self.fails = False
        """Whether it comes to the end of a call that fails."""
        self._program = program
        self._loops = loops
        self.values = values
        self._start = start
        self._edge: Edge | None = (start, first)
        self._inside: BasicBlock | None = None
        self._entering: dict[I.Phi, Term] = {}

    def step(self) -> Stop | None:
        """Comes to the next block, through the one that it came to before; None where the walk has ended."""
        try:
            if self._inside is not None:
                block, self._inside = self._inside, None
                self._edge = self._cross(block)
            if self._edge is None:
                return None
            source, block = self._edge
            self._edge = None
            self._entering = self._joined(block, [source])
        except Unclear:
            return None
        stop = Stop(block, tuple(self._entering.values()), tuple(self.values.written))
        self.trace.append(stop)
        if not self._program.dominators.dominates(block, self._start):
            self._inside = block
        return stop

    def _cross(self, block: BasicBlock) -> Edge | None:
        loop = self._headed(block)
        if loop is not None:
            return self._left(loop, self._through(loop, self._entering))
        self._put(self._entering)
        self._execute(block)
        return self._next(block)

    def _headed(self, block: BasicBlock) -> Loop | None:
        loop = self._loops.loop_of.get(block)
        return loop if loop is not None and loop.header is block else None

    def _next(self, block: BasicBlock) -> Edge | None:
        match block.terminator:
            case I.Return() as last:
                status = self.values.of(last.operands[0]).number if last.operands else None
                self.fails = status not in (None, 0)
                return None
            case I.Unreachable():
                self.fails = True
                return None
            case _:
                targets = self._targets(block)
        if len(targets) > 1:
            self.stuck = self.values.of(block.terminator.operands[0])
            return None
        return block, targets[0]

    def _targets(self, block: BasicBlock) -> list[BasicBlock]:
        """Where control may go at the end of a block."""
        last = block.terminator
        if isinstance(last, I.Branch):
            return list(last.targets)
        if not isinstance(last, I.CondBranch):
            raise Unclear
        condition = self.values.of(last.operands[0])
        if condition.operation == "invalid":
            raise Unclear
        if condition.number is not None:
            return [last.targets[0 if condition.number else 1]]
        return list(dict.fromkeys(last.targets))

    def _left(self, loop: Loop, exits: Sequence[Edge]) -> Edge | None:
        """The edge by which a loop is left; where there are several, one is assumed."""
        for number, edge in enumerate(exits[:-1]):
            key = (self.values.side, id(loop.header), number)
            taken = self.values.terms.term("leaves", (), key, T.IntType(1))
            if taken.number is None:
                self.stuck = taken
                return None
            if taken.number:
                return edge
        return exits[-1]

    # -- straight code

    def _joined(self, block: BasicBlock, sources: Iterable[BasicBlock]) -> dict[I.Phi, Term]:
        """What the phis of a block are where control comes from one of `sources`."""
        found: dict[I.Phi, Term] = {}
        for phi in block.instructions:
            if not isinstance(phi, I.Phi):
                break
            given = dict((b, v) for v, b in phi.incoming)
            terms = {self.values.of(given[s]) for s in sources}
            if any(t.operation == "invalid" for t in terms):
                found[phi] = self.values.terms.invalid(phi.type)
            else:
                found[phi] = terms.pop() if len(terms) == 1 else self.values.new("phi", phi)
        return found

    def _put(self, phis: dict[I.Phi, Term]) -> None:
        for phi, term in phis.items():
            self.values.put(phi, term)

    def _execute(self, block: BasicBlock) -> None:
        """All of a block but its phis and its end."""
        values = self.values
        self._program.effort.spend(len(block.instructions))
        for instruction in block.instructions[:-1]:
            match instruction:
                case I.Phi():
                    continue
                case I.Load() if I.is_plain(instruction):
                    found = values.read(values.of(instruction.operands[0]), instruction.type)
                    values.put(instruction, found)
                case I.Store() if I.is_plain(instruction):
                    value, pointer = map(values.of, instruction.operands)
                    values.store(pointer, value)
                case I.AtomicRMW(operation="fadd" | "fsub") if values.of(instruction.operands[1]).number == 0:
                    values.put(instruction, values.new("atomic", instruction))
                case I.CallBase() if is_pure(instruction):
                    values.put(instruction, values.computed(instruction))
                case I.CallBase() if _zero_bytes(instruction) is not None:
                    values.fill(values.of(instruction.operands[0]), _zero_bytes(instruction) or 0)
                case I.CallBase() if is_silent(instruction):
                    values.put(instruction, values.new("call", instruction))
                case _ if isinstance(instruction, _UNCLEAR):
                    raise Unclear
                case _:
                    values.put(instruction, values.computed(instruction))

    # -- loops

    def _through(self, loop: Loop, entering: dict[I.Phi, Term]) -> list[Edge]:
        """Every iteration of a loop at once: phis that the iterations leave alone keep what they start with, others are
        anything. Returns the edges by which the loop may be left. Raises Unclear where an iteration writes what is not
        clear after all of them."""
        if not any(self._counts(loop, block) for block in loop.exiting):
            raise Unclear
        same = {phi for phi, term in entering.items() if term.operation != "invalid"}
        while True:
            self._start_iteration(entering, same)
            before, read = len(self.values.written), len(self.values.reads)
            live = self._iteration(loop)
            wrote = self.values.written[before:]
            del self.values.written[before:]
            back = {source for source, target in live if target is loop.header}
            changed = {phi for phi in same if self._changes(phi, entering[phi], back)}
            if not changed:
                break
            same -= changed
        exits = [edge for edge in loop.exit_edges if edge in live]
        if not exits:
            raise Unclear
        if wrote:
            self.values.written += self._repeated(loop, entering, wrote, self.values.reads[read:])
        self._forget(loop)
        return exits

    def _start_iteration(self, entering: dict[I.Phi, Term], same: set[I.Phi]) -> None:
        for phi, term in entering.items():
            self.values.put(phi, term if phi in same else self.values.new("phi", phi))
        for phi in entering:
            follower = self._program.followers.get(phi)
            if phi not in same and follower is not None and follower.leader not in same:
                self.values.put(phi, self.values.following(follower))

    def _iteration(self, loop: Loop) -> set[Edge]:
        """The edges that control may go along in one iteration."""
        live: set[Edge] = set()
        inside: set[BasicBlock] = set()
        for block in self._loops.blocks(loop):
            if block in inside:
                continue
            if block is not loop.header:
                sources = [s for s in self._program.predecessors(block) if (s, block) in live]
                if not sources:
                    continue
                entering = self._joined(block, sources)
                inner = self._headed(block)
                if inner is not None:
                    inside |= inner.blocks
                    live.update(self._through(inner, entering))
                    continue
                self._put(entering)
            self._execute(block)
            live.update((block, target) for target in self._targets(block))
        return live

    def _repeated(
        self,
        loop: Loop,
        entering: dict[I.Phi, Term],
        wrote: Sequence[Written],
        reads: Sequence[tuple[Term, int]],
    ) -> list[Written]:
        """What all iterations write, where each of them runs all of the loop and reads nothing that another wrote."""
        trips = self._program.trips(loop) if loop.exiting == loop.latches else None
        own = [b for b in loop.blocks if self._loops.loop_of[b] is loop]
        always = all(self._program.dominators.dominates(b, latch) for b in own for latch in loop.latches)
        if trips is None or not always:
            raise Unclear
        terms = self.values.terms
        counters = list(self._counters(loop, entering))
        joined = joined_zeros(terms, wrote)
        found = [repeated(terms, entry, counters, trips) for entry in joined]
        inside = {id(i) for b in loop.blocks for i in b.instructions}
        whole = [entry for entry in found if entry is not None and not self._depends(entry.address, inside, {})]
        if not whole or len(whole) < len(joined):
            raise Unclear
        for address, size in reads:
            own_part = any(_is_inside(terms.distance(address, e.address), size, e.length) for e in joined)
            if not own_part and not all(self.values.apart(address, size, e.address, e.length) for e in whole):
                raise Unclear
        return whole

    def _counters(self, loop: Loop, entering: dict[I.Phi, Term]) -> Iterator[Counter]:
        for phi, start in entering.items():
            term = self.values.of(phi)
            steps = [self.values.terms.distance(self.values.of(v), term) for v, b in phi.incoming if b in loop.blocks]
            if len(steps) == 1 and steps[0]:
                yield Counter(term, start, steps[0])

    def _changes(self, phi: I.Phi, start: Term, back: set[BasicBlock]) -> bool:
        """Whether a phi that started an iteration with a term may start the next one with another."""
        found = [self.values.of(value) for value, source in phi.incoming if source in back]
        if any(term.operation == "invalid" for term in found):
            raise Unclear
        return any(term is not start for term in found)

    def _forget(self, loop: Loop) -> None:
        """What a loop computes is, behind it, what its last iteration left."""
        own = {id(i) for b in loop.blocks for i in b.instructions}
        known: dict[Term, bool] = {}
        for block in loop.blocks:
            for instruction in block.instructions:
                if self._depends(self.values.of(instruction), own, known):
                    self.values.put(instruction, self.values.new(f"after {loop.depth}", instruction))

    def _depends(self, term: Term, own: set[int], known: dict[Term, bool]) -> bool:
        """Whether a term is made of what is new in every iteration: values of the blocks of the loop."""
        for part, _ in bottom_up(term, lambda t: t.parts, known):
            detail = part.detail
            new = isinstance(detail, tuple) and len(detail) == 2 and detail[1] in own
            known[part] = new or any(known[p] for p in part.parts)
        return known[term]

    def _counts(self, loop: Loop, block: BasicBlock) -> bool:
        """Whether the loop is left there when a counter has come to its end, as happens sooner or later."""
        last = block.terminator
        if not isinstance(last, I.CondBranch) or not all(
            self._program.dominators.dominates(block, latch) for latch in loop.latches
        ):
            return False
        condition = last.operands[0]
        return isinstance(condition, I.Compare) and any(counted(loop, v) for v in condition.operands)


def _zero_bytes(call: I.CallBase) -> int | None:
    """How many zeros a call writes, where it does nothing else."""
    if call_effect(call) is not Effect.MEMORY_SET or int_value(call.operands[1]) != 0:
        return None
    volatile = len(call.arguments) > 3 and int_value(call.operands[3]) != 0
    return None if volatile else int_value(call.operands[2])


def _is_inside(distance: int | None, size: int, length: int) -> bool:
    return distance is not None and 0 <= distance <= length - size
