"""Each result is made once, whoever asks; what is long unused goes; failures are tried again."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from jax_enzyme.codegen.memo import Memo


def test_threads_that_ask_for_one_key_share_the_work() -> None:
    memo: Memo[int] = Memo(8)
    made: list[int] = []

    def make() -> int:
        time.sleep(0.05)
        made.append(1)
        return 7

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: memo.get("key", make), range(8)))
    assert results == [7] * 8
    assert made == [1]


def test_different_keys_are_made_at_the_same_time() -> None:
    memo: Memo[int] = Memo(8)
    both = threading.Barrier(2, timeout=5)

    def make() -> int:
        return both.wait()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda key: memo.get(key, make), "ab")) == [0, 1]


def test_the_least_recently_used_goes() -> None:
    memo: Memo[int] = Memo(2)
    for key in (1, 2, 1, 3):
        memo.get(key, lambda key=key: key)
    assert memo.get(1, lambda: -1) == 1
    assert memo.get(2, lambda: -2) == -2


def test_failures_reach_the_caller_and_are_tried_again() -> None:
    memo: Memo[int] = Memo(2)

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memo.get(1, fail)
    assert memo.get(1, lambda: 4) == 4
