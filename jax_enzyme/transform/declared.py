"""Holds what a signature says of a parameter against what the source has there.

    double f(int n, double **a)          "n: i32, a: f64[n,n] -> f64"    refused: pointers lie behind `a`, not numbers
    double f(const struct rec *p)        "p: f64[2] -> f64"              refused where a member of `rec` is an int
    void f(int n, const double *y)       "n: i32, out y: f64[n]"         refused: the source may not write there

Types as LLVM has them do not tell any of these. What debug information leaves open is taken as it is declared:
`void *`, characters, incomplete structures, unions; a structure may always be declared as bytes. So is the sign of a
dimension, which is no negative number.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax_enzyme.ir.values import Argument
from jax_enzyme.signature import Param
from jax_enzyme.signature.params import INTEGERS
from jax_enzyme.transform.source_types import Piece, SourceType

_BYTES = ("i8", "u8")
_POINTER_SIZED = ("i64", "u64", *_BYTES)


@dataclass(frozen=True)
class Mismatch:
    """The signature's side, as a sentence (``x` is f64 in the signature``), what the source has instead, and what to do
    about it."""

    declared: str
    found: str
    remedy: str | None = None


def mismatch(param: Param, known: SourceType, *, is_dimension: bool) -> Mismatch | None:
    """How a parameter differs from what the source has, or None."""
    if known.special is not None and not param.by_value:
        return unlike_memory(str(param), known, known.special)
    wrong = next((p for p in known.pieces if not _fits(param, known, p, is_dimension)), None)
    if wrong is not None:
        return _told(param, known, wrong)
    if param.direction == "out" and known.is_const:
        return Mismatch(
            f"`{param.name}` is `out` in the signature",
            f"`{known.text}`, where it cannot write",
            f"declare it as an input: `{param.name}: {param.type_text}`",
        )
    return None


def unlike_memory(declared: str, known: SourceType, special: str) -> Mismatch:
    """What to say where no plain memory can be passed: of a descriptor, or an object of a library."""
    wrapper = "write a wrapper in the same language that takes arrays and numbers and makes one of these of them"
    return Mismatch(f"`{declared}` is plain memory", f"{special}: `{known.text}`", wrapper)


def by_value(param: Param, known: SourceType) -> Mismatch:
    """What to say where a structure is passed by value, and the signature has a number."""
    return Mismatch(
        _declared(param),
        f"a structure that is passed by value: `{known.text}`",
        f"list its members: `{param.name}: {{a: f64, b: f64[n]*}}`",
    )


def is_structure_by_value(known: SourceType) -> bool:
    """Whether a parameter is a structure itself, and not a pointer to one."""
    return known.is_record and not known.is_pointer


def is_a_pointer(known: SourceType, argument: Argument) -> bool:
    """Whether a structure by value is nothing but a pointer, and passed as one."""
    alone = is_structure_by_value(known) and [p.kind for p in known.pieces] == ["pointer"]
    return alone and not any(word.startswith("byval") for word in argument.attributes)


def result_mismatch(dtype: str, known: SourceType) -> str | None:
    """The dtype that the value is which a function returns, where that is not the declared one."""
    result = Param("return", dtype)
    wrong = None if known.is_pointer else next((p for p in known.pieces if not _fits(result, known, p, False)), None)
    return wrong.dtypes[0] if wrong is not None and wrong.dtypes else None


def _declared(param: Param) -> str:
    return f"`{param.name}` is {param.type_text} in the signature"


def _fits(param: Param, known: SourceType, piece: Piece, is_dimension: bool) -> bool:
    dtype = param.dtype
    if piece.kind == "unknown" or dtype in piece.dtypes:
        return True
    if param.by_value and not known.is_record:  # LLVM's types tell all of it but the sign
        return known.is_pointer or is_dimension or not _is_other_sign(dtype, piece)
    if known.is_record and (dtype in _BYTES or param.direction == "scratch"):
        return True
    if piece.kind == "pointer":  # of a place to work in, only the kernel knows what it puts there
        return param.direction == "scratch" and dtype in _POINTER_SIZED
    if piece.kind == "bytes":
        return not known.is_record or dtype == "bool" or all(p.kind == "bytes" for p in known.pieces)
    if piece.kind == "number" and not piece.dtypes:
        return dtype in _BYTES or param.direction == "scratch"
    return is_dimension and _is_other_sign(dtype, piece)


def _is_other_sign(dtype: str, piece: Piece) -> bool:
    others = {f"{'i' if d[0] == 'u' else 'u'}{d[1:]}" for d in piece.dtypes if d in INTEGERS}
    return dtype in others - set(piece.dtypes)


def _told(param: Param, known: SourceType, wrong: Piece) -> Mismatch:
    if is_structure_by_value(known):
        return by_value(param, known)
    if known.is_record:
        member = f"member `{wrong.member}`" if wrong.member else "contents"
        remedy = f"list its members: `{param.name}: {{a: f64, b: f64[n]*}}*`"
        found = f"`{known.text}`, a structure whose {member} is `{wrong.text}`"
    elif wrong.kind == "pointer":
        found = f"`{known.text}`, which leads to pointers and not to numbers"
        remedy = f"an array of pointers to rows is `{param.name}: {param.dtype}[n][m]`"
    elif wrong.kind == "function":
        found, remedy = f"a function: `{known.text}`", f"a function of the source is `{param.name}: fn(name)`"
    elif not wrong.dtypes:
        found, remedy = f"`{known.text}`, which no dtype is", "write a wrapper that converts the numbers"
    else:
        rest = param.type_text.removeprefix(param.dtype)
        found, remedy = f"`{known.text}`", f"declare it as `{param.name}: {wrong.dtypes[0]}{rest}`"
    return Mismatch(_declared(param), found, remedy)
