"""Few rows in which every two values of different axes meet, in place of the product of all axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any


def pairwise(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with one value of each axis, such that each pair of values of two axes stands in a row.

    What has to meet in threes is one axis of tuples, whose members become columns of their own. Each row is the one of
    the product in which most pairs are new; the rows are the same in every process.
    """
    pairs = {
        ((a, i), (b, j))
        for a, b in itertools.combinations(range(len(axes)), 2)
        for i in range(len(axes[a]))
        for j in range(len(axes[b]))
    }
    rows = {
        indices: frozenset(itertools.combinations(enumerate(indices), 2))
        for indices in itertools.product(*(range(len(axis)) for axis in axes))
    }
    chosen: list[tuple[Any, ...]] = []
    while pairs:
        best = max(rows, key=lambda row: len(rows[row] & pairs))
        pairs -= rows[best]
        chosen.append(tuple(_columns(tuple(axis[i] for axis, i in zip(axes, best, strict=True)))))
    return chosen


def _columns(value: Any) -> Iterator[Any]:
    if not isinstance(value, tuple):
        yield value
        return
    for member in value:
        yield from _columns(member)
