"""Compiled calls for arguments that are no tracers, for as long as the kernels live that they are of.

A kernel is a value, so its calls are those of all that are equal to it; those of the kernels that were made last stay
although these are gone: a function that makes its kernel anew whenever it is called compiles it once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakValueDictionary, ref

_MOST = 1024
"""Calls of all kernels together; each takes a megabyte or two of XLA's."""
_GONE = 16
"""Kernels whose calls stay although nothing else may hold them."""


class Calls:
    """The calls of equal kernels by the static integers among their arguments."""

    def __init__(self) -> None:
        self._compiled: dict[Hashable, Any] = {}

    def get(self, static: Hashable, compile_call: Callable[[], Any]) -> Any:
        """The call for these integers, made where there is none."""
        found = self._compiled.get(static)
        if found is None:
            found = self._compiled.setdefault(static, compile_call())
            _made.append((ref(self), static))
            while len(_made) > _MOST:
                _forget_oldest()
        return found


def calls_of(identity: Hashable) -> Calls:
    """The calls of the kernels with this content."""
    with _lock:
        found = _known.get(identity)
        if found is None:
            found = _known[identity] = Calls()
        _recent[identity] = found
        _recent.move_to_end(identity)
        if len(_recent) > _GONE:
            _recent.popitem(last=False)
        return found


_known: WeakValueDictionary[Hashable, Calls] = WeakValueDictionary()
_recent: OrderedDict[Hashable, Calls] = OrderedDict()
_made: deque[tuple[ref[Calls], Hashable]] = deque()
_lock = threading.Lock()


def _forget_oldest() -> None:
    calls, static = _made.popleft()
    alive = calls()
    if alive is not None:
        alive._compiled.pop(static, None)  # pyright: ignore[reportPrivateUsage]
