"""Integer expressions over dimension names: their values, and their form as polynomials.

    expression := term (("+" | "-") term)*          term := factor (("*" | "/" | "//" | "%") factor)*
    factor     := ["-"] atom                        atom := literal | name | "(" expression ")"

`//` and `%` round and take remainders as Python does; `/` is exact division: a remainder is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from jax_enzyme.classes import dataclass

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]
"""Coefficients by monomial; a monomial is its names and powers, sorted by name. No zero coefficients."""

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}
_MAX_DEGREE = 8


class EvaluationError(ValueError):
    """An expression that has no integer value: an inexact division, or one by zero."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Name:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Negation:
    operand: Expression

    def __str__(self) -> str:
        inner = str(self.operand)
        return f"-({inner})" if isinstance(self.operand, Operation | Negation) else f"-{inner}"


@dataclass(frozen=True, slots=True)
class Operation:
    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{self._side(self.left, 0)}{self.operator}{self._side(self.right, 1)}"

    def _side(self, side: Expression, bump: int) -> str:
        text = str(side)
        if isinstance(side, Negation):
            return f"({text})"
        if isinstance(side, Operation) and _PRECEDENCE[side.operator] < _PRECEDENCE[self.operator] + bump:
            return f"({text})"
        return text


Expression = Literal | Name | Negation | Operation


def names_in(expression: Expression) -> frozenset[str]:
    """The names that occur in an expression."""
    match expression:
        case Literal():
            return frozenset()
        case Name(name):
            return frozenset({name})
        case Negation(operand):
            return names_in(operand)
        case Operation(_, left, right):
            return names_in(left) | names_in(right)


def renamed(expression: Expression, meaning: Callable[[str], Expression]) -> Expression:
    """An expression with what its names mean in their place."""
    match expression:
        case Literal():
            return expression
        case Name(name):
            return meaning(name)
        case Negation(operand):
            return Negation(renamed(operand, meaning))
        case Operation(operator, left, right):
            return Operation(operator, renamed(left, meaning), renamed(right, meaning))


def evaluate(expression: Expression, values: Mapping[str, int]) -> int:
    """The value of an expression whose names all have values; EvaluationError where it has none."""
    match expression:
        case Literal(value):
            return value
        case Name(name):
            return values[name]
        case Negation(operand):
            return -evaluate(operand, values)
        case Operation(operator, left, right):
            return _apply(operator, evaluate(left, values), evaluate(right, values), expression)


def _apply(operator: str, left: int, right: int, expression: Expression) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            if right == 0:
                raise EvaluationError(f"`{expression}` divides {left} by 0")
            if operator == "//":
                return left // right
            if operator == "%":
                return left % right
            if left % right:
                raise EvaluationError(f"`{expression}` does not divide exactly: {left} / {right}")
            return left // right


def polynomial(expression: Expression) -> Polynomial | None:
    """The polynomial with rational coefficients that an expression is, or None (rounding, division by a name)."""
    match expression:
        case Literal(value):
            return {(): Fraction(value)} if value else {}
        case Name(name):
            return {((name, 1),): Fraction(1)}
        case Negation(operand):
            inner = polynomial(operand)
            return None if inner is None else _scale(inner, Fraction(-1))
        case Operation(operator, left, right):
            a, b = polynomial(left), polynomial(right)
            return None if a is None or b is None else _combine(operator, a, b)


def _combine(operator: str, a: Polynomial, b: Polynomial) -> Polynomial | None:
    match operator:
        case "+":
            return _add(a, b)
        case "-":
            return _add(a, _scale(b, Fraction(-1)))
        case "*":
            product: Polynomial = {}
            for left, x in a.items():
                for right, y in b.items():
                    product = _add(product, {_multiply(left, right): x * y})
            return product if degree(product) <= _MAX_DEGREE else None
        case "/" if set(b) == {()}:
            return _scale(a, 1 / b[()])
        case _:
            return None


def _add(a: Polynomial, b: Polynomial) -> Polynomial:
    total = dict(a)
    for monomial, coefficient in b.items():
        total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _scale(a: Polynomial, factor: Fraction) -> Polynomial:
    return {monomial: coefficient * factor for monomial, coefficient in a.items()}


def _multiply(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for name, power in b:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def degree(form: Polynomial) -> int:
    """The total degree; 0 for a constant."""
    return max((sum(power for _, power in monomial) for monomial in form), default=0)


def polynomial_names(form: Polynomial) -> frozenset[str]:
    """The names whose coefficients do not cancel."""
    return frozenset(name for monomial in form for name, _ in monomial)


def substitute(form: Polynomial, values: Mapping[str, int]) -> Polynomial:
    """The polynomial with some of its names replaced by their values."""
    result: Polynomial = {}
    for monomial, coefficient in form.items():
        kept: list[tuple[str, int]] = []
        for name, power in monomial:
            if name in values:
                coefficient = coefficient * values[name] ** power
            else:
                kept.append((name, power))
        result = _add(result, {tuple(kept): coefficient})
    return result
