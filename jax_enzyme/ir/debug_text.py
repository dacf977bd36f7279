"""Of the debug information in a module's text, what says where instructions come from, and what some functions are
passed: no other types.

    before    !20 = distinct !DISubprogram(name: "g", scope: !5, file: !1,     after    !20 = distinct !DISubprogram(
                line: 7, type: !22, declaration: !9, templateParams: !11, ...)            name: "g", file: !1, line: 7,
              !22 = !DISubroutineType(types: !23)                                         type: !30, ...)
              !31 = !DILocalVariable(name: "x", scope: !20, type: !24)                  !31 = ...(name: "x", type: !300)

In C++ the types are several times as long as the code, and only those of a kernel's own parameters are read. The text
is changed before anything reads it. LLVM writes each numbered node on a line of its own, behind all functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

SCOPES = ("DIFile", "DISubprogram", "DILexicalBlock", "DILexicalBlockFile", "DICompileUnit")
"""What a function may lie in where no types are."""
OF_SUBPROGRAMS = ("declaration", "templateParams", "retainedNodes", "containingType", "thrownTypes", "annotations")
OF_UNITS = ("enums", "retainedTypes", "globals", "imports", "macros")
"""The fields of functions and of compile units that lead to types."""

_NODE = re.compile(r"^!(\d+) = (.*)\n", re.M)
_REFERENCE = re.compile(r"!(\d+)")
_DEFINED = re.compile(r'^define [^@\n]*@(?:"([^"]*)"|([-\w$.]+))\(.*!dbg !(\d+) .*\{$', re.M)
_KIND = re.compile(r"(?:distinct )?!(\w+)\(")
_SCOPE = re.compile(r", scope: !(\d+)")
_TYPE = re.compile(r", type: !\d+")


def _fields(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf", (?:{'|'.join(names)}): !\d+")


_UNWANTED = {
    "DISubprogram": _fields(OF_SUBPROGRAMS),
    "DICompileUnit": _fields(OF_UNITS),
    "DIGlobalVariable": _fields(("declaration", "templateParams")),
}
_UNTYPED = '!DIBasicType(name: "?", size: 8, encoding: DW_ATE_unsigned)\n'
"""What variables are: LLVM makes no code of those that have no type at all."""


def without_types(text: str, functions: Collection[str]) -> str:
    """The text of a module, as LLVM writes it, with the types of the parameters of some functions and no others."""
    nodes = dict(_NODE.findall(text))
    code = _NODE.sub("", text)
    whole = {number for quoted, plain, number in _DEFINED.findall(code) if (quoted or plain) in functions}
    untyped = str(1 + max(map(int, nodes), default=-1))
    kept: dict[str, str] = {}
    pending = [number for number in dict.fromkeys(_REFERENCE.findall(code)) if number in nodes]
    while pending:
        number = pending.pop()
        if number in kept:
            continue
        kept[number] = node = nodes[number] if number in whole else _plain(nodes[number], nodes, untyped)
        pending += [other for other in _REFERENCE.findall(node) if other in nodes and other not in kept]
    left = "".join(f"!{number} = {kept[number]}\n" for number in nodes if number in kept)
    if f" type: !{untyped}," in left or f" type: !{untyped})" in left:
        left += f"!{untyped} = !DISubroutineType(types: !{{}})\n"
    if f" type: !{untyped}0" in left:
        left += f"!{untyped}0 = {_UNTYPED}"
    return code + left


def _plain(node: str, nodes: dict[str, str], untyped: str) -> str:
    """A node without what leads to types. A member function lies in its file rather than in its class."""
    kind = _kind(node)
    if kind == "DILocalVariable":
        return _TYPE.sub(f", type: !{untyped}0", node)
    unwanted = _UNWANTED.get(kind)
    if unwanted is None:
        return node
    node = unwanted.sub("", node)
    if kind != "DISubprogram":
        return node
    scope = _SCOPE.search(node)
    if scope is not None and _kind(nodes[scope[1]]) not in SCOPES:
        node = node.replace(scope[0], "", 1)
    return _TYPE.sub(f", type: !{untyped}", node)


def _kind(node: str) -> str:
    """What the node describes; empty where it is a list."""
    found = _KIND.match(node)
    return "" if found is None else found[1]
