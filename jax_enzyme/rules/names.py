"""The one place that knows under how many names a function goes.

`canonical` maps the name of a called function to the name of its row: `sinf`, `sinl`, `__sinf_finite`,
`llvm.sin.v4f32`, `__nv_fast_sinf` and `__builtin_sin` are all `sin`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

_HELPER = re.compile(r"je\.(\w+)\.f(?:32|64)$")
_OVERLOAD = re.compile(r"(?:nx)?(?:v\d+)?(?:f\d+|bf16|i\d+|ppcf128|p\d+)$")
_REENTRANT = re.compile(r"(.+?)[fl]_r$")
_FINITE = re.compile(r"__(.+)_finite$")
_ROUNDED = re.compile(r"(?P<kind>[fd]?)(?P<name>fma|fmaf|add|sub|mul|div|rcp|sqrt|rsqrt)_(?:rn|rz|ru|rd)$")

LLVM_NAMES: Mapping[str, str] = {
    "maxnum": "fmax",
    "minnum": "fmin",
    "maximumnum": "fmax",
    "minimumnum": "fmin",
    "fmuladd": "fma",
    "is.fpclass": "is_fpclass",
    "fptosi.sat": "%fptosi",
    "fptoui.sat": "%fptoui",
    "fptrunc.round": "%fptrunc",
    "arithmetic.fence": "identity",
    "canonicalize": "identity",
    "ssa.copy": "identity",
}
"""Intrinsics (without `llvm.` and type suffixes) whose row has another name."""

_FORTRAN: Mapping[str, str] = {
    "ErfcScaled": "erfcx",
    "Fraction": "frexp_fraction",
    "Nearest": "nearest",
    "RRSpacing": "rrspacing",
    "Scale": "ldexp",
    "SetExponent": "set_exponent",
    "Spacing": "spacing",
}
"""Functions of flang's run-time library, without `_FortranA` and the kind."""

ALIASES: Mapping[str, str] = {
    "drem": "remainder",
    "dremf": "remainder",
    "pow10": "exp10",
    "pow10f": "exp10",
    "scalbn": "ldexp",
    "scalbnf": "ldexp",
    "scalbnl": "ldexp",
    "scalbln": "ldexp",
    "scalblnf": "ldexp",
    "scalblnl": "ldexp",
    "fmaximum": "maximum",
    "fmaximumf": "maximum",
    "fminimum": "minimum",
    "fminimumf": "minimum",
    "fmaximum_num": "fmax",
    "fmaximum_numf": "fmax",
    "fminimum_num": "fmin",
    "fminimum_numf": "fmin",
    "__muldc3": "cmultiply",
    "__mulsc3": "cmultiply",
    "__mulxc3": "cmultiply",
    "__multc3": "cmultiply",
    "__divdc3": "cdivide",
    "__divsc3": "cdivide",
    "__divxc3": "cdivide",
    "__divtc3": "cdivide",
    "_FortranAcpowi": "cpowi",
    "_FortranAcpowk": "cpowi",
    "_FortranAzpowi": "cpowi",
    "_FortranAzpowk": "cpowi",
    "_FortranAModReal4": "fortran_mod",
    "_FortranAModReal8": "fortran_mod",
    "_FortranAModuloReal4": "fortran_modulo",
    "_FortranAModuloReal8": "fortran_modulo",
    "__powidf2": "powi",
    "__powisf2": "powi",
    "_FortranAFPow4i": "powi",
    "_FortranAFPow4k": "powi",
    "_FortranAFPow8i": "powi",
    "_FortranAFPow8k": "powi",
    **{f"_FortranA{name}{kind}": row for kind in ("4", "8") for name, row in _FORTRAN.items()},
    **{f"_FortranAExponent{kind}_{result}": "frexp_exponent" for kind in ("4", "8") for result in ("4", "8")},
    "__fpclassifyd": "__fpclassify",
    "__isnand": "__isnan",
    "__isinfd": "__isinf",
    "__isfinited": "__isfinite",
    "__finitef": "__finite",
    "__signbitd": "__signbit",
}

