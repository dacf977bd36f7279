"""Worksharing loops with reductions that the program declares become loops over ranges of their iterations.

    before    best = omp_initializer()                        a thread's own
              for i = first .. last: best = better(best, x[i])
              __kmpc_reduce_nowait(..., &best, combine)

    after     best = none = omp_initializer()
              for r < count:                                  marked as well
                best = none
                for i in range r: best = better(best, x[i])
                part[r] = best
              best = part[0]
              for 0 < r < count: combine(&best, &part[r])
              __kmpc_reduce_nowait(..., &best, combine)

That is what a team of so many threads does, which OpenMP allows: what the program declares says how parts are joined,
and that nobody could tell from the loop. Of two that are `none` some programs make NaN: a single range is joined with
nothing, and neither is what no iteration wrote to (`touched`). Each range has its own number, record or array, in
derivatives too; of each scalar in a record the parts are an array, so that what does not vary lies by itself. Loops are
those of clang, before anything is optimised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.marks import Marks, mark
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, callee_of, declare, used_at, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.effects import SECTION
from jax_enzyme.transform.openmp.calls import REDUCE, calls_of
from jax_enzyme.transform.openmp.counted import count_in_memory
from jax_enzyme.transform.openmp.long_parts import LongParts, is_apart, is_long
from jax_enzyme.transform.openmp.sharing import Worksharing, catches, loop_behind
from jax_enzyme.transform.openmp.touched import FLAG, is_plain, tell_writes
from jax_enzyme.transform.rewriting import local, locate, redirect_phis, replace_operands

_DECLARED = ".omp_combiner."
_OF_FLANG = ".omp.reduction.func"
_COUNT = "je_most_ranges"
_RANGES, _FEWEST = 64, 16
"""The most ranges, which is what `je_most_ranges` says, and the iterations that each has at least where there are so
many."""
_MOST_SCALARS = 64
"""Of what a loop reduces: parts of more numbers would take longer to join than to make."""


@dataclass(frozen=True)
class _Reduced:
    """A loop that runs while its `counter` is not past `last`, compared as `sign` says (s or u), or before what is
    `behind_last`, and the variables of a
    thread's `own` that it reduces, with the function that joins two lists of them, and the `call` behind which a
    thread's own are joined with the program's if it says 1."""

    found: Worksharing
    before: BasicBlock
    behind: BasicBlock
    counter: I.Alloca
    last: I.Alloca
    sign: str
    behind_last: bool
    own: tuple[I.Alloca, ...]
    combine: Value
    call: I.CallBase


def cut_declared(module: Module, found: Worksharing, marks: Marks) -> None:
    """Makes ranges of a loop, in place, which get its `marks` as well, if it reduces anything as the program declares,
    and has the form that is known."""
    used = uses(found.function)
    layout = DataLayout(module)
    if not any(_is_declared(layout, call, used) for _, call in calls_of(found.function, REDUCE)):
        return
    if len(found.loop.latches) == 1 and count_in_memory(found.function, found.loop):
        loop = loop_behind(found.function, found.start)
        assert loop is not None
        found = replace(found, loop=loop)
    reduced = _reduced(module, found)
    if reduced is not None:
        _cut(module, reduced, marks)


def leave_whole(module: Module) -> None:
    """Has loops run as one range each, in place: whoever tells iterations apart counts those of the source."""
    known = module.functions.get(_COUNT)
    for block in known.blocks if known is not None else ():
        if isinstance(block.terminator, I.Return):
            block.terminator.operands = [const_int(T.I64, 1)]


def _reduced(module: Module, found: Worksharing) -> _Reduced | None:
    loop, function, layout = found.loop, found.function, DataLayout(module)
    used = uses(function)
    calls = [(block, call) for block, call in calls_of(function, REDUCE) if _is_declared(layout, call, used)]
    before, branch = loop.preheader, loop.header.terminator
    ends = [edge for edge in loop.exit_edges if not catches(edge[1])]
    if before is None or len(loop.latches) != 1 or len(ends) != 1 or ends[0][0] is not loop.header:
        return None
    if any(callee_name(i) == SECTION for b in loop.own_blocks for i in b.instructions):
        return None
    asked = _asked(branch.operands[0]) if isinstance(branch, I.CondBranch) and branch.targets[0] in loop else None
    if asked is None:
        return None
    counter, last, sign, behind_last = asked
    loops = Loops.of(function)
    inside = {i for block in loop.blocks for i in block.instructions}
    if any(isinstance(user, I.Store) and user in inside for user, _ in used[last]):
        return None
    beyond = _behind(found, ends[0][1])
    home = {i: block for i, (block, _) in loops.home.items()}
    for block, call in calls:
        own, combine = _own(call, used), call.arguments[5]
        is_behind = loops.dominators.dominates(found.start, block) and loops.loop_of.get(block) is loop.parent
        if not own or not is_behind or block in loop:
            continue
        long = [variable for variable in own if is_long(variable)]
        if not all(is_apart(variable, beyond, home, used) for variable in long):
            continue
        users = {home[user] for variable in long for user, _ in used[variable]}
        if not all(loops.dominators.dominates(found.start, user) for user in users & beyond):
            continue
        are_reduced = all(_is_reduced(loops, found.start, loop.blocks, call, used, variable) for variable in own)
        if are_reduced and _can_be_copied(layout, own):
            return _Reduced(found, before, ends[0][1], counter, last, sign, behind_last, own, combine, call)
    return None


def _behind(found: Worksharing, first: BasicBlock) -> frozenset[BasicBlock]:
    """The first block behind a loop, and those to which control comes from there before the construct begins again: by
    other ways as well, where a schedule asks first whether there is a chunk."""
    return frozenset(reached([first], lambda block: [b for b in block.successors if b is not found.start]))


def _asked(test: Value) -> tuple[I.Alloca, I.Alloca, str, bool] | None:
    """The counter of a loop that goes on while `counter <= last`, or `counter < last + 1`, its last number, and how
    they are compared, and whether in the second way."""
    match test:
        case I.Compare(
            predicate="sle" | "ule" as predicate,
            operands=[I.Load(operands=[I.Alloca() as counter]), I.Load(operands=[I.Alloca() as last])],
        ):
            pass
        case I.Compare(
            predicate="slt" | "ult" as predicate,
            operands=[
                I.Load(operands=[I.Alloca() as counter]),
                I.BinaryOp(opcode="add", operands=[I.Load(operands=[I.Alloca() as last]), one]),
            ],
        ) if int_value(one) == 1:
            pass
        case _:
            return None
    is_known = counter.allocated_type == last.allocated_type
    return (counter, last, predicate[0], predicate.endswith("lt")) if is_known else None


def _is_declared(layout: DataLayout, call: I.CallBase, used: Uses) -> bool:
    """Does a program's function join two, of clang's by its name, or are they records, or does an expression of
    Fortran's, whose `omp_in` and `omp_out` are variables? flang writes what is built in as one operation."""
    combine = call.arguments[5]
    if not isinstance(combine, Function):
        return False
    joins = [callee for callee in map(callee_of, combine.instructions()) if callee is not None]
    if any(callee.name.startswith(_DECLARED) for callee in joins):
        return True
    made = [i.allocated_type for i in combine.instructions() if isinstance(i, I.Alloca)]
    has_variables = any(not any(T.is_pointer(kind) for _, kind in layout.scalars(type_)) for type_ in made)
    records = any(isinstance(v.allocated_type, T.NamedStructType) for v in _own(call, used))
    is_declared = records or has_variables or any(callee.blocks for callee in joins)
    return combine.name.startswith(_OF_FLANG) and is_declared


