"""Of debug information, what says where an instruction comes from; the rest goes.

    before    #dbg_declare(ptr %x, !31, !DIExpression(), !40)                after    (nothing)
              !20 = distinct !DISubprogram(name: "f", scope: !5,                      !20 = distinct !DISubprogram(
                file: !1, line: 7, type: !22, unit: !2,                                 name: "f", file: !1, line: 7,
                declaration: !9, templateParams: !11, ...)                              type: !22, unit: !2, ...)
              !22 = !DISubroutineType(types: !23)                                     !22 = ...(types: !{})

Types are read once, when the kernel is held against its signature. In C++ they and the names of local variables are
several times as long as the code, and every pass goes through LLVM's text. One empty type of functions stays: where
LLVM changes how a function is called it notes so in the type, and does not look whether there is one.
"""

from __future__ import annotations

from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import note_places
from jax_enzyme.ir.metadata import MDNode, MDRef
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.unused_metadata import drop_unused_metadata

_LEFT_OUT = {
    "DISubprogram": frozenset(
        ("declaration", "templateParams", "retainedNodes", "containingType", "thrownTypes", "annotations")
    ),
    "DICompileUnit": frozenset(("enums", "retainedTypes", "globals", "imports", "macros")),
}
_SCOPES = ("DIFile", "DISubprogram", "DILexicalBlock", "DILexicalBlockFile", "DICompileUnit")
_OF_TYPES = frozenset(("heapallocsite",))


def keep_places(module: Module) -> None:
    """Changes the module: no debug records, and of its metadata only what instructions and functions lead to."""
    for variable in module.globals.values():
        variable.metadata = [(kind, node) for kind, node in variable.metadata if kind != "dbg"]
    for function in module.functions.values():
        function.trailing_records = []
        for instruction in function.instructions():
            instruction.records = ()
            if len(instruction.metadata) > 1:
                instruction.metadata = [(k, node) for k, node in instruction.metadata if k not in _OF_TYPES]
    nothing = MDNode()
    drop_unused_metadata(module, lambda node: _plain(module, node, nothing))


def with_places_noted(function: ArrayFunction) -> ArrayFunction:
    """The function in a copy of its module in which each instruction has its place as text, which goes along into
    derivatives, for what is to be said of these: it would make each of them longer."""
    module = clone(function.module)
    note_places(module, [i for f in module.functions.values() for i in f.instructions()])
    return ArrayFunction(module, function.symbol, function.buffers)


def _plain(module: Module, node: MDNode, nothing: MDNode) -> MDNode:
    """A node without what leads to types. A member function lies in its file rather than in its class."""
    if node.kind == "DISubroutineType":
        return MDNode(node.kind, fields=[("types", nothing)])
    unwanted = _LEFT_OUT.get(node.kind)
    if unwanted is None:
        return node
    fields = [(name, value) for name, value in node.fields if name not in unwanted]
    scope = node.get("scope")
    if isinstance(scope, MDRef) and module.metadata[scope.number].kind not in _SCOPES:
        fields = [(name, value) for name, value in fields if name != "scope"]
    return MDNode(node.kind, node.operands, fields, node.distinct)
