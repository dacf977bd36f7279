"""Where in the user's source an instruction comes from, as far as debug information says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.lexer import escape, unescape
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MDValue
from jax_enzyme.ir.module import Function, GlobalVariable, Module

_OF_PACKAGES = frozenset(("site-packages", "dist-packages"))
"""Folders of packages that are installed. The headers of C and C++ lie there, perhaps below the user's own folder."""


_APART = "18"
"""The discriminator of a scope that an instruction of a copied function has to itself."""
_OF_RUST = "/rustc/"
"""The folder that rustc says the sources of its library lie in."""


def location(module: Module, instruction: Instruction) -> str | None:
    """`file:line:column` of an instruction: of the innermost inlined call that lies in the user's own files, or the
    innermost at all. Where all lines are unknown (0), the function's own line. None without debug information."""
    places = list(_places(module, instruction.metadata))
    if not places:
        return _noted(module, instruction)
    ours = _user_directories(module)
    known = [place for place in places if place[1]]
    for place in known:
        if _is_users(place[0], ours):
            return _spell(place)
    return _spell(known[0]) if known else _function_line(module, instruction.metadata)


NOTED = "je.place"
"""Metadata of an instruction: its place as text. It goes along where debug locations, which belong to one function
alone, cannot: into derivatives."""


def note_places(module: Module, instructions: Iterable[Instruction]) -> None:
    """Writes down where instructions come from, so that copies of them in other functions tell."""
    for instruction in instructions:
        note_place(module, instruction, location(module, instruction))


def note_place(module: Module, instruction: Instruction, place: str | None) -> None:
    """The same of one instruction, and a place that is known."""
    if place is not None and all(kind != NOTED for kind, _ in instruction.metadata):
        note = add_node(module, MDNode(operands=[MDString(escape(place))]))
        instruction.metadata = [*instruction.metadata, (NOTED, note)]


def _noted(module: Module, instruction: Instruction) -> str | None:
    for kind, value in instruction.metadata:
        node = resolve(module, value) if kind == NOTED else None
        if node is not None and isinstance(node.operands[0], MDString):
            return unescape(node.operands[0].text).encode("latin-1").decode("utf-8", "replace")
    return None


def trace(module: Module, instruction: Instruction) -> list[str]:
    """Where an instruction comes from, innermost first, then the calls through which it was inlined."""
    return [_spell(place) for place in _places(module, instruction.metadata)]


def set_apart(module: Module, instruction: Instruction) -> None:
    """Gives an instruction of a copied function, in place, a scope that those at the same place have not: LLVM hands it
    on to what it makes of the instruction, wherever that is inlined."""
    node = debug_node(module, instruction.metadata)
    scope = None if node is None else node.get("scope")
    if node is None or scope is None:
        return
    file = [("file", value) for of in (resolve(module, scope),) if of is not None and (value := of.get("file"))]
    block = MDNode("DILexicalBlockFile", fields=[("scope", scope), *file, ("discriminator", _APART)], distinct=True)
    own = [(key, add_node(module, block) if key == "scope" else value) for key, value in node.fields]
    place = add_node(module, MDNode("DILocation", fields=own))
    instruction.metadata = [(kind, place if kind == "dbg" else value) for kind, value in instruction.metadata]


def is_set_apart(module: Module, instruction: Instruction) -> bool:
    node = debug_node(module, instruction.metadata)
    scope = None if node is None else resolve(module, node.get("scope"))
    return scope is not None and scope.kind == "DILexicalBlockFile" and scope.get("discriminator") == _APART


def function_name(module: Module, instruction: Instruction) -> str | None:
    """What the function of the source that an instruction belongs to is called there."""
    subprogram = _subprogram(module, instruction.metadata)
    return None if subprogram is None else subprogram.string("name")


def comes_from_fortran(module: Module, instruction: Instruction) -> bool:
    """Whether the function of the source that an instruction belongs to is one of Fortran's."""
    subprogram = _subprogram(module, instruction.metadata)
    return subprogram is not None and is_written_in(module, subprogram, "Fortran")


def is_written_in(module: Module, subprogram: MDNode, language: Literal["Fortran", "Rust"]) -> bool:
    """Whether a function of a source is one of a language's, of whichever standard."""
    unit = resolve(module, subprogram.get("unit"))
    return unit is not None and str(unit.get("language")).startswith(f"DW_LANG_{language}")


def function_location(module: Module, function: Function) -> str | None:
    """`file:line` of a function's definition; where that is not known, of the first of those that were inlined into
    it."""
    node = debug_node(module, function.metadata)
    if node is not None:
        return node_line(module, node)
    outermost = (_outermost(module, i.metadata) for i in function.instructions())
    found = next((scope for scope in outermost if scope is not None), None)
    return None if found is None else node_line(module, found)


