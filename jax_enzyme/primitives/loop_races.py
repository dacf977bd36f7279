"""Races between iterations of loops that directives of OpenMP share out, in the log of a serial run.

Two accesses of different iterations of one loop to one byte race if at least one writes, and nothing keeps them apart:
a lock that both hold (a critical section, one of OpenMP's locks, being atomic), or that the memory is each thread's
own. It is where it began in the region that the loop belongs to, or in an iteration of it. Memory that is freed and
allocated again is other memory. Of nested loops each is looked at. Where a compiler has put a region into the function
around it, as flang does, nothing tells their local memory apart: there it all counts as a thread's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.codegen.programs import program_module
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir.writer import to_text
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.primitives.race_report import (
    IterationAccess,
    Numbers,
    Race,
    RaceReport,
    Rows,
    element,
    expanded,
    kind_of,
    run_with_log,
    with_log,
)
from jax_enzyme.transform.cuda import accesses as kinds
from jax_enzyme.transform.openmp import accesses as more
from jax_enzyme.transform.openmp.accesses import LoopLog

_DOING = {kinds.READ: "read", kinds.WRITE: "write", kinds.ATOMIC: "atomic update", more.ATOMIC_READ: "atomic read"}
_READS = (kinds.READ, more.ATOMIC_READ)
_CONTROL = (more.ENTER, more.NEXT, more.LEAVE, more.REGION, more.REGION_END, more.ACQUIRE, more.RELEASE)
_MARKING = "directives need `-fopenmp` among the flags, `do concurrent` of Fortran `-fdo-concurrent-to-openmp=host` too"
_ALONE = 1 << 30
"""The region of what is a thread's own for good."""


def check_loops(kernel: Kernel, args: Sequence[Any]) -> RaceReport:
    """What iterations do to one another in a run of a kernel with directives. SignatureError where it has none, or
    has a region that asks for its thread."""
    binding = kernel.binding(args)
    log = LoopLog()
    module = program_module(kernel.program, kernel.signature, binding, log)
    if log.asks or not log.loops:
        why = "is no CUDA kernel, and no directive shares out a loop of it: it runs in one thread, or has tasks alone"
        if log.asks:
            why = "has a region that asks for its thread: its members are not told apart"
        raise SignatureError(
            f"`{kernel.__name__}` {why}",
            kernel.program.source_name,
            "share out its loops with `omp for`" if log.asks else _MARKING,
        )
    logging = Kernel(
        replace(kernel.program, ir=to_text(module)), with_log(kernel.signature), replace(kernel.options, threads=1)
    )
    return _Run(kernel, log, run_with_log(logging, args), binding).report()


@dataclass(frozen=True)
class _Level:
    """Of each stretch of the log between two rows of control, for the loops at one depth: which run of a loop it lies
    in (-1 for none), in which iteration, in how many regions the loop lies (0 where that cannot be seen), and its
    place."""

    run: Numbers
    iteration: Numbers
    region: Numbers
    place: Numbers


