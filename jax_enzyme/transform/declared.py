"""Holds what a signature says of a parameter against what the source has there.

    double f(int n, double **a)          "n: i32, a: f64[n,n] -> f64"    refused: pointers lie behind `a`, not numbers
    double f(const struct rec *p)        "p: f64[2] -> f64"              refused where a member of `rec` is an int
    void f(int n, const double *y)       "n: i32, out y: f64[n]"         refused: the source may not write there
    double f(int n, double x[][3])       "n: i32, x: f64[n,4] -> f64"    refused: the rows of `x` have three numbers

Types as LLVM has them do not tell any of these. What debug information leaves open is taken as it is declared:
`void *`, characters, incomplete structures, unions; a structure may always be declared as bytes. So is the sign of a
dimension, which is no negative number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Argument
from jax_enzyme.signature import Param
from jax_enzyme.signature.expressions import evaluate, names_in
from jax_enzyme.signature.model import Order
from jax_enzyme.signature.params import INTEGERS
from jax_enzyme.transform.source_types import Piece, SourceType

_BYTES = ("i8", "u8")
_POINTER_SIZED = ("i64", "u64", *_BYTES)
_C_NAMES = {
    "i1": "bool", "i8": "char", "i16": "short", "i32": "int", "i64": "long", "half": "_Float16", "bfloat": "__bf16",
    "float": "float", "double": "double", "ptr": "a pointer", "void": "nothing",
}  # fmt: skip


@dataclass(frozen=True)
class Mismatch:
    """The signature's side, as a sentence (``x` is f64 in the signature``), what the source has instead, and what to do
    about it."""

    declared: str
    found: str
    remedy: str | None = None


def shown(known: SourceType | None, kind: T.Type) -> str:
    """What the source has somewhere, as C would write it; `kind` is what LLVM has."""
    return f"`{known.text}`" if known else _C_NAMES.get(str(kind), f"`{kind}`")


def declared_as(param: Param, known: SourceType | None, kind: T.Type, dtype: str | None) -> str | None:
    """How a parameter of another type is declared, for which signatures have a word or None."""
    if param.by_value and isinstance(kind, T.PointerType):
        own = next((d for piece in known.pieces for d in piece.dtypes), param.dtype) if known else param.dtype
        return f"a pointer to one value is `{param.name}: {own}[]`"
    if not param.by_value:
        return f"a scalar passed by value has no brackets: `{param.name}: {param.dtype}`"
    return f"declare it as `{param.name}: {dtype}`" if dtype else None


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
            f"`{known.text}`{'' if 'const' in known.text else ' of intent(in)'}, where it cannot write",
            f"declare it as an input: `{param.name}: {param.type_text}`",
        )
    return None


def other_strides(param: Param, known: SourceType, order: Order, sizes: Mapping[str, int]) -> Mismatch | None:
    """How the rows of an array differ from those in the source, as far as `sizes` say how long they are. An array of
    another number of dimensions, or of other elements, is memory that the kernel counts in its own way."""
    own = known.pieces[0].dtypes[:1] if len(known.pieces) == 1 else ()
    if param.rank != len(known.extents) or own != (param.dtype,):
        return None
    steps = _steps(param, order, sizes)
    if all(there in (None, size) or size is None for size, there in zip(steps, known.extents, strict=False)):
        return None
    names = sorted(frozenset[str]().union(*map(names_in, param.dims or ())) & sizes.keys())
    fastest_first = [str(extent or "n") for extent in known.extents]
    shape = ",".join(fastest_first if order == "F" else reversed(fastest_first))
    other: Order = "C" if order == "F" else "F"
    turned = f'give `order="{other}"`, or ' if _steps(param, other, sizes) == [*known.extents[:-1]] else ""
    return Mismatch(
        _declared(param) + (f" ({', '.join(f'{name} = {sizes[name]}' for name in names)})" if names else ""),
        f"an array whose rows have another length: `{known.text}`",
        f"{turned}declare it as `{param.name}: {param.dtype}[{shape}]`",
    )


def _steps(param: Param, order: Order, sizes: Mapping[str, int]) -> list[int | None]:
    """The extents of the dimensions that addresses depend on, fastest first: not the outermost one."""
    dims = (param.dims or ()) if order == "F" else (param.dims or ())[::-1]
    return [evaluate(dim, sizes) if names_in(dim) <= sizes.keys() else None for dim in dims[:-1]]


def unlike_memory(declared: str, known: SourceType, special: str) -> Mismatch:
    """What to say where no plain memory can be passed: of a descriptor, or an object of a library."""
    wrapper = "write a wrapper in the same language that takes arrays and numbers and makes one of these of them"
    return Mismatch(f"`{declared}` is plain memory", f"{special}: `{known.text}`", wrapper)


def by_value(param: Param, known: SourceType) -> Mismatch:
    """What to say where a structure is passed by value, and the signature has a number."""
    return Mismatch(
        _declared(param),
        f"a structure that is passed by value: `{known.text}`",
        _by_members(param),
    )


def _by_members(param: Param, star: str = "") -> str:
    return f"list its members, as in `{param.name}: {{a: f64, b: f64[n]*}}{star}`; je.suggest_signature writes them"


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
        remedy = _by_members(param, "*")
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
