"""Arithmetical congruences: what is known of an integer when it is known up to a multiple.

    lattice     c + mZ, `modulus` 0 for the one number c; (0, 1) is every integer
    join        the greatest common divisor of both moduli and of the distance between the offsets
    height      finite: every step up divides the modulus

Address arithmetic is taken as LLVM takes that of `inbounds` pointers, without overflow. Where bits are cut off for
certain (`trunc`, a multiplication by a large constant, as in hash functions), only powers of two survive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

_LARGE = 1 << 31


@dataclass(frozen=True, slots=True)
class Congruence:
    """All integers `offset` + k * `modulus`; in normal form, 0 <= offset < modulus unless the modulus is 0."""

    offset: int
    modulus: int

    @staticmethod
    def of(offset: int, modulus: int = 0) -> Congruence:
        """In normal form."""
        modulus = abs(modulus)
        return Congruence(offset % modulus if modulus else offset, modulus)

    def join(self, other: Congruence) -> Congruence:
        """Either."""
        if self == other:
            return self
        return Congruence.of(self.offset, gcd(self.modulus, other.modulus, self.offset - other.offset))

    def includes(self, other: Congruence) -> bool:
        """Whether every integer of the other one is one of these."""
        if self.modulus == 0:
            return other == self
        return other.modulus % self.modulus == 0 and (other.offset - self.offset) % self.modulus == 0

    def __add__(self, other: Congruence) -> Congruence:
        return Congruence.of(self.offset + other.offset, gcd(self.modulus, other.modulus))

    def __sub__(self, other: Congruence) -> Congruence:
        return Congruence.of(self.offset - other.offset, gcd(self.modulus, other.modulus))

    def __mul__(self, other: Congruence) -> Congruence:
        a, m, b, n = self.offset, self.modulus, other.offset, other.modulus
        product = Congruence.of(a * b, gcd(a * n, b * m, m * n))
        exact = m == 0 == n or max(abs(a) if m == 0 else 0, abs(b) if n == 0 else 0) < _LARGE
        return product if exact else product.cut()

    def cut(self) -> Congruence:
        """After bits have been cut off at the top."""
        return Congruence.of(self.offset, self.modulus & -self.modulus) if self.modulus else self

    def masked(self, mask: int) -> Congruence:
        """After a bitwise `and` with a constant that clears low bits, or anything else."""
        if self.modulus == 0:
            return Congruence(self.offset & mask, 0)
        low = mask & -mask if mask else 0
        return Congruence.of(0, low) if low > 1 else ANY


ANY = Congruence(0, 1)