def _own(call: I.CallBase, used: Uses) -> tuple[I.Alloca, ...]:
    """The variables in the list that a reduction is given, in which arrays have their length behind them; none where it
    has others."""
    listed = call.arguments[4]
    places = [u for u, _ in used.get(listed, ()) if isinstance(u, I.GetElementPtr)]
    stores = [u for p in (listed, *places) for u, n in used.get(p, ()) if isinstance(u, I.Store) and n == 1]
    found = tuple(dict.fromkeys(v for s in stores if isinstance(v := s.operands[0], I.Alloca)))
    lengths = [s for s in stores if isinstance(v := s.operands[0], I.Cast) and v.opcode == "inttoptr"]
    is_known = len(found) + len(lengths) == len(stores) and len(lengths) == sum(map(is_long, found))
    return found if is_known and len(found) == int_value(call.arguments[2]) else ()


def _is_reduced(
    loops: Loops, before: BasicBlock, inside: Set[BasicBlock], call: I.CallBase, used: Uses, variable: Value
) -> bool:
    """Is a variable what it was made as when the loop begins, once for each run of it, and joined behind?"""
    makes: set[I.Instruction] = set()
    reduction = loops.home[call][0]
    for user, index, _ in used_at(variable, used, (I.Phi,)):
        home = loops.home[user][0]
        is_listed = isinstance(user, I.Store) and index == 0 and I.base_of(user.operands[1]) is call.arguments[4]
        is_behind = home is not reduction and loops.dominators.dominates(reduction, home)
        is_told = isinstance(user, I.Compare) or callee_name(user).startswith("llvm.lifetime.")
        if home in inside or is_listed or is_behind or is_told:
            continue
        if isinstance(user, I.Store) and index == 0 and is_plain(user.operands[1], used):
            # A section of what a pointer leads to has a pointer of its own, from which the loop loads the address.
            loads = (u for u, _ in used[user.operands[1]] if isinstance(u, I.Load))
            if all(loops.home[load][0] in inside for load in loads):
                continue
        if not _is_passed(loops, home, before):
            return False
        makes.add(user)
    # It is written, and not read, or one call makes it.
    if any(isinstance(m, I.CallBase) for m in makes):
        return len(makes) == 1
    return bool(makes) and all(isinstance(m, I.Store) for m in makes)


