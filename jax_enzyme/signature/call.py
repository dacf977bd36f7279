"""Matches the arguments of a call with a signature, and checks them. Knows nothing of JAX: an argument is described by
an `Actual`, which the caller of this module makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import ArgumentError
from jax_enzyme.signature.dimensions import solve
from jax_enzyme.signature.formals import any_leaf, flattened, gathered
from jax_enzyme.signature.model import RETURN, Binding, Signature
from jax_enzyme.signature.params import INTEGERS, WIDE, Param, integer_range

NUMPY_NAMES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""The name that NumPy and JAX have for each dtype of a signature."""

_SHORT_NAMES = {long: short for short, long in NUMPY_NAMES.items()}
_KINDS = {"bool": 0, "i": 1, "u": 1, "b": 2, "f": 2, "c": 3}


@dataclass(frozen=True, slots=True)
class Actual:
    """One argument of a call. `dtype` is a name of NumPy's (`float64`). `weak`: its dtype gives way to the parameter's
    where the kind allows (a Python scalar, or JAX's weak type). `static`: the value of a Python int."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    static: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """What a caller passes or gets under one name: a parameter, or a structure of them. `text` is its type, `declared`
    how the signature has it."""

    name: str
    text: str
    declared: str

    def __str__(self) -> str:
        return self.declared


def arguments(signature: Signature) -> tuple[Item, ...]:
    """What the caller passes, in order."""
    return _items(signature, signature.is_passed) if signature.formals else _plain_items(signature.caller_params)


def returned(signature: Signature) -> tuple[Item, ...]:
    """What the caller gets, in order."""
    if signature.structure is not None:
        text = signature.structure.braces
        value = (Item(RETURN, text, f"-> {text}"),)
    else:
        value = _plain_items(signature.returned)
    own = signature.results[len(signature.returned) :]
    return (*value, *(_items(signature, frozenset(own).__contains__) if signature.formals else _plain_items(own)))


def _plain_items(params: Sequence[Param]) -> tuple[Item, ...]:
    return tuple(Item(p.name, p.type_text, str(p)) for p in params)


def _items(signature: Signature, chosen: Callable[[Param], bool]) -> tuple[Item, ...]:
    texts = [f.text("in") for f in signature.formals if any_leaf(f, chosen)]
    parts = [(*text.removeprefix("inout ").removeprefix("out ").split(": ", 1), text) for text in texts]
    return tuple(Item(name, kind, text) for name, kind, text in parts)


def inspect_signature(signature: Signature) -> inspect.Signature:
    """What `inspect.signature` shows for a kernel."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    params = [inspect.Parameter(item.name, kind, annotation=item.text) for item in arguments(signature)]
    results = [item.text for item in returned(signature)]
    annotation = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return inspect.Signature(params, return_annotation=annotation)


