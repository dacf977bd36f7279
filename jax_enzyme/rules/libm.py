"""The functions of C's `math.h`, one row each, under their `double` names (`rules.names` knows the others).

`x0`, `x1` ... are the arguments, `y` the result. Formulas call functions by the same names, and every function that a
formula calls has a row, so that derivatives have derivatives. Where a formula in `y` is as good as one in `x`, `y` is
taken: reverse mode mostly has it at hand, and it saves a second call.
"""

from __future__ import annotations

from jax_enzyme.rules.rule import Outcome, Rule, refused, smooth, zero

_ALL = ((-3.0, 3.0),)
_POSITIVE = ((0.1, 5.0),)
_STEPS = "piecewise constant: zero between its jumps, and taken as zero at them"
_NO_NUMBER = "no argument is a floating-point number"
_CLASS = "a property of the number's class or sign, piecewise constant"
_MAX_EDGES = (
    "equal arguments share the derivative half and half, as in jax.numpy.maximum: the rule must not depend on the "
    "order of the arguments, which the optimiser may swap"
)

_TRIGONOMETRIC = (
    smooth("sin", "cos(x0)", domain=_ALL, source="DLMF 4.20.1"),
    smooth("cos", "-sin(x0)", domain=_ALL, source="DLMF 4.20.2"),
    smooth("tan", "1 + y*y", domain=((-1.4, 1.4),), source="DLMF 4.20.3"),
    smooth(
        "asin", "1 / sqrt((1 - x0)*(1 + x0))", domain=((-0.95, 0.95),), edges="inf at -1 and 1", source="DLMF 4.24.7"
    ),
    smooth(
        "acos", "-1 / sqrt((1 - x0)*(1 + x0))", domain=((-0.95, 0.95),), edges="-inf at -1 and 1", source="DLMF 4.24.8"
    ),
    smooth("atan", "1 / (1 + x0*x0)", domain=_ALL, source="DLMF 4.24.9"),
    smooth(
        "atan2",
        "x1 / (x0*x0 + x1*x1)",
        "-x0 / (x0*x0 + x1*x1)",
        domain=((-3.0, 3.0), (0.2, 3.0)),
        edges="NaN at (0, 0), as in jax.numpy.arctan2",
    ),
)

_HYPERBOLIC = (
    smooth("sinh", "cosh(x0)", domain=_ALL, source="DLMF 4.34.1"),
    smooth("cosh", "sinh(x0)", domain=_ALL, source="DLMF 4.34.2"),
    smooth("tanh", "(1 - y)*(1 + y)", domain=_ALL, source="DLMF 4.34.3"),
    smooth("asinh", "1 / sqrt(x0*x0 + 1)", domain=_ALL, source="DLMF 4.38.9"),
    smooth("acosh", "1 / sqrt((x0 - 1)*(x0 + 1))", domain=((1.1, 5.0),), edges="inf at 1", source="DLMF 4.38.10"),
    smooth("atanh", "1 / ((1 - x0)*(1 + x0))", domain=((-0.9, 0.9),), edges="inf at -1 and 1", source="DLMF 4.38.11"),
)

_EXPONENTIAL = (
    smooth("exp", "y", domain=_ALL, source="DLMF 4.7.3"),
    smooth("exp2", "y*ln2", domain=_ALL),
    smooth("exp10", "y*ln10", domain=_ALL, source="C23 7.12.6.2"),
    smooth("expm1", "y + 1", domain=_ALL),
    smooth("log", "1 / x0", domain=_POSITIVE, edges="inf at 0", source="DLMF 4.7.1"),
    smooth("log2", "1 / (x0*ln2)", domain=_POSITIVE, edges="inf at 0"),
    smooth("log10", "1 / (x0*ln10)", domain=_POSITIVE, edges="inf at 0"),
    smooth("log1p", "1 / (1 + x0)", domain=((-0.9, 3.0),), edges="inf at -1"),
)

