"""What a warp does with small matrices in inline PTX, by its definition: `mma.sync` and `ldmatrix`, with shuffles.

    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {b0,b1}, {c0,c1,c2,c3};

The matrices lie in the registers of the 32 lanes as chapter 9.7.14 of the PTX ISA has it: with `g` a lane over four and
`t` its rest, register `r + R q` of the first matrix holds row `g + 8 r` and the columns of chunk `q` that are `t`'s,
register `q` of the second one the same rows of column `g`, and of the sum a lane has columns `2 t` and `2 t + 1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import Value

_SHAPE = re.compile(r"m(\d+)n8k(\d+)$")


@dataclass(frozen=True)
class Shape:
    """Types of a product: what a register of the factors `held`, its `elements`, and a register of the sum."""

    rows: int
    depth: int
    held: T.Type
    element: T.Type
    sums: T.Type
    signed: tuple[bool, bool]

    @staticmethod
    def of(words: Sequence[str]) -> Shape:
        """From `m16n8k8 row col f32 tf32 tf32 f32`; ValueError and KeyError for one that is not known."""
        shape, *layout, to, first, second, of = words
        match = _SHAPE.match(shape)
        if match is None or layout != ["row", "col"] or to != of:
            raise ValueError(shape)
        whole = {"s8", "u8"} & {first, second}
        if first != second and not whole:
            raise ValueError(second)
        held, element, sums = {
            "f16": (T.I32, T.HALF, {"f32": T.FLOAT, "f16": T.I32}),
            "bf16": (T.I32, T.BFLOAT, {"f32": T.FLOAT}),
            "tf32": (T.FLOAT, T.FLOAT, {"f32": T.FLOAT}),
            "f64": (T.DOUBLE, T.DOUBLE, {"f64": T.DOUBLE}),
            "s8": (T.I32, T.I8, {"s32": T.I32}),
            "u8": (T.I32, T.I8, {"s32": T.I32}),
        }[first]
        signs = (first == "s8", second == "s8")
        return Shape(int(match[1]), int(match[2]), held, element, sums[to], signs)


def loaded(words: Sequence[str]) -> tuple[int, bool]:
    """How many matrices `ldmatrix` loads, and whether it transposes them."""
    shape, count, *rest, kind = words
    if shape != "m8n8" or kind != "b16" or rest not in ([], ["trans"]) or count not in ("x1", "x2", "x4"):
        raise ValueError(words)
    return int(count[1:]), bool(rest)


def to_tf32(at: Builder, value: Value) -> Value:
    """To ten bits of fraction, ties away from zero."""
    bits = at.binary("add", at.cast("bitcast", value, T.I32), const_int(T.I32, 0x1000))
    rounded = at.cast("bitcast", at.binary("and", bits, const_int(T.I32, -0x2000)), T.FLOAT)
    return at.select(at.fcmp("uno", value, value), value, rounded)


@dataclass(frozen=True)
class Warp:
    """`shuffle` builds the value that another lane has."""

    at: Builder
    lane: Value
    shuffle: Callable[[Value, Value], Value]

    def product(self, shape: Shape, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value]) -> list[Value]:
        at, rows, chunks = self.at, shape.rows // 8, len(b)
        halves = shape.sums == T.I32 and shape.element == T.HALF
        per_register = _bits(shape.held) // _bits(shape.element)
        if len(a) != rows * chunks or 4 * per_register * chunks != shape.depth or len(c) != rows * (1 if halves else 2):
            raise ValueError(shape)
        group, first = self._quarter(), self._number("shl", self._number("and", self.lane, 3), 1)
        sums = [part for one in c for part in (self._parts(shape, one, True) if halves else [one])]
        for t in range(4):
            left = self._number("or", self._number("shl", group, 2), t)
            right = [self._number("or", self._number("shl", self._number("or", first, n), 2), t) for n in range(2)]
            for q in range(chunks):
                columns = [self._parts(shape, self.shuffle(b[q], lane), shape.signed[1]) for lane in right]
                for r in range(rows):
                    row = self._parts(shape, self.shuffle(a[r + rows * q], left), shape.signed[0])
                    for n, column in enumerate(columns):
                        for x, y in zip(row, column, strict=True):
                            add, multiply = ("add", "mul") if isinstance(x.type, T.IntType) else ("fadd", "fmul")
                            sums[2 * r + n] = at.binary(add, sums[2 * r + n], at.binary(multiply, x, y))
        if not halves:
            return sums
        words = [at.cast("bitcast", at.cast("fptrunc", s, T.HALF), T.I16) for s in sums]
        return [self._word(*words[2 * r : 2 * r + 2]) for r in range(rows)]

    def rows(self, words: Sequence[Value], count: int, transposed: bool) -> list[Value]:
        """From the row of a matrix that each lane has, in four words: of each matrix the two elements of a lane."""
        group, rest = self._quarter(), self._number("and", self.lane, 3)
        elements = [half for word in words for half in self._cut(word, 16)] if transposed else []
        made: list[Value] = []
        for matrix in range(count):
            if not transposed:
                made.append(self._of_lane(words, self._number("add", group, 8 * matrix), rest))
                continue
            first = self._number("add", self._number("shl", rest, 1), 8 * matrix)
            # Elements are moved alone: one half of a word or the other, as data say, is arithmetic on the word.
            made.append(self._word(*(self._of_lane(elements, self._number("add", first, h), group) for h in range(2))))
        return made

    def _of_lane(self, values: Sequence[Value], lane: Value, number: Value) -> Value:
        """One of another lane's values."""
        made, *others = (self.shuffle(value, lane) for value in values)
        for n, value in enumerate(others, 1):
            made = self.at.select(self.at.icmp("eq", number, const_int(T.I32, n)), value, made)
        return made

    def _quarter(self) -> Value:
        return self._number("lshr", self.lane, 2)

    def _number(self, opcode: str, x: Value, y: int) -> Value:
        return self.at.binary(opcode, x, const_int(T.I32, y))

    def _word(self, low: Value, high: Value) -> Value:
        low, high = (self.at.cast("zext", part, T.I32) for part in (low, high))
        return self.at.binary("or", low, self._number("shl", high, 16))

    def _cut(self, word: Value, bits: int) -> list[Value]:
        """The parts of a word, each an integer."""
        shifted = (self._number("lshr", word, n) if n else word for n in range(0, 32, bits))
        return [self.at.cast("trunc", part, T.IntType(bits)) for part in shifted]

    def _parts(self, shape: Shape, register: Value, signed: bool) -> list[Value]:
        """The elements in a register, as what they are summed in."""
        at, bits = self.at, _bits(shape.element)
        if register.type == shape.element:
            return [register]
        narrow = self._cut(register, bits)
        if isinstance(shape.element, T.IntType):
            return [at.cast("sext" if signed else "zext", part, T.I32) for part in narrow]
        return [at.cast("fpext", at.cast("bitcast", part, shape.element), T.FLOAT) for part in narrow]


def _bits(kind: T.Type) -> int:
    if isinstance(kind, T.IntType):
        return kind.bits
    assert isinstance(kind, T.FloatType)
    return {T.HALF: 16, T.BFLOAT: 16, T.FLOAT: 32, T.DOUBLE: 64}[kind]
