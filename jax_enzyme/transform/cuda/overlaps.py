"""A look at the threads of a block before anything runs: may two of them touch one place of shared memory between the
same two barriers, one of them writing?

`lockstep` follows the threads of the first and the last block, as far as that goes without data. Two accesses are
compared where both are between the same barriers, and, in one warp, between the same operations of the warp. Where both
addresses are numbers, or differ from one unknown by numbers, they are compared. Of other unknowns their remainders are,
by what divides these (`a[row][x]` and `a[other][y]`, whatever the rows are); nothing else proves them apart.

It is a look and no proof: what only other data, later rounds of a long loop or other blocks show is not seen. Accesses
of global memory are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.classes import dataclass
from jax_enzyme.ir.debug import location, trace
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.accesses import ATOMIC, READ
from jax_enzyme.transform.cuda.conflicts import conflicts
from jax_enzyme.transform.cuda.lockstep import ANYTHING, REGION, SharedAccess, shared_accesses
from jax_enzyme.transform.cuda.spaces import is_dynamic

_WARP = 32
_MOST_PAIRS = 1 << 22
"""Of accesses by threads, which are compared by what is left of their addresses."""
_DOING = {READ: "read", ATOMIC: "updated atomically"}

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Overlap:
    """Two accesses of one kernel that are not proved apart: what each does, in words, and its source line where that is
    known. `guessed`: two threads have the same address if both come there, which is not known."""

    kernel: str
    first: str
    first_place: str | None
    second: str
    second_place: str | None
    guessed: bool

    def __str__(self) -> str:
        first, second = (place or "an unknown line" for place in (self.first_place, self.second_place))
        condition = " (if threads come there, which data decides)" if self.guessed else ""
        return f"{self.first} at {first} and {self.second} at {second}{condition}"


def overlaps(module: Module, kernel: Function, shape: Shape, shared: Sequence[GlobalVariable]) -> list[Overlap]:
    """The pairs of one kernel, one per pair of source lines. `kernel` is the function of one thread."""
    regions = _regions(shared)
    found: dict[tuple[str | None, str | None], Overlap] = {}
    last = tuple(extent - 1 for extent in shape.grid)
    for turn, block in enumerate(((0, 0, 0), (last[0], last[1], last[2]))):
        accesses = shared_accesses(module, kernel, shape, regions, block, turn)
        if not accesses:
            continue
        for one, other, is_known, is_guessed in _Compared(accesses).pairs():
            places = sorted(((location(module, i), w) for i, w in (one, other)), key=str)
            (first_place, first), (second_place, second) = places
            if not is_known and first_place == second_place and all(_is_of_cub(module, i) for i, _ in (one, other)):
                continue
            overlap = Overlap(kernel.name, first, first_place, second, second_place, is_guessed)
            key = first_place, second_place
            if key not in found or (found[key].guessed and not is_guessed):
                found[key] = overlap
    return list(found.values())


def _is_of_cub(module: Module, instruction: Instruction) -> bool:
    """Whether this is code of CUB's. What it sorts and scatters by data stays in the memory that it is given, which is
    another one for each warp."""
    return any("jax_enzyme_cub" in place for place in trace(module, instruction)[:1])


def _regions(shared: Sequence[GlobalVariable]) -> dict[Value, int]:
    """Addresses far apart; all dynamic arrays are one."""
    return {variable: (1 if is_dynamic(variable) else n) << REGION for n, variable in enumerate(shared, 2)}


Done = tuple[Instruction, str]


class _Compared:
    """The accesses of one block, a row per access and thread."""

    def __init__(self, accesses: Sequence[SharedAccess]) -> None:
        self._sites = list(dict.fromkeys((a.instruction, a.kind, a.size) for a in accesses))
        numbers = {site: n for n, site in enumerate(self._sites)}
        counts = [len(a.thread) for a in accesses]
        self._site = np.repeat([numbers[a.instruction, a.kind, a.size] for a in accesses], counts)
        self._kind = np.repeat([a.kind for a in accesses], counts)
        self._size = np.repeat([a.size for a in accesses], counts)
        self._stride = np.repeat([a.stride for a in accesses], counts)
        self._thread, self._address, self._token, self._epoch, self._turn, self._guessed = (
            np.concatenate([getattr(a, name) for a in accesses])
            for name in ("thread", "address", "token", "epoch", "turn", "guessed")
        )

    def pairs(self) -> Iterator[tuple[Done, Done, bool, bool]]:
        """Each with whether both are known to have the same address, and whether it is a guess that both come there."""
        is_known = self._token != ANYTHING
        certain = self._known(is_known & ~self._guessed)
        known = self._known(is_known) if self._guessed.any() else certain
        for site, other in known | certain:
            yield self._done(site), self._done(other), True, (site, other) not in certain
        for one, other in self._unknown():
            yield one, other, False, False

    def _done(self, site: int) -> Done:
        instruction, kind, _ = self._sites[site]
        return instruction, _DOING.get(kind, "written")

    def _known(self, compared: NDArray[np.bool_]) -> dict[tuple[int, int], None]:
        """Pairs of sites at which threads have the same address, whatever is not known of both, of some accesses."""
        chosen = np.flatnonzero(compared)
        address, size = self._address[chosen], self._size[chosen]
        granule = 8
        while np.any((address | size) % granule):
            granule //= 2
        counts = size // granule
        which = np.repeat(chosen, counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        place = (np.repeat(address, counts) + granule * within, self._token[which], self._epoch[which])
        kind, site, thread = self._kind[which], self._site[which], self._thread[which]
        warp = thread // _WARP
        found = conflicts(kind, site, place, warp)
        found |= conflicts(kind, site, (*place, warp, self._turn[which]), thread)
        return dict.fromkeys(found)

    def _unknown(self) -> list[tuple[Done, Done]]:
        """Pairs of sites of which addresses differ by something that is not known."""
        found: dict[tuple[int, int], tuple[Done, Done]] = {}
        groups = np.stack([self._address >> REGION, self._epoch], 1)
        for group in np.unique(groups[self._token != 0], axis=0):
            rows = np.flatnonzero((groups == group).all(1))
            for site in np.unique(self._site[rows[self._token[rows] != 0]]).tolist():
                own = rows[(self._site[rows] == site) & (self._token[rows] != 0)]
                for other in np.unique(self._site[rows]).tolist():
                    kinds = {self._sites[site][1], self._sites[other][1]}
                    if kinds == {READ} or kinds == {ATOMIC} or (site, other) in found or (other, site) in found:
                        continue
                    if self._together(own, rows[self._site[rows] == other]):
                        found[site, other] = (self._done(site), self._done(other))
        return list(found.values())

    def _together(self, first: Numbers, second: Numbers) -> bool:
        """Whether two threads that nothing puts in order have addresses of which nothing is known together."""
        sizes = self._size[first[0]], self._size[second[0]]
        stride = gcd(*np.unique(self._stride[np.append(first, second)]).tolist())
        is_told = sum(sizes) <= stride and len(first) * len(second) <= _MOST_PAIRS
        rows = [
            (self._thread[n], self._token[n], self._turn[n], self._address[n] % stride if is_told else np.zeros_like(n))
            for n in (first, second)
        ]
        one, other = (np.unique(np.stack(columns, 1), axis=0) for columns in rows)
        thread, token, turn, place = (one[:, n, None] for n in range(4))
        warps_differ = thread // _WARP != other[None, :, 0] // _WARP
        meets = (thread != other[None, :, 0]) & (warps_differ | (turn == other[None, :, 2]))
        behind = (place - other[None, :, 3]) % max(1, stride)
        meets &= (behind < sizes[1]) | (behind > stride - sizes[0])
        return bool((meets & ((token == ANYTHING) | (token != other[None, :, 1]))).any())
