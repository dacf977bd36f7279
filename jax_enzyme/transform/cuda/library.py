"""Device math on a CPU: libdevice's functions and NVVM's intrinsics by those of C's library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.module import Module, declare
from jax_enzyme.ir.values import Value

_PLAIN = frozenset(
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 exp10 expm1 log log2 log10 log1p logb sqrt "
    "cbrt erf erfc tgamma lgamma j0 j1 y0 y1 fabs floor ceil trunc round rint nearbyint pow atan2 hypot fmod remainder "
    "fmin fmax fdim copysign nextafter fma ldexp scalbn ilogb frexp modf jn yn llrint llround sincos".split()
)
_MATH = ("nounwind", "willreturn", "memory(none)")
_WRITING = frozenset(("frexp", "modf", "sincos"))

_ROUNDED = re.compile(r"(?P<kind>[fd]?)(?P<name>fmaf|fma|add|sub|mul|div|rcp|sqrt|rsqrt)_r[nzud]$")
_WHOLE = re.compile(r"(?:float|double)2(?P<unsigned>u?)(?:int|ll)_(?P<direction>r[nzud])$")
_DIRECTIONS = MappingProxyType({"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"})
_NVVM_ROUNDED = re.compile(r"(?P<name>fma|add|mul|div|rcp|sqrt)\.(?:r[nzpm]|approx)(?:\.ftz)?(?:\.sat)?\.[fd]$")
_NVVM = re.compile(r"(?P<name>[a-z0-9]+)(?:\.approx)?(?:\.ftz)?(?:\.nan)?\.[fd]$")
_NVVM_NAMES = MappingProxyType(
    {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "fabs": "fabs", "fmax": "fmax",
     "fmin": "fmin", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "sqrt": "sqrt",
     "rsqrt": "rsqrt", "rcp": "rcp", "saturate": "saturate"}
)  # fmt: skip

Emitter = Callable[[Builder, list[Value]], Value]


def library_call(module: Module, at: Builder, call: I.Call, name: str) -> Value | None:
    """Builds what a call of a mathematical function of the device is on the CPU; None if it is none."""
    if name.startswith("llvm.nvvm."):
        return _intrinsic(module, at, call, name.removeprefix("llvm.nvvm."))
    if not name.startswith("__nv_"):
        return None
    plain = name.removeprefix("__nv_").removeprefix("fast_")
    rounded = _ROUNDED.match(plain)
    if rounded:
        return _named(
            module, at, call, rounded["name"].removesuffix("f") if rounded["name"] == "fmaf" else rounded["name"]
        )
    whole = _WHOLE.match(plain)
    if whole:
        value = call.arguments[0]
        kind = T.FunctionType(value.type, (value.type,))
        function = _DIRECTIONS[whole["direction"]] + ("f" if value.type == T.FLOAT else "")
        value = at.call(declare(module, function, kind, _MATH), [value], kind)
        return saturated(module, at, value, call.type, signed=not whole["unsigned"])
    if plain in _INTEGERS:
        return _INTEGERS[plain](at, call.arguments)
    stem = plain[:-1] if plain.endswith("f") and plain not in _PLAIN and plain not in _OWN else plain
    return _named(module, at, call, "fdiv" if stem == "fdivide" else stem)


def saturated(module: Module, at: Builder, value: Value, kind: T.Type, *, signed: bool) -> Value:
    """A real number as an integer, as devices convert: the nearest one that there is. One that is no number becomes
    zero, or of 64 bits on either side the highest bit alone."""
    assert isinstance(kind, T.IntType)
    double = value.type == T.DOUBLE
    name = f"llvm.fpto{'si' if signed else 'ui'}.sat.i{kind.bits}.{'f64' if double else 'f32'}"
    function = T.FunctionType(kind, (value.type,))
    made = at.call(declare(module, name, function, _MATH), [value], function)
    if not double and kind.bits < 64:
        return made
    return at.select(at.fcmp("uno", value, value), const_int(kind, -1 << kind.bits - 1), made)


def _intrinsic(module: Module, at: Builder, call: I.Call, name: str) -> Value | None:
    rounded = _NVVM_ROUNDED.match(name)
    if rounded:
        return _named(module, at, call, rounded["name"])
    match = _NVVM.match(name)
    if match and match["name"] in _NVVM_NAMES:
        return _named(module, at, call, _NVVM_NAMES[match["name"]])
    if name.startswith(("ldg.global.", "ldu.global.")):
        return at.load(call.type, call.arguments[0])
    return None


def _named(module: Module, at: Builder, call: I.Call, name: str) -> Value | None:
    arguments = call.arguments
    if name in _OWN:
        return _OWN[name](at, arguments)
    if name not in _PLAIN and name not in _WITH_LIBRARY:
        return None

    def library(function: str, *values: Value) -> Value:
        single = any(v.type == T.FLOAT for v in values)
        symbol = function + "f" if single else function
        result = call.type if function == name else values[-1].type
        kind = T.FunctionType(result, tuple(v.type for v in values))
        words = ("nounwind", "willreturn") if function in _WRITING else _MATH
        return at.call(declare(module, symbol, kind, words), list(values), kind)

    if name in _WITH_LIBRARY:
        return _WITH_LIBRARY[name](at, arguments, library)
    return library(name, *arguments)


def _number(like: Value, number: float) -> Value:
    return const_float(like.type, number)


def within_one(at: Builder, x: list[Value]) -> Value:
    """A number between zero and one, as devices saturate: zero for one that is no number."""
    low, high = _number(x[0], 0.0), _number(x[0], 1.0)
    below = at.select(at.fcmp("olt", x[0], high), x[0], high)
    return at.select(at.fcmp("ogt", x[0], low), below, low)


_OWN: Mapping[str, Emitter] = MappingProxyType(
    {
        "add": lambda at, x: at.binary("fadd", x[0], x[1]),
        "sub": lambda at, x: at.binary("fsub", x[0], x[1]),
        "mul": lambda at, x: at.binary("fmul", x[0], x[1]),
        "div": lambda at, x: at.binary("fdiv", x[0], x[1]),
        "fdiv": lambda at, x: at.binary("fdiv", x[0], x[1]),
        "rcp": lambda at, x: at.binary("fdiv", _number(x[0], 1.0), x[0]),
        "saturate": within_one,
        "isnand": lambda at, x: at.cast("zext", at.fcmp("uno", x[0], x[0]), T.I32),
        "isnan": lambda at, x: at.cast("zext", at.fcmp("uno", x[0], x[0]), T.I32),
    }
)

_Library = Callable[..., Value]
_WITH_LIBRARY: Mapping[str, Callable[[Builder, list[Value], _Library], Value]] = MappingProxyType(
    {
        "rsqrt": lambda at, x, f: at.binary("fdiv", _number(x[0], 1.0), f("sqrt", x[0])),
        "rcbrt": lambda at, x, f: at.binary("fdiv", _number(x[0], 1.0), f("cbrt", x[0])),
        "rhypot": lambda at, x, f: at.binary("fdiv", _number(x[0], 1.0), f("hypot", x[0], x[1])),
        "normcdf": lambda at, x, f: at.binary(
            "fmul", _number(x[0], 0.5), f("erfc", at.binary("fmul", _number(x[0], -0.7071067811865476), x[0]))
        ),
    }
)


def _least(predicate: str) -> Emitter:
    return lambda at, x: at.select(at.icmp(predicate, x[0], x[1]), x[0], x[1])


def _high(extension: str) -> Emitter:
    def emit(at: Builder, x: list[Value]) -> Value:
        wide = [at.cast(extension, v, T.I64) for v in x]
        product = at.binary("lshr", at.binary("mul", wide[0], wide[1]), const_int(T.I64, 32))
        return at.cast("trunc", product, T.I32)

    return emit


_INTEGERS: Mapping[str, Emitter] = MappingProxyType(
    {
        "min": _least("slt"), "max": _least("sgt"), "umin": _least("ult"), "umax": _least("ugt"),
        "llmin": _least("slt"), "llmax": _least("sgt"), "ullmin": _least("ult"), "ullmax": _least("ugt"),
        "mulhi": _high("sext"), "umulhi": _high("zext"),
        "abs": lambda at, x: at.select(
            at.icmp("slt", x[0], const_int(x[0].type, 0)), at.binary("sub", const_int(x[0].type, 0), x[0]), x[0]
        ),
        "float_as_int": lambda at, x: at.cast("bitcast", x[0], T.I32),
        "int_as_float": lambda at, x: at.cast("bitcast", x[0], T.FLOAT),
        "double_as_longlong": lambda at, x: at.cast("bitcast", x[0], T.I64),
        "longlong_as_double": lambda at, x: at.cast("bitcast", x[0], T.DOUBLE),
        "double2float_rn": lambda at, x: at.cast("fptrunc", x[0], T.FLOAT),
        "int2float_rn": lambda at, x: at.cast("sitofp", x[0], T.FLOAT),
        "int2double_rn": lambda at, x: at.cast("sitofp", x[0], T.DOUBLE),
    }
)  # fmt: skip
