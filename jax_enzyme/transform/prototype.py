"""What the debug information says about a function as it stands in its source: place, parameter names and types.

All of it is optional: a function without debug information has an empty prototype.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.ir.debug import debug_node, is_written_in, resolve
from jax_enzyme.ir.metadata import MDNode, MDNull, MDString, MDValue
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.nodes import of_kind
from jax_enzyme.transform.source_types import POINTERS, SourceType, plain_type, source_type

INTENTS = MappingProxyType({"in": "je.intent.in", "out": "je.intent.out"})
"""The annotations of a procedure that list the arguments which Fortran's text says are only read, and only written."""
EXTENTS = "je.extents"
"""The annotation that says how large an array is in each direction, as Fortran's text does."""
CLASSES = "je.class"
"""The annotation that says of an argument that it is an object of a class, and where the type of that is described."""
ANY = "*"
"""What it says of the last direction, where Fortran does not say how many there are."""


@dataclass(frozen=True)
class Prototype:
    """`place` is `file:line`; `result` is None for `void`; `parameters` is None where the types are not known, and has
    those of the source: not the lengths of its texts, which a Fortran compiler adds. `nodes` and `result_node` are the
    same types as the debug information has them; `outputs` are the names of arguments that Fortran says are
    only written, `extents` the sizes of its arrays that other arguments say, fastest first, `classes` the constants
    that describe the types of its arguments that are objects of a class."""

    name: str
    place: str | None = None
    result: SourceType | None = None
    parameters: tuple[SourceType, ...] | None = None
    names: Mapping[int, str] | None = None
    is_fortran: bool = False
    is_rust: bool = False
    nodes: tuple[MDValue, ...] = ()
    result_node: MDValue | None = None
    outputs: frozenset[str] = frozenset()
    extents: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    classes: Mapping[str, str] = field(default_factory=dict[str, str])

    def parameter_name(self, index: int) -> str | None:
        """The name of a parameter in the source, counted from 0."""
        return (self.names or {}).get(index)

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        if self.is_rust:
            listed = [f"{self.parameter_name(i) or '_'}: {t.text}" for i, t in enumerate(self.parameters)]
            return f"fn {self.name}({', '.join(listed)})" + (f" -> {self.result.text}" if self.result else "")
        listed = [
            f"{t.text}{'' if t.text.endswith('*') else ' '}{self.parameter_name(i) or ''}".rstrip()
            for i, t in enumerate(self.parameters)
        ]
        return f"{self.result.text if self.result else 'void'} {self.name}({', '.join(listed)})"


def prototype(module: Module, function: Function) -> Prototype:
    """The prototype of a function, as far as it is known."""
    subprogram = debug_node(module, function.metadata)
    if subprogram is None:
        return Prototype(function.name)
    nodes = _nodes(module, subprogram)
    is_fortran = is_written_in(module, subprogram, "Fortran")
    types = None if nodes is None else [None if isinstance(n, MDNull) else source_type(module, n) for n in nodes]
    hidden = is_fortran and types is not None and types[0] is None
    names = _names(module, function, hidden=hidden, count=len(types or ()) - 1)
    classes = {name: described for name, described in _notes(module, subprogram, CLASSES)}
    if types and is_fortran and nodes:
        types[1:] = [
            known if names.get(i) in classes else _of_fortran(module, known, node)
            for i, (known, node) in enumerate(zip(types[1:], nodes[1:], strict=True))
        ]
    inputs = _of_intent(module, subprogram, "in")
    for index in [i for i, name in names.items() if types and name in inputs]:
        if types and index + 1 < len(types) and (known := types[index + 1]) is not None:
            types[index + 1] = replace(known, is_const=True)
    return Prototype(
        function.name,
        _place(module, subprogram),
        types[0] if types else None,
        None if types is None else tuple(t or SourceType("...") for t in types[1:]),
        names,
        is_fortran,
        is_written_in(module, subprogram, "Rust"),
        tuple(nodes or ())[1:],
        nodes[0] if nodes else None,
        _of_intent(module, subprogram, "out"),
        {array: extents for array, *extents in _notes(module, subprogram, EXTENTS)},
        classes,
    )


def _of_intent(module: Module, subprogram: MDNode, intent: str) -> frozenset[str]:
    """The arguments of which Fortran says so."""
    return frozenset(name for words in _notes(module, subprogram, INTENTS[intent]) for name in words[0].split(","))


def _notes(module: Module, subprogram: MDNode, kind: str) -> Iterator[list[str]]:
    """What the annotations of a kind say of a procedure."""
    annotations = resolve(module, subprogram.get("annotations"))
    for note in () if annotations is None else (resolve(module, note) for note in annotations.operands):
        if note is not None and note.operands[:1] == [MDString(kind)]:
            yield [word.text for word in note.operands[1:] if isinstance(word, MDString)]


def _of_fortran(module: Module, known: SourceType | None, node: MDValue) -> SourceType | None:
    """Arguments are described as what they are, and all passed by reference; as pointers, or as texts that lie
    elsewhere, those of which a descriptor is passed."""
    plain = plain_type(module, node)
    if known is None or plain is None:
        return known
    if plain.kind == "DIStringType" and plain.get("stringLocationExpression"):
        return replace(known, special="passed with a descriptor (a text of any length)")
    if plain.get("tag") not in POINTERS or any(piece.kind == "function" for piece in known.pieces):
        return known
    return replace(known, special="passed with a descriptor (`class`, allocatable or pointer)")


def _place(module: Module, subprogram: MDNode) -> str | None:
    file = resolve(module, subprogram.get("file"))
    name = None if file is None else file.string("filename")
    line = subprogram.number("line")
    return name if name is None or line is None else f"{name}:{line}"


def _names(module: Module, function: Function, *, hidden: bool, count: int) -> dict[int, str]:
    """Front ends differ in where they list a function's variables; the variables all name the function. `hidden`: of
    `count` parameters the first may be where the result goes, which flang does not number among the variables; every
    parameter has one, used or not."""
    subprogram = dict(function.metadata).get("dbg")
    found: dict[int, str] = {}
    others: list[str] = []
    for _, node in of_kind(module.metadata, "DILocalVariable"):
        if node.get("scope") == subprogram:
            number, name = node.number("arg"), node.string("name")
            if number is not None and name is not None:
                found[number - 1] = name
            elif name is not None and node.get("flags") is None:
                others.append(name)
    if not hidden or max(found, default=-1) != count - 2:
        return found
    return {0: others[0] if len(others) == 1 else "result"} | {index + 1: name for index, name in found.items()}


def _nodes(module: Module, subprogram: MDNode) -> list[MDValue] | None:
    """The result, then the parameters; None where there are no types."""
    kind = resolve(module, subprogram.get("type"))
    listed = None if kind is None else resolve(module, kind.get("types"))
    return None if listed is None or not listed.operands else list(listed.operands)
