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
    is forgotten once the cut is settled, and found again, better, when next asked for. (What did not rest on it stays,
    and so does all where the fallback was the answer: nothing better would be found.)
    Cuts are placed where the recursion should turn around (a loop header's phi, not whichever value of the cycle was
    asked for first). Beyond `depth` nested questions fallbacks are given out as well, to bound the stack, and beyond
    `work` questions for one answer, to bound the time: where many cycles share values, what is forgotten is found again
    exponentially often. Once `total` questions were asked for answers that took many, those that follow get no more
    than a tenth of `work`: a function in which one answer is beyond reach mostly has hundreds of them.
    """

    def __init__(self, depth: int = 50, work: int = 5_000, total: int = 6_000) -> None:
        self._limit = depth
        self._depth = 0
        self._work = work
        self._done = 0
        self._cheap = work // 10
        self._left = total
        self._facts: dict[Hashable, Any] = {}
        self._cuts: dict[Hashable, int] = {}
        self._weak: dict[Hashable, int] = {}
        self._used = 0
        self._doubted = 0

    def get(self, key: Hashable, compute: Callable[[], F], fallback: Callable[[], F], cut: bool) -> F:
        """The fact `key`; `compute` finds it, `fallback` is true of it whatever it is."""
        if key in self._facts:
            self._used |= self._weak.get(key, 0)
            return self._facts[key]
        if key in self._cuts:
            self._used |= 1 << self._cuts[key]
            return fallback()
        if self._depth >= self._limit or self._done >= self._work:
            return fallback()
        self._depth += 1
        self._done += 1
        outer, self._used = self._used, 0
        fact = self._compute_cut(key, compute, fallback) if cut else compute()
        self._depth -= 1
        self._facts[key] = fact
        if self._used:
            self._weak[key] = self._used
        self._used |= outer
        if self._depth == 0:
            self._settle_work()
        return fact

    def _settle_work(self) -> None:
        if self._done > self._cheap:
            self._left -= self._done
            if self._left <= 0:
                self._work = self._cheap
        self._done = 0

    def doubt(self) -> None:
        """Says that what was found with the help of the innermost cut's fallback took more for granted than that."""
        self._doubted |= 1 << (len(self._cuts) - 1)

    def _compute_cut(self, key: Hashable, compute: Callable[[], F], fallback: Callable[[], F]) -> F:
        """`_used` are the open cuts whose fallbacks a fact rests on: bits by place on the stack of cuts. `_weak` has
        those of every fact that rests on any."""
        bit = 1 << len(self._cuts)
        self._cuts[key] = len(self._cuts)
        fact = compute()
        del self._cuts[key]
        is_doubted, self._doubted = bool(self._doubted & bit), self._doubted & ~bit
        if self._used & bit:
            self._used &= ~bit
            resting = [k for k, used in self._weak.items() if used & bit]
            stays = not is_doubted and fact == fallback()
            for weak in resting:
                used = self._weak.pop(weak) & ~bit | self._used
                if not stays:
                    del self._facts[weak]
                elif used:
                    self._weak[weak] = used
        return fact
