"""Keeps Python's cycle collector away from code that builds large structures."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Generator[None]:
    """No collections inside. A module is some hundred thousand new objects, none of them garbage; beside the heap of a
    JAX program the collections that they set off took 40 % of the time. After concurrent uses it runs again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
