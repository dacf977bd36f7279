"""What takes long in a loop that cannot be made vectors is computed for a strip of its iterations first.

    before    for i: s += w[i] * exp(x[i])                        the sums are in the order of the source, one at a time

    after     for strips of 128 iterations:
                  for i: E[i] = exp(x[i])                         independent of one another: vectors
                  for i: s += w[i] * E[i]                         the same operations in the same order

A sum in the order of the source keeps LLVM from making vectors of a whole loop, and so does memory that one iteration
adds to after the other (`a[3 * i] += f; a[3 * j] -= f` for pairs, `a[node[i]] += f` for elements): divisions, roots and
calls of `math.h` are scalar then, at a multiple of what they cost in vectors. Here all that they need and that no
iteration changes is copied into a loop of its own, in front; what the rest needs of it passes through local memory.
What is stored of it to memory that nothing else of the loop comes to, as the tape is, is stored there. Branches are
copied with it, so that nothing is computed or read that was not before. Nothing rounds otherwise; calls of `math.h` are
those of vectors. Rows that are the same whenever a loop runs have been taken out before (`rows_once`).
"""

from __future__ import annotations

from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.long_loops import (
    PLAIN,
    Length,
    is_long,
    kept_of,
    length_of,
    load_instead,
    local_memory,
    number_of,
    root_of,
    stays,
    takes_long,
)
from jax_enzyme.codegen.rows_once import RowsOnce
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.inlining import recursive_functions
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.loop_hints import ask
from jax_enzyme.transform.rewriting import phis, redirect_phis

