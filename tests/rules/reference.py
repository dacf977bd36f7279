"""What the functions of the rules are, in mpmath: any precision, and no code in common with the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mp, mpf


def _copysign(x: Any, y: Any) -> Any:
    return -abs(x) if y < 0 else abs(x)


def _rint(x: Any) -> Any:
    """To nearest, ties to even, as mpmath's own `nint` does."""
    return mpmath.nint(x)


def _exponent(x: Any) -> int:
    return 0 if x == 0 else int(mpmath.frexp(x)[1])


def _fraction(x: Any) -> Any:
    return mpmath.frexp(x)[0]


def _digit(x: Any) -> Any:
    return mpmath.sign(x) * mpf(2) ** (_exponent(x) - 53)


def _trunc(x: Any) -> Any:
    return mpmath.floor(x) if x >= 0 else mpmath.ceil(x)


def _select_max(x: Any, y: Any) -> Any:
    return x if x >= y else y


def _select_min(x: Any, y: Any) -> Any:
    return x if x <= y else y


def _norm(*x: Any) -> Any:
    return mpmath.sqrt(sum(a * a for a in x))


REAL: dict[str, Callable[..., Any]] = {
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin, "acos": mpmath.acos,
    "atan": mpmath.atan, "atan2": mpmath.atan2, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh, "exp": mpmath.exp,
    "exp2": lambda x: mpf(2) ** x, "exp10": lambda x: mpf(10) ** x, "expm1": mpmath.expm1,
    "log": mpmath.log, "log2": lambda x: mpmath.log(x) / mp.ln2, "log10": mpmath.log10, "log1p": mpmath.log1p,
    "sqrt": mpmath.sqrt, "cbrt": mpmath.cbrt, "pow": mpmath.power, "powi": lambda x, n: x**n,
    "hypot": mpmath.hypot, "fma": lambda x, y, z: x * y + z, "fabs": abs, "copysign": _copysign,
    "fmax": _select_max, "fmin": _select_min, "maximum": _select_max, "minimum": _select_min,
    "fdim": lambda x, y: x - y if x > y else mpf(0), "erf": mpmath.erf, "erfc": mpmath.erfc,
    "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "tgamma": mpmath.gamma,
    "digamma": mpmath.digamma, "polygamma": mpmath.psi,
    "j0": lambda x: mpmath.besselj(0, x), "j1": lambda x: mpmath.besselj(1, x), "jn": mpmath.besselj,
    "y0": lambda x: mpmath.bessely(0, x), "y1": lambda x: mpmath.bessely(1, x), "yn": mpmath.bessely,
    "fmod": lambda x, y: x - y * _trunc(x / y), "remainder": lambda x, y: x - y * _rint(x / y),
    "ldexp": lambda x, n: x * mpf(2) ** n, "nextafter": lambda x, y: x, "nexttoward": lambda x, y: x,
    "frexp_fraction": _fraction, "frexp_exponent": _exponent, "modf_fraction": lambda x: x - _trunc(x),
    "rint": _rint, "identity": lambda x: x, "rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "saturate": lambda x: min(max(x, mpf(0)), mpf(1)),
    "sinpi": mpmath.sinpi, "cospi": mpmath.cospi, "rcbrt": lambda x: 1 / mpmath.cbrt(x),
    "rhypot": lambda x, y: 1 / mpmath.hypot(x, y), "norm3d": _norm, "norm4d": _norm, "normcdf": mpmath.ncdf,
    "normcdfinv": lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), "erfinv": mpmath.erfinv,
    "erfcinv": lambda x: mpmath.erfinv(1 - x), "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "nearest": lambda x, up: x, "rrspacing": lambda x: abs(_fraction(x)) * 2**53,
    "set_exponent": lambda x, n: _fraction(x) * mpf(2) ** n,
    "rescaled_bits": lambda x, n: x * mpf(2) ** n, "rounded_bits": lambda x, n: x, "of_its_kind": lambda x, n: x,
    "digit_size": _digit, "line_of_bits": lambda x, n, slope: x / _digit(x),
    "bits_of_line": lambda x, n, slope: 1 + x / 2**52,
    "x86_max": _select_max, "x86_min": _select_min,
    "fneg": lambda x: -x, "fadd": lambda x, y: x + y, "fsub": lambda x, y: x - y, "fmul": lambda x, y: x * y,
    "fdiv": lambda x, y: x / y, "frem": lambda x, y: x - y * _trunc(x / y), "fpext": lambda x: x,
    "fptrunc": lambda x: x,
}  # fmt: skip

COMPLEX: dict[str, Callable[..., Any]] = {
    "cexp": mpmath.exp, "clog": mpmath.log, "csqrt": mpmath.sqrt, "cpow": mpmath.power, "csin": mpmath.sin,
    "ccos": mpmath.cos, "ctan": mpmath.tan, "csinh": mpmath.sinh, "ccosh": mpmath.cosh, "ctanh": mpmath.tanh,
    "casin": mpmath.asin, "cacos": mpmath.acos, "catan": mpmath.atan, "casinh": mpmath.asinh, "cacosh": mpmath.acosh,
    "catanh": mpmath.atanh, "cdivide": lambda x, y: x / y,
}  # fmt: skip


def _part(function: Callable[..., Any], index: int) -> Callable[..., Any]:
    def part(*flat: Any) -> Any:
        value = function(*(mpmath.mpc(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)))
        return mpmath.im(value) if index else mpmath.re(value)

    return part


def _power(index: int) -> Callable[..., Any]:
    def part(a: Any, b: Any, n: int) -> Any:
        value = mpmath.mpc(a, b) ** n
        return mpmath.im(value) if index else mpmath.re(value)

    return part


LIBRARY: dict[str, Callable[..., Any]] = {
    **REAL,
    "cpowi_re": _power(0),
    "cpowi_im": _power(1),
    **{f"{name}_{word}": _part(f, i) for name, f in COMPLEX.items() for i, word in enumerate(("re", "im"))},
}
