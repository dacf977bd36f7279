"""What this package is made of: caches of what it makes are keyed by that."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from jax_enzyme.cache import DiskCache, digest

_LOADED = time.time() - 1.0
"""When this module was loaded, and just before it those that it serves."""


def own_digest() -> str:
    """A digest of the package's sources: a version number would not change while somebody works on a checkout. Reading
    them takes longer than loading a kernel, so it is done once for what names, sizes and times of change say.

    Sources that changed after this process loaded them do not describe it: then the digest is one that no other process
    has, so that it neither finds nor leaves anything on disk for others.
    """
    root = Path(__file__).parent
    sources = sorted(sources_of(str(root)))
    if have_changed(sources):
        return os.urandom(32).hex()
    cache, key = DiskCache.named("sources"), digest(str(root), repr(sources))
    known = cache.get(key)
    if known is None:
        known = digest(*chain.from_iterable((path, _contents(f"{root}/{path}")) for path, _, _ in sources)).encode()
        cache.put(key, known)
    return known.decode()


def _contents(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def have_changed(sources: Iterable[tuple[str, int, int]] | None = None) -> bool:
    """Whether the package's sources, if they are not given, are others than this process began with."""
    found = sources_of(str(Path(__file__).parent)) if sources is None else sources
    return any(changed > _LOADED * 1e9 for _, _, changed in found)


def sources_of(root: str, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """The package's files, its headers without a suffix among them: path, size, nanoseconds of the last change."""
    with os.scandir(root) as scan:
        for entry in scan:
            if entry.name == "__pycache__":
                continue
            if entry.is_dir():
                yield from sources_of(entry.path, f"{prefix}{entry.name}/")
            else:
                status = entry.stat()
                yield prefix + entry.name, status.st_size, status.st_mtime_ns