class _Run:
    """The log of one run."""

    def __init__(self, kernel: Kernel, log: LoopLog, rows: Rows, binding: Any) -> None:
        self._kernel = kernel
        self._log = log
        self._rows = rows
        self._binding = binding
        self._kind = kind_of(rows)
        self._site = (rows["what"] >> 8).astype(np.int64)
        self._stretch = np.cumsum(np.isin(self._kind, _CONTROL))
        self._locks: list[frozenset[int]] = []
        self._held: Numbers
        self._regions: Numbers
        self._levels = self._follow()

    def report(self) -> RaceReport:
        """All pairs of source lines that race."""
        chosen = np.flatnonzero(np.isin(self._kind, tuple(_DOING)) & (self._rows["size"] > 0))
        address = self._rows["address"][chosen].astype(np.int64)
        which, address, granule = expanded(address, self._rows["size"][chosen].astype(np.int64))
        row = chosen[which]
        memory, region = self._memory(address, row, granule)
        found: dict[tuple[int, int], Race] = {}
        for level in self._levels:
            stretch = self._stretch[row]
            around = level.region[stretch]
            shared = (level.run[stretch] >= 0) & np.where(around > 0, around > region, memory < 0)
            for first, second, count in self._pairs(level, address[shared], memory[shared], row[shared]):
                pair = (int(self._site[first]), int(self._site[second]))
                if pair not in found:
                    where = self._named(int(self._rows["address"][first]))
                    found[pair] = Race(where, self._shown(level, first), self._shown(level, second), count * granule)
        return RaceReport(self._kernel.__name__, len(chosen), tuple(found.values()), ())

    # -- what happened when

    def _follow(self) -> list[_Level]:
        """The loops around each stretch; sets what locks are held and how many regions are entered in each."""
        loops: list[list[int]] = []
        stacks: list[tuple[tuple[int, ...], ...]] = [()]
        regions, held = [0], [frozenset[int]()]
        for n in np.flatnonzero(np.isin(self._kind, _CONTROL)).tolist():
            kind, region, locks = int(self._kind[n]), regions[-1], held[-1]
            address = int(self._rows["address"][n])
            match kind:
                case more.ENTER:
                    watched = region > 0 or int(self._rows["size"][n]) > 0
                    loops.append([n if watched else -1, 0, region, int(self._site[n])])
                case more.NEXT if loops:
                    loops[-1][1] += 1
                case more.LEAVE if loops:
                    loops.pop()
                case more.REGION | more.REGION_END:
                    region += 1 if kind == more.REGION else -1
                case more.ACQUIRE:
                    locks |= {address}
                case more.RELEASE:
                    locks -= {address}
                case _:
                    pass
            stacks.append(tuple(map(tuple, loops)))
            regions.append(region)
            held.append(locks)
        self._regions = np.array(regions)
        numbers = {locks: n for n, locks in enumerate(dict.fromkeys(held))}
        self._locks = list(numbers)
        self._held = np.array([numbers[locks] for locks in held])
        deepest = max(map(len, stacks))
        none = (-1, 0, 0, 0)
        return [_Level(*np.array([s[depth] if depth < len(s) else none for s in stacks]).T) for depth in range(deepest)]

    def _memory(self, address: Numbers, row: Numbers, granule: int) -> tuple[Numbers, Numbers]:
        """For every access what memory it is to, as the row that began it, and in how many regions that lies."""
        new = np.flatnonzero(np.isin(self._kind, (more.MEMORY, more.OWN)))
        places = np.unique(address)
        start = self._rows["address"][new].astype(np.int64)
        low = np.searchsorted(places, start - granule + 1)
        counts = np.maximum(np.searchsorted(places, start + self._rows["size"][new]) - low, 0)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        addresses = np.r_[address, places[np.repeat(low, counts) + within]]
        rows = np.r_[row, np.repeat(new, counts)]
        order = np.lexsort((rows, addresses))
        begins = order >= len(address)
        changes = np.ones(len(order), bool)
        changes[1:] = addresses[order][1:] != addresses[order][:-1]
        latest = np.maximum.accumulate(np.where(begins | changes, np.arange(len(order)), 0))
        began = np.where(begins[latest], rows[order][latest], -1)
        memory = np.empty(len(order), np.int64)
        memory[order] = began
        memory = memory[: len(address)]
        region = np.where(self._kind == more.OWN, _ALONE, self._regions[self._stretch])
        return memory, np.where(memory < 0, 0, region[memory])

    # -- races

    def _pairs(self, level: _Level, address: Numbers, memory: Numbers, row: Numbers) -> list[tuple[int, int, int]]:
        """Rows of which two race, and at how many places, one pair for two source lines."""
        if not len(row):
            return []
        stretch = self._stretch[row]
        run, iteration = level.run[stretch], level.iteration[stretch]
        atomic = np.isin(self._kind[row], (kinds.ATOMIC, more.ATOMIC_READ))
        locks = 2 * self._held[stretch] + atomic
        writes = ~np.isin(self._kind[row], _READS)
        order = np.lexsort((row, iteration, memory, address, run))
        keys = [k[order] for k in (run, address, memory)]
        starts = np.flatnonzero(np.r_[True, np.any([k[1:] != k[:-1] for k in keys], axis=0)])
        ends = np.r_[starts[1:], len(order)]
        several = iteration[order][starts] != iteration[order][ends - 1]
        written = np.logical_or.reduceat(writes[order], starts)
        alike = np.minimum.reduceat(locks[order], starts) == np.maximum.reduceat(locks[order], starts)
        kept = several & written & ~(alike & (locks[order][starts] > 0))
        found: dict[tuple[int, int], tuple[int, int, int]] = {}
        for start, end in zip(starts[kept].tolist(), ends[kept].tolist(), strict=True):
            group = order[start:end]
            pair = self._pair(iteration[group], locks[group], writes[group])
            if pair is not None:
                first, second = sorted(int(row[group[n]]) for n in pair)
                sites = (int(self._site[first]), int(self._site[second]))
                found[sites] = (*found.get(sites, (first, second))[:2], found.get(sites, (0, 0, 0))[2] + 1)
        return list(found.values())

    def _pair(self, iteration: Numbers, locks: Numbers, writes: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Two accesses of one place, by different iterations, that no lock keeps apart."""
        for held in np.unique(locks[writes]).tolist():
            against = [other for other in np.unique(locks).tolist() if not self._apart(held, other)]
            others = np.flatnonzero(np.isin(locks, against))
            own = np.flatnonzero(writes & (locks == held))
            for n in own[[0, -1]].tolist():
                different = others[iteration[others] != iteration[n]]
                if len(different):
                    return n, int(different[0])
        return None

    def _apart(self, one: int, other: int) -> bool:
        return bool(one & other & 1) or bool(self._locks[one // 2] & self._locks[other // 2])

    # -- words

    def _shown(self, level: _Level, row: int) -> IterationAccess:
        stretch = self._stretch[row]
        return IterationAccess(
            _DOING[int(self._kind[row])],
            int(level.iteration[stretch]),
            self._log.places[int(level.place[stretch])],
            self._log.places[int(self._site[row])],
        )

    def _named(self, address: int) -> str:
        """What lies at an address, in the user's words."""
        rows, signature = self._rows, self._kernel.signature
        arguments = rows[self._kind == kinds.ARGUMENT]
        plain = all(int(row["what"]) >> 8 < len(signature.params) for row in arguments)
        found = element(address, arguments, signature, self._binding) if plain else None
        if found is not None:
            return found
        for row in rows[self._kind == more.VARIABLE]:
            if 0 <= address - int(row["address"]) < int(row["size"]):
                return f"variable `{self._log.variables[int(row['what']) >> 8]}`"
        return "memory of the kernel's own"
