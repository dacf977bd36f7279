"""Partial derivatives as instructions: products and sums of them, with the flags that they may have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import SUM_FLAGS, Builder
from jax_enzyme.ir.values import ConstantInt, Value, lane_of
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.emit import by_reciprocal, emit_product
from jax_enzyme.rules.expr import Expr
from jax_enzyme.rules.rule import ZERO, Rule

PRODUCT_FLAGS = ("contract",)
_CONTRACTED = ("nsz", "contract")


def added(builder: Builder, x: Value, y: Value) -> Value:
    """`x + y`, of numbers. Where a summand is scaled by several constants whose product is too large or too small, the
    sum may not be reassociated, nor one that it is part of: code generators merge it with that product to one
    instruction, which has the flags of the sum, and then merge the constants. (What is scaled by 0, as products of
    complex numbers have it, is 0 whatever else it is scaled by, if the product of that is no infinity.)"""
    return builder.binary("fadd", x, y, _CONTRACTED if _out_of_range(x) or _out_of_range(y) else SUM_FLAGS)


def _out_of_range(summand: Value) -> bool:
    if isinstance(summand, I.BinaryOp) and summand.opcode == "fadd":
        return summand.flags == _CONTRACTED
    scale = 1.0
    while isinstance(summand, I.BinaryOp) and summand.opcode == "fmul":
        factors = [f for f in map(_number, summand.operands) if f is not None]
        if len(factors) != 1:
            return False
        scale *= factors[0] or 1
        info = np.finfo(np.float32 if T.scalar(summand.type) == T.FLOAT else np.float64)
        if not info.tiny <= abs(scale) <= info.max:
            return True
        summand = summand.operands[_number(summand.operands[0]) is not None]
    return False


def _number(value: Value) -> float | None:
    return float_value(lane_of(value))


def companion_in_sum(builder: Builder, operand: Value, value: Value, shadow: Value) -> Value:
    """The shadow of an integer, one part of an address that is computed: of the address itself, or of what is added to
    it. Where integers lie beside pointers, either may have been loaded; the shadow of one that is no pointer is zero,
    or itself, and it is added as it is."""
    if isinstance(operand, I.Cast | I.BinaryOp):
        return shadow
    return builder.select(builder.icmp("eq", shadow, ConstantInt(T.I64, 0)), value, shadow)


class Partials:
    """Emits products of partial derivatives: the arithmetic of both sweeps."""

    def __init__(self, builder: Builder, declarations: Declarations) -> None:
        self.builder = builder
        self._declarations = declarations

    def scaled(
        self,
        partial: Expr,
        environment: Mapping[str, Value],
        factor: Value,
        known: Mapping[Expr, Value] | None = None,
        quotients: dict[tuple[Value, Value], Value] | None = None,
    ) -> Value:
        """`partial * factor`, in the factor's type. `known`: the values of parts of the partial; `quotients`: those of
        factors and divisors that the partials of one instruction share."""
        declarations = self._declarations
        return emit_product(partial, factor, self.builder, environment, declarations, PRODUCT_FLAGS, known, quotients)

    def quotient(self, dividend: Value, divisor: Value) -> Value:
        """`dividend / divisor`, by the reciprocal that cotangents are multiplied by."""
        return by_reciprocal(dividend, divisor, self.builder, self._declarations, PRODUCT_FLAGS)

    def add(self, total: Value | None, term: Value) -> Value:
        """`total + term`, where no total is zero; element by element for aggregates."""
        if total is None:
            return term
        return self._add(total, term, total.type)

    def _add(self, x: Value, y: Value, type_: T.Type) -> Value:
        if T.is_float(type_):
            return added(self.builder, x, y)
        assert isinstance(type_, T.StructType | T.ArrayType)
        elements = type_.elements if isinstance(type_, T.StructType) else (type_.element,) * type_.count
        result = x
        for index, element in enumerate(elements):
            if T.is_float(element) or isinstance(element, T.StructType | T.ArrayType):
                left = self.builder.extract_value(x, index, element)
                right = self.builder.extract_value(y, index, element)
                result = self.builder.insert_value(result, self._add(left, right, element), index)
        return result


def nonzero_partials(rule: Rule) -> list[tuple[int, Expr]]:
    """(operand index, partial) of the operands that a derivative flows through."""
    return [(i, p) for i, p in enumerate(rule.partials) if p is not None and p is not ZERO]


def variables_of(instruction: I.Instruction) -> dict[str, Value]:
    """The names that a rule's formulas may use: x0, x1 ... for the operands, y for the result."""
    arguments = instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands
    return {**{f"x{i}": v for i, v in enumerate(arguments)}, "y": instruction}
