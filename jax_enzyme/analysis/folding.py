"""What an instruction makes of constants: integers of any width by their signed value, an i1 as 0 or 1.

add i8 127, 1      -128                  icmp ult i8 -1, 0      0
sdiv i32 7, 0      None                  zext i8 -1 to i32      255
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value

_TOTAL: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


def folded(value: I.Instruction, operands: Sequence[int]) -> int | None:
    """The result for such operands; None where there is none, or where the instruction does something else."""
    bits = _bits(value)
    widths = [_bits(operand) for operand in value.operands]
    if not bits or not all(widths):
        return None
    match value:
        case I.Select():
            return operands[1] if operands[0] else operands[2]
        case I.Compare(opcode="icmp"):
            return int(_compare(value.predicate, operands[0], operands[1], widths[0]))
        case I.BinaryOp():
            result = _binary(value.opcode, operands[0], operands[1], bits)
            return None if result is None else wrapped(result, bits)
        case I.Cast(opcode="zext"):
            return operands[0] % (1 << widths[0])
        case I.Cast(opcode="sext"):
            return -operands[0] if widths[0] == 1 else operands[0]
        case I.Cast(opcode="trunc"):
            return wrapped(operands[0], bits)
        case I.Freeze():
            return operands[0]
        case _:
            return None


def wrapped(x: int, bits: int) -> int:
    """What so many bits keep of a number."""
    half = 1 << (bits - 1)
    return x & 1 if bits == 1 else (x + half) % (2 * half) - half


def _bits(value: Value) -> int:
    return value.type.bits if isinstance(value.type, T.IntType) else 0


def _compare(predicate: str, x: int, y: int, bits: int) -> bool:
    if predicate[0] == "u" or bits == 1:
        sign = -1 if predicate[0] == "s" else 1
        x, y = sign * (x % (1 << bits)), sign * (y % (1 << bits))
    match predicate[-2:]:
        case "eq":
            return x == y
        case "ne":
            return x != y
        case "lt":
            return x < y
        case "le":
            return x <= y
        case "gt":
            return x > y
        case _:
            return x >= y


def _binary(opcode: str, x: int, y: int, bits: int) -> int | None:
    ux, uy = x % (1 << bits), y % (1 << bits)
    if opcode in _TOTAL:
        return _TOTAL[opcode](x, y)
    match opcode:
        case "shl" if uy < bits:
            return x << uy
        case "lshr" if uy < bits:
            return ux >> uy
        case "ashr" if uy < bits and bits > 1:
            return x >> uy
        case "udiv" if uy:
            return ux // uy
        case "urem" if uy:
            return ux % uy
        case "sdiv" | "srem" if y and bits > 1:
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return quotient if opcode == "sdiv" else x - quotient * y
        case _:
            return None
