"""Structures that two files lay out differently: the linker binds names, and what one file calls a mass is what the
other one has a length for. So of

    a.c   struct p { double k, m; };  double g(const struct p *);  double f(...) { ... g(&q) ... }
    b.c   struct p { float k; int id; double m; };                 double g(const struct p *q) { ... }

`f` does not link. Debug information says what each file has. Held against each other are the types of what one file
uses and another one defines, as both have them, and what their members lead to; not what merely has the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.ir.debug import debug_node, node_line, resolve, unit, variable
from jax_enzyme.ir.instructions import BinaryOp, CallBase, GetElementPtr
from jax_enzyme.ir.metadata import MDNode, MDValue
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.types import ArrayType, StructType, Type
from jax_enzyme.ir.values import ConstantAggregate, ConstantExpr, ConstantInt, Value, int_value
from jax_enzyme.transform.source_types import (
    POINTERS,
    RECORDS,
    UNION,
    array_extents,
    member_name,
    plain_type,
)

_REAL, _COMPLEX = "DW_ATE_float", "DW_ATE_complex_float"
_SCOPES = ("DINamespace", "DIModule", "DICompositeType")


def layout_conflict(module: Module) -> CompileError | None:
    """The error for a function or a variable that one file defines and another uses with a structure that the two lay
    out differently."""
    if len(module.named_metadata.get("llvm.dbg.cu", ())) < 2:
        return None
    units = _Units(module)
    for user, used in _uses_of_others(module, units):
        for name, there in _records(module, _type_of(module, used)):
            here = units.record(units.of(user), name)
            found = None if here is None else _Comparison(module, units, user, used).difference(here, there)
            if found is not None:
                one, other = found.places
                if one == other:  # compiled with other macros
                    one, other = (f"{one} in {_file(module, units.of(symbol))}" for symbol in (user, used))
                return CompileError(
                    f"`{spelling(used.name)}`, which `{spelling(user.name)}` uses, has to do with a structure that two "
                    f"files lay out differently: {found.text}",
                    f"{one} and {other}",
                    "give both files one definition of it, in a header, and compile them with the same macros",
                )
    return None


def _file(module: Module, unit: MDNode | None) -> str:
    file = None if unit is None else resolve(module, unit.get("file"))
    return (None if file is None else file.string("filename")) or "another file"


class _Units:
    """What each file has: its structures by name, as far as its functions and variables have to do with them."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._of: dict[Value, MDNode | None] = {}
        self._symbols: dict[MDNode, list[Function | GlobalVariable]] = {}
        for symbol in (*module.functions.values(), *module.globals.values()):
            file = self._of[symbol] = unit(module, symbol)
            if file is not None:
                self._symbols.setdefault(file, []).append(symbol)
        self._records: dict[MDNode, dict[_Name, MDNode]] = {}
        self._made: dict[MDNode, tuple[Set[MDNode], Set[int]]] = {}

    def of(self, symbol: Value) -> MDNode | None:
        return self._of.get(symbol)

    def record(self, file: MDNode | None, name: _Name) -> MDNode | None:
        """What a file calls so; in C the name behind `struct` and that of a `typedef` may be two structures."""
        if file is None:
            return None
        if file not in self._records:
            found: dict[_Name, MDNode] = {}
            types = [node for symbol in self._symbols[file] for node in _types_in(self._module, symbol)]
            for node in reached(types, lambda node: _parts(self._module, node)):
                for each, record in _named(self._module, node):
                    found.setdefault(each, record)
            self._records[file] = found
        records = self._records[file]
        return records.get(name) or records.get(_Name(name.text, not name.is_alias))

    def may_make(self, file: MDNode | None, record: MDNode) -> bool:
        """Whether a file may have objects of its own of this structure, as variables, or parts of them, or by its size,
        or goes through several."""
        if file is None:
            return True
        if file not in self._made:
            types = [node for symbol in self._symbols[file] for node in _types_in(self._module, symbol)]
            made = reached(types, lambda node: _parts(self._module, node, inside=True)).keys()
            layout = DataLayout(self._module)
            self._made[file] = made, {size for symbol in self._symbols[file] for size in _spoken_of(layout, symbol)}
        made, sizes = self._made[file]
        return record in made or (record.number("size") or 0) // 8 in sizes


