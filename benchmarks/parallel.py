"""Loops on several threads: `python -m benchmarks.parallel [--norm] [--processor] [--rounds N]`.

The same source with directives, by clang -O3 -fopenmp with one and two threads, and by us with `threads=1` and
`threads=2`: value and gradient. The gradient is that of the kernel, for a cotangent that is given
(`jax.vjp(kernel, x)[1](cotangent)` under `jax.jit`): what a loss around it costs is JAX's, and on one thread (in LBM
the sum of squares of 900,000 numbers takes as long as all else). Medians of wall times, interleaved; clang's program
runs in a phase of its own, since the threads of its library look for work for a while after each region, on the cores
that our threads need. glibc is to keep memory between calls (docs/costs.md), or page faults are timed as well.
`--processor`: the processor's time of all threads in place of wall time, on machines that others use as well; it says
what sharing costs, and not what it gains. `--norm`: how time grows with n where the loop calls a function of all
elements; there the processor's time on one thread.

clang needs its library, Debian's `libomp-22-dev`.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je
from benchmarks.parallel_kernels import KERNELS, NORM

jax.config.update("jax_enable_x64", True)
_SIGNATURE = "n: i32, x: f64[n], out y: f64[n]"
_SPINNING = 0.3
"""Seconds after which threads of clang's library sleep that have found nothing to do: they wait for 0.2."""


class Yardstick:
    """The source as clang compiles it for libomp's threads."""

    def __init__(self, source: str, folder: Path) -> None:
        compiler = next(c for c in ("clang-22", "clang") if shutil.which(c))
        path, out = folder / "k.c", folder / f"{abs(hash(source))}.so"
        path.write_text(source)
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-w"]
        subprocess.run([compiler, *flags, str(path), "-o", str(out), "-lm"], check=True)
        self._library = ctypes.CDLL(str(out))

    def call(self, x: np.ndarray, threads: int) -> np.ndarray:
        """The output, by so many threads."""
        y = np.zeros_like(x)
        self._library.omp_set_num_threads(threads)
        self._library.k(ctypes.c_int(x.size), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        return y


def _functions(source: str, threads: int) -> tuple[Callable[..., jax.Array], Callable[..., jax.Array]]:
    options = je.Options(threads=threads)
    kernel = je.kernel(source, "k", _SIGNATURE, lang="c", flags=("-fopenmp",), options=options)
    return jax.jit(kernel), jax.jit(lambda x, cotangent: jax.vjp(kernel, x)[1](cotangent)[0])


def _medians(calls: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Milliseconds per call, interleaved."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = clock()
            jax.block_until_ready(call())
            if number:
                found[name].append(1e3 * (clock() - start))
    return {name: statistics.median(times) for name, times in found.items()}


def _row(label: str, source: str, n: int, folder: Path, rounds: int, clock: Callable[[], float]) -> float:
    """Prints the times of one kernel; the speed-up of its gradient."""
    x = np.random.default_rng(1).uniform(0.5, 1.5, n)
    given, cotangent = jnp.asarray(x), jnp.asarray(np.cos(x))
    clang = Yardstick(source, folder)
    (value1, grad1), (value2, grad2) = _functions(source, 1), _functions(source, 2)
    np.testing.assert_allclose(value1(x), clang.call(x, 2), rtol=1e-8)
    assert np.array_equal(grad1(given, cotangent), grad2(given, cotangent))
    ms = _medians({"clang 1": lambda: clang.call(x, 1), "clang 2": lambda: clang.call(x, 2)}, rounds, clock)
    time.sleep(_SPINNING)
    calls: dict[str, Callable[[], object]] = {
        "ours 1": lambda: value1(given), "ours 2": lambda: value2(given),
        "grad 1": lambda: grad1(given, cotangent), "grad 2": lambda: grad2(given, cotangent),
    }  # fmt: skip
    ms |= _medians(calls, rounds, clock)
    times = ((ms[f"{w} 1"], ms[f"{w} 2"]) for w in ("clang", "ours", "grad"))
    print(f"{label:14}" + "".join(f"{one:10.2f}{two:9.2f}{one / two:6.2f}" for one, two in times), flush=True)
    return ms["grad 1"] / ms["grad 2"]


def compare(rounds: int, clock: Callable[[], float]) -> None:
    """Prints speed-ups of two threads over one, of clang's program, of ours, and of our gradient."""
    print(f"{'':14}{'clang 1':>10}{'2':>9}{'x':>6}{'ours 1':>10}{'2':>9}{'x':>6}{'grad 1':>10}{'2':>9}{'x':>6}  ms")
    with tempfile.TemporaryDirectory() as name:
        speedups = [_row(label, *KERNELS[label], Path(name), rounds, clock) for label in KERNELS]
    print(f"gradients: {statistics.geometric_mean(speedups):.2f} in geometric mean")


def norm(rounds: int) -> None:
    """Prints how the time of the norm example grows."""
    print(f"{'n':>8}{'clang':>12}{'ours':>12}{'gradient':>12}  ms")
    with tempfile.TemporaryDirectory() as name:
        clang = Yardstick(NORM, Path(name))
        for n in (4_000, 8_000, 16_000, 32_000):
            x = np.random.default_rng(1).uniform(0.5, 1.5, n)
            value, gradient = _functions(NORM, 1)
            given, cotangent = jnp.asarray(x), jnp.asarray(np.cos(x))
            np.testing.assert_allclose(value(x), clang.call(x, 1))
            calls: dict[str, Callable[[], object]] = {
                "clang": lambda x=x: clang.call(x, 1),
                "ours": lambda f=value, x=given: f(x),
                "gradient": lambda f=gradient, x=given, c=cotangent: f(x, c),
            }
            ms = _medians(calls, rounds, time.process_time)
            print(f"{n:8}" + "".join(f"{ms[w]:12.3f}" for w in calls))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--norm", action="store_true")
    parser.add_argument("--processor", action="store_true")
    chosen = parser.parse_args()
    if chosen.norm:
        norm(chosen.rounds)
    else:
        compare(chosen.rounds, time.process_time if chosen.processor else time.perf_counter)
