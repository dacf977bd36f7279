"""Keeps Python's cycle collector away from code that builds large structures."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

_GARBAGE = 2_000_000
"""So many blocks of memory, of some 80 bytes each, may be garbage."""


@contextmanager
def collector_paused() -> Generator[None]:
    """No collections inside. A module is some hundred thousand new objects, few of them garbage before the end; beside
    the heap of a JAX program the collections that they set off took 40 % of the time. After concurrent uses it runs
    again.

    All that is new at the end counts as old: a collection of what is young would look at each of these objects up to
    three times. For that the collector, which counts collections that objects have survived, sees less of them than it
    should, and so all is collected here when memory has doubled since it was last."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _take_for_old()
        gc.enable()


def _take_for_old() -> None:
    global _after_collection
    if gc.get_freeze_count():
        return  # somebody else's, and to thaw what is ours would thaw it too
    if sys.getallocatedblocks() > max(2 * _after_collection, _after_collection + _GARBAGE):
        gc.collect()
        _after_collection = sys.getallocatedblocks()
    gc.freeze()
    gc.unfreeze()


_after_collection = sys.getallocatedblocks()
