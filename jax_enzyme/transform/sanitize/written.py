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

from jax_enzyme.analysis.filling import Filling, are_all
from jax_enzyme.analysis.filling import Written as Bytes
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Polynomial, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
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
from jax_enzyme.transform.sanitize.provenance import is_private, root_of
from jax_enzyme.transform.sanitize.registers import fills, hides
from jax_enzyme.transform.sanitize.scalars import MOVES, is_computed_with, is_pattern, least_of_narrow, pattern_of


@dataclass(frozen=True, eq=False)
class _Cover:
    """The bytes from `base` on that have been written where control has come to `start`, and is not in the loop `over`
    any more; behind `write` where there is none."""

    write: I.Instruction
    over: Loop | None
    start: BasicBlock
    base: Polynomial
    bytes: Bytes


class Written:
    """What is so in a function. `reads`: instructions that read what has been written; `fills`: those that give the
    pattern to variables of which nothing else is read."""

    def __init__(self, function: Function, layout: DataLayout, buffers: Mapping[Argument, Buffer]) -> None:
        self._layout, self._buffers, self._users = layout, buffers, uses(function)
        self._facts = Recurrences.of(function, layout.module)
        self._loops, self._filling = self._facts.loops, Filling(function, self._facts)
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
        covers = [cover for write in self._writes.get(object_, ()) for cover in self._covers(object_, write)]
        return {read for read in reads if self._is_covered(object_, read, covers, extent)}

    def _covers(self, object_: Value, write: I.Instruction) -> Iterator[_Cover]:
        """What a write covers by itself, and once more and more of the loops around it are over."""
        pointer, size = write.operands[1 if isinstance(write, I.Store) else 0], self._size(write)
        block, over = self._loops.home[write][0], None
        inner = self._loops.loop_of[block]
        for within in (*(inner.ancestors if inner else ()), None):
            anew = (self._loops.home[start][0] for start in self._starts.get(object_, ()))
            if size is None or (over is not None and any(start in over for start in anew)):
                return
            found = self._filling.gone_over(pointer, size, block, within)
            if found is None:
                return
            yield _Cover(write, over, *found)
            over = within

    def _is_covered(self, object_: Value, read: I.Instruction, covers: list[_Cover], extent: int) -> bool:
        pointer, size = read.operands[1 if isinstance(read, I.Call) else 0], self._size(read)
        block = self._loops.home[read][0]
        written: list[tuple[Polynomial, list[Bytes]]] = []
        for cover in covers:
            if self._is_behind(object_, read, cover):
                own = next((parts for base, parts in written if base == cover.base), None)
                if own is None:
                    written.append((cover.base, own := []))
                own.append(cover.bytes)
        place = self._facts.form_at(pointer, block).polynomial
        for base, parts in written:
            if base == Polynomial.atom(self._facts.leaf(object_)) and are_all(parts, extent):
                return True
            try:
                span = self._facts.bounds(place - base, self._facts.guards.at(block))
            except TooComplex:
                continue
            if size is not None and are_all(parts, span.high + size, span.low):
                return True
        return False

    def _is_behind(self, object_: Value, read: I.Instruction, cover: _Cover) -> bool:
        """Whether a cover is made wherever a read comes, and the variable has not started anew since."""
        if cover.over is None:
            made = self._loops.precedes(cover.write, read)
        else:
            block = self._loops.home[read][0]
            made = block not in cover.over and self._loops.dominators.dominates(cover.start, block)
        return made and all(self._loops.precedes(start, cover.write) for start in self._starts.get(object_, ()))

    def _size(self, access: I.Instruction) -> int | None:
        if isinstance(access, I.Load | I.Store):
            return self._layout.store_size(I.accessed_value(access).type)
        return int_value(access.operands[2])

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