@dataclass(frozen=True)
class _Difference:
    """What differs, as a sentence, and where the two structures are defined."""

    text: str
    places: tuple[str, str]


class _Comparison:
    """Two types of two files side by side, and what both lead to."""

    def __init__(self, module: Module, units: _Units, *symbols: Function | GlobalVariable) -> None:
        self._module, self._units = module, units
        self._files = [units.of(symbol) for symbol in symbols]
        self._seen: set[tuple[MDNode, MDNode]] = set()

    def difference(
        self, one: MDNode | None, other: MDNode | None, behind: bool = False, is_left_open: bool = False
    ) -> _Difference | None:
        """Between two types, each without its qualifiers. Of structures `behind` members that are pointers one file may
        know less, or have others in their place; and what one definition, for both files, leaves open each may have
        for itself (`struct impl *` of a header)."""
        if one is None or other is None or one is other or (one, other) in self._seen:
            return None
        self._seen.add((one, other))
        if _is_record(one) and _is_record(other):
            complete = _is_complete(one) and _is_complete(other)
            is_own = behind and is_left_open and node_line(self._module, one) != node_line(self._module, other)
            alike = complete and not is_own and self._are_named_alike(one, other)
            return self._of_records(one, other, behind) if alike else None
        if _shape(one) != _shape(other):
            return None
        behind = behind or _shape(one) == "pointer"
        return self.difference(self._inner(one), self._inner(other), behind, is_left_open)

    def _inner(self, node: MDNode) -> MDNode | None:
        return plain_type(self._module, node.get("baseType"))

    def _are_named_alike(self, one: MDNode, other: MDNode) -> bool:
        nameless = None in (one.string("name"), other.string("name"))
        return nameless or _name(self._module, one) == _name(self._module, other)

    def _of_records(self, one: MDNode, other: MDNode, behind: bool) -> _Difference | None:
        module = self._module
        places = (node_line(module, one) or "?", node_line(module, other) or "?")
        mine, others = _members(module, one), _members(module, other)
        common = [name for name in mine if name in others]
        text = self._of_members(mine, others, common)
        if text is None and not behind:
            text = self._of_places(one, mine, others)
            if text is None and not self._is_prefix((one, mine), (other, others)):
                text = _sizes(one, other, mine.keys() ^ others.keys())
        if text is not None:
            name = one.string("name") or other.string("name")
            return _Difference(f"of `{name}`, {text}" if name else text, places)
        is_one = places[0] == places[1]
        found = (self.difference(mine[name][1], others[name][1], behind, is_one) for name in common)
        return next((difference for difference in found if difference is not None), None)

    def _of_members(self, mine: _Members, others: _Members, common: Iterable[str]) -> str | None:
        for name in common:
            (at, a), (there, b) = mine[name], others[name]
            if at != there:
                return f"`{name}` is at {_place(at)} in one and at {_place(there)} in the other"
            kinds = _kind(self._module, a), _kind(self._module, b)
            if None not in kinds and kinds[0] != kinds[1]:
                return f"`{name}` is {kinds[0]} in one and {kinds[1]} in the other"
        return None

    def _of_places(self, one: MDNode, mine: _Members, others: _Members) -> str | None:
        """Members of other names may share a place, if they are the same there."""
        by_place = {} if one.get("tag") == UNION else {at: (name, node) for name, (at, node) in others.items()}
        for name, (at, a) in mine.items():
            called, b = by_place.get(at, (name, None))
            kinds = _kind(self._module, a, counted=False), _kind(self._module, b, counted=False)
            if name not in others and None not in kinds and kinds[0] != kinds[1]:
                return f"`{name}`, {kinds[0]}, is where `{called}` is in the other, {kinds[1]}"
        return None

    def _is_prefix(self, *sides: tuple[MDNode, _Members]) -> bool:
        """Whether one file knows only how the structure begins, and makes none: the other's functions do, and have the
        rest for themselves."""
        shorter = min(range(2), key=lambda side: sides[side][0].number("size") or 0)
        (short, known), (_, all_members) = sides[shorter], sides[1 - shorter]
        size = short.number("size") or 0
        hidden = [at for name, (at, _) in all_members.items() if name not in known]
        begins = known.keys() <= all_members.keys() and all(at >= size for at in hidden)
        return begins and not self._units.may_make(self._files[shorter], short)