_LIBDEVICE: Mapping[str, str] = {
    "powi": "powi",
    "powif": "powi",
    "fdividef": "%fdiv",
    "isnand": "isnan",
    "isinfd": "isinf",
    "isfinited": "isfinite",
    "finitef": "isfinite",
    "signbitd": "signbit",
    "double2float_rn": "%fptrunc",
    "double2float_rz": "%fptrunc",
    "double2float_ru": "%fptrunc",
    "double2float_rd": "%fptrunc",
}
"""libdevice names (without `__nv_`) that the general pattern does not cover."""

NOT_IN_C = frozenset(
    "maximum minimum powi identity constrained is_fpclass digamma polygamma frexp_fraction frexp_exponent "
    "modf_fraction remquo_quotient lgamma_sign rcp rsqrt saturate rcbrt rhypot norm3d norm4d normcdf normcdfinv erfinv "
    "erfcinv erfcx x86_max x86_min nearest rrspacing set_exponent spacing rescaled_bits "
    "rounded_bits line_of_bits bits_of_line digit_size of_its_kind".split()
)
"""Rows whose names mean nothing in C: a user's own function of that name is another function."""

_X86 = re.compile(r"x86\.(?:sse|sse2|avx)\.(?P<name>max|min|rcp|rsqrt)\.p[sd](?:\.256)?$")
_X86_INTEGERS = re.compile(r"x86\.(?:sse|sse2|avx)\.cvtt?\.?[ps][sd]2(?:si|si64|dq)(?:\.256)?$")
_NVVM = re.compile(
    r"nvvm\.(?P<name>fma|add|mul|div|rcp|sqrt|rsqrt|sin|cos|ex2|lg2|fabs|fmax|fmin|ceil|floor|round|trunc|saturate|tanh)"
    r"\.(?:(?:rn|rz|rm|rp|approx)\.)?(?:ftz\.)?(?:f|d|f32|f64)$"
)
_NVVM_NAMES: Mapping[str, str] = {
    "add": "%fadd", "mul": "%fmul", "div": "%fdiv", "ex2": "exp2", "lg2": "log2", "round": "rint",
}  # fmt: skip


def canonical(name: str, known: Container[str]) -> str | None:
    """The name of the row for a called function, among the `known` names of rows; None if there is none."""
    if name in ALIASES:
        return ALIASES[name] if ALIASES[name] in known else None
    if match := _HELPER.match(name):
        return match[1] if match[1] in known else None
    if name.startswith("llvm."):
        found = _intrinsic(name.removeprefix("llvm."), known)
    elif name.startswith("__nv_"):
        found = _libdevice(name.removeprefix("__nv_"), known)
    else:
        found = _library(name, known)
    return found if found is not None and found in known else None


def _intrinsic(name: str, known: Container[str]) -> str | None:
    if name.startswith("experimental.constrained."):
        return "constrained"
    if match := _NVVM.match(name):
        return _NVVM_NAMES.get(match["name"], match["name"])
    if match := _X86.match(name):
        return f"x86_{match['name']}" if match["name"].startswith("m") else match["name"]
    if _X86_INTEGERS.match(name):
        return "lrint"
    parts = name.split(".")
    while len(parts) > 1 and _OVERLOAD.match(parts[-1]):
        parts.pop()
    base = ".".join(parts)
    return LLVM_NAMES.get(base, base)


def _libdevice(name: str, known: Container[str]) -> str | None:
    if name in _LIBDEVICE:
        return _LIBDEVICE[name]
    if match := _ROUNDED.match(name):
        base = match["name"].removesuffix("f") if match["name"] == "fmaf" else match["name"]
        return f"%f{base}" if base in ("add", "sub", "mul", "div") else base
    return _suffixed(name.removeprefix("fast_"), known)


def _library(name: str, known: Container[str]) -> str | None:
    if match := _FINITE.match(name):
        name = match[1]
    if match := _REENTRANT.match(name):
        return f"{match[1]}_r"
    found = _suffixed(name.removeprefix("__builtin_"), known)
    return None if found in NOT_IN_C or name.startswith("%") or name.endswith(("_re", "_im")) else found


def _suffixed(name: str, known: Container[str]) -> str | None:
    """`name`, or `name` without the suffix of its `float` or `long double` variant."""
    if name in known:
        return name
    return name[:-1] if name[-1:] in ("f", "l") else None
