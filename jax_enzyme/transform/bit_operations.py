"""Integer operations that are operations on floating-point numbers by their bits.

and i64 %bits, 0x7fff...                     fabs
xor i64 %bits, 0x8000...                     change of sign
or i64 %bits, 0x8000...                      minus fabs
or (and %a, 0x7fff...), (and %b, 0x8000...)  copysign (of fabs)
xor %a, (and %b, 0x8000...)                  %a, its sign changed where %b is negative
or %a, (and %b, 0x8000...)                   %a, made negative where %b is
xor %a, (shl %k, 63)                         %a, its sign changed where %k is odd
xor %a, <0x8000..., 0, ...>                  the lanes of %a, some with their signs changed
and (xor %b, %c), 0x8000...                  the sign of a product, wherever a sign may stand above
"""

from __future__ import annotations

import struct

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_float, const_int, zero
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantFloat,
    ConstantInt,
    Poison,
    Undef,
    Value,
    ZeroInitializer,
    int_value,
    lane_of,
)


def bit_operation(value: Value) -> tuple[str, list[Value]] | None:
    """The operation on numbers (`fabs`, `fneg`, `minus_fabs`, `copysign`, `mulsign`, `orsign`) that an operation on
    their bits is, and its operands as integers; None for any other. The last three have two operands or more: a number,
    and those whose signs count."""
    if not isinstance(value, I.BinaryOp) or not isinstance(kind := T.scalar(value.type), T.IntType):
        return None
    sign = 1 << (kind.bits - 1)
    x, y = value.operands
    if value.opcode == "and" and _is(y, sign - 1):
        return "fabs", [x]
    if value.opcode == "xor" and _is(y, sign):
        return "fneg", [x]
    if value.opcode == "or" and _is(y, sign):
        return "minus_fabs", [x]
    for a, b in ((x, y), (y, x)) if value.opcode in ("or", "xor") else ():
        signs = signs_of(b)
        if signs and value.opcode == "xor":
            return "mulsign", [a, *signs]
        if signs and value.opcode == "or":
            positive = _masked(a, sign - 1) is not None or _is_positive(a)
            return "copysign" if positive else "orsign", [a, *signs]
    return None


def signs_of(value: Value) -> list[Value]:
    """The integers the product of whose signs a value has as its sign bit, where it has no other; none otherwise."""
    source = _masked_sign(value)
    if source is not None:
        return _factors(source)
    return [value] if _is_sign(value) else []


def parts_of_signs(value: Value) -> list[I.Instruction]:
    """The instructions between a value that is a sign alone and those whose sign it is."""
    source = _masked_sign(value)
    if source is None:
        return []
    assert isinstance(value, I.BinaryOp)
    products = reached([source], made_of, _is_product)
    return [value, *(p for p in products if isinstance(p, I.Instruction))]


def _masked_sign(value: Value) -> Value | None:
    """What a value is but for all bits below the sign."""
    kind = T.scalar(value.type)
    return _masked(value, 1 << (kind.bits - 1)) if isinstance(kind, T.IntType) else None


def _is_sign(value: Value) -> bool:
    """Whether no bit but the sign can be set, in any lane, by a shift or as a constant."""
    kind = T.scalar(value.type)
    if not isinstance(kind, T.IntType):
        return False
    sign = kind.bits - 1
    match value:
        case ConstantAggregate():
            return all(_is(v, 0) or _is(v, 1 << sign) for v in value.elements)
        case I.BinaryOp(opcode="shl"):
            return _is(value.operands[1], sign)
        case I.Select():
            return all(_is(v, 0) or _is(v, 1 << sign) or _is_sign(v) for v in I.merged(value))
        case _:
            return False


def _factors(value: Value) -> list[Value]:
    if _is_product(value):
        assert isinstance(value, I.BinaryOp)
        return [f for v in value.operands for f in _factors(v)]
    return [value]


def _is_product(value: Value) -> bool:
    """Whether the sign of a value is that of the product of its operands, taken as numbers."""
    return isinstance(value, I.BinaryOp) and value.opcode == "xor" and bit_operation(value) is None


def _is_positive(value: Value) -> bool:
    """A constant without a sign."""
    value = lane_of(value)
    return (
        isinstance(value, ConstantInt)
        and isinstance(value.type, T.IntType)
        and not value.value >> (value.type.bits - 1) & 1
    )


def _masked(value: Value, mask: int) -> Value | None:
    if isinstance(value, I.BinaryOp) and value.opcode == "and" and _is(value.operands[1], mask):
        return value.operands[0]
    return None


def _is(value: Value, bits: int) -> bool:
    value = lane_of(value)
    number = int_value(value)
    return number is not None and isinstance(value.type, T.IntType) and number == int_value(const_int(value.type, bits))


def as_number(value: Constant, type_: T.Type) -> Constant | None:
    """The constant of a floating or pointer type that has the same bits; None where only a cast can say it."""
    match value:
        case ConstantInt(value=0) | ZeroInitializer():
            return zero(type_)
        case ConstantInt(value=bits) if isinstance(type_, T.FloatType):
            return _from_bits(bits, type_)
        case Poison():
            return Poison(type_)
        case Undef():
            return Undef(type_)
        case _:
            return None


def _from_bits(bits: int, type_: T.FloatType) -> Constant | None:
    match type_.kind:
        case "double":
            return ConstantFloat(type_, f"0x{bits & ((1 << 64) - 1):016X}")
        case "half":
            return ConstantFloat(type_, f"0xH{bits & 0xFFFF:04X}")
        case "bfloat":
            return ConstantFloat(type_, f"0xR{bits & 0xFFFF:04X}")
        case "float" if bits >> 23 & 0xFF != 0xFF:
            return const_float(type_, struct.unpack(">f", struct.pack(">I", bits & 0xFFFFFFFF))[0])
        case _:
            return None
