"""Formulas of derivative rules: a small immutable syntax tree, parsed from Python's own expression syntax.

`parse("0 if x1 == 0 else x1 * pow(x0, x1 - 1)")` gives a tree over the arguments `x0`, `x1` ... and the result `y` of
the operation. The same tree is emitted as IR (`rules.emit`), evaluated in tests against a reference of any precision
(`evaluate`), printed in the documentation (`text`), and asked for the values that it reads (`Expr.variables`).

Numbers are untyped, as in mathematics: where an integer argument meets a floating-point one it is converted.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, cast

from jax_enzyme.classes import dataclass

BinaryOperator = Literal["+", "-", "*", "/"]
Comparison = Literal["<", "<=", ">", ">=", "==", "!="]
Connective = Literal["and", "or"]


@dataclass(frozen=True)
class Expr:
    """Base of all formulas; compared and hashed by structure."""

    def __str__(self) -> str:
        return text(self)

    @functools.cached_property
    def variables(self) -> frozenset[str]:
        """The names of the values that the formula reads."""
        own = {self.name} if isinstance(self, Var) else set[str]()
        return frozenset(own).union(*(child.variables for child in children(self)))

    @functools.cached_property
    def calls(self) -> tuple[Call, ...]:
        """The calls of functions in the formula, outer ones first."""
        own = (self,) if isinstance(self, Call) else ()
        return (*own, *(call for child in children(self) for call in child.calls))


@dataclass(frozen=True)
class Var(Expr):
    """An argument (`x0`, `x1` ...) or the result (`y`) of the operation."""

    name: str

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Const(Expr):
    """A number; `symbol` is its name in the formula where it has one (`pi`)."""

    value: int | float
    symbol: str = ""

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Neg(Expr):
    operand: Expr

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Binary(Expr):
    operator: BinaryOperator
    left: Expr
    right: Expr

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Call(Expr):
    """A call of a function by its canonical name (`rules.names`)."""

    function: str
    arguments: tuple[Expr, ...]

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Compare(Expr):
    """Ordered comparisons: false where an operand is NaN, except `!=`, which is true."""

    operator: Comparison
    left: Expr
    right: Expr

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Logic(Expr):
    operator: Connective
    left: Expr
    right: Expr

    __str__ = Expr.__str__


@dataclass(frozen=True)
class Where(Expr):
    """`then if condition else other`: a choice between values, not control flow (both are computed)."""

    condition: Expr
    then: Expr
    other: Expr

    __str__ = Expr.__str__


SYMBOLS: Mapping[str, float] = {
    "pi": math.pi,
    "ln2": math.log(2.0),
    "ln10": math.log(10.0),
    "inf": math.inf,
    "nan": math.nan,
}

_BINARY: Mapping[type[ast.operator], BinaryOperator] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE: Mapping[type[ast.cmpop], Comparison] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


@functools.cache
def parse(formula: str) -> Expr:
    """The tree of a formula; ValueError names what is not understood."""
    return _from_ast(ast.parse(formula, mode="eval").body, formula)


def _from_ast(node: ast.expr, formula: str) -> Expr:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return Const(value)
        case ast.Name(id=name):
            return Const(SYMBOLS[name], name) if name in SYMBOLS else _variable(name, formula)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negated(_from_ast(operand, formula))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
            return Binary(_BINARY[type(operator)], _from_ast(left, formula), _from_ast(right, formula))
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARE:
            return Compare(_COMPARE[type(operator)], _from_ast(left, formula), _from_ast(right, formula))
        case ast.BoolOp(op=operator, values=values):
            word: Connective = "and" if isinstance(operator, ast.And) else "or"
            parts = [_from_ast(value, formula) for value in values]
            return functools.reduce(lambda left, right: Logic(word, left, right), parts)
        case ast.IfExp(test=test, body=body, orelse=other):
            return Where(_from_ast(test, formula), _from_ast(body, formula), _from_ast(other, formula))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return Call(name, tuple(_from_ast(argument, formula) for argument in arguments))
        case _:
            raise ValueError(f"formula {formula!r}: `{ast.unparse(node)}` is not understood")


def _variable(name: str, formula: str) -> Var:
    if name == "y" or (name[:1] == "x" and name[1:].isdigit()):
        return Var(name)
    raise ValueError(f"formula {formula!r}: {name!r} is no argument (x0, x1 ...), result (y) or known constant")


def _negated(operand: Expr) -> Expr:
    return Const(-operand.value) if isinstance(operand, Const) and not operand.symbol else Neg(operand)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of a formula."""
    match expr:
        case Neg(operand):
            return (operand,)
        case Binary(_, left, right) | Compare(_, left, right) | Logic(_, left, right):
            return (left, right)
        case Call(_, arguments):
            return arguments
        case Where(condition, then, other):
            return (condition, then, other)
        case _:
            return ()


