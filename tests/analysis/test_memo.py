"""Memoised recursion: facts that all rest on one another are found in bounded time."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.memo import Memo


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
