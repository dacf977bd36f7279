"""Of which bytes of which values a value consists: integers, numbers and vectors as lanes of bytes.

    %w = load i64, ptr %a              %w:0 ... %w:7      (the bytes of a load are its own)
    %h = lshr i64 %w, 32               %w:4 %w:5 %w:6 %w:7 0 0 0 0
    %t = trunc i64 %h to i32           %w:4 %w:5 %w:6 %w:7

    lattice     flat, one per byte: a byte of a value, a constant, or None (poison: any byte will do)
    sources     what is no move has bytes of its own: loads, arithmetic, and what merges (phis, selects, freezes)
    moves       casts between words and vectors, shifts by whole bytes, masks of whole bytes, words put together, byte
                swaps, and what takes lanes out of vectors or puts them in

A loop can only go through a phi, whose bytes are its own: every value is looked at once, in the order of definitions.
A scalar integer that is the bits of a number is a source: whoever reads it asks for bits. So is what a mask or a shift
makes that cuts through a byte: a new value as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeGuard

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.reach import bottom_up
from jax_enzyme.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantInt,
    ConstantNull,
    ConstantSplat,
    Poison,
    Undef,
    Value,
    ZeroInitializer,
    int_value,
)

Byte = tuple[Value, int]
Lane = Byte | int | None
Bytes = tuple[Lane, ...]


def size(type_: T.Type) -> int:
    """The bytes of a value of a type; 0 where it does not consist of whole bytes."""
    match type_:
        case T.IntType(bits):
            return 0 if bits % 8 else bits // 8
        case T.FloatType():
            return type_.size if type_.size in (2, 4, 8) else 0
        case T.PointerType():
            return 8
        case T.VectorType(count, element, False):
            return count * size(element)
        case _:
            return 0


def run(lanes: Sequence[Lane]) -> Byte | None:
    """The first of some bytes that are neighbours in one value, in order; None where they are not."""
    first = lanes[0]
    if not isinstance(first, tuple):
        return None
    source, start = first
    return first if all(lane == (source, start + i) for i, lane in enumerate(lanes)) else None


class Lanes:
    """Computed for the values that are asked about, and what they are made of. `across`: what takes a number or a
    pointer for an integer, or the other way round, is a move too."""

    def __init__(self, across: bool = False) -> None:
        self._across = across
        self._found: dict[Value, Bytes] = {}

    def of(self, value: Value) -> Bytes:
        """The bytes of a value, the lowest first; none where it does not consist of whole bytes."""
        for item, is_unreached in bottom_up(value, self._operands, self._found):
            self._found[item] = _own(item) if is_unreached else self._lanes(item)
        return self._found[value]

    def is_move(self, value: Value) -> bool:
        """Whether a value consists of bytes of others."""
        return bool(self._operands(value)) and self.of(value)[0] != (value, 0)

    def sources(self, value: Value) -> Iterator[Value]:
        """The values that bytes are of."""
        yield from dict.fromkeys(lane[0] for lane in self.of(value) if isinstance(lane, tuple))

    def runs(self, value: Value) -> Iterator[tuple[Value, int]]:
        """The values that bytes are of, and how many neighbours each time."""
        lanes, at = self.of(value), 0
        while at < len(lanes):
            end = at + 1
            while end < len(lanes) and run(lanes[at : end + 1]):
                end += 1
            lane = lanes[at]
            if isinstance(lane, tuple):
                yield lane[0], end - at
            at = end

    def numbers(self, value: Value) -> Iterator[tuple[int, Value]]:
        """The numbers that a value consists of, side by side, or begins with, and where each of them is."""
        lanes = self.of(value)
        for start, lane in enumerate(lanes):
            if isinstance(lane, tuple) and lane[1] == 0:
                part = lane[0]
                number = part.operands[0] if isinstance(part, I.Cast) and part.opcode == "bitcast" else part
                if isinstance(number.type, T.FloatType) and run(lanes[start : start + size(part.type)]) == lane:
                    yield start, number

    def _operands(self, value: Value) -> list[Value]:
        return value.operands if self._across and _reinterprets(value) else _moved_operands(value)

    def _lanes(self, value: Value) -> Bytes:
        if self._across and _reinterprets(value):
            return self._found[value.operands[0]]
        if not size(value.type):
            return ()
        if isinstance(value, Constant):
            return _of_constant(value)
        if not isinstance(value, I.Instruction) or not _moved_operands(value):
            return _own(value)
        moved = _moved(value, lambda operand: self._found[operand])
        return _own(value) if moved is None or len(moved) != size(value.type) else moved


def _reinterprets(value: Value) -> TypeGuard[I.Cast]:
    if not isinstance(value, I.Cast) or value.opcode not in ("bitcast", "ptrtoint", "inttoptr"):
        return False
    return 0 < size(value.type) == size(value.operands[0].type)


def _own(value: Value) -> Bytes:
    return tuple((value, i) for i in range(size(value.type)))


def _of_constant(value: Constant) -> Bytes:
    count = size(value.type)
    match value:
        case ConstantInt(value=number):
            return tuple(number >> (8 * i) & 0xFF for i in range(count))
        case ZeroInitializer() | ConstantNull():
            return (0,) * count
        case Undef() | Poison():
            return (None,) * count
        case ConstantSplat(element=element) if isinstance(value.type, T.VectorType):
            return _of_constant(element) * value.type.count
        case ConstantAggregate(elements=elements):
            return tuple(chain.from_iterable(map(_of_constant, elements)))
        case _:
            return _own(value)


_OPCODES = frozenset("bitcast trunc zext shl lshr and or xor add extractelement insertelement shufflevector".split())
_INTRINSICS = ("llvm.bswap.i", "llvm.fshl.i", "llvm.fshr.i")


def _moved_operands(value: Value) -> list[Value]:
    """The operands that an instruction which may be a move has bytes of."""
    if not isinstance(value, I.Instruction) or not size(value.type):
        return []
    if value.opcode in _OPCODES:
        return value.operands
    return value.arguments if isinstance(value, I.Call) and callee_name(value).startswith(_INTRINSICS) else []


def _moved(value: I.Instruction, of: Callable[[Value], Bytes]) -> Bytes | None:
    """The bytes that a move puts together; None where it is none."""
    match value:
        case I.Cast(opcode="bitcast", operands=[x]):
            is_bits = isinstance(value.type, T.IntType) and isinstance(x.type, T.FloatType)
            return None if is_bits else of(x)
        case I.Cast(opcode="trunc" | "zext", operands=[x]):
            old, new = size(T.scalar(x.type)), size(T.scalar(value.type))
            filled = (0,) * (new - old)
            return tuple(b for e in _elements(of(x), old) for b in (*e[:new], *filled)) if old else None
        case I.BinaryOp(operands=[x, y]):
            return _combined(value.opcode, of(x), of(y), size(T.scalar(value.type)))
        case I.ExtractElement(operands=[x, index]):
            return _element(of(x), size(value.type), int_value(index))
        case I.InsertElement(operands=[x, part, index]):
            at, width = int_value(index), size(part.type)
            old = of(x)
            if at is None or not 0 <= at * width < len(old):
                return None
            return (*old[: at * width], *of(part), *old[(at + 1) * width :])
        case I.ShuffleVector(operands=[x, y]):
            width = size(T.scalar(value.type))
            elements = [*_elements(of(x), width), *_elements(of(y), width)]
            return tuple(b for lane in value.mask for b in ((None,) * width if lane < 0 else elements[lane]))
        case I.Call():
            return _of_intrinsic(value, of)
        case _:
            return None


def _elements(lanes: Bytes, width: int) -> list[Bytes]:
    return [lanes[i : i + width] for i in range(0, len(lanes), width)] if width else []


def _element(lanes: Bytes, width: int, at: int | None) -> Bytes | None:
    return None if at is None or at < 0 else lanes[at * width : (at + 1) * width]


def _combined(opcode: str, a: Bytes, b: Bytes, width: int) -> Bytes | None:
    if opcode not in ("shl", "lshr"):
        found = [_both(opcode, x, y) for x, y in zip(a, b, strict=True)]
        return None if any(f is _NO_MOVE for f in found) else tuple(f for f in found if not isinstance(f, str))
    amounts = {_number(e) for e in _elements(b, width)}
    amount = amounts.pop() if len(amounts) == 1 else None
    if amount is None or amount % 8 or amount >= 8 * width:
        return None
    by, nothing = amount // 8, (0,) * (amount // 8)
    shifted = [(*nothing, *e[: width - by]) if opcode == "shl" else (*e[by:], *nothing) for e in _elements(a, width)]
    return tuple(chain.from_iterable(shifted))


_NO_MOVE = "no move"


def _both(opcode: str, a: Lane, b: Lane) -> Lane | str:
    """One byte of two: where one of them is nothing it is the other, in a sum too, which then carries nothing."""
    if opcode == "and":
        return 0 if 0 in (a, b) else a if b == 0xFF else b if a == 0xFF else _NO_MOVE
    return b if a == 0 else a if b == 0 else _NO_MOVE


def _number(lanes: Bytes) -> int | None:
    """The unsigned number of which all bytes are known."""
    known = [lane for lane in lanes if isinstance(lane, int)]
    return int.from_bytes(bytes(known), "little") if len(known) == len(lanes) else None


def _of_intrinsic(call: I.Call, of: Callable[[Value], Bytes]) -> Bytes | None:
    width = size(call.type)
    if call.callee.name.startswith("llvm.bswap."):
        return of(call.arguments[0])[::-1]
    high, low, amount = map(of, call.arguments)
    number = _number(amount)
    if number is None or number % 8:
        return None
    by = number // 8 % width
    start = width - by if call.callee.name.startswith("llvm.fshl.") else by
    return (*low, *high)[start : start + width]
