"""Holds what a signature says of a parameter against what the source has there.

    double f(int n, double **a)          "n: i32, a: f64[n,n] -> f64"    refused: pointers lie behind `a`, not numbers
    double f(const struct rec *p)        "p: f64[2] -> f64"              refused where a member of `rec` is an int
    void f(int n, const double *y)       "n: i32, out y: f64[n]"         refused: the source may not write there
    double f(int n, double x[][3])       "n: i32, x: f64[n,4] -> f64"    refused: the rows of `x` have three numbers
    double f(int n, double complex *z)   "n: i32, z: f64[n] -> f64"      refused: these are half as many as it has

Types as LLVM has them do not tell any of these. What debug information leaves open is taken as it is declared:
`void *`, characters, incomplete structures, unions; a structure may always be declared as bytes. A dimension without a
sign may be declared with one, as it is no negative number; not the other way round, as it may be one that is too large.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import gcd, prod
from types import MappingProxyType

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.values import Argument
from jax_enzyme.signature import Param
from jax_enzyme.signature.expressions import Expression, Literal, Negation, Operation, evaluate, names_in
from jax_enzyme.signature.formals import Formal, FunctionOf, Null, Record, Status, Text, leaves
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
    if known is not None and known.special is not None:
        return None
    pieces = known.pieces if known is not None else ()
    own = next((d for piece in pieces for d in piece.dtypes), None)
    if param.by_value and isinstance(kind, T.PointerType):
        if any(piece.kind == "function" for piece in pieces):
            return f"a function of the source is `{param.name}: fn(name)`"
        return f"a pointer to one value is `{param.name}: {own or param.dtype}[]`"
    if not param.by_value:
        return f"a scalar passed by value has no brackets: `{param.name}: {own or param.dtype}`"
    return f"declare it as `{param.name}: {own or dtype}`" if own or dtype else None


def mismatch(
    param: Param,
    known: SourceType,
    *,
    is_dimension: bool = False,
    order: Order = "C",
    sizes: Mapping[str, int] = MappingProxyType({}),
    passed: Container[str] = (),
) -> Mismatch | None:
    """How a parameter differs from what the source has, or None. Of `sizes` are those that are known; `passed` are the
    names of what is passed to the source, sizes among them."""
    if known.special is not None and not param.by_value:
        return unlike_memory(str(param), known, known.special)
    wrong = next((p for p in known.pieces if not _fits(param, known, p, is_dimension)), None)
    if wrong is not None:
        return _told(param, known, wrong)
    if param.direction in ("out", "inout") and known.is_const:
        how = "" if "const" in known.text else ", a pointer to const" if "*" in known.text else " of intent(in)"
        return Mismatch(
            f"`{param.name}` is `{param.direction}` in the signature",
            f"`{known.text}`{how}, where it cannot write",
            f"declare it as an input: `{param.name}: {param.type_text}`",
        )
    return _other_elements(param, known, order, sizes, passed)


def _other_elements(
    param: Param, known: SourceType, order: Order, sizes: Mapping[str, int], passed: Container[str]
) -> Mismatch | None:
    """How an array is not made of the rows and elements that the source's is made of. Where it has as many dimensions
    (the parts of a complex number or a structure are one more), these are compared as far as `sizes` say how long they
    are; the kernel counts in its own way in others, which have to be whole elements whatever their size is."""
    is_number = len(known.pieces) == 1 and param.dtype in known.pieces[0].dtypes
    if param.dims is None or param.direction == "scratch" or not is_number:
        return None
    parts = (known.element_bytes or 0) // ITEM_BYTES[param.dtype]
    inner = [*([parts] if parts > 1 else []), *known.extents[:-1]]
    if parts == 0 and inner and (first := inner[0]) and first % 2 == 0:  # pairs that are complex numbers
        inner[:1] = [first // 2] if first > 2 else []
    dims = param.dims if order == "F" else param.dims[::-1]
    if known.is_reference and (found := _too_small(param, known, sizes)):
        return found
    given = [_size(dim, sizes) for dim in dims]
    if not inner or _is_of(
        dims, given, inner, known.extents[-1] if known.extents else None, any_number=known.is_reference
    ):
        return None
    if parts <= 1 and _has_own_size(dims, given, inner, passed):
        return None
    names = sorted(frozenset[str]().union(*map(names_in, dims)) & sizes.keys())
    other: Order = "C" if order == "F" else "F"
    steps = [_size(dim, sizes) for dim in dims[::-1][:-1]]
    turned = f'give `order="{other}"`, or ' if parts <= 1 and steps == inner else ""
    own = known.pieces[0].dtypes[0]
    rows = list(known.extents) if own != param.dtype else [*inner, *(known.extents[-1:] or (None,))]
    listed = [str(extent or "n") for extent in rows]
    shape = ",".join(listed if order == "F" else reversed(listed))
    what = "rows have another length" if parts <= 1 else f"elements are {parts} numbers each"
    return Mismatch(
        _declared(param) + (f" ({', '.join(f'{name} = {sizes[name]}' for name in names)})" if names else ""),
        f"an array whose {what}: `{known.text}`",
        f"{turned}declare it as `{param.name}: {own}[{shape}]`",
    )


def _too_small(param: Param, known: SourceType, sizes: Mapping[str, int]) -> Mismatch | None:
    """How an array is smaller than the one that a reference leads to, as far as `sizes` say so."""
    given = [_size(dim, sizes) for dim in param.dims or ()]
    there = prod(extent or 1 for extent in known.extents) * (known.element_bytes or 0) // ITEM_BYTES[param.dtype]
    if None in given or prod(size or 0 for size in given) >= there:
        return None
    remedy = f"declare it as `{param.name}: {param.dtype}[{there}]`"
    return Mismatch(_declared(param), f"an array of {there} numbers: `{known.text}`", remedy)


def _is_of(
    dims: Sequence[Expression],
    given: Sequence[int | None],
    inner: Sequence[int | None],
    last: int | None,
    *,
    any_number: bool,
) -> bool:
    """Whether an array, its dimensions fastest first, and as long as they are `given`, may be one of such rows, `last`
    of them where that is a number. `any_number`: of other dimensions, whatever they are."""
    if len(dims) == len(inner) + 1:
        return all(there in (None, size) or size is None for size, there in zip(given, inner, strict=False))
    rows = whole = 1 if any_number or None in inner else prod(extent or 1 for extent in inner)
    for dim in dims:
        if _factor(dim) % whole == 0:
            return True
        if names_in(dim):
            return last is not None and (None in given or prod(size or 0 for size in given) >= rows * last)
        extent = max(1, evaluate(dim, {}))
        if whole % extent:
            return False
        whole //= extent
    return whole == 1


def _has_own_size(
    dims: Sequence[Expression], given: Sequence[int | None], inner: Sequence[int | None], passed: Container[str]
) -> bool:
    """Whether an array of one dimension may be so many whole rows. A size that is passed to the source counts these:
    an array of as many numbers is too small."""
    rows = prod(extent or 1 for extent in inner)
    return len(dims) == 1 and not any(n in passed for n in names_in(dims[0])) and (given[0] or 0) % rows == 0


def _size(dim: Expression, sizes: Mapping[str, int]) -> int | None:
    return evaluate(dim, sizes) if names_in(dim) <= sizes.keys() else None


def _factor(dim: Expression) -> int:
    """A number by which an extent can be divided, whatever the sizes are."""
    match dim:
        case Literal(value):
            return abs(value)
        case Negation(operand):
            return _factor(operand)
        case Operation("*", left, right):
            return _factor(left) * _factor(right)
        case Operation("+" | "-", left, right):
            return gcd(_factor(left), _factor(right))
        case _:
            return 1


def written_structure(record: Record, known: SourceType) -> Mismatch | None:
    """A member is a result that lies where the source may not write. `inout` before a structure is meant for those
    members that it may write, behind pointers."""
    results = [m for m in leaves(record.members) if m.param.direction in ("out", "inout")]
    own = [m for m in results if m.in_place and (m.param.direction == "out" or m.param.direction != record.direction)]
    if not own and all(m.in_place for m in results):
        own = results
    if not own or not known.is_const or not record.is_pointer:
        return None
    return Mismatch(
        f"`{own[0].param.name}` is `{own[0].param.direction}` in the signature",
        f"`{known.text}`, where it cannot write",
        "declare it as an input: leave the word out, or write `in` before the member",
    )


def other_pointer(formal: Formal, known: SourceType) -> Mismatch | None:
    """How what is neither array nor structure, and passed by a pointer, differs from what the source has."""
    kinds = {piece.kind for piece in known.pieces}
    dtypes = {dtype for piece in known.pieces for dtype in piece.dtypes}
    match formal:
        case Text():
            what, fits = "a text", not known.is_record and (kinds <= {"bytes", "unknown"} or dtypes & {"i8", "u8"})
        case Status():
            what, fits = "a pointer to an `int`", kinds <= {"unknown"} or dtypes & {"i32", "u32"}
        case FunctionOf():
            what, fits = "a function", known.is_record or not kinds & {"number", "bytes"}
        case Null():
            what, fits = "a pointer", known.is_pointer or not known.is_record
        case _:
            return None
    return None if fits else Mismatch(f"`{formal.text('in')}` is {what}", f"`{known.text}`")


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
        return known.is_pointer or (is_dimension and dtype[0] == "i") or not _is_other_sign(dtype, piece)
    if known.is_record and (dtype in _BYTES or param.direction == "scratch"):
        return True
    if piece.kind == "pointer":  # of a place to work in, only the kernel knows what it puts there
        return param.direction == "scratch" and dtype in _POINTER_SIZED
    if piece.kind == "bytes":
        return not known.is_record or dtype == "bool" or all(p.kind == "bytes" for p in known.pieces)
    if piece.kind == "number" and not piece.dtypes:
        return dtype in _BYTES or param.direction == "scratch"
    return is_dimension and dtype[0] == "i" and _is_other_sign(dtype, piece)


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
