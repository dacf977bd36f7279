"""A cache of bytes on disk, keyed by hex digests, shared by all processes of a user.

Entries are written to a temporary file and renamed, so that a reader sees a whole entry or none; each starts with the
digest of its contents, so that a damaged one counts as absent. A cache is never needed: a folder that cannot be read or
written makes every `get` miss and every `put` do nothing.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from hashlib import sha256
from pathlib import Path

import platformdirs

ENVIRONMENT_VARIABLE = "JAX_ENZYME_CACHE_DIR"
_DIGEST_BYTES = 32
_BLOCK = 4096
_MAX_BYTES = 1 << 30
_SWEEPS = 32
"""About how often the folder is looked through while as much is written to it as it may hold. Looking takes as long as
there are entries, so not every `put` can."""


def cache_root() -> Path | None:
    """The folder of all caches: JAX_ENZYME_CACHE_DIR, or the user's cache folder; None if that variable is empty."""
    given = os.environ.get(ENVIRONMENT_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    return Path(platformdirs.user_cache_dir("jax_enzyme", appauthor=False))


def digest(*parts: str | bytes) -> str:
    """A key from parts that are told apart by their lengths: ("ab", "c") and ("a", "bc") differ."""
    state = sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(f"{len(data)}:".encode())
        state.update(data)
    return state.hexdigest()


class DiskCache:
    """The entries in one folder. When they exceed `max_bytes` by some 3 percent, those unused for longest go."""

    def __init__(self, folder: Path | None, max_bytes: int = _MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes

    @staticmethod
    def named(name: str) -> DiskCache:
        """The cache `name` under the root of all caches."""
        root = cache_root()
        return DiskCache(None if root is None else root / name)

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none or it is damaged."""
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        data = raw[_DIGEST_BYTES:]
        if sha256(data).digest() != raw[:_DIGEST_BYTES]:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Stores an entry, in place of an older one."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=self.folder)
        except OSError:
            return
        check = sha256(data).digest()
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(check + data)
            os.replace(temporary, self.folder / key)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return
        if self._is_time_to_look(check, len(data)):
            self._evict()

    def _is_time_to_look(self, check: bytes, size: int) -> bool:
        """Chosen by the digest of what was written, as often as its size says: no process has to count."""
        drawn = int.from_bytes(check[:8], "big") / 2**64
        return drawn < (size + _BLOCK) * _SWEEPS / self.max_bytes

    def _evict(self) -> None:
        entries: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as scan:
            for entry in scan:
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    entries.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.max_bytes:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
