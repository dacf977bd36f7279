"""From what the text of a signature declares to its formals and parameters: full names, directions and shapes.

A name in a shape means, in this order: an integer member of the same structure, or of one around it; a parameter; the
one integer member of any structure that has the name; else a size that no parameter carries. Full names (`p.n`) say
which.
Names with a fixed value (`n: i32 = 3`) become numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal as Choice

from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.errors import SignatureError
from jax_enzyme.signature.expressions import (
    EvaluationError,
    Expression,
    Literal,
    Name,
    evaluate,
    names_in,
    renamed,
)
from jax_enzyme.signature.formals import Formal, FunctionOf, Null, Plain, Record, Status, Text, leaves
from jax_enzyme.signature.model import Order
from jax_enzyme.signature.params import INTEGERS, Direction, Param, integer_range

Dims = tuple[Expression, ...]
Kind = Choice["number", "record", "null", "function", "text", "status"]


@dataclass(frozen=True)
class Declaration:
    """What stands between two commas. `what` is the dtype, the name of a function, or a text; `groups` are its
    brackets; `start` is where it stands in the text."""

    name: str
    start: int
    kind: Kind
    direction: Direction | None = None
    what: str = ""
    groups: tuple[Dims, ...] = ()
    is_pointer: bool = False
    value: int | None = None
    members: tuple[Declaration, ...] = ()
    is_variable: bool = False


class DeclarationError(Exception):
    """What is wrong with a declaration, and at which place of the text."""

    def __init__(self, cause: str, start: int, remedy: str | None = None) -> None:
        super().__init__(cause)
        self.start = start
        self.remedy = remedy


def formals_of(
    declarations: Sequence[Declaration], order: Order, constants: Mapping[str, int]
) -> tuple[tuple[Formal, ...], tuple[Param, ...]]:
    """The formals (none where all are parameters themselves) and the parameters. DeclarationError for what makes no
    sense, SignatureError for constants of no use."""
    whole = _Resolver(order, dict(constants))
    whole.collect(declarations, "")
    whole.check_constants()
    formals = tuple(whole.formal(d, _Place("", "in", (), False, True)) for d in declarations)
    params = tuple(leaf.param for leaf in leaves(formals))
    if all(isinstance(f, Plain) and not f.levels for f in formals):
        return (), params
    return formals, params


def structure_of(declaration: Declaration, order: Order, constants: Mapping[str, int]) -> Record:
    """The structure that a function returns by value. DeclarationError for what makes no sense; members are numbers,
    arrays in place and structures in place, all `out`; other members are `null`."""
    whole = _Resolver(order, dict(constants))
    whole.collect([declaration], "")
    found = whole.formal(declaration, _Place("", "out", (), True, True))
    assert isinstance(found, Record)
    _check_returned(found, declaration)
    return found


def _check_returned(record: Record, declaration: Declaration) -> None:
    for member, declared in zip(record.members, declaration.members, strict=True):
        if isinstance(member, Record) and not member.is_pointer:
            _check_returned(member, declared)
        elif isinstance(member, Plain) and member.in_place:
            if member.param.direction != "out":
                raise DeclarationError(
                    f"`{member.name}` is a member of what the function returns", declared.start, "it has no direction"
                )
        elif not isinstance(member, Null):
            raise DeclarationError(
                f"`{member.text('out')}` is a pointer in a structure that is returned, to memory of the function's",
                declared.start,
                f"leave it out of the result with `{declared.name}: null`",
            )


@dataclass(frozen=True)
class _Place:
    """Where a declaration stands: in the structure named `scope`, of this direction; `outer` are the dimensions of the
    arrays of structures around it; `writable`: not in a structure that is passed by value; `is_tail`: as the last
    member of the one structure that a pointer leads to."""

    scope: str
    direction: Direction
    outer: Dims
    in_structure: bool
    writable: bool
    is_tail: bool = False


@dataclass
class _Resolver:
    order: Order
    constants: dict[str, int]
    names: dict[str, Declaration] = field(default_factory=dict[str, Declaration])
    used: set[str] = field(default_factory=set[str])
    in_shapes: frozenset[str] | None = None

    def collect(self, declarations: Sequence[Declaration], scope: str) -> None:
        for declaration in declarations:
            name = f"{scope}{declaration.name}"
            if name in self.names and declaration.kind != "null":
                what = "members" if scope else "parameters"
                raise DeclarationError(f"two {what} are named `{declaration.name}`", declaration.start)
            self.names[name] = declaration
            if declaration.value is not None:
                self._fix(name, declaration)
            self.collect(declaration.members, f"{name}.")
            self.used.update(*(names_in(dim) for group in declaration.groups for dim in group))

    def _fix(self, name: str, declaration: Declaration) -> None:
        assert declaration.value is not None
        if self.constants.setdefault(name, declaration.value) != declaration.value:
            raise DeclarationError(
                f"`{name}` is {declaration.value} in the signature, and {self.constants[name]} was given",
                declaration.start,
                "leave one of them out",
            )

    def check_constants(self) -> None:
        for name in self.constants:
            if name not in self.names and name not in self.used:
                near = sorted({*self.names, *self.used})
                raise SignatureError(
                    f"`{name}={self.constants[name]}` was given, but the signature has no `{name}`",
                    f"it has {', '.join(near)}",
                    "a constant is an integer parameter, or a name in a shape",
                )

    # -- formals

    def formal(self, declaration: Declaration, place: _Place) -> Formal:
        name = f"{place.scope}{declaration.name}"
        direction = declaration.direction or place.direction
        match declaration.kind:
            case "null":
                return Null(name)
            case "function":
                return FunctionOf(name, declaration.what)
            case "text":
                return Text(name, declaration.what)
            case "status":
                return Status(name)
            case "record":
                return self._record(declaration, name, direction, place)
            case "number":
                return self._plain(declaration, name, direction, place)

    def _record(self, declaration: Declaration, name: str, direction: Direction, place: _Place) -> Record:
        if not declaration.members:
            raise DeclarationError(f"the structure `{name}` has no members", declaration.start)
        if len(declaration.groups) > 1:
            raise DeclarationError(f"`{name}` is an array of pointers to structures", declaration.start, _ONE_BY_ONE)
        count = self._dims(declaration, declaration.groups[0], place) if declaration.groups else None
        # Within a structure brackets are in place, as those of numbers; outside they are memory of the caller's.
        behind = declaration.is_pointer or (count is not None and not place.in_structure)
        if count is not None and not behind:
            self._check_fixed(declaration, name, count)
        if direction == "scratch":
            raise DeclarationError(
                f"`{name}` is a structure that is `scratch`", declaration.start, "mark those of its members that are"
            )
        writable = behind or (place.writable and place.in_structure)
        inner = _Place(f"{name}.", direction, self._joined(place.outer, count or ()), True, writable)
        *first, last = declaration.members
        alone = declaration.is_pointer and count is None and not place.in_structure
        members = (*(self.formal(member, inner) for member in first), self.formal(last, replace(inner, is_tail=alone)))
        return Record(name, direction, members, count, behind, place.in_structure)

    def _plain(self, declaration: Declaration, name: str, direction: Direction, place: _Place) -> Plain:
        groups = tuple(self._dims(declaration, group, place) for group in declaration.groups)
        own = sum(groups, ()) if groups else None
        levels = tuple(len(group) for group in groups[:-1])
        in_place = place.in_structure and not declaration.is_pointer
        if levels and self.order == "F":
            raise DeclarationError(
                f"`{name}` is an array of pointers, which has no Fortran order", declaration.start, 'order="C"'
            )
        if levels and in_place:
            raise DeclarationError(
                f"the arrays of pointers `{name}` in a structure",
                declaration.start,
                f"behind a pointer it is `{declaration.name}: {declaration.what}[...][...]*`",
            )
        is_tail = in_place and bool(own) and place.is_tail and any(names_in(dim) for dim in own or ())
        if in_place and own and not is_tail:
            self._check_fixed(declaration, name, own)
        self._check_sizes(declaration, own or ())
        value = self._value(declaration, name, direction)
        if declaration.direction is None and name in self._dimension_names():
            direction = "in"
        if direction != "in" and not groups and not place.in_structure:
            raise DeclarationError(
                f"`{direction} {name}` is passed by value, so nothing can be written to it",
                declaration.start,
                f"a pointer to one value is `{name}: {declaration.what}[]`",
            )
        if in_place and direction in ("out", "inout") and not place.writable:
            raise DeclarationError(
                f"`{direction} {name}` lies in a structure that is passed by value, so nothing can be written to it",
                declaration.start,
                "a pointer to a structure is `{...}*`",
            )
        outer = place.outer
        dims = own if not outer else self._joined(outer, own or ())
        param = Param(name, declaration.what, direction, dims, value)
        return Plain(param, own, levels, in_place, place.in_structure, is_tail)

    def _joined(self, outer: Dims, own: Dims) -> Dims:
        return (*own, *outer) if self.order == "F" else (*outer, *own)

    def _value(self, declaration: Declaration, name: str, direction: Direction) -> int | None:
        value = self.constants.get(name)
        if value is None:
            return None
        if declaration.what not in INTEGERS or any(declaration.groups) or direction != "in":
            raise DeclarationError(f"`{name}` is no integer that goes in, and has no fixed value", declaration.start)
        low, high = integer_range(declaration.what)
        if not low <= value <= high:
            raise DeclarationError(f"{value} does not fit `{name}: {declaration.what}`", declaration.start)
        return value

    def _check_sizes(self, declaration: Declaration, dims: Dims) -> None:
        for dim in dims:
            if names_in(dim):
                continue
            try:
                extent = evaluate(dim, {})
            except EvaluationError as error:
                raise DeclarationError(
                    f"the shape of `{declaration.name}` has no value: {error}", declaration.start
                ) from None
            if extent < 0:
                cause = f"the shape of `{declaration.name}` would be negative: {extent}"
                raise DeclarationError(cause, declaration.start)

    def _check_fixed(self, declaration: Declaration, name: str, dims: Dims) -> None:
        """An array in a structure is part of its layout."""
        try:
            size = prod(evaluate(dim, {}) for dim in dims)
        except (KeyError, EvaluationError):
            size = -1
        if size <= 0:
            what = declaration.what or "{...}"
            raise DeclarationError(
                f"the array `{name}` lies in a structure, so its size is a number",
                declaration.start,
                f"a pointer to an array is `{declaration.name}: {what}[{','.join(map(str, dims))}]*`",
            )

    # -- names in shapes

    def _dimension_names(self) -> frozenset[str]:
        """The full names of those that occur in shapes."""
        if self.in_shapes is None:
            self.in_shapes = frozenset(self._names_of("", [d for n, d in self.names.items() if "." not in n]))
        return self.in_shapes

    def _names_of(self, scope: str, declarations: Sequence[Declaration]) -> set[str]:
        found: set[str] = set()
        for declaration in declarations:
            place = _Place(scope, "in", (), bool(scope), True)
            for group in declaration.groups:
                found.update(*(names_in(dim) for dim in self._dims(declaration, group, place)))
            found |= self._names_of(f"{scope}{declaration.name}.", declaration.members)
        return found

    def _dims(self, declaration: Declaration, dims: Dims, place: _Place) -> Dims:
        def meaning(name: str) -> Expression:
            full = self._full_name(name, declaration, place.scope)
            return Literal(self.constants[full]) if full in self.constants else Name(full)

        return tuple(renamed(dim, meaning) for dim in dims)

    def _full_name(self, name: str, declaration: Declaration, scope: str) -> str:
        while True:
            if f"{scope}{name}" in self.names:
                return f"{scope}{name}"
            if not scope:
                break
            scope = scope[:-1].rpartition(".")[0]
            scope = f"{scope}." if scope else ""
        members = [n for n, d in self.names.items() if n.endswith(f".{name}") and d.what in INTEGERS]
        if len(members) > 1 and name not in self.constants:
            raise DeclarationError(
                f"`{name}` may be {' or '.join(f'`{m}`' for m in members)}",
                declaration.start,
                f"write `{members[0]}`",
            )
        if "." in name and not members:
            raise DeclarationError(f"there is no member `{name}`", declaration.start)
        return members[0] if len(members) == 1 else name


_ONE_BY_ONE = "pass the structures in one array: `{...}[n]`"
