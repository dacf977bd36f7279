"""Quotients and remainders by constants, in the forms that optimisers give them.

x udiv 8, x lshr 3      the quotient            x urem 8, x and 7      the remainder
x and -8                8 times the quotient, and so is  x and 8184  as long as x is less than 8192
"""

from __future__ import annotations

from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import Value, int_value

_NOT_NEGATIVE = Interval(0, (1 << 63) - 1)


@dataclass(frozen=True)
class Division:
    """A value that is `of` divided by a constant, without sign: the remainder where `weight` is 0, else the quotient
    times `divisor / weight`, as far as `of` is within `limits`."""

    of: Value
    divisor: int
    weight: int
    limits: Interval = _NOT_NEGATIVE


def division(value: Value) -> Division | None:
    """The division by a constant that a value is; None for others."""
    constant = int_value(value.operands[1]) if isinstance(value, I.BinaryOp) else None
    if not isinstance(value, I.BinaryOp) or constant is None or constant == 0:
        return None
    x = value.operands[0]
    match value.opcode:
        case "and" if constant > 0 and constant & (constant + 1) == 0:
            return Division(x, constant + 1, 0)
        case "and":
            low = constant & -constant
            if constant < 0 and constant == -low:
                return Division(x, low, 1)
            return Division(x, low, 1, Interval(0, constant + low - 1)) if constant & (constant + low) == 0 else None
        case "urem" | "udiv" if constant > 0:
            return Division(x, constant, constant if value.opcode == "udiv" else 0)
        case "lshr" if 0 < constant < 63:
            return Division(x, 1 << constant, 1 << constant)
        case _:
            return None
