"""Values as terms that are simplified as they are made, under finite arithmetic: x * 0 = 0, x + 0 = x, 0 / x = 0.

    %t = fmul double %alpha, %x         with %x known to be 0:     0
    %s = fmuladd double %t, %b, %c                                 the term of %c

Equal terms are one object. Finite arithmetic takes no number for infinite or NaN and both zeros for one; it rounds as
the program does, so that no term is reassociated. What is not finite at the constants, or has no derivative there, is
`invalid`, and so is all that is computed from it. Integers and addresses are sums of multiples of terms.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Hashable

from jax_enzyme.analysis.folding import wrapped
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import ConstantFloat, ConstantInt, ConstantNull, Value, is_zero

_AT_CONSTANTS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt, "cbrt": math.cbrt, "exp": math.exp, "exp2": math.exp2, "expm1": math.expm1, "log": math.log,
    "log1p": math.log1p, "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh, "erf": math.erf, "fabs": math.fabs,
    "acos": math.acos, "fmax": max, "fmin": min, "pow": math.pow, "hypot": math.hypot, "copysign": math.copysign,
}  # fmt: skip
"""Functions that are known at numbers, by the names of their rules."""
_OPERATIONS: dict[str, Callable[..., float]] = {
    "fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fdiv": operator.truediv, "frem": math.fmod,
}  # fmt: skip
_KEEP_ZERO = frozenset("sin tan asin atan sinh tanh asinh expm1 log1p erf fabs copysign".split())
_STEEP = frozenset("sqrt cbrt".split())
"""Functions that have a value at zero, and no derivative."""
_ALWAYS_FINITE = frozenset("fmax fmin maximum minimum hypot atan2 cos cosh exp exp2 acos floor ceil trunc rint".split())
"""Functions that are finite wherever an argument is zero."""
NEVER_NEGATIVE = frozenset("fabs sqrt hypot".split())
_ONLY_ZERO_AT_ZERO = NEVER_NEGATIVE | frozenset("cbrt tanh sinh atan asinh asin erf expm1 log1p".split())
"""Functions that are zero where all their arguments are, and nowhere else."""
_FORMATS = {"float": ">f", "half": ">e"}


@dataclass(eq=False, slots=True)
class Term:
    """`operation` with `parts`; what else tells two terms apart is in `detail`. Numbers have the operation "number"."""

    operation: str
    parts: tuple[Term, ...]
    detail: Hashable
    type: T.Type
    order: int

    @property
    def number(self) -> float | int | None:
        """The constant that the term is."""
        if self.operation != "number":
            return None
        assert isinstance(self.detail, float | int)
        return self.detail


class Terms:
    """Makes terms. `known` says which terms are others: what a comparison was found to say."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Term] = {}
        self.known: dict[Term, Term] = {}
        self.forgotten: set[Term] = set()
        """What has been multiplied by zero."""
        self.poles = False
        """Whether something was no finite number."""

    def term(self, operation: str, parts: tuple[Term, ...], detail: Hashable, type_: T.Type) -> Term:
        if any(p.operation == "invalid" for p in parts):
            operation, parts, detail = "invalid", (), None
        key = (operation, parts, detail, type_)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Term(operation, parts, detail, type_, len(self._made))
        return self.known.get(found, found)

    def number(self, type_: T.Type, value: float) -> Term:
        """A number as its type holds it; both zeros are one."""
        if isinstance(type_, T.IntType):
            return self.term("number", (), wrapped(int(value), type_.bits), type_)
        return self.term("number", (), float(value) + 0.0, type_)

    def truth(self, value: bool) -> Term:
        return self.number(T.IntType(1), value)

    def constant(self, value: Value) -> Term | None:
        """The number that a constant is."""
        match value:
            case ConstantInt():
                return self.number(value.type, value.value)
            case ConstantFloat():
                found = float_value(value)
                return None if found is None else self.number(value.type, found)
            case ConstantNull():
                return self.term("value", (), "null", value.type)
            case _ if is_zero(value) and isinstance(value.type, T.IntType):
                return self.number(value.type, 0)
            case _:
                return None

    # -- floating-point numbers

    def negated(self, x: Term) -> Term:
        if x.number is not None or x.operation == "invalid":
            return x if x.number is None else self.number(x.type, -x.number)
        return x.parts[0] if x.operation == "fneg" else self.term("fneg", (x,), None, x.type)

    def invalid(self, type_: T.Type) -> Term:
        """What is no finite number."""
        self.poles = True
        return self.term("invalid", (), None, type_)

    def arithmetic(self, opcode: str, x: Term, y: Term) -> Term:
        """fadd, fsub, fmul, fdiv, frem."""
        if "invalid" in (x.operation, y.operation) or (opcode in ("fdiv", "frem") and y.number == 0):
            return self.invalid(x.type)
        if x.number is not None and y.number is not None:
            return self._computed(opcode, x, y)
        match opcode:
            case "fadd":
                return self._sum(x, y)
            case "fsub":
                if x is y:
                    return self.number(x.type, 0.0)
                return self.negated(y) if x.number == 0 else self._sum(x, self.negated(y))
            case "fmul":
                return self._product(x, y)
            case "fdiv" if x.number == 0:
                self.forgotten.add(y)
                return x
            case "fdiv" if x is y:
                self.forgotten.add(y)
                return self.number(x.type, 1.0)
            case "fdiv" if y.number in (1, -1):
                return x if y.number == 1 else self.negated(x)
            case _:
                return self.term(opcode, (x, y), None, x.type)

    def _sum(self, x: Term, y: Term) -> Term:
        if x.number == 0 or y.number == 0:
            return y if x.number == 0 else x
        if self.negated(x) is y:
            return self.number(x.type, 0.0)
        return self.term("fadd", _ordered(x, y), None, x.type)

    def _product(self, x: Term, y: Term) -> Term:
        for factor, other in ((x, y), (y, x)):
            if factor.number == 0:
                self.forgotten.add(other)
                return factor
            if factor.number in (1, -1):
                return other if factor.number == 1 else self.negated(other)
        flips = (x.operation == "fneg") != (y.operation == "fneg")
        x, y = (z.parts[0] if z.operation == "fneg" else z for z in (x, y))
        product = self.term("fmul", _ordered(x, y), None, x.type)
        return self.negated(product) if flips else product

    def _computed(self, opcode: str, x: Term, y: Term) -> Term:
        try:
            value = _OPERATIONS[opcode](x.number, y.number)
        except ArithmeticError:
            return self.invalid(x.type)
        return self._rounded(value, self.term(opcode, (x, y), None, x.type))

    def _rounded(self, value: float, otherwise: Term) -> Term:
        """A computed number where its type holds it exactly."""
        if not math.isfinite(value):
            return self.invalid(otherwise.type)
        kind = otherwise.type.kind if isinstance(otherwise.type, T.FloatType) else ""
        form = _FORMATS.get(kind)
        try:
            exact = kind == "double" or (form is not None and struct.unpack(form, struct.pack(form, value))[0] == value)
        except OverflowError:
            return self.invalid(otherwise.type)
        return self.number(otherwise.type, value) if exact or value == 0 else otherwise

    def function(self, name: str, arguments: tuple[Term, ...], type_: T.Type) -> Term:
        """A function without memory, by the name of its rule or its own."""
        if name in ("fma", "fmuladd"):
            return self.arithmetic("fadd", self.arithmetic("fmul", arguments[0], arguments[1]), arguments[2])
        if any(a.operation == "invalid" for a in arguments):
            return self.invalid(type_)
        numbers = [a.number for a in arguments]
        if numbers and numbers[0] == 0 and name in _KEEP_ZERO:
            return self.number(type_, 0.0)
        if 0 in numbers and name in _STEEP:
            return self.invalid(type_)
        term = self.term("call", arguments, name, type_)
        if name not in _AT_CONSTANTS or any(n is None for n in numbers):
            # A function that nobody knows may have a pole at zero.
            return self.invalid(type_) if 0.0 in numbers and name not in _ALWAYS_FINITE else term
        try:
            return self._rounded(float(_AT_CONSTANTS[name](*numbers)), term)
        except (ArithmeticError, ValueError):
            return self.invalid(type_)

    # -- integers and addresses

    def linear(self, x: Term) -> tuple[int, dict[Term, int]]:
        """A constant, and multiples of terms to be added to it."""
        if isinstance(x.detail, int) and x.operation == "number":
            return x.detail, {}
        if x.operation == "sum":
            assert isinstance(x.detail, tuple)
            constant, *factors = x.detail
            return constant, dict(zip(x.parts, factors, strict=True))
        return 0, {x: 1}

    def total(self, type_: T.Type, terms: list[tuple[Term, int]], constant: int = 0) -> Term:
        """The sum of multiples of integers or addresses, modulo the width of the type."""
        found: dict[Term, int] = {}
        for term, factor in terms:
            own, parts = self.linear(term)
            constant += own * factor
            for part, times in parts.items():
                found[part] = found.get(part, 0) + times * factor
        parts = sorted((t for t, n in found.items() if n), key=lambda t: t.order)
        if not parts and isinstance(type_, T.IntType):
            return self.number(type_, constant)
        bits = type_.bits if isinstance(type_, T.IntType) else 64
        constant = wrapped(constant, bits)
        if constant == 0 and len(parts) == 1 and found[parts[0]] == 1:
            return parts[0]
        return self.term("sum", tuple(parts), (constant, *(found[p] for p in parts)), type_)

    def distance(self, x: Term, y: Term) -> int | None:
        """x - y where it is a constant."""
        constant, parts = self.linear(self.total(T.IntType(64), [(x, 1), (y, -1)]))
        return None if parts else constant

    # -- conditions

    def inverse(self, x: Term) -> Term:
        if x.number is not None:
            return self.truth(not x.number)
        return x.parts[0] if x.operation == "not" else self.term("not", (x,), None, x.type)

    def compared(self, opcode: str, predicate: str, x: Term, y: Term) -> Term:
        if opcode == "fcmp":
            if predicate in ("ord", "uno", "true", "false"):
                return self.truth(predicate in ("ord", "true"))
            return self._related(predicate[1:], "less", x, y)
        if predicate in ("eq", "ne"):
            constant, parts = self.linear(self.total(x.type, [(x, 1), (y, -1)]))
            if len(parts) == 1 and abs(next(iter(parts.values()))) == 1 and isinstance(x.type, T.IntType):
                (part,) = parts
                x, y = part, self.number(x.type, -constant * parts[part])
            elif not parts:
                x, y = self.number(T.IntType(64), constant), self.number(T.IntType(64), 0)
        return self._related(predicate[-2:], f"{predicate[0]}less", x, y)

    def _related(self, relation: str, less: str, x: Term, y: Term) -> Term:
        """Equality, an order, or their opposites."""
        if relation in ("gt", "le"):
            x, y = y, x
        found = self._equal(x, y) if relation in ("eq", "ne") else self._less(less, x, y)
        return self.inverse(found) if relation in ("ne", "le", "ge") else found

    def _equal(self, x: Term, y: Term) -> Term:
        if x is y and x.operation != "invalid":
            return self.truth(True)
        if x.number is not None and y.number is not None:
            return self.truth(x.number == y.number)
        return self.term("equal", _ordered(x, y), None, T.IntType(1))

    def _less(self, operation: str, x: Term, y: Term) -> Term:
        if x is y:
            return self.truth(False)
        a, b = x.number, y.number
        if a is not None and b is not None:
            if operation == "uless" and isinstance(x.type, T.IntType):
                a, b = (int(n) % (1 << x.type.bits) for n in (a, b))
            return self.truth(a < b)
        return self.term(operation, (x, y), None, T.IntType(1))

    def chosen(self, condition: Term, then: Term, other: Term) -> Term:
        if condition.number is not None:
            return then if condition.number else other
        if then is other:
            return then
        if condition.operation == "not":
            condition, then, other = condition.parts[0], other, then
        return self.term("select", (condition, then, other), None, then.type)

    def assume(self, condition: Term, holds: bool) -> None:
        """Takes a condition for true or false, and what it says about others."""
        if condition.number is not None:
            return
        if condition.operation == "not":
            self.assume(condition.parts[0], not holds)
            return
        self.known[condition] = self.truth(holds)
        if condition.operation == "equal" and holds:
            x, y = condition.parts
            if y.number is None:
                x, y = y, x
            if y.number is not None:
                self.learn(x, y)
        elif condition.operation == "select" and T.IntType(1) == condition.type:
            self._assume_both(condition.parts, holds)

    def _assume_both(self, parts: tuple[Term, ...], holds: bool) -> None:
        """`a and b` as `select a, b, false`, `a or b` as `select a, true, b`."""
        condition, then, other = parts
        if holds and other.number == 0:
            self.assume(condition, True)
            self.assume(then, True)
        elif not holds and then.number == 1:
            self.assume(condition, False)
            self.assume(other, False)

    def learn(self, x: Term, value: Term) -> None:
        """A term is a number, or another term; where it is zero, so is what it is the negative, the absolute value, a
        square or a root of, and each part of a sum of such; of a difference both sides are the same."""
        if x.number is not None or x is value:
            return
        self.known[x] = value
        if value.number != 0:
            return
        if _is_zero_with_parts(x):
            for part in x.parts:
                self.learn(part, value)
        elif x.operation == "fadd":
            self.learn(x.parts[0], self.negated(x.parts[1]))


