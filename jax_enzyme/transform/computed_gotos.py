"""Labels as values, and computed gotos, become numbers and switches.

before    @f.labels = internal constant [2 x ptr] [ptr blockaddress(@f, %add), ptr blockaddress(@f, %end)]
          indirectbr ptr %to, [label %add, label %end]

after     @f.labels = internal constant [2 x ptr] [ptr inttoptr (i64 1 to ptr), ptr inttoptr (i64 2 to ptr)]
          %number = ptrtoint ptr %to to i64
          switch i64 %number, label %nowhere [i64 1, label %add  i64 2, label %end]
        nowhere:
          unreachable

Where a label's code lies is nobody's business but that of a jump to it, so any numbers will do that are not 0 (a null
pointer is no label) and differ within a function. Differences of labels, as tables that need no relocation hold them,
are differences of their numbers.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, BlockAddress, Constant, ConstantAggregate, ConstantExpr, Value
from jax_enzyme.transform.rewriting import drop_edge, place, remove_unreachable


def lower_computed_gotos(module: Module) -> Module:
    """A copy of the module without them; the module itself where there are none."""
    if not any(isinstance(b.terminator, I.IndirectBranch) for f in module.functions.values() for b in f.blocks):
        return module
    copy = clone(module)
    labels = _Labels()
    for variable in copy.globals.values():
        if variable.initializer is not None:
            variable.initializer = labels.without(variable.initializer)
    for function in copy.functions.values():
        for instruction in function.instructions():
            instruction.operands[:] = [labels.in_value(v) for v in instruction.operands]
    for function in copy.functions.values():
        for block in list(function.blocks):
            if isinstance(block.terminator, I.IndirectBranch):
                _lower(function, block, block.terminator, labels)
    return copy


class _Labels:
    """The numbers of the blocks whose addresses are taken."""

    def __init__(self) -> None:
        self.numbers: dict[BasicBlock, int] = {}

    def in_value(self, value: Value) -> Value:
        return self.without(value) if isinstance(value, Constant) else value

    def without(self, constant: Constant) -> Constant:
        """The constant with numbers in place of labels."""
        match constant:
            case BlockAddress():
                number = self.numbers.setdefault(constant.block, len(self.numbers) + 1)
                return ConstantExpr(constant.type, "inttoptr", [const_int(T.I64, number)])
            case ConstantAggregate():
                return replace(constant, elements=[self.without(e) for e in constant.elements])
            case ConstantExpr():
                return replace(constant, operands=[self.without(o) for o in constant.operands])
            case _:
                return constant


def _lower(function: Function, block: BasicBlock, jump: I.IndirectBranch, labels: _Labels) -> None:
    nowhere = BasicBlock(name="nowhere")
    Builder(nowhere).unreachable()
    function.blocks.append(nowhere)
    del block.instructions[-1]
    at = Builder(block)
    number = at.cast("ptrtoint", jump.operands[0], T.I64)
    switch = at.insert(I.Switch(T.VOID, "switch", [number], targets=[nowhere]))
    place(jump, block.instructions[-2:])
    for target in jump.targets:
        if target in switch.targets or target not in labels.numbers:
            drop_edge(target, block)  # one edge is enough, and none where nobody has its address
        else:
            switch.add(const_int(T.I64, labels.numbers[target]), target)
    remove_unreachable(function)
