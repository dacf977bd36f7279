"""What takes long in a loop is computed before it: once for all, or for a strip of iterations that cannot be vectors.

    before    for i: for k: y[i + k] *= cos(w * k)                the same cosines for all i

    after     for k: C[k] = cos(w * k)
              for i: for k: y[i + k] *= C[k]

LLVM moves numbers that a loop does not change out of it, but no rows of them: twiddle factors, windows, weights by
distance, in the forward sweep as in the value. The row is computed where the outer loop begins, into local memory.
Nothing is read for it, since the inner loop may never run.

    before    for i: s += w[i] * exp(x[i])                        the sums are in the order of the source, one at a time

    after     for strips of 128 iterations:
                  for i: E[i] = exp(x[i])                         independent of one another: vectors
                  for i: s += w[i] * E[i]                         the same operations in the same order

A sum in the order of the source keeps LLVM from making vectors of a whole loop, and so does memory that one iteration
adds to after the other (`a[3 * i] += f; a[3 * j] -= f` for pairs): divisions, roots and calls of `math.h` are scalar
then, at a multiple of what they cost in vectors. Here all that they need and that no iteration changes is copied into a
loop of its own, in front; what the rest needs of it passes through local memory. Branches are copied with it, so that
nothing is computed or read that was not before. Nothing rounds otherwise; calls of `math.h` are those of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jax_enzyme.analysis.counters import step_to, tests
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen.vector_math import scalar_name, vector_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.inlining import recursive_functions
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantInt, Value
from jax_enzyme.transform.rewriting import phis, redirect_phis, substitute

_STRIP = 128
_WHOLE = 256
"""So many iterations make one strip, where their number is known."""
_FEWEST = 16
"""A loop of fewer iterations stays as it is."""
_BYTES = 1 << 14
"""Of local memory for one loop: half of the nearest cache."""
_TABLES = 1 << 17
"""Of local memory for all rows of a function that are computed once."""
_PLAIN = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)
_ENDS = (I.Branch, I.CondBranch, I.Switch)


Length = int | tuple[Value, Value]
"""A number, or how far it is from one value to another."""


@dataclass(frozen=True, eq=False)
class _Parts:
    """What of a loop may come first (`early`: it depends on nothing that iterations hand on or write), and of that what
    passes through memory (`kept`)."""

    early: frozenset[Value]
    kept: tuple[I.Instruction, ...]


def compute_in_strips(module: Module) -> None:
    """Changes a private module in place."""
    functions = [f for f in module.functions.values() if any(_takes_long(i) for i in f.instructions())]
    recursive = recursive_functions(module) if functions else set()
    for function in functions:
        if function not in recursive:
            _Function(module, function).run()


def _takes_long(instruction: I.Instruction) -> bool:
    """Whether an instruction takes many times as long as others, for one number, and less of that in vectors."""
    match instruction:
        case I.BinaryOp(opcode="fdiv"):
            return isinstance(instruction.type, T.FloatType)
        case I.Call() if isinstance(callee := instruction.callee, Function):
            return callee.name.startswith("llvm.sqrt.f") or scalar_name(callee) in vector_functions()
        case _:
            return False


class _Function:
    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._loops = Loops.of(function)
        self._layout = DataLayout(module)
        self._room = _TABLES
        self._strips: dict[tuple[T.Type, int], Value] = {}

    def run(self) -> None:
        loops = [loop for loop in self._loops.all if self._is_plain(loop)]
        if not loops:
            return
        facts = Recurrences(self._function, self._loops.cfg, self._loops, self._module)
        lengths = [(loop, length) for loop in loops if (length := _length(facts, loop)) is not None]
        for loop, length in lengths:
            if (table := self._table(facts, loop, length)) is not None:
                table.run(length)
        for loop, length in lengths:
            if (parts := self._parts(loop)) is not None:
                _Split(self._function, loop, parts, length, self._memory(parts.kept)).run()

    def _memory(self, kept: tuple[I.Instruction, ...]) -> dict[I.Instruction, Value]:
        """Where a strip of each is: the same memory for all loops, which run one after the other."""
        found: dict[I.Instruction, Value] = {}
        for number, value in enumerate(kept):
            if (value.type, number) not in self._strips:
                self._strips[value.type, number] = _local(self._function, _WHOLE, value.type)
            found[value] = self._strips[value.type, number]
        return found

    def _is_plain(self, loop: Loop) -> bool:
        """Whether an innermost loop is left at its end alone, and does something that takes long."""
        if loop.children or loop.preheader is None or loop.exiting != loop.latches or len(loop.latches) != 1:
            return False
        is_counted = isinstance(loop.latches[0].terminator, I.CondBranch) and not self._loops.irreducible
        return is_counted and any(_takes_long(i) for b in loop.blocks for i in b.instructions)

    def _table(self, facts: Recurrences, loop: Loop, length: Length) -> _Table | None:
        """What a loop computes alike whenever it runs, for the outermost loop around it where that is so."""
        most = facts.trip_count(loop).maximum
        always = [b for b in self._loops.cfg.rpo if b in loop.blocks and facts.once_per_iteration(b, loop)]
        for around in reversed(list(loop.ancestors)[1:]):
            ends = () if isinstance(length, int) else length
            outside = [facts.block_of.get(v) not in around.blocks for v in ends]
            if most is None or around.preheader is None or not all(outside) or facts.repeats(around) == 0:
                continue
            fixed = _fixed(loop, around, always, facts)
            inside = [i for b in self._loops.cfg.rpo if b in loop.blocks for i in b.instructions]
            kept = tuple(_kept(fixed, inside))
            size = sum(self._layout.store_size(i.type) for i in kept) * (most + 1)
            if kept and size <= self._room:
                self._room -= size
                return _Table(self._function, loop, around, fixed, kept, most + 1)
        return None

    def _parts(self, loop: Loop) -> _Parts | None:
        """How a loop is split; None where it is not, or nothing is gained."""
        blocks = [b for b in self._loops.cfg.rpo if b in loop.blocks]
        inside = [i for b in blocks for i in b.instructions]
        if not any(map(_takes_long, inside)) or not all(map(_may_be_split, inside)):
            return None
        stores = [i for i in inside if isinstance(i, I.Store)]
        if not (any(_is_ordered(loop, phi) for phi in phis(loop.header)) or _meets_itself(loop, inside, stores)):
            return None
        early = self._early(loop, blocks, stores)
        conditions = [v for b in blocks if b is not loop.latches[0] for v in b.terminator.operands[:1]]
        if not set(conditions) & set(inside) <= early:
            return None
        kept = tuple(_kept(early, inside))
        size = sum(self._layout.store_size(i.type) for i in kept)
        return _Parts(early, kept) if kept and size * _STRIP <= _BYTES else None

    def _early(self, loop: Loop, blocks: list[BasicBlock], stores: list[I.Store]) -> frozenset[Value]:
        written = [_root(store.operands[1]) for store in stores]
        late: set[Value] = set()
        early: set[Value] = set()
        for block in blocks:
            for instruction in block.instructions:
                match instruction:
                    case I.Phi() if block is loop.header:
                        ends = loop.ends(instruction)
                        fits = ends is not None and step_to(ends[1], instruction) is not None
                    case I.Load():
                        fits = all(_apart(_root(instruction.operands[0]), root) for root in written)
                    case I.Phi() | I.Call():
                        fits = True
                    case _:
                        fits = isinstance(instruction, _PLAIN)
                own = [] if isinstance(instruction, I.Phi) and block is loop.header else instruction.operands
                (early if fits and late.isdisjoint(own) else late).add(instruction)
        return frozenset(early)


def _fixed(loop: Loop, around: Loop, blocks: list[BasicBlock], facts: Recurrences) -> frozenset[Value]:
    """What is computed in every iteration of a loop, without memory, and is the same whenever the loop runs."""
    found: set[Value] = set()

    def is_fixed(value: Value) -> bool:
        return value in found or facts.block_of.get(value) not in around.blocks

    for instruction in (i for block in blocks for i in block.instructions):
        match instruction:
            case I.Phi() if (ends := loop.ends(instruction)) is not None and instruction in loop.header.instructions:
                fits = step_to(ends[1], instruction) is not None and is_fixed(ends[0])
            case I.BinaryOp(opcode="udiv" | "sdiv" | "urem" | "srem"):
                fits = False
            case I.Call():
                fits = is_pure(instruction) and all(map(is_fixed, instruction.operands))
            case _:
                fits = isinstance(instruction, _PLAIN) and all(map(is_fixed, instruction.operands))
        if fits:
            found.add(instruction)
    return frozenset(found)


def _length(facts: Recurrences, loop: Loop) -> Length | None:
    """How many iterations a loop has; None where nobody knows, or they are few."""
    again, most = facts.repeats(loop), facts.trip_count(loop).maximum
    if most is None or most + 1 < _FEWEST:
        return None
    if again is not None:
        return again + 1
    for test in tests(loop):
        counter, outside = test.counted, facts.block_of.get(test.bound) not in loop.blocks
        if test.predicate == "ne" and counter.step == counter.added == 1 and not counter.casts and outside:
            ends = loop.ends(counter.phi)
            return None if ends is None or counter.phi.type != T.I64 else (ends[0], test.bound)
    return None


def _may_be_split(instruction: I.Instruction) -> bool:
    """Whether nothing but what is stored tells in which order iterations run."""
    match instruction:
        case I.Load() | I.Store():
            return not instruction.ordering and "volatile" not in instruction.flags
        case I.Call():
            return is_pure(instruction)
        case _:
            return isinstance(instruction, (*_PLAIN, *_ENDS, I.Phi, I.Freeze))


def _is_ordered(loop: Loop, phi: I.Phi) -> bool:
    """Whether a number goes from one iteration to the next through arithmetic in the order of the source."""
    if not isinstance(phi.type, T.FloatType):
        return False
    users = [i for b in loop.blocks for i in b.instructions if phi in i.operands]
    arithmetic = [i for i in users if isinstance(i, I.BinaryOp | I.Call)]
    return any("reassoc" not in i.flags for i in arithmetic)


def _meets_itself(loop: Loop, inside: list[I.Instruction], stores: list[I.Store]) -> bool:
    """Whether a place that is the same in all iterations is stored to, beside others of the same memory."""
    own = set(inside)
    places = {pointer for i in inside if isinstance(i, I.Load | I.Store) for pointer in i.operands[-1:]}
    for store in stores:
        pointer = store.operands[1]
        if pointer not in own and any(p in own and _root(p) is _root(pointer) for p in places):
            return True
    return False


def _root(pointer: Value) -> Value:
    """What an address is derived from, through counters too."""
    seen: set[Value] = set()
    while pointer not in seen:
        seen.add(pointer)
        match pointer:
            case I.GetElementPtr():
                pointer = pointer.operands[0]
            case I.Phi():
                others = {v for v in pointer.operands if v is not pointer and I.base_of(v) is not pointer}
                pointer = others.pop() if len(others) == 1 else pointer
            case _:
                pass
    return pointer


def _apart(a: Value, b: Value) -> bool:
    """Whether addresses derived from these lead to different memory."""
    return a is not b and _is_own(a) and _is_own(b)


def _is_own(root: Value) -> bool:
    is_argument = isinstance(root, Argument) and "noalias" in root.attributes
    return is_argument or isinstance(root, I.Alloca | GlobalVariable)


def _kept(early: frozenset[Value], inside: list[I.Instruction]) -> Iterator[I.Instruction]:
    """The numbers that come first, take long, and are needed by what does not."""
    long: set[Value] = set()
    for instruction in inside:
        if instruction in early and (_takes_long(instruction) or not long.isdisjoint(instruction.operands)):
            long.add(instruction)
    needed = {o for i in inside if i not in early for o in i.operands if o in long}
    for instruction in reversed(inside):
        if instruction in needed:
            if isinstance(instruction.type, T.FloatType):
                yield instruction
            else:
                needed.update(o for o in instruction.operands if o in long)


def _local(function: Function, length: int, type_: T.Type) -> Value:
    memory = I.Alloca(T.PTR, "alloca", [ConstantInt(T.I32, 1)], T.ArrayType(length, type_), 64)
    function.entry.instructions.insert(0, memory)
    return memory


def _number(at: Builder, length: Length) -> Value:
    return const_int(T.I64, length) if isinstance(length, int) else at.binary("sub", length[1], length[0])


def _load_instead(function: Function, loop: Loop, memory: dict[I.Instruction, Value], before: BasicBlock) -> I.Phi:
    """Values of a loop come from memory: the counter of the loop's iterations that it is read by. Where it goes on is
    not said yet."""
    place = I.Phi(T.I64, "phi", [const_int(T.I64, 0)], targets=[before])
    loop.header.instructions.insert(0, place)
    replaced: dict[Value, Value] = {}
    for block in [b for b in function.blocks if b in loop.blocks]:
        for value in memory:
            if value in block.instructions:
                at = Builder(BasicBlock())
                replaced[value] = at.load(value.type, at.gep(value.type, memory[value], [place]))
                index = max(block.instructions.index(value), len(phis(block)))
                block.instructions[index:index] = at.block.instructions
    substitute(function, replaced)
    return place


@dataclass(frozen=True, eq=False)
class _Table:
    """What (`kept`, by `fixed`) a loop computes alike whenever it runs in the loop `around` it."""

    function: Function
    loop: Loop
    around: Loop
    fixed: frozenset[Value]
    kept: tuple[I.Instruction, ...]
    most: int

    def run(self, length: Length) -> None:
        """Computes it before the loop around, in place, where the loop has iterations at all."""
        memory = {value: _local(self.function, self.most, value.type) for value in self.kept}
        before, body, after = self.around.preheader, BasicBlock(), BasicBlock()
        assert before is not None
        (latch,) = self.loop.latches
        end = before.instructions.pop()
        at = Builder(before)
        number = _number(at, length)
        fits = at.icmp("ult", at.binary("sub", number, const_int(T.I64, 1)), const_int(T.I64, self.most))
        at.cond_br(fits, body, after)
        at = Builder(body)
        place = at.phi(T.I64, [(const_int(T.I64, 0), before)])
        copies: dict[Value, Value] = {}
        for block in [b for b in self.function.blocks if b in self.loop.blocks]:
            for instruction in block.instructions:
                if instruction in self.fixed:
                    copies[instruction] = at.insert(with_operands(instruction, instruction.operands))
        for old, copy in copies.items():
            assert isinstance(copy, I.Instruction)
            if isinstance(old, I.Phi) and isinstance(copy, I.Phi):
                ends = self.loop.ends(old)
                assert ends is not None
                copy.operands, copy.targets = [ends[0], copies[ends[1]]], [before, body]
            else:
                copy.operands[:] = [copies.get(o, o) for o in copy.operands]
        for value, row in memory.items():
            at.store(copies[value], at.gep(value.type, row, [place]))
        at.count_on(place, body, number, after)
        after.instructions.append(end)
        redirect_phis(self.around.header, before, after)
        self.around.preheader = after
        index = self.function.blocks.index(before) + 1
        self.function.blocks[index:index] = [body, after]
        inner = self.loop.preheader
        assert inner is not None
        counter = _load_instead(self.function, self.loop, memory, inner)
        at = Builder(BasicBlock())
        counter.add(at.binary("add", counter, const_int(T.I64, 1), ("nuw", "nsw")), latch)
        latch.instructions[-1:-1] = at.block.instructions


class _Split:
    """Splits one loop, in place."""

    def __init__(
        self, function: Function, loop: Loop, parts: _Parts, length: Length, memory: dict[I.Instruction, Value]
    ) -> None:
        self._function = function
        self._loop = loop
        self._parts = parts
        self._length = length
        self._room = length if isinstance(length, int) and length <= _WHOLE else _STRIP
        self._memory = memory
        self._copies: dict[Value, Value] = {}

    def run(self) -> None:
        loop, before = self._loop, self._loop.preheader
        assert before is not None
        (latch,), (left_to,) = loop.latches, loop.exits
        strip, between, behind = BasicBlock(), BasicBlock(), BasicBlock()
        starts, done, length = self._strip(Builder(strip), before)
        first = self._early_loop(strip, between, starts, length)
        end = self._late_loop(between, behind, starts, length)
        last = Builder(behind)
        if done is None:
            last.br(left_to)
        else:
            done.add(last.binary("add", done, length, ("nuw", "nsw")), behind)
            for phi, start in starts.items():
                assert isinstance(start, I.Phi)
                start.add(phi.operands[phi.targets.index(latch)], behind)
            end.targets = [strip if b is loop.header else b for b in end.targets]
            last.insert(end)
        before.terminator.targets[:] = [strip]
        redirect_phis(left_to, latch, behind)
        index = self._function.blocks.index(loop.header)
        self._function.blocks[index:index] = [strip, *first, between]
        self._function.blocks.insert(1 + self._function.blocks.index(latch), behind)

    def _strip(self, at: Builder, before: BasicBlock) -> tuple[dict[I.Phi, Value], I.Phi | None, Value]:
        """What the counters and sums of the loop are at the start of a strip, how many iterations are done, and how
        many the strip has."""
        ends = {phi: phi.operands[phi.targets.index(before)] for phi in phis(self._loop.header)}
        if self._length == self._room:
            return ends, None, const_int(T.I64, self._room)
        starts: dict[I.Phi, Value] = {phi: at.phi(phi.type, [(start, before)]) for phi, start in ends.items()}
        done = at.phi(T.I64, [(const_int(T.I64, 0), before)])
        left, most = at.binary("sub", _number(at, self._length), done), const_int(T.I64, self._room)
        return starts, done, at.select(at.icmp("ult", left, most), left, most)

    def _early_loop(
        self, before: BasicBlock, after: BasicBlock, starts: dict[I.Phi, Value], length: Value
    ) -> list[BasicBlock]:
        """A copy of the loop with what comes first alone."""
        loop, early, copies = self._loop, self._parts.early, self._copies
        (latch,) = loop.latches
        old = [b for b in self._function.blocks if b in loop.blocks]
        new = {block: BasicBlock() for block in old}
        Builder(before).br(new[loop.header])
        place = Builder(new[loop.header]).phi(T.I64, [(const_int(T.I64, 0), before)])
        made: list[I.Instruction] = []
        for block in old:
            at = Builder(new[block])
            for instruction in block.instructions[:-1]:
                if instruction in early:
                    copies[instruction] = copy = with_operands(instruction, instruction.operands)
                    made.append(at.insert(copy))
            for value in self._parts.kept:
                if value in block.instructions:
                    at.store(copies[value], at.gep(value.type, self._memory[value], [place]))
            if block is latch:
                at.count_on(place, new[loop.header], length, after)
            else:
                made.append(at.insert(with_operands(block.terminator, block.terminator.operands)))
        for copy in made:
            copy.operands[:] = [copies.get(o, o) for o in copy.operands]
            copy.targets = [new.get(b, b) for b in copy.targets]
            copy.metadata = [(kind, node) for kind, node in copy.metadata if kind != "llvm.loop"]
        for phi, start in starts.items():
            if (copy := copies.get(phi)) is not None:
                assert isinstance(copy, I.Phi)
                self._enter(copy, start, before)
        return [new[block] for block in old]

    def _enter(self, phi: I.Phi, start: Value, before: BasicBlock) -> None:
        """A phi of the loop's header begins with another value, from another block."""
        assert self._loop.preheader is not None
        index = phi.targets.index(self._loop.preheader)
        phi.operands[index], phi.targets[index] = start, before

    def _late_loop(
        self, before: BasicBlock, after: BasicBlock, starts: dict[I.Phi, Value], length: Value
    ) -> I.Instruction:
        """Makes the loop itself one over a strip, with what came first from memory; what ended it."""
        header, (latch,) = self._loop.header, self._loop.latches
        outside = self._loop.preheader
        assert outside is not None
        Builder(before).br(header)
        for phi, start in starts.items():
            self._enter(phi, start, before)
        place = _load_instead(self._function, self._loop, self._memory, before)
        end = latch.instructions.pop()
        at = Builder(latch)
        at.count_on(place, header, length, after)
        latch.terminator.metadata = [(kind, node) for kind, node in end.metadata if kind == "llvm.loop"]
        end.metadata = []
        return end
