"""Copies of modules, signatures and instructions, for passes that add to a module."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.debug import NOTED
from jax_enzyme.ir.marks import LOOP, REVERSED
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Value

ALIGNMENT = 16
"""What memory that a derivative makes is aligned to: local variables that move to the tape, shadows, the tape."""

MapValue = Callable[[Value], Value]
_KEPT = (NOTED, LOOP, REVERSED)


def extended(module: Module) -> Module:
    """A module that shares the functions of `module`, which stay as they are, and can be added to."""
    return replace(
        module,
        globals=dict(module.globals),
        functions=dict(module.functions),
        struct_bodies=dict(module.struct_bodies),
        attribute_groups=dict(module.attribute_groups),
        metadata=dict(module.metadata),
        named_metadata=dict(module.named_metadata),
    )


def array_function(symbol: str, buffers: tuple[Buffer, ...]) -> Function:
    """An empty array function: one `noalias` pointer per buffer, i64 status."""
    arguments: list[Argument] = []
    for index, buffer in enumerate(buffers):
        words = ["noalias", "nonnull"]
        if buffer.nbytes:
            words.append(f"dereferenceable({buffer.nbytes})")
        arguments.append(Argument(T.PTR, tuple(words), index, name=f"b{index}.{buffer.name}"))
    type_ = T.FunctionType(T.I64, tuple(a.type for a in arguments))
    return Function(T.PTR, type_, arguments=arguments, attributes=("nounwind", "mustprogress"), name=symbol)


def copied(instruction: I.Instruction, value: MapValue, block: Callable[[BasicBlock], BasicBlock]) -> I.Instruction:
    """A copy over mapped operands and targets, without metadata (debug scopes belong to the source function) but
    a place that is noted and the marks of loops."""
    twin = copy.copy(instruction)
    twin.operands = [value(v) for v in instruction.operands]
    twin.targets = [block(b) for b in instruction.targets]
    twin.metadata = [(kind, node) for kind, node in instruction.metadata if kind in _KEPT]
    twin.records = []
    if isinstance(twin, I.CallBase):
        twin.bundles = [(tag, [value(v) for v in inputs]) for tag, inputs in twin.bundles]
        twin.parameter_attributes = [tuple(map(_less_aligned, words)) for words in twin.parameter_attributes]
    elif isinstance(twin, I.Load | I.Store) and twin.align is not None:
        twin.align = min(twin.align, ALIGNMENT)
    return twin


@lru_cache(maxsize=4096)
def _less_aligned(word: str) -> str:
    known = re.fullmatch(r"align[ (](\d+)\)?", word)
    return f"align {ALIGNMENT}" if known and int(known[1]) > ALIGNMENT else word
