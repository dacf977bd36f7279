"""Heat over MPI, beside mpi4jax: `mpiexec -n 2 python -m benchmarks.mpi [--points N] [--steps N] [--rounds N]`.

The solver of `examples/mpi_heat`, in C and in Fortran, and the same in `jax.numpy` with mpi4jax's messages, where that
is installed. Each process has `--points` of the line. Medians of wall times of `jit(f)` and `jit(value_and_grad(f))` on
the first process, interleaved, which all processes enter together. Gradients are compared before they are timed.

MPI waits by asking again and again: with more processes than idle cores the figures say nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)
_HERE = Path(__file__).parents[1] / "examples" / "mpi_heat"
_SIGNATURE = "n: {0}, steps: {0}, start: f64[n], conductivity: f64[n], seen: f64[n], out sum: f64[]"
Misfit = Callable[[int, jax.Array, jax.Array, jax.Array], jax.Array]


def _beside(messages: Any, world: Any) -> Misfit:
    """The same with mpi4jax: a ring of messages, of which both ends take zeros."""
    rank, size = world.Get_rank(), world.Get_size()
    left, right = (rank - 1) % size, (rank + 1) % size

    def exchanged(sent: jax.Array, source: int, dest: int, tag: int) -> jax.Array:
        return messages.sendrecv(sent, sent, source=source, dest=dest, sendtag=tag, recvtag=tag, comm=world)

    def misfit(steps: int, start: jax.Array, conductivity: jax.Array, seen: jax.Array) -> jax.Array:
        def step(_: int, u: jax.Array) -> jax.Array:
            above = exchanged(u[:1], right, left, 0) * (rank + 1 < size)
            below = exchanged(u[-1:], left, right, 1) * (rank > 0)
            wide = jnp.concatenate([below, u, above])
            return u + conductivity * (wide[:-2] - 2 * u + wide[2:])

        return jnp.sum((lax.fori_loop(0, steps, step, start) - seen) ** 2)

    return misfit


def main() -> None:
    """Compares, and prints the table on the first process."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"points": 10_000, "steps": 100, "rounds": 31}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    world = importlib.import_module("mpi4py.MPI").COMM_WORLD
    rng = np.random.default_rng(world.Get_rank())
    start, seen = rng.uniform(size=(2, args.points))
    conductivity = jnp.asarray(rng.uniform(0.1, 0.4, args.points))

    flags, mpi = (f"-I{sys.prefix}/include",), ("libmpi.so",)
    solvers: dict[str, Callable[..., jax.Array]] = {
        "C": je.kernel(_HERE / "heat.c", "misfit", _SIGNATURE.format("i32"), flags=flags, libraries=mpi)
    }
    if shutil.which("flang-22"):
        solvers["Fortran"] = je.kernel(_HERE / "heat.f90", "misfit", _SIGNATURE.format("i32[]"), libraries=mpi)
    if importlib.util.find_spec("mpi4jax"):
        solvers["mpi4jax"] = _beside(importlib.import_module("mpi4jax"), world)

    calls: dict[tuple[str, str], Callable[[jax.Array], Any]] = {}
    for name, solver in solvers.items():

        def misfit(guess: jax.Array, solver: Callable[..., jax.Array] = solver) -> jax.Array:
            return solver(args.steps, start, guess, seen)

        calls[name, "value"], calls[name, "gradient"] = jax.jit(misfit), jax.jit(jax.value_and_grad(misfit))
    expected = calls["C", "gradient"](conductivity)[1]
    for name in solvers:
        calls[name, "value"](conductivity)
        np.testing.assert_allclose(calls[name, "gradient"](conductivity)[1], expected, rtol=1e-11, atol=1e-12)

    times: dict[tuple[str, str], list[float]] = {row: [] for row in calls}
    for _ in range(args.rounds):
        for row, call in calls.items():
            world.Barrier()
            began = time.perf_counter()
            jax.block_until_ready(call(conductivity))
            times[row].append(1e3 * (time.perf_counter() - began))
    if world.Get_rank() == 0:
        for (name, what), taken in times.items():
            print(f"{name:8} {what:9} {statistics.median(taken):8.2f} ms")


if __name__ == "__main__":
    main()
