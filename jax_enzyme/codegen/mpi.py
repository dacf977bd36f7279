"""The MPI of this process: found where it is loaded, started where nobody has.

    mpi4py, libraries=("libmpi.so",), ctypes.CDLL("libmpi.so")      whoever loads it first; a process has one

Code that calls MPI is linked to the library that is loaded. MPI is started, with MPI_THREAD_MULTIPLE, before such code
first runs, unless mpi4py or the program has done so, and ended when Python ends: where an exception ended it, all
processes end, which would wait for this one for ever.
"""

from __future__ import annotations

import atexit
import ctypes
import re
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jax_enzyme.errors import LoweringError

_NAME = re.compile(r"/libmpi(_abi)?\.so[.\d]*$")
_ASKED = "MPI_Initialized"
_OF_MPI = re.compile(r"P?MPI_|ompi_mpi_|ompi_request_null$")


def of_mpi(name: str) -> bool:
    """Whether a symbol is of a library of MPI."""
    return _OF_MPI.match(name) is not None


def library(given: Sequence[ctypes.CDLL] = ()) -> ctypes.CDLL | None:
    """The MPI among the libraries that a kernel names, or that is loaded, by whomever, however; None where none is.
    Raises LoweringError where the kernel names one, and another has been started."""
    present = list(_present())
    started = next(filter(_is_started, present), None)
    own = next((one for one in given if hasattr(one, _ASKED)), None)
    if own is None:
        return started or next(iter(present), None)
    if started is not None and _place(started) != _place(own):
        raise LoweringError(
            f"the kernel names an MPI in libraries=, {_name(own)}, and this process has started another, "
            f"{_name(started)}",
            remedy="a process has one MPI: name that one, or leave it out of libraries=",
        )
    return own


def _present() -> Iterator[ctypes.CDLL]:
    this = ctypes.CDLL(None)
    if hasattr(this, _ASKED):
        yield this
    yield from map(_opened, _loaded())


def _is_started(found: ctypes.CDLL) -> bool:
    flag = ctypes.c_int()
    found.MPI_Initialized(ctypes.byref(flag))
    return bool(flag.value)


def _name(found: ctypes.CDLL) -> str:
    return getattr(found, "_name", None) or "one that the process shows to all"


def _place(found: ctypes.CDLL) -> int | None:
    return ctypes.cast(getattr(found, _ASKED), ctypes.c_void_p).value


def start(found: ctypes.CDLL) -> None:
    """Starts MPI unless it runs. Raises LoweringError where it has been ended, or cannot have several threads."""
    flag, level = ctypes.c_int(), ctypes.c_int()
    found.MPI_Finalized(ctypes.byref(flag))
    if flag.value:
        raise LoweringError("the kernel calls MPI, which this process has ended", remedy="call it before MPI_Finalize")
    if _is_started(found):
        return
    multiple = 3 if not _is_standard(found) else _STANDARD_MULTIPLE
    if found.MPI_Init_thread(None, None, multiple, ctypes.byref(level)):
        raise LoweringError("MPI could not be started", remedy="start the program with mpiexec of the same MPI")
    atexit.register(_end, found)


_STANDARD_MULTIPLE = 4096
"""`MPI_THREAD_MULTIPLE` in the standard interface."""


_HEARD = 0.5
"""Seconds: a launcher that ends processes leaves unread what they said just before, such as the traceback."""


def _is_standard(found: ctypes.CDLL) -> bool:
    return hasattr(found, "MPI_Abi_get_version") and "libmpi_abi" in str(getattr(found, "_name", ""))


def _end(found: ctypes.CDLL) -> None:
    if getattr(sys, "last_value", None) is None:
        found.MPI_Finalize()
        return
    time.sleep(_HEARD)
    if hasattr(found, "ompi_mpi_comm_world"):
        found.MPI_Abort(ctypes.byref(ctypes.c_char.in_dll(found, "ompi_mpi_comm_world")), 1)
    else:
        found.MPI_Abort(0x101 if _is_standard(found) else 0x44000000, 1)


class _Object(ctypes.Structure):
    """What the linker says of an object, with how many it has loaded and unloaded in all."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("count", ctypes.c_uint16),
        ("loads", ctypes.c_ulonglong),
        ("unloads", ctypes.c_ulonglong),
    )


def _loaded() -> list[str]:
    """The paths of the libraries of MPI in this process. That is asked for every symbol of MPI: the list of all that is
    mapped is read again where something has been loaded since."""
    each = getattr(ctypes.CDLL(None), "dl_iterate_phdr", None)
    counts: list[tuple[int, int]] = []

    def first(seen: Any, _: int, __: int | None) -> int:
        counts.append((seen.contents.loads, seen.contents.unloads))
        return 1

    if each is not None:
        each(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Object), ctypes.c_size_t, ctypes.c_void_p)(first), None)
    return _mapped(*counts[0]) if counts else []


@lru_cache(maxsize=1)
def _mapped(loads: int, unloads: int) -> list[str]:
    """The same, after so many have been loaded and unloaded."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(words[-1] for line in lines if len(words := line.split()) > 5)
    return [path for path in paths if _NAME.search(path)]


@cache
def _opened(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)
