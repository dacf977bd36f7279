"""Intrinsics that only move the lanes of vectors of fixed length, as shuffles.

before   %r = call <4 x double> @llvm.vector.reverse.v4f64(<4 x double> %v)
after    %r = shufflevector <4 x double> %v, <4 x double> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import Value, int_value

Shuffle = Callable[[Builder, Sequence[Value], T.Type], Value]
"""The result from the arguments and the type of the result."""


def _count(vector: Value) -> int:
    assert isinstance(vector.type, T.VectorType)
    return vector.type.count


def _number(place: Value) -> int:
    number = int_value(place)
    assert number is not None, "LLVM takes constants alone there"
    return number


def _reverse(at: Builder, arguments: Sequence[Value], _: T.Type) -> Value:
    (x,) = arguments
    return at.shuffle(x, None, range(_count(x) - 1, -1, -1))


def _interleave(at: Builder, arguments: Sequence[Value], _: T.Type) -> Value:
    x, y = arguments
    return at.shuffle(x, y, [lane + part * _count(x) for lane in range(_count(x)) for part in (0, 1)])


def _deinterleave(at: Builder, arguments: Sequence[Value], result: T.Type) -> Value:
    (x,) = arguments
    return at.pack(result, [at.shuffle(x, None, range(part, _count(x), 2)) for part in (0, 1)])


def _extract(at: Builder, arguments: Sequence[Value], result: T.Type) -> Value:
    x, place = arguments
    assert isinstance(result, T.VectorType)
    start = _number(place)
    return at.shuffle(x, None, range(start, start + result.count))


def _insert(at: Builder, arguments: Sequence[Value], _: T.Type) -> Value:
    x, part, place = arguments
    start, count, more = _number(place), _count(x), _count(part)
    wide = at.shuffle(part, None, [lane if lane < more else -1 for lane in range(count)])
    inside = range(start, start + more)
    return at.shuffle(x, wide, [count + lane - start if lane in inside else lane for lane in range(count)])


SHUFFLES: Mapping[str, Shuffle] = {
    "vector.reverse": _reverse,
    "vector.interleave2": _interleave,
    "vector.deinterleave2": _deinterleave,
    "vector.extract": _extract,
    "vector.insert": _insert,
}
