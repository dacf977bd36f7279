"""Structures that functions return in registers: each member by itself.

    before    %s = load { ptr, i32 }, ptr %v            after    %p = load ptr, ptr %v
              %p = extractvalue { ptr, i32 } %s, 0

Front ends read such a variable as a whole where it is returned. Once functions are inlined its members are taken apart
again, and by themselves the variable becomes registers: it is seen where a pointer in it leads.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.insertion import put_behind
from jax_enzyme.transform.rewriting import locate, substitute


def take_members_apart(function: Function) -> None:
    """Lets what is taken of a structure come from where it was put in, or from memory, in place."""
    behind: dict[I.Instruction, list[I.Instruction]] = {}
    replaced: dict[Value, Value] = {}
    for taken in function.instructions():
        if isinstance(taken, I.ExtractValue) and (found := _member(taken, behind)) is not None:
            replaced[taken] = found
    put_behind(function, behind)
    substitute(function, replaced)
    users = uses(function)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i not in behind or users.get(i)]


def _member(taken: I.ExtractValue, behind: dict[I.Instruction, list[I.Instruction]]) -> Value | None:
    whole, indices = taken.operands[0], taken.indices
    while isinstance(whole, I.InsertValue):
        if whole.indices == indices:
            return whole.operands[1]
        if whole.indices[: len(indices)] == indices or indices[: len(whole.indices)] == whole.indices:
            return None
        whole = whole.operands[0]
    if not isinstance(whole, I.Load) or whole.flags or whole.align is None or taken.type == whole.type:
        return None
    at = Builder(BasicBlock())
    place = at.gep(whole.type, whole.operands[0], [const_int(T.I32, i) for i in (0, *indices)])
    found = at.load(taken.type, place, 1)
    locate(whole, at.block.instructions)
    behind.setdefault(whole, []).extend(at.block.instructions)
    return found
