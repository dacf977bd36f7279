"""Words that hold several things, or a part of one, are taken apart into what they hold.

    before    %w = load i64, ptr %a                           (a float, then an int)
              store i64 %w, ptr %b
              %high = lshr i64 %w, 32
              %k = trunc i64 %high to i32

    after     %w.0 = load i32, ptr %a                         %w.32 = load i32, ptr %a.4
              store i32 %w.0, ptr %b                          store i32 %w.32, ptr %b.4
              (%k is %w.32)

    before    %v = load <2 x i64>, ptr %a                     after    %v.0 = load i64, ptr %a
              %s = shufflevector <2 x i64> %v, poison, <1, 0>          %v.64 = load i64, ptr %a.8
              %x = bitcast <2 x i64> %s to <2 x double>                %x0 = bitcast i64 %v.64 to double ...

Optimisers copy small structures as one integer or as a vector of integers, and move the parts of it by shifts and
shuffles. What lies where is known from `analysis.words`. Each *piece* of a word (so many bits from one bit on) is
found along its definition: a narrower load, a phi of pieces, another lane. What remains are integers that hold one
number each or none, which `retype` deals with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.words import Piece, Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import (
    Argument,
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantInt,
    ConstantSplat,
    Poison,
    Undef,
    Value,
    ZeroInitializer,
    int_value,
)
from jax_enzyme.transform.rewriting import phis, place, remove_dead, replace_values

_MERGES = (I.Phi, I.Select, I.Freeze)
_PARTS = (I.ExtractElement, I.InsertElement, I.ShuffleVector)
_SHIFTS = frozenset("shl lshr or and".split())
_CASTS = frozenset("trunc zext bitcast".split())
_WIDTHS = (8, 16, 32, 64)
_Range = tuple[int, int]


def split_words(module: Module, functions: list[Function], words: Words) -> bool:
    """Takes apart the words of these functions, in place; whether there were any."""
    return any([_Splitting(module, function, words).run() for function in functions])


class _Splitting:
    """One function."""

    def __init__(self, module: Module, function: Function, words: Words) -> None:
        self._function = function
        self._words = words
        self._layout = DataLayout(module)
        self._finder = _Pieces(function, self._layout)
        self._carrying: dict[Value, bool] = {}

    def run(self) -> bool:
        replaced: dict[Value, Value] = {}
        changed = False
        for instruction in list(self._function.instructions()):
            match instruction:
                case I.Store() if _is_word(instruction.operands[0]):
                    changed |= self._store(instruction)
                case I.Cast(opcode="bitcast") if T.is_float(instruction.type) and self._passes_parts(instruction):
                    replaced[instruction] = self._number(instruction)
                case _ if _narrows(instruction) and self._carries(instruction.operands[0]):
                    replaced[instruction] = self._narrowed(instruction)
                case _:
                    pass
        if not changed and not replaced:
            return False
        replace_values(self._function, replaced)
        remove_dead(self._function)
        return True

    def _store(self, store: I.Store) -> bool:
        value, pointer = store.operands
        size = self._layout.store_size(value.type)
        if store.ordering or "volatile" in store.flags or not self._carries(value):
            return False
        origins = list(_origins(value))
        held = self._held(store, pointer, size)
        for origin in origins:
            if isinstance(origin, I.Load) and self._layout.store_size(origin.type) == size:
                held |= self._held(origin, origin.operands[0], size)
        if not held or not _side_by_side(held, size, self._layout) or self._is_even(value, held, origins):
            return False
        made = Builder(BasicBlock())
        for offset, length in _partition(held, size, self._layout):
            piece = self._finder.piece(value, 8 * offset, 8 * length)
            made.store(piece, made.offset(pointer, offset), _alignment(store.align, offset))
        self._finder.insert(store, made.block.instructions)
        self._finder.remove(store)
        return True

    def _is_even(self, value: Value, held: frozenset[Piece], origins: list[Value]) -> bool:
        """Whether there are numbers of one kind all over, moved as a whole: `retype` makes a vector of them."""
        types = {t for _, t in held}
        if len(types) != 1 or any(map(_is_part, origins)):
            return False
        lane, size = (self._layout.store_size(t) for t in (T.scalar(value.type), next(iter(types))))
        if T.PTR in types:
            return value.type == T.I64
        full = size * len(held) == self._layout.store_size(value.type)
        return full and lane % size == 0 and all(o % size == 0 for o, _ in held)

    def _passes_parts(self, cast: I.Instruction) -> bool:
        """Whether a number is made of words that were put together from parts."""
        operand = cast.operands[0]
        return _is_word(operand) and any(map(_is_part, _origins(operand))) and self._carries(operand)

    def _number(self, cast: I.Instruction) -> Value:
        scalar = T.scalar(cast.type)
        bits = 8 * self._layout.store_size(scalar)
        made = Builder(BasicBlock())
        count = cast.type.count if isinstance(cast.type, T.VectorType) else 1
        lanes = [self._finder.piece(cast.operands[0], i * bits, bits) for i in range(count)]
        numbers = [made.cast("bitcast", lane, scalar) for lane in lanes]
        result: Value = numbers[0]
        if isinstance(cast.type, T.VectorType):
            result = Poison(cast.type)
            for index, number in enumerate(numbers):
                operands = [result, number, const_int(T.I64, index)]
                result = made.insert(I.InsertElement(cast.type, "insertelement", operands))
        self._finder.insert(cast, made.block.instructions)
        return result

    def _narrowed(self, instruction: I.Instruction) -> Value:
        """Of a word: its lower bits, one lane, the rest that a shift leaves."""
        type_ = instruction.type
        assert isinstance(type_, T.IntType)
        if instruction.opcode in ("trunc", "extractelement"):
            return self._finder.piece(instruction, 0, type_.bits)
        amount = int_value(instruction.operands[1])
        assert amount is not None
        low, bits = (0, amount.bit_length()) if instruction.opcode == "and" else (amount, type_.bits - amount)
        made = Builder(BasicBlock())
        wide = made.cast("zext", self._finder.piece(instruction.operands[0], low, bits), type_)
        self._finder.insert(instruction, made.block.instructions)
        return wide

    def _held(self, access: I.Instruction, pointer: Value, size: int) -> frozenset[Piece]:
        """The numbers and pointers in what an access reads or writes."""
        numbers = self._words.numbers(pointer, size, access) or frozenset()
        return numbers | (self._words.pointers(pointer, size) or frozenset())

    def _is_carried(self, source: Value) -> bool:
        if isinstance(source, I.Load):
            return bool(self._held(source, source.operands[0], self._layout.store_size(source.type)))
        return _is_number(source)

    def _carries(self, value: Value) -> bool:
        """Whether bits of a number, or of a pointer, may be in a word."""
        if value not in self._carrying:
            self._carrying[value] = any(map(self._is_carried, _sources(value)))
        return self._carrying[value]


class _Pieces:
    """Finds pieces of words in one function: what is made for them goes right behind the word's definition."""

    def __init__(self, function: Function, layout: DataLayout) -> None:
        self._function = function
        self._layout = layout
        self._home = {i: b for b in function.blocks for i in b.instructions}
        self._found: dict[tuple[Value, int, int], Value] = {}

    def piece(self, value: Value, low: int, bits: int) -> Value:
        """The integer in `bits` bits of a value, from bit `low` on."""
        key = value, low, bits
        if key not in self._found:
            if value.type == T.IntType(bits) and low == 0 and not _is_part(value):
                self._found[key] = value
            elif (known := _constant(value, low, bits)) is not None:
                self._found[key] = known
            else:
                self._find(value, low, bits)
        return self._found[key]

    def insert(self, before: I.Instruction, new: list[I.Instruction]) -> None:
        block = self._home[before]
        at = block.instructions.index(before)
        block.instructions[at:at] = new
        self._home.update(dict.fromkeys(new, block))
        place(before, new)

    def remove(self, instruction: I.Instruction) -> None:
        self._home[instruction].instructions.remove(instruction)

    def _find(self, value: Value, low: int, bits: int) -> None:
        key, type_ = (value, low, bits), T.IntType(bits)
        if isinstance(value, I.Phi):
            phi = I.Phi(type_, "phi", [], targets=list(value.targets))
            self._found[key] = phi
            self._behind(value, [phi])
            phi.operands = [self.piece(v, low, bits) for v in value.operands]
            return
        made = Builder(BasicBlock())
        self._found[key] = self._made(made, value, low, bits)
        self._behind(value, made.block.instructions)

    def _made(self, made: Builder, value: Value, low: int, bits: int) -> Value:
        type_ = T.IntType(bits)
        match value:
            case I.Load() if low % 8 == 0 == bits % 8 and not value.ordering and "volatile" not in value.flags:
                at = made.offset(value.operands[0], low // 8)
                return made.load(type_, at, _alignment(value.align, low // 8))
            case I.Select():
                condition, then, other = value.operands
                if not isinstance(condition.type, T.VectorType):
                    return made.select(condition, self.piece(then, low, bits), self.piece(other, low, bits))
            case I.Freeze():
                return made.insert(I.Freeze(type_, "freeze", [self.piece(value.operands[0], low, bits)]))
            case I.Cast():
                found = self._of_cast(made, value, low, bits)
                if found is not None:
                    return found
            case I.BinaryOp() if value.opcode in _SHIFTS and not isinstance(value.type, T.VectorType):
                found = self._of_shift(made, value, low, bits)
                if found is not None:
                    return found
            case _ if isinstance(value, _PARTS):
                found = self._of_lanes(value, low, bits)
                if found is not None:
                    return found
            case _:
                pass
        return self._cut_out(made, value, low, bits)

    def _of_cast(self, made: Builder, cast: I.Cast, low: int, bits: int) -> Value | None:
        operand = cast.operands[0]
        if cast.opcode == "trunc" and not isinstance(operand.type, T.VectorType):
            return self.piece(operand, low, bits)
        if cast.opcode == "zext" and isinstance(operand.type, T.IntType):
            width = operand.type.bits
            if low >= width:
                return const_int(T.IntType(bits), 0)
            return self.piece(operand, low, bits) if low + bits <= width else None
        if cast.opcode != "bitcast":
            return None
        if T.is_int(operand.type):
            return self.piece(operand, low, bits)
        lane = 8 * self._layout.store_size(T.scalar(operand.type))
        if T.is_float(operand.type) and bits == lane and low % lane == 0:
            if isinstance(operand.type, T.VectorType):
                operand = made.extract_element(operand, low // lane)
            return made.cast("bitcast", operand, T.IntType(bits))
        return None

    def _of_shift(self, made: Builder, value: I.BinaryOp, low: int, bits: int) -> Value | None:
        assert isinstance(value.type, T.IntType)
        x, y = value.operands
        width, number, nothing = value.type.bits, int_value(y), const_int(T.IntType(bits), 0)
        match value.opcode:
            case "lshr" if number is not None:
                if low + number >= width:
                    return nothing
                return self.piece(x, low + number, bits) if low + number + bits <= width else None
            case "shl" if number is not None:
                if low + bits <= number:
                    return nothing
                return self.piece(x, low - number, bits) if low >= number else None
            case "and" if number is not None:
                mask = (number >> low) & ((1 << bits) - 1)
                if mask == 0:
                    return nothing
                return self.piece(x, low, bits) if mask == (1 << bits) - 1 else None
            case "or":
                a, b = self.piece(x, low, bits), self.piece(y, low, bits)
                if int_value(a) == 0:
                    return b
                return a if int_value(b) == 0 else made.binary("or", a, b)
            case _:
                return None

    def _of_lanes(self, value: Value, low: int, bits: int) -> Value | None:
        """Of what a vector instruction puts together or takes out."""
        assert isinstance(value, I.Instruction)
        vector = value.operands[0]
        assert isinstance(vector.type, T.VectorType)
        lane = 8 * self._layout.store_size(vector.type.element)
        if isinstance(value, I.ExtractElement):
            index = int_value(value.operands[1])
            return None if index is None else self.piece(vector, index * lane + low, bits)
        first, last = low // lane, (low + bits - 1) // lane
        if isinstance(value, I.InsertElement):
            index = int_value(value.operands[2])
            if index is None or (first <= index <= last and first != last):
                return None
            return (
                self.piece(value.operands[1], low - index * lane, bits)
                if first == index
                else self.piece(vector, low, bits)
            )
        assert isinstance(value, I.ShuffleVector)
        chosen = value.mask[first : last + 1]
        if all(c < 0 for c in chosen):
            return Poison(T.IntType(bits))
        if any(b != a + 1 for a, b in pairwise(chosen)) or chosen[0] < 0:
            return None
        start, end = chosen[0], chosen[-1]
        operand, shift = (vector, 0) if end < vector.type.count else (value.operands[1], vector.type.count)
        if start < shift:
            return None
        return self.piece(operand, (start - shift) * lane + low % lane, bits)

    def _cut_out(self, made: Builder, value: Value, low: int, bits: int) -> Value:
        """By a shift, whatever the value is."""
        whole = 8 * self._layout.store_size(value.type)
        word = value
        if value.type != T.IntType(whole):
            word = made.cast("bitcast", value, T.IntType(whole))
        if low:
            word = made.binary("lshr", word, const_int(word.type, low))
        return made.cast("trunc", word, T.IntType(bits)) if bits < whole else word

    def _behind(self, value: Value, new: list[I.Instruction]) -> None:
        """Inserts behind the definition of a value (and behind the phis of its block)."""
        if isinstance(value, I.Phi) and len(new) == 1 and isinstance(new[0], I.Phi):
            block = self._home[value]
            at = 0
        elif isinstance(value, Argument | Constant):
            block = self._function.entry
            at = 0
        else:
            assert isinstance(value, I.Instruction)
            block = self._home[value]
            at = max(block.instructions.index(value) + 1, len(phis(block)))
        # What pieces of operands needed may stand right behind the same definition: this comes after it.
        while at < len(block.instructions) and any(block.instructions[at] in n.operands for n in new):
            at += 1
        block.instructions[at:at] = new
        self._home.update(dict.fromkeys(new, block))


def _is_word(value: Value) -> bool:
    scalar = T.scalar(value.type)
    if not isinstance(scalar, T.IntType) or (isinstance(value.type, T.VectorType) and value.type.scalable):
        return False
    return scalar.bits in (8, 16, 32, 64, 128, 256, 512) and not isinstance(value, Constant)


def _narrows(instruction: I.Instruction) -> bool:
    """Whether an instruction takes some bits of a word."""
    if not isinstance(instruction.type, T.IntType):
        return False
    match instruction:
        case I.Cast(opcode="trunc"):
            return instruction.type.bits in _WIDTHS
        case I.ExtractElement():
            return int_value(instruction.operands[1]) is not None
        case I.BinaryOp(opcode="lshr"):
            amount = int_value(instruction.operands[1])
            return amount is not None and instruction.type.bits - amount in _WIDTHS
        case I.BinaryOp(opcode="and"):
            return int_value(instruction.operands[1]) in (0xFFFF, 0xFFFFFFFF) and instruction.type.bits > 32
        case _:
            return False


def _is_part(value: Value) -> bool:
    """Whether a value is made of others of a different size, or of parts."""
    if isinstance(value, I.Cast):
        return value.opcode in ("trunc", "zext") or (value.opcode == "bitcast" and T.is_int(value.operands[0].type))
    if isinstance(value, I.BinaryOp):
        return _number_shift(value)
    return isinstance(value, _PARTS)


def _number_shift(value: I.BinaryOp) -> bool:
    """A shift by whole bytes, or what joins such."""
    if value.opcode in ("shl", "lshr"):
        amount = int_value(value.operands[1])
        return amount is not None and amount % 8 == 0
    if value.opcode == "and":
        mask = int_value(value.operands[1])
        return mask is not None and _is_byte_mask(mask, value.type)
    return value.opcode == "or" and any(map(_is_shifted, value.operands))


def _is_shifted(value: Value) -> bool:
    if isinstance(value, I.Cast):
        return value.opcode == "zext" and T.scalar(value.operands[0].type) != T.I1
    return isinstance(value, I.BinaryOp) and value.opcode in ("shl", "or", "and") and _number_shift(value)


def _is_byte_mask(mask: int, type_: T.Type) -> bool:
    """Whether a mask keeps or clears whole bytes."""
    assert isinstance(type_, T.IntType)
    return all((mask >> i) & 0xFF in (0, 0xFF) for i in range(0, type_.bits, 8))


def _is_number(value: Value) -> bool:
    """The bits of a number, or of a pointer."""
    if not isinstance(value, I.Cast):
        return False
    return value.opcode == "ptrtoint" or (value.opcode == "bitcast" and T.is_float(value.operands[0].type))


def _origins(value: Value) -> Iterator[Value]:
    """What a word is a copy of, as a whole."""
    return _leaves(value, lambda _: False)


def _sources(value: Value) -> Iterator[Value]:
    """What a word is made of, in parts."""
    return _leaves(value, _is_part)


def _leaves(value: Value, through: Callable[[I.Instruction], bool]) -> Iterator[Value]:
    """Where a value comes from, through merges, and through the operands of what is said."""
    pending, seen = [value], set[Value]()
    while pending:
        item = pending.pop()
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, _MERGES):
            pending += item.operands[1:] if isinstance(item, I.Select) else item.operands
        elif isinstance(item, I.Instruction) and through(item):
            pending += item.operands
        else:
            yield item


def _side_by_side(numbers: frozenset[Piece], size: int, layout: DataLayout) -> bool:
    """Whether numbers lie side by side within a word."""
    end = 0
    for offset, type_ in sorted(numbers, key=lambda p: p[0]):
        if offset < end:
            return False
        end = offset + layout.store_size(type_)
    return end <= size


def _partition(numbers: frozenset[Piece], size: int, layout: DataLayout) -> Iterator[_Range]:
    """Offsets and lengths of the numbers in a word, and of integers that fill the gaps."""
    at = 0
    for offset, type_ in [*sorted(numbers, key=lambda p: p[0]), (size, T.VOID)]:
        while at < offset:
            length = 8
            while at % length or at + length > offset:
                length //= 2
            yield at, length
            at += length
        if at < size:
            length = layout.store_size(type_)
            yield at, length
            at += length


def _alignment(align: int | None, offset: int) -> int:
    known = align or 1
    return min(known, offset & -offset) if offset else known


def _constant(value: Value, low: int, bits: int) -> Constant | None:
    """The piece of a constant; None where it takes instructions."""
    type_ = T.IntType(bits)
    match value:
        case ConstantInt(value=number):
            return const_int(type_, number >> low)
        case ZeroInitializer():
            return zero(type_)
        case Undef() | Poison():
            return type(value)(type_)
        case ConstantAggregate() | ConstantSplat() if isinstance(value.type, T.VectorType):
            element = value.type.element
            assert isinstance(element, T.IntType)
            elements = value.elements if isinstance(value, ConstantAggregate) else [value.element] * value.type.count
            number = 0
            for index, part in enumerate(elements):
                number |= ((int_value(part) or 0) & ((1 << element.bits) - 1)) << (index * element.bits)
            return const_int(type_, number >> low)
        case _:
            return None
