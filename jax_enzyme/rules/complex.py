"""The functions of C's `complex.h`, as pairs of real functions.

A row gives the complex derivative of an analytic function as a formula, read in complex arithmetic: `x0`, `x1` are its
arguments, `y` its result. `transform.lower_calls` rewrites a call of `cexp` into calls of `je.cexp_re.f64` and
`je.cexp_im.f64`, which have real arguments and results and whose rules follow here from the row by the Cauchy-Riemann
equations: with f' = p + iq, the real part has the partials (p, -q), the imaginary part (q, p). The bodies of these
helpers call the C function itself, so that the value stays what it was. `cdivide`, the quotient that compilers emit as
a call (`__divdc3`), is Smith's algorithm instead and needs no run-time library.
"""

from __future__ import annotations

from collections.abc import Mapping

from jax_enzyme.classes import dataclass
from jax_enzyme.rules.expr import Binary, Call, Const, Expr, Neg, Var, parse
from jax_enzyme.rules.rule import Ends, Kind, Partial, Rule, smooth

Pair = tuple[Expr, Expr]
_ZERO, _ONE = Const(0), Const(1)


@dataclass(frozen=True)
class Analytic:
    """A complex function: its derivative by each complex argument, and where tests draw the parts of each argument."""

    name: str
    derivatives: tuple[str, ...]
    domain: tuple[Ends, ...]
    source: str


_BOX = ((-1.5, 1.5), (-1.5, 1.5))
_RIGHT = ((0.3, 2.0), (-1.5, 1.5))
_UPPER = ((-1.5, 1.5), (0.3, 1.5))

ANALYTIC: tuple[Analytic, ...] = (
    Analytic("cexp", ("y",), _BOX, "C99 7.3.7.1"),
    Analytic("clog", ("1 / x0",), _RIGHT, "C99 7.3.7.2"),
    Analytic("csqrt", ("0.5 / y",), _RIGHT, "C99 7.3.8.3"),
    Analytic("cpow", ("x1*cpow(x0, x1 - 1)", "y*clog(x0)"), _RIGHT + _BOX, "C99 7.3.8.2"),
    Analytic("csin", ("ccos(x0)",), _BOX, "C99 7.3.5.5"),
    Analytic("ccos", ("-csin(x0)",), _BOX, "C99 7.3.5.4"),
    Analytic("ctan", ("1 + y*y",), _BOX, "C99 7.3.5.6"),
    Analytic("csinh", ("ccosh(x0)",), _BOX, "C99 7.3.6.5"),
    Analytic("ccosh", ("csinh(x0)",), _BOX, "C99 7.3.6.4"),
    Analytic("ctanh", ("1 - y*y",), _BOX, "C99 7.3.6.6"),
    Analytic("casin", ("1 / csqrt(1 - x0*x0)",), _UPPER, "C99 7.3.5.2"),
    Analytic("cacos", ("-1 / csqrt(1 - x0*x0)",), _UPPER, "C99 7.3.5.1"),
    Analytic("catan", ("1 / (1 + x0*x0)",), _RIGHT, "C99 7.3.5.3"),
    Analytic("casinh", ("1 / csqrt(1 + x0*x0)",), _RIGHT, "C99 7.3.6.2"),
    Analytic("cacosh", ("1 / (csqrt(x0 - 1)*csqrt(x0 + 1))",), _UPPER, "C99 7.3.6.1"),
    Analytic("catanh", ("1 / (1 - x0*x0)",), _UPPER, "C99 7.3.6.3"),
    Analytic("cdivide", ("1 / x1", "-y / x1"), _BOX + _RIGHT, "C99 annex G.5.1"),
)

REAL_PARTS: Mapping[str, tuple[str, ...]] = {
    "cabs": ("hypot(x0, x1)",),
    "carg": ("atan2(x1, x0)",),
    "creal": ("x0",),
    "cimag": ("x1",),
    "conj": ("x0", "-x1"),
    "cproj": (
        "inf if fabs(x0) == inf or fabs(x1) == inf else x0",
        "copysign(0, x1) if fabs(x0) == inf or fabs(x1) == inf else x1",
    ),
    "cmultiply": ("x0*x2 - x1*x3", "x0*x3 + x1*x2"),
}
"""Complex functions that are real formulas in the parts of their arguments: one formula, or real and imaginary part.
`cmultiply` is the product without its second look at infinities: it differs from C's only where that has an infinite
factor or overflows."""


