"""Addresses that are taken out of a vector of addresses are computed one by one.

    before    %a = getelementptr {float, double}, ptr %p, <2 x i64> <i64 0, i64 1>, i32 1
              %q = extractelement <2 x ptr> %a, i64 1
    after     %q = getelementptr {float, double}, ptr %p, i64 1, i32 1

Vectorised code, once its gathers and scatters are single accesses, is full of these. What is taken out of a vector
could lie anywhere; an address that is computed says which member of which record it is that of.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import BasicBlock, ConstantAggregate, ConstantSplat, Value, ZeroInitializer, int_value
from jax_enzyme.transform.rewriting import place, replace_values


def lower_address_lanes(module: Module) -> Module:
    """A copy of the module without such; the module itself where there are none."""
    if not any(_is_taken_out(i) for f in module.functions.values() for i in f.instructions()):
        return module
    copy = clone(module)
    for function in copy.functions.values():
        replaced: dict[Value, Value] = {}
        for block in function.blocks:
            for instruction in [i for i in block.instructions if _is_taken_out(i)]:
                at = Builder(BasicBlock())
                lane = int_value(instruction.operands[1])
                assert lane is not None
                address = _lane(at, instruction.operands[0], lane)
                address.name = instruction.name
                index = block.instructions.index(instruction)
                block.instructions[index : index + 1] = at.block.instructions
                place(instruction, at.block.instructions)
                replaced[instruction] = address
        replace_values(function, replaced)
    return copy


def _is_taken_out(instruction: I.Instruction) -> bool:
    if not isinstance(instruction, I.ExtractElement):
        return False
    vector, index = instruction.operands
    known = int_value(index)
    return isinstance(vector, I.GetElementPtr) and known is not None and known < _count(vector)


def _count(vector: Value) -> int:
    return vector.type.count if isinstance(vector.type, T.VectorType) and not vector.type.scalable else 0


def _lane(at: Builder, value: Value, lane: int) -> Value:
    """One lane of a vector; a scalar, which goes for all lanes, as it is."""
    match value:
        case I.GetElementPtr() if _count(value):
            base, *indices = (_lane(at, v, lane) for v in value.operands)
            return at.gep(value.source_type, base, indices, value.flags)
        case ConstantSplat(element=element):
            return element
        case ZeroInitializer() if isinstance(value.type, T.VectorType) and isinstance(value.type.element, T.IntType):
            return const_int(value.type.element, 0)
        case ConstantAggregate(elements=elements) if isinstance(value.type, T.VectorType):
            return elements[lane]
        case _:
            return at.extract_element(value, lane) if isinstance(value.type, T.VectorType) else value
