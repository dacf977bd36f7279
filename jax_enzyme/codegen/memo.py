"""A bounded memory of results that are expensive to make, each made once however many threads ask for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

V = TypeVar("V")


class _Abandoned(Exception):
    """Whoever was making a result has been interrupted."""


class Memo(Generic[V]):
    """Keeps the `size` results that were asked for last.

    Different keys are made at the same time; threads that ask for one key wait for the first of them. What raised is
    not kept, so that a later call tries again.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, Future[V]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The result for a key, made by `make` where there is none."""
        while True:
            try:
                return self._made(key, make)
            except _Abandoned:
                continue

    def has(self, key: Hashable) -> bool:
        """Whether there is a result, or one is being made."""
        with self._lock:
            return key in self._results

    def drop(self, key: Hashable) -> None:
        """Lets go of a result. Who waits for it gets it all the same."""
        with self._lock:
            self._results.pop(key, None)

    def _made(self, key: Hashable, make: Callable[[], V]) -> V:
        own: Future[V] = Future()
        try:
            with self._lock:
                future = self._results.setdefault(key, own)
                self._results.move_to_end(key)
                while len(self._results) > self._size:
                    self._results.popitem(last=False)
            if future is own:
                own.set_result(make())
        except BaseException as error:
            with self._lock:
                if self._results.get(key) is own:
                    del self._results[key]
            # An interrupt is meant for the thread that it reached: the others make the result themselves.
            if not own.done():
                own.set_exception(error if isinstance(error, Exception) else _Abandoned())
            raise
        return future.result()