_LARGER = "(x2 if fabs(x2) >= fabs(x3) else x3)"
_RATIO = f"((x3 if fabs(x2) >= fabs(x3) else x2) / {_LARGER})"
_NORM = f"({_LARGER} + (x3 if fabs(x2) >= fabs(x3) else x2)*{_RATIO})"
QUOTIENT = (
    f"(x0 + x1*{_RATIO} if fabs(x2) >= fabs(x3) else x0*{_RATIO} + x1) / {_NORM}",
    f"(x1 - x0*{_RATIO} if fabs(x2) >= fabs(x3) else x1*{_RATIO} - x0) / {_NORM}",
)
"""Smith's quotient (x0, x1) / (x2, x3) as formulas, for types without a helper."""

_POWER_DOMAIN = ((0.3, 2.0), (-1.5, 1.5), (-4, 5))


def rows() -> tuple[Rule, ...]:
    """The rules of the real and imaginary parts of all analytic functions."""
    return (*(rule for function in ANALYTIC for rule in _rules(function)), *_integer_power())


def _integer_power() -> tuple[Rule, Rule]:
    """A complex number to an integer power, which is no function of complex numbers alone."""
    real, imaginary = (f"0 if x2 == 0 else x2*cpowi_{part}(x0, x1, x2 - 1)" for part in ("re", "im"))
    minus = f"-({imaginary})"
    edges = "0 where the exponent is 0"
    return (
        smooth("cpowi_re", real, minus, None, domain=_POWER_DOMAIN, edges=edges, source="Fortran **"),
        smooth("cpowi_im", imaginary, real, None, domain=_POWER_DOMAIN, edges=edges, source="Fortran **"),
    )


def _rules(function: Analytic) -> tuple[Rule, Rule]:
    count = len(function.derivatives)
    arguments: dict[str, Pair] = {f"x{i}": (Var(f"x{2 * i}"), Var(f"x{2 * i + 1}")) for i in range(count)}
    flat = tuple(part for pair in arguments.values() for part in pair)
    real, imaginary = f"{function.name}_re", f"{function.name}_im"
    rules: list[Rule] = []
    for name, result in (
        (real, (Var("y"), Call(imaginary, flat))),
        (imaginary, (Call(real, flat), Var("y"))),
    ):
        partials: list[Partial] = []
        for formula in function.derivatives:
            p, q = complex_parts(parse(formula), {**arguments, "y": result})
            partials += [p, _neg(q)] if name == real else [q, p]
        edges = "a derivative by complex argument, on a branch cut that of the side whose value the function returns"
        rules.append(
            Rule(
                name,
                Kind.SMOOTH,
                "f" * (2 * count),
                tuple(partials),
                domain=function.domain,
                edges=edges,
                source=function.source,
            )
        )
    return rules[0], rules[1]


def complex_parts(expr: Expr, environment: Mapping[str, Pair]) -> Pair:
    """Real and imaginary part of a formula read in complex arithmetic."""
    match expr:
        case Var(name):
            return environment[name]
        case Const():
            return expr, _ZERO
        case Neg(operand):
            a, b = complex_parts(operand, environment)
            return _neg(a), _neg(b)
        case Binary(operator, left, right):
            return _ARITHMETIC[operator](complex_parts(left, environment), complex_parts(right, environment))
        case Call(function, arguments):
            flat = tuple(part for argument in arguments for part in complex_parts(argument, environment))
            return Call(f"{function}_re", flat), Call(f"{function}_im", flat)
        case _:
            raise ValueError(f"`{expr}` has no meaning in complex arithmetic")


def _neg(a: Expr) -> Expr:
    match a:
        case Const(value):
            return Const(-value)
        case Neg(operand):
            return operand
        case _:
            return Neg(a)


def _add(a: Expr, b: Expr) -> Expr:
    if a == _ZERO:
        return b
    if isinstance(b, Neg):
        return Binary("-", a, b.operand)
    return a if b == _ZERO else Binary("+", a, b)


def _mul(a: Expr, b: Expr) -> Expr:
    if _ZERO in (a, b):
        return _ZERO
    if isinstance(a, Neg):
        return _neg(_mul(a.operand, b))
    if isinstance(b, Neg):
        return _neg(_mul(a, b.operand))
    return b if a == _ONE else a if b == _ONE else Binary("*", a, b)


def _sum(x: Pair, y: Pair) -> Pair:
    return _add(x[0], y[0]), _add(x[1], y[1])


def _difference(x: Pair, y: Pair) -> Pair:
    return _add(x[0], _neg(y[0])), _add(x[1], _neg(y[1]))


def _product(x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    return _add(_mul(a, c), _neg(_mul(b, d))), _add(_mul(a, d), _mul(b, c))


def _quotient(x: Pair, y: Pair) -> Pair:
    c, d = y
    norm = _add(_mul(c, c), _mul(d, d))
    real, imaginary = _product(x, (c, _neg(d)))
    return Binary("/", real, norm), Binary("/", imaginary, norm)


_ARITHMETIC = {"+": _sum, "-": _difference, "*": _product, "/": _quotient}
