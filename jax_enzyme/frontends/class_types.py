"""Classes of C++ that debug information names and does not describe.

    struct shown { shown(); double a; };  double f(shown *p)      !DICompositeType(name: "shown", flags: DIFlagFwdDecl)

clang describes a class where its constructors or virtual functions are, and where its members are used: in what
includes large headers that is half as long as all classes. Whoever has a kernel that such a class is passed to asks
for all of them (`ALL`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDRef, MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.reader import printed_nodes

ALL = "-fstandalone-debug"
"""The flag by which clang describes all classes that are used."""

_SUBPROGRAM = r'^define [^@\n]*@(?:"{0}"|{0})\(.* !dbg !(\d+)'
_STATIC = "DIFlagStaticMember"
_MEMBERS = ("DW_TAG_member", "DW_TAG_inheritance")


def only_names(ir: str, symbols: Collection[str]) -> bool:
    """Whether the types of some functions of a module lead to such a class."""
    module = Module(metadata=printed_nodes(ir))
    pattern = re.compile(_SUBPROGRAM.format(f"(?:{'|'.join(map(re.escape, symbols))})"), re.M)
    found = Reached(MDRef(match[1]) for match in pattern.finditer(ir))
    for reference in found:
        node = module.metadata[reference.number]
        if "DIFlagFwdDecl" in str(node.get("flags")):
            return True
        found.add(_leads_to(module, node))
    return False


def _leads_to(module: Module, node: MDNode) -> Iterator[MDRef]:
    """The types that a type is made of, in memory or behind pointers: not those that a class has functions of."""
    if node.kind == "DICompositeType":
        yield from _references(node.get("baseType"))  # of an array
        for value in _listed(module, node.get("elements")):
            member = resolve(module, value)
            if member is not None and member.get("tag") in _MEMBERS and _STATIC not in str(member.get("flags")):
                yield from _references(value)
    elif node.kind == "DISubroutineType":
        for value in _listed(module, node.get("types")):
            yield from _references(value)
    else:
        yield from _references(node.get("type" if node.kind == "DISubprogram" else "baseType"))


def _listed(module: Module, value: MDValue | str | None) -> list[MDValue]:
    node = resolve(module, value)
    return [] if node is None else node.operands


def _references(value: MDValue | str | None) -> Iterator[MDRef]:
    if isinstance(value, MDRef):
        yield value
