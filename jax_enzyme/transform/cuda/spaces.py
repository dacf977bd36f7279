"""Address spaces go: on a CPU there is one.

before    @part = external addrspace(3) global [0 x double]          ptr addrspacecast (ptr addrspace(3) @part to ptr)
after     @part = external global [0 x double]                       ptr @part
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.transform.retyping import Retyping, retype
from jax_enzyme.transform.rewriting import replace_values

SHARED = "addrspace(3)"
_SUFFIX = re.compile(r"\.p[1-9]\d*(?=\.|$)")


def drop_spaces(module: Module) -> dict[str, GlobalVariable]:
    """Changes a private module; returns the variables of shared memory, which are external now: what one thread finds
    there is not what it left."""
    shared: dict[str, GlobalVariable] = {}
    for name, variable in module.globals.items():
        if SHARED in variable.prefix:
            shared[name] = variable
            variable.initializer = None
            variable.prefix = ("external",)
            variable.suffix = tuple(w for w in variable.suffix if not w.startswith("comdat"))
        variable.prefix = tuple(w for w in variable.prefix if not w.startswith(("addrspace", "externally_")))
    retype(module, Retyping(lambda t: T.PTR if isinstance(t, T.PointerType) else None))
    for function in module.functions.values():
        replaced: dict[V.Value, V.Value] = {}
        for block in function.blocks:
            casts = [i for i in block.instructions if i.opcode == "addrspacecast"]
            replaced.update((c, c.operands[0]) for c in casts)
            block.instructions = [i for i in block.instructions if i not in replaced]
        replace_values(function, replaced)
    _merge_intrinsics(module)
    return shared


def _merge_intrinsics(module: Module) -> None:
    """`llvm.memcpy.p3.p0.i64` and its like are all called the same now."""
    renamed: dict[str, Function] = {}
    replaced: dict[V.Value, V.Value] = {}
    for function in module.functions.values():
        if function.name.startswith("llvm."):
            function.name = _SUFFIX.sub(".p0", function.name)
        first = renamed.setdefault(function.name, function)
        if first is not function:
            replaced[function] = first
    module.functions = renamed
    if replaced:
        for function in module.functions.values():
            replace_values(function, replaced)


def expand(function: Function, places: Mapping[V.Value, V.Value]) -> None:
    """Constants of a function that name certain globals become instructions that use these values instead."""
    for block in function.blocks:
        index = 0
        while index < len(block.instructions):
            instruction = block.instructions[index]
            if isinstance(instruction, I.Phi):
                _expand_phi(instruction, places)
            for number, operand in enumerate(instruction.operands):
                if not isinstance(operand, V.Constant) or not _names(operand, places):
                    continue
                made: list[I.Instruction] = []
                instruction.operands[number] = _expanded(operand, places, made)
                block.instructions[index:index] = made
                index += len(made)
            index += 1


def _expand_phi(phi: I.Phi, places: Mapping[V.Value, V.Value]) -> None:
    """At the ends of the blocks that values come from: one value per block, also where a switch comes from there
    twice."""
    known: dict[tuple[V.Value, V.BasicBlock], V.Value] = {}
    for number, (operand, source) in enumerate(phi.incoming):
        if not isinstance(operand, V.Constant) or not _names(operand, places):
            continue
        if (operand, source) not in known:
            made: list[I.Instruction] = []
            known[operand, source] = _expanded(operand, places, made)
            at = len(source.instructions) - 1
            source.instructions[at:at] = made
        phi.operands[number] = known[operand, source]


def _names(value: V.Constant, places: Mapping[V.Value, V.Value]) -> bool:
    if value in places:
        return True
    operands = value.operands if isinstance(value, V.ConstantExpr) else []
    return any(_names(o, places) for o in operands)


def _expanded(value: V.Constant, places: Mapping[V.Value, V.Value], made: list[I.Instruction]) -> V.Value:
    if value in places:
        return places[value]
    if not isinstance(value, V.ConstantExpr) or not _names(value, places):
        return value
    operands = [_expanded(o, places, made) for o in value.operands]
    if value.opcode == "getelementptr":
        assert value.source_type is not None
        flags = tuple(f for f in value.flags if not f.startswith("inrange"))
        made.append(I.GetElementPtr(value.type, value.opcode, operands, value.source_type, flags=flags))
    elif len(operands) == 1:
        made.append(I.Cast(value.type, value.opcode, operands))
    else:
        made.append(I.BinaryOp(value.type, value.opcode, operands, flags=value.flags))
    return made[-1]
