"""Writes the types of Fortran's variables where flang names the variables alone, and the sizes of COMMON blocks.

    before    store i32 %k, ptr %p, !tbaa !1         !2 = !{!"dummy arg data/_QFinitEifac", !3, i64 0}
                                                     !3 = !{!"dummy arg data", ...}
    after                                            !2 = !{!"dummy arg data/_QFinitEifac integer", !4, i64 0}
                                                     !4 = !{!"any data/ integer", !3, i64 0}

In front of any optimisation, all accesses by the name of a variable are of its own type, unless storage is shared by
EQUIVALENCE or between COMMON blocks of several shapes: then flang gives one name to accesses of several types, and the
name has no type. To LLVM, variables stay what they were, with one more class above them: what it makes of accesses to
two variables of one type still has that type.

Of a variable in a COMMON block flang names the bytes in the block. Which memory those are in can be told later, when
the block is a local variable or parts of it are, by its size:

    before    !{!"global data/state_/bytes_0_to_95", !3, i64 0}
    after     !{!"global data/state_/bytes_0_to_95 of 120 double", !4, i64 0}
"""

from __future__ import annotations

from collections.abc import Mapping

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.tbaa import FORTRAN_DATA, FORTRAN_KINDS, name_of_share, resized_share
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDString
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text


def name_types(module: Module) -> None:
    """Adds to the name of every variable the size of its COMMON block and the type that it is accessed as alone, in
    place."""
    kinds: dict[int, set[str]] = {}
    nodes: dict[int, MDNode] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            if node := _named(module, instruction):
                nodes[id(node)] = node
                kinds.setdefault(id(node), set()).add(_kind(instruction))
    layout = DataLayout(module)
    sizes = {name: layout.alloc_size(variable.value_type) for name, variable in module.globals.items()}
    for key, node in nodes.items():
        (kind, *others) = kinds[key]
        name = node.operands[0]
        assert isinstance(name, MDString)
        text = name_of_share(name.text, sizes)
        node.operands[0] = MDString(text)
        if kind and not others:
            above = MDNode(operands=[MDString(f"any{FORTRAN_DATA} {kind}"), *node.operands[1:]])
            node.operands[:2] = [MDString(f"{text} {kind}"), above]


def _named(module: Module, instruction: I.Instruction) -> MDNode | None:
    """What names the variable that an access is of."""
    tag = resolve(module, dict(instruction.metadata).get("tbaa"))
    accessed = resolve(module, tag.operands[1]) if tag is not None and len(tag.operands) > 2 else None
    name = accessed.operands[0] if accessed is not None and accessed.operands else None
    return accessed if isinstance(name, MDString) and FORTRAN_DATA in name.text else None


def _kind(access: I.Instruction) -> str:
    match access:
        case I.Load():
            type_ = access.type
        case I.Store():
            type_ = access.operands[0].type
        case _:
            return ""
    return FORTRAN_KINDS.get(type_, "integer" if isinstance(type_, T.IntType) else "")


def with_block_sizes(ir: str, sizes: Mapping[str, int]) -> str:
    """The text of a module, where accesses to COMMON blocks name these sizes of them."""
    module = parse(ir)
    for node in module.metadata.values():
        for index, operand in enumerate(node.operands):
            if isinstance(operand, MDString):
                node.operands[index] = MDString(resized_share(operand.text, sizes))
    return to_text(module)
