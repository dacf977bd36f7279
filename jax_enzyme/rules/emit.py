"""Turns formulas into IR.

`emit` builds the value of a formula at the end of a block; `emit_product` builds `factor * formula`, the only way in
which derivatives use partials, and leaves out what a product makes needless: factors of one, and zeros times something.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TypeVar

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations, parameter_letters, real_constant, splat
from jax_enzyme.rules.expr import Binary, Call, Compare, Const, Expr, Logic, Neg, Var, Where

K = TypeVar("K")
Operand = Value | int | float
"""A value, or a number whose type is not decided yet."""

_FOLD: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_INSTRUCTION = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_FLOAT_PREDICATE = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_INT_PREDICATE = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}


def emit(
    expr: Expr,
    builder: Builder,
    environment: Mapping[str, Value],
    declarations: Declarations,
    type_: T.Type,
    flags: tuple[str, ...] = (),
) -> Value:
    """The value of a formula, of the floating-point (or vector) type `type_`. `flags` are fast-math words for the
    arithmetic."""
    wide = _computed_in(type_)
    emitter = _Emitter(builder, _widened(builder, environment, wide), declarations, wide, flags)
    return _narrowed(builder, emitter.real(emitter.operand(expr)), type_)


def emit_product(
    expr: Expr,
    factor: Value,
    builder: Builder,
    environment: Mapping[str, Value],
    declarations: Declarations,
    flags: tuple[str, ...] = (),
    known: Mapping[Expr, Value] | None = None,
    quotients: dict[tuple[Value, Value], Value] | None = None,
) -> Value:
    """`factor` times a formula, in the type of `factor`. `known`: the values of parts that are computed elsewhere,
    `quotients` those of factors and divisors, which are noted, and used again for other formulas: of
    `factor * (-y / x)` nothing is divided where `factor / x` is there."""
    wide = _computed_in(factor.type)
    emitter = _Emitter(builder, _widened(builder, environment, wide), declarations, wide, flags)
    emitter.done |= _widened(builder, known or {}, wide)
    emitter.quotients = {} if quotients is None else quotients
    if isinstance(expr, Const) and abs(expr.value) == 1:
        return factor if expr.value == 1 else builder.unary("fneg", factor, flags)
    widened = factor if wide == factor.type else builder.cast("fpext", factor, wide)
    return _narrowed(builder, emitter.product(expr, widened), factor.type)


def by_reciprocal(
    dividend: Value, divisor: Value, builder: Builder, declarations: Declarations, flags: tuple[str, ...] = ()
) -> Value:
    """A quotient as a product with `1 / divisor`, as `emit_product` divides its factor."""
    return _Emitter(builder, {}, declarations, dividend.type, flags).by_reciprocal(dividend, divisor)


def _computed_in(type_: T.Type) -> T.Type:
    """Half precision is computed in single: the functions exist there, and one rounding is left."""
    if T.scalar(type_) not in (T.HALF, T.BFLOAT):
        return type_
    return T.VectorType(type_.count, T.FLOAT, type_.scalable) if isinstance(type_, T.VectorType) else T.FLOAT


def _widened(builder: Builder, environment: Mapping[K, Value], wide: T.Type) -> Mapping[K, Value]:
    return {
        name: builder.cast("fpext", value, wide) if T.scalar(value.type) in (T.HALF, T.BFLOAT) else value
        for name, value in environment.items()
    }


def _narrowed(builder: Builder, value: Value, type_: T.Type) -> Value:
    return value if T.scalar(value.type) == T.scalar(type_) else builder.cast("fptrunc", value, type_)


class _Emitter:
    def __init__(
        self,
        builder: Builder,
        environment: Mapping[str, Value],
        declarations: Declarations,
        type_: T.Type,
        flags: tuple[str, ...],
    ) -> None:
        self.builder = builder
        self.environment = environment
        self.declarations = declarations
        self.type = type_
        self.flags = flags
        self.done: dict[Expr, Operand] = {}
        self.quotients: dict[tuple[Value, Value], Value] = {}

    def real(self, operand: Operand) -> Value:
        """An operand as a value of the floating-point type."""
        if isinstance(operand, (int, float)):
            return real_constant(self.builder, float(operand), self.type)
        if not T.is_float(operand.type):
            scalar = T.scalar(self.type)
            to = self.type if isinstance(operand.type, T.VectorType) else scalar
            operand = self.builder.cast("sitofp", operand, to)
        return splat(self.builder, operand, self.type)

    def product(self, expr: Expr, factor: Value) -> Value:
        match expr:
            case Const(1):
                return factor
            case Const(-1):
                return self.builder.unary("fneg", factor, self.flags)
            case Const(0):
                return self.real(0.0)
            case Neg(operand):
                return self.builder.unary("fneg", self.product(operand, factor), self.flags)
            case Binary("/", left, Var(name)) if (factor, self.environment[name]) in self.quotients:
                return self.product(left, self.quotients[factor, self.environment[name]])
            case Binary("/", Const(1 | -1 as sign), right):
                divisor = self.real(self.operand(right))
                if isinstance(right, Var):
                    quotient = self.quotients[factor, divisor] = self.by_reciprocal(factor, divisor)
                else:
                    quotient = self.builder.binary("fdiv", factor, divisor, self.flags)
                return quotient if sign == 1 else self.builder.unary("fneg", quotient, self.flags)
            case Where(condition, then, other) if _is_choice(expr):
                chosen = self.truth(condition)
                return self.builder.select(chosen, self.product(then, factor), self.product(other, factor))
            case _:
                return self.builder.binary("fmul", factor, self.real(self.operand(expr)), self.flags)

    def by_reciprocal(self, factor: Value, divisor: Value) -> Value:
        """A quotient by way of `1 / divisor`, which others share and which waits for no factor. The reciprocal of a
        subnormal number may be infinite where the quotient is a number: there it is that of a multiple."""
        normal = 2.0**-126 if T.scalar(self.type) == T.FLOAT else 2.0**-1022
        is_small = self.builder.fcmp("olt", self.call("fabs", [divisor]), self.real(normal))
        scale = self.builder.select(is_small, self.real(2.0**64), self.real(1.0))
        scaled = self.builder.binary("fmul", divisor, scale, self.flags)
        reciprocal = self.builder.binary("fdiv", self.real(1.0), scaled, self.flags)
        quotient = self.builder.binary("fmul", factor, reciprocal, self.flags)
        return self.builder.binary("fmul", quotient, scale, self.flags)

    def operand(self, expr: Expr) -> Operand:
        """The value of a formula; what occurs in it twice is built once."""
        if expr not in self.done:
            self.done[expr] = self.built(expr)
        return self.done[expr]

    def built(self, expr: Expr) -> Operand:
        match expr:
            case Var(name):
                return self.environment[name]
            case Const(value):
                return value
            case Neg(inner):
                return self.negated(self.operand(inner))
            case Binary():
                return self.arithmetic(expr)
            case Call(function, arguments):
                return self.call(function, [self.operand(argument) for argument in arguments])
            case Where(condition, then, other):
                first, second, whole = self.together(self.operand(then), self.operand(other))
                del whole
                return self.builder.select(self.truth(condition), first, second)
            case _:
                raise TypeError(f"`{expr}` is no number")

    def negated(self, operand: Operand) -> Operand:
        if isinstance(operand, (int, float)):
            return -operand
        if T.is_float(operand.type):
            return self.builder.unary("fneg", operand, self.flags)
        return self.builder.binary("sub", const_int(operand.type, 0), operand)

    def arithmetic(self, expr: Binary) -> Operand:
        left, right = self.operand(expr.left), self.operand(expr.right)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return _FOLD[expr.operator](left, right)
        first, second, whole = self.together(left, right, divided=expr.operator == "/")
        word = _INSTRUCTION[expr.operator]
        return self.builder.binary(word if whole else f"f{word}", first, second, () if whole else self.flags)

    def together(self, left: Operand, right: Operand, divided: bool = False) -> tuple[Value, Value, bool]:
        """Two operands in one type, and whether that is an integer type."""
        if not divided and all(isinstance(o, int) or _is_integer(o) for o in (left, right)):
            integer = left if isinstance(left, Value) else right
            if isinstance(integer, Value):
                first = left if isinstance(left, Value) else const_int(integer.type, int(left))
                second = right if isinstance(right, Value) else const_int(integer.type, int(right))
                return first, second, True
        return self.real(left), self.real(right), False

    def call(self, function: str, arguments: list[Operand]) -> Value:
        letters = parameter_letters(function, len(arguments))
        values = [
            self.real(argument) if letter == "f" else self.integer(argument)
            for letter, argument in zip(letters, arguments, strict=True)
        ]
        return self.declarations.call(self.builder, function, values, self.type)

    @staticmethod
    def integer(operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else const_int(T.I32, int(operand))

    def truth(self, expr: Expr) -> Value:
        match expr:
            case Compare(word, left, right):
                first, second, whole = self.together(self.operand(left), self.operand(right))
                if whole:
                    return self.builder.icmp(_INT_PREDICATE[word], first, second)
                return self.builder.fcmp(_FLOAT_PREDICATE[word], first, second)
            case Logic(word, left, right):
                return self.builder.binary(word, self.truth(left), self.truth(right))
            case _:
                raise TypeError(f"`{expr}` is no condition")


def _is_integer(operand: Operand) -> bool:
    return isinstance(operand, Value) and T.is_int(operand.type)


def _is_choice(expr: Expr) -> bool:
    """A choice between factors of which one at least is free: zero, one or minus one."""
    match expr:
        case Const():
            return True
        case Where(_, then, other):
            return (_is_choice(then) and _is_choice(other)) or Const(0) in (then, other)
        case _:
            return False
