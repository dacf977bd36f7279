"""What walks write, as entries that can be compared, and what a loop writes in all its iterations.

for (i = 0; i < 4; i++) y[i] = 0            zeros in 32 bytes from y on, as of a memset
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jax_enzyme.analysis.symbols import Term, Terms
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T


@dataclass(frozen=True)
class Written:
    """A value at an address; without one, zeros in so many bytes."""

    address: Term
    value: Term | None
    length: int

    @property
    def is_zero(self) -> bool:
        return self.value is None or (self.value.number == 0 and not T.is_pointer(self.value.type))


@dataclass(frozen=True)
class Counter:
    """A phi of a loop's header that starts with a term and moves on by a constant."""

    phi: Term
    start: Term
    step: int


def repeated(terms: Terms, written: Written, counters: Sequence[Counter], trips: int) -> Written | None:
    """What an entry that every iteration of a loop writes is after all of them: zeros side by side, or None. The
    address is a counter's multiple and what is the same in all iterations."""
    if not written.is_zero:
        return None
    _, parts = terms.linear(written.address)
    found = [c for c in counters if c.phi in parts]
    if len(found) != 1:
        return None
    (counter,) = found
    factor = parts[counter.phi]
    stride = factor * counter.step
    if abs(stride) != written.length:
        return None
    behind = min(stride * (trips - 1), 0)
    moved = [(written.address, 1), (counter.phi, -factor), (counter.start, factor)]
    return Written(terms.total(written.address.type, moved, behind), None, trips * written.length)


def zeros(terms: Terms, written: Sequence[Written]) -> list[tuple[int, int]] | None:
    """Where zeros are, in bytes from the first entry's address on, neighbours joined. None where there is more than
    zeros, or where is not clear."""
    spans: list[tuple[int, int]] = []
    for entry in written:
        start = terms.distance(entry.address, written[0].address)
        if start is None or not entry.is_zero:
            return None
        spans.append((start, start + entry.length))
    return list(_joined(sorted(spans)))


def joined_zeros(terms: Terms, written: Sequence[Written]) -> list[Written]:
    """Zeros side by side as one entry each; none where there is more than zeros."""
    spans = zeros(terms, written) or []
    first = written[0].address
    return [Written(terms.total(first.type, [(first, 1)], start), None, end - start) for start, end in spans]


def _joined(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, end = spans[0]
    for first, last in spans[1:]:
        if first > end:
            yield start, end
            start = first
        end = max(end, last)
    yield start, end


def same_zeros(terms: Terms, left: Sequence[Written], right: Sequence[Written]) -> bool:
    """Whether both wrote zeros, to the same bytes, and nothing else."""
    if not left or not right:
        return not left and not right
    apart = terms.distance(right[0].address, left[0].address)
    one, other = zeros(terms, left), zeros(terms, right)
    if apart is None or one is None or other is None:
        return False
    return one == [(start + apart, end + apart) for start, end in other]