def match(signature: Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[object, ...]:
    """The arguments in the order of `signature.caller_params`, structures taken apart; ArgumentError names what is
    missing or too much."""
    params = arguments(signature)
    takes = f"the kernel takes ({', '.join(map(str, params))})"
    if len(args) > len(params):
        dims = [p.name for p in signature.dimensions]
        note = f"; {', '.join(dims)} come from shapes and are not passed" if dims else ""
        raise ArgumentError(f"{len(args)} positional arguments given, {len(params)} expected", f"{takes}{note}")
    given: dict[str, object] = {p.name: value for p, value in zip(params, args, strict=False)}
    for name, value in kwargs.items():
        if name in given:
            raise ArgumentError(f"argument `{name}` is given twice, by position and by name", takes)
        if all(name != p.name for p in params):
            raise _unexpected(signature, name, takes)
        given[name] = value
    missing = [p.name for p in params if p.name not in given]
    if missing:
        raise ArgumentError(f"missing argument{'s' if len(missing) > 1 else ''}: {', '.join(missing)}", takes)
    values = tuple(given[p.name] for p in params)
    if not signature.formals:
        return values
    passed = [f for f in signature.formals if any_leaf(f, signature.is_passed)]
    return tuple(flattened(passed, values, signature.is_passed))


def result_of(signature: Signature, values: Sequence[Any]) -> Any:
    """What a call returns, from the values of `signature.results`: one by itself, several as a tuple."""
    count = len(signature.returned)
    value, found = list(values[:count]), list(values[count:])
    if signature.structure is not None:
        value = gathered([signature.structure], iter(value), frozenset(signature.returned).__contains__)
    if signature.formals:
        found = gathered(signature.formals, iter(found), frozenset(signature.results).__contains__)
    found = [*value, *found]
    return found[0] if len(found) == 1 else tuple(found)


def _unexpected(signature: Signature, name: str, takes: str) -> ArgumentError:
    if signature.is_dimension(name):
        reason = f"`{name}` is a dimension: it is solved from the shapes of the arguments"
        return ArgumentError(f"unexpected argument `{name}`", f"{takes}; {reason}", f"leave `{name}` out")
    if name in signature and signature[name].value is not None:
        reason = f"`{name}` is {signature[name].value} in every call"
        return ArgumentError(f"unexpected argument `{name}`", f"{takes}; {reason}", f"leave `{name}` out")
    if name in signature:
        reason = f"`{name}` is `{signature[name].direction}`: it does not come from the caller"
        return ArgumentError(f"unexpected argument `{name}`", f"{takes}; {reason}", f"leave `{name}` out")
    near = get_close_matches(name, [p.name for p in arguments(signature)], 1)
    return ArgumentError(f"unexpected argument `{name}`", takes, f"did you mean `{near[0]}`?" if near else None)


def bind(signature: Signature, actuals: Sequence[Actual], *, x64: bool) -> Binding:
    """Checks the arguments of a call (one Actual per caller parameter) and solves the dimensions.

    Integer scalars that have a static value are bound to it. `x64`: JAX has its 64-bit types enabled.
    """
    static: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for param, actual in zip(signature.caller_params, actuals, strict=True):
        _check_rank(param, actual)
        if param.is_scalar and param.direction == "in" and param.dtype in INTEGERS and actual.static is not None:
            static[param.name] = _checked_int(param, actual.static)
        else:
            _check_wide(param, x64)
            _check_dtype(param, actual)
        shapes[param.name] = actual.shape
    for param in (*signature.results, *(p for p in signature.params if p.direction == "scratch")):
        _check_wide(param, x64)
    return Binding.of(solve(signature, shapes), static)


def _checked_int(param: Param, value: int) -> int:
    if not fits(param.dtype, value):
        raise does_not_fit(param, value)
    return value


def fits(dtype: str, value: int) -> bool:
    """Whether an integer dtype has this value."""
    low, high = integer_range(dtype)
    return low <= value <= high


def does_not_fit(param: Param, value: int) -> ArgumentError:
    """Says that an argument is an integer that its parameter cannot hold."""
    return ArgumentError(f"argument `{param.name}` is {value}, which does not fit {param.dtype}", str(param))


def _check_rank(param: Param, actual: Actual) -> None:
    if len(actual.shape) == param.rank:
        return
    expected = "a scalar" if param.rank == 0 else f"an array of rank {param.rank}"
    got = "a scalar" if not actual.shape else f"rank {len(actual.shape)}, shape {actual.shape}"
    raise ArgumentError(f"argument `{param.name}` must be {expected}, got {got}", str(param))


def _check_wide(param: Param, x64: bool) -> None:
    if param.dtype in WIDE and not x64:
        raise ArgumentError(
            f"`{param.name}` is {param.dtype}, but JAX has its 64-bit types switched off",
            str(param),
            'call jax.config.update("jax_enable_x64", True) at the start of the program',
        )


def _check_dtype(param: Param, actual: Actual) -> None:
    got = _SHORT_NAMES.get(actual.dtype)
    wanted = NUMPY_NAMES[param.dtype]
    if got == param.dtype:
        return
    if got is not None and (_weak_fits(param.dtype, got, actual.weak) or _scalar_widens(param, got)):
        if actual.static is not None and param.dtype in INTEGERS:
            _checked_int(param, actual.static)
        return
    raise ArgumentError(
        f"argument `{param.name}` must be {wanted}, got {actual.dtype}",
        str(param),
        f"pass `{param.name}.astype('{wanted}')`, or declare the parameter as the kernel's source has it",
    )


def _kind(dtype: str) -> int:
    return _KINDS[dtype] if dtype == "bool" else _KINDS[dtype[0]]


def _weak_fits(wanted: str, got: str, weak: bool) -> bool:
    """A weak type turns into any dtype of its own kind or a later one of: integers, floats, complex numbers."""
    return weak and 1 <= _kind(got) <= _kind(wanted)


def _scalar_widens(param: Param, got: str) -> bool:
    """An integer scalar may be given in any dtype whose every value fits."""
    if not (param.is_scalar and param.direction == "in" and param.dtype in INTEGERS and got in INTEGERS):
        return False
    low, high = integer_range(got)
    least, greatest = integer_range(param.dtype)
    return least <= low and high <= greatest
