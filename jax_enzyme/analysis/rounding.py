"""Sums that round: a number plus a constant so large that nothing but multiples of a unit are left, minus the constant.

    %t = fadd double %x, 6755399441055744.0     1.5 * 2^52: the sum is a whole number
    %k = fsub double %t, 6755399441055744.0     %x rounded, as by `rint`

Libraries of elementary functions reduce their arguments so. Such a %k is piecewise constant in %x, as is the result of
`rint`: that both sums have the derivative 1 holds for real numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable, callee_name
from jax_enzyme.ir.values import ConstantAggregate, ConstantFloat, ConstantSplat, Value, lane_of
from jax_enzyme.rules.names import canonical

_DIGITS = {"double": 52, "float": 23, "half": 10, "bfloat": 7}
_MOST_FRACTION = 8
"""How many binary digits behind the point may be left, for tables with 256 entries."""
_SUMS = frozenset({"fma"})


def rounds(instruction: I.Instruction) -> bool:
    """Whether an instruction takes from a sum the large constant that was added to it just before."""
    if not isinstance(instruction, I.BinaryOp) or instruction.opcode not in ("fadd", "fsub"):
        return False
    x, y = map(_before_fences, instruction.operands)
    if instruction.opcode == "fsub":
        # (v + c) - c, and c - (c - v)
        return (_is_large(y) and _adds(x, y, 1)) or (_is_large(x) and _takes(y, x))
    pairs = [(sum_, constant) for sum_, constant in ((x, y), (y, x)) if _is_large(constant)]
    return any(_adds(sum_, constant, -1) or _takes(sum_, constant) for sum_, constant in pairs)


def is_whole(value: Value) -> bool:
    """Whether a number is such a sum itself: a large constant and, in its last bits, an integer."""
    match _before_fences(value):
        case I.BinaryOp(opcode="fadd" | "fsub") as sum_:
            return any(map(_is_large, sum_.operands))
        case sum_:
            return any(map(_is_large, _added(sum_)))


def _before_fences(value: Value) -> Value:
    """What went through memory that is `volatile` in the source."""
    while isinstance(value, I.CallBase) and callee_name(value).startswith("llvm.arithmetic.fence."):
        value = value.arguments[0]
    return value


def _adds(sum_: Value, constant: Value, sign: int) -> bool:
    """Whether `sum_` is v + constant, or v - constant."""
    return any(_same(c, constant, sign) for c in _added(sum_))


def _takes(sum_: Value, constant: Value) -> bool:
    """Whether `sum_` is v - constant, or constant - v."""
    if not isinstance(sum_, I.BinaryOp) or sum_.opcode != "fsub":
        return False
    return any(_same(c, constant, 1) for c in sum_.operands)


def _added(sum_: Value) -> list[Value]:
    match sum_:
        case I.BinaryOp(opcode="fadd"):
            return sum_.operands
        case I.CallBase():
            return sum_.arguments[2:3] if canonical(callee_name(sum_), _SUMS) is not None else []
        case _:
            return []


def _same(x: Value, y: Value, sign: int) -> bool:
    """Whether one value is the other one, with its sign or the opposite one."""
    if sign == 1 and x is y:
        return True
    one, other = _number(x), _number(y)
    return one is not None and other is not None and one == sign * other


def _number(value: Value) -> float | None:
    return float_value(lane_of(value))


def _is_large(value: Value) -> bool:
    """Whether a value is one of the constants by which programs round: 2^k or 1.5 * 2^k."""
    found = list(_constants(value))
    return bool(found) and all(c is not None and _rounds_to_units(c) for c in found)


def _constants(value: Value) -> Iterator[ConstantFloat | None]:
    """The constants that a value is one of; None among them where it may be something else."""
    match value:
        case ConstantFloat():
            yield value
        case ConstantSplat():
            yield from _constants(value.element)
        case I.Select():
            yield from _constants(value.operands[1])
            yield from _constants(value.operands[2])
        case I.UnaryOp():
            yield from _constants(value.operands[0])
        case I.CallBase() if "copysign" in callee_name(value):
            yield from _constants(value.arguments[0])
        case I.Load():
            base = I.base_of(value.operands[0])
            held = base.initializer if isinstance(base, GlobalVariable) and base.is_constant else None
            elements = held.elements if isinstance(held, ConstantAggregate) else [None]
            yield from (e if isinstance(e, ConstantFloat) else None for e in elements)
        case _:
            yield None


def _rounds_to_units(constant: ConstantFloat) -> bool:
    number = float_value(constant)
    if number is None or not isinstance(constant.type, T.FloatType) or constant.type.kind not in _DIGITS:
        return False
    mantissa, exponent = math.frexp(abs(number))
    digits = _DIGITS[constant.type.kind]
    # A power of two itself rounds to half as much below it: it is one of these constants where that is a unit too.
    return exponent - 1 >= (digits if mantissa == 0.5 else digits - _MOST_FRACTION) and mantissa in (0.5, 0.75)