def _is_passed(loops: Loops, block: BasicBlock, before: BasicBlock) -> bool:
    """Does control come by a block once, before it comes to the other one? Or by a loop, over the elements of an array,
    that begins once?"""
    around = loops.loop_of.get(before)
    loop = next((each for each in _around(loops, block) if each.parent is around), None)
    entries = [block] if loop is None else [b for b in loops.cfg.preds[loop.header] if b not in loop]
    beside = all(loops.loop_of.get(b) is around for b in entries)
    return beside and all(loops.dominators.dominates(b, before) for b in entries)


def _around(loops: Loops, block: BasicBlock) -> Iterable[Loop]:
    loop = loops.loop_of.get(block)
    return () if loop is None else loop.ancestors


def _can_be_copied(layout: DataLayout, variables: Sequence[I.Alloca]) -> bool:
    """Are they numbers alone, and few, as far as that is known? What a pointer leads to would be one for all ranges."""
    scalars: list[tuple[int, T.Type]] = []
    for variable in variables:
        is_one = int_value(variable.operands[0]) == 1 or is_long(variable)
        if not is_one or layout.alloc_size(variable.allocated_type) > 8 * _MOST_SCALARS:
            return False
        scalars += layout.scalars(variable.allocated_type)
    are_numbers = all(not T.is_pointer(kind) and at % layout.align(kind) == 0 for at, kind in scalars)
    return are_numbers and 0 < len(scalars) <= _MOST_SCALARS


