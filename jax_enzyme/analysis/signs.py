"""Which numbers are never negative, so that a comparison with 0, or with a bound next to it, asks whether they are 0.

    llvm.fabs(x)      x * x      sqrt(t)      fmuladd(x, x, t)  with such a t      a sum of such, over a loop as well

Exponentials are not meant: they are never 0, and a bound on one is a bound on its argument.
"""

from __future__ import annotations

from collections import Counter

from jax_enzyme.analysis.orders import GREATER, LESS, relation_table, same
from jax_enzyme.analysis.symbols import NEVER_NEGATIVE, float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import declared_name
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import ConstantFloat, Value, is_zero
from jax_enzyme.rules.names import canonical

_MOST_VALUES = 100
"""How many instructions are looked at. Where there are more, a number may be negative."""
_NEVER = NEVER_NEGATIVE | {"cabs"}
_POSITIVE = frozenset("exp exp2 exp10 cosh".split())
"""A factor that changes no sign."""
_OF_ALL = frozenset("fmax fmin maximum minimum".split())
"""Not negative where no argument is."""
_KNOWN = _NEVER | _POSITIVE | _OF_ALL | {"fma", "floor", "ceil", "copysign"}
_NEXT_TO_ZERO = {"double": 1.4e-154, "float": 1e-19}
"""Bounds below have no square, or none with all its digits: they stand for 0."""

_LEAST, _MINUS_INFINITY = -3.4e38, "0xFFF0000000000000"


def is_next_to_zero(value: Value, compared: Value) -> bool:
    """Whether a constant that a number is compared with is 0, or stands for it."""
    number = float_value(value)
    source = compared.operands[0].type if isinstance(compared, I.Cast) else compared.type
    kind = source.kind if isinstance(source, T.FloatType) else ""
    return number is not None and 0 <= number <= _NEXT_TO_ZERO.get(kind, 0)


def without_ceiling(value: Value) -> Value:
    """A number that is 0 where another one is that is never negative, above 0 where that is, and itself elsewhere."""
    if not isinstance(value, I.CallBase) or _called(value) != "ceil":
        return value
    return value.arguments[0] if is_never_negative(value.arguments[0]) else value


def is_never_negative(value: Value) -> bool:
    """Whether a number is seen to be at least 0 (or a NaN). What is the larger of a number and 0 does not count: where
    it is 0 the number may be anything below."""
    seen = Reached([value])
    for number in seen:
        parts = _parts(number)
        if parts is None or len(seen) > _MOST_VALUES:
            return False
        seen.add(parts)
    return True


def _parts(value: Value) -> list[Value] | None:
    """The numbers that must not be negative for a value not to be; None where that does not help."""
    match value:
        case ConstantFloat():
            number = float_value(value)
            return [] if (number is not None and number >= 0) or _is_least(value) else None
        case I.Phi():
            return list(value.operands)
        case I.Select():
            return [] if _is_absolute(value) else value.operands[1:]
        case I.Cast(opcode="fpext" | "fptrunc"):
            return value.operands[:1]
        case I.BinaryOp(opcode="fadd"):
            return value.operands
        case I.BinaryOp(opcode="fsub"):
            return [] if _is_fraction(value) else None
        case I.BinaryOp(opcode="fmul" | "fdiv"):
            return _unpaired(value)
        case I.CallBase():
            return _parts_of_call(value)
        case _:
            return None


def _is_least(value: ConstantFloat) -> bool:
    """Whether a search for the largest of some numbers starts with it: the first of these takes its place."""
    number = float_value(value)
    return value.text == _MINUS_INFINITY if number is None else number <= _LEAST


def _is_fraction(difference: I.BinaryOp) -> bool:
    """`x - floor(x)`, of which an integer may be made in between."""
    number, whole = difference.operands
    while isinstance(whole, I.Cast) and whole.opcode in ("sitofp", "fptosi"):
        whole = whole.operands[0]
    return isinstance(whole, I.CallBase) and _called(whole) == "floor" and whole.arguments[0] is number


def _unpaired(product: I.BinaryOp) -> list[Value]:
    """The factors of a product of products, and of quotients, that are there an odd number of times. Positive ones are
    left out, unless there are no others."""
    factors: Counter[Value] = Counter()
    parts: list[Value] = [product]
    for part in parts:
        if isinstance(part, I.BinaryOp) and part.opcode in ("fmul", "fdiv") and len(parts) < _MOST_VALUES:
            parts += part.operands
        else:
            factors[_with_its_sign(part)] += 1
    others = [f for f in factors if not (isinstance(f, I.CallBase) and _called(f) in _POSITIVE)]
    return [factor for factor in others or factors if factors[factor] % 2]


def _with_its_sign(factor: Value) -> Value:
    """A factor, or the number whose sign it has: `copysign(1, x) * x`."""
    while isinstance(factor, I.CallBase) and _called(factor) == "copysign":
        factor = factor.arguments[1]
    return factor


def _parts_of_call(call: I.CallBase) -> list[Value] | None:
    name = _called(call) if isinstance(call.type, T.FloatType) else None
    if name is None or name in _POSITIVE or name in ("floor", "ceil"):
        return None
    if name in _NEVER:
        return []
    if name == "copysign":
        return call.arguments[1:]
    if name in _OF_ALL:
        return call.arguments
    x, y, z = call.arguments
    return [z] if x is y else [x, y, z]


def _called(call: I.CallBase) -> str | None:
    """Which of the known functions a call is of."""
    return canonical(declared_name(call), _KNOWN)


def _is_absolute(select: I.Select) -> bool:
    """`x < 0 ? -x : x`."""
    condition, then, other = select.operands
    for x, negated in ((then, other), (other, then)):
        if not isinstance(negated, I.UnaryOp) or negated.operands[0] is not x:
            continue
        table = relation_table(condition)
        if table is None or table.x is not x or float_value(table.y) != 0:
            return False
        return bool(table.values[LESS]) == (negated is then) and bool(table.values[GREATER]) == (x is then)
    return False


def is_clamped(value: Value, constant: Value) -> bool:
    """Whether a number is the larger, or the smaller, of something and a constant: where it is the constant, that lies
    on one side of it, which is no equality: but for 0 and a number that is never negative."""
    if isinstance(value, I.CallBase):
        others = [a for a in value.arguments if not same(a, constant)]
        clamped = _called(value) in _OF_ALL and len(others) < len(value.arguments)
        return clamped and not (is_zero(constant) and all(map(is_never_negative, others)))
    if not isinstance(value, I.Select):
        return False
    condition, then, other = value.operands
    table = relation_table(condition)
    for held, x in ((then, other), (other, then)):
        if table is not None and same(held, constant) and table.is_about(x, constant):
            return any(bool(table.values[side]) == (held is then) for side in (LESS, GREATER))
    return False
