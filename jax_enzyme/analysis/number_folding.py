"""What an instruction makes of floating-point numbers, or of integers, for one sample in each place of an array, or for
one that is the same in all places.

    fdiv double 1.0, [0.0, 0.5]        [inf, 2.0]          fcmp uno double [nan, 1.0], 0.0        [1, 0]

Numbers of type double and float are arrays of that type; integers are as in `folding`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from jax_enzyme.analysis.folding import Numbers, folded
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import declared_name
from jax_enzyme.ir.values import ConstantFloat, Value, int_value
from jax_enzyme.rules.names import canonical

KINDS: Mapping[str, type[np.floating[Any]]] = {"double": np.float64, "float": np.float32}
_BITS: Mapping[type, type] = {np.float64: np.int64, np.float32: np.int32}
_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "frem": np.fmod, "fneg": np.negative,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "fabs": np.abs, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "roundeven": np.rint, "round": lambda x: np.trunc(x + np.copysign(0.5, x)), "copysign": np.copysign,
    "fmax": np.fmax, "fmin": np.fmin, "maximum": np.maximum, "minimum": np.minimum, "fmod": np.fmod, "pow": np.power,
    "atan2": np.arctan2, "hypot": np.hypot, "fma": lambda x, y, z: x * y + z, "logb": lambda x: _exponent(x),
}  # fmt: skip
_STEPS: Mapping[str, Callable[..., Any]] = {
    "frexp_exponent": lambda x: _exponent(2 * x), "ilogb": lambda x: _exponent(x),
}  # fmt: skip
_NO_EXPONENT: Mapping[str, int] = {"frexp_exponent": 0, "ilogb": -(2**31)}
"""Functions whose results are integers, and what they say of 0 and of what is not finite."""
_RELATIONS: Mapping[str, Callable[..., Any]] = {
    "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "ne": np.not_equal,
}  # fmt: skip
_CLASS = "llvm.is.fpclass."


def is_foldable(value: I.Instruction) -> bool:
    """Whether something is made of numbers and integers alone, by an operation that is known."""
    if not all(_is_scalar(v.type) for v in (value, *value.operands[: _counted(value)])):
        return False
    if isinstance(value, I.Call):
        name = declared_name(value)
        return (
            name.startswith(_CLASS)
            or _function(value) is not None
            or _step(value) is not None
            or (name.startswith("llvm.") and T.is_int(value.type))
        )
    return isinstance(value, I.BinaryOp | I.UnaryOp | I.Select | I.Cast | I.Compare | I.Freeze)


def makes_integer(value: I.Instruction) -> bool:
    """Whether something is an integer by the value of a number: rounded, or its exponent."""
    if isinstance(value, I.Cast):
        return value.opcode == "fptosi"
    return isinstance(value, I.Call) and _step(value) is not None


def sample(constant: Value) -> np.ndarray | None:
    """The one sample of a constant; None where it is none that is known."""
    if isinstance(constant, ConstantFloat) and str(constant.type) in KINDS:
        number = float_value(constant)
        if number is None:
            number = struct.unpack(">d", bytes.fromhex(constant.text[2:].rjust(16, "0")))[0]
        return np.full(1, number, KINDS[str(constant.type)])
    integer = int_value(constant)
    return None if integer is None else np.full(1, integer, np.int64)


def made_of(value: I.Instruction, operands: Sequence[np.ndarray]) -> np.ndarray | None:
    """The result for such operands (of a call, for its arguments); None where some sample has none, or it is not
    known."""
    if isinstance(value, I.Freeze):
        return operands[0]
    if isinstance(value, I.Select):
        return np.where(operands[0] != 0, operands[1], operands[2])
    if isinstance(value, I.Call) and declared_name(value).startswith(_CLASS):
        return _classified(operands[0], int(operands[1][0]))
    if not any(isinstance(v.type, T.FloatType) for v in (value, *value.operands)):
        return folded(value, [o.astype(np.int64) for o in operands])
    match value:
        case I.Compare():
            return _compared(value.predicate, *operands)
        case I.Cast():
            return _cast(value, operands[0])
        case I.BinaryOp() | I.UnaryOp():
            return _ARITHMETIC[value.opcode](*operands)
        case I.Call() if (step := _step(value)) is not None:
            found = _STEPS[step](*operands)
            return np.where(np.isfinite(found), found, _NO_EXPONENT[step]).astype(np.int64)
        case I.Call():
            function = _function(value)
            return None if function is None else _FUNCTIONS[function](*operands).astype(KINDS[str(value.type)])
        case _:
            return None


def _function(call: I.Call) -> str | None:
    return _row(declared_name(call), makes_number=True) if str(call.type) in KINDS else None


def _step(call: I.Call) -> str | None:
    return _row(declared_name(call), makes_number=False) if isinstance(call.type, T.IntType) else None


@cache
def _row(name: str, *, makes_number: bool) -> str | None:
    return canonical(name, _FUNCTIONS if makes_number else _STEPS)


def _counted(value: I.Instruction) -> int:
    """How many operands are no function that is called."""
    return len(value.arguments) if isinstance(value, I.CallBase) else len(value.operands)


def _is_scalar(kind: T.Type) -> bool:
    return str(kind) in KINDS or (isinstance(kind, T.IntType) and kind.bits <= 64)


def _compared(predicate: str, x: np.ndarray, y: np.ndarray) -> Numbers | None:
    unordered = np.isnan(x) | np.isnan(y)
    if predicate in ("uno", "ord"):
        return (unordered == (predicate == "uno")).astype(np.int64)
    if predicate[1:] not in _RELATIONS:
        return None
    holds = _RELATIONS[predicate[1:]](x, y)
    return (holds | unordered if predicate[0] == "u" else holds & ~unordered).astype(np.int64)


def _cast(cast: I.Cast, x: np.ndarray) -> np.ndarray | None:
    if T.is_float(cast.type):
        kind = KINDS[str(cast.type)]
        if cast.opcode == "bitcast":
            return x.astype(_BITS[kind]).view(kind)
        return x.astype(kind) if cast.opcode in ("fpext", "fptrunc", "sitofp") else None
    if cast.opcode == "bitcast":
        return x.view(_BITS[x.dtype.type]).astype(np.int64)
    limit = 2.0 ** (T.bits(cast.type) - 1)
    if cast.opcode != "fptosi":
        return None
    return np.where(np.abs(x) < limit, np.trunc(x), -limit).astype(np.int64)


def _exponent(x: np.ndarray) -> np.ndarray:
    """What `logb` says of numbers that are not subnormal."""
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1.0, np.abs(x))).astype(x.dtype)


def _classified(x: np.ndarray, asked: int) -> Numbers:
    """Whether numbers are of one of the classes that a mask of `llvm.is.fpclass` has."""
    below = np.signbit(x)
    size = np.abs(x)
    tiny = size < np.finfo(x.dtype).smallest_normal
    kinds = [np.isinf(x), ~np.isinf(x) & ~tiny, tiny & (x != 0), x == 0]
    masks = [np.where(below, 4 << n, 512 >> n) for n in range(4)]
    found = np.select([np.isnan(x), *kinds], [np.full(x.shape, 3), *masks])
    return ((found & asked) != 0).astype(np.int64)
