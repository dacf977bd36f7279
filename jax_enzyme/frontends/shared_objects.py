"""Shared objects of run-time libraries that are made when a kernel first needs them, and kept in the disk cache."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from jax_enzyme.cache import DiskCache


def load(name: str, key: str, make: Callable[[Path], Path]) -> ctypes.CDLL:
    """The shared object with this key, loaded. `make` makes its file, in a folder that it is given, where the cache
    has none. What is loaded is a copy of the entry, which nobody can change between the look at its signature and the
    loading. OSError where it does not load."""
    cache = DiskCache.named(name)
    with cache.temporary_folder() as folder:
        contents = cache.get(key)
        if contents is None:
            contents = make(Path(folder)).read_bytes()
            cache.put(key, contents)
        file = Path(folder) / f"{name}-{key}.so"
        file.write_bytes(contents)
        return ctypes.CDLL(str(file))
