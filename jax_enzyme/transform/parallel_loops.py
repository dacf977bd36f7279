"""Marked loops become calls that several threads may share: the last pass that looks at what a program is.

The outermost loops are taken whose iterations are independent by what is marked and proved
(`analysis.independence`) and that are worth it; the rest stays as it is. Loops that only write what is their own are
shared as those over blocks are (`transform.shared_loops`). Where iterations add up, the loop is cut into ranges, as
many for any number of threads, and each range adds to numbers and copies of its own, which are added in order behind:

    before    %s = phi double [ %start, %entry ], [ %next, %loop ]       after    range r: sum from -0.0 -> %slots[r]
              %next = fadd double %s, %a                                          %start + %slots[0] + %slots[1] + ...

so that results are the same to the last bit for one thread and for many. Where iterations add to places that they
share with those next to them alone, as stencils do in reverse, no copies are needed: ranges are longer than that, and
all even ones are run before all odd ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from jax_enzyme.analysis.accumulation import Chain, says_any
from jax_enzyme.analysis.independence import Independence, Independent
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.clone import Cloner, clone
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.marks import Mark, has_marks, marks_of
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.named_choices import note_choices
from jax_enzyme.transform.shared_loops import RUN, Sharing, stretch_arguments, structure, take_team

WORTH = 20_000
"""A loop that executes fewer instructions than this takes less than the 20 microseconds that threads are worth."""
_RANGES, _FEWEST, _MOST_COPIES = 64, 4, 16
_COPYING = 64
"""So many instructions of the loop there should be for each number in a copy, which has to be cleared and added."""
_SLOT, _CELL = 64, 16
_ON_STACK = 1 << 14
_OUT_OF_MEMORY = 2 << 32


def share_marked_loops(function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
    """The array function with its marked loops shared, and with a team as its last parameter, in a copy of the module;
    the function itself where nothing is. Second, for every marked loop what was decided, with its line."""
    if not has_marks(function.module):
        return function, ()
    module = clone(function.module)
    root = module.functions[function.symbol]
    note_choices(module, root)
    facts = Independence(module, root)
    sizes: dict[Value, int] = {a: b.nbytes for a, b in zip(root.arguments, function.buffers, strict=True)}
    team = Argument(T.PTR, (), len(root.arguments), name="team")
    choice = _Choice(module, facts, sizes)
    for loop in facts.loops.roots:
        choice.visit(loop)
    shared = False
    for share, ranges in choice.chosen:
        kind = Sharing(module, root, team, facts, share)
        if ranges is not None:
            kind = _InRanges(module, root, team, facts, share, ranges)
        shared |= kind.run()
    if not shared:
        return function, tuple(choice.verdicts)
    take_team(root, team)
    return replace(function, module=module), tuple(choice.verdicts)


@dataclass(frozen=True)
class _Ranges:
    """A loop is cut into `count` ranges of `length` iterations; `copies` are the bytes of what each adds to."""

    count: int
    length: int
    copies: Mapping[Value, int]


class _Choice:
    """Chooses the outermost loops that can be shared and are worth it."""

    def __init__(self, module: Module, facts: Independence, sizes: Mapping[Value, int]) -> None:
        self._module = module
        self._facts = facts
        self._sizes = sizes
        self._layout = DataLayout(module)
        self.chosen: list[tuple[Independent, _Ranges | None]] = []
        self.verdicts: list[str] = []

    def visit(self, loop: Loop) -> None:
        marks = marks_of(self._module, loop.latches[0].terminator) if len(loop.latches) == 1 else frozenset[Mark]()
        if marks:
            problem = self._choose(loop)
            which = "the reverse of " if Mark.REVERSED in marks else ""
            self.verdicts.append(f"{which}{self._place(loop)}: {problem or 'on several threads'}")
            if problem is None:
                return
        for child in loop.children:
            self.visit(child)

    def _choose(self, loop: Loop) -> str | None:
        """Why a loop stays on one thread."""
        share = self._facts.examine_marked(loop)
        if isinstance(share, str):
            return f"on one thread: {share}"
        work = self._facts.work(loop)
        if work < WORTH:
            return "on one thread: it takes less time than it would take to share it"
        ranges = None
        if share.sums or share.left or share.added or share.near:
            ranges = self._ranges(share, work)
            if isinstance(ranges, str):
                return f"on one thread: {ranges}"
        self.chosen.append((share, ranges))
        return None

    def _ranges(self, share: Independent, work: int) -> _Ranges | str:
        copies: dict[Value, int] = {}
        cells = 0
        for site, _ in share.added:
            size = self._size(site)
            if size is None:
                return "how much memory it adds to is not known beforehand"
            copies[site] = size
            cells += max(1, size // 8)
        wanted = min(_MOST_COPIES, work // (_COPYING * cells)) if cells else _RANGES
        if any(self._layout.store_size(v.type) > _CELL for v in share.left):
            return "it leaves a large value behind"
        length = max(-(-share.count // max(wanted, 1)), share.apart)
        grain = self._facts.grain(share.loop)
        length = -(-length // grain) * grain
        count = -(-share.count // length)
        if share.near and count < 2 * _FEWEST:
            return "too many iterations add to the same places"
        if wanted < _FEWEST or count < 2:
            return "copies of the memory that it adds to would cost more" if cells else "it has few iterations"
        return _Ranges(count, length, copies)

    def _size(self, site: Value) -> int | None:
        match site:
            case Argument():
                return self._sizes.get(site)
            case I.Alloca():
                count = int_value(site.operands[0])
                return None if count is None else count * self._layout.alloc_size(site.allocated_type)
            case I.Call() if callee_name(site) in ("malloc", "calloc"):
                total = 1
                for value in site.arguments:
                    total *= int_value(value) or 0
                return total or None
            case _:
                return None

    def _place(self, loop: Loop) -> str:
        found = (location(self._module, i) for b in (loop.latches[0], loop.header) for i in reversed(b.instructions))
        return next((f for f in found if f is not None), "a loop")


class _InRanges(Sharing):
    """Takes a loop out of the root function whose iterations add up."""

    def __init__(
        self, module: Module, root: Function, team: Argument, facts: Independence, share: Independent, ranges: _Ranges
    ) -> None:
        super().__init__(module, root, team, facts, share)
        self._ranges = ranges
        latch = share.loop.latches[0]
        self._sums: dict[Value, Chain] = {}
        for sum_ in share.sums:
            assert isinstance(sum_.start, I.Phi)
            self._sums[next(v for v, b in sum_.start.incoming if b is latch)] = sum_
        self._kept = list(dict.fromkeys((*self._sums, *share.left)))
        size = -(-max(1, len(self._kept)) * _CELL // _SLOT) * _SLOT
        self._slot_size = size
        self._phases = 2 if share.near else 1

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
            neutral = _neutral(sum_)
            found[phi] = cloner.value(self._start(phi)) if neutral is None else neutral
        return found

    def _deliver(self, cloner: Cloner, at: Builder, results: list[Argument]) -> None:
        for number, value in enumerate(self._kept):
            at.store(cloner.value(value), at.offset(results[0], number * _CELL), _CELL)

    def _stretch(self, passed: list[Value], body: Function, name: str) -> Function:
        """Runs ranges, one after the other; the last field of the context leads to their results."""
        context, first, last = arguments = stretch_arguments()
        at = Builder(BasicBlock(name="entry"))
        kind = self._context(passed)
        given = [at.load(v.type, self._field(at, kind, context, n)) for n, v in enumerate(passed)]
        slots = at.load(T.PTR, self._field(at, kind, context, len(passed)))
        phase = at.load(T.I64, self._field(at, kind, context, len(passed) + 1))

        def run(at: Builder, counted: Value, _: Value) -> Value:
            values: list[Value] = list(given)
            number = at.binary("add", at.binary("mul", counted, const_int(T.I64, self._phases)), phase)
            for index, value in enumerate(passed):
                size = self._ranges.copies.get(value)
                if size is not None:
                    own = at.gep(T.I8, values[index], [at.binary("mul", number, const_int(T.I64, size))])
                    Declarations(self._module).memory(at, "memset", own, const_int(T.I8, 0), const_int(T.I64, size))
                    values[index] = own
            low = at.binary("mul", number, const_int(T.I64, self._ranges.length))
            behind = at.binary("add", low, const_int(T.I64, self._ranges.length))
            whole = const_int(T.I64, self._share.count)
            high = at.select(at.icmp("ult", behind, whole), behind, whole)
            slot = at.gep(T.I8, slots, [at.binary("mul", number, const_int(T.I64, self._slot_size))])
            return at.call(body, [*values, low, high, slot])

        return self._define(name, arguments, self._in_turn(at, first, last, 1, run))

    @staticmethod
    def _context(passed: list[Value]) -> T.StructType:
        return structure([*passed, ConstantNull(T.PTR), const_int(T.I64, 0)])

    # -- the call

    def _call(self, passed: list[Value], body: Function, stretch: Function) -> None:
        loop = self._share.loop
        before = loop.preheader
        assert before is not None
        ready, alone, together, after = (BasicBlock(name=n) for n in ("ready", "alone", "together", "after"))
        at = Builder(before)
        del before.instructions[-1]
        context = self._local(self._context(passed), 16)
        slots = self._local(T.ArrayType(self._ranges.count * self._slot_size, T.I8), _SLOT)
        blocks = [ready, alone, together, after]
        copies = self._copies(at, blocks)
        at.br(ready)
        at = Builder(ready)
        kind = self._context(passed)
        for number, value in enumerate([*passed, slots]):
            at.store(copies.get(value, value), self._field(at, kind, context, number))
        at.cond_br(at.icmp("eq", self._team, ConstantNull(T.PTR)), alone, together)
        single, shared = Builder(alone), Builder(together)
        run = shared.load(T.PTR, self._team, 8)
        by_one = by_all = const_int(T.I64, 0)
        for phase in range(self._phases):  # a loop with two has no other way out
            count = const_int(T.I64, -(-(self._ranges.count - phase) // self._phases))
            for branch in (single, shared):
                branch.store(const_int(T.I64, phase), self._field(branch, kind, context, len(passed) + 1))
            by_one = single.call(stretch, [context, const_int(T.I64, 0), count])
            by_all = shared.call(run, [self._team, stretch, context, count, const_int(T.I64, 1)], RUN)
        single.br(after)
        shared.br(after)
        at = Builder(after)
        way = at.phi(T.I64, [(by_one, alone), (by_all, together)])
        self._replace(self._joined(at, slots))
        tail = self._add_copies(at, copies, blocks)
        self._leave(tail, way, blocks)

    def _local(self, type_: T.Type, align: int) -> Value:
        memory = I.Alloca(T.PTR, "alloca", [const_int(T.I32, 1)], type_, align)
        self._root.entry.instructions.insert(0, memory)
        return memory

    def _copies(self, at: Builder, blocks: list[BasicBlock]) -> dict[Value, Value]:
        """Memory for what every range adds to, by what it is a copy of."""
        found: dict[Value, Value] = {}
        for site, size in self._ranges.copies.items():
            total = size * self._ranges.count
            if total <= _ON_STACK:
                found[site] = self._local(T.ArrayType(total, T.I8), _SLOT)
                continue
            found[site] = memory = Declarations(self._module).memory(at, "malloc", const_int(T.I64, total))
            failed, there = BasicBlock(name="exhausted"), BasicBlock(name="there")
            at.cond_br(at.icmp("eq", memory, ConstantNull(T.PTR)), failed, there)
            end = Builder(failed)
            self._free(end, {s: m for s, m in found.items() if s is not site})
            end.ret(const_int(T.I64, _OUT_OF_MEMORY))
            blocks[0:0] = [failed, there]
            at.block = there
        return found

    def _free(self, at: Builder, copies: Mapping[Value, Value]) -> None:
        for memory in copies.values():
            if isinstance(memory, I.Call):
                Declarations(self._module).memory(at, "free", memory)

    def _joined(self, at: Builder, slots: Value) -> dict[Value, Value]:
        """What the loop leaves behind: sums of those of ranges, in order, and what the last range leaves."""
        last, sums = self._ranges.count - 1, list(self._sums.values())
        found = {v: self._result(at, slots, last, n, v.type) for n, v in enumerate(self._kept) if v not in self._sums}
        totals: dict[Value, Value] = {s.start: self._start(s.start) for s in sums if isinstance(s.start, I.Phi)}
        for index in range(self._ranges.count):
            parts = {s.start: self._result(at, slots, index, n, s.start.type) for n, s in enumerate(sums)}
            totals |= {s.start: _join(at, s, sums, totals, parts) for s in sums}
        return found | {value: totals[s.start] for value, s in self._sums.items()}

    def _result(self, at: Builder, slots: Value, index: int, number: int, type_: T.Type) -> Value:
        return at.load(type_, at.offset(slots, index * self._slot_size + number * _CELL), _CELL)

    def _replace(self, replaced: Mapping[Value, Value]) -> None:
        for block in self._root.blocks:
            if block not in self._share.loop:
                for instruction in block.instructions:
                    instruction.operands[:] = [replaced.get(v, v) for v in instruction.operands]

    def _add_copies(self, at: Builder, copies: Mapping[Value, Value], blocks: list[BasicBlock]) -> Builder:
        """Adds the copies to what they are copies of, in the order of the ranges."""
        types = dict(self._share.added)
        for site, memory in copies.items():
            type_, size = types[site], self._ranges.copies[site]
            each = DataLayout(self._module).store_size(type_)
            loop, behind = BasicBlock(name="adding"), BasicBlock(name="added")
            before = at.block
            at.br(loop)
            at = Builder(loop)
            index = at.phi(T.I64, [(const_int(T.I64, 0), before)])
            place = at.gep(type_, site, [index])
            total = at.load(type_, place, each)
            for number in range(self._ranges.count):
                total = at.binary(
                    "fadd", total, at.load(type_, at.gep(type_, at.offset(memory, number * size), [index]), each)
                )
            at.store(total, place, each)
            at.count_on(index, loop, const_int(T.I64, size // each), behind)
            blocks += [loop, behind]
            at = Builder(behind)
        self._free(at, copies)
        return at


def _neutral(sum_: Chain) -> Value | None:
    """What changes nothing where it is joined; None where a part may begin with what the whole begins with."""
    type_ = sum_.start.type
    match sum_.kind:
        case "fadd":
            return const_float(type_, -0.0)
        case "fmul":
            return const_float(type_, 1.0)
        case "add" | "xor":
            return const_int(type_, 0)
        case "mul":
            return const_int(type_, 1)
        case _:
            return None


def _join(
    at: Builder, sum_: Chain, sums: Iterable[Chain], totals: Mapping[Value, Value], parts: Mapping[Value, Value]
) -> Value:
    """Two parts of a sum as one, of all `sums` by what they start with."""
    total, part = totals[sum_.start], parts[sum_.start]
    match sum_.sample:
        case I.Select() as chosen:
            leader = sum_.leader or sum_
            any_ = next((s for s in sums if s.leader is leader and says_any(s)), None)
            compared = leader.sample.operands[0]
            assert isinstance(compared, I.Compare)
            both = (totals[leader.start], parts[leader.start])
            holds = at.insert(_compare(compared, *(both[o not in leader.steps] for o in compared.operands)))
            if any_ is not None:
                stays = leader.sample.operands[1] in leader.steps
                chosen_any = at.icmp("eq" if stays else "ne", parts[any_.start], const_int(any_.start.type, 0))
                holds = at.binary("or" if stays else "and", holds, chosen_any)
            return at.select(holds, *(total if o in sum_.steps else part for o in chosen.operands[1:]))
        case I.Call() as call if sum_.kind != "fadd":
            return at.call(call.callee, [total, part], call.function_type)
        case _:
            return at.binary(sum_.kind, total, part)


def _compare(compared: I.Compare, left: Value, right: Value) -> I.Compare:
    """A comparison of other values by the same predicate."""
    return I.Compare(compared.type, compared.opcode, [left, right], compared.predicate, flags=compared.flags)
