"""What instructions make of integers, for many threads at a time: int64 arrays, signed, an i1 as 0 or 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.cuda import marks

Numbers = NDArray[np.int64]
_TOTAL: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_SIGNED: dict[str, Callable[[Numbers, Numbers], NDArray[np.bool_]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def computed(instruction: I.Instruction, values: Sequence[Numbers]) -> Numbers | None:
    """The results of arithmetic, shifts and extrema; None for other instructions, or where one thread has none."""
    bits = _bits(instruction)
    if not 0 < bits <= 64:
        return None
    if isinstance(instruction, I.Call):
        made = _extremum(marks.called(instruction), values, bits)
    else:
        made = _arithmetic(instruction.opcode, values, bits) if len(values) == 2 else None
    return None if made is None else wrapped(made, bits)


def compared(compare: I.Compare, x: Numbers, y: Numbers) -> Numbers:
    bits = _bits(compare.operands[0]) or 64
    if compare.predicate[0] == "u" or bits == 1:
        x, y = _unsigned(x, bits), _unsigned(y, bits)
    return _SIGNED[compare.predicate[-2:]](x, y).astype(np.int64)


def cast_of(cast: I.Cast, value: Numbers) -> Numbers | None:
    bits, before = _bits(cast), _bits(cast.operands[0])
    if not bits or not before:
        return None
    match cast.opcode:
        case "zext":
            return _unsigned(value, before)
        case "sext":
            return -value if before == 1 else value
        case "trunc":
            return wrapped(value, bits)
        case _:
            return None


def wrapped(x: Numbers, bits: int) -> Numbers:
    """What so many bits keep of numbers."""
    if bits >= 64:
        return x
    half = 1 << (bits - 1)
    return x & 1 if bits == 1 else (x + half) % (2 * half) - half


def _unsigned(x: Numbers, bits: int) -> Numbers:
    """As large as they are without a sign; of 64 bits only the order is kept."""
    return x ^ np.int64(-(2**63)) if bits >= 64 else x & ((1 << bits) - 1)


def _bits(value: Value) -> int:
    return value.type.bits if isinstance(value.type, T.IntType) else 0


def _arithmetic(opcode: str, values: Sequence[Numbers], bits: int) -> Numbers | None:
    x, y = values
    if opcode in _TOTAL:
        return _TOTAL[opcode](x, y)
    if opcode in ("shl", "lshr", "ashr"):
        if ((y < 0) | (y >= min(bits, 63))).any():
            return None
        return x << y if opcode == "shl" else (x if opcode == "ashr" or bits >= 64 else _unsigned(x, bits)) >> y
    if opcode in ("udiv", "urem", "sdiv", "srem"):
        if (y == 0).any() or (opcode[0] == "u" and bits >= 64 and ((x < 0) | (y < 0)).any()):
            return None
        if opcode[0] == "u" and bits < 64:
            x, y = _unsigned(x, bits), _unsigned(y, bits)
        quotient = np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))
        return quotient if opcode.endswith("div") else x - y * quotient
    return None


def _extremum(name: str, values: Sequence[Numbers], bits: int) -> Numbers | None:
    kind = name.removeprefix("llvm.").partition(".")[0]
    if kind not in ("smin", "smax", "umin", "umax"):
        return None
    x, y = values
    keys = (x, y) if kind[0] == "s" else (_unsigned(x, bits), _unsigned(y, bits))
    smaller = keys[0] <= keys[1]
    return np.where(smaller == kind.endswith("min"), x, y)
