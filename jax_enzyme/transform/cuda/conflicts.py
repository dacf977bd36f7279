"""Which accesses to memory conflict: of different members of a group, at least one writing, and not both atomic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.transform.cuda import accesses as kinds

Numbers = NDArray[Any]


def conflicts(
    kind: Numbers, site: Numbers, keys: Sequence[Numbers], members: Numbers
) -> dict[tuple[int, int], tuple[int, int, int]]:
    """One element of each array per access of a place; accesses that have all keys in common are compared. Per pair of
    sites one pair of accesses and the number of groups in which they are that pair. Of each group that has a conflict,
    one pair is looked at: its first write and the first access that conflicts with it."""
    if not len(members):
        return {}
    order = np.lexsort((members, *reversed(keys)))
    changed = np.zeros(len(order), bool)
    changed[0] = True
    for key in keys:
        changed[1:] |= key[order][1:] != key[order][:-1]
    starts = np.flatnonzero(changed)
    ends = np.r_[starts[1:], len(order)]
    sorted_members, sorted_kind = members[order], kind[order]
    several = sorted_members[starts] != sorted_members[ends - 1]
    writes = np.add.reduceat((sorted_kind != kinds.READ).astype(np.int64), starts) > 0
    plain = np.add.reduceat((sorted_kind != kinds.ATOMIC).astype(np.int64), starts) > 0
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for start, end in zip(
        starts[several & writes & plain].tolist(), ends[several & writes & plain].tolist(), strict=True
    ):
        pair = _pair(order[start:end], kind, members)
        if pair is None:
            continue
        sites = (int(site[pair[0]]), int(site[pair[1]]))
        first, second, count = found.get(sites, (*pair, 0))
        found[sites] = (first, second, count + 1)
    return found


def _pair(group: Numbers, kind: Numbers, members: Numbers) -> tuple[int, int] | None:
    """Two accesses of a group that conflict."""
    kinds_, who = kind[group], members[group]
    for write in (kinds.WRITE, kinds.ATOMIC):
        writers = np.flatnonzero(kinds_ == write)
        others = np.flatnonzero(kinds_ != kinds.ATOMIC) if write == kinds.ATOMIC else np.arange(len(group))
        for n in writers[[0, -1]] if len(writers) else ():
            against = others[who[others] != who[n]]
            if len(against):
                return int(group[n]), int(group[against[0]])
    return None
