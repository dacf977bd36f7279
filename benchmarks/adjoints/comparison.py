"""One gradient of ours and the same by hand: compared, then timed in turn."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adjoints.problems import HandWritten
from benchmarks.gradients import WrongGradientError
from benchmarks.measure import Call, medians
from jax_enzyme import frontends
from jax_enzyme.frontends import toolchain
from jax_enzyme.ir.arrays import Buffer, Vjp
from tests.support.through_engine import specialise

# Sums may be reassociated and vector functions of libmvec used: what one gives an adjoint that is to be fast.
FLAGS = (
    "-O3", "-march=native", "-std=gnu11", "-g0", "-fno-sanitize=all", "-fno-math-errno", "-fno-trapping-math",
    "-fno-signed-zeros", "-fassociative-math", "-ffp-contract=fast", "-fveclib=libmvec",
)  # fmt: skip


class HandCall:
    """The adjoint in C with memory of its own."""

    def __init__(self, row: HandWritten, seeds: dict[str, np.ndarray]) -> None:
        self.gradient: dict[str, np.ndarray] = {}
        self._kept: list[np.ndarray] = []
        self._function = getattr(_library(row.source), row.symbol)
        self._function.restype = None
        self._actuals = [self._actual(row, seeds, *word.split()) for word in row.order.split(", ")]

    def _actual(self, row: HandWritten, seeds: dict[str, np.ndarray], kind: str, name: str = "") -> Any:
        if kind == "work":
            return self._pointer(np.zeros(row.work))
        if kind == "bar":
            self.gradient[name] = np.zeros(np.shape(row.problem.arguments[name]))
            return self._pointer(self.gradient[name])
        value = row.sizes.get(kind, row.problem.arguments.get(kind)) if not name else seeds[name]
        if isinstance(value, int):
            return ctypes.c_int(value)
        return self._pointer(value) if np.ndim(value) else ctypes.c_double(float(value))

    def _pointer(self, array: np.ndarray) -> ctypes.c_void_p:
        self._kept.append(array)
        return ctypes.c_void_p(array.ctypes.data)

    def seconds(self) -> float:
        began = time.thread_time_ns()
        self._function(*self._actuals)
        return (time.thread_time_ns() - began) * 1e-9


def compare(row: HandWritten) -> tuple[Call, HandCall]:
    """Ours and the one by hand, after a call of each.

    Raises WrongGradientError where they differ by more than 1e-9 of the largest entry of a gradient.
    """
    problem = row.problem
    program = frontends.load(problem.path, problem.symbol)
    kernel = specialise(program, problem.signature, problem.arguments, row.options)
    base = kernel.buffers
    step = Vjp(tuple(b.name in problem.wanted for b in base), tuple(b.is_floating and b.is_result for b in base))
    seeds = {b.name: np.random.default_rng(7).normal(size=b.shape) for b in base if b.is_floating and b.is_result}

    def value(buffer: Buffer) -> Any:
        name = base[buffer.of].name if buffer.of >= 0 else buffer.name
        return seeds[name] if buffer.role == "shadow" else problem.arguments[name]

    ours, hand = Call(kernel.build(step), value), HandCall(row, seeds)
    ours.seconds()
    hand.seconds()
    for (role, of, _), memory in ours.results.items():
        if role == "shadow" and (name := base[of].name) in problem.wanted:
            away = np.max(np.abs(memory[0] - hand.gradient[name])) / max(np.max(np.abs(memory[0])), 1e-300)
            if not away <= 1e-9:
                raise WrongGradientError(f"{problem.name} {problem.size}, by {name}: {away:.1e} away from ours")
    return ours, hand


def ratio(row: HandWritten, budget: float) -> tuple[float, float]:
    """Seconds of ours and of the one by hand: medians of processor time."""
    ours, hand = compare(row)
    found = medians({"ours": [ours], "hand": [hand]}, budget)
    return found["ours"], found["hand"]


@cache
def _library(source: Path) -> ctypes.CDLL:
    ctypes.CDLL("libm.so.6", ctypes.RTLD_GLOBAL)
    ctypes.CDLL("libmvec.so.1", ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"{source.stem}.so"
        command = [*toolchain.zig().command, "cc", *FLAGS, "-shared", "-fPIC", "-Wl,-z,undefs", str(source)]
        subprocess.run([*command, "-o", str(out), "-lm"], check=True, capture_output=True, text=True)
        return ctypes.CDLL(str(out))
