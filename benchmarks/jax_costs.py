"""What a kernel costs inside JAX beside its arithmetic: dispatch, batches, compilation.

python -m benchmarks.jax_costs
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je
from benchmarks.problems import GMM

ROOT = Path(__file__).resolve().parents[1]
ADD = "void add(int n, const double *x, double a, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] + a; }"
SMALL = """
#include <math.h>
double small(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += sin(x[i]) * x[i]; return s; }
"""
COLD = """
import sys, time
import jax, numpy as np
import jax_enzyme as je
from benchmarks.jax_costs import gmm, gmm_arguments
jax.config.update("jax_enable_x64", True)
gradient = jax.jit(jax.grad(gmm(), (0, 1, 2)))
jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
for n in map(int, sys.argv[1:]):
    arguments = gmm_arguments(n)
    began = time.perf_counter()
    jax.block_until_ready(gradient(*arguments, 1.0, 0))
    print(time.perf_counter() - began)
"""


def gmm() -> je.Kernel:
    """The objective of a Gaussian mixture: a typical kernel."""
    return je.kernel(ROOT / "examples" / "gmm" / "gmm.c", "gmm_objective", GMM)


def gmm_arguments(n: int, d: int = 10, k: int = 25) -> tuple[np.ndarray, ...]:
    """Parameters and n points in d dimensions."""
    noise = np.random.default_rng(0)
    shapes = ((k,), (k, d), (k, d * (d + 1) // 2), (n, d))
    return tuple(noise.normal(size=shape) for shape in shapes)


def seconds(run: Callable[[], Any], repeat: int = 200) -> float:
    """The median time of a call."""
    jax.block_until_ready(run())
    taken: list[float] = []
    for _ in range(repeat):
        began = time.perf_counter()
        jax.block_until_ready(run())
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def dispatch() -> Iterator[tuple[str, float, float]]:
    """Rows: what, a kernel, the same in jax.numpy."""
    add = je.kernel(ADD, "add", "n: i32, x: f64[n], a: f64, out y: f64[n]", lang="c")
    x = jnp.arange(8.0)

    def chain(function: Callable[..., Any], length: int) -> Callable[[], Any]:
        def run(x: Any) -> Any:
            return jax.lax.fori_loop(0, length, lambda _, y: function(y, 1.0), x)

        compiled = jax.jit(run)
        return lambda: compiled(x)

    def plain(x: Any, a: Any) -> Any:
        return jax.lax.optimization_barrier(x + a)

    inside = [(seconds(chain(f, 2000), 50) - seconds(chain(f, 1000), 50)) / 1000 for f in (add, plain)]
    yield "one call in a jitted loop", *inside
    jitted, jnp_jitted = jax.jit(add), jax.jit(plain)
    yield "jitted call from Python", seconds(lambda: jitted(x, 1.0)), seconds(lambda: jnp_jitted(x, 1.0))
    yield "eager call", seconds(lambda: add(x, 1.0)), seconds(lambda: x + 1.0)
    small = je.kernel(SMALL, "small", "n: i32, x: f64[n] -> f64", lang="c")
    many = jnp.asarray(np.random.default_rng(0).normal(size=(10_000, 8)))
    mapped = jax.jit(jax.vmap(small))
    in_jnp = jax.jit(jax.vmap(lambda x: jnp.sum(jnp.sin(x) * x)))
    assert mapped.lower(many).as_text().count("@jax_enzyme_cpu") == 1
    yield "vmap of 10,000 small kernels", seconds(lambda: mapped(many)), seconds(lambda: in_jnp(many))


def gradients() -> tuple[float, float]:
    """The times of the GMM and of its value and gradient, through JAX."""
    arguments = tuple(jnp.asarray(a) for a in gmm_arguments(1000))
    value = jax.jit(lambda *a: gmm()(*a, 1.0, 0))
    both = jax.jit(jax.value_and_grad(lambda *a: gmm()(*a, 1.0, 0), (0, 1, 2)))
    return seconds(lambda: value(*arguments)), seconds(lambda: both(*arguments))


def compilation() -> tuple[list[float], list[float]]:
    """Seconds of the first calls of a gradient at ten sizes, with an empty disk cache and with a full one. What JAX
    needs itself (tracing, XLA) is in both."""
    sizes = [str(100 + n) for n in range(10)]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "JAX_ENZYME_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
        runs = [
            subprocess.run(
                [sys.executable, "-c", COLD, *sizes], check=True, capture_output=True, text=True, env=environment
            ).stdout
            for _ in range(2)
        ]
    return [float(t) for t in runs[0].split()], [float(t) for t in runs[1].split()]


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    print(f"JAX {jax.__version__}, {os.cpu_count()} cores\n")
    print("| | kernel | jax.numpy |\n|---|---|---|")
    for what, ours, theirs in dispatch():
        print(f"| {what} | {ours * 1e6:.2f} µs | {theirs * 1e6:.2f} µs |")
    value, both = gradients()
    print(f"\nGMM d=10 k=25 n=1000: value {value * 1e3:.2f} ms, with gradient {both * 1e3:.2f} ms, {both / value:.2f}")
    cold, warm = compilation()
    print(f"first call of its gradient: {cold[0]:.2f} s with an empty cache, {warm[0] * 1e3:.0f} ms with a full one")
    print(f"nine more sizes: {statistics.mean(cold[1:]):.2f} s each, {statistics.mean(warm[1:]) * 1e3:.0f} ms each")


if __name__ == "__main__":
    main()