@dataclass(frozen=True)
class _Parts:
    """Of the variables that a loop reduces each scalar (which variable, where in it, its type), the array that has one
    of each range, and variables for a range's that is joined with those before; `touched`, where it is not certain,
    tells whether iterations wrote to the variables, and `flags` whether those of each range did."""

    own: tuple[I.Alloca, ...]
    scalars: list[tuple[int, int, T.Type]]
    arrays: list[Value]
    piece: list[Value]
    touched: Value | None
    flags: Value | None
    long: LongParts

    @classmethod
    def of(
        cls, module: Module, function: Function, at: Builder, own: tuple[I.Alloca, ...], touched: Value | None
    ) -> _Parts:
        layout = DataLayout(module)
        short = [(n, v) for n, v in enumerate(own) if not is_long(v)]
        scalars = [(n, at, kind) for n, v in short for at, kind in layout.scalars(v.allocated_type)]
        arrays = [local(function, T.ArrayType(_RANGES, kind)) for _, _, kind in scalars]
        piece = [v if is_long(v) else local(function, v.allocated_type) for v in own]
        flags = None if touched is None else local(function, T.ArrayType(_RANGES, FLAG))
        return cls(own, scalars, arrays, piece, touched, flags, LongParts.of(module, at, own, _RANGES))

    def load(self, at: Builder, variables: Sequence[Value]) -> list[Value]:
        return [at.load(kind, place) for place, (_, _, kind) in zip(self._in(at, variables), self.scalars, strict=True)]

    def store(self, at: Builder, values: list[Value], variables: Sequence[Value]) -> None:
        for value, place in zip(values, self._in(at, variables), strict=True):
            at.store(value, place)

    def keep(self, at: Builder, number: Value) -> None:
        """The variables are the part of this range."""
        for value, place in zip(self.load(at, self.own), self._of(at, number), strict=True):
            at.store(value, place)
        self.long.keep(at, number)
        if self.touched is not None:
            at.store(at.load(FLAG, self.touched), self.flag(at, number))

    def flag(self, at: Builder, number: Value) -> Value:
        """Where it lies whether this range wrote anything."""
        assert self.flags is not None
        return at.gep(FLAG, self.flags, [number])

    def begin(self, at: Builder, none: list[Value]) -> None:
        """The variables hold nothing."""
        self.store(at, none, self.own)
        self.long.begin(at)

    def take(self, at: Builder, number: Value) -> None:
        """The variables get the part of this range."""
        self._take(at, number, self.own)
        self.long.take(at, number)

    def _take(self, at: Builder, number: Value, variables: Sequence[Value]) -> None:
        places = zip(self._of(at, number), self.scalars, strict=True)
        self.store(at, [at.load(kind, place) for place, (_, _, kind) in places], variables)

    def join(self, at: Builder, number: Value, combine: Value, lists: Sequence[Value]) -> None:
        """The part of this range is joined with the variables."""
        self._take(at, number, self.piece)
        wholes = [self.long.whole(v) if is_long(v) else v for v in self.own]
        pieces = [self.long.part(at, v, number) if is_long(v) else p for v, p in zip(self.own, self.piece, strict=True)]
        for listed, places in zip(lists, (wholes, pieces), strict=True):
            words = [w for v, place in zip(self.own, places, strict=True) for w in (place, *self.long.length(at, v))]
            for index, word in enumerate(words):
                at.store(word, at.offset(listed, 8 * index))
        at.call(combine, lists)

    def _in(self, at: Builder, variables: Sequence[Value]) -> list[Value]:
        return [at.offset(variables[n], offset) for n, offset, _ in self.scalars]

    def _of(self, at: Builder, number: Value) -> list[Value]:
        return [at.gep(kind, array, [number]) for array, (_, _, kind) in zip(self.arrays, self.scalars, strict=True)]


def _cut(module: Module, reduced: _Reduced, marks: Marks) -> None:
    function, loop, own = reduced.found.function, reduced.found.loop, reduced.own
    touched = tell_writes(module, function, loop, own)
    beyond = _behind(reduced.found, reduced.behind)
    start, end, joined = (BasicBlock(name=f"omp.range.{n}") for n in ("start", "end", "joined"))
    function.blocks.insert(function.blocks.index(loop.header), start)

    # Where the construct begins, and may end without a look at the loop, all ranges reduced nothing.
    held = reduced.found.start.instructions.pop()
    known = len(reduced.found.start.instructions)
    at = Builder(reduced.found.start, None)
    parts = _Parts.of(module, function, at, own, touched)
    parts.long.hand_on(beyond)
    if touched is not None:
        at.store(const_int(FLAG, 0), touched)
    locate(held, reduced.found.start.instructions[known:])
    reduced.found.start.instructions.append(held)

    # How many there are, and what each begins with.
    held = reduced.before.instructions.pop()
    at = Builder(reduced.before, None)
    known = len(reduced.before.instructions)
    none = parts.load(at, own)
    type_, one = reduced.counter.allocated_type, const_int(T.I64, 1)
    first, last = at.load(type_, reduced.counter), at.load(type_, reduced.last)
    behind = at.binary("add", last, const_int(type_, 1))
    some = (
        at.icmp(f"{reduced.sign}lt", first, behind)
        if reduced.behind_last
        else at.icmp(f"{reduced.sign}le", first, last)
    )
    total = at.binary("add", at.wide(at.binary("sub", last, first)), one)
    total = at.select(some, total, const_int(T.I64, 0))
    ranges = at.call(declare(module, _COUNT, T.FunctionType(T.I64, ())), [])
    if parts.long.arrays:
        most = const_int(T.I64, 8 * _MOST_SCALARS)
        ranges = at.select(at.icmp("ugt", parts.long.bytes_of_all(at), most), one, ranges)
    wanted = at.least(at.binary("udiv", total, const_int(T.I64, _FEWEST)), ranges)
    length = at.most(_rounded_up(at, total, at.most(wanted, one)), one)
    count = at.most(_rounded_up(at, total, length), one)
    at.br(start)
    redirect_phis(loop.header, reduced.before, start)
    locate(held, reduced.before.instructions[known:])

    # Each range.
    at = Builder(start)
    turn = at.phi(T.I64, [(const_int(T.I64, 0), reduced.before)])
    parts.begin(at, none)
    if parts.touched is not None:
        at.store(const_int(FLAG, 0), parts.touched)
    done = at.binary("mul", turn, length)
    here = at.binary("add", first, at.narrow(done, type_))
    most = at.least(at.binary("sub", total, done), length)
    until = at.binary("sub", at.binary("add", here, at.narrow(most, type_)), const_int(type_, 1))
    at.store(here, reduced.counter)
    at.store(at.select(some, until, last), reduced.last)
    at.br(loop.header)
    leave = loop.header.terminator
    leave.targets = [end if t is reduced.behind else t for t in leave.targets]
    at = Builder(end)
    parts.keep(at, turn)

    # All together.
    together = _joining(function, parts, reduced.combine, count, joined)
    at.count_on(turn, start, count, together[0])
    Builder(together[0], 0).store(last, reduced.last)
    Builder(joined).br(reduced.behind)
    redirect_phis(reduced.behind, loop.header, joined)
    place = function.blocks.index(reduced.behind)
    function.blocks[place:place] = [end, *together, joined]
    for block in (start, end, *together, joined):
        locate(leave, block.instructions)
    mark(module, end.terminator, marks)
    if parts.touched is not None:
        _join_if_set(function, reduced.call, parts.touched)