def _spoken_of(layout: DataLayout, symbol: Function | GlobalVariable) -> Iterator[int]:
    """The sizes with which a function calls others, that it multiplies, and those of structures of which it goes from
    one to another (`q[1]`)."""
    for instruction in symbol.instructions() if isinstance(symbol, Function) else ():
        match instruction:
            case CallBase() | BinaryOp():
                yield from (operand.value for operand in instruction.operands if isinstance(operand, ConstantInt))
            case GetElementPtr(source_type=of) if isinstance(layout.body(of), StructType | ArrayType):
                yield from (layout.alloc_size(step) for step in _steps(layout, instruction))
            case _:
                pass


def _steps(layout: DataLayout, access: GetElementPtr) -> Iterator[Type]:
    """The types of what is passed over on the way to an element."""
    of = access.source_type
    for place, index in enumerate(access.operands[1:]):
        if place:
            match layout.body(of):
                case ArrayType(element=of):
                    pass
                case _:
                    return
        if int_value(index) != 0 and isinstance(layout.body(of), StructType | ArrayType):
            yield of


def _sizes(one: MDNode, other: MDNode, only: Collection[str]) -> str | None:
    """flang counts no bytes behind the last member, so that sizes alone say nothing."""
    here, there = one.number("size") or 0, other.number("size") or 0
    if not only or here == there:
        return None
    names = ", ".join(f"`{name}`" for name in sorted(only))
    return f"there are {here // 8} bytes in one and {there // 8} in the other, with {names} in one of them alone"


# -- types


_Members = dict[str, tuple[int, MDNode | None]]


def _kind(module: Module, node: MDNode | None, *, counted: bool = True) -> str | None:
    """What lies in a member, and how many of them, however they are arranged: a complex number is two. None for bytes
    and what is compared by its members."""
    count = 1
    while node is not None and node.get("tag") == "DW_TAG_array_type":
        for extent in array_extents(module, node):
            count *= extent or 0
        if not count or node.get("dataLocation"):
            return None
        node = plain_type(module, node.get("baseType"))
    if node is None or _is_record(node):
        return None
    bits = node.number("size") or 0
    if node.get("encoding") == _COMPLEX:
        bits, count = bits // 2, 2 * count
    of_them = f" [{count}]" if counted and count > 1 else ""
    if node.get("encoding") in (_REAL, _COMPLEX):
        return f"a number of {bits} bits{of_them}"
    words = node.kind == "DIBasicType" or node.get("tag") in (*POINTERS, "DW_TAG_enumeration_type")
    # Bytes are often room for something else.
    return f"an integer or address of {bits} bits{of_them}" if words and bits > 8 else None


def _shape(node: MDNode) -> str:
    tag = node.get("tag")
    return "pointer" if tag in POINTERS else str(tag)


def _is_record(node: MDNode) -> bool:
    return node.get("tag") in (*RECORDS, UNION)


def _is_complete(node: MDNode) -> bool:
    return _is_record(node) and bool(node.number("size")) and "DIFlagFwdDecl" not in str(node.get("flags"))


def _members(module: Module, record: MDNode) -> _Members:
    """The data members with names: where they begin, in bits, and their types."""
    found: _Members = {}
    for member in _listed(module, record):
        name = member_name(member)
        is_data = member.get("tag") == "DW_TAG_member" and "StaticMember" not in str(member.get("flags"))
        if is_data and name:
            found[name] = (member.number("offset") or 0, plain_type(module, member.get("baseType")))
    return found


def _listed(module: Module, node: MDNode, key: str = "elements") -> Iterator[MDNode]:
    """The members of a record; its `types` are a function's result and parameters."""
    listed = resolve(module, node.get(key))
    for value in () if listed is None else listed.operands:
        member = resolve(module, value)
        if member is not None:
            yield member


