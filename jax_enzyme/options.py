"""How a kernel is built: an immutable value that is part of a kernel's identity."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

Lever = Literal[
    "recomputing",
    "counting",
    "reloading",
    "later_writes",
    "late_sums",
    "packing",
    "snapshots",
    "turned_loops",
    "arms",
    "rows",
    "lockstep",
    "unmasked",
]


@dataclass(frozen=True)
class Options:
    """`fast_math`: the kernel's own floating-point operations may be reassociated and contracted, as `-ffast-math`
    does. Without it the primal keeps the meaning that its compiler gave it (adjoint sums may always be reordered).

    `vector_math`: vectorised loops may call the vector versions of `math.h` where the system has them (glibc's
    libmvec), which are within 4 ulp where the scalar ones are within 1. Equal arguments may then give results that are
    not equal, in what is left of a loop behind its vectors: ties among them are broken by that.

    `checkpoint`: how reverse mode keeps what it needs of a long loop. `"sqrt"`: the state at the start of every segment
    of the loop, segments being run again, O(sqrt(iterations)) memory for one more run of the loop; `"log"`: fewer
    states, long segments being divided, O(log(iterations)) memory for O(log(iterations)) more runs; an integer:
    segments of so many iterations; False: everything, always; None: everything, unless what is known of its size when
    the derivative is made is more than `tape_budget` bytes: then as `"sqrt"`.

    `tape_cost`: how dear a byte on the tape is, on the CPU, as a multiple (from 0.25 to 64) of what the engine takes it
    for. Above 1 more is computed again in the reverse sweep, below 1 more is kept. Which is faster depends on sizes,
    and on the machine: `Kernel.tune` measures it.

    `vector_width`: vectorised loops use registers of so many bits at most, 128, 256 or 512; None: what LLVM takes for
    this processor. On the CPU.

    `deterministic`: results and derivatives are the same to the last bit in every run. On the CPU they always are. On a
    GPU numbers that are added atomically come in another order each time; with this option they are summed exactly, in
    integers, which takes longer and more memory (`docs/decisions/0011-exact-sums.md`).

    `threads`: how many threads at most run a call on the CPU: loops that directives of OpenMP share out, blocks of a
    CUDA kernel, elements of a batch. None: those of XLA's pool, but one where the kernel calls MPI; 1: the one that
    calls. Results are the same to the last bit for any number (`docs/parallel.md`), but of a region of OpenMP's that
    asks for its thread: it has so many.

    `sanitize`: what C leaves undefined becomes a `JaxRuntimeError` with kernel and line: accesses outside of their
    objects, freed memory, divisions, shifts and conversions without a result, reads of what nothing wrote, outputs
    that are not written, recursion that is too deep; Ctrl-C ends a kernel. `time_limit`: so many seconds a call of such
    a kernel may take. On the CPU; see `docs/crashes.md`.

    `without`: what the plan of reverse mode is to do without, to measure what it gains or to find which of it is at
    fault; gradients are the same but for rounding. `"recomputing"`: computing a value again in the reverse sweep from
    others, instead of taping it; `"counting"`: preferring that for what follows from iteration numbers, however cheap
    the tape is; `"reloading"`: loading again from memory that nothing overwrites; `"later_writes"`: doing so where
    something is written later, but elsewhere, as the iterations show; `"late_sums"`: adding adjoints to memory behind
    their loops; `"packing"`: tapes without gaps of loops whose length differs; `"snapshots"`: one copy of the memory
    that a loop reads, instead of each number that is read; `"turned_loops"`: going through loops from the first
    iteration on where that does not matter; `"arms"`: one place on the tape for what the arms of a branch keep. And, of
    values as well, `"rows"`: adding up all sums of a row at once; `"lockstep"`: running eight iterations of a loop with
    loops inside at once. And `"unmasked"`: reverse sweeps that ask what an infinite partial met only where a result is
    no number, and run again then."""

    fast_math: bool = False
    vector_math: bool = True
    checkpoint: Literal["sqrt", "log", False] | int | None = None
    tape_budget: int = 1 << 30
    tape_cost: float = 1.0
    vector_width: Literal[128, 256, 512] | None = None
    deterministic: bool = False
    threads: int | None = None
    sanitize: bool = False
    time_limit: float | None = None
    without: tuple[Lever, ...] = ()

    def __post_init__(self) -> None:
        named = self.checkpoint in (None, "sqrt", "log") or self.checkpoint is False
        if not named and (type(self.checkpoint) is not int or self.checkpoint < 1):
            raise ValueError(
                f'checkpoint is "sqrt", "log", a number of iterations, False or None, not {self.checkpoint!r}'
            )
        if not isinstance(self.tape_budget, Real) or not self.tape_budget >= 0:
            raise ValueError(f"tape_budget is a number of bytes, not {self.tape_budget!r}")
        if not isinstance(self.tape_cost, Real) or not 0.25 <= self.tape_cost <= 64:
            raise ValueError(f"tape_cost is a number from 0.25 to 64, not {self.tape_cost!r}")
        if self.vector_width not in (None, 128, 256, 512):
            raise ValueError(f"vector_width is 128, 256, 512 or None, not {self.vector_width!r}")
        for name in ("fast_math", "vector_math", "deterministic", "sanitize"):
            if getattr(self, name) not in (True, False):
                raise ValueError(f"{name} is True or False, not {getattr(self, name)!r}")
        if self.threads is not None and (type(self.threads) is not int or self.threads < 1):
            raise ValueError(f"threads is a number of threads, at least 1, or None, not {self.threads!r}")
        object.__setattr__(self, "without", tuple(sorted(set(self.without))))
        if unknown := [name for name in self.without if name not in get_args(Lever)]:
            raise ValueError(f"without is some of {', '.join(get_args(Lever))}, not {unknown[0]!r}")
        limit = self.time_limit
        if limit is not None and not (self.sanitize and isinstance(limit, Real) and limit > 0):
            raise ValueError(f"time_limit is a number of seconds, and needs sanitize=True: not {limit!r}")
