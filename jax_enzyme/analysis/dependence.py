"""A worklist for analyses with facts of several sorts: a step is repeated when something that it has read has changed.

A step says what it reads and what it changes while it runs; nothing has to be told beforehand. Facts are named by any
hashable keys. They only grow, in a lattice of finite height, and a step adds what follows from the facts that it reads:
so the result is the least fixed point whatever the order. A step is visited once, and once more for each change of what
it has read, or for several. Pending steps are taken in passes, each in the order in which the steps are given: where an
analysis widens what has grown too long, it sees facts that belong to each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

N = TypeVar("N")


class Worklist(Generic[N]):
    """Runs `step` for each of `nodes` until nothing changes; for those that are `last` while nothing else is pending.
    `visits` counts how often it ran."""

    def __init__(self, nodes: Sequence[N], step: Callable[[N], None], last: Callable[[N], bool] | None = None) -> None:
        self._nodes = nodes
        self._step = step
        self._readers: dict[Hashable, set[int]] = {}
        self._heap: list[int] = []
        self._next: list[int] = []
        self._waiting: list[int] = []
        self._last = frozenset(i for i, node in enumerate(nodes) if last is not None and last(node))
        self._pending: set[int] = set()
        self._current: int | None = None
        self.visits = 0

    def read(self, fact: Hashable) -> None:
        """The step that runs depends on a fact."""
        if self._current is not None:
            self._readers.setdefault(fact, set()).add(self._current)

    def changed(self, fact: Hashable) -> None:
        """A fact has grown: whatever has read it runs again."""
        for reader in self._readers.get(fact, ()):
            if reader not in self._pending:
                self._pending.add(reader)
                late = self._current is not None and reader <= self._current
                heapq.heappush(self._heap_of(reader, self._next if late else self._heap), reader)

    def _heap_of(self, node: int, other: list[int]) -> list[int]:
        return self._waiting if node in self._last else other

    def run(self) -> None:
        """Runs every step, and then those that have to be repeated."""
        self._pending = set(range(len(self._nodes)))
        self._heap = sorted(self._pending - self._last)
        self._waiting = sorted(self._last)
        self.go_on()

    def go_on(self) -> None:
        """Runs what has to be repeated since something was said to have changed."""
        while self._pending:
            if not self._heap:
                self._heap, self._next = self._next, []
            if not self._heap:
                self._heap, self._waiting = self._waiting, []
            self._current = heapq.heappop(self._heap)
            self._pending.discard(self._current)
            self.visits += 1
            self._step(self._nodes[self._current])
        self._current = None

    def close(self) -> None:
        """Nothing is going to change any more: who has read what is forgotten, and so is whose the steps are, which has
        the worklist in turn."""
        self._readers.clear()
        del self._step