def _is_zero_with_parts(x: Term) -> bool:
    """Whether a term is zero only where all its parts are."""
    match x.operation:
        case "fneg":
            return True
        case "call":
            return x.detail in _ONLY_ZERO_AT_ZERO
        case "fadd":
            return all(map(_is_never_negative, x.parts))
        case _:
            return _is_square(x)


def _is_square(x: Term) -> bool:
    return x.operation == "fmul" and x.parts[0] is x.parts[1]


def _is_never_negative(x: Term) -> bool:
    return all(
        _is_square(term) or (term.operation == "call" and term.detail in NEVER_NEGATIVE)
        for term in reached([x], lambda t: t.parts if t.operation == "fadd" else ())
        if term.operation != "fadd"
    )


def _ordered(x: Term, y: Term) -> tuple[Term, Term]:
    return (x, y) if x.order <= y.order else (y, x)


def float_value(value: Value | None) -> float | None:
    """The number that a constant of type double, float, half or bfloat spells; None where it is not finite, and for all
    else."""
    if not isinstance(value, ConstantFloat):
        return None
    text = value.text
    if not text.startswith(("0x", "-0x")):
        found = float(text)
    elif text.startswith("0xH"):
        found = struct.unpack(">e", bytes.fromhex(text[3:]))[0]
    elif text.startswith("0xR"):
        found = struct.unpack(">f", bytes.fromhex(text[3:] + "0000"))[0]
    elif text[2] in "KLM":
        return 0.0 if is_zero(value) else None
    else:
        found = struct.unpack(">d", bytes.fromhex(text[2:].rjust(16, "0")))[0]
    return found if math.isfinite(found) else None
