"""The parameters of a function as its source has them, where they are more than arrays and numbers.

    "A: f64[n][m]"                                   an array of n pointers to rows of m numbers
    "p: {k: f64, x: f64[n]*, id: i32}*"              a pointer to a structure, one member of which is a pointer
    "q: {x: f64, v: f64[3]}[n]"                      an array of n structures
    "_: null", "f: fn(name)", "c: \\"text\\"", "info: status[]"

The *formals* are what the function takes; the `params` of a signature are the arrays and numbers that they are made of,
each under its full name: `A`, `p.k`, `p.x`, `p.id`, `q.x` of shape (n,), `q.v` of shape (n, 3). The caller passes and
gets structures as mappings, and everything behind this package knows the flat parameters alone. In Fortran order the
dimensions of an array of structures come behind those of its members, as they do in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, cast

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import ArgumentError
from jax_enzyme.signature.expressions import Expression
from jax_enzyme.signature.params import Direction, Param


@dataclass(frozen=True, slots=True)
class Plain:
    """A number or an array. `own` are its dimensions without those of the arrays of structures around it, None for a
    number by value or in a structure; `levels` the ranks of its leading groups of dimensions, which are arrays of
    pointers. `in_place`: it lies in a structure itself, not behind a pointer there; `is_tail`: as its last member, of
    any size (C's flexible array member)."""

    param: Param
    own: tuple[Expression, ...] | None
    levels: tuple[int, ...] = ()
    in_place: bool = False
    in_structure: bool = False
    is_tail: bool = False

    @property
    def name(self) -> str:
        return _last(self.param.name)

    @property
    def is_text(self) -> bool:
        """Whether it may be characters of the caller's."""
        return not self.param.by_value and self.param.dtype in ("i8", "u8")

    @property
    def element(self) -> tuple[Expression, ...]:
        """The dimensions of one block of numbers: without the arrays of pointers."""
        return (self.own or ())[sum(self.levels) :]

    def text(self, inherited: Direction) -> str:
        prefix = "" if self.param.direction == inherited else f"{self.param.direction} "
        groups, rest = "", list(self.own or ())
        for rank in self.levels:
            groups += f"[{','.join(map(str, rest[:rank]))}]"
            del rest[:rank]
        if self.own is not None:
            groups += f"[{','.join(map(str, rest))}]"
        star = "*" if self.in_structure and not self.in_place else ""
        value = "" if self.param.value is None else f" = {self.param.value}"
        return f"{prefix}{self.name}: {self.param.dtype}{groups}{star}{value}"


@dataclass(frozen=True, slots=True)
class Record:
    """A structure: by value or in place (`count` None), behind a pointer (`is_pointer`), or an array of them."""

    name: str
    direction: Direction
    members: tuple[Formal, ...]
    count: tuple[Expression, ...] | None = None
    is_pointer: bool = False
    in_structure: bool = False

    def text(self, inherited: Direction) -> str:
        prefix = "" if self.direction == inherited else f"{self.direction} "
        dims = "" if self.count is None else f"[{','.join(map(str, self.count))}]"
        star = "*" if self.is_pointer and (self.count is None or self.in_structure) else ""
        return f"{prefix}{_last(self.name)}: {self.braces}{dims}{star}"

    @property
    def braces(self) -> str:
        """The members."""
        return f"{{{', '.join(member.text(self.direction) for member in self.members)}}}"

    @property
    def params(self) -> tuple[Param, ...]:
        """The numbers and arrays that it is made of."""
        return tuple(leaf.param for leaf in leaves(self.members))


@dataclass(frozen=True, slots=True)
class Null:
    """A null pointer."""

    name: str

    def text(self, inherited: Direction) -> str:
        return f"{_last(self.name)}: null"


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """A pointer to a function of the source."""

    name: str
    symbol: str

    def text(self, inherited: Direction) -> str:
        return f"{_last(self.name)}: fn({self.symbol})"


@dataclass(frozen=True, slots=True)
class Text:
    """A pointer to constant characters, with a zero behind them."""

    name: str
    value: str
    is_text: ClassVar[bool] = True

    def text(self, inherited: Direction) -> str:
        return f'{_last(self.name)}: "{self.value}"'


@dataclass(frozen=True, slots=True)
class Status:
    """A pointer to an integer, zero at first, that says whether the function failed."""

    name: str

    def text(self, inherited: Direction) -> str:
        return f"{_last(self.name)}: status[]"


Formal = Plain | Record | Null | FunctionOf | Text | Status


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def leaves(formals: Sequence[Formal]) -> Iterator[Plain]:
    """The numbers and arrays that formals are made of, in order."""
    for formal in formals:
        if isinstance(formal, Plain):
            yield formal
        elif isinstance(formal, Record):
            yield from leaves(formal.members)


def any_leaf(formal: Formal, chosen: Callable[[Param], bool]) -> bool:
    """Whether a parameter that a formal is made of is chosen."""
    return any(chosen(leaf.param) for leaf in leaves([formal]))


# -- values of callers


def flattened(formals: Sequence[Formal], values: Sequence[object], passed: Callable[[Param], bool]) -> list[object]:
    """The values of the parameters that are `passed`, from one value per formal that has any. ArgumentError where a
    structure lacks a member, or has one too many."""
    found: list[object] = []
    for formal, value in zip(formals, values, strict=True):
        if isinstance(formal, Record):
            inner = [member for member in formal.members if any_leaf(member, passed)]
            found += flattened(inner, _member_values(formal, inner, value), passed)
        else:
            found.append(value)
    return found


def _member_values(record: Record, members: Sequence[Formal], value: object) -> list[object]:
    names = [_last(member.name) for member in members]
    fields = _fields(record, names, value)
    missing = [name for name in names if name not in fields]
    if missing:
        raise ArgumentError(
            f"argument `{record.name}` lacks {', '.join(f'`{name}`' for name in missing)}", record.text("in")
        )
    for name in fields:
        if name not in names:
            raise _unexpected(record, names, str(name))
    return [fields[name] for name in names]


def _fields(record: Record, names: Sequence[str], value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return cast("Any", value)._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise ArgumentError(
        f"argument `{record.name}` is a structure, got {type(value).__name__}",
        record.text("in"),
        f"pass a dict with {', '.join(map(repr, names))}",
    )


def _unexpected(record: Record, names: Sequence[str], name: str) -> ArgumentError:
    own = next((member for member in record.members if _last(member.name) == name), None)
    if own is not None:
        remedy = "leave it out: it is solved from shapes, fixed, or no input"
    else:
        near = get_close_matches(name, names, 1)
        remedy = f"did you mean `{near[0]}`?" if near else None
    return ArgumentError(f"argument `{record.name}` has an unexpected member `{name}`", record.text("in"), remedy)


def gathered(formals: Sequence[Formal], values: Iterator[Any], returned: Callable[[Param], bool]) -> list[Any]:
    """One value per formal of which anything is `returned`: of a structure a dict of those members."""
    found: list[Any] = []
    for formal in formals:
        if not any_leaf(formal, returned):
            continue
        if isinstance(formal, Record):
            inner = [member for member in formal.members if any_leaf(member, returned)]
            names = [_last(member.name) for member in inner]
            found.append(dict(zip(names, gathered(inner, values, returned), strict=True)))
        else:
            found.append(next(values))
    return found


def functions_of(formals: Sequence[Formal]) -> Iterator[str]:
    """The functions of the source that a kernel is handed."""
    for formal in formals:
        if isinstance(formal, FunctionOf):
            yield formal.symbol
        elif isinstance(formal, Record):
            yield from functions_of(formal.members)


def shared_by_threads(formals: Sequence[Formal]) -> Formal | None:
    """The first that lies behind a pointer, structures or pointers: where every thread of a launch makes what it is
    given, there is none for all of them."""
    return next((formal for formal in formals if not _is_by_value(formal)), None)


def _is_by_value(formal: Formal) -> bool:
    match formal:
        case Plain():
            return not formal.levels
        case Record():
            return not formal.is_pointer and all(map(_is_by_value, formal.members))
        case _:
            return isinstance(formal, Null)


def with_symbols(formals: Sequence[Formal], symbols: Mapping[str, str]) -> tuple[Formal, ...]:
    """The formals, with functions of the source by their symbols instead of what they are called there."""
    found: list[Formal] = []
    for formal in formals:
        if isinstance(formal, FunctionOf):
            found.append(dataclasses.replace(formal, symbol=symbols.get(formal.symbol, formal.symbol)))
        elif isinstance(formal, Record):
            found.append(dataclasses.replace(formal, members=with_symbols(formal.members, symbols)))
        else:
            found.append(formal)
    return tuple(found)