_STRIP = 128
_WHOLE = 256
"""So many iterations make one strip, where their number is known."""
_SHORT = 64
"""A loop of so many iterations may be unrolled by LLVM before it would make vectors of it."""
_BYTES = 1 << 14
"""Of local memory for one loop: half of the nearest cache."""
_ENDS = (I.Branch, I.CondBranch, I.Switch)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What of a loop may come first (`early`: it depends on nothing that iterations hand on or write), of that what
    passes through memory (`kept`), and the stores that come first as well (`moved`)."""

    early: frozenset[Value]
    kept: tuple[I.Instruction, ...]
    moved: frozenset[I.Instruction]


def compute_early(module: Module) -> None:
    """Changes a private module in place."""
    functions = [f for f in module.functions.values() if any(takes_long(i) for i in f.instructions())]
    recursive = recursive_functions(module) if functions else set()
    for function in functions:
        if function not in recursive:
            _Function(module, function).run()


def reads_where_data_say(function: Function) -> bool:
    """Whether a loop with something that takes long reads numbers where data say, so that a derivative adds there."""
    loops = Loops.of(function)
    long = (loop for loop in loops.all if is_long(loops, loop))
    return any(_where_data_say([i for b in loops.blocks(loop) for i in b.instructions]) for loop in long)


class _Function:
    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._loops = Loops.of(function)
        self._layout = DataLayout(module)
        self._strips: dict[tuple[T.Type, int], Value] = {}

    def run(self) -> None:
        loops = [loop for loop in self._loops.all if is_long(self._loops, loop)]
        if not loops:
            return
        facts = Recurrences(self._function, self._loops, self._module)
        lengths = [(loop, length) for loop in loops if (length := length_of(facts, loop)) is not None]
        rows = RowsOnce(self._function, facts, self._layout)
        for loop, length in lengths:
            rows.run(loop, length)
        for loop, length in lengths:
            if (parts := self._parts(loop)) is not None:
                first = _Split(self._function, loop, parts, length, self._memory(parts.kept)).run()
                if isinstance(length, int) and length <= _SHORT:
                    ask(self._module, first, "late")

    def _memory(self, kept: tuple[I.Instruction, ...]) -> dict[I.Instruction, Value]:
        """Where a strip of each is: the same memory for all loops, which run one after the other."""
        found: dict[I.Instruction, Value] = {}
        for number, value in enumerate(kept):
            if (value.type, number) not in self._strips:
                self._strips[value.type, number] = local_memory(self._function, _WHOLE, value.type)
            found[value] = self._strips[value.type, number]
        return found

    def _parts(self, loop: Loop) -> _Parts | None:
        """How a loop is split; None where it is not, or nothing is gained."""
        blocks = self._loops.blocks(loop)
        inside = [i for b in blocks for i in b.instructions]
        if not any(map(takes_long, inside)) or not all(map(_may_be_split, inside)):
            return None
        if not (_is_ordered(loop, inside) or _meets_itself(inside) or _adds_where_data_say(inside)):
            return None
        early = _early(loop, inside)
        conditions = [v for b in blocks if b is not loop.latches[0] for v in b.terminator.operands[:1]]
        if not set(conditions) & set(inside) <= early:
            return None
        moved = _moved(early, inside)
        kept = tuple(kept_of(early | moved, inside))
        size = sum(self._layout.store_size(i.type) for i in kept)
        return _Parts(early, kept, moved) if kept and size * _STRIP <= _BYTES else None


def _early(loop: Loop, inside: list[I.Instruction]) -> frozenset[Value]:
    written = {root_of(i.operands[1]) for i in inside if isinstance(i, I.Store)}
    heads = set(phis(loop.header))
    late: set[Value] = set()
    early: set[Value] = set()
    for instruction in inside:
        match instruction:
            case I.Phi() if instruction in heads:
                ends = loop.ends(instruction)
                fits = ends is not None and step_to(ends[1], instruction) is not None
            case I.Load():
                fits = late.isdisjoint(instruction.operands) and stays(root_of(instruction.operands[0]), written)
            case _:
                fits = isinstance(instruction, (*PLAIN, I.Phi, I.Call)) and late.isdisjoint(instruction.operands)
        (early if fits else late).add(instruction)
    return frozenset(early)


def _moved(early: frozenset[Value], inside: list[I.Instruction]) -> frozenset[I.Instruction]:
    """The stores of what comes first, to memory that nothing else of the loop comes to."""
    accesses = [i for i in inside if isinstance(i, I.Load | I.Store)]
    own = set(inside)
    late = {root_of(a.operands[-1]) for a in accesses if isinstance(a, I.Load) or not own & set(a.operands) <= early}
    return frozenset(a for a in accesses if isinstance(a, I.Store) and stays(root_of(a.operands[-1]), late))


def _may_be_split(instruction: I.Instruction) -> bool:
    """Whether nothing but what is stored tells in which order iterations run."""
    match instruction:
        case I.Load() | I.Store():
            return I.is_plain(instruction)
        case I.Call():
            return is_pure(instruction)
        case _:
            return isinstance(instruction, (*PLAIN, *_ENDS, I.Phi, I.Freeze))


def _is_ordered(loop: Loop, inside: list[I.Instruction]) -> bool:
    """Whether a number goes from one iteration to the next through arithmetic in the order of the source."""
    handed = {phi for phi in phis(loop.header) if isinstance(phi.type, T.FloatType)}
    arithmetic = (i for i in inside if isinstance(i, I.BinaryOp | I.Call) and "reassoc" not in i.flags)
    return any(not handed.isdisjoint(i.operands) for i in arithmetic)


def _meets_itself(inside: list[I.Instruction]) -> bool:
    """Whether a place that is the same in all iterations is stored to, beside others of the same memory."""
    own = set(inside)
    moving = {root_of(i.operands[-1]) for i in inside if isinstance(i, I.Load | I.Store) and i.operands[-1] in own}
    fixed = (i.operands[1] for i in inside if isinstance(i, I.Store) and i.operands[1] not in own)
    return any(root_of(pointer) in moving for pointer in fixed)


def _adds_where_data_say(inside: list[I.Instruction]) -> bool:
    """Whether memory is read and stored to at places that depend on what the loop reads."""
    told = _where_data_say(inside)
    return any(isinstance(i, I.Store) and i.operands[1] in told for i in inside)


def _where_data_say(inside: list[I.Instruction]) -> set[Value]:
    """Where numbers are read at places that depend on what the loop reads."""
    read: set[Value] = set()
    for instruction in inside:
        if isinstance(instruction, I.Load) or not read.isdisjoint(instruction.operands):
            read.add(instruction)
    numbers = (i for i in inside if isinstance(i, I.Load) and isinstance(i.type, T.FloatType))
    return {i.operands[0] for i in numbers if i.operands[0] in read}


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

    def run(self) -> I.Instruction:
        """What closes the loop of what comes first."""
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
        return next(b.terminator for b in first if between in b.successors)

    def _strip(self, at: Builder, before: BasicBlock) -> tuple[dict[I.Phi, Value], I.Phi | None, Value]:
        """What the counters and sums of the loop are at the start of a strip, how many iterations are done, and how
        many the strip has."""
        ends = {phi: phi.operands[phi.targets.index(before)] for phi in phis(self._loop.header)}
        if self._length == self._room:
            return ends, None, const_int(T.I64, self._room)
        starts: dict[I.Phi, Value] = {phi: at.phi(phi.type, [(start, before)]) for phi, start in ends.items()}
        done = at.phi(T.I64, [(const_int(T.I64, 0), before)])
        left, most = at.binary("sub", number_of(at, self._length), done), const_int(T.I64, self._room)
        return starts, done, at.least(left, most)

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
                if instruction in self._parts.moved:
                    made.append(at.insert(with_operands(instruction, instruction.operands)))
                elif instruction in early:
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
        index = phi.targets.index(self._loop.front)
        phi.operands[index], phi.targets[index] = start, before

    def _late_loop(
        self, before: BasicBlock, after: BasicBlock, starts: dict[I.Phi, Value], length: Value
    ) -> I.Instruction:
        """Makes the loop itself one over a strip, with what came first from memory; what ended it."""
        header, (latch,) = self._loop.header, self._loop.latches
        Builder(before).br(header)
        for phi, start in starts.items():
            self._enter(phi, start, before)
        for block in self._loop.blocks:
            block.instructions[:] = [i for i in block.instructions if i not in self._parts.moved]
        place = load_instead(self._function, self._loop, self._memory, before)
        end = latch.instructions.pop()
        at = Builder(latch)
        at.count_on(place, header, length, after)
        latch.terminator.metadata = [(kind, node) for kind, node in end.metadata if kind == "llvm.loop"]
        end.metadata = []
        return end
