"""Rules of functions that exist outside C's `math.h`: LLVM intrinsics, libdevice, flang's run-time library.

Rows are found under LLVM's or libdevice's names through `rules.names`. What calls do besides computing a floating-point
number is in `rules.effects`.
"""

from __future__ import annotations

from jax_enzyme.rules.rule import Outcome, Rule, refused, smooth, zero

_ALL = ((-3.0, 3.0),)
_LIBDEVICE = "CUDA libdevice"
_STEP = "the exponent of the argument is piecewise constant"

ROWS: tuple[Rule, ...] = (
    smooth("identity", "1", domain=_ALL, source="LLVM llvm.canonicalize, llvm.arithmetic.fence"),
    zero("is_fpclass", "a property of the number's class", parameters="fi", result="i", source="LLVM llvm.is.fpclass"),
    refused(
        "constrained",
        Outcome.NO_RULE,
        "the arithmetic depends on a rounding mode or on exceptions that the program may observe",
        "compile without -frounding-math and -ffp-model=strict",
        source="LLVM llvm.experimental.constrained.*",
    ),
    smooth("rcp", "-y*y", domain=((0.2, 4.0),), source=_LIBDEVICE),
    smooth("rsqrt", "-0.5*y / x0", domain=((0.2, 4.0),), edges="-inf at 0", source=_LIBDEVICE),
    smooth(
        "saturate",
        "1 if x0 > 0 and x0 < 1 else 0",
        domain=((0.1, 0.9),),
        edges="0 at 0 and 1",
        source="CUDA __saturatef",
    ),
    smooth("nearest", "1", None, domain=((0.2, 3.0), (0, 1)), source="Fortran NEAREST", edges=_STEP),
    smooth("rrspacing", "0 if x0 == 0 else y / x0", domain=((0.2, 3.0),), source="Fortran RRSPACING", edges=_STEP),
    smooth(
        "set_exponent",
        "0 if x0 == 0 else y / x0",
        None,
        domain=((0.2, 3.0), (-3, 3)),
        source="Fortran SET_EXPONENT",
        edges=_STEP,
    ),
    smooth(
        "rescaled_bits",
        "0 if x0 == 0 else y / x0",
        None,
        domain=((0.2, 3.0), (-3, 3)),
        source="numbers made of integers with the digits of x0",
        edges=_STEP,
    ),
    smooth(
        "of_its_kind",
        "1 if x1 != 0 else nan",
        None,
        domain=((0.2, 3.0), (1, 1)),
        source="numbers that are read where another kind of number may lie",
        edges="NaN where another kind was stored last",
    ),
    smooth(
        "rounded_bits",
        "1",
        None,
        domain=((0.2, 3.0), (0, 1)),
        source="numbers made of integers with the first bits of x0",
        edges="as a conversion to a shorter format",
    ),
    smooth(
        "line_of_bits",
        "0 if digit_size(x0) == 0 else x2 / digit_size(x0)",
        None,
        "0",
        domain=((-3.0, 3.0), (0, 1), (1.0, 1.0)),
        source="numbers that grow as the bits of x0, taken for an integer",
        edges=_STEP,
    ),
    smooth(
        "bits_of_line",
        "x2*digit_size(y)",
        None,
        "0",
        domain=((-3.0, 3.0), (0, 1), (1.0, 1.0)),
        source="numbers whose bits, taken for an integer, grow as x0",
        edges=_STEP,
    ),
    zero(
        "digit_size",
        "piecewise constant",
        source="the last digit, with the sign; 0 below the least normal number",
    ),
    zero("spacing", "piecewise constant", source="Fortran SPACING"),
    smooth("sinpi", "pi*cos(pi*x0)", domain=_ALL, source="C23 7.12.4.13"),
    smooth("cospi", "-pi*sin(pi*x0)", domain=_ALL, source="C23 7.12.4.12"),
    smooth("rcbrt", "-y / (3*x0)", domain=((0.2, 4.0),), edges="-inf at 0", source=_LIBDEVICE),
    smooth("rhypot", "-x0*y*y*y", "-x1*y*y*y", domain=_ALL * 2, edges="NaN at (0, 0)", source=_LIBDEVICE),
    smooth("norm3d", "x0 / y", "x1 / y", "x2 / y", domain=_ALL * 3, edges="NaN at 0", source=_LIBDEVICE),
    smooth("norm4d", "x0 / y", "x1 / y", "x2 / y", "x3 / y", domain=_ALL * 4, edges="NaN at 0", source=_LIBDEVICE),
    smooth(
        "normcdf", "0.3989422804014327*exp(-0.5*x0*x0)", domain=_ALL, source="DLMF 7.18; the factor is 1/sqrt(2*pi)"
    ),
    smooth("normcdfinv", "2.5066282746310002*exp(0.5*y*y)", domain=((0.1, 0.9),), source="inverse of normcdf"),
    smooth("erfinv", "0.886226925452758*exp(y*y)", domain=((-0.9, 0.9),), source="inverse of erf, DLMF 7.17"),
    smooth("erfcinv", "-0.886226925452758*exp(y*y)", domain=((0.1, 1.9),), source="inverse of erfc, DLMF 7.17"),
    smooth("erfcx", "2*x0*y - 1.1283791670955126", domain=_ALL, source="exp(x*x)*erfc(x), DLMF 7.2"),
    smooth(
        "x86_max",
        "1 if x0 > x1 else 0",
        "0 if x0 > x1 else 1",
        domain=_ALL * 2,
        edges="the second argument where the two are equal or one is NaN, as the instruction chooses",
        source="x86 MAXPD",
    ),
    smooth(
        "x86_min",
        "1 if x0 < x1 else 0",
        "0 if x0 < x1 else 1",
        domain=_ALL * 2,
        edges="the second argument where the two are equal or one is NaN, as the instruction chooses",
        source="x86 MINPD",
    ),
)
