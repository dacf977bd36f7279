"""Keeps Python's cycle collector away from code that builds large structures."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from time import process_time

_SHARE = 50
"""Collections take at most this part of the time that is spent without them."""


@contextmanager
def collector_paused() -> Generator[None]:
    """No collections inside. A module is some hundred thousand new objects, few of them garbage before the end; beside
    the heap of a JAX program the collections that they set off took 40 % of the time. After concurrent uses it runs
    again.

    All that is new at the end counts as old: a collection of what is young would look at each of these objects up to
    three times. For that the collector, which counts collections that objects have survived, sees less of them than it
    should, and so all is collected here, as often as its cost allows: a kernel that is dropped is a few thousand
    objects, with 2 MB behind them, of code of ours and of XLA's, that Python does not count."""
    if not gc.isenabled():
        yield
        return
    began = process_time()
    gc.disable()
    try:
        yield
    finally:
        _take_for_old(process_time() - began)
        gc.enable()


def _take_for_old(seconds: float) -> None:
    global _since, _cost
    if gc.get_freeze_count():
        return  # somebody else's, and to thaw what is ours would thaw it too
    _since += seconds
    if _since > _SHARE * _cost:
        began = process_time()
        gc.collect()
        _since, _cost = 0.0, process_time() - began
    gc.freeze()
    gc.unfreeze()


_since = 0.0
_cost = 0.3
"""Seconds without collections since the last one, and what that took; the first is guessed to be beside a large module
of C++, so that a process with one kernel does without."""