def variables_beside(expr: Expr, known: Collection[Expr]) -> frozenset[str]:
    """The names of the values that a formula reads where the values of some parts are known."""
    if not known or isinstance(expr, Var):
        return expr.variables
    if expr in known:
        return frozenset()
    return frozenset[str]().union(*(variables_beside(child, known) for child in children(expr)))


@functools.cache
def functions(expr: Expr) -> frozenset[str]:
    """The names of the functions that a formula calls."""
    own = {expr.function} if isinstance(expr, Call) else set[str]()
    return frozenset[str](own).union(*map(functions, children(expr)))


_COMPUTE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}  # fmt: skip


def evaluate(expr: Expr, environment: Mapping[str, Any], library: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of a formula in whatever arithmetic the environment's numbers have; `library` holds the functions."""
    match expr:
        case Var(name):
            return environment[name]
        case Const(value):
            return value
        case Neg(operand):
            return -evaluate(operand, environment, library)
        case Binary(operator, left, right) | Compare(operator, left, right) | Logic(operator, left, right):
            word = cast(str, operator)
            return _COMPUTE[word](evaluate(left, environment, library), evaluate(right, environment, library))
        case Call(function, arguments):
            return library[function](*(evaluate(argument, environment, library) for argument in arguments))
        case Where(condition, then, other):
            chosen = then if evaluate(condition, environment, library) else other
            return evaluate(chosen, environment, library)
        case _:
            raise TypeError(f"not a formula: {expr!r}")


_LEVEL = {"+": 5, "-": 5, "*": 7, "/": 7, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4, "and": 3, "or": 2}


def text(expr: Expr) -> str:
    """The formula as `parse` reads it."""
    return _text(expr, 0)


def _text(expr: Expr, outer: int) -> str:
    match expr:
        case Var(name):
            return name
        case Const(value, symbol):
            shown = symbol or repr(value)
            return _wrapped(shown, shown.startswith("-") and _binds_tighter(outer))
        case Neg(operand):
            return _wrapped(f"-{_text(operand, 8)}", _binds_tighter(outer))
        case Binary(operator, left, right) | Compare(operator, left, right) | Logic(operator, left, right):
            level = _LEVEL[operator]
            body = f"{_text(left, level)} {operator} {_text(right, level + 1)}"
            return _wrapped(body, outer > level)
        case Call(function, arguments):
            return f"{function}({', '.join(_text(argument, 0) for argument in arguments)})"
        case Where(condition, then, other):
            body = f"{_text(then, 2)} if {_text(condition, 2)} else {_text(other, 1)}"
            return _wrapped(body, outer > 1)
        case _:
            raise TypeError(f"not a formula: {expr!r}")


def _binds_tighter(outer: int) -> bool:
    """Does a leading minus need brackets? Not at the left of a product or a sum."""
    return outer == 6 or outer > 7


def _wrapped(body: str, needed: bool) -> str:
    return f"({body})" if needed else body
