"""Looks for races in a CUDA kernel: runs it on the CPU with a log of all accesses to memory, and compares them.

Two accesses of different threads to the same byte race if at least one of them writes, not both are atomic, and nothing
puts them in order. What does is

    of one warp      a warp operation that both came to (`__syncwarp`, a vote, a shuffle), or a barrier
    of one block     a barrier that both came to (`__syncthreads`)
    of two blocks    nothing

so three questions are asked of every byte, each with its own groups of accesses and its own members:

    per byte (global memory)            blocks
    per byte, block and barrier         warps
    per byte, warp and warp operation   threads

and the answer is the same for each: there is a race if a member writes and another one reads or writes, atomics being
compared with what is not atomic alone.
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
from jax_enzyme.primitives.arguments import checked_args
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.primitives.loop_races import check_loops
from jax_enzyme.primitives.race_report import (
    Access,
    Numbers,
    Race,
    RaceReport,
    Rows,
    element,
    expanded,
    kind_of,
    raised_if_any,
    run_with_log,
    with_log,
)
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import accesses as kinds
from jax_enzyme.transform.cuda.accesses import AccessLog
from jax_enzyme.transform.cuda.conflicts import conflicts

_WARP = 32
_DOING = {kinds.READ: "read", kinds.WRITE: "write", kinds.ATOMIC: "atomic update"}


def check_races(kernel: Kernel, args: Sequence[Any]) -> RaceReport:
    """Runs a kernel once, on the CPU, and compares what its threads do to memory: those of a CUDA kernel, or the
    iterations of loops that directives of OpenMP share out (`docs/parallel.md`).

        >>> source = "__global__ void next(int n, float *x) { int i = threadIdx.x; if (i + 1 < n) x[i] = x[i + 1]; }"
        >>> shift = je.kernel(source, "next", "n: i32, inout x: f32[n]", lang="cuda", grid=1, block="n")
        >>> je.check_races(shift, (jnp.arange(4.0),))
        Traceback (most recent call last):
        ...
        jax_enzyme.errors.RaceError: ...

    Returns a report if no two accesses race and no shared memory is read before it is written; raises a RaceError that
    shows it, and has it as `report`, otherwise. It speaks of this run: of these shapes, this launch, and the branches
    that these values take. Order that threads make themselves, with atomics and `__threadfence`, is not seen: such a
    kernel is reported. A value that is written twice alike is a race too.
    """
    args = checked_args(args)
    if kernel.program.device:
        raise SignatureError(
            f"`{kernel.__name__}` is a host function: it runs in one thread",
            kernel.program.source_name,
            "check the kernels that it launches one by one, with grid= and block=",
        )
    if kernel.program.launch is None:
        return raised_if_any(
            check_loops(kernel, args), "give each iteration memory of its own, name a reduction, or use atomics"
        )
    binding = kernel.binding(args)
    shape = kernel.program.launch.shape(dict(binding.dims))
    log = AccessLog()
    module = program_module(kernel.program, kernel.signature, binding, log)
    program = replace(kernel.program, ir=to_text(module), lang="llvm", launch=None)
    logging = Kernel(program, with_log(kernel.signature), kernel.options)
    rows = run_with_log(logging, args)
    accesses = _accesses(rows)
    report = RaceReport(
        kernel.__name__,
        int(np.count_nonzero(kind_of(rows) <= kinds.ATOMIC)),
        _races(accesses, rows[kind_of(rows) == kinds.ARGUMENT], log, kernel.signature, binding, shape),
        tuple(_shown(accesses, n, log, shape) for n in _unwritten(accesses)),
    )
    separate = "put __syncthreads() between the two, give each thread memory of its own, or use atomics"
    return raised_if_any(report, separate if report.races else "write it first, or fill it with 0")


# -- epochs and bytes


@dataclass(frozen=True)
class _Accesses:
    """One element per access and granule of memory. `epoch` counts barriers, `turn` warp operations and barriers."""

    address: Numbers
    shared: NDArray[np.bool_]
    kind: Numbers
    site: Numbers
    block: Numbers
    thread: Numbers
    epoch: Numbers
    turn: Numbers
    granule: int

    def __getitem__(self, chosen: Any) -> _Accesses:
        fields = ("address", "shared", "kind", "site", "block", "thread", "epoch", "turn")
        return _Accesses(*(getattr(self, f)[chosen] for f in fields), granule=self.granule)


def _accesses(rows: Rows) -> _Accesses:
    kind = kind_of(rows)
    owner = rows["block"].astype(np.int64) << 32 | rows["thread"]
    epoch = _met(owner, kind == kinds.MEET_BLOCK)
    turn = epoch + _met(owner, kind == kinds.MEET_WARP)
    regions = [(rows["address"][kind == k], rows["size"][kind == k]) for k in (kinds.SHARED, kinds.PRIVATE)]
    shared, private = (_inside(rows["address"], *region) for region in regions)
    kept = (kind <= kinds.ATOMIC) & ~private & (rows["size"] > 0)
    address, size = rows["address"][kept].astype(np.int64), rows["size"][kept].astype(np.int64)
    which, pieces, granule = expanded(address, size)
    which = np.flatnonzero(kept)[which]
    return _Accesses(
        pieces,
        shared[which],
        kind[which],
        (rows["what"][which] >> 8).astype(np.int64),
        rows["block"][which].astype(np.int64),
        rows["thread"][which].astype(np.int64),
        epoch[which],
        turn[which],
        granule,
    )


def _met(owner: Numbers, meets: NDArray[np.bool_]) -> Numbers:
    """How often the owner of each row met before."""
    order = np.argsort(owner, kind="stable")
    so_far = np.cumsum(meets[order])
    sorted_owner = owner[order]
    starts = np.flatnonzero(np.r_[True, sorted_owner[1:] != sorted_owner[:-1]]) if len(order) else np.zeros(0, int)
    before = np.repeat(
        np.where(starts > 0, so_far[starts - 1], 0) if len(starts) else starts, np.diff(np.r_[starts, len(order)])
    )
    found = np.empty(len(owner), np.int64)
    found[order] = so_far - before
    return found


def _inside(address: NDArray[Any], starts: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which addresses lie in one of some regions, which do not overlap."""
    starts, first = np.unique(starts, return_index=True)
    if not len(starts):
        return np.zeros(len(address), bool)
    ends = starts + sizes[first]
    at = np.searchsorted(starts, address, side="right") - 1
    return (at >= 0) & (address < ends[np.maximum(at, 0)])


