"""The two sweeps of a loop that is checkpointed: how its segments are run, remembered, and run again.

    forward    record the state; run a segment; record the state; run the next one ...
    reverse    put the last record back; run its segment again, taping; reverse it; drop the tape and the record ...

A *record* is the state at the start of a segment: the record before it, the number of its first iteration, copies of
what is small, and blocks with copies of the rest (apart, so that higher derivatives see what is a number, and what is
not). Only records, and the tape of one segment, exist at a time. Where the number of iterations is not known when
this is emitted, segments grow as the loop goes on: whenever there are as many records as allowed, either every other
one is dropped and segments are twice as long from then on, or twice as many are allowed, whichever keeps the records
and the tape of a segment of about one size. (What an iteration tapes is measured on the first one.) So memory is
O(sqrt(iterations)), and every iteration runs forwards twice. With `halves` the number of records has a bound, segments
that have become too long for their tape are run again by halves, and memory is O(log(iterations)).

The *frame* of a loop, freed by its reverse, holds what that needs besides: the last record, the end of the last
segment, the length below which segments are not divided, what is alive of kept memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jax_enzyme.ad.emit.kept import KeptMemory
from jax_enzyme.ad.emit.partials import Partials
from jax_enzyme.ad.emit.runtime import ARENA, Runtime, load_integer
from jax_enzyme.ad.facts.copying import whole
from jax_enzyme.ad.plan.state import State
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantInt, ConstantNull, Value
from jax_enzyme.rules.kinds import of_table

_RECORDS = 4
_RECORDS_OF_HALVES = 16
_BLOCKS_AT = 16
_SMALL = 8
_LAST_AT, _END_AT, _LEAST_AT, _NODES_AT = 0, 8, 16, 24
_NEVER = (1 << 63) - 1


@dataclass(frozen=True)
class Schedule:
    """`length` is the number of iterations of a segment, None where it is found as the loop runs. `halves`: segments
    that have become long are divided when they are reversed."""

    length: int | None
    halves: bool = False


@dataclass(frozen=True, eq=False)
class Emitted:
    """What there is of a segment: the primal, the forward and the reverse sweep, and which of its parameters have
    shadows and adjoints."""

    primal: Function
    forward: Function
    reverse: Function
    shadowed: int
    adjoints: tuple[Argument, ...]


class LoopSweeps:
    """Emits both sweeps of one loop.

    forward    {i64, ptr} (arguments..., shadows..., addresses..., ptr arena, ptr alive)
    reverse    {adjoints} (arguments..., shadows..., addresses..., ptr arena, ptr frame)

    The addresses are those of the fixed objects and then of the shadows that move, `alive` those of the first nodes of
    kept memory, of which `heads` are what the state has. `parameters` are the types of both.
    """

    def __init__(
        self, runtime: Runtime, segment: Emitted, state: State, heads: Sequence[int], schedule: Schedule
    ) -> None:
        self.runtime = runtime
        self.kept = KeptMemory(runtime, state.tells_kinds)
        self.segment = segment
        self.state = state
        self.heads = heads
        self.schedule = schedule
        self.types = [a.type for a in segment.primal.arguments[2:]]
        addresses = len(state.fixed) + len(state.moved)
        self.parameters: list[T.Type] = [*self.types, *([T.PTR] * (segment.shadowed + addresses + 2))]

    # -- forward -------------------------------------------------------------------------------------------------------

    def forward(self, target: Function) -> None:
        """Fills in the forward sweep."""
        *values, arena, alive = target.arguments
        entry = BasicBlock(name="entry")
        builder = Builder(entry)
        frame = self.runtime.take(builder, _NODES_AT + 8 * len(self.heads))
        mark = builder.alloca(ARENA, align=16)
        nodes = [
            self.kept.list(builder, builder.load(T.PTR, builder.offset(alive, 8 * head)), arena) for head in self.heads
        ]
        for n, each in enumerate(nodes):
            builder.store(each, builder.offset(frame, _NODES_AT + 8 * n))
        run = _Run(self, values, nodes, arena, mark)
        size = run.record_size(builder)
        ends = _Forward(run, size).emit(target, entry)
        builder = Builder(ends.block)
        for value, at in ((ends.record, _LAST_AT), (ends.end, _END_AT), (ends.least, _LEAST_AT)):
            builder.store(value, builder.offset(frame, at))
        builder.ret(builder.pack(target.function_type.result, (ends.way, frame)))

    # -- reverse -------------------------------------------------------------------------------------------------------

    def reverse(self, target: Function, partials: Partials) -> None:
        """Fills in the reverse sweep; `partials` adds adjoints."""
        *values, arena, frame = target.arguments
        entry = BasicBlock(name="entry")
        builder = Builder(entry)
        mark = builder.alloca(ARENA, align=16)
        sums = [builder.alloca(a.type) for a in self.segment.adjoints]
        for each, argument in zip(sums, self.segment.adjoints, strict=True):
            builder.store(zero(argument.type), each)
        last = builder.load(T.PTR, builder.offset(frame, _LAST_AT))
        nodes = [builder.load(T.PTR, builder.offset(frame, _NODES_AT + 8 * n)) for n, _ in enumerate(self.heads)]
        end, least = (load_integer(builder, builder.offset(frame, at)) for at in (_END_AT, _LEAST_AT))
        self.runtime.free(builder, frame)
        run = _Run(self, values, nodes, arena, mark)
        over, again, leave = BasicBlock(name="over"), BasicBlock(name="again"), BasicBlock(name="leave")
        builder.br(over)
        target.blocks = [entry, over]
        builder = Builder(over)
        record, bound = builder.phi(T.PTR, [(last, entry)]), builder.phi(T.I64, [(end, entry)])
        start = load_integer(builder, builder.offset(record, 8))
        if self.schedule.halves:
            half = _Half(run, record, start, bound)
            target.blocks += half.emit(builder, least, over, again)
        else:
            builder.br(again)
        builder = Builder(again)
        run.restore(builder, record)
        run.copy_arena(builder, mark, arena)
        taped = run.taped(builder, start, bound)
        inner = builder.extract_value(taped, 1, T.PTR)
        parts = builder.call(self.segment.reverse, [inner, start, bound, *run.arguments, *run.shadows])
        for index, (each, argument) in enumerate(zip(sums, self.segment.adjoints, strict=True)):
            part = builder.extract_value(parts, index, argument.type)
            partials.builder = builder
            builder.store(partials.add(builder.load(argument.type, each), part), each)
        builder.call(self.runtime.arena("reset"), [arena, mark])
        before = builder.load(T.PTR, record)
        run.drop(builder, record)
        for phi, value in ((record, before), (bound, start)):
            phi.add(value, again)
        builder.cond_br(builder.icmp("eq", before, ConstantNull(T.PTR)), leave, over)
        target.blocks += [again, leave]
        builder = Builder(leave)
        if not sums:
            builder.ret()
            return
        totals = (builder.load(a.type, each) for each, a in zip(sums, self.segment.adjoints, strict=True))
        builder.ret(builder.pack(target.function_type.result, totals))


class _Run:
    """What is done with a segment in one of the sweeps, whose values these are."""

    def __init__(
        self, sweeps: LoopSweeps, values: Sequence[Value], nodes: Sequence[Value], arena: Value, mark: Value
    ) -> None:
        self.sweeps = sweeps
        self.state, self.schedule = sweeps.state, sweeps.schedule
        self.runtime, self.kept, self.segment = sweeps.runtime, sweeps.kept, sweeps.segment
        count = len(sweeps.types)
        self.arguments, rest = values[:count], values[count:]
        self.shadows, addresses = rest[: self.segment.shadowed], rest[self.segment.shadowed :]
        self.nodes, self.arena, self.mark = nodes, arena, mark
        sizes = [size for _, size in (*self.state.fixed, *self.state.moved)]
        copies = list(zip(addresses, sizes, strict=True))
        self._told = set(addresses[: len(self.state.fixed)] if self.state.tells_kinds else ())
        self.small = [(address, size) for address, size in copies if size <= _SMALL]
        self.large = [(address, size) for address, size in copies if size > _SMALL]
        self.blocks = len(self.large) + len(nodes)

    def record_size(self, builder: Builder) -> Value:
        """The bytes of a record with its blocks."""
        total: Value = ConstantInt(T.I64, self._header_size + sum(whole(size) for _, size in self.large))
        for each in self.nodes:
            total = builder.binary("add", total, self.kept.list_bytes(builder, each))
        return total

    @property
    def _header_size(self) -> int:
        return _BLOCKS_AT + 8 * (self.blocks + len(self.small))

    def record(self, builder: Builder, before: Value, start: Value) -> Value:
        """A record of the state as it is."""
        record = self.runtime.take(builder, self._header_size)
        builder.store(before, record)
        builder.store(start, builder.offset(record, 8))
        for at, (address, size) in self._small_places(builder, record):
            self._copy(builder, at, address, size, address)
        for at, (address, size) in self._block_places(builder, record):
            block = self.runtime.take(builder, size)
            builder.store(block, at)
            self._copy(builder, block, address, size, address)
        for n, each in enumerate(self.nodes):
            block = self.runtime.take(builder, self.kept.list_bytes(builder, each))
            builder.store(block, builder.offset(record, self._kept_at + 8 * n))
            self.kept.save(builder, each, block)
        return record

    def restore(self, builder: Builder, record: Value) -> None:
        for at, (address, size) in self._small_places(builder, record):
            self._copy(builder, address, at, size, address)
        for at, (address, size) in self._block_places(builder, record):
            self._copy(builder, address, builder.load(T.PTR, at), size, address)
        for n, each in enumerate(self.nodes):
            block = builder.load(T.PTR, builder.offset(record, self._kept_at + 8 * n))
            self.kept.restore(builder, each, block)

    def _copy(self, builder: Builder, to: Value, source: Value, size: int, of: Value) -> None:
        """Copies what is at an address, to or from a record, and what is told of it."""
        self.runtime.copy(builder, to, source, size)
        if of in self._told:
            of_table(self.runtime.declarations, builder, "copy", to, source, ConstantInt(T.I64, size))

    def drop(self, builder: Builder, record: Value) -> None:
        """Frees a record."""
        builder.call(self._freeing("je.records.drop", _DROP), [record])

    def thin(self, builder: Builder, last: Value) -> Value:
        """Drops every other record; the last that is left."""
        self._freeing("je.records.drop", _DROP)
        return builder.call(self._freeing("je.records.thin", _THIN), [last])

    def _freeing(self, name: str, text: str) -> Function:
        """A helper for records with so many blocks."""
        count = str(self.blocks)
        return self.runtime.helper(
            f"{name}.{count}", text.replace("BLOCKS", count).replace("END", str(8 * self.blocks))
        )

    @property
    def _kept_at(self) -> int:
        return _BLOCKS_AT + 8 * len(self.large)

    def _small_places(self, builder: Builder, record: Value) -> Iterator[tuple[Value, tuple[Value, int]]]:
        first = _BLOCKS_AT + 8 * self.blocks
        return ((builder.offset(record, first + 8 * n), copy) for n, copy in enumerate(self.small))

    def _block_places(self, builder: Builder, record: Value) -> Iterator[tuple[Value, tuple[Value, int]]]:
        return ((builder.offset(record, _BLOCKS_AT + 8 * n), copy) for n, copy in enumerate(self.large))

    def taped(self, builder: Builder, start: Value, end: Value) -> Value:
        return builder.call(self.segment.forward, [start, end, *self.arguments, *self.shadows, self.arena])

    def dropped(self, builder: Builder, start: Value, end: Value, measure: bool) -> tuple[Value, Value]:
        """Runs a segment with a tape that is dropped at once: the way out, and the size of the tape."""
        self.copy_arena(builder, self.mark, self.arena)
        way = builder.extract_value(self.taped(builder, start, end), 0, T.I64)
        used: Value = ConstantInt(T.I64, 0)
        if measure:
            used = builder.call(self.runtime.arena("used"), [self.arena, self.mark])
        builder.call(self.runtime.arena("reset"), [self.arena, self.mark])
        return way, used

    def untaped(self, builder: Builder, start: Value, end: Value) -> Value:
        """Runs a segment, moving shadow pointers along where the state has any: the way out."""
        if self.state.follows_pointers:
            return self.dropped(builder, start, end, measure=False)[0]
        return builder.call(self.segment.primal, [start, end, *self.arguments])

    def copy_arena(self, builder: Builder, to: Value, source: Value) -> None:
        """Word by word: they are pointers, and higher derivatives want to see that."""
        for offset in (0, 8, 16):
            builder.store(builder.load(T.PTR, builder.offset(source, offset)), builder.offset(to, offset))


@dataclass(frozen=True, eq=False)
class _Ends:
    """Where the forward sweep comes to, and what it knows there."""

    block: BasicBlock
    way: Value
    record: Value
    end: Value
    least: Value


class _Forward:
    """The loop over segments of the forward sweep."""

    def __init__(self, run: _Run, size: Value) -> None:
        self._run = run
        self._size = size

    def emit(self, target: Function, entry: BasicBlock) -> _Ends:
        length = self._run.schedule.length
        over, leave = BasicBlock(name="over"), BasicBlock(name="leave")
        Builder(entry).br(over)
        target.blocks = [entry, over]
        builder = Builder(over)
        start = builder.phi(T.I64, [(ConstantInt(T.I64, 0), entry)])
        before = builder.phi(T.PTR, [(ConstantNull(T.PTR), entry)])
        if length is not None:
            record = self._run.record(builder, before, start)
            end = builder.binary("add", start, ConstantInt(T.I64, length), ("nuw", "nsw"))
            way = self._run.untaped(builder, start, end)
            least: Value = ConstantInt(T.I64, _NEVER)
        else:
            record, end, way, least, builder = self._growing(target, builder, over, entry, start, before)
        for phi, value in ((start, end), (before, record)):
            phi.add(value, builder.block)
        builder.cond_br(builder.icmp("eq", way, ConstantInt(T.I64, 0)), over, leave)
        target.blocks.append(leave)
        last = Builder(leave)
        way, record, end, least = (last.phi(v.type, [(v, builder.block)]) for v in (way, record, end, least))
        return _Ends(leave, way, record, end, least)

    def _growing(
        self,
        target: Function,
        builder: Builder,
        over: BasicBlock,
        entry: BasicBlock,
        start: Value,
        before: Value,
    ) -> tuple[Value, Value, Value, Value, Builder]:
        """Segments whose length follows what there is of records and tape."""
        run = self._run
        names = ("full", "fewer", "more", "take", "first", "others", "ran")
        full, fewer, more, take, first, others, ran = (BasicBlock(name=name) for name in names)
        most = _RECORDS_OF_HALVES if run.schedule.halves else _RECORDS
        one, none = ConstantInt(T.I64, 1), ConstantInt(T.I64, 0)
        length, count = builder.phi(T.I64, [(one, entry)]), builder.phi(T.I64, [(none, entry)])
        limit = builder.phi(T.I64, [(ConstantInt(T.I64, most), entry)])
        weight = builder.phi(T.I64, [(one, entry)])
        builder.cond_br(builder.icmp("ult", count, limit), take, full)
        builder = Builder(full)
        states = builder.binary("mul", limit, self._size)
        tape = builder.binary("mul", length, weight)
        thin: Value = ConstantInt(T.I1, 1) if run.schedule.halves else builder.icmp("ult", tape, states)
        builder.cond_br(thin, fewer, more)
        builder = Builder(fewer)
        left = run.thin(builder, before)
        longer = builder.binary("shl", length, one)
        half = builder.binary("lshr", count, one)
        builder.br(take)
        builder = Builder(more)
        doubled = builder.binary("shl", limit, one)
        builder.br(take)
        builder = Builder(take)
        top = builder.phi(T.PTR, [(before, over), (left, fewer), (before, more)])
        kept = builder.phi(T.I64, [(count, over), (half, fewer), (count, more)])
        allowed = builder.phi(T.I64, [(limit, over), (limit, fewer), (doubled, more)])
        stride = builder.phi(T.I64, [(length, over), (longer, fewer), (length, more)])
        record = run.record(builder, top, start)
        end = builder.binary("add", start, stride, ("nuw", "nsw"))
        now = builder.binary("add", kept, one)
        builder.cond_br(builder.icmp("eq", start, none), first, others)
        builder = Builder(first)
        way_first, used = run.dropped(builder, start, end, measure=True)
        builder.br(ran)
        builder = Builder(others)
        way_others = run.untaped(builder, start, end)
        builder.br(ran)
        builder = Builder(ran)
        way = builder.phi(T.I64, [(way_first, first), (way_others, others)])
        measured = builder.phi(T.I64, [(used, first), (weight, others)])
        # A segment is short enough where its tape is no larger than the records are.
        least = builder.binary("udiv", builder.binary("mul", allowed, self._size), measured)
        least = builder.binary("add", least, one)
        for phi, value in ((length, stride), (count, now), (limit, allowed), (weight, measured)):
            phi.add(value, ran)
        target.blocks += [full, fewer, more, take, first, others, ran]
        return record, end, way, least, builder


class _Half:
    """Divides a segment that is too long to be taped: its first half runs again, untaped, to make a record where the
    second starts."""

    def __init__(self, run: _Run, record: Value, start: Value, bound: Value) -> None:
        self._run = run
        self._record, self._start, self._bound = record, start, bound

    def emit(self, builder: Builder, least: Value, over: BasicBlock, again: BasicBlock) -> list[BasicBlock]:
        """Goes on to `again` with a segment that is short enough, or back to `over`, whose first instructions are the
        phis of the record and the bound."""
        divide, deeper = BasicBlock(name="divide"), BasicBlock(name="deeper")
        distance = builder.binary("sub", self._bound, self._start)
        builder.cond_br(builder.icmp("ugt", distance, least), divide, again)
        builder = Builder(divide)
        half = builder.binary("lshr", distance, ConstantInt(T.I64, 1))
        middle = builder.binary("add", self._start, half)
        self._run.restore(builder, self._record)
        way = self._run.untaped(builder, self._start, middle)
        # The loop may have ended before: then the bound was too high, and nothing has been found but that.
        builder.cond_br(builder.icmp("eq", way, ConstantInt(T.I64, 0)), deeper, over)
        builder = Builder(deeper)
        fresh = self._run.record(builder, self._record, middle)
        builder.br(over)
        arriving = ((self._record, fresh, self._record), (self._bound, self._bound, middle))
        for phi, from_deeper, from_divide in arriving:
            phi.operands += [from_deeper, from_divide]  # type: ignore[attr-defined]
            phi.targets += [deeper, divide]  # type: ignore[attr-defined]
        return [divide, deeper]


_DROP = """
declare void @free(ptr)

