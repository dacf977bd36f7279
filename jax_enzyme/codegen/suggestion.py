"""The signature of a function as its debug information tells it, with guesses for what that does not tell.

    void axpy(int n, double a, const double *x, double *y) { for (...; i < n; ...) y[i] += a * x[i]; }

    n: i32, a: f64, x: f64[n], inout y: f64[n]      # guessed: shapes of x, y; directions of y

Types come from debug information, sizes from the places that the function touches, directions from what it writes and
reads first.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.touched import ROWS, Root, Size, Touched, touched
from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.codegen.canonical import flat
from jax_enzyme.errors import SignatureError
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import reader
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ITEM_BYTES
from jax_enzyme.ir.metadata import MDNode, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.transform.described import described
from jax_enzyme.transform.layouts import (
    IN_REGISTERS,
    Member,
    alternatives,
    composite_type,
    declared_counts,
    elements_of,
    is_object,
    members_of,
    pointed_at,
    record_type,
    structure_bytes,
)
from jax_enzyme.transform.prototype import ANY, Prototype, prototype
from jax_enzyme.transform.retyping import literal_structures
from jax_enzyme.transform.source_types import UNION, plain_type, source_type

UNKNOWN = "?"


@dataclass(frozen=True)
class Given:
    """What the user says about parameters, by name: shapes with their brackets, and which come out; where none is said
    to, directions are guessed."""

    shapes: Mapping[str, str]
    out: Sequence[str]
    inout: Sequence[str]


def suggested(program: Program, given: Given | None = None) -> str:
    """The text of a signature. SignatureError where the source has no debug information, where names in `given` are not
    there, and where what it leaves open is not known for certain."""
    module = reader.parse(program.ir)
    literal_structures(module)
    function = module.symbol(program.symbol)
    known = prototype(module, function) if isinstance(function, Function) else Prototype(program.symbol)
    if known.parameters is None:
        raise SignatureError(
            f"nothing is known of the parameters of `{program.symbol}`",
            program.source_name,
            "write the signature, or compile with debug information (-g)",
        )
    optimised = flat(module, program.symbol)
    flat_function = optimised.functions.get(program.symbol)
    roots = None if flat_function is None else _roots(module, flat_function, known)
    if flat_function is None or roots is None:  # its parameters are not those of the source
        return _Suggestion(module, known, {}, given).text()
    passed = {roots[a.index].index for a in flat_function.arguments if a.index in roots and a.type != T.PTR}
    values = frozenset(passed if known.is_fortran else ())
    return _Suggestion(module, known, touched(optimised, flat_function, roots), given, values).text()


def _roots(module: Module, function: Function, known: Prototype) -> dict[int, Root] | None:
    """The parameters of the source by the numbers of the compiled function's, with places in them where one is passed
    in several words; nothing for where a structure goes that is returned. None where some are not of the source."""
    sizes = DataLayout(module)
    returned = sum(any(word.startswith("sret") for word in a.attributes) for a in function.arguments[:1])
    arguments = function.arguments[returned:]
    roots: dict[int, Root] = {}
    for index, node in enumerate(known.nodes):
        size, place = 1 if known.is_fortran else _bytes_by_value(module, node), 0
        is_record = not known.is_fortran and composite_type(module, node) is not None
        while place < size:
            if not arguments:
                return None
            argument, *arguments = arguments
            is_elsewhere = is_object(module, node) or any(word.startswith("byval") for word in argument.attributes)
            is_copy = isinstance(argument.type, T.PointerType) and (size > IN_REGISTERS or is_elsewhere)
            roots[argument.index] = Root(index, (place,) if is_record and not is_copy else ())
            place = size if is_copy else -(-(place + sizes.store_size(argument.type)) // 8) * 8
    return None if any(argument.type != T.I64 for argument in arguments) else roots  # the lengths of texts


def _bytes_by_value(module: Module, node: MDValue) -> int:
    """The bytes of what a parameter in C is: those of a pointer, where it is none or nothing is known."""
    plain = plain_type(module, node)
    return max(1, (0 if plain is None else plain.number("size") or 0) // 8)


@dataclass
class _Suggestion:
    """`values` are the parameters of a Fortran procedure that are passed by value."""

    module: Module
    known: Prototype
    found: Mapping[Root, Touched]
    given: Given | None
    values: frozenset[int] = frozenset()
    names: dict[Root, str] = field(default_factory=dict[Root, str])
    shapes: list[str] = field(default_factory=list[str])
    directions: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    enclosing: list[MDNode] = field(default_factory=list[MDNode])
    chains: list[str] = field(default_factory=list[str])

    def text(self) -> str:
        parameters = [self._name(i) for i in range(len(self.known.nodes))]
        self._check(parameters)
        for index, node in enumerate(self.known.nodes):
            self._collect(index, node, parameters[index])
        listed = [self._parameter(i, node, parameters[i]) for i, node in enumerate(self.known.nodes)]
        result = self._result()
        if self.given is not None and self.open:
            raise SignatureError(
                f"the sizes of {', '.join(f'`{n}`' for n in self.open)} are not known for certain",
                f"{self.known.place}: {self.known}",
                f'add them: shapes="{", ".join(f"{n}[...]" for n in self.open)}"',
            )
        text = ", ".join(listed) + result
        if self.given is not None and UNKNOWN in text:
            raise SignatureError(
                f"not all of the parameters of `{self.known.name}` are known",
                f"{self.known.place}: {self.known}",
                f"write the signature, with something for each `{UNKNOWN}`: {text}{self._remedy()}",
            )
        guesses = [f"{what} of {', '.join(n)}" for what, n in _notes(self) if n]
        return text + (f"  # guessed: {'; '.join(guesses)}" if guesses else "") + self._remedy()

    def _remedy(self) -> str:
        if not self.chains:
            return ""
        chains = ", ".join(self.chains)
        return f"  # no signature has the chain at {chains}: write a function beside it that builds it from arrays"

    def _check(self, parameters: Sequence[str]) -> None:
        if self.given is None:
            return
        for name in (*self.given.shapes, *self.given.out, *self.given.inout):
            if name.partition(".")[0] not in parameters:
                raise SignatureError(
                    f"`{self.known.name}` has no parameter `{name}`",
                    f"{self.known.place}: {self.known}",
                    f"it has {', '.join(parameters)}",
                )

    def _name(self, index: int) -> str:
        name = self.known.parameter_name(index) or f"a{index + 1}"
        return _allowed(name)

    def _collect(self, index: int, node: MDValue, name: str) -> None:
        """What the integers of the function are called."""
        record = self._record_behind(node)
        if record is not None:
            self._collect_members(index, record, name, 0)
        elif self._is_value(index, node):
            self.names[Root(index)] = name
        else:
            self.names[Root(index, (0,))] = name

    def _collect_members(self, index: int, record: MDNode, name: str, start: int) -> None:
        for member in self._members_of(record):
            full, offset = f"{name}.{_allowed(member.name)}", start + member.offset
            inner = composite_type(self.module, member.type)
            if inner is None:
                self.names[Root(index, (offset,))] = full
            else:
                self._collect_members(index, inner, full, offset)

    def _record_behind(self, node: MDValue) -> MDNode | None:
        try:
            return record_type(self.module, pointed_at(self.module, node))
        except KeyError:
            return composite_type(self.module, elements_of(self.module, node))

    def _members_of(self, node: MDNode) -> list[Member]:
        """Those of a structure; of a union, what is as long as any, and comes first."""
        if node.get("tag") != UNION:
            return members_of(self.module, node)
        found = alternatives(self.module, node)
        return max(found, key=lambda members: max(m.offset + m.size for m in members), default=[])

    def _is_value(self, index: int, node: MDValue) -> bool:
        plain = plain_type(self.module, node)
        if plain is None or plain.get("tag") == "DW_TAG_array_type":
            return False
        if self.known.is_fortran:
            return index in self.values
        try:
            pointed_at(self.module, node)
        except KeyError:
            return True
        return False

    # -- parameters

    def _parameter(self, index: int, node: MDValue, name: str) -> str:
        root = Root(index)
        if self._is_value(index, node):
            record = composite_type(self.module, node)
            kind = self._structure(record, name, root) if record is not None else self._dtype(node)
            return f"{name}: {kind}"
        try:
            behind: MDValue | str | None = pointed_at(self.module, node)
        except KeyError:
            behind = elements_of(self.module, node)
        plain = plain_type(self.module, behind)
        if plain is not None and plain.kind == "DISubroutineType":
            return f"{name}: fn({UNKNOWN})"
        known = (self.known.parameters or ())[index]
        special = source_type(self.module, node).special if known.is_record else known.special
        if special is not None and described(self.module, node) is None:
            return f"{name}: {UNKNOWN}"  # no plain memory can be passed
        prefix = self._direction(root, name, known.is_const)
        record = record_type(self.module, behind)
        if record is not None and name in self.known.classes:
            return f"inout {name}: {self._structure(record, name, root)}*"
        if record is not None and self.known.is_fortran and self._pointee(node):
            return f"{name}: {{{UNKNOWN}}}*"  # a descriptor
        if record is not None:
            return f"{prefix}{name}: {self._structure(record, name, root)}{self._count(record, root, name, node)}"
        return f"{prefix}{name}: {self._array(root, name, node, behind)}"

    def _array(self, root: Root, name: str, node: MDValue | str | None, behind: MDValue | str | None) -> str:
        """A type and its brackets, through the arrays of pointers."""
        if self.given is not None and name in self.given.shapes:
            innermost = behind
            while (further := self._pointee(innermost)) is not None:
                innermost = further[0]
            return f"{self._dtype(innermost)}{self.given.shapes[name]}"
        further = self._pointee(behind)
        if further is None:
            dtype = self._dtype(behind)
            return f"{dtype}{self._dims(root, name, ITEM_BYTES[dtype], node) if dtype != UNKNOWN else '[?]'}"
        rows = self._dims(root, name, 8, node)
        inner = self._array(Root(root.index, (*root.path, ROWS)), name, behind, further[0])
        dtype, _, dims = inner.partition("[")
        return f"{dtype}{rows}[{dims}"

    def _count(self, record: MDNode, root: Root, name: str, node: MDValue | str | None) -> str:
        """How many structures are behind a pointer."""
        dims = self._dims(root, name, structure_bytes(self.module, record), node)
        brackets = "*" if dims == "[]" or name in self.open else dims
        self.open = [other for other in self.open if other != name]
        return brackets

    def _pointee(self, value: MDValue | str | None) -> tuple[MDValue | str | None] | None:
        try:
            return (pointed_at(self.module, value),)
        except KeyError:
            return None

    def _structure(self, record: MDNode, name: str, root: Root, start: int = 0) -> str:
        """A structure so many bytes from where `root` leads, or is."""
        self.enclosing.append(record)
        listed = [
            self._member(
                replace(member, name=own), Root(root.index, (*root.path, start + member.offset)), f"{name}.{own}"
            )
            for member in self._members_of(record)
            for own in [_allowed(member.name)]
        ]
        self.enclosing.pop()
        return "{" + (", ".join(listed) or UNKNOWN) + "}"

    def _is_followed(self, root: Root) -> bool:
        """Whether a pointer to a node may be followed to nobody knows how many."""
        known = self.found.get(root) or self.found.get(Root(root.index, root.path[:-1]))
        return known is not None and not known.is_exact

    def _member(self, member: Member, root: Root, full: str) -> str:
        further = self._pointee(member.type)
        known = described(self.module, member.type)
        if known is not None and known.dtypes:
            shapes = {} if self.given is None else self.given.shapes
            dims = shapes.get(full, f"[{','.join([UNKNOWN] * known.rank)}]")
            return f"{self._direction(root, full, False)}{member.name}: {known.dtypes[0]}{dims}*"
        if further is None:
            return f"{member.name}: {self._in_place(member, root, full)}"
        plain, record = plain_type(self.module, further[0]), record_type(self.module, further[0])
        if record is not None and record in self.enclosing and self._is_followed(root):
            self.chains.append(full)
            return f"{member.name}: {UNKNOWN}"
        if root not in self.found and not self._mentioned(full):
            return f"{member.name}: null"
        if plain is not None and plain.kind == "DISubroutineType":
            return f"{member.name}: fn({UNKNOWN})"
        if record is not None:
            count = self._count(record, root, full, member.type).removesuffix("*")
            return f"{member.name}: {self._structure(record, full, root)}{count}*"
        prefix = self._direction(root, full, False)
        return f"{prefix}{member.name}: {self._array(root, full, member.type, further[0])}*"

    def _in_place(self, member: Member, root: Root, full: str) -> str:
        if member.known.special is not None:
            return UNKNOWN
        inner = elements_of(self.module, member.type)
        record = record_type(self.module, inner)
        if record is not None:
            size = structure_bytes(self.module, record)
            # Of an array of them, what the function does to one is not what it does to all.
            *path, start = (*root.path, 0) if member.size > size else root.path
            assert isinstance(start, int)  # where this member is
            text = self._structure(record, full, Root(root.index, tuple(path)), start)
        elif member.room is not None:
            text, size = (f"u{8 * member.size}", member.size) if member.size in (1, 2, 4, 8) else ("u8", 1)
        else:
            text = self._dtype(inner)
            size = ITEM_BYTES.get(text, member.size)
        if member.size == 0:
            return f"{text}[{UNKNOWN}]"  # a flexible array member
        return text if member.size <= size else f"{text}[{member.size // max(size, 1)}]"

    def _mentioned(self, name: str) -> bool:
        return self.given is not None and name in (*self.given.shapes, *self.given.out, *self.given.inout)

    def _dtype(self, value: MDValue | str | None) -> str:
        pieces = source_type(self.module, value).pieces
        numbers = [p for p in pieces if p.kind == "number"]
        if not numbers:
            return "u8" if any(p.text == "unsigned char" for p in pieces) else "i8"
        known = next((p.dtypes[0] for p in numbers if p.dtypes), None)
        if known is None and self.given is not None:
            raise SignatureError(
                f"no dtype stands for `{numbers[0].text}`",
                f"{self.known.place}: {self.known}",
                "write a function beside it that takes double, and converts",
            )
        return known or UNKNOWN

    # -- guesses

    def _direction(self, root: Root, name: str, is_const: bool) -> str:
        if self.given is not None and (self.given.out or self.given.inout):
            return "out " if name in self.given.out else "inout " if name in self.given.inout else ""
        known = self.found.get(root)
        if not root.path and self.known.parameter_name(root.index) in self.known.outputs:
            return "out "
        if is_const or known is None or not known.writes:
            return ""
        self.directions.append(name)
        return "out " if known.written_first else "inout "

    def _dims(self, root: Root, name: str, item: int, node: MDValue | str | None) -> str:
        known_shape = described(self.module, node)
        if known_shape is not None:
            rank = known_shape.rank
            return f"[{','.join(f'{name}_{axis}' for axis in range(rank))}]" if rank > 1 else f"[{name}_size]"
        plain = plain_type(self.module, node)
        if self.known.is_fortran and plain is not None and plain.kind == "DIBasicType":
            return "[]"
        counts = declared_counts(self.module, node)
        if counts:
            return f"[{','.join(map(str, reversed(counts)))}]"
        if extents := () if root.path else self.known.extents.get(self.known.parameter_name(root.index) or "", ()):
            *extents, last = map(_allowed, extents)
            return f"[{','.join([self._last(root, name, item, extents) if last == ANY else last, *reversed(extents)])}]"
        known = self.found.get(root)
        dims = None if known is None else self._extent(known.sizes, item)
        if dims is None:
            self.open.append(name)
            return f"[{UNKNOWN}]"
        if dims:
            self.shapes.append(name)
            if known is not None and not known.is_exact:
                self.open.append(name)
        return f"[{dims}]"

    def _last(self, root: Root, name: str, item: int, others: Sequence[str]) -> str:
        """How many rows of so many elements hold all sizes: what is touched of the last of them is no more than one."""
        known = self.found.get(root)
        row = next((r for r, n in self.names.items() if [n] == others), None)
        sizes = [size.terms for size in known.sizes if size.constant is None] if known is not None and row else []
        rows = [_rows(terms, row, item) for terms in sizes if row]
        found = {self._written(Size(terms), item) if terms else None for terms in rows}
        if len(found) != 1 or None in found or (known is not None and not known.is_exact):
            self.open.append(name)
        if len(found) != 1 or None in found:
            return UNKNOWN
        self.shapes.append(name)
        return str(*found)

    def _extent(self, sizes: Sequence[Size], item: int) -> str | None:
        """The elements that hold all sizes, as text; an empty one for a single element."""
        varying = [size for size in sizes if size.constant is None]
        if not varying:
            constants = [size.constant or 0 for size in sizes]
            count = -(-max(constants, default=0) // item)
            return None if not sizes or count <= 0 else "" if count == 1 else str(count)
        parts = [{k: v for k, v in size.terms.items() if k} for size in varying]
        if any(part != parts[0] for part in parts):
            return None
        most = max(varying, key=lambda size: size.terms.get((), 0))
        return self._written(most, item)

    def _written(self, size: Size, item: int) -> str | None:
        """So many bytes in elements, of which the last may be touched in part."""
        rest = -(size.terms.get((), 0) // -item)
        values = {**{key: value for key, value in size.terms.items() if key}, **({(): rest * item} if rest else {})}
        named = {key: [self.names.get(root) for root in key] for key in values}
        if any(name is None for names in named.values() for name in names):
            return None
        common = math.gcd(item, *values.values())
        terms, below = {key: value // common for key, value in values.items()}, item // common
        (only, *more) = terms
        if not more and below == terms[only] == 1 and len(only) == 2:
            for stride in size.strides:
                if len(stride) == 1 and stride[0][1] == item and len(stride[0][0]) == 1 and stride[0][0][0] in only:
                    inner = stride[0][0][0]
                    outer = only[0] if only[1] == inner else only[1]
                    return f"{self.names[outer]},{self.names[inner]}"
        texts: list[str] = []
        for key in sorted(terms, key=lambda key: -len(key)):
            factors = [str(name) for name in named[key]]
            value = terms[key]
            if not factors or abs(value) != 1:
                factors.insert(0, str(abs(value)))
            sign = "-" if value < 0 else "+" if texts else ""
            texts.append(sign + "*".join(factors))
        whole = "".join(texts)
        return whole if below == 1 else f"{whole}/{below}" if not more else f"({whole})/{below}"

    def _result(self) -> str:
        known = self.known.result
        record = None if self.known.result_node is None else composite_type(self.module, self.known.result_node)
        if record is not None:
            return f" -> {self._structure(record, 'return', Root(len(self.known.nodes)))}"
        if known is None or known.is_pointer:
            return ""
        if not any(piece.kind == "number" for piece in known.pieces):
            return ""
        return f" -> {self._dtype(self.known.result_node)}"


def _rows(terms: Mapping[tuple[Root, ...], int], row: Root, item: int) -> dict[tuple[Root, ...], int]:
    """How many rows hold so many bytes, times the bytes of an element: `m*l - l + n` elements are m rows of l."""
    rows: dict[tuple[Root, ...], int] = {(): 0}
    for key, value in terms.items():
        if row in key:
            index = key.index(row)
            rows[(*key[:index], *key[index + 1 :])] = value
    if any(row not in key for key in terms):
        rows[()] += item
    return {key: value for key, value in rows.items() if value}


def _allowed(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _notes(suggestion: _Suggestion) -> list[tuple[str, list[str]]]:
    certain = list(dict.fromkeys(name for name in suggestion.shapes if name not in suggestion.open))
    return [("shapes", certain), ("directions", suggestion.directions)]
