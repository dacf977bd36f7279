"""A team of threads in Python, for functions whose loops several threads may share (csrc/abi.h)."""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

_STRETCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_RUN = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_EACH_IS_LONG = (1 << 63) - 1


class _Struct(ctypes.Structure):
    _fields_ = (("run", _RUN),)


@dataclass
class Team:
    """Two threads or more, which start at the end of the loop. `ran` has, by thread, the iterations it ran."""

    threads: int = 2
    ran: dict[int, list[tuple[int, int]]] = field(default_factory=dict[int, list[tuple[int, int]]])

    def __post_init__(self) -> None:
        self.struct = _Struct(_RUN(self._run))

    @property
    def address(self) -> int:
        return ctypes.addressof(self.struct)

    def _run(self, _: int, stretch: int, context: int, count: int, grain: int) -> int:
        grain = 1 if grain == _EACH_IS_LONG else grain
        starts = list(range(0, count, max(grain, -(-count // (8 * grain)) * grain)))
        parts = [(a, min(count, b)) for a, b in zip(starts, [*starts[1:], count], strict=True)]
        shares = [parts[n :: self.threads][::-1] for n in reversed(range(self.threads))]
        barrier = threading.Barrier(self.threads)

        def work(mine: list[tuple[int, int]]) -> list[tuple[int, int]]:
            barrier.wait()
            self.ran.setdefault(threading.get_ident(), []).extend(mine)
            return [(a, _STRETCH(stretch)(context, a, b)) for a, b in mine]

        with ThreadPoolExecutor(self.threads) as pool:
            left = sorted(sum(pool.map(work, shares), list[tuple[int, int]]()))
        return next((status for _, status in left if status), 0)
