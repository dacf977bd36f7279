"""Numbers that nobody looks at get values: an optimiser leaves lanes of vectors, and numbers on ways where they are not
used, without one.

    before    %y = fmul <2 x double> %x, <double poison, double 2.0>      only lane 1 of %y is used
              %s = shufflevector <2 x double> %x, <2 x double> poison, <2 x i32> <i32 1, i32 poison>
    after     %y = fmul <2 x double> %x, <double 0.5, double 2.0>
              %s = shufflevector <2 x double> %x, <2 x double> splat (double 0.5), <2 x i32> <i32 1, i32 2>

The derivative by what is not used is zero times such a number: zero, if it is one. Zero times poison is poison, and
that is added to the cotangent of `%x`. Any value is right for the program; one half is in the domain of what LLVM may
compute without being asked to (`sqrt`, `log`, quotients). An integer is that of another lane: what masks and shifts do
to the bits of numbers is the same in all lanes then.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_float, const_int, zero
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Constant, ConstantAggregate, ConstantSplat, Poison, Undef, Value
from jax_enzyme.transform.rewriting import on_functions

_VALUE = 0.5
_WITH_CONSTANTS = ("double", "float", "half", "bfloat")


def define_poison(module: Module) -> Module:
    """A copy of the module in which such numbers and lanes have values; the module itself where there are none."""
    return on_functions(module, lambda f: any(map(_is_open, f.instructions())), _define)


def _define(function: Function) -> None:
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        for instruction in old:
            for place in _open_operands(instruction):
                instruction.operands[place] = _defined(instruction.operands[place])
            if isinstance(instruction, I.ShuffleVector) and -1 in instruction.mask:
                block.instructions += _shuffled(instruction)
            else:
                block.instructions.append(instruction)


def _is_open(instruction: I.Instruction) -> bool:
    open_lanes = isinstance(instruction, I.ShuffleVector) and -1 in instruction.mask and _is_number(instruction.type)
    return open_lanes or bool(_open_operands(instruction))


def _open_operands(instruction: I.Instruction) -> list[int]:
    found = [i for i, operand in enumerate(instruction.operands) if _has_open_lanes(operand)]
    if isinstance(instruction, I.ShuffleVector) and 1 in found and not _takes_second(instruction):
        found.remove(1)
    return found


def _takes_second(shuffle: I.ShuffleVector) -> bool:
    first = shuffle.operands[0].type
    assert isinstance(first, T.VectorType)
    return any(lane >= first.count for lane in shuffle.mask)


def _is_number(type_: T.Type) -> bool:
    """Whether it is a type of numbers, or of vectors: integers in them decide between lanes."""
    return T.is_float(type_) or (isinstance(type_, T.VectorType) and T.is_int(type_))


def _has_open_lanes(value: Value) -> bool:
    match value:
        case Poison() | Undef():
            return _is_number(value.type)
        case ConstantAggregate() if isinstance(value.type, T.VectorType):
            return _is_number(value.type) and any(isinstance(e, Poison | Undef) for e in value.elements)
        case ConstantSplat():
            return _is_number(value.type) and isinstance(value.element, Poison | Undef)
        case _:
            return False


def _defined(value: Value) -> Constant:
    if isinstance(value, ConstantAggregate):
        known = [e for e in value.elements if not isinstance(e, Poison | Undef)]
        filling = known[0] if known and T.is_int(value.type) else _number(value.elements[0].type)
        lanes = [filling if isinstance(e, Poison | Undef) else e for e in value.elements]
        return ConstantAggregate(value.type, elements=lanes)
    return _number(value.type)


def _number(type_: T.Type) -> Constant:
    kind = T.scalar(type_)
    if isinstance(kind, T.IntType):
        return const_int(type_, 1)
    return const_float(type_, _VALUE) if isinstance(kind, T.FloatType) and kind.kind in _WITH_CONSTANTS else zero(type_)


def _shuffled(shuffle: I.ShuffleVector) -> list[I.Instruction]:
    """The lanes that a shuffle leaves open are those of a constant: of its second operand, where that has no other use,
    else of a shuffle behind it, which gets its uses."""
    if not _is_number(shuffle.type):
        return [shuffle]
    first, filling = shuffle.operands[0].type, _number(shuffle.operands[0].type)
    assert isinstance(first, T.VectorType)
    if not _takes_second(shuffle):
        shuffle.operands[1] = filling
        shuffle.mask = tuple(first.count if lane < 0 else lane for lane in shuffle.mask)
        return [shuffle]
    # The lanes of the first operand that are taken, and then, of that and of the second one, all.
    count, result = first.count, shuffle.type
    assert isinstance(result, T.VectorType)
    ones = tuple(lane if 0 <= lane < count else count for lane in shuffle.mask)
    others = tuple(lane - count if lane >= count else count for lane in shuffle.mask)
    taken = I.ShuffleVector(result, "shufflevector", [shuffle.operands[0], filling], ones, shuffle.mask_type)
    given = I.ShuffleVector(result, "shufflevector", [shuffle.operands[1], filling], others, shuffle.mask_type)
    lanes = len(shuffle.mask)
    shuffle.operands = [taken, given]
    shuffle.mask = tuple(i + lanes if lane >= count else i for i, lane in enumerate(shuffle.mask))
    return [taken, given, shuffle]
