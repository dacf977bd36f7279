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

from jax_enzyme.analysis.lanes import Lanes, run
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.ir.sameness import is_same
from jax_enzyme.ir.values import BasicBlock, Value
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
    lanes = Lanes()
    for block in function.blocks:
        shuffles = [i for i in block.instructions if callee_name(i) == form.words]
        made: dict[Value, list[I.Instruction]] = {}
        for first in shuffles:
            number, part = _bits(first.operands[form.value], lanes)
            if number is None or first in replaced:
                continue
            both = [first]
            if number.type == T.DOUBLE:
                halves = (s for s in shuffles if _bits(s.operands[form.value], lanes) == (number, 1 - part))
                other = next((s for s in halves if _is_alike(s, first, form)), None)
                if other is None or other in replaced:
                    continue
                both.append(other)
            at = Builder(BasicBlock())
            words = {s: _bits(s.operands[form.value], lanes)[1] for s in both}
            replaced.update(_shuffled(module, at, number, words, form))
            place(first, at.block.instructions)
            made[first] = at.block.instructions
        block.instructions = [n for i in block.instructions for n in made.get(i, [i]) if n not in replaced]
    replace_values(function, replaced)
    return bool(replaced)


def _bits(word: Value, lanes: Lanes) -> tuple[Value | None, int]:
    """The number of which a word is the bits, and which half of them."""
    source, start = run(lanes.of(word)) or (word, 0)
    if isinstance(source, I.Cast) and source.opcode == "bitcast":
        (source,) = source.operands
    return (source, start // 4) if source.type in (T.FLOAT, T.DOUBLE) else (None, 0)


def _is_alike(shuffle: I.Instruction, first: I.Instruction, form: Shuffles) -> bool:
    """Whether two shuffles move what they are given in the same way."""
    pairs = zip(shuffle.operands, first.operands, strict=True)
    return all(n == form.value or is_same(a, b) for n, (a, b) in enumerate(pairs))


def _shuffled(
    module: Module, at: Builder, number: Value, words: Mapping[I.Instruction, int], form: Shuffles
) -> dict[Value, Value]:
    """Shuffles the number; the words of the result, of which it is given which half each is."""
    arguments = next(iter(words)).operands[:-1]
    arguments[form.value] = number
    kind = T.FunctionType(number.type, tuple(a.type for a in arguments))
    callee = declare(module, form.numbers[number.type], kind, ("convergent", "nounwind"))
    result = at.call(callee, arguments)
    if number.type == T.FLOAT:
        bits = at.cast("bitcast", result, T.I32)
        return dict.fromkeys(words, bits)
    bits = at.cast("bitcast", result, T.I64)
    halves = at.cast("trunc", bits, T.I32), at.cast("trunc", at.binary("lshr", bits, const_int(T.I64, 32)), T.I32)
    return {word: halves[part] for word, part in words.items()}
