"""Times built functions at their raw addresses: no JAX, no copies, one thread."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from jax_enzyme.codegen.loading import Built
from jax_enzyme.ir.arrays import Buffer
from tests.support.native import NUMPY

_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class Timed(Protocol):
    def seconds(self) -> float:
        """The time of one call."""
        ...


class Call:
    """A function with memory of its own, laid out once: `items` copies of every buffer, worked on in one call.

    More than one item serves functions so short that the way into them would be timed. Inputs that `shared` knows are
    memory of another function, as it is at each call.
    """

    def __init__(
        self,
        built: Built,
        value: Callable[[Buffer], Any],
        items: int = 1,
        shared: Callable[[Buffer], np.ndarray | None] = lambda _: None,
    ) -> None:
        self._items = items
        self._built = built  # its code stays as long
        self.buffers = built.buffers
        self._entry = _ENTRY(built.address)
        given = [shared(b) for b in built.buffers]
        made = [aligned((items, *b.shape), NUMPY[b.dtype]) for b in built.buffers]
        self._memory = [m if g is None else g for m, g in zip(made, given, strict=True)]
        self._fresh: list[tuple[np.ndarray, np.ndarray]] = []
        self.results: dict[tuple[str, int, str], np.ndarray] = {}
        for buffer, memory, known in zip(built.buffers, self._memory, given, strict=True):
            if buffer.is_input and known is None:
                memory[...] = value(buffer)
            if buffer.io == "inout":
                self._fresh.append((memory, memory.copy()))
            if buffer.is_result:
                self.results[buffer.role, buffer.of, buffer.name] = memory
        self._pointers = (ctypes.c_void_p * len(self._memory))(*(m.ctypes.data for m in self._memory))
        self._strides = (ctypes.c_int64 * len(self._memory))(*(b.nbytes for b in built.buffers))

    def seconds(self) -> float:
        """The time of one call, for one item."""
        for memory, fresh in self._fresh:
            memory[...] = fresh
        pointers, strides = ctypes.addressof(self._pointers), ctypes.addressof(self._strides)
        began = time.thread_time_ns()
        status = self._entry(pointers, strides, 0, self._items, None)
        taken = time.thread_time_ns() - began
        if status != 0:
            raise ArithmeticError(f"status {status:#x}")
        return taken * 1e-9 / self._items


def medians(calls: Mapping[str, Sequence[Timed]], budget: float = 1.0) -> dict[str, float]:
    """The median time of each group of calls (made one after the other), all groups in turn until the time is used."""
    once = {name: sum(c.seconds() for c in group) for name, group in calls.items()}
    rounds = int(np.clip(budget / max(sum(once.values()), 1e-9), 7, 400))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, group in calls.items():
            samples[name].append(sum(c.seconds() for c in group))
    return {name: statistics.median(times) for name, times in samples.items()}


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeroed memory on a cache line, as XLA allocates it."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
