"""Appends instructions to a block. The one place that knows how an instruction's type follows from its operands."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TypeVar

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import (
    BasicBlock,
    Constant,
    ConstantExpr,
    ConstantFloat,
    ConstantInt,
    ConstantNull,
    ConstantSplat,
    InlineAsm,
    Poison,
    Value,
    ZeroInitializer,
)

SUM_FLAGS = ("reassoc", "nsz", "contract")
"""Of sums of numbers in an order of our choice; products may be fused into them."""

_I = TypeVar("_I", bound=I.Instruction)


def const_int(type_: T.Type, value: int) -> Constant:
    """An integer constant, wrapped into the signed range of its type; a splat for a vector type."""
    if isinstance(type_, T.VectorType):
        return ConstantSplat(type_, const_int(type_.element, value))
    assert isinstance(type_, T.IntType)
    if type_.bits == 1:
        return ConstantInt(type_, value & 1)
    half = 1 << (type_.bits - 1)
    return ConstantInt(type_, (value + half) % (1 << type_.bits) - half)


def const_float(type_: T.Type, value: float) -> Constant:
    """A floating-point constant, rounded to its type; a splat for a vector type."""
    if isinstance(type_, T.VectorType):
        return ConstantSplat(type_, const_float(type_.element, value))
    assert isinstance(type_, T.FloatType)
    match type_.kind:
        case "double":
            return ConstantFloat(type_, f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}")
        case "float":
            single = struct.unpack(">f", struct.pack(">f", value))[0]
            return ConstantFloat(type_, f"0x{struct.unpack('>Q', struct.pack('>d', single))[0]:016X}")
        case "half":
            return ConstantFloat(type_, f"0xH{struct.unpack('>H', struct.pack('>e', value))[0]:04X}")
        case "bfloat":
            return ConstantFloat(type_, f"0xR{_bfloat_bits(value):04X}")
        case "x86_fp80":
            return ConstantFloat(type_, f"0xK{_extended_bits(value):020X}")
        case "fp128":
            bits = f"{_quadruple_bits(value):032X}"
            return ConstantFloat(type_, f"0xL{bits[16:]}{bits[:16]}")  # the low word comes first
        case kind:
            raise ValueError(f"no constants of type {kind}")


def _bfloat_bits(value: float) -> int:
    bits = struct.unpack(">I", struct.pack(">f", value))[0]
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _extended_bits(value: float) -> int:
    """Intel SDM 4.2.2: sign, 15 bits of exponent, and 64 of significand, the leading one among them."""
    sign = (math.copysign(1.0, value) < 0) << 79
    if not math.isfinite(value):
        return sign | 0x7FFF << 64 | (0b11 if math.isnan(value) else 0b10) << 62
    fraction, exponent = math.frexp(abs(value))
    return sign | (exponent + 16382 << 64 | int(math.ldexp(fraction, 64)) if fraction else 0)


def _quadruple_bits(value: float) -> int:
    """IEEE 754 binary128: sign, 15 bits of exponent, and 112 of fraction, the leading one not among them."""
    sign = (math.copysign(1.0, value) < 0) << 127
    if not math.isfinite(value):
        return sign | 0x7FFF << 112 | math.isnan(value) << 111
    fraction, exponent = math.frexp(abs(value))
    return sign | ((exponent + 16381 << 112) + (int(math.ldexp(fraction, 53)) << 60) if fraction else 0)


def zero(type_: T.Type) -> Constant:
    """The zero of any first-class type: 0, 0.0, null or zeroinitializer."""
    match type_:
        case T.IntType():
            return ConstantInt(type_, 0)
        case T.FloatType("fp128"):
            return ConstantFloat(type_, "0xL00000000000000000000000000000000")
        case T.FloatType("ppc_fp128"):
            return ConstantFloat(type_, "0xM00000000000000000000000000000000")
        case T.FloatType():
            return const_float(type_, 0.0)
        case T.PointerType():
            return ConstantNull(type_)
        case _:
            return ZeroInitializer(type_)


def zero_text(type_: T.Type) -> str:
    """The zero of a floating-point or pointer type as LLVM spells it."""
    value = zero(type_)
    return value.text if isinstance(value, ConstantFloat) else "null"


def _condition_type(operand: T.Type) -> T.Type:
    if isinstance(operand, T.VectorType):
        return T.VectorType(operand.count, T.I1, operand.scalable)
    return T.I1


class Builder:
    """Builds at the end of `block`, or at another `place` in it: so many instructions from its start on, or from its
    end where that is negative."""

    def __init__(self, block: BasicBlock, place: int | None = None) -> None:
        self.block = block
        self.place = place

    @staticmethod
    def at_end(block: BasicBlock) -> Builder:
        """In front of the terminator."""
        return Builder(block, -1)

    @staticmethod
    def on_top(function: Function) -> Builder:
        """At the start of a function."""
        return Builder(function.entry, 0)

    @staticmethod
    def behind_variables(function: Function) -> Builder:
        """Behind the local variables at the start of a function."""
        first = next(n for n, i in enumerate(function.entry.instructions) if not isinstance(i, I.Alloca))
        return Builder(function.entry, first)

    @staticmethod
    def before(block: BasicBlock, instruction: I.Instruction) -> Builder:
        """In front of an instruction of a block."""
        return Builder(block, block.instructions.index(instruction))

    @staticmethod
    def behind(block: BasicBlock, instruction: I.Instruction) -> Builder:
        """Behind an instruction of a block."""
        return Builder(block, block.instructions.index(instruction) + 1)

    @staticmethod
    def behind_phis(block: BasicBlock) -> Builder:
        return Builder(block, sum(isinstance(i, I.Phi) for i in block.instructions))

    def insert(self, instruction: _I) -> _I:
        if self.place is None:
            self.block.instructions.append(instruction)
            return instruction
        self.block.instructions.insert(self.place, instruction)
        if self.place >= 0:
            self.place += 1
        return instruction

    def unary(self, opcode: str, x: Value, flags: tuple[str, ...] = ()) -> Value:
        return self.insert(I.UnaryOp(x.type, opcode, [x], flags=flags))

    def binary(self, opcode: str, x: Value, y: Value, flags: tuple[str, ...] = ()) -> Value:
        return self.insert(I.BinaryOp(x.type, opcode, [x, y], flags=flags))

    def cast(self, opcode: str, x: Value, to: T.Type, flags: tuple[str, ...] = ()) -> Value:
        return self.insert(I.Cast(to, opcode, [x], flags=flags))

    def icmp(self, predicate: str, x: Value, y: Value) -> Value:
        return self.insert(I.Compare(_condition_type(x.type), "icmp", [x, y], predicate))

    def fcmp(self, predicate: str, x: Value, y: Value, flags: tuple[str, ...] = ()) -> Value:
        return self.insert(I.Compare(_condition_type(x.type), "fcmp", [x, y], predicate, flags=flags))

    def select(self, condition: Value, then: Value, other: Value) -> Value:
        return self.insert(I.Select(then.type, "select", [condition, then, other]))

    def phi(self, type_: T.Type, incoming: Sequence[tuple[Value, BasicBlock]] = ()) -> I.Phi:
        return self.insert(I.Phi(type_, "phi", [v for v, _ in incoming], targets=[b for _, b in incoming]))

    def alloca(self, type_: T.Type, count: Value | None = None, align: int | None = None) -> Value:
        size = count if count is not None else ConstantInt(T.I32, 1)
        printed = count is not None
        return self.insert(I.Alloca(T.PTR, "alloca", [size], type_, align, printed))

    def load(self, type_: T.Type, pointer: Value, align: int | None = None) -> I.Load:
        return self.insert(I.Load(type_, "load", [pointer], align))

    def store(self, value: Value, pointer: Value, align: int | None = None) -> I.Store:
        return self.insert(I.Store(T.VOID, "store", [value, pointer], align))

    def gep(
        self, source: T.Type, base: Value, indices: Sequence[Value], flags: tuple[str, ...] = ("inbounds",)
    ) -> Value:
        """`getelementptr`; the result has the type of its base (no vector-of-pointer indexing from a scalar base)."""
        return self.insert(I.GetElementPtr(base.type, "getelementptr", [base, *indices], source, flags=flags))

    def offset(self, base: Value, byte_offset: int) -> Value:
        """`base` itself for 0, else a byte-wise `getelementptr`."""
        if byte_offset == 0:
            return base
        return self.gep(T.I8, base, [ConstantInt(T.I64, byte_offset)])

    def field(self, structure: T.Type, base: Value, number: int) -> Value:
        """The address of a field of a structure."""
        return self.gep(structure, base, [ConstantInt(T.I32, 0), ConstantInt(T.I32, number)])

    def wide(self, number: Value) -> Value:
        """An unsigned integer as an i64."""
        if isinstance(number, ConstantInt):
            return const_int(T.I64, number.value % (1 << T.bits(number.type)))
        return number if number.type == T.I64 else self.cast("zext", number, T.I64)

    def product(self, numbers: Iterable[Value]) -> Value:
        """Of unsigned integers, as an i64."""
        return reduce(lambda x, y: self.binary("mul", x, y), map(self.wide, numbers))

    def narrow(self, number: Value, type_: T.Type) -> Value:
        """An integer as one of a type that is no wider."""
        return number if number.type == type_ else self.cast("trunc", number, type_)

    def least(self, x: Value, y: Value) -> Value:
        """The least of two unsigned integers."""
        return self.select(self.icmp("ult", x, y), x, y)

    def most(self, x: Value, y: Value) -> Value:
        """The greatest of two unsigned integers."""
        return self.select(self.icmp("ugt", x, y), x, y)

    def by_table(self, table: int, numbers: Sequence[Value]) -> Value:
        """Each bit of three integers by a table of the three bits there: a sum over its rows that have a one."""
        kind = numbers[0].type
        total: Value = zero(kind)
        for row in range(8):
            if table >> row & 1:
                asked = zip(numbers, (4, 2, 1), strict=True)
                x, y, z = (v if row & bit else self.binary("xor", v, const_int(kind, -1)) for v, bit in asked)
                total = self.binary("or", total, self.binary("and", self.binary("and", x, y), z))
        return total

    def call(
        self,
        callee: Function | InlineAsm | Value,
        arguments: Sequence[Value],
        function_type: T.FunctionType | None = None,
        flags: tuple[str, ...] = (),
        attributes: tuple[str, ...] = (),
    ) -> I.Call:
        if function_type is None:
            assert isinstance(callee, Function)
            function_type = callee.function_type
        return self.insert(
            I.Call(
                function_type.result,
                "call",
                [*arguments, callee],
                function_type,
                calling_convention=callee.calling_convention if isinstance(callee, Function) else "",
                parameter_attributes=[() for _ in arguments],
                attributes=attributes,
                flags=flags,
            )
        )

    def extract_value(self, aggregate: Value, index: int, type_: T.Type) -> Value:
        return self.insert(I.ExtractValue(type_, "extractvalue", [aggregate], (index,)))

    def insert_value(self, aggregate: Value, element: Value, index: int) -> Value:
        return self.insert(I.InsertValue(aggregate.type, "insertvalue", [aggregate, element], (index,)))

    def extract_element(self, vector: Value, index: Value | int) -> Value:
        assert isinstance(vector.type, T.VectorType)
        place = ConstantInt(T.I64, index) if isinstance(index, int) else index
        return self.insert(I.ExtractElement(vector.type.element, "extractelement", [vector, place]))

    def insert_element(self, vector: Value, element: Value, index: Value | int) -> Value:
        place = ConstantInt(T.I64, index) if isinstance(index, int) else index
        return self.insert(I.InsertElement(vector.type, "insertelement", [vector, element, place]))

    def shuffle(self, x: Value, y: Value | None, lanes: Sequence[int]) -> Value:
        """The lanes of two vectors, one's behind the other's, in this order; of nobody knows what where -1 stands."""
        assert isinstance(x.type, T.VectorType)
        operands, mask = [x, Poison(x.type) if y is None else y], T.VectorType(len(lanes), T.I32)
        kind = T.VectorType(len(lanes), x.type.element)
        return self.insert(I.ShuffleVector(kind, "shufflevector", operands, tuple(lanes), mask))

    def pack(self, type_: T.Type, members: Iterable[Value]) -> Value:
        """A structure, an array or a vector of all its members."""
        packed: Value = Poison(type_)
        put = self.insert_element if isinstance(type_, T.VectorType) else self.insert_value
        for index, member in enumerate(members):
            packed = put(packed, member, index)
        return packed

    def br(self, target: BasicBlock) -> None:
        self.insert(I.Branch(T.VOID, "br", [], targets=[target]))

    def cond_br(self, condition: Value, then: BasicBlock, other: BasicBlock) -> None:
        self.insert(I.CondBranch(T.VOID, "br", [condition], targets=[then, other]))

    def enter(self, body: BasicBlock, first: Value | None = None) -> tuple[Builder, I.Phi]:
        """Goes on to a loop that begins with this block: what builds there, and its counter, from 0 on if nothing is
        said."""
        self.br(body)
        inner, first = Builder(body), first or ConstantInt(T.I64, 0)
        return inner, inner.phi(first.type, [(first, self.block)])

    def count_on(self, counter: I.Phi, body: BasicBlock, bound: Value, after: BasicBlock) -> None:
        """The end of a loop: its counter goes on, and `body` runs again while that is below an unsigned bound."""
        following = self.binary("add", counter, const_int(counter.type, 1), ("nuw", "nsw"))
        counter.add(following, self.block)
        self.cond_br(self.icmp("ult", following, bound), body, after)

    def ret(self, value: Value | None = None) -> None:
        self.insert(I.Return(T.VOID, "ret", [] if value is None else [value]))

    def unreachable(self) -> None:
        self.insert(I.Unreachable(T.VOID, "unreachable", []))


def instruction_of(expression: ConstantExpr, operands: list[Value]) -> I.Instruction:
    """The instruction that computes what a constant expression says."""
    match expression.opcode:
        case "getelementptr":
            assert expression.source_type is not None
            flags = tuple(f for f in expression.flags if not f.startswith("inrange"))
            return I.GetElementPtr(expression.type, "getelementptr", operands, expression.source_type, flags=flags)
        case "add" | "sub" | "xor":
            return I.BinaryOp(expression.type, expression.opcode, operands, flags=expression.flags)
        case opcode:
            return I.Cast(expression.type, opcode, operands, flags=expression.flags)
