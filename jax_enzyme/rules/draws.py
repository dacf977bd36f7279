"""Functions whose result is another one each time: clocks, and random numbers that the process counts on."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CLOCKS = re.compile(
    r"(?:clock|time|gettimeofday|clock_gettime|timespec_get|times|omp_get_wtime|MPI_Wtime|mpi_wtime_?)$|"
    r"llvm\.read(?:cycle|steady)counter|_FortranA(?:CpuTime|SystemClockCount|DateAndTime)|"
    r"_(?:R|ZN)\w*3std4time\w*(?:3now|7elapsed)"
)
_DRAWS: Mapping[str, str] = {
    **dict.fromkeys(("rand",), "srand"),
    **dict.fromkeys(("random",), "srandom"),
    **dict.fromkeys(("drand48", "lrand48", "mrand48"), "srand48"),
}
_UNSEEDED = re.compile(r"arc4random\w*$|getrandom$|getentropy$|_ZNSt3__113random_deviceclEv$")


def differs(name: str) -> bool:
    """Whether a function returns another number, or leaves it in memory, each time that it is called, unless it is one
    that `seed_of` knows and that has been given a seed."""
    return name in _DRAWS or any(pattern.match(name) for pattern in (_CLOCKS, _UNSEEDED))


def seed_of(name: str) -> str | None:
    """The function that says which random numbers another one returns from then on."""
    return _DRAWS.get(name)