define internal void @je.records.drop.BLOCKS(ptr %record) nounwind {
entry:
  %blocks = getelementptr inbounds i8, ptr %record, i64 16
  br label %test

test:
  %at = phi i64 [ 0, %entry ], [ %at.next, %one ]
  %more = icmp ult i64 %at, END
  br i1 %more, label %one, label %exit

one:
  %block.at = getelementptr inbounds i8, ptr %blocks, i64 %at
  %block = load ptr, ptr %block.at
  call void @free(ptr %block)
  %at.next = add nuw nsw i64 %at, 8
  br label %test

exit:
  call void @free(ptr %record)
  ret void
}
"""
_THIN = """
declare void @je.records.drop.BLOCKS(ptr)

define internal ptr @je.records.thin.BLOCKS(ptr %last) nounwind {
entry:
  %top = load ptr, ptr %last
  call void @je.records.drop.BLOCKS(ptr %last)
  br label %test

test:
  %kept = phi ptr [ %top, %entry ], [ %next, %drop ]
  %dropped = load ptr, ptr %kept
  %end = icmp eq ptr %dropped, null
  br i1 %end, label %exit, label %drop

drop:
  %next = load ptr, ptr %dropped
  store ptr %next, ptr %kept
  call void @je.records.drop.BLOCKS(ptr %dropped)
  br label %test

exit:
  ret ptr %top
}
"""
