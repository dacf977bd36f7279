"""Builds parts of values, so many bytes from one on, from what these bytes are of (`analysis.lanes`).

    %w = load i64, ptr %a                       of %t, as i32:     %w.4 = load i32, ptr %a.4
    %h = lshr i64 %w, 32
    %t = trunc i64 %h to i32

    %v = phi <2 x i64> [ %p, %a ], ...          its second lane:   %v.8 = phi i64 [ (that of %p), %a ], ...

A part of a load is a narrower load, one of a phi is a phi of parts, and so on; of what is computed it is cut out by a
shift. What is made for a part lies right behind the value that it is a part of.
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.analysis.lanes import Bytes, Lanes, run, size
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Constant, Poison, Value
from jax_enzyme.transform.bit_operations import as_number
from jax_enzyme.transform.rewriting import locate, phis, place


class Parts:
    """In one function. `is_split` says of which loads a part is a load of its own; of others it is cut out."""

    def __init__(self, function: Function, lanes: Lanes, is_split: Callable[[I.Load], bool]) -> None:
        self._function = function
        self._lanes = lanes
        self._is_split = is_split
        self._found: dict[tuple[Value, int, T.Type], Value] = {}
        self._first: dict[tuple[Value, int, int], Value] = {}  # by their length, of whatever type
        self._behind: dict[Value, list[I.Instruction]] = {}
        self._instead: dict[I.Instruction, list[I.Instruction]] = {}
        self._pending: list[tuple[I.Instruction, I.Instruction, int, T.Type]] = []

    def splits(self, source: Value) -> bool:
        """Whether parts of a source are values of their own."""
        match source:
            case I.Load():
                return I.is_plain(source) and self._is_split(source)
            case I.Select():
                return not isinstance(source.operands[0].type, T.VectorType)
            case _:
                return isinstance(source, I.Phi | I.Freeze)

    def part(self, value: Value, start: int, type_: T.Type) -> Value:
        """The bytes of a value from `start` on, as many as a scalar type has."""
        found = self._part(value, start, type_)
        while self._pending:
            new, old, start, type_ = self._pending.pop()
            first = 1 if isinstance(old, I.Select) else 0
            new.operands = [*old.operands[:first], *(self._part(v, start, type_) for v in old.operands[first:])]
        return found

    def whole(self, value: Value) -> Value:
        """A value put together from parts anew, element by element."""
        scalar = T.scalar(value.type)
        width = size(scalar)
        elements = [self.part(value, start, scalar) for start in range(0, size(value.type), width)]
        if not isinstance(value.type, T.VectorType):
            return elements[0]
        made = Builder(BasicBlock())
        vector = made.pack(value.type, elements)
        self._behind.setdefault(value, []).extend(made.block.instructions)
        return vector

    def replace(self, instruction: I.Instruction, new: list[I.Instruction]) -> None:
        """Puts others in the place of an instruction without a result."""
        place(instruction, new)
        self._instead[instruction] = new

    def insert(self) -> None:
        """Puts what was made into the function."""
        behind = self._behind
        first = [i for v, new in behind.items() if not isinstance(v, I.Instruction) for i in new]
        for block in self._function.blocks:
            old = phis(block)
            made = [i for phi in old for i in behind.get(phi, ())]
            merges = [i for i in made if isinstance(i, I.Phi)]
            rest = [*(first if block is self._function.entry else ()), *(i for i in made if not isinstance(i, I.Phi))]
            for instruction in block.instructions[len(old) :]:
                rest += self._instead.get(instruction, [instruction])
                rest += behind.get(instruction, ())
            block.instructions = [*old, *merges, *rest]

    def _part(self, value: Value, start: int, type_: T.Type) -> Value:
        lanes = self._lanes.of(value)[start : start + size(type_)]
        known = _constant(lanes, type_)
        if known is not None:
            return known
        first = run(lanes)
        return self._put_together(value, start, lanes, type_) if first is None else self._of_source(*first, type_)

    def _of_source(self, source: Value, start: int, type_: T.Type) -> Value:
        if source.type == type_:
            return source
        key = source, start, type_
        if key not in self._found:
            made = Builder(BasicBlock())
            first = self._first.get((source, start, size(type_)))
            if first is None:
                first = self._made(made, *key) if self.splits(source) else _cut(made, *key)
                self._first[source, start, size(type_)] = first
            self._found[key] = _as_type(made, first, type_)
            self._note(source, made.block.instructions)
        return self._found[key]

    def _made(self, made: Builder, source: Value, start: int, type_: T.Type) -> Value:
        match source:
            case I.Load():
                known = source.align or 1
                align = min(known, start & -start) if start else known
                return made.load(type_, made.offset(source.operands[0], start), align)
            case I.Phi():
                new = made.insert(I.Phi(type_, "phi", [], targets=list(source.targets)))
            case I.Select():
                new = made.insert(I.Select(type_, "select", []))
            case _:
                assert isinstance(source, I.Freeze)
                new = made.insert(I.Freeze(type_, "freeze", []))
        self._pending.append((new, source, start, type_))
        return new

    def _put_together(self, value: Value, start: int, lanes: Bytes, type_: T.Type) -> Value:
        """From neighbours of several values."""
        key = value, start, type_
        if key in self._found:
            return self._found[key]
        made = Builder(BasicBlock())
        word, at = T.IntType(8 * len(lanes)), 0
        result: Value | None = None
        while at < len(lanes):
            count = _together(lanes, at)
            if any(lanes[at : at + count]):  # neither zeros nor poison
                piece = self._part(value, start + at, T.IntType(8 * count))
                wide = piece if count == len(lanes) else made.cast("zext", piece, word)
                moved = made.binary("shl", wide, const_int(word, 8 * at)) if at else wide
                result = moved if result is None else made.binary("or", result, moved)
            at += count
        assert result is not None, "then it is a constant"
        self._found[key] = _as_type(made, result, type_)
        self._note(value, made.block.instructions)
        return self._found[key]

    def _note(self, value: Value, new: list[I.Instruction]) -> None:
        if isinstance(value, I.Instruction):
            locate(value, new)
        self._behind.setdefault(value, []).extend(new)


def _together(lanes: Bytes, at: int) -> int:
    """How many bytes from one on are one part: neighbours, or constants; as many as a word has."""
    count = 1
    while at + 2 * count <= len(lanes):
        wider = lanes[at : at + 2 * count]
        if run(wider) is None and any(isinstance(lane, tuple) for lane in wider):
            break
        count *= 2
    return count


def _cut(made: Builder, source: Value, start: int, type_: T.Type) -> Value:
    """By its place in a vector, where it lies in one element, and by a shift in that."""
    width, wanted = size(T.scalar(source.type)), size(type_)
    if isinstance(source.type, T.VectorType) and start % width + wanted <= width:
        source, start = made.extract_element(source, start // width), start % width
    part, word = T.IntType(8 * wanted), T.IntType(8 * size(source.type))
    if part == word:
        return _as_type(made, source, type_)
    whole = _as_type(made, source, word)
    low = made.binary("lshr", whole, const_int(word, 8 * start)) if start else whole
    return _as_type(made, made.cast("trunc", low, part), type_)


def _as_type(made: Builder, value: Value, type_: T.Type) -> Value:
    if value.type == type_:
        return value
    if isinstance(value, I.Cast) and value.opcode == "bitcast" and value.operands[0].type == type_:
        return value.operands[0]
    if T.is_pointer(type_) or T.is_pointer(value.type):
        return made.cast("inttoptr" if T.is_pointer(type_) else "ptrtoint", value, type_)
    return made.cast("bitcast", value, type_)


def _constant(lanes: Bytes, type_: T.Type) -> Constant | None:
    """The constant of these bytes, where all are known. (Any will do for those that are poison.)"""
    if all(lane is None for lane in lanes):
        return Poison(type_)
    if any(isinstance(lane, tuple) for lane in lanes):
        return None
    bits = int.from_bytes(bytes(lane if isinstance(lane, int) else 0 for lane in lanes), "little")
    number = const_int(T.IntType(8 * len(lanes)), bits)
    return number if isinstance(type_, T.IntType) else as_number(number, type_)