def unit(module: Module, symbol: Function | GlobalVariable) -> MDNode | None:
    """The file that defines a symbol, where debug information says so of a function, or of a variable at file scope."""
    if isinstance(symbol, Function):
        subprogram = None if symbol.is_declaration else debug_node(module, symbol.metadata)
        return None if subprogram is None else resolve(module, subprogram.get("unit"))
    described = variable(module, symbol)
    scope = None if described is None else resolve(module, described.get("scope"))
    return scope if scope is not None and scope.kind == "DICompileUnit" else None


def variable(module: Module, symbol: GlobalVariable) -> MDNode | None:
    """What describes a variable at file scope."""
    expression = debug_node(module, symbol.metadata)
    return None if expression is None else resolve(module, expression.get("var"))


def source_name(module: Module, symbol: GlobalVariable) -> str:
    """What the source calls a variable at file scope; its symbol where that is not known."""
    described = variable(module, symbol)
    return symbol.name if described is None else described.string("name") or symbol.name


def add_node(module: Module, node: MDNode) -> MDRef:
    """A numbered node more, in place."""
    number = len(module.metadata)  # and not behind the greatest, for which all would be looked at each time
    while str(number) in module.metadata:
        number += 1
    module.metadata[str(number)] = node
    return MDRef(str(number))


def add_loop(module: Module, held: Iterable[MDValue], more: Iterable[MDNode] = ()) -> MDRef:
    """A numbered node that stands for one loop, in place: it names itself, what is `held`, and nodes that are added."""
    own = add_node(module, MDNode(distinct=True))
    module.metadata[own.number] = MDNode(operands=[own, *held, *(add_node(module, n) for n in more)], distinct=True)
    return own


def resolve(module: Module, value: MDValue | str | None) -> MDNode | None:
    """The node that a reference names, or the node itself; None for all else."""
    if isinstance(value, MDRef):
        return module.metadata.get(value.number)
    return value if isinstance(value, MDNode) else None


def debug_node(module: Module, metadata: Sequence[tuple[str, MDValue]]) -> MDNode | None:
    """The place of an instruction, or what describes a function or a variable; `metadata` is what it has."""
    for kind, value in metadata:
        if kind == "dbg":
            return resolve(module, value)
    return None


def _places(module: Module, metadata: Sequence[tuple[str, MDValue]]) -> Iterator[tuple[str, int, int]]:
    node = debug_node(module, metadata)
    while node is not None and node.kind == "DILocation":
        file = _file_of(module, resolve(module, node.get("scope")))
        if file is not None:
            yield file, node.number("line") or 0, node.number("column") or 0
        node = resolve(module, node.get("inlinedAt"))


def _file_of(module: Module, scope: MDNode | None) -> str | None:
    """A scope without a file has that of the scope around it."""
    while scope is not None:
        file = resolve(module, scope.get("file"))
        if file is not None:
            name, folder = unescape(file.string("filename") or "?"), file.string("directory") or ""
            return f"{folder}/{name}" if folder.startswith(_OF_RUST) else name
        scope = resolve(module, scope.get("scope"))
    return None


def _user_directories(module: Module) -> list[str]:
    """Where the compile units' main files lie. A relative file name is the user's anyway."""
    found: list[str] = []
    for value in module.named_metadata.get("llvm.dbg.cu", ()):
        unit = resolve(module, value)
        file = resolve(module, unit.get("file")) if unit is not None else None
        if file is not None:
            name = os.path.join(file.string("directory") or "", file.string("filename") or "")
            found.append(os.path.dirname(unescape(name)))
    return found


def _is_users(file: str, directories: list[str]) -> bool:
    if not _OF_PACKAGES.isdisjoint(file.split(os.sep)):
        return False
    if not os.path.isabs(file):
        return True
    return any(directory and file.startswith(directory + os.sep) for directory in directories)


def _function_line(module: Module, metadata: Sequence[tuple[str, MDValue]]) -> str | None:
    scope = _subprogram(module, metadata)
    return None if scope is None else node_line(module, scope)


def _outermost(module: Module, metadata: Sequence[tuple[str, MDValue]]) -> MDNode | None:
    """The function that a line is in, or was before its own was inlined."""
    node = debug_node(module, metadata)
    while node is not None and (around := resolve(module, node.get("inlinedAt"))) is not None:
        node = around
    return _subprogram(module, (("dbg", node),)) if node is not None else None


def _subprogram(module: Module, metadata: Sequence[tuple[str, MDValue]]) -> MDNode | None:
    node = debug_node(module, metadata)
    scope = resolve(module, node.get("scope")) if node is not None else None
    while scope is not None and scope.kind != "DISubprogram":
        scope = resolve(module, scope.get("scope"))
    return scope


def node_line(module: Module, node: MDNode) -> str | None:
    """`file:line` of what is described: a function, a type."""
    file = _file_of(module, node)
    return None if file is None else _spell((file, node.number("line") or 0, 0))


def _spell(place: tuple[str, int, int]) -> str:
    file, line, column = place
    if file.startswith(_OF_RUST):
        file = file.removeprefix(_OF_RUST).partition("/")[2]
    return f"{file}:{line}:{column}" if column else f"{file}:{line}"
