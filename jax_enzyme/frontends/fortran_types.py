"""Writes the types of Fortran's variables where flang names the variables alone.

    before    store i32 %k, ptr %p, !tbaa !1         !2 = !{!"dummy arg data/_QFinitEifac", !3, i64 0}
                                                     !3 = !{!"dummy arg data", ...}
    after                                            !2 = !{!"dummy arg data/_QFinitEifac integer", !4, i64 0}
                                                     !4 = !{!"any data/ integer", !3, i64 0}

In front of any optimisation, all accesses by the name of a variable are of its own type, unless storage is shared by
EQUIVALENCE or between COMMON blocks of several shapes: then flang gives one name to accesses of several types, and the
name stays as it is. To LLVM, variables stay what they were, with one more class above them: what it makes of accesses
to two variables of one type still has that type.
"""

from __future__ import annotations

from jax_enzyme.analysis.tbaa import FORTRAN_DATA, FORTRAN_KINDS
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDNode, MDString
from jax_enzyme.ir.module import Module


def name_types(module: Module) -> None:
    """Adds its type to the name of every variable that is accessed as one alone, in place."""
    kinds: dict[int, set[str]] = {}
    nodes: dict[int, MDNode] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            if node := _named(module, instruction):
                nodes[id(node)] = node
                kinds.setdefault(id(node), set()).add(_kind(instruction))
    for key, node in nodes.items():
        (kind, *others) = kinds[key]
        name = node.operands[0]
        if kind and not others and isinstance(name, MDString):
            above = MDNode(operands=[MDString(f"any{FORTRAN_DATA} {kind}"), *node.operands[1:]])
            node.operands[:2] = [MDString(f"{name.text} {kind}"), above]


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
