"""Whose code is run: keys, what they sign, and which stored programs may become machine code.

A stored program and a cache entry hold code that runs with all rights of the process that loads it. So both are
signed, by HMAC-SHA256 with a key of the user's own: 32 random bytes, made on first use in a file that nobody else can
read. What no known key signed does not run.

    signing key    the first key that JAX_ENZYME_TRUST names, so that all machines of a cluster sign alike; else the own
    known keys     those of JAX_ENZYME_TRUST, the own, and those given to `trust`
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import stat
import tempfile
import threading
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import platformdirs

from jax_enzyme.errors import ArgumentError, LoweringError

ENVIRONMENT_VARIABLE = "JAX_ENZYME_TRUST"
_KEY_BYTES = 32
_HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")
_OTHERS_MAY_READ_OR_WRITE = 0o077
_MOST_KEY_FILE_BYTES = 128

_MARK = "jax_enzyme signed"
_SIGNED = re.compile(rb"jax_enzyme signed\|([0-9a-f]{16})\|([0-9a-f]{64})\|(\d{1,12})\|")
"""What a signed text starts with: the maker's name, the signature, and how many characters follow."""


@dataclass(frozen=True)
class _Given:
    """What was trusted besides the own key: other keys, and single texts by their digests."""

    keys: tuple[bytes, ...] = ()
    texts: frozenset[bytes] = frozenset()

    def __add__(self, other: _Given) -> _Given:
        return _Given((*self.keys, *other.keys), self.texts | other.texts)


@dataclass
class _Process:
    """What this process knows. Own keys by file: one that cannot be kept there lives as long as the process."""

    given: _Given = _Given()
    own: dict[Path, bytes] = field(default_factory=dict[Path, bytes])
    lock: threading.Lock = field(default_factory=threading.Lock)


_process = _Process()


def trust(key_or_path: bytes | str | os.PathLike[str]) -> None:
    """Lets stored programs of another origin run in this process, with all rights that it has.

    `key_or_path` is the maker's key, 32 bytes or 64 hexadecimal digits; a file with such a key; or a file with a stored
    program (what `jax.export` serialised): then what is in this file runs, and nothing else of that maker's.
    ArgumentError for anything else. The environment variable JAX_ENZYME_TRUST does the same for every process, for one
    or several of these, with `os.pathsep` between them.
    """
    given = _read_given(key_or_path)
    with _process.lock:
        _process.given += given


def signed(purpose: str, text: str) -> str:
    """A text with the signature of this user's in front. `text` is ASCII."""
    key = _signing_key()
    signature = _signature(key, purpose, text.encode("ascii")).hex()
    return f"{_MARK}|{_name(key)}|{signature}|{len(text)}|{text}"


def verified(purpose: str, text: str) -> str:
    """What was signed. LoweringError unless that was done with a key that this process knows, or it was trusted by
    itself."""
    data = text.encode("utf-8", "surrogatepass")
    head = _SIGNED.match(data)
    if head is None or len(data) - head.end() != int(head[3]):
        raise LoweringError(
            "a stored program has a kernel without a signature of jax_enzyme's",
            remedy="export it again with this version of jax_enzyme",
        )
    body = data[head.end() :]
    given = _environment() + _process.given
    own = _signing_key()
    keys, name = (own, *_own_if_there(), *given.keys), head[1].decode()
    if not (any(_is_signature(head[2], key, purpose, body) for key in keys) or sha256(body).digest() in given.texts):
        if name in map(_name, keys):
            raise LoweringError(
                f"the code of a stored program is not what was signed with the key {name}: the program was changed",
                remedy="export it again, or get it again from where it was made",
            )
        raise LoweringError(
            f"the code of a stored program was not made by this user of jax_enzyme (it is signed with the key "
            f"{name}, yours is {_name(own)}), and would run with all rights of this process",
            remedy="if you know where it comes from: jax_enzyme.trust(...) before it is loaded, with the file of the "
            f"program or with the maker's key (yours is in {own_key_path()}); on clusters set {ENVIRONMENT_VARIABLE} "
            "to the file of a key that all machines share",
        )
    return body.decode("ascii", "replace")


def own_signature(purpose: str, data: bytes) -> bytes:
    """The signature of this user's under data, 32 bytes."""
    return _signature(_signing_key(), purpose, data)


def is_own(signature: bytes, purpose: str, data: bytes) -> bool:
    """Whether this user signed data."""
    return hmac.compare_digest(signature, own_signature(purpose, data))


def own_key_path() -> Path:
    """Where the user's own key lies."""
    return Path(platformdirs.user_data_dir("jax_enzyme", appauthor=False)) / "key"


def _signature(key: bytes, purpose: str, data: bytes) -> bytes:
    """What is signed says for what: a signature under a cache entry is none under a stored program."""
    return hmac.digest(hmac.digest(key, purpose.encode(), "sha256"), data, "sha256")


