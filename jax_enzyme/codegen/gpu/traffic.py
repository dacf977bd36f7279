"""A model of what a launch moves: the threads of the first, a middle and the last block go through the code that a
device runs, without data, and what they do to memory is counted; a middle block stands for all between.

    sectors     32 bytes each, that a warp's access of global memory touches: 8 for `double x[i]`, 32 for a gather
    moved       bytes of sectors that a block touches, each counted once: what a cache that never forgets would fetch
    adds        atomic additions of a warp to different places (lanes that add to one place count once), per warp

Whatever data decide is guessed: half of the threads take each side of a branch, a loop goes round twice, an index leads
each thread to a sector of its own. Caches between blocks, and what atomics in shared memory wait for, are not modelled.
`sectors` has neighbouring numbers of one thread as accesses of their own, which LLVM makes one of as it writes PTX.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.gpu.architecture import target
from jax_enzyme.codegen.gpu.entry import entry_name
from jax_enzyme.codegen.gpu.ptx import optimised
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.accesses import READ, WRITE
from jax_enzyme.transform.cuda.lockstep import REGION, Crowd, Known, Lanes, Lockstep

_SECTOR = 32
_WARP = 32
_STEPS = 20_000
_MOST_SECTORS = 2_000_000
_REGISTER = "llvm.nvvm.read.ptx.sreg."
_ARCH = "sm_90"

_GLOBAL, _SHARED, _LOCAL, _CONSTANT = range(4)
_SPACES = {"addrspace(3)": _SHARED, "addrspace(4)": _CONSTANT}

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Traffic:
    """Of one launch: bytes that threads ask for in global memory, and those of the sectors that warps' accesses touch;
    bytes in local arrays and in shared memory; bytes of sectors that blocks touch, counted once for each block; per
    warp, atomic additions to different places in global and in shared memory, and shuffles. `guesses` are the branches
    that data decide, `gathers` the accesses whose index is data. Not `complete`: the code goes on for longer than was
    looked at."""

    requested: int
    sectors: int
    local: int
    shared: int
    moved: int
    adds: float
    shared_adds: float
    shuffles: float
    guesses: int
    gathers: int
    complete: bool

    def __str__(self) -> str:
        parts = [
            f"{_bytes(self.moved)} moved",
            f"{_bytes(self.sectors)} in sectors for {_bytes(self.requested)} asked for",
            f"per warp {self.adds:.3g} atomic additions, {self.shared_adds:.3g} in shared memory, "
            f"{self.shuffles:.3g} shuffles",
        ]
        if self.local:
            parts.append(f"{_bytes(self.local)} in local arrays")
        if self.guesses or self.gathers:
            parts.append(f"{self.guesses} branches and {self.gathers} indices are data")
        return "; ".join(parts) + ("" if self.complete else "; at least, as it goes on for longer")


def traffic(function: DeviceFunction, *, fast_math: bool = False) -> Traffic:
    """The traffic of a device function, all stages together."""
    _, native = optimised(function, target(_ARCH), 0, fast_math)
    module = parse(str(native))
    _name_indices(module)
    stages = range(len(function.symbols))
    found = [_Followed(module, module.functions[entry_name(n)], function.shape_of(n)).traffic() for n in stages]
    first, *others = found
    for other in others:
        both = {n: getattr(first, n) + getattr(other, n) for n in Traffic.__dataclass_fields__}
        first = Traffic(**{**both, "complete": first.complete and other.complete})
    return first


def _name_indices(module: Module) -> None:
    """Gives what tells a thread where it is, and what warps and blocks do together, the names that `lockstep` knows."""
    for name, function in list(module.functions.items()):
        kind, _, axis = name.removeprefix(_REGISTER).partition(".")
        named = {"tid": "je.tid", "ctaid": "je.ctaid", "laneid": marks.LANE}.get(kind)
        if name.startswith(_REGISTER) and named is not None:
            function.name = f"{named}.{axis}" if axis else named
        elif effect(name) is Effect.SHUFFLE or name.startswith("llvm.nvvm.shfl."):
            function.name = f"{marks.SHUFFLE}.{name}"
        elif effect(name) is Effect.BARRIER:
            function.name = f"{marks.MEET_BLOCK}.{name}"


class _Followed(Lockstep):
    def __init__(self, module: Module, kernel: Function, shape: Shape) -> None:
        extents = shape.grid
        count = int(np.prod(extents))
        chosen = sorted({0, count // 2, count - 1})
        blocks = [(n % extents[0], n // extents[0] % extents[1], n // (extents[0] * extents[1])) for n in chosen]
        weights = [max(count - 2, 1) if n not in (0, count - 1) else 1 for n in chosen]
        crowd = Crowd.of(shape, blocks)
        locals_ = [i for i in kernel.instructions() if isinstance(i, I.Alloca)]
        bases: list[Value] = [*kernel.arguments, *module.globals.values(), *locals_]
        regions: dict[Value, int] = {base: n << REGION for n, base in enumerate(bases, 1)}
        super().__init__(module, kernel, crowd, regions, 0, _STEPS)
        self._spaces = [_GLOBAL, *map(_space, bases)]
        warps = -(-shape.threads // _WARP)
        self._block = np.repeat(np.arange(len(blocks)), shape.threads)
        self._warp = self._block * warps + crowd.threads // _WARP
        self._weights = np.array(weights, np.int64)
        self._warps_of_block = warps
        self._all_warps = count * warps
        self._bytes: dict[str, int] = dict.fromkeys(("requested", "sectors", "local", "shared"), 0)
        self._of_warps: dict[str, int] = dict.fromkeys(("adds", "shared_adds", "shuffles"), 0)
        self._touched: list[set[int]] = [set() for _ in blocks]
        self._gathers: set[I.Instruction] = set()

    def traffic(self) -> Traffic:
        complete = self.run()
        moved = sum(int(w) * len(s) for w, s in zip(self._weights, self._touched, strict=True))
        adds, shared_adds, shuffles = (total / self._all_warps for total in self._of_warps.values())
        return Traffic(
            *self._bytes.values(), moved=moved * _SECTOR, adds=adds, shared_adds=shared_adds, shuffles=shuffles,
            guesses=self.guesses, gathers=len(self._gathers), complete=complete,
        )  # fmt: skip

    # -- what threads do

    def watches(self, base: Value) -> bool:
        return True

    def meets(self, instruction: I.Instruction, lanes: Lanes) -> None:
        if callee_name(instruction).startswith(marks.SHUFFLE):
            self._of_warps["shuffles"] += self._different(self._warp[lanes])

    def accesses(self, instruction: I.Instruction, size: int, kind: int, address: Known, lanes: Lanes) -> bool:
        numbers, tokens = address.numbers, address.all_tokens()
        spaces = np.where(lanes, np.array(self._spaces)[np.clip(numbers >> REGION, 0, len(self._spaces) - 1)], -1)
        for space, name in ((_LOCAL, "local"), (_SHARED, "shared"), (_GLOBAL, "requested")):
            self._bytes[name] += size * int(self._weights[self._block[spaces == space]].sum())
        if kind not in (READ, WRITE):
            for space, name in ((_GLOBAL, "adds"), (_SHARED, "shared_adds")):
                here = spaces == space
                self._of_warps[name] += self._different(self._warp[here], self.identity(numbers, tokens)[here])
        here = spaces == _GLOBAL
        if here.any():
            if (tokens[here] < 0).any():
                self._gathers.add(instruction)
            self._in_sectors(size, numbers, tokens, here)
        return sum(map(len, self._touched)) < _MOST_SECTORS

    def _in_sectors(self, size: int, numbers: Numbers, tokens: Numbers, here: Lanes) -> None:
        starts = list(range(0, size, _SECTOR))
        if (numbers[here] % _SECTOR + (size - 1) % _SECTOR >= _SECTOR).any():
            starts.append(size - 1)
        places = np.concatenate([self.identity((numbers + n) // _SECTOR, tokens)[here] for n in starts])
        warp, block = (np.tile(of[here], len(starts)) for of in (self._warp, self._block))
        self._bytes["sectors"] += _SECTOR * self._different(warp, places)
        for n, touched in enumerate(self._touched):
            touched.update(np.unique(places[block == n]).tolist())

    def _different(self, warp: Numbers, places: Numbers | None = None) -> int:
        """How many warps there are, or places that they come to, in all blocks."""
        columns = [warp] if places is None else [warp, places]
        pairs = np.unique(np.stack(columns, 1), axis=0)
        return int(self._weights[pairs[:, 0] // self._warps_of_block].sum())


def _space(base: Value) -> int:
    if isinstance(base, GlobalVariable):
        if base.is_constant:  # Tables of mathematical functions are in caches, if a thread reads them at all.
            return _CONSTANT
        return next((s for word, s in _SPACES.items() if word in base.prefix), _GLOBAL)
    return _LOCAL if isinstance(base, I.Alloca) else _GLOBAL


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