def _joining(function: Function, parts: _Parts, combine: Value, count: Value, end: BasicBlock) -> list[BasicBlock]:
    """The code in which the variables become what all ranges reduced, and which goes on to `end`: of two to which
    iterations wrote it joins both, else it takes the one to which they did."""
    join, each = (BasicBlock(name=f"omp.range.{n}") for n in ("join", "part"))
    slots = len(parts.own) + sum(map(is_long, parts.own))
    lists = [local(function, T.ArrayType(slots, T.PTR)) for _ in range(2)]
    one = const_int(T.I64, 1)
    at = Builder(join)
    parts.take(at, const_int(T.I64, 0))
    if parts.touched is not None:
        at.store(at.load(FLAG, parts.flag(at, const_int(T.I64, 0))), parts.touched)
    at.cond_br(at.icmp("ult", one, count), each, end)
    at = Builder(each)
    number = at.phi(T.I64, [(one, join)])
    if parts.touched is None:
        parts.join(at, number, combine, lists)
        at.count_on(number, each, count, end)
        return [join, each]
    told, alone, both, following = (BasicBlock(name=f"omp.range.{n}") for n in ("told", "alone", "both", "next"))
    at.cond_br(_is_set(at, parts.flag(at, number)), told, following)
    at = Builder(told)
    at.cond_br(_is_set(at, parts.touched), both, alone)
    at = Builder(alone)
    parts.take(at, number)
    at.store(const_int(FLAG, 1), parts.touched)
    at.br(following)
    at = Builder(both)
    parts.join(at, number, combine, lists)
    at.br(following)
    Builder(following).count_on(number, each, count, end)
    return [join, each, told, alone, both, following]


def _is_set(at: Builder, flag: Value) -> Value:
    return at.icmp("ne", at.load(FLAG, flag), const_int(FLAG, 0))


def _join_if_set(function: Function, call: I.CallBase, flag: Value) -> None:
    """What a thread reduced is joined with the program's variables where a flag is set, in place."""
    at = Builder(BasicBlock())
    joins = at.cast("zext", _is_set(at, flag), call.type)
    for block in function.blocks:
        if call in block.instructions:
            replace_operands([i for b in function.blocks for i in b.instructions], {call: joins})
            behind = block.instructions.index(call) + 1
            locate(call, at.block.instructions)
            block.instructions[behind:behind] = at.block.instructions


def _rounded_up(at: Builder, number: Value, divisor: Value) -> Value:
    behind = at.binary("add", number, at.binary("sub", divisor, const_int(T.I64, 1)))
    return at.binary("udiv", behind, divisor)
