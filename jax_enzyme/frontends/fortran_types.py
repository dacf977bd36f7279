"""Writes the types of Fortran's variables where flang names the variables alone, and the sizes of COMMON blocks.

    before    store i32 %k, ptr %p, !tbaa !1         !2 = !{!"allocated data/_QFinitEifac", !3, i64 0}
                                                     !3 = !{!"allocated data", ...}
    after                                            !2 = !{!"allocated data/_QFinitEifac integer", !4, i64 0}
                                                     !4 = !{!"any data/ integer", ...}

In front of any optimisation, all accesses by the name of a variable are of its own type, unless storage is shared by
EQUIVALENCE or between COMMON blocks of several shapes: then flang gives one name to accesses of several types, and the
name has no type.

flang has a tree of names for each procedure, in which no two variables share memory. That holds for one activation:
what the first call of `cross` returns is the argument of the second in `cross(u, cross(v, w))`, and where both are
inlined LLVM would take the memory of the result and of the argument for different ones. So arguments, and what
pointers lead to, stand above all variables of their procedure, since what is above may be the same memory:

    "any data access" <- what has several types, each above the next <- arguments of a type <- variables of this type

Of a variable in a COMMON block flang names the bytes in the block. Which memory those are in can be told later, when
the block is a local variable or parts of it are, by its size:

    before    !{!"global data/state_/bytes_0_to_95", !3, i64 0}
    after     !{!"global data/state_/bytes_0_to_95 of 120 double", !4, i64 0}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.tbaa import FORTRAN_DATA, FORTRAN_KINDS, name_of_share, resized_share
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDString
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text

_ANY_DATA = "any data access"
_OWN_MEMORY = (f"allocated{FORTRAN_DATA}", f"global{FORTRAN_DATA}")
"""What flang calls variables that are not arguments, and that no pointer leads to."""


def name_types(module: Module) -> None:
    """Adds to the name of every variable the size of its COMMON block and the type that it is accessed as alone, and
    puts arguments above all else in the tree of names, in place."""
    kinds: dict[int, set[str]] = {}
    nodes: dict[int, MDNode] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            if node := _accessed(module, instruction):
                nodes[id(node)] = node
                kinds.setdefault(id(node), set()).add(_kind(instruction))
    layout = DataLayout(module)
    sizes = {name: layout.alloc_size(variable.value_type) for name, variable in module.globals.items()}
    trees: dict[int, tuple[MDNode, list[MDNode]]] = {}
    for node in nodes.values():
        top = _top(module, node)
        if top is not None and top is not node:
            trees.setdefault(id(top), (top, []))[1].append(node)
    for top, named in trees.values():
        _arrange(top, [(node, kinds[id(node)]) for node in named], sizes)


def _arrange(top: MDNode, named: Sequence[tuple[MDNode, set[str]]], sizes: Mapping[str, int]) -> None:
    """Puts what is below "any data access" of one procedure in order, in place."""
    lowest = top
    of_a_type: list[tuple[MDNode, str]] = []
    for node, (kind, *others) in named:
        text = _text(node)
        if FORTRAN_DATA not in text:  # no variable: any of the kind
            node.operands[:] = top.operands
            continue
        text = name_of_share(text, sizes)
        node.operands[0] = MDString(text)
        if kind and not others:
            of_a_type.append((node, kind))
        else:
            node.operands[1] = lowest
            lowest = node
    for node, kind in of_a_type:
        above = [MDString(f"any{FORTRAN_DATA} {kind}"), lowest, *node.operands[2:]]
        if _text(node).startswith(_OWN_MEMORY):
            node.operands[:2] = [MDString(f"{_text(node)} {kind}"), MDNode(operands=above)]
        else:
            node.operands[:] = above


def _accessed(module: Module, instruction: I.Instruction) -> MDNode | None:
    """What names the variable that an access is of, or the kind of variables."""
    tag = resolve(module, dict(instruction.metadata).get("tbaa"))
    return resolve(module, tag.operands[1]) if tag is not None and len(tag.operands) > 2 else None


def _top(module: Module, node: MDNode) -> MDNode | None:
    """What is above all data of a procedure; None for what is none."""
    at: MDNode | None = node
    while at is not None and at.operands and _text(at) != _ANY_DATA:
        at = resolve(module, at.operands[1]) if len(at.operands) > 1 else None
    return at if at is not None and at.operands else None


def _text(node: MDNode) -> str:
    name = node.operands[0]
    return name.text if isinstance(name, MDString) else ""


def _kind(access: I.Instruction) -> str:
    match access:
        case I.Load():
            type_ = access.type
        case I.Store():
            type_ = access.operands[0].type
        case _:
            return ""
    return FORTRAN_KINDS.get(type_, "integer" if isinstance(type_, T.IntType) else "")


def _with_block_sizes(ir: str, sizes: Mapping[str, int]) -> str:
    """The text of a module, where accesses to COMMON blocks name these sizes of them."""
    module = parse(ir)
    for node in module.metadata.values():
        for index, operand in enumerate(node.operands):
            if isinstance(operand, MDString):
                node.operands[index] = MDString(resized_share(operand.text, sizes))
    return to_text(module)


def with_common_sizes(texts: Sequence[str], declared: Sequence[tuple[bool, Mapping[str, int]]]) -> list[str]:
    """The texts of modules, where a COMMON block that they declare in several sizes has the largest everywhere: the
    linker gives it that, and accesses name it by its size. `declared` is for each whether it is Fortran's, and the
    sizes of the blocks in it."""
    sizes: dict[str, set[int]] = {}
    for _, own in declared:
        for name, size in own.items():
            sizes.setdefault(name, set()).add(size)
    largest = {name: max(found) for name, found in sizes.items() if len(found) > 1}
    return [
        _with_block_sizes(text, largest) if of_fortran and largest else text
        for text, (of_fortran, _) in zip(texts, declared, strict=True)
    ]
