"""A cache of bytes on disk, keyed by hex digests, shared by all processes of a user.

Entries are written to a temporary file and renamed, so that a reader sees a whole entry or none. They hold code: each
starts with the user's signature of its folder's name, its key and its contents (see `signing`), and one that is
damaged, forged, or lies under another's name counts as absent. Nobody else can read the folders, and those of others,
or that everybody may write to, are not used, with a warning. A cache is never needed: a folder that cannot be read or
written makes every `get` miss and every `put` do nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import warnings
from hashlib import sha256
from pathlib import Path

import platformdirs

from jax_enzyme.signing import is_own, own_signature

ENVIRONMENT_VARIABLE = "JAX_ENZYME_CACHE_DIR"
_SIGNATURE_BYTES = 32
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
        return DiskCache(None if root is None or not _may_be_used(root) else root / name)

    def get(self, key: str) -> bytes | None:
        """The entry, or None if there is none, or none that this user put there under this key."""
        if self.folder is None or not _is_private(self.folder):
            return None
        path = self.folder / key
        try:
            if not path.is_file():  # a pipe would be waited for
                return None
            raw = path.read_bytes()
        except OSError:
            return None
        data = raw[_SIGNATURE_BYTES:]
        if not is_own(raw[:_SIGNATURE_BYTES], self._purpose(key), data):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Stores an entry, in place of an older one."""
        try:
            if self.folder is None or not self._is_ready():
                return
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=self.folder)
        except OSError:
            return
        signature = own_signature(self._purpose(key), data)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(signature + data)
            os.replace(temporary, self.folder / key)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if not isinstance(error, OSError):
                raise
            return
        if self._is_time_to_look(signature, len(data)):
            self._evict()

    def temporary_folder(self) -> tempfile.TemporaryDirectory[str]:
        """A folder for files of the moment: in this cache's own, if there is one, since nothing in the system's may be
        executable."""
        with contextlib.suppress(OSError):
            if self._is_ready():
                return tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder)
        return tempfile.TemporaryDirectory(prefix="jax_enzyme-")

    def is_writable(self) -> bool:
        """Whether what is put here is there later."""
        with contextlib.suppress(OSError):
            return self._is_ready() and os.access(self.folder or "", os.W_OK)
        return False

    def _is_ready(self) -> bool:
        """Makes the folder where it is not there. Whether it may be used; OSError where it cannot be made."""
        if self.folder is None:
            return False
        self.folder.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return _is_private(self.folder)

    def _purpose(self, key: str) -> str:
        """What an entry is signed for: to be this one."""
        assert self.folder is not None
        return f"cache entry {self.folder.name}/{key}"

    def _is_time_to_look(self, signature: bytes, size: int) -> bool:
        """Chosen by the signature of what was written, as often as its size says: no process has to count."""
        drawn = int.from_bytes(signature[:8], "big") / 2**64
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


def _may_be_used(root: Path) -> bool:
    """Whether nobody but this user decides what lies in a folder, or there is none yet. Those that may not be used are
    told of."""
    try:
        status = root.stat()
    except OSError:
        return True  # `put` makes it, or cannot
    if status.st_uid != os.geteuid():
        _warn(root, "belongs to another user")
    elif status.st_mode & stat.S_IWOTH:
        _warn(root, "can be written to by everybody")
    else:
        return True
    return False


def _is_private(folder: Path) -> bool:
    """Whether a folder is this user's, with no link in its place. It is shut to all others if it was not."""
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            _warn(folder, "is no folder, or a link to one")
            return False
        if status.st_uid != os.geteuid():
            _warn(folder, "belongs to another user")
            return False
        if stat.S_IMODE(status.st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError:
        return False
    return True


def _warn(folder: Path, why: str) -> None:
    warnings.warn(
        f"jax_enzyme does not use the cache folder {folder}, which {why}: everything is compiled again in every "
        f"process. Let {ENVIRONMENT_VARIABLE} name a folder of your own.",
        stacklevel=2,
    )
