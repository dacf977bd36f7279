"""Shuffles of the bits of numbers become shuffles of the numbers, which have a derivative.

before    %bits = bitcast double %x to i64                          one 64-bit number in two 32-bit shuffles,
          %low = call i32 @je.shuffle.i32(i32 trunc %bits, %lane)   as compilers for CUDA write them
          %high = call i32 @je.shuffle.i32(i32 trunc (%bits lshr 32), %lane)
after     %y = call double @je.shuffle.double(double %x, %lane)
          %low = trunc (bitcast %y), %high = trunc ((bitcast %y) lshr 32)

and likewise for a float in one shuffle. Shuffles are written in two ways: as above for the CPU, and with a mask in
front for devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.rewriting import place, replace_values


@dataclass(frozen=True)
class Shuffles:
    """How shuffles are written: the function of 32-bit words, those of numbers, and the place of the value among the
    arguments, behind which the lane comes."""

    words: str
    numbers: Mapping[T.Type, str]
    value: int


MARKED = Shuffles(f"{marks.SHUFFLE}.i32", {t: f"{marks.SHUFFLE}.{t}" for t in (T.FLOAT, T.DOUBLE)}, 0)
MASKED = Shuffles("__je_shuffle_i32", {T.FLOAT: "__je_shuffle_f32", T.DOUBLE: "__je_shuffle_f64"}, 1)


def shuffle_numbers(module: Module, function: Function, form: Shuffles) -> bool:
    """Rewrites the shuffles of a function that are written in one way; whether there were any of bits of numbers."""
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        shuffles = [i for i in block.instructions if marks.called(i) == form.words]
        made: dict[Value, list[I.Instruction]] = {}
        for first in shuffles:
            number, part = _bits(first.operands[form.value])
            if number is None or first in replaced:
                continue
            both = [first]
            if number.type == T.DOUBLE:
                other = next((s for s in shuffles if _is_other_half(s, first, (number, 1 - part), form)), None)
                if other is None or other in replaced:
                    continue
                both.append(other)
            at = Builder(BasicBlock())
            replaced.update(_shuffled(module, at, number, both, form))
            place(first, at.block.instructions)
            made[first] = at.block.instructions
        block.instructions = [n for i in block.instructions for n in made.get(i, [i]) if n not in replaced]
    replace_values(function, replaced)
    return bool(replaced)


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


def _is_other_half(shuffle: I.Instruction, first: I.Instruction, half: tuple[Value, int], form: Shuffles) -> bool:
    """Whether a shuffle moves this half of a number as another one moves the other half."""
    if _bits(shuffle.operands[form.value]) != half:
        return False
    pairs = zip(shuffle.operands, first.operands, strict=True)
    return all(n == form.value or _is_same(a, b) for n, (a, b) in enumerate(pairs))


def _is_same(a: Value, b: Value) -> bool:
    return a is b or (int_value(a) is not None and int_value(a) == int_value(b))


def _shuffled(
    module: Module, at: Builder, number: Value, words: list[I.Instruction], form: Shuffles
) -> dict[Value, Value]:
    """Shuffles the number; the words of the result."""
    arguments = words[0].operands[:-1]
    arguments[form.value] = number
    kind = T.FunctionType(number.type, tuple(a.type for a in arguments))
    callee = marks.declare(module, form.numbers[number.type], kind, ("convergent", "nounwind"))
    result = at.call(callee, arguments)
    if number.type == T.FLOAT:
        return {words[0]: at.cast("bitcast", result, T.I32)}
    bits = at.cast("bitcast", result, T.I64)
    halves = at.cast("trunc", bits, T.I32), at.cast("trunc", at.binary("lshr", bits, const_int(T.I64, 32)), T.I32)
    return {word: halves[_bits(word.operands[form.value])[1]] for word in words}
