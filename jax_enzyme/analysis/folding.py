"""What an instruction makes of constants: integers of any width by their signed value, an i1 as 0 or 1. Of one number
each, or of arrays (int64) that have one for each thread.

add i8 127, 1      -128                  icmp ult i8 -1, 0      0
sdiv i32 7, 0      None                  zext i8 -1 to i32      255
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Value, int_value

Numbers = NDArray[np.int64]
N = TypeVar("N", int, Numbers)

_TOTAL: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_EXTREMA = ("llvm.smin.", "llvm.smax.", "llvm.umin.", "llvm.umax.")
_THREE_WAY = ("llvm.scmp.", "llvm.ucmp.")
_COUNTS = ("llvm.ctpop.", "llvm.cttz.")
_EXPRESSION = (I.BinaryOp, I.Cast, I.Compare, I.Select, I.Freeze)
_MOST_NESTED = 150
"""Expressions inside one another."""


def folded(value: I.Instruction, operands: Sequence[N]) -> N | None:
    """The result for such operands (of a call, for its arguments); None where there is none, for some of an array, or
    where the instruction does something else."""
    bits = _bits(value)
    widths = [_bits(operand) for operand in value.operands]
    if not bits or not all(widths) or (max(bits, *widths) > 64 and any(isinstance(x, np.ndarray) for x in operands)):
        return None
    numbers: Sequence[Any] = operands
    match value:
        case I.Select():
            return numbers[2] + numbers[0] * (numbers[1] - numbers[2])
        case I.Compare(opcode="icmp"):
            return compared(value.predicate, numbers[0], numbers[1], widths[0]) * 1
        case I.BinaryOp():
            result = _binary(value.opcode, numbers[0], numbers[1], bits)
            return None if result is None else wrapped(result, bits)
        case I.Cast(opcode="zext"):
            return _unsigned(numbers[0], widths[0])
        case I.Cast(opcode="sext"):
            return -numbers[0] if widths[0] == 1 else numbers[0]
        case I.Cast(opcode="trunc"):
            return wrapped(numbers[0], bits)
        case I.Freeze():
            return numbers[0]
        case I.Call(callee=Function(name=name)) if name.startswith(_EXTREMA):
            x, y = numbers
            first = compared(f"{name[5]}{'le' if name[6:9] == 'min' else 'ge'}", x, y, bits)
            return y + first * (x - y)
        case I.Call(callee=Function(name=name)) if name.startswith(_THREE_WAY):
            x, y = numbers
            greater, less = (compared(f"{name[5]}{way}", x, y, widths[0]) for way in ("gt", "lt"))
            return greater * 1 - less * 1
        case I.Call(callee=Function(name=name)) if name.startswith(_COUNTS):
            x = numbers[0]
            return _ones(x if name.startswith(_COUNTS[0]) else (x & -x) - 1, bits)
        case _:
            return None


def evaluated(
    value: Value,
    table: dict[Value, Any],
    given: Callable[[I.Call], Numbers | None] = lambda _: None,
    depth: int = 0,
) -> Any:
    """What an expression makes of the numbers in a table, of one each or of arrays, and of those that calls are `given`
    (an i1 is 0 or 1); None where it rests on anything else. What is found is noted in the table. Flags are not looked
    at: where one is not kept the value is none, and not this."""
    constant = int_value(value)
    if constant is not None:
        return constant & 1 if value.type == T.I1 else constant
    if value not in table:
        found = given(value) if isinstance(value, I.Call) else None
        if isinstance(value, _EXPRESSION) and depth < _MOST_NESTED:
            parts = [evaluated(operand, table, given, depth + 1) for operand in value.operands]
            found = None if any(part is None for part in parts) else folded(value, parts)
        table[value] = found
    return table[value]


def wrapped(x: Any, bits: int) -> Any:
    """What so many bits keep of a number."""
    if isinstance(x, np.ndarray) and x.dtype == np.int64:
        unused = max(64 - bits, 0)
        return x & 1 if bits == 1 else (x << unused) >> unused
    half = 1 << (bits - 1)
    kept = x & 1 if bits == 1 else (x + half) % (2 * half) - half
    return kept.astype(np.int64) if isinstance(kept, np.ndarray) else kept


def _wide(x: Any, bits: int) -> Any:
    """With room for the size of any number of so many bits: for 63 and 64, Python's numbers alone have it."""
    return x.astype(object) if bits >= 63 and isinstance(x, np.ndarray) else x


def _unsigned(x: Any, bits: int) -> Any:
    return _wide(x, bits) % (1 << bits)


def _ones(x: Any, bits: int) -> Any:
    """How many of so many bits are set."""
    mask = (1 << bits) - 1
    if isinstance(x, np.ndarray):
        return np.bitwise_count(x.astype(np.uint64) & np.uint64(mask)).astype(np.int64)
    return (x & mask).bit_count()


def _bits(value: Value) -> int:
    if T.is_pointer(value.type):
        return 64
    return value.type.bits if isinstance(value.type, T.IntType) else 0


def compared(predicate: str, x: Any, y: Any, bits: int) -> Any:
    """Whether two integers of so many bits compare in this way, or each of some."""
    if predicate[0] == "u" or bits == 1:
        sign = -1 if predicate[0] == "s" else 1
        x, y = sign * _unsigned(x, bits), sign * _unsigned(y, bits)
    return _RELATIONS[predicate[-2:]](x, y)


def _binary(opcode: str, x: Any, y: Any, bits: int) -> Any:
    if opcode in _TOTAL:
        return _TOTAL[opcode](x, y)
    if not np.all((y >= 0) & (y < bits) if opcode in ("shl", "lshr", "ashr") else y != 0):
        return None
    match opcode:
        case "shl":
            return x << y
        case "lshr":
            return _unsigned(x, bits) >> y
        case "ashr" if bits > 1:
            return x >> y
        case "udiv":
            return _unsigned(x, bits) // _unsigned(y, bits)
        case "urem":
            return _unsigned(x, bits) % _unsigned(y, bits)
        case "sdiv" | "srem" if bits > 1:
            x, y = _wide(x, bits), _wide(y, bits)
            quotient = abs(x) // abs(y) * (1 - 2 * ((x < 0) != (y < 0)))
            return quotient if opcode == "sdiv" else x - quotient * y
        case _:
            return None
