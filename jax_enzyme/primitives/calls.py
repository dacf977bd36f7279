"""Compiled calls for arguments that are no tracers, for as long as the kernels live that they are of.

A kernel is a value, so its calls are those of all that are equal to it; those of the kernels that were used last stay
although these are gone: a function that makes its kernel anew whenever it is called compiles it once. Derived functions
that are called outside of `jax.jit` belong to the programs that they were derived from.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakValueDictionary, ref

_MOST = 1024
"""Calls of all kernels together; each takes a megabyte or two of XLA's."""
_GONE = 32
"""Kernels and programs whose calls stay although nothing else may hold them."""


class Calls:
    """The calls of equal kernels, or of one program, by what tells them apart. `others` live at least as long."""

    def __init__(self, others: Sequence[Calls] = ()) -> None:
        self._others = tuple(others)
        self._compiled: dict[Hashable, Any] = {}

    def get(self, which: Hashable, compile_call: Callable[[], Any]) -> Any:
        """The call that this says, made where there is none."""
        found = self._compiled.get(which)
        if found is None:
            found = self._compiled.setdefault(which, compile_call())
            _made.append((ref(self), which))
            while len(_made) > _MOST:
                _forget_oldest()
        return found


def calls_of(identity: Hashable, others: Sequence[Calls] = ()) -> Calls:
    """The calls of the kernels or the program with this content."""
    with _lock:
        found = _known.get(identity)
        if found is None:
            found = _known[identity] = Calls(others)
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
    calls, which = _made.popleft()
    alive = calls()
    if alive is not None:
        alive._compiled.pop(which, None)  # pyright: ignore[reportPrivateUsage]
