"""Which thread of a block stored what lies at an address of shared memory, found in a table of all threads.

    s[4 * (x % 2) + j][x / 2] = a[...][j]       j: 0 to 3, four stores; x: 0 to 63; rows of 32 floats

    address         x       j
    0, 4, 8 ..      0 2 4   0          128 bytes on      0   1          512 bytes on      1   0

So an address is a number of three digits: 32 of 4 bytes each, which count x by two, four of 128 bytes, which count j,
and two of 512 bytes, which count x by one. Nothing is asked about how the program computes it: quotients, remainders
and masks of a thread's numbers are as good as the numbers. The table says for every address who stores there, or there
are no digits.

Where a thread stores in a loop that every thread runs equally often, the iteration is one more of its numbers:

    for (i = y; i < 128; i += 32) s[i][x] = ...        y: 0 to 31; iterations: 0 to 3, each 32 rows on
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from jax_enzyme.analysis.folding import Numbers, evaluated, wrapped
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Atom, Leaf, Polynomial
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.cuda.evening import Counter

MEMBER = "bytes"
"""What counts the stores that write next to each other, beside the names of the thread's numbers: by how many bytes
the address that is read from moves on."""

Name = str | Loop
"""What tells stores from one another: a thread's numbers, the iterations of loops, and `MEMBER`."""

_MOST_DIGITS = 6


class Threads:
    """All threads of a block, in all iterations of some loops, and what expressions of their numbers are for each."""

    def __init__(self, extents: dict[Name, int], counters: Mapping[Loop, Sequence[Counter]] | None = None) -> None:
        """By name, the fastest first; and what the loops count, from the outermost on."""
        self.extents = extents
        self.count = prod(extents.values())
        number, self.numbers = np.arange(self.count, dtype=np.int64), dict[Name, Numbers]()
        for name, extent in extents.items():
            self.numbers[name] = number % extent
            number = number // extent
        self._table: dict[Value, Numbers | None] = {}
        for loop, counted in (counters or {}).items():
            for counter in counted:
                start = evaluated(counter.start, self._table, self._given)
                if start is not None and isinstance(counter.phi.type, T.IntType):
                    bits = counter.phi.type.bits
                    self._table[counter.phi] = wrapped(start + counter.step * self.numbers[loop], bits)

    def split(self, polynomial: Polynomial, *, zero: bool = False) -> tuple[Numbers, Polynomial]:
        """The part that follows from the thread's numbers, for all threads, and the rest. With `zero`, other atoms are
        taken for 0."""
        total, rest = np.zeros(self.count, np.int64), Polynomial({})
        for monomial, factor in polynomial.terms.items():
            values = [self._of(atom, zero) if degree == 1 else None for atom, degree in monomial]
            known = [v for v in values if v is not None]
            if len(known) == len(values):
                total = total + factor * prod(known, start=np.ones(self.count, np.int64))
            elif not zero:
                rest += Polynomial({monomial: factor})
        return total, rest

    def _of(self, atom: Atom, zero: bool) -> Numbers | None:
        if isinstance(atom, Leaf):
            found = evaluated(atom.value, self._table, self._given)
        else:
            found = self.numbers.get(atom.loop)
        if found is None:
            return np.zeros(self.count, np.int64) if zero else None
        return np.broadcast_to(np.asarray(found, np.int64), self.count)

    def _given(self, call: I.Call) -> Numbers | None:
        return self.numbers.get(callee_name(call))


@dataclass(frozen=True)
class Digit:
    """`extent` numbers, `gap` bytes apart, and what each step adds to the numbers of the thread that stores there."""

    gap: int
    extent: int
    counts: Mapping[Name, int]


@dataclass(frozen=True)
class Places:
    """Where threads store `size` bytes each: from `start` on by digits, the largest first; `first`: who stores there.
    `addresses`: all of them."""

    start: int
    size: int
    digits: tuple[Digit, ...]
    first: Mapping[Name, int]
    addresses: Numbers

    def meets(self, other: Places) -> bool:
        """Do two stores write the same byte?"""
        if self._reach.high < other._reach.low or other._reach.high < self._reach.low:
            return False
        starts = np.concatenate([self.addresses, other.addresses])
        ends = np.concatenate([self.addresses + self.size, other.addresses + other.size])
        order = np.argsort(starts, kind="stable")
        return bool((starts[order][1:] < ends[order][:-1]).any())

    @property
    def _reach(self) -> Interval:
        return Interval(int(self.addresses[0]), int(self.addresses[-1]) + self.size - 1)


def places(threads: Threads, stores: Sequence[tuple[Numbers, int]], size: int) -> Places | None:
    """The digits of what some stores write, each given by its addresses and the bytes its source has moved on; None
    where there are none, or two threads store in one place."""
    addresses = np.concatenate([a for a, _ in stores])
    who = {name: np.tile(numbers, len(stores)) for name, numbers in threads.numbers.items()}
    who[MEMBER] = np.repeat(np.array([moved for _, moved in stores], np.int64), threads.count)
    order = np.argsort(addresses, kind="stable")
    addresses = addresses[order]
    table = np.stack([addresses, *(numbers[order] for numbers in who.values())])
    digits: list[Digit] = []
    rest = table
    while rest.shape[1] > 1:
        steps = np.diff(rest, axis=1)
        same = (steps == steps[:, :1]).all(axis=0)
        extent = len(same) + 1 if same.all() else int(np.argmin(same)) + 1
        if rest.shape[1] % extent or len(digits) == _MOST_DIGITS:
            return None
        rows = rest.reshape(len(rest), -1, extent)
        if (rows - rows[:, :, :1] != rows[:, :1] - rows[:, :1, :1]).any():
            return None
        gap, *counts = (int(n) for n in steps[:, 0])
        digits.append(Digit(gap, extent, dict(zip(who, counts, strict=True))))
        rest = rows[:, :, 0]
    span = size
    for digit in digits:
        if digit.gap < span:
            return None
        span = digit.gap * digit.extent
    start, *first = (int(n) for n in table[:, 0])
    return Places(start, size, tuple(reversed(digits)), dict(zip(who, first, strict=True)), addresses)


@dataclass(frozen=True)
class Group:
    """Digits of an address, the largest first, that make one number: a polynomial."""

    number: Polynomial
    digits: tuple[Digit, ...]

    def __iter__(self) -> Iterator[tuple[int, int | None, Digit]]:
        """Each digit, what the number is to be divided by for it, and what it is the remainder by then."""
        for digit in self.digits:
            whole = digit is self.digits[0]
            yield digit.gap // self.digits[-1].gap, None if whole else digit.extent, digit