_POWERS = (
    smooth("sqrt", "0.5 * (1 / y)", domain=_POSITIVE, edges="inf at 0, as in jax.numpy.sqrt"),
    smooth("cbrt", "1 / (3*y*y)", domain=((0.1, 5.0),), edges="inf at 0, as in jax.numpy.cbrt"),
    smooth(
        "pow",
        "x1*pow(1 if x0 == 0 and x1 == 0 else x0, x1 - 1)",
        "y*log(1 if x0 == 0 else x0)",
        domain=((0.2, 3.0), (-2.0, 3.0)),
        edges="as in jax.numpy.power: the derivative by the exponent is 0 at base 0 and NaN at a negative base; "
        "that by the base is 0 where the exponent is 0 (jax.numpy has NaN at (0, 0))",
        source="DLMF 4.7.7",
    ),
    smooth(
        "powi",
        "0 if x1 == 0 else x1*powi(x0, x1 - 1)",
        None,
        domain=((0.3, 2.0), (-3, 5)),
        edges="0 where the exponent is 0",
        source="LLVM llvm.powi",
    ),
    smooth(
        "hypot",
        "0.5 if y == 0 else x0 / y",
        "0.5 if y == 0 else x1 / y",
        domain=((-3.0, 3.0), (0.2, 3.0)),
        edges="1/2 and 1/2 at (0, 0), as in jax.numpy.hypot of JAX 0.10 (NaN in later versions)",
    ),
    smooth("fma", "x1", "x0", "1", domain=_ALL * 3),
)

_ABSOLUTE = (
    smooth("fabs", "1 if x0 >= 0 else -1", domain=_ALL, edges="1 at 0 and -0, as in jax.numpy.abs"),
    smooth(
        "copysign",
        "copysign(1, x1) if x0 >= 0 else -copysign(1, x1)",
        "0",
        domain=_ALL * 2,
        edges="at a first argument 0 that of fabs, as in jax.numpy.copysign",
    ),
    smooth(
        "fmax",
        "0.5 if x0 == x1 else 1 if x0 > x1 or x1 != x1 else 0",
        "0.5 if x0 == x1 else 1 if x1 > x0 or x0 != x0 else 0",
        domain=_ALL * 2,
        edges=_MAX_EDGES,
    ),
    smooth(
        "fmin",
        "0.5 if x0 == x1 else 1 if x0 < x1 or x1 != x1 else 0",
        "0.5 if x0 == x1 else 1 if x1 < x0 or x0 != x0 else 0",
        domain=_ALL * 2,
        edges=_MAX_EDGES,
    ),
    smooth(
        "maximum",
        "0.5 if x0 == x1 else 1 if x0 > x1 else 0",
        "0.5 if x0 == x1 else 1 if x1 > x0 else 0",
        domain=_ALL * 2,
        edges="equal arguments share the derivative half and half, and it is 0 at NaN, as in jax.numpy.maximum",
        source="C23 fmaximum, LLVM llvm.maximum",
    ),
    smooth(
        "minimum",
        "0.5 if x0 == x1 else 1 if x0 < x1 else 0",
        "0.5 if x0 == x1 else 1 if x1 < x0 else 0",
        domain=_ALL * 2,
        edges="equal arguments share the derivative half and half, and it is 0 at NaN, as in jax.numpy.minimum",
        source="C23 fminimum, LLVM llvm.minimum",
    ),
    smooth(
        "fdim",
        "0.5 if x0 == x1 else 1 if x0 > x1 else 0",
        "-0.5 if x0 == x1 else -1 if x0 > x1 else 0",
        domain=_ALL * 2,
        edges="that of jax.numpy.maximum(x0 - x1, 0) at equal arguments",
    ),
)

_SPECIAL = (
    smooth("erf", "1.1283791670955126*exp(-x0*x0)", domain=_ALL, source="DLMF 7.2.1; the factor is 2/sqrt(pi)"),
    smooth("erfc", "-1.1283791670955126*exp(-x0*x0)", domain=_ALL, source="DLMF 7.2.2; the factor is 2/sqrt(pi)"),
    smooth("lgamma", "digamma(x0)", domain=((0.2, 8.0),), edges="NaN at 0, -1, -2 ...", source="DLMF 5.2.2"),
    smooth("tgamma", "y*digamma(x0)", domain=((0.2, 8.0),), edges="NaN at 0, -1, -2 ...", source="DLMF 5.2.2"),
    smooth("digamma", "polygamma(1, x0)", domain=((0.2, 8.0),), edges="NaN at 0, -1, -2 ...", source="DLMF 5.15.1"),
    smooth(
        "polygamma",
        None,
        "polygamma(x0 + 1, x1)",
        domain=((0, 5), (0.3, 8.0)),
        edges="NaN at 0, -1, -2 ...",
        source="DLMF 5.15.1",
    ),
    smooth("j0", "-j1(x0)", domain=((0.2, 8.0),), source="DLMF 10.6.3"),
    smooth("j1", "0.5*(j0(x0) - jn(2, x0))", domain=((0.2, 8.0),), source="DLMF 10.6.1"),
    smooth("jn", None, "0.5*(jn(x0 - 1, x1) - jn(x0 + 1, x1))", domain=((-2, 5), (0.2, 8.0)), source="DLMF 10.6.1"),
    smooth("y0", "-y1(x0)", domain=((0.2, 8.0),), source="DLMF 10.6.3"),
    smooth("y1", "0.5*(y0(x0) - yn(2, x0))", domain=((0.2, 8.0),), source="DLMF 10.6.1"),
    smooth("yn", None, "0.5*(yn(x0 - 1, x1) - yn(x0 + 1, x1))", domain=((-2, 5), (0.3, 8.0)), source="DLMF 10.6.1"),
)

