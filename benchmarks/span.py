"""How far loops on several threads can scale: `python -m benchmarks.span [--rounds N]`.

Counts of work and span, which other programs on the machine do not disturb as they do wall times: a team of one thread
runs every part of every shared loop in turn, and notes the processor time of each. The span with so many threads is the
time outside of shared loops and, of each of these, that of the thread which is last, where every part goes to the first
one that is free. Least of all rounds; what threads cost one another (memory, starting) is not in it.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.parallel_kernels import KERNELS
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.loading import Built
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Step, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse

_THREADS: tuple[int, ...] = (1, 2, 4, 16)
_PARTS = 4
"""For each thread, of a loop whose parts may be any."""
_STRETCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_RUN = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_EACH_IS_LONG = (1 << 63) - 1


class _Struct(ctypes.Structure):
    _fields_ = (("run", _RUN),)


class Team:
    """Plays so many threads (csrc/abi.h). `shared`: the seconds in shared loops; `span`: of the last thread."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._struct = _Struct(_RUN(self._run))
        self.address = ctypes.addressof(self._struct)
        self.shared = self.span = self.noting = 0.0

    def _run(self, _: int, stretch: int, context: int, count: int, grain: int) -> int:
        entered = time.thread_time()
        grain = 1 if grain == _EACH_IS_LONG else grain
        length = max(grain, -(-count // (_PARTS * self._threads * grain)) * grain)
        busy, way, function = [0.0] * self._threads, 0, _STRETCH(stretch)
        for low in range(0, count, length):
            start = time.thread_time()
            way = way or function(context, low, min(count, low + length))
            busy[busy.index(min(busy))] += time.thread_time() - start
        self.shared += sum(busy)
        self.span += max(busy)
        self.noting += time.thread_time() - entered - sum(busy)
        return way


def spans(built: Built, arrays: Sequence[np.ndarray], rounds: int) -> tuple[float, dict[int, float]]:
    """Seconds outside of shared loops, and in all, by the number of threads."""
    storage: list[np.ndarray] = [np.zeros(b.shape, np.float64 if b.dtype == "f64" else np.int32) for b in built.buffers]
    inputs = [s for s, b in zip(storage, built.buffers, strict=True) if b.is_input]
    pointers = (ctypes.c_void_p * len(storage))(*(s.ctypes.data for s in storage))
    strides = (ctypes.c_int64 * len(storage))()
    serial, found = float("inf"), dict.fromkeys(_THREADS, float("inf"))
    for threads in [t for t in _THREADS for _ in range(rounds)]:
        for own, given in zip(inputs, arrays, strict=True):
            own[...] = given
        team = Team(threads)
        start = time.thread_time()
        _ENTRY(built.address)(ctypes.addressof(pointers), ctypes.addressof(strides), 0, 1, team.address)
        outside = time.thread_time() - start - team.shared - team.noting
        serial = min(serial, outside)
        found[threads] = min(found[threads], outside + team.span)
    return serial, found


def _kernel(source: str, n: int) -> Callable[[tuple[Step, ...]], Built]:
    program = load(source, "k", "c", ("-fopenmp",))
    signature, binding = parse("n: i32, x: f64[n], out y: f64[n]"), Binding.of({"n": n}, {})
    return lambda steps: derived.build(program, signature, binding, steps, Options())


def main(rounds: int) -> None:
    """Prints, for every kernel and its gradient, what is serial, and the speed-ups that remain."""
    print(f"{'':24}{'ms':>9}{'serial':>9}" + "".join(f"{t:>7}" for t in _THREADS[1:]) + "  threads")
    for label, (source, n) in KERNELS.items():
        build = _kernel(source, n)
        x = np.random.default_rng(1).uniform(0.5, 1.5, n)
        for what, steps, given in (
            ("value", (), [x]),
            ("gradient", (Vjp((True, False), (False, True)),), [x, np.cos(x)]),
        ):
            serial, found = spans(build(steps), given, rounds)
            shares = "".join(f"{found[1] / found[t]:7.2f}" for t in _THREADS[1:])
            print(f"{label:15}{what:9}{1e3 * found[1]:9.2f}{serial / found[1]:9.1%}{shares}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args().rounds)
