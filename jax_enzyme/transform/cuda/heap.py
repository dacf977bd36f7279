"""Large local variables of a kernel move to the heap: threads that run kernels have small stacks."""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.rewriting import replace_values

_LARGE = 32 * 1024
_ALIGN = 16
"""What `malloc` promises."""


def large_to_heap(module: Module, function: Function) -> None:
    """Changes a function: variables in its entry block that are larger than 32 KiB are allocated there and freed at its
    return."""
    layout = DataLayout(module)
    release = T.FunctionType(T.VOID, (T.PTR,))
    places: dict[Value, Value] = {}
    at = Builder(BasicBlock())
    for instruction in function.entry.instructions:
        count = int_value(instruction.operands[0]) if isinstance(instruction, I.Alloca) else None
        if count is None or not isinstance(instruction, I.Alloca):
            continue
        size = count * layout.alloc_size(instruction.allocated_type)
        if size > _LARGE:
            align = instruction.align or layout.align(instruction.allocated_type)
            name, numbers = "malloc", [size]
            if align > _ALIGN:
                # C wants a size that is a multiple of the alignment.
                name, numbers = "aligned_alloc", [align, size + -size % align]
            kind = T.FunctionType(T.PTR, (T.I64,) * len(numbers))
            callee = marks.declare(module, name, kind, ("nounwind",))
            made = at.call(callee, [const_int(T.I64, n) for n in numbers], kind)
            assert isinstance(made, I.Call)
            made.return_attributes = ("noalias",)
            places[instruction] = made
    if not places:
        return
    for block in function.blocks:
        block.instructions = [
            i
            for i in block.instructions
            if i not in places and not (marks.called(i).startswith("llvm.lifetime.") and i.operands[0] in places)
        ]
    replace_values(function, places)
    function.entry.instructions[-1:-1] = at.block.instructions
    for block in function.blocks:
        if isinstance(block.terminator, I.Return):
            end = Builder(BasicBlock())
            for place in places.values():
                end.call(marks.declare(module, "free", release, ("nounwind",)), [place], release)
            block.instructions[-1:-1] = end.block.instructions
