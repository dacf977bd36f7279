"""Shuffles of the bits of numbers become shuffles of the numbers, which have a derivative.

before    %bits = bitcast double %x to i64                          one 64-bit number in two 32-bit shuffles,
          %low = call i32 @je.shuffle.i32(i32 trunc %bits, %lane)   as compilers for CUDA write them
          %high = call i32 @je.shuffle.i32(i32 trunc (%bits lshr 32), %lane)
after     %y = call double @je.shuffle.double(double %x, %lane)
          %low = trunc (bitcast %y), %high = trunc ((bitcast %y) lshr 32)

and likewise for a float in one shuffle.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.rewriting import place, replace_values

_WORDS = f"{marks.SHUFFLE}.i32"


def shuffle_numbers(module: Module, function: Function) -> None:
    """Rewrites a function in which every shuffle is a mark with a value and a lane."""
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        shuffles = [i for i in block.instructions if marks.called(i) == _WORDS]
        made: dict[Value, list[I.Instruction]] = {}
        for first in shuffles:
            number, part = _bits(first.operands[0])
            if number is None or first in replaced:
                continue
            both = [first]
            if number.type == T.DOUBLE:
                other = next((s for s in shuffles if _is_other_half(s, number, 1 - part, first.operands[1])), None)
                if other is None or other in replaced:
                    continue
                both.append(other)
            at = Builder(BasicBlock())
            replaced.update(_shuffled(module, at, number, first.operands[1], both))
            place(first, at.block.instructions)
            made[first] = at.block.instructions
        block.instructions = [n for i in block.instructions for n in made.get(i, [i]) if n not in replaced]
    replace_values(function, replaced)


def _bits(word: Value) -> tuple[Value | None, int]:
    """The number of which a word is the bits, and which half of them."""
    if isinstance(word, I.Cast) and word.opcode == "bitcast" and word.operands[0].type == T.FLOAT:
        return word.operands[0], 0
    if not (isinstance(word, I.Cast) and word.opcode == "trunc" and word.operands[0].type == T.I64):
        return None, 0
    whole, part = word.operands[0], 0
    if _is_upper_half(whole):
        whole, part = _operand(whole), 1
    if isinstance(whole, I.Cast) and whole.opcode == "bitcast" and whole.operands[0].type == T.DOUBLE:
        return whole.operands[0], part
    return None, 0


def _is_upper_half(value: Value) -> bool:
    """Is this the upper half of a 64-bit word?"""
    return isinstance(value, I.BinaryOp) and value.opcode in ("lshr", "ashr") and int_value(value.operands[1]) == 32


def _operand(value: Value) -> Value:
    assert isinstance(value, I.Instruction)
    return value.operands[0]


def _is_other_half(shuffle: I.Instruction, number: Value, part: int, lane: Value) -> bool:
    return _bits(shuffle.operands[0]) == (number, part) and shuffle.operands[1] is lane


def _shuffled(
    module: Module, at: Builder, number: Value, lane: Value, words: list[I.Instruction]
) -> dict[Value, Value]:
    """Shuffles the number; the words of the result."""
    kind = T.FunctionType(number.type, (number.type, T.I32))
    callee = marks.declare(module, f"{marks.SHUFFLE}.{number.type}", kind, ("convergent", "nounwind"))
    result = at.call(callee, [number, lane])
    if number.type == T.FLOAT:
        return {words[0]: at.cast("bitcast", result, T.I32)}
    bits = at.cast("bitcast", result, T.I64)
    halves = at.cast("trunc", bits, T.I32), at.cast("trunc", at.binary("lshr", bits, const_int(T.I64, 32)), T.I32)
    return {word: halves[_bits(word.operands[0])[1]] for word in words}