_REMAINDERS = (
    smooth(
        "fmod",
        "1",
        "-rint((x0 - y) / x1)",
        domain=((-9.0, 9.0), (0.7, 2.0)),
        edges="at a jump that of the side whose value the function returns",
    ),
    smooth(
        "remainder",
        "1",
        "-rint((x0 - y) / x1)",
        domain=((-9.0, 9.0), (0.7, 2.0)),
        edges="at a jump that of the side whose value the function returns",
    ),
    smooth("ldexp", "ldexp(1, x1)", None, domain=((-3.0, 3.0), (-5, 5))),
    smooth(
        "nextafter",
        "1",
        "0",
        domain=_ALL * 2,
        edges="the neighbour lies at a distance that is piecewise constant",
    ),
    smooth(
        "nexttoward", "1", "0", domain=_ALL * 2, edges="the neighbour lies at a distance that is piecewise constant"
    ),
    smooth("frexp_fraction", "ldexp(1, -frexp_exponent(x0))", domain=((0.1, 30.0),), source="C99 7.12.6.4, the result"),
    smooth("modf_fraction", "1", domain=_ALL, edges="1 at the jumps too, as in jax.numpy.modf", source="C99 7.12.6.12"),
)

_ROUNDING = (
    *(zero(name, _STEPS) for name in "ceil floor nearbyint rint round roundeven trunc logb".split()),
    *(zero(name, _STEPS, result="i") for name in "ilogb llogb lrint llrint lround llround".split()),
    zero("frexp_exponent", _STEPS, result="i"),
    zero("remquo_quotient", _STEPS, parameters="ff", result="i"),
    zero("lgamma_sign", _STEPS, result="i"),
    *(zero(name, _NO_NUMBER, parameters="p") for name in ("nan", "atof")),
    *(zero(name, _NO_NUMBER, parameters="pp", source="C99 7.20.1.3") for name in ("strtod", "strtof")),
)

_CLASSIFICATION = (
    *(
        zero(name, _CLASS, result="i")
        for name in (
            "isnan isinf isfinite isnormal fpclassify signbit finite __isnan __isinf __finite __isfinite __isnormal "
            "__fpclassify __signbit __isinf_sign __issignaling"
        ).split()
    ),
    *(
        zero(name, _CLASS, parameters="ff", result="i")
        for name in "isgreater isgreaterequal isless islessequal islessgreater isunordered".split()
    ),
)

_POINTER_REMEDY = (
    "call it on `double` or `float`: then it becomes calls that write through no pointer (transform.lower_calls)"
)
_THROUGH_POINTERS = (
    *(
        refused(name, Outcome.NO_RULE, "it returns a result through a pointer", _POINTER_REMEDY, parameters, result)
        for name, parameters, result in (
            ("frexp", "fp", "f"),
            ("modf", "fp", "f"),
            ("remquo", "ffp", "f"),
            ("sincos", "fpp", "v"),
            ("lgamma_r", "fp", "f"),
        )
    ),
)

ROWS: tuple[Rule, ...] = (
    *_TRIGONOMETRIC,
    *_HYPERBOLIC,
    *_EXPONENTIAL,
    *_POWERS,
    *_ABSOLUTE,
    *_SPECIAL,
    *_REMAINDERS,
    *_ROUNDING,
    *_CLASSIFICATION,
    *_THROUGH_POINTERS,
)