def _parts(module: Module, node: MDNode, *, inside: bool = False) -> Iterator[MDNode]:
    """The types that a type is made of or leads to; `inside`: of which it holds something."""
    inner = resolve(module, node.get("baseType"))
    if inner is not None and not (inside and node.get("tag") in POINTERS):
        yield inner
    if _is_record(node):
        yield from (member for member in _listed(module, node) if member.kind == "DIDerivedType")


@dataclass(frozen=True)
class _Name:
    """What C calls a structure: behind `struct`, or, where it has no name there, as an alias by `typedef`."""

    text: str
    is_alias: bool = False


def _records(module: Module, value: MDValue | str | None) -> Iterator[tuple[_Name, MDNode]]:
    """The complete structures that a type of a function or a variable names, itself or behind pointers."""
    node = resolve(module, value)
    if node is not None and node.kind == "DISubroutineType":
        for part in _listed(module, node, "types"):
            yield from _records(module, part)
    elif node is not None:
        for step in reached([node], lambda n: [] if _is_record(n) else _parts(module, n)):
            yield from _named(module, step)


def _named(module: Module, node: MDNode) -> Iterator[tuple[_Name, MDNode]]:
    """A complete structure with its name, or the structure without a name that this is a name for."""
    if _is_complete(node):
        yield _Name(_name(module, node)), node
    inner = resolve(module, node.get("baseType")) if node.get("tag") == "DW_TAG_typedef" else None
    name = node.string("name")
    if inner is not None and name and _is_complete(inner) and inner.string("name") is None:
        yield _Name(name, is_alias=True), inner


def _name(module: Module, record: MDNode) -> str:
    """With the scopes around it. A structure of a function's own, or without a name, is like no other."""
    names = [record.string("name") or f"{id(record)}"]
    scope = resolve(module, record.get("scope"))
    while scope is not None and scope.kind in _SCOPES:
        names.append(scope.string("name") or f"{id(scope)}")
        scope = resolve(module, scope.get("scope"))
    is_own = scope is not None and scope.kind not in ("DIFile", "DICompileUnit")
    return f"{id(record)}" if is_own else "::".join(reversed(names))


def _place(bits: int) -> str:
    return f"byte {bits // 8}" if bits % 8 == 0 else f"bit {bits}"


# -- symbols


def _type_of(module: Module, symbol: Function | GlobalVariable) -> MDValue | str | None:
    node = debug_node(module, symbol.metadata) if isinstance(symbol, Function) else variable(module, symbol)
    return None if node is None else node.get("type")


def _types_in(module: Module, symbol: Function | GlobalVariable) -> Iterator[MDNode]:
    """The types that a symbol has to do with: its own, and those of a function's variables."""
    values = [_type_of(module, symbol)]
    if isinstance(symbol, Function):
        subprogram = debug_node(module, symbol.metadata)
        kept = None if subprogram is None else resolve(module, subprogram.get("retainedNodes"))
        locals_ = [] if kept is None else [resolve(module, v) for v in kept.operands]
        values += [node.get("type") for node in locals_ if node is not None]
    for value in values:
        node = resolve(module, value)
        if node is not None and node.kind == "DISubroutineType":
            yield from _listed(module, node, "types")
        elif node is not None:
            yield node


def _uses_of_others(
    module: Module, units: _Units
) -> Iterator[tuple[Function | GlobalVariable, Function | GlobalVariable]]:
    """Each symbol with those that it uses and another file defines."""
    for user in (*module.functions.values(), *module.globals.values()):
        file = units.of(user)
        if file is None:
            continue
        for used in _used(user):
            other = units.of(used)
            if other is not None and other is not file:
                yield user, used


def _used(user: Function | GlobalVariable) -> Iterator[Function | GlobalVariable]:
    start: Iterable[Value]
    if isinstance(user, Function):
        start = (operand for i in user.instructions() for operand in i.operands)
    else:
        start = () if user.initializer is None else (user.initializer,)
    steps = Reached(start, lambda v: isinstance(v, Function | GlobalVariable | ConstantExpr | ConstantAggregate))
    for value in steps:
        if isinstance(value, ConstantExpr):
            steps.add(value.operands)
        elif isinstance(value, ConstantAggregate):
            steps.add(value.elements)
        elif isinstance(value, Function | GlobalVariable):
            yield value
