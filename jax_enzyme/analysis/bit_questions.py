"""Comparisons of integers that are made of the bits of numbers, which hold, or not, at one value alone.

    x.is_normal()                      icmp ult (and %bits, 0x7ff << 52) - 1, ...                false at 0
    x.total_cmp(&y) == Equal           icmp eq (xor %bits, sign >> 1), (xor %others, ...)        true where x is y
    (high & 0x7fffffff | low) == 0     icmp eq i32 (or ...), 0                                   true at 0

Such a question is answered for numbers at the value and on both sides of it, near and far. Where all on both sides have
one answer, and the value has the other, it asks whether the number is that value. That is seen and not proved: it is
enough to warn, and `shortcuts` proves nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

import numpy as np

from jax_enzyme.analysis.folding import Numbers, folded
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Value, int_value

_MOST_PARTS = 40
"""Of how many instructions an integer may be made. What is made of more is taken for an ordinary question."""
_KINDS = {"double": (np.float64, np.int64), "float": (np.float32, np.int32)}
_NEAR_ZERO = {"double": (3e-308, 1e-250, 2e-154), "float": (2e-38, 1e-30, 2e-19)}
"""Normal numbers that have no square, or none with all its digits."""
_DIFFERENT = (-3.5, -2.0, -1.0, 1e-30, 0.75, 1.0, 1.0000002, 1.5, 2.0, 1e30)


def is_bits(value: Value) -> TypeGuard[I.Cast]:
    """Whether an integer is the bits of a number."""
    return isinstance(value, I.Cast) and value.opcode == "bitcast" and str(value.operands[0].type) in _KINDS


def answer_at_equality(question: I.Instruction) -> bool | None:
    """What a question about bits says where a number is one value, or two numbers are the same, if it says something
    else on both sides of that; None where it asks something else."""
    if not isinstance(question, I.Compare) or question.opcode != "icmp" or not isinstance(question.type, T.IntType):
        return None
    parts = _parts(question) or ()
    numbers = _numbers(parts)
    if len({number.type for number in numbers}) != 1:
        return None
    kind = str(numbers[0].type)
    if len(numbers) == 1:
        tried = (_Answers(question, numbers, [near], count) for near, count in _neighbourhoods(kind, parts))
        return next((a.first for a in tried if a.first is not None), None)
    if len(numbers) > 2 or any(isinstance(part, I.Call) for part in parts):
        return None
    every = np.array(_DIFFERENT, _KINDS[kind][0])
    same, (x, y) = _bits(every), np.meshgrid(every, every)
    return _Answers(question, numbers, [np.append(same, _bits(v[x != y])) for v in (x, y)], len(every)).first


def numbers_asked(question: I.Compare) -> Sequence[Value]:
    """The numbers whose bits a question is about, and nothing else."""
    return _numbers(_parts(question) or ())


def _numbers(parts: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(cast.operands[0] for cast in parts if is_bits(cast)))


class _Answers:
    """What a question says of numbers that are given by their bits: `first` is what it says of the first `count`, where
    it says the same of each and something else of all others."""

    def __init__(self, question: I.Compare, numbers: list[Value], bits: Sequence[Numbers], count: int = 1) -> None:
        self._known: dict[Value, Numbers | None] = {}
        self._bits = dict(zip(numbers, bits, strict=True))
        answers = self._of(question)
        self.first: bool | None = None
        if answers is not None and len(set(answers[:count])) == 1 and all(answers[count:] != answers[0]):
            self.first = bool(answers[0])

    def _of(self, value: Value) -> Numbers | None:
        if is_bits(value):
            return self._bits[value.operands[0]]
        constant = int_value(value)
        if constant is not None:
            return np.full_like(next(iter(self._bits.values())), constant)
        if value not in self._known:
            assert isinstance(value, I.Instruction)
            operands = [self._of(operand) for operand in value.operands]
            known = [operand for operand in operands if operand is not None]
            self._known[value] = folded(value, known) if len(known) == len(operands) else None
        return self._known[value]


def _parts(question: I.Compare) -> list[Value] | None:
    """What a question is made of, down to bits of numbers and constants; None where it is made of something else."""
    found, parts = Reached[Value]([question]), list[Value]()
    for value in found:
        parts.append(value)
        if len(found) > _MOST_PARTS:
            return None
        if is_bits(value) or int_value(value) is not None:
            continue
        if not isinstance(value, _COMPUTED) or not isinstance(value.type, T.IntType) or value.type.bits > 64:
            return None
        if isinstance(value, I.Call) and not (
            isinstance(value.callee, Function) and value.callee.name.startswith("llvm.")
        ):
            return None
        found.add(value.operands)
    return parts


_COMPUTED = (I.BinaryOp, I.Select, I.Cast, I.Compare, I.Freeze, I.Call)


def _neighbourhoods(kind: str, parts: Sequence[Value]) -> Iterator[tuple[Numbers, int]]:
    """The bits of values that a number may be compared with, how many they are, and those of their neighbours: of 0, of
    all that is not normal, and of what the constants are that the question is made of, also as `total_cmp` has them.
    Whether a number is 0 or subnormal is asked by functions that scale it then, which is no comparison."""
    float_kind, int_kind = _KINDS[kind]
    near = np.array([sign * small for small in _NEAR_ZERO[kind] for sign in (1, -1)], float_kind)
    least = np.finfo(float_kind).smallest_subnormal * np.array([1, -1, 64, -64], float_kind)
    for zero in (0.0, -0.0):
        value = np.array([zero], float_kind)
        yield _bits(np.concatenate((value, least, near))), 1
        others = np.append(least, np.array([np.inf, np.nan], float_kind))
        yield _bits(np.concatenate((value, others, near))), 1 + len(others)
    limits = np.iinfo(int_kind)
    widths = (p for p in parts if isinstance(p.type, T.IntType) and p.type.bits == limits.bits)
    for constant in dict.fromkeys(map(int_value, widths)):
        for bits in () if constant is None else (constant, constant ^ int(limits.max)):
            value = np.array([bits], int_kind).view(float_kind)
            if near[0] < abs(value[0]) < 1e30:
                steps = np.exp2(-np.arange(1, np.finfo(float_kind).nmant + 1, 3)).astype(float_kind)
                yield _bits(np.concatenate((value, *(value * (1 - step) for step in (steps, -steps))))), 1


def _bits(numbers: np.ndarray) -> Numbers:
    return numbers.view(np.int64 if numbers.dtype == np.float64 else np.int32).astype(np.int64)