# -- races


def _unwritten(accesses: _Accesses) -> list[int]:
    """Accesses to shared memory that find what nothing wrote, the first of each source line. Rows are in the order of
    time."""
    inside = np.flatnonzero(accesses.shared)
    block, address = accesses.block[inside], accesses.address[inside]
    order = np.lexsort((address, block))
    changed = np.ones(len(order), bool)
    changed[1:] = (np.diff(block[order]) != 0) | (np.diff(address[order]) != 0)
    first = inside[order[changed]]
    found: dict[int, int] = {}
    for n in np.sort(first[accesses.kind[first] != kinds.WRITE]).tolist():
        found.setdefault(int(accesses.site[n]), n)
    return list(found.values())


def _races(
    all_: _Accesses, arguments: Rows, log: AccessLog, signature: Signature, binding: Binding, shape: Shape
) -> tuple[Race, ...]:
    warp = all_.thread // _WARP
    space = np.where(all_.shared, all_.block + 1, 0)
    byte = (space, all_.address)
    everywhere = np.zeros_like(all_.block)
    questions = (
        (~all_.shared, (all_.address,), all_.block),
        (everywhere == 0, (*byte, all_.block, all_.epoch), warp),
        (everywhere == 0, (*byte, all_.block, warp, all_.turn), all_.thread),
    )
    found: dict[tuple[int, int], Race] = {}
    for chosen, keys, members in questions:
        pairs = conflicts(all_.kind[chosen], all_.site[chosen], [k[chosen] for k in keys], members[chosen])
        for sites, (first, second, count) in pairs.items():
            if sites in found:
                continue
            accesses = [_shown(all_[chosen], i, log, shape) for i in (first, second)]
            memory = "shared memory" if all_.shared[chosen][first] else None
            memory = memory or element(int(all_.address[chosen][first]), arguments, signature, binding)
            found[sites] = Race(memory or "global memory", accesses[0], accesses[1], count * all_.granule)
    return tuple(found.values())


# -- words


def _shown(accesses: _Accesses, n: int, log: AccessLog, shape: Shape) -> Access:
    return Access(
        _DOING[int(accesses.kind[n])],
        _coordinates(int(accesses.thread[n]), shape.block),
        _coordinates(int(accesses.block[n]), shape.grid),
        log.places[int(accesses.site[n])],
    )


def _coordinates(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)
