"""Arithmetical congruences: what is known of an integer when it is known up to a multiple.

    lattice     c + mZ, `modulus` 0 for the one number c; (0, 1) is every integer
    bounded     of c + mZ the numbers from c up to a last one, as the counter of a loop has them
    join        the greatest common divisor of both moduli and of the distance between the offsets, without bounds
    height      finite: every step up divides the modulus

Address arithmetic is taken as LLVM takes that of `inbounds` pointers, without overflow. Where bits are cut off for
certain (`trunc`, a multiplication by a large constant, as in hash functions), only powers of two survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import gcd
from typing import NamedTuple

_LARGE = 1 << 31
"""A product with a factor beyond this has bits cut off: of its congruence the power of two alone is kept."""
MANY = 128
"""So many places of one kind are told apart in an object; those beyond are `repeated`, which includes them."""
_TOO_MANY = 2 * MANY


class Congruence(NamedTuple):
    """All integers `offset` + k * `modulus`, in normal form 0 <= offset < modulus unless the modulus is 0; or, where
    there is a `last` of them, those from `offset` to it."""

    offset: int
    modulus: int
    last: int | None = None

    @staticmethod
    def of(offset: int, modulus: int = 0) -> Congruence:
        """In normal form."""
        modulus = abs(modulus)
        return Congruence(offset % modulus if modulus else offset, modulus)

    @staticmethod
    def bounded(first: int, last: int, modulus: int) -> Congruence:
        """From one integer to another in steps of the modulus."""
        return Congruence(first, 0) if first == last else Congruence(first, modulus, last)

    @property
    def unbounded(self) -> Congruence:
        """The same without bounds."""
        return self if self.last is None else Congruence.of(self.offset, self.modulus)

    @property
    def span(self) -> tuple[int, int] | None:
        """The least and the greatest, where there are such."""
        if self.modulus == 0:
            return self.offset, self.offset
        return None if self.last is None else (self.offset, self.last)

    def within(self, first: int, last: int) -> Congruence:
        """Those from one integer to another; all of them where there are none."""
        if self.modulus == 0:
            return self
        least, most = self.span or (first, last)
        start = max(first, least) + (self.offset - max(first, least)) % self.modulus
        end = min(last, most) - (min(last, most) - self.offset) % self.modulus
        return Congruence.bounded(start, end, self.modulus) if start <= end else self

    def join(self, other: Congruence) -> Congruence:
        """Either."""
        if self == other:
            return self
        return Congruence.of(self.offset, gcd(self.modulus, other.modulus, self.offset - other.offset))

    def includes(self, other: Congruence) -> bool:
        """Whether a join with another one, which says more, is this one."""
        unit = self.modulus
        if unit == 0 or self.last is not None or (other.modulus == unit and other.last is None):
            return False
        return other.modulus % unit == 0 and (other.offset - self.offset) % unit == 0

    def __add__(self, other: Congruence) -> Congruence:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.modulus == 0 == other.modulus:
            return Congruence(self.offset + other.offset, 0)
        a, b = self.span, other.span
        if a is not None and b is not None:
            return Congruence.bounded(a[0] + b[0], a[1] + b[1], gcd(self.modulus, other.modulus))
        return Congruence.of(self.offset + other.offset, gcd(self.modulus, other.modulus))

    def __sub__(self, other: Congruence) -> Congruence:
        if self.modulus == 0 == other.modulus:
            return Congruence(self.offset - other.offset, 0)
        return self + other * Congruence(-1, 0)

    def __mul__(self, other: Congruence) -> Congruence:  # pyright: ignore[reportIncompatibleMethodOverride]
        for one, factor in ((self, other.offset), (other, self.offset)):
            exact = (other if one is self else self).modulus == 0
            if exact and one.last is not None and abs(factor) < _LARGE:
                first, last = sorted((one.offset * factor, one.last * factor))
                return Congruence.bounded(first, last, abs(one.modulus * factor))
        a, m, b, n = self.offset, self.modulus, other.offset, other.modulus
        product = Congruence.of(a * b, gcd(a * n, b * m, m * n))
        exact = m == 0 == n or max(abs(a) if m == 0 else 0, abs(b) if n == 0 else 0) < _LARGE
        return product if exact else product.cut()

    def cut(self) -> Congruence:
        """After bits have been cut off at the top."""
        return Congruence.of(self.offset, self.modulus & -self.modulus) if self.modulus else self

    def shifted_right(self, by: int, bits: int, *, signed: bool) -> Congruence:
        """After a shift to the right, of an integer with so many bits of which some may have been cut off at the top
        (`ashr (shl %x, 32), 28` is 16 times the sign extension of `%x`)."""
        if self.modulus == 0:
            least = -(1 << (bits - 1)) if signed else 0
            return Congruence(((self.offset - least) % (1 << bits) + least) >> by, 0)
        low = self.modulus & -self.modulus
        return Congruence.of((self.offset % low) >> by, low >> by) if low >> by else ANY

    def masked(self, mask: int) -> Congruence:
        """After a bitwise `and` with a constant that clears low bits, or anything else."""
        if self.modulus == 0:
            return Congruence(self.offset & mask, 0)
        low = mask & -mask if mask else 0
        if mask >= 0:
            return Congruence.bounded(0, mask, low)
        return Congruence.of(0, low) if low > 1 else ANY


ANY = Congruence(0, 1)


def repeated(place: Congruence, others: Sequence[Congruence]) -> Congruence:
    """A place among others that are too many: wherever it comes round again with the longest period that any of them
    has, as a member of all records of an array; the join with all where none has a period."""
    period = max((o.modulus for o in others), default=0)
    if period == 0 or len(others) >= _TOO_MANY:
        return reduce(Congruence.join, others, place)
    return Congruence.of(place.offset, gcd(place.modulus, period))


def overlap(x: Congruence, x_size: int, y: Congruence, y_size: int) -> bool:
    """Whether so many bytes at one place may have any in common with so many at another."""
    a, b = x.span, y.span
    if a is not None and b is not None and not (a[0] < b[1] + y_size and b[0] < a[1] + x_size):
        return False
    if _is_between(a, x_size, y, y_size) or _is_between(b, y_size, x, x_size):
        return False
    unit = gcd(x.modulus, y.modulus)
    apart = x.offset - y.offset
    return unit == 0 or apart % unit < y_size or -apart % unit < x_size


def _is_between(span: tuple[int, int] | None, size: int, periodic: Congruence, periodic_size: int) -> bool:
    """Whether what lies in a span lies between two places of a period."""
    if span is None or periodic.modulus == 0:
        return False
    first = span[0] - periodic_size + 1
    return (periodic.offset - first) % periodic.modulus >= span[1] + size - first


def copied_to(at: Congruence, size: int, here: Congruence, there: Congruence, length: int | None) -> Congruence:
    """Where so many bytes at a place come to lie when a `length` (None: any) from `here` on is copied to `there`.
    A copy of known length to one place changes nothing beyond that."""
    moved = at + there - here
    if length is None or there.modulus or moved.span is not None:
        return moved
    first, last = there.offset - size + 1, there.offset + length - 1
    first += (moved.offset - first) % moved.modulus
    last -= (last - moved.offset) % moved.modulus
    return Congruence.bounded(first, max(first, last), moved.modulus)
