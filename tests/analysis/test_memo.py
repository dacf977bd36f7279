"""Memoised recursion: facts that all rest on one another are found in bounded time."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.memo import Memo
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir.reader import parse


class Clique:
    """Facts of which each is the sum of all others, cut wherever one asks for itself."""

    def __init__(self, size: int, memo: Memo) -> None:
        self._size = size
        self._memo = memo
        self.questions = 0

    def fact(self, key: int) -> int:
        def compute() -> int:
            self.questions += 1
            return 1 + max(self.fact(k) for k in range(self._size) if k != key)

        return self._memo.get(key, compute, lambda: 0, cut=True)


@pytest.mark.parametrize(("total", "most"), [(2000, 2000 + 2 * 1000 + 40 * 100), (10**6, 40 * 1000)])
def test_work_is_bounded_together(total: int, most: int) -> None:
    """The first answers may take long; once `total` is used up, each of the others gets a tenth."""
    clique = Clique(40, Memo(work=1000, total=total))
    for key in range(40):
        clique.fact(key)
    assert clique.questions <= most
    assert total < 10**6 or clique.questions > 20 * 1000


def test_answers_that_are_the_fallback_are_found_once() -> None:
    """Whatever rests on a fallback that is the answer would be found again the same."""
    memo, asked = Memo(work=10**6), list[int]()

    def unknown(key: int) -> int:
        def compute() -> int:
            asked.append(key)
            return min(unknown(k) for k in range(12))

        return memo.get(key, compute, lambda: 0, cut=True)

    assert [unknown(key) for key in range(12)] == [0] * 12
    assert sorted(asked) == list(range(12))


def test_what_was_taken_for_granted_is_forgotten_where_it_does_not_hold() -> None:
    """A counter is its own narrowed and widened value as long as it fits: that is assumed while it is asked for."""
    text = """
        define void @f(i1 %c) {
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          %narrow = trunc i64 %i to i32
          %wide = sext i32 %narrow to i64
          %next = add i64 %wide, 3
          br i1 %c, label %loop, label %end
        end:
          ret void
        }"""
    module = parse(text)
    (function,) = module.functions.values()
    facts = Recurrences(function, Loops(cfg := Cfg(function), Dominators(cfg)), module)
    i, _, wide, *_ = function.blocks[1].instructions
    for value in (i, wide):
        assert facts.form(value).polynomial.is_atom(facts.leaf(value))
