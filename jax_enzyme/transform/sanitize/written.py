"""Reads of what has certainly been written: they need no check, and variables that have no other reads no pattern.

    for (a = 0; a < 3; a++) g[a] = u[t[a]];          all of g is written behind this loop
    for (a = 0; a < n; a++) s[a] = 0;                and of s what a loop over the same numbers reads
    r[i] = 0; for (...) r[i] += ...;                 and here the element that is written before

Looked at are objects of which it shows who uses them: local variables and arguments whose address goes nowhere. A
write covers what it writes in loops that have come to their only end, where each iteration makes it. What is written
must not be the pattern, either: it has been computed, or was read where it is certain, too, or where it is checked.

**Lattice.** The set of objects into which nothing is written that may be the pattern, ordered by inclusion: it starts
with all, and those go for which a write does not show it. What could bring the pattern in first is then a read of what
nothing wrote, or an object that is not in the set; so the greatest such set is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.module import Function, GlobalVariable, callee_name, declared_callee, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import (
    Argument,
    BasicBlock,
    ConstantFloat,
    ConstantInt,
    ConstantNull,
    Value,
    int_value,
)
from jax_enzyme.transform.sanitize.affine import Counter, counter_of
from jax_enzyme.transform.sanitize.certain import is_pattern
from jax_enzyme.transform.sanitize.provenance import is_private, root_of
from jax_enzyme.transform.sanitize.registers import fills, hides
from jax_enzyme.transform.sanitize.scalars import MOVES, is_computed_with, least_of_narrow, pattern_of

_MOST_PIECES = 64
_DEPTH = 20
_LARGEST = 1 << 31
"""Bytes of an object: in a larger one two numbers of 32 bits that differ by a wrap may be inside."""
_Span = tuple[int, int]
_Told = list[tuple[int, tuple[object, ...]]]


@dataclass(frozen=True, eq=False)
class _Form:
    """An address: so many bytes behind its root, and for each of some numbers so many more."""

    offset: int
    steps: Mapping[Value, int]


@dataclass(frozen=True, eq=False)
class _Cover:
    """So many bytes at all addresses that a form has in `counters`, from where the loops have ended that count these,
    `outermost` and those inside of it; behind `write` where there are none."""

    write: I.Instruction
    form: _Form
    size: int
    counters: Mapping[Value, Counter]
    outermost: Loop | None


class Written:
    """What is so in a function. `reads`: instructions that read what has been written; `fills`: those that give the
    pattern to variables of which nothing else is read."""

    def __init__(self, function: Function, layout: DataLayout, buffers: Mapping[Argument, Buffer]) -> None:
        self._layout, self._buffers = layout, buffers
        self._users, self._loops = uses(function), Loops.of(function)
        self._counters = {loop: counter_of(loop) for loop in self._loops.all}
        self._starts: dict[Value, list[I.Instruction]] = {}
        self._reads: dict[Value, list[I.Instruction]] = {}
        self._writes: dict[Value, list[I.Instruction]] = {}
        filled = fills(function)
        own = {i for group in filled.values() for i in group}
        for instruction in self._loops.home:
            if instruction not in own:
                self._note(instruction)
        variables = [v for v in self._starts if isinstance(v, I.Alloca) and int_value(v.operands[0]) == 1]
        objects: list[Value] = [v for v in (*variables, *buffers) if is_private(v, self._users)]
        self._certain = {v: self._certain_reads(v) for v in objects}
        self._clean = set(objects)
        while gone := [v for v in self._clean if not all(map(self._is_clean_write, self._writes.get(v, ())))]:
            self._clean.difference_update(gone)
        self.reads = {read for v in self._clean for read in self._certain[v]}
        whole = [v for v in variables if v in self._clean and self._certain[v].issuperset(self._reads.get(v, ()))]
        self.fills = {i for v in whole for i in filled.get(v, ())}

    def _note(self, instruction: I.Instruction) -> None:
        match instruction:
            case I.Load():
                self._reads.setdefault(root_of(instruction.operands[0]), []).append(instruction)
            case I.Store():
                self._writes.setdefault(root_of(instruction.operands[1]), []).append(instruction)
            case I.Call() if hides(instruction):
                self._starts.setdefault(instruction.operands[0], []).append(instruction)
            case I.Call() if callee_name(instruction).startswith(MOVES):
                self._writes.setdefault(root_of(instruction.operands[0]), []).append(instruction)
                if not _sets(instruction):
                    self._reads.setdefault(root_of(instruction.operands[1]), []).append(instruction)
            case _:
                pass

    # -- what is covered

    def _certain_reads(self, object_: Value) -> set[I.Instruction]:
        reads = self._reads.get(object_, [])
        if isinstance(object_, I.Alloca):
            extent = self._layout.alloc_size(object_.allocated_type)
        else:
            assert isinstance(object_, Argument)
            extent = self._buffers[object_].nbytes
            if self._buffers[object_].io not in ("out", "scratch"):
                return set(reads)
        if extent > _LARGEST:
            return set()
        covers = [cover for write in self._writes.get(object_, ()) for cover in self._covers(object_, write)]
        return {read for read in reads if self._is_covered(object_, read, covers, extent)}

    def _covers(self, object_: Value, write: I.Instruction) -> Iterator[_Cover]:
        """What a write covers by itself, and once more and more of the loops around it are over."""
        form, size = self._form(write.operands[1 if isinstance(write, I.Store) else 0]), self._size(write)
        if form is None or size is None:
            return
        yield _Cover(write, form, size, {}, None)
        started, counters = self._loops.home[write][0], dict[Value, Counter]()
        loop = self._loops.loop_of[started]
        while loop is not None:
            counter = self._counters[loop]
            if counter is None or _end(loop, counter) is None or not self._is_always(started, loop):
                return
            if any(self._loops.home[start][0] in loop.blocks for start in self._starts.get(object_, ())):
                return
            if counter.phi not in form.steps and not _count(counter):
                return
            counters[counter.phi] = counter
            given = {v for c in counters.values() for v in (c.start, c.bound)} | (form.steps.keys() - counters.keys())
            if any(self._is_in(v, loop) for v in given):
                return
            yield _Cover(write, form, size, dict(counters), loop)
            started, loop = loop.header, loop.parent

    def _is_always(self, started: BasicBlock, loop: Loop) -> bool:
        """Whether every iteration of a loop comes by a block."""
        return self._loops.dominators.dominates(started, loop.latches[0])

    def _is_in(self, value: Value, loop: Loop) -> bool:
        return isinstance(value, I.Instruction) and self._loops.home[value][0] in loop.blocks

    def _is_covered(self, object_: Value, read: I.Instruction, covers: list[_Cover], extent: int) -> bool:
        behind = [cover for cover in covers if self._is_behind(object_, read, cover)]
        spans = sorted(span for cover in behind for span in _spans(cover))
        if _hold(spans, (0, extent)):
            return True
        form, size = self._form(read.operands[1 if isinstance(read, I.Call) else 0]), self._size(read)
        if form is None or size is None:
            return False
        counters = self._counters_around(read)
        if form.steps.keys() <= counters.keys():
            own = list(_spans(_Cover(read, form, size, {v: counters[v] for v in form.steps}, None)))
            if own and all(_hold(spans, span) for span in own):
                return True
        fits = [cover for cover in behind if cover.form.offset == form.offset and size <= cover.size]
        return any(_told(form, counters, cover) == _told(cover.form, cover.counters, cover) for cover in fits)

    def _is_behind(self, object_: Value, read: I.Instruction, cover: _Cover) -> bool:
        """Whether a cover is made wherever a read comes, and the variable has not started anew since."""
        if cover.outermost is None:
            made = self._loops.precedes(cover.write, read)
        else:
            counter = self._counters[cover.outermost]
            end = _end(cover.outermost, counter) if counter else None
            if end is None or any(block not in cover.outermost.blocks for block in self._loops.cfg.preds[end]):
                return False
            made = self._loops.dominators.dominates(end, self._loops.home[read][0])
        return made and all(self._loops.precedes(start, cover.write) for start in self._starts.get(object_, ()))

    def _counters_around(self, read: I.Instruction) -> dict[Value, Counter]:
        """The counters that are inside of their bounds where something is read."""
        block = self._loops.home[read][0]
        innermost = self._loops.loop_of[block]
        around = [(loop, self._counters[loop]) for loop in (innermost.ancestors if innermost else ())]
        return {c.phi: c for loop, c in around if c is not None and (c.late or block is not loop.header)}

    def _size(self, access: I.Instruction) -> int | None:
        match access:
            case I.Load():
                return self._layout.store_size(access.type)
            case I.Store():
                return self._layout.store_size(access.operands[0].type)
            case _:
                return int_value(access.operands[2])

    def _form(self, pointer: Value) -> _Form | None:
        offset, steps = 0, dict[Value, int]()
        root = root_of(pointer)
        while pointer is not root:
            if isinstance(pointer, I.GetElementPtr):
                try:
                    constant, indices = self._layout.steps(pointer.source_type, pointer.operands[1:])
                except ValueError:
                    return None
                offset += constant
                for index, size in indices:
                    offset += _add(steps, index, size, 0)
            elif not isinstance(pointer, I.Cast | I.Freeze):
                return None
            assert isinstance(pointer, I.Instruction)
            pointer = pointer.operands[0]
        return _Form(offset, {v: step for v, step in steps.items() if step})

    # -- what is not the pattern

    def _is_clean_write(self, write: I.Instruction) -> bool:
        if isinstance(write, I.Store):
            return self._is_clean(write.operands[0])
        return _sets(write) or self._is_clean_read(write, write.operands[1])

    def _is_clean(self, value: Value) -> bool:
        """Whether a value is not the pattern, unless something is told of that already."""
        found = Reached([value])
        for source in found:
            match source:
                case I.Phi() | I.Select() | I.Freeze():
                    found.add(I.merged(source))
                case I.Cast(opcode="bitcast"):
                    found.add(source.operands)
                case I.Load() if self._is_clean_read(source, source.operands[0]):
                    pass
                case I.BinaryOp() if source.opcode not in ("and", "or") or source.type == T.I1:
                    pass
                case I.Cast() if source.opcode not in ("ptrtoint", "inttoptr"):
                    pass
                case I.UnaryOp() | I.Compare() | I.GetElementPtr() | I.Alloca() | GlobalVariable() | Function():
                    pass
                case I.Call() if declared_callee(source) is not None and isinstance(source.type, T.FloatType):
                    pass
                case ConstantInt() | ConstantFloat() if not is_pattern(source):
                    pass
                case ConstantNull():
                    pass
                case Argument() if source in self._buffers:
                    pass
                case _:
                    return False
        return True

    def _is_clean_read(self, read: I.Instruction, pointer: Value) -> bool:
        root = root_of(pointer)
        if root in self._clean and read in self._certain[root]:
            return True
        if isinstance(root, GlobalVariable):
            return root.is_constant
        is_checked = root in self._starts or isinstance(root, I.Load | I.Call)
        is_number = pattern_of(read.type) is not None or least_of_narrow(read.type) is not None
        return is_checked and is_number and is_computed_with(read, self._users)


def _sets(call: I.Instruction) -> bool:
    return callee_name(call).startswith("llvm.memset.")


def _add(steps: dict[Value, int], index: Value, size: int, depth: int) -> int:
    """Adds so many times an index to steps; what is constant of it."""
    number = int_value(index)
    if number is not None:
        return number * size
    match index:
        case I.BinaryOp(opcode="add" | "sub", operands=[x, y]) if depth < _DEPTH:
            return _add(steps, x, size, depth + 1) + _add(steps, y, size if index.opcode == "add" else -size, depth + 1)
        case I.BinaryOp(opcode="mul", operands=[x, y]) if (by := int_value(y)) is not None and depth < _DEPTH:
            return _add(steps, x, size * by, depth + 1)
        case I.BinaryOp(opcode="shl", operands=[x, y]) if (by := int_value(y) or 0) in range(20) and depth < _DEPTH:
            return _add(steps, x, size << by, depth + 1)
        case I.Cast(opcode="sext" | "zext", operands=[x]) if x.type == T.I32 and depth < _DEPTH:
            return _add(steps, x, size, depth + 1)
        case _:
            steps[index] = steps.get(index, 0) + size
            return 0


def _end(loop: Loop, counter: Counter) -> BasicBlock | None:
    """Where a loop goes on that is left by the test of its counter alone, but for failures."""
    ways = [(source, end) for source, end in loop.exit_edges if not isinstance(end.terminator, I.Unreachable)]
    if len(ways) != 1 or ways[0][0] is not (loop.latches[0] if counter.late else loop.header):
        return None
    return ways[0][1]


def _count(counter: Counter) -> int | None:
    """How often the inside of a loop runs, by constants; None where it is not known."""
    start, bound, step = int_value(counter.start), int_value(counter.bound), counter.step
    if start is None or bound is None or (counter.predicate[0] == "u" and (start < 0 or bound < 0)):
        return None
    first = start + step if counter.ahead else start
    way = (bound - first) * (1 if step > 0 else -1)
    if counter.predicate == "ne":
        if way < 0 or way % step:
            return None
        count = way // abs(step)
    else:
        count = max(0, -(-(way + (counter.predicate[-1] == "e")) // abs(step)))
    return count + counter.late


def _spans(cover: _Cover) -> Iterator[_Span]:
    """The bytes of an object that are covered; none where that is not constant, or they lie too far apart."""
    pieces, size = [cover.form.offset], cover.size
    for v, step in sorted(cover.form.steps.items(), key=lambda item: abs(item[1])):
        counter = cover.counters.get(v)
        start, count = (int_value(counter.start), _count(counter)) if counter else (None, None)
        if counter is None or start is None or count is None:
            return
        stride = step * counter.step
        ends = (step * start, step * start + stride * (count - 1))
        if len(pieces) == 1 and abs(stride) <= size:
            pieces, size = [pieces[0] + min(ends)], size + max(ends) - min(ends)
        elif count <= _MOST_PIECES:
            pieces = [piece + step * start + stride * n for piece in pieces for n in range(count)]
        else:
            return
        if not count or len(pieces) > _MOST_PIECES:
            return
    yield from ((piece, piece + size) for piece in pieces)


def _hold(spans: list[_Span], wanted: _Span) -> bool:
    """Whether all bytes of one are in others, which are in order."""
    at, end = wanted
    for start, behind in spans:
        if start > at:
            break
        at = max(at, behind)
    return at >= end


def _told(form: _Form, counters: Mapping[Value, Counter], cover: _Cover) -> _Told | None:
    """The steps of an address, with what is counted in place of what counts it, unless that is outside of the loops of
    a cover, where it is the same; None where something else is in it."""
    told: _Told = []
    for v, step in form.steps.items():
        if v in cover.form.steps and v not in cover.counters:
            told.append((step, (id(v),)))
        elif (c := counters.get(v)) is not None:
            told.append((step, (_key(c.start), _key(c.bound), c.step, c.predicate, c.late, c.ahead)))
        else:
            return None
    return sorted(told, key=repr)


def _key(value: Value) -> object:
    number = int_value(value)
    return number if number is not None else ("value", id(value))
