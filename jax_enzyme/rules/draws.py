"""Functions whose result is another one each time: clocks, the thread that a kernel happens to run on, and sources of
random numbers outside of the program. (Those of C and Fortran begin anew in each call: `frontends/runtime`; the keys of
Rust's maps as well: `transform/hash_keys`.)"""

from __future__ import annotations

import re

_DIFFERS = re.compile(
    r"(?:clock|time|gettimeofday|clock_gettime|timespec_get|times|ftime|getrusage|omp_get_wtime|MPI_Wtime|mpi_wtime_?)$|"
    r"llvm\.(?:read(?:cycle|steady)counter|x86\.rd(?:tscp?$|rand\.|seed\.))|"
    r"_FortranA(?:CpuTime|SystemClockCount|DateAndTime|(?:Etime|D?[Ss]ecnds|time|I?[Rr]and)$)|"
    r"_(?:R|ZN)\w*3std4time\w*(?:3now|7elapsed)|"
    r"_(?:R|ZN)\w*3std6thread\w*7current|(?:pthread_self|thrd_current|gettid|getcpu|sched_getcpu|syscall)$|"
    r"arc4random\w*$|getrandom$|getentropy$|_ZNSt3__113random_deviceclEv$"
)

_LEFT = {"time": 8, "clock_gettime": 16, "timespec_get": 16, "gettimeofday": 16, "times": 32, "getrusage": 144}
"""How many bytes they leave in memory."""


def left(name: str) -> int | None:
    """How many bytes a function leaves at each of its arguments; None: not known."""
    return _LEFT.get(name)


def differs(name: str) -> bool:
    """Whether a function returns another number, or leaves it in memory, each time that it is called."""
    return _DIFFERS.match(name) is not None
