"""Minimum cut of a network with given capacities, by Dinic's algorithm (E. A. Dinic 1970)."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from math import inf


class Network:
    """A directed network; nodes are any hashable values and come into being with their first edge."""

    def __init__(self) -> None:
        self._ids: dict[Hashable, int] = {}
        self._edges: list[list[int]] = []
        self._heads: list[int] = []
        self._capacity: list[float] = []

    def _id(self, node: Hashable) -> int:
        if node not in self._ids:
            self._ids[node] = len(self._edges)
            self._edges.append([])
        return self._ids[node]

    def edge(self, tail: Hashable, head: Hashable, capacity: float) -> None:
        """An edge; parallel edges add up."""
        a, b = self._id(tail), self._id(head)
        for source, target, room in ((a, b, capacity), (b, a, 0.0)):
            self._edges[source].append(len(self._heads))
            self._heads.append(target)
            self._capacity.append(room)

    def source_side(self, source: Hashable, sink: Hashable) -> set[Hashable]:
        """The nodes on the source's side of a minimum cut (the smallest such side).

        Raises ValueError where the source and the sink are joined by a path of infinite capacity.
        """
        start, end = self._id(source), self._id(sink)
        while True:
            levels = self._levels(start)
            if levels[end] < 0:
                return {node for node, i in self._ids.items() if levels[i] >= 0}
            position = [0] * len(self._edges)
            while (pushed := self._augment(start, end, levels, position)) > 0:
                if pushed == inf:
                    raise ValueError("no finite cut")

    def _levels(self, start: int) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                head = self._heads[edge]
                if self._capacity[edge] > 0 and levels[head] < 0:
                    levels[head] = levels[node] + 1
                    queue.append(head)
        return levels

    def _augment(self, start: int, end: int, levels: list[int], position: list[int]) -> float:
        """Pushes flow along one path of the level graph; how much, 0 when there is none left."""
        path: list[int] = []
        node = start
        while node != end:
            edges = self._edges[node]
            while position[node] < len(edges):
                edge = edges[position[node]]
                if self._capacity[edge] > 0 and levels[self._heads[edge]] == levels[node] + 1:
                    break
                position[node] += 1
            else:
                if not path:
                    return 0.0
                levels[node] = -1
                node = self._heads[path.pop() ^ 1]
                continue
            path.append(edge)
            node = self._heads[edge]
        flow = min(self._capacity[e] for e in path)
        for edge in path:
            self._capacity[edge] -= flow
            self._capacity[edge ^ 1] += flow
        return flow