def _is_signature(found: bytes, key: bytes, purpose: str, data: bytes) -> bool:
    return hmac.compare_digest(found.decode("ascii"), _signature(key, purpose, data).hex())


def _name(key: bytes) -> str:
    """What a key is called in messages: it says nothing about the key."""
    return hmac.digest(key, b"name", "sha256").hex()[:16]


def _signing_key() -> bytes:
    return next(iter(_environment().keys), None) or _own_key(own_key_path())


def _own_if_there() -> tuple[bytes, ...]:
    """The own key, where another one signs; none is made."""
    path = own_key_path()
    return (_own_key(path),) if path in _process.own or os.path.exists(path) else ()


def _environment() -> _Given:
    return _parsed(os.environ.get(ENVIRONMENT_VARIABLE, ""))


@lru_cache(maxsize=4)
def _parsed(variable: str) -> _Given:
    given = _Given()
    for item in variable.split(os.pathsep):
        if item:
            try:
                given += _read_given(item)
            except ArgumentError as error:
                raise ArgumentError(f"{ENVIRONMENT_VARIABLE}: {error.cause}", error.place, error.remedy) from None
    return given


def _read_given(key_or_path: object) -> _Given:
    """What `trust` is told to trust."""
    if isinstance(key_or_path, bytes):
        key = _key_in(key_or_path)
        if key is None:
            raise ArgumentError(f"trust: a key has {_KEY_BYTES} bytes, this one has {len(key_or_path)}")
        return _Given((key,))
    if not isinstance(key_or_path, str | os.PathLike):
        raise ArgumentError(f"trust: key_or_path is a key or a path, not {type(key_or_path).__name__}")
    given = os.fspath(key_or_path)
    if isinstance(given, str) and isinstance(key_or_path, str) and _HEX_KEY.fullmatch(given.strip()):
        return _Given((bytes.fromhex(given),))
    return _read_file(Path(os.fsdecode(given)).expanduser())


def _read_file(path: Path) -> _Given:
    """A file with a key, or with a stored program."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read()
    except OSError as error:
        raise ArgumentError(
            f"trust: {path} cannot be read: {error.strerror}", remedy="give a key, or a file with a key or a program"
        ) from None
    if status.st_mode & stat.S_IWOTH:
        raise ArgumentError(f"trust: everybody may write to {path}", remedy=f"chmod o-w {path}")
    key = _key_in(data)
    if key is not None:
        return _Given((key,))
    texts = frozenset(sha256(data[head.end() : head.end() + int(head[3])]).digest() for head in _SIGNED.finditer(data))
    if not texts:
        raise ArgumentError(
            f"trust: {path} has neither a key ({_KEY_BYTES} bytes, or {2 * _KEY_BYTES} hexadecimal digits) nor a "
            "stored program with kernels of jax_enzyme in it",
            remedy="give the maker's key instead: JAX packs the entries of its compilation cache",
        )
    return _Given(texts=texts)


def _key_in(data: bytes) -> bytes | None:
    """The key that these bytes are or spell."""
    if len(data) == _KEY_BYTES:
        return data
    if len(data) > _MOST_KEY_FILE_BYTES:
        return None
    text = data.decode("ascii", "replace").strip()
    return bytes.fromhex(text) if _HEX_KEY.fullmatch(text) else None


def _own_key(path: Path) -> bytes:
    """The user's own key; the first process that asks makes it."""
    with _process.lock:
        if path not in _process.own:
            try:
                _process.own[path] = _read_own(path) or _make_own(path)
            except OSError as error:
                _process.own[path] = os.urandom(_KEY_BYTES)
                warnings.warn(
                    f"jax_enzyme cannot keep its key in {path} ({error.strerror}): what this process stores runs "
                    "nowhere else, and what others stored is not used. Let that file be one of yours that nobody "
                    f"else can read, or name another key by the environment variable {ENVIRONMENT_VARIABLE}.",
                    stacklevel=2,
                )
        return _process.own[path]


def _read_own(path: Path) -> bytes | None:
    """The key in a file; None where there is none. OSError where others may know or have made it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid():
            raise PermissionError(0, "it belongs to another user")
        if status.st_mode & _OTHERS_MAY_READ_OR_WRITE:
            raise PermissionError(0, f"others may read or write it: chmod 600 {path}, or delete it where they have")
        data = file.read(_KEY_BYTES + 1)
    if len(data) != _KEY_BYTES:
        raise OSError(0, f"it has not {_KEY_BYTES} bytes: delete it")
    return data


def _make_own(path: Path) -> bytes:
    """Writes a key under another name and links it: whichever of several processes is first, all read one whole key."""
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
            file.flush()
            os.fsync(handle)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
    key = _read_own(path)
    if key is None:
        raise FileNotFoundError(0, "it was deleted at once")
    return key
