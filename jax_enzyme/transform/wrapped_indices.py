"""Indices that wrap around to a constant distance are that distance.

    before    %s = add i64 %i, 4294967295                           after    %j = add nsw i64 %i, -1
              %j = and i64 %s, 4294967295                                    ... x[%j] ...
              ... x[%j] ...

where `i` is 1 at least. So LLVM writes `(i + n - 1) % n` in 64 bits. Such a mask hides from it, and from what puts late
sums together (`ad.plan.late_sums`), that a loop comes to one place after the other: what is added there in reverse
would be read and written one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.rewriting import on_copy, replace_values


def unwrap_indices(function: ArrayFunction) -> ArrayFunction:
    """The array function without such masks, in a copy of the module; the function itself where it has none."""
    root = function.module.functions[function.symbol]
    return on_copy(function, _unwrap) if any(_is_masked_sum(i) for i in root.instructions()) else function


def _unwrap(module: Module, root: Function) -> bool:
    facts = Recurrences.of(root, module)
    found = dict(_distances(facts, root))
    replaced: dict[Value, Value] = {}
    for block in root.blocks:
        made = BasicBlock()
        at = Builder(made)
        for instruction in block.instructions:
            if instruction in found:
                of, distance = found[instruction]
                replaced[instruction] = at.binary("add", of, const_int(of.type, distance), flags=("nsw",))
            else:
                made.instructions.append(instruction)
        block.instructions = made.instructions
    replace_values(root, replaced)
    return bool(replaced)


def _distances(facts: Recurrences, root: Function) -> Iterator[tuple[I.Instruction, tuple[Value, int]]]:
    """What is masked and is, over the integers, another number plus a constant."""
    for masked in root.instructions():
        block = facts.block_of.get(masked)
        if block is None or not _is_masked_sum(masked):
            continue
        of = _summand(masked)
        bits = facts.bits(of.type) or 0
        try:
            result, given = facts.form_at(masked, block), facts.form_at(of, block)
            distance = (result.polynomial - given.polynomial).value
        except TooComplex:
            continue
        if distance is not None and facts.is_signed(result, bits) and facts.is_signed(given, bits):
            yield masked, (of, distance)


def _is_masked_sum(instruction: I.Instruction) -> bool:
    if not isinstance(instruction, I.BinaryOp) or instruction.opcode != "and":
        return False
    mask, sum_ = int_value(instruction.operands[1]), instruction.operands[0]
    is_mask = mask is not None and mask > 0 and mask & (mask + 1) == 0
    return is_mask and isinstance(sum_, I.BinaryOp) and sum_.opcode == "add" and int_value(sum_.operands[1]) is not None


def _summand(masked: I.Instruction) -> Value:
    sum_ = masked.operands[0]
    assert isinstance(sum_, I.BinaryOp)
    return sum_.operands[0]
