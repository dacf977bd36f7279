"""What `check_races` found, and the run with a log that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from jax_enzyme.errors import RaceError, SignatureError
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.signature import Binding, Signature, parse

_ROWS = 1 << 16
_MOST_ROWS = 1 << 26
_SHOWN = 8
_HEADER = np.dtype([("written", "u8"), ("room", "u8"), ("unused", "u8")])
_ROW = np.dtype([("address", "u8"), ("size", "u4"), ("what", "u4"), ("block", "u4"), ("thread", "u4")])

Rows = NDArray[Any]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Access:
    """What one thread did: "read", "write" or "atomic update"; its thread and block (x, y, z); the source line."""

    kind: str
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    place: str | None

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.kind} by thread {self.thread} of block {self.block}{where}"


@dataclass(frozen=True)
class IterationAccess:
    """What an iteration of a loop with a directive did: "read", "write", "atomic read" or "atomic update"; the
    iteration, counted from 0 (of collapsed loops, of all together); the source lines of the loop and the access."""

    kind: str
    iteration: int
    loop: str | None
    place: str | None

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.kind}{where} by iteration {self.iteration} of the loop at {self.loop or 'an unknown line'}"


@dataclass(frozen=True)
class Race:
    """Two accesses that nothing puts in order. `memory` is `y[12]` for an argument, or "shared memory";
    `bytes` counts all bytes at which two accesses of these two source lines race."""

    memory: str
    first: Access | IterationAccess
    second: Access | IterationAccess
    bytes: int

    def __str__(self) -> str:
        return f"{self.memory}: {self.first}\n    and {self.second} ({self.bytes} bytes in all)"


@dataclass(frozen=True)
class RaceReport:
    """What `check_races` found for one run. `unwritten` are accesses, one per source line, to shared memory that no
    thread of the block had written: it holds anything. Prints as a list."""

    kernel: str
    accesses: int
    races: tuple[Race, ...]
    unwritten: tuple[Access, ...]

    @property
    def ok(self) -> bool:
        return not self.races and not self.unwritten

    def __str__(self) -> str:
        found = f"{len(self.races)} pairs of source lines race" if self.races else "no race"
        lines = [f"{self.kernel}: {self.accesses} accesses to memory, {found}"]
        lines += [f"  {race}" for race in self.races[:_SHOWN]]
        if len(self.races) > _SHOWN:
            lines.append(f"  ... and {len(self.races) - _SHOWN} more in .races")
        lines += [f"  shared memory that nothing wrote before: {access}" for access in self.unwritten[:_SHOWN]]
        return "\n".join(lines)


def raised_if_any(report: RaceReport, remedy: str) -> RaceReport:
    """The report if all is well; a RaceError otherwise."""
    if report.ok:
        return report
    raise RaceError(str(report), report=report, remedy=remedy)


def with_log(signature: Signature) -> Signature:
    """A signature with the log as its last parameter."""
    log = parse("inout race_log: u32[race_words]").params[0]
    return Signature((*signature.params, log), signature.result, signature.order)


def run_with_log(kernel: Kernel, args: Sequence[Any]) -> Rows:
    """The rows of the log, without its header. A log that turns out too small is made as large as it has to be."""
    room = _ROWS
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        while True:
            log = np.zeros(room, _ROW)
            log.view(_HEADER)[0] = (0, room, 0)
            results = jax.tree.leaves(kernel(*args, log.view(np.uint32)))
            filled = np.asarray(results[-1]).view(_ROW)
            written = int(filled.view(_HEADER)[0]["written"])
            if written < room:
                return filled[1 : written + 1]
            room = written + 1
            if room > _MOST_ROWS:
                raise SignatureError(
                    f"{written} accesses are too many to compare", kernel.__name__, "give smaller arrays"
                )


def kind_of(rows: Rows) -> Numbers:
    """The kind of each row."""
    return (rows["what"] & 0xFF).astype(np.int64)


def element(address: int, arguments: Rows, signature: Signature, binding: Binding) -> str | None:
    """The element of an array that lies at an address, in the user's words."""
    for row in arguments:
        param = signature.params[int(row["what"]) >> 8]
        extents = signature.shape(param.name, binding.constants)
        item = 1 if param.dtype == "bool" else int(param.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8
        offset = address - int(row["address"])
        if 0 <= offset < item * int(np.prod(extents, dtype=np.int64)):
            index = np.unravel_index(offset // item, extents, order=signature.order) if extents else ()
            return f"{param.name}[{', '.join(str(int(i)) for i in index)}]"
    return None


def expanded(address: Numbers, size: Numbers) -> tuple[Numbers, Numbers, int]:
    """Accesses in pieces of one size that all of them are made of: which access each piece is of, its address, and the
    size."""
    granule = 8
    while np.any((address | size) % granule):
        granule //= 2
    counts = size // granule
    which = np.repeat(np.arange(len(address)), counts)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return which, np.repeat(address, counts) + granule * within, granule
