"""Loops whose iterations add up, cut into ranges: as many for any number of threads.

    before    %s = phi double [ %start, %entry ], [ %next, %loop ]       after    range r: sum from -0.0 -> %slots[r]
              %next = fadd double %s, %a                                          %start + %slots[0] + %slots[1] + ...

Each range adds to numbers of its own, and to memory in one of three ways:

- *copies*: each range but the first has its own of what is added to, where that is small beside the work; threads
  add them to the original behind, part by part, in the order of the ranges,
- *near*: iterations add to places that only those next to them add to, as stencils do in reverse. Ranges are longer
  than that; all even ones are run before all odd ones, without copies,
- *marked*: where iterations add depends on data, or they do more than to add, in any order. Before the loop, each range
  notes which pages it will touch (`transform.touched_pages`). Where no two even and no two odd ones touch the same,
  it goes on as above; else one thread runs the even ranges, then the odd ones.

So results are the same to the last bit for one thread and for many. One thread alone notes nothing. Memory for a tape
comes from an arena for each range, and those become parts of the caller's behind the loop.

Where only the run knows how many iterations there are, it knows how long a range is: some of the last may be empty, and
leave what changes nothing. A loop with too few iterations to be cut is one range, which adds in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jax_enzyme.analysis.accumulation import Chain
from jax_enzyme.analysis.independence import Independence, Independent
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.helpers import JOIN
from jax_enzyme.transform.combining import join, neutral
from jax_enzyme.transform.failure_sites import OUT_OF_MEMORY
from jax_enzyme.transform.rewriting import local, replace_operands
from jax_enzyme.transform.shared_loops import RUN, WORTH, Sharing, stretch_arguments, structure
from jax_enzyme.transform.touched_pages import Pages, conflict, mark_pages

FEW = 16
"""So few ranges are long: all threads may begin at once."""
_EACH_IS_LONG = (1 << 63) - 1
"""As in `csrc/abi.h`."""
_ADDED = 64
"""The elements of copies that are added in one go are a multiple of this."""
CELL = 64
_ON_STACK = 1 << 14
_ARENA = 24


@dataclass(frozen=True)
class Ranges:
    """A loop is cut into `count` ranges of `length` iterations. `copies` are the bytes of what each adds to, the first
    one in place; `marked` those of what ranges add to where data decide. Where only the run knows how many iterations
    there are, `length` is the least, which is made a multiple of `grain` where it is longer than that; and a loop with
    less than `enough` iterations is not cut."""

    count: int
    length: int
    copies: Mapping[Value, int]
    marked: Mapping[Value, int]
    grain: int = 1
    enough: int = 0


class InRanges(Sharing):
    """Takes a loop out of the root function whose iterations add up."""

    def __init__(
        self, module: Module, root: Function, team: Argument, facts: Independence, share: Independent, ranges: Ranges
    ) -> None:
        super().__init__(module, root, team, facts, share)
        self._ranges = ranges
        self._types = {site: type_ for site, type_ in share.added if type_ is not None}
        latch = share.loop.latches[0]
        self._sums: dict[Value, Chain] = {}
        for sum_ in share.sums:
            assert isinstance(sum_.start, I.Phi)
            self._sums[next(v for v, b in sum_.start.incoming if b is latch)] = sum_
        self._kept = list(dict.fromkeys((*self._sums, *share.left)))
        self._slot_size = max(1, len(self._kept)) * CELL
        self._phases = 2 if share.near or ranges.marked else 1
        self._pages = Pages(ranges.marked)
        self._delivers = True
        self._is_open = share.length is not None

    def _named(self) -> Iterable[Value]:
        return self._ranges.marked

    @property
    def _arena_bytes(self) -> int:
        return self._ranges.count * _ARENA

    # -- a range

    def _piece(self) -> int:
        return 1  # ranges are the same for any number of threads

    def _results(self, number: int) -> list[Argument]:
        return [Argument(T.PTR, ("noalias",), number, name="results")]

    def _sum_starts(self, cloner: Cloner) -> dict[I.Phi, Value]:
        found: dict[I.Phi, Value] = {}
        for sum_ in self._sums.values():
            phi = sum_.start
            assert isinstance(phi, I.Phi)
            found[phi] = cloner.value(self._first(sum_))
        return found

    def _first(self, sum_: Chain) -> Value:
        """What the sum of a range begins with, and what an empty one leaves."""
        assert isinstance(sum_.start, I.Phi)
        known = neutral(sum_)
        return self._start(sum_.start) if known is None else known

    def _deliver(self, cloner: Cloner, at: Builder, results: list[Argument]) -> None:
        for number, value in enumerate(self._kept if self._delivers else ()):
            at.store(cloner.value(value), at.offset(results[0], number * CELL), CELL)

    def _stretch(self, passed: list[Value], body: Function, name: str) -> Function:
        """Runs ranges, one after the other."""
        context, first, last = arguments = stretch_arguments()
        at = Builder(BasicBlock(name="entry"))
        given, (slots, _, phase, length, whole, *rest) = self._loaded(at, passed, context)
        body = self._unless_empty(body)
        copies, arenas = rest[: len(self._ranges.copies)], rest[len(self._ranges.copies) :]

        def run(at: Builder, counted: Value, _: Value) -> Value:
            values: list[Value] = list(given)
            number = at.binary("add", at.binary("mul", counted, const_int(T.I64, self._phases)), phase)
            is_first = at.icmp("eq", number, const_int(T.I64, 0))
            for (site, size), memory in zip(self._ranges.copies.items(), copies, strict=True):
                before = at.binary("sub", number, const_int(T.I64, 1))
                own = at.gep(T.I8, memory, [at.binary("mul", before, const_int(T.I64, size))])
                index = passed.index(site)
                values[index] = own = at.select(is_first, given[index], own)
                cleared = at.select(is_first, const_int(T.I64, 0), const_int(T.I64, size))
                Declarations(self._module).memory(at, "memset", own, const_int(T.I8, 0), cleared)
            for arena, memory in zip(self._share.arenas, arenas, strict=True):
                values[passed.index(arena)] = at.gep(T.ArrayType(_ARENA, T.I8), memory, [number])
            slot = at.gep(T.I8, slots, [at.binary("mul", number, const_int(T.I64, self._slot_size))])
            return at.call(body, [*values, *self._bounds(at, number, length, whole), slot])

        return self._define(name, arguments, self._in_turn(at, first, last, 1, run))

    @staticmethod
    def _bounds(at: Builder, number: Value, length: Value, whole: Value) -> list[Value]:
        """The iterations of a range."""
        low = at.binary("mul", number, length)
        behind = at.binary("add", low, length)
        return [low, at.least(behind, whole)]

    def _unless_empty(self, body: Function) -> Function:
        """A function that runs `body` if it is given any iteration; the function itself where it always is."""
        if not self._is_open:
            return body
        arguments = [Argument(a.type, (), a.index, name=a.name) for a in body.arguments]
        entry, some, none = (BasicBlock(name=n) for n in ("entry", "some", "none"))
        at = Builder(entry)
        at.cond_br(at.icmp("ult", *arguments[-3:-1]), some, none)
        at = Builder(some)
        at.ret(at.call(body, arguments))
        Builder(none).ret(const_int(T.I64, 0))
        return self._define(f"{body.name}.some", arguments, [entry, some, none])

    def _range_length(self, at: Builder, count: Value) -> Value:
        """How many iterations a range has."""
        known = self._ranges
        if not self._is_open:
            return const_int(T.I64, known.length)

        def times(value: Value, number: int) -> Value:
            """How many times so many are needed for a value."""
            more = at.binary("add", value, const_int(T.I64, number - 1))
            return at.binary("udiv", more, const_int(T.I64, number))

        share, least = times(count, known.count), const_int(T.I64, known.length)
        length = at.select(at.icmp("ult", share, least), least, share)
        if known.grain > 1:
            rounded = at.binary("mul", times(length, known.grain), const_int(T.I64, known.grain))
            length = at.select(at.icmp("ult", length, const_int(T.I64, known.grain)), length, rounded)
        return length

    def _context(self, passed: list[Value]) -> T.StructType:
        """What the loop needs; then where results and marks are, the phase, how many iterations a range has, and the
        loop; and where copies and arenas are."""
        null, number = ConstantNull(T.PTR), const_int(T.I64, 0)
        more = len(self._ranges.copies) + len(self._share.arenas)
        return structure([*passed, null, null, number, number, number, *([null] * more)])

    def _loaded(self, at: Builder, passed: list[Value], context: Value) -> tuple[list[Value], list[Value]]:
        """The fields of a context: what the loop needs, and the others."""
        kind = self._context(passed)
        found: list[Value] = [at.load(t, at.field(kind, context, n)) for n, t in enumerate(kind.elements)]
        return found[: len(passed)], found[len(passed) :]

    # -- what ranges will touch

    def _marking(self, passed: list[Value], name: str) -> Function:
        """Marks the pages that ranges will touch."""
        self._delivers = False
        body, cloner = self._body(passed, f"{name}.body")
        self._delivers = True
        marked = self._facts.telling(self._share, self._ranges.marked)
        assert marked is not None
        mark_pages(self._pages, self._blocks, cloner, *marked, body.arguments[-1])
        body = self._unless_empty(body)
        context, first, last = arguments = stretch_arguments()
        at = Builder(BasicBlock(name="entry"))
        given, (_, marks, _, length, whole, *_) = self._loaded(at, passed, context)

        def run(at: Builder, number: Value, _: Value) -> Value:
            own = at.gep(T.I8, marks, [at.binary("mul", number, const_int(T.I64, self._pages.count))])
            return at.call(body, [*given, *self._bounds(at, number, length, whole), own])

        return self._define(name, arguments, self._in_turn(at, first, last, 1, run))

    def _look(self, at: Builder, marking: Function, context: Value, marks: Value, run: Value) -> Value:
        """Whether ranges of one phase touch the same pages; ranges are looked at by several threads."""
        size, count = self._pages.count * self._ranges.count, const_int(T.I64, self._ranges.count)
        Declarations(self._module).memory(at, "memset", marks, const_int(T.I8, 0), const_int(T.I64, size))
        at.call(run, [self._team, marking, context, count, const_int(T.I64, _EACH_IS_LONG)], RUN)
        parameter = Argument(T.PTR, ("noalias", "readonly"), 0)
        blocks = conflict(parameter, self._pages.count, self._ranges.count)
        function = self._define(f"{marking.name}.conflict", [parameter], blocks)
        return at.icmp("ne", at.call(function, [marks]), const_int(T.I64, 0))

    # -- what ranges added to copies

    def _adding(self, passed: list[Value], site: Value, name: str) -> Function:
        """Adds the copies of an object to some of its elements, in the order of the ranges."""
        context, first, last = arguments = stretch_arguments()
        at = Builder(BasicBlock(name="entry"))
        given, (_, _, _, _, _, *copies) = self._loaded(at, passed, context)
        place = given[passed.index(site)]
        memory = copies[list(self._ranges.copies).index(site)]  # arenas come behind all of them
        parameters = [Argument(T.PTR, ("noalias",), n) for n in range(2)]
        bounds = [Argument(T.I64, (), n, name=w) for n, w in enumerate(("first", "last"), 2)]
        body = self._define(f"{name}.body", [*parameters, *bounds], self._add_elements(site, *parameters, *bounds))
        at.ret(at.call(body, [place, memory, first, last]))
        return self._define(name, arguments, [at.block])

    def _add_elements(self, site: Value, place: Value, memory: Value, first: Value, last: Value) -> list[BasicBlock]:
        type_, size = self._types[site], self._ranges.copies[site]
        entry, each, end = (BasicBlock(name=n) for n in ("entry", "each", "end"))
        at, index = Builder(entry).enter(each, first)
        bytes_ = DataLayout(self._module).store_size(type_)
        element = at.gep(type_, place, [index])
        total = at.load(type_, element, bytes_)
        for number in range(self._ranges.count - 1):
            part = at.load(type_, at.gep(type_, at.offset(memory, number * size), [index]), bytes_)
            total = at.binary("fadd" if isinstance(type_, T.FloatType) else "add", total, part)
        at.store(total, element, bytes_)
        at.count_on(index, each, last, end)
        Builder(end).ret(const_int(T.I64, 0))
        return [entry, each, end]

    # -- the call

    def _call(self, passed: list[Value], body: Function, stretch: Function) -> None:
        loop = self._share.loop
        before = loop.front
        ready, alone, looking, together, after = (
            BasicBlock(name=n) for n in ("ready", "alone", "looking", "together", "after")
        )
        at = Builder(before)
        del before.instructions[-1]
        context = local(self._root, self._context(passed), 16)
        slots = local(self._root, T.ArrayType(self._ranges.count * self._slot_size, T.I8), CELL)
        blocks = [ready, alone, looking, together, after]
        count = self._length(at)
        self._name_counted(at, count)
        length = self._range_length(at, count)
        ways: list[tuple[Value, BasicBlock]] = []
        last: Value = const_int(T.I64, self._ranges.count - 1)
        if self._is_open:
            whole, cut = BasicBlock(name="whole"), BasicBlock(name="cut")
            blocks = [whole, cut, *blocks]
            self._leave_nothing(at, slots)
            few = at.icmp("ult", count, const_int(T.I64, self._ranges.enough))
            before_last = at.binary("sub", count, const_int(T.I64, 1))
            last = at.select(few, const_int(T.I64, 0), at.binary("udiv", before_last, length))
            at.cond_br(few, whole, cut)
            ways.append((Builder(whole).call(body, [*passed, const_int(T.I64, 0), count, slots]), whole))
            at = Builder(cut)
        sizes = [size * (self._ranges.count - 1) for size in self._ranges.copies.values()]
        marks, *copies = self._memory(at, [self._pages.count * self._ranges.count, *sizes], blocks)
        arenas = [local(self._root, T.ArrayType(self._arena_bytes, T.I8), 16) for _ in self._share.arenas]
        at.br(ready)
        at = Builder(ready)
        kind = self._context(passed)
        fields = [*passed, slots, marks, const_int(T.I64, 0), length, count, *copies, *arenas]
        for number, value in enumerate(fields):
            at.store(value, at.field(kind, context, number))
        for own in arenas:
            whole = const_int(T.I64, self._arena_bytes)
            Declarations(self._module).memory(at, "memset", own, const_int(T.I8, 0), whole)
        at.cond_br(at.icmp("eq", self._team, ConstantNull(T.PTR)), alone, looking)
        single, shared = Builder(alone), Builder(looking)
        run = shared.load(T.PTR, self._team, 8)
        if self._ranges.marked:
            conflict = self._look(shared, self._marking(passed, f"{stretch.name}.marks"), context, marks, run)
            shared.cond_br(conflict, alone, together)
        else:
            shared.br(together)
        shared = Builder(together)
        grain = const_int(T.I64, _EACH_IS_LONG if self._ranges.count <= FEW else 1)
        by_one = by_all = const_int(T.I64, 0)
        for phase in range(self._phases):  # a loop with two has no other way out
            number = const_int(T.I64, -(-(self._ranges.count - phase) // self._phases))
            for branch in (single, shared):
                branch.store(const_int(T.I64, phase), branch.field(kind, context, len(passed) + 2))
            by_one = single.call(stretch, [context, const_int(T.I64, 0), number])
            by_all = shared.call(run, [self._team, stretch, context, number, grain], RUN)
        for number, (site, size) in enumerate(self._ranges.copies.items()):
            adding = self._adding(passed, site, f"{stretch.name}.sum.{number}")
            elements = size // DataLayout(self._module).store_size(self._types[site])
            all_ = const_int(T.I64, elements)
            single.call(adding, [context, const_int(T.I64, 0), all_])
            if elements * self._ranges.count < WORTH:
                shared.call(adding, [context, const_int(T.I64, 0), all_])
            else:
                shared.call(run, [self._team, adding, context, all_, const_int(T.I64, _ADDED)], RUN)
        single.br(after)
        shared.br(after)
        at = Builder(after)
        way = at.phi(T.I64, [(by_one, alone), (by_all, together)])
        self._free([marks, *copies], at)
        for arena, own in zip(self._share.arenas, arenas, strict=True):
            given = [arena, own, const_int(T.I64, self._ranges.count)]
            Declarations(self._module).invoke(at, JOIN, T.VOID, given)
        if ways:
            behind = BasicBlock(name="behind")
            blocks.append(behind)
            ways.append((way, after))
            for _, source in ways:
                Builder(source).br(behind)
            at = Builder(behind)
            way = at.phi(T.I64, ways)
        outside = (i for b in self._root.blocks if b not in loop for i in b.instructions)
        replace_operands(outside, self._joined(at, slots, last))
        self._leave(at, way, blocks)

    def _leave_nothing(self, at: Builder, slots: Value) -> None:
        """Puts what changes nothing in the place of what each range will leave."""
        for index in range(self._ranges.count):
            for number, sum_ in enumerate(self._sums.values()):
                at.store(self._first(sum_), at.offset(slots, index * self._slot_size + number * CELL), CELL)

    def _memory(self, at: Builder, sizes: Iterable[int], blocks: list[BasicBlock]) -> list[Value]:
        """Memory of so many bytes each."""
        found: list[Value] = []
        for size in sizes:
            if size <= _ON_STACK:
                found.append(local(self._root, T.ArrayType(size, T.I8), CELL))
                continue
            memory = Declarations(self._module).memory(at, "malloc", const_int(T.I64, size))
            failed, there = BasicBlock(name="exhausted"), BasicBlock(name="there")
            at.cond_br(at.icmp("eq", memory, ConstantNull(T.PTR)), failed, there)
            end = Builder(failed)
            self._free(found, end)
            end.ret(const_int(T.I64, OUT_OF_MEMORY << 32))
            blocks[0:0] = [failed, there]
            at.block = there
            found.append(memory)
        return found

    def _free(self, memory: Iterable[Value], at: Builder) -> None:
        for allocated in memory:
            if isinstance(allocated, I.Call):
                Declarations(self._module).memory(at, "free", allocated)

    def _joined(self, at: Builder, slots: Value, last: Value) -> dict[Value, Value]:
        """What the loop leaves behind: sums of those of ranges, in order, and what the last range that is not empty
        leaves."""
        sums = list(self._sums.values())
        left = at.gep(T.I8, slots, [at.binary("mul", last, const_int(T.I64, self._slot_size))])
        found = {v: self._result(at, left, 0, n, v.type) for n, v in enumerate(self._kept) if v not in self._sums}
        totals: dict[Value, Value] = {s.start: self._start(s.start) for s in sums if isinstance(s.start, I.Phi)}
        for index in range(self._ranges.count):
            parts = {s.start: self._result(at, slots, index, n, s.start.type) for n, s in enumerate(sums)}
            totals |= {s.start: join(at, s, sums, totals, parts) for s in sums if s.only is None}
            totals |= {s.start: parts[s.start] for s in sums if s.only is not None and self._has(index, s.only)}
        return found | {value: totals[s.start] for value, s in self._sums.items()}

    def _has(self, index: int, iteration: int) -> bool:
        """Whether an iteration is in a range, where it is known how many there are."""
        return iteration // self._ranges.length == index

    def _result(self, at: Builder, slots: Value, index: int, number: int, type_: T.Type) -> Value:
        return at.load(type_, at.offset(slots, index * self._slot_size + number * CELL), CELL)
