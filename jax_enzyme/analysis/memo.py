"""Memoised recursion through cycles: facts about values, loops and ranges that rest on one another."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

F = TypeVar("F")


class Memo:
    """A table of facts, each computed on demand.

    Computing a fact may ask for others and so, around a cycle, for itself. Every cycle must go through a *cut*: asked
    for while it is being computed, a cut is answered by its fallback, which must be true but may say little ("a phi is
    itself", "the range is full"). Whatever was found with its help is true too, but perhaps weaker than need be, so it
    is forgotten once the cut is settled, and found again, better, when next asked for. Cuts are placed where the
    recursion should turn around (a loop header's phi, not whichever value of the cycle was asked for first). Beyond
    `depth` nested questions fallbacks are given out as well, to bound the stack, and beyond `work` questions for one
    answer, to bound the time: where many cycles share values, what is forgotten is found again exponentially often.
    Once `total` questions were asked for answers that took many, those that follow get no more than a tenth of `work`:
    a function in which one answer is beyond reach mostly has hundreds of them.
    """

    def __init__(self, depth: int = 50, work: int = 10_000, total: int = 15_000) -> None:
        self._limit = depth
        self._depth = 0
        self._work = work
        self._done = 0
        self._cheap = work // 10
        self._left = total
        self._facts: dict[Hashable, Any] = {}
        self._cuts: dict[Hashable, int] = {}
        self._log: list[Hashable] = []
        self._used = 0

    def get(self, key: Hashable, compute: Callable[[], F], fallback: Callable[[], F], cut: bool) -> F:
        """The fact `key`; `compute` finds it, `fallback` is true of it whatever it is."""
        if key in self._facts:
            return self._facts[key]
        if key in self._cuts:
            self._used |= 1 << self._cuts[key]
            return fallback()
        if self._depth >= self._limit or self._done >= self._work:
            return fallback()
        self._depth += 1
        self._done += 1
        fact = self._compute_cut(key, compute) if cut else compute()
        self._depth -= 1
        if key not in self._facts:
            self._log.append(key)
        self._facts[key] = fact
        if self._depth == 0:
            self._log.clear()
            self._settle_work()
        return fact

    def _settle_work(self) -> None:
        if self._done > self._cheap:
            self._left -= self._done
            if self._left <= 0:
                self._work = self._cheap
        self._done = 0

    def _compute_cut(self, key: Hashable, compute: Callable[[], F]) -> F:
        """`_used` are the cuts whose fallbacks were used: bits by place on the stack of cuts."""
        level, start = len(self._cuts), len(self._log)
        outer, self._used = self._used, 0
        self._cuts[key] = level
        fact = compute()
        del self._cuts[key]
        if self._used >> level & 1:
            for weak in self._log[start:]:
                del self._facts[weak]
            del self._log[start:]
        self._used = outer | (self._used & ~(1 << level))
        return fact
