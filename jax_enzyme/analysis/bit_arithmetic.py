"""Arithmetic on integers bit by bit, of which some are bits of numbers: see `analysis.number_fields`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value

CLEAN, MIXED = "clean", "mixed"
"""A bit that is none of a number's digits, and made of none; one that is made of digits."""
DIGITS = {32: 23, 64: 52}
"""The digits of a number by its bits."""


@dataclass(frozen=True, slots=True)
class Field:
    """One bit of the sum, in as many bits, of a source and a constant."""

    source: Value
    at: int
    added: int = 0

    def plus(self, constant: int) -> Field:
        return Field(self.source, self.at, (self.added + constant) % (2 << self.at))


Bit = int | str | Field
Bits = tuple[Bit, ...]


def width(type_: T.Type) -> int:
    """The bits of an integer, or of a lane of a vector of integers."""
    scalar = T.scalar(type_)
    return scalar.bits if isinstance(scalar, T.IntType) else 0


def combined(opcode: str, x: Bits, y: Bits, by: int | None) -> Bits:
    """The bits of what an operation makes of two integers, of which the second is `by` if that is known."""
    count = len(x)
    shifts = by is not None and 0 <= by < count and opcode in ("shl", "lshr", "ashr")
    if by is not None and (shifts or opcode in ("add", "sub")):
        return _with_constant(opcode, x, by)
    match opcode:
        case "and":
            return tuple(0 if 0 in (a, b) else b if a == 1 else a if b == 1 else _one(a, b) for a, b in _pairs(x, y))
        case "or":
            return tuple(1 if 1 in (a, b) else b if a == 0 else a if b == 0 else _one(a, b) for a, b in _pairs(x, y))
        case "xor":
            return tuple(b if a == 0 else a if b == 0 else mixed((a, b)) for a, b in _pairs(x, y))
        case "add" if all(0 in pair for pair in _pairs(x, y)):
            return tuple(b if a == 0 else a for a, b in _pairs(x, y))
        case "add" | "sub":
            return _sum(x, y, opcode == "sub")
        case _:
            return (mixed((*x, *y)),) * count


def _with_constant(opcode: str, x: Bits, by: int) -> Bits:
    count = len(x)
    match opcode:
        case "shl":
            return (0,) * by + x[: count - by]
        case "lshr":
            return x[by:] + (0,) * by
        case "ashr":
            return x[by:] + x[-1:] * by
        case _:
            constant = (by if opcode == "add" else -by) % (1 << count)
            return _plus(x, constant) if constant else x


def _sum(x: Bits, y: Bits, is_difference: bool = False) -> Bits:
    """The bits of a sum: as they are up to the first that both have, and mixed as far as either has digits."""
    count = len(x)
    first = next((i for i in range(count) if y[i] != 0 and (is_difference or x[i] != 0)), count)
    end = max((i + 1 for i in range(first, count) if is_digit(x[i]) or is_digit(y[i])), default=first)
    if is_difference:
        return x[:first] + (MIXED,) * (end - first) + (CLEAN,) * (count - end)
    low = tuple(b if a == 0 else a for a, b in _pairs(x[:first], y[:first]))
    length = max(_length(x), _length(y)) + 1
    high = tuple(MIXED if i < end else CLEAN if i < length else 0 for i in range(first, count))
    return low + high


def _plus(x: Bits, constant: int) -> Bits:
    """The bits of a sum with a constant other than zero: of a source as far as they are neighbours in one."""
    first = (constant & -constant).bit_length() - 1
    fields = list(_neighbours(x[first:]))
    if not fields or fields[0].at < first or any(f != replace(f, added=0).plus(fields[-1].added) for f in fields):
        return _sum(x, of_constant(constant, len(x)))
    end, moved = first + len(fields), constant << fields[0].at - first
    length = max(_length(x), constant.bit_length()) + 1
    rest = (mixed(x[end:]) if i < length else 0 for i in range(end, len(x)))
    return (*x[:first], *(f.plus(moved) for f in fields), *rest)


def _neighbours(bits: Bits) -> Iterator[Field]:
    """The first bits, as far as they are neighbours in one source."""
    for i, bit in enumerate(bits):
        first = bits[0]
        if not isinstance(bit, Field) or not isinstance(first, Field):
            return
        if (bit.source, bit.at - i) != (first.source, first.at):
            return
        yield bit


def _length(bits: Bits) -> int:
    return max((i + 1 for i, bit in enumerate(bits) if bit != 0), default=0)


def own(value: Value) -> Bits:
    return tuple(Field(value, i) for i in range(width(value.type)))


def of_constant(number: int, count: int) -> Bits:
    return tuple(number >> i & 1 for i in range(count))


def is_digit(bit: Bit) -> bool:
    return bit == MIXED or (isinstance(bit, Field) and bit.at < DIGITS[width(bit.source.type)])


def mixed(bits: Iterable[Bit]) -> Bit:
    return MIXED if any(map(is_digit, bits)) else CLEAN


def _one(a: Bit, b: Bit) -> Bit:
    return a if a == b else mixed((a, b))


def alike(every: Iterable[Bits]) -> Bits:
    """The bits that are the same in all; of others whether there are digits among them."""
    return tuple(bits[0] if all(b == bits[0] for b in bits) else mixed(bits) for bits in zip(*every, strict=True))


def _pairs(x: Bits, y: Bits) -> list[tuple[Bit, Bit]]:
    return list(zip(x, y, strict=True))
