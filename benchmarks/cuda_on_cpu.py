"""CUDA kernels on the CPU beside the same loops in C: `python -m benchmarks.cuda_on_cpu`.

Every kernel runs at its raw address, in one thread, beside C compiled by gcc -O3 -march=native, and through JAX, where
its blocks may share XLA's threads. Outputs are compared with those of C before anything is timed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je
from benchmarks.cuda_problems import PROBLEMS, Problem
from benchmarks.in_c import KINDS, InC
from benchmarks.measure import Call
from jax_enzyme.ir.arrays import Augmented, Buffer, Pullback
from jax_enzyme.xla_ffi.function import Function

jax.config.update("jax_enable_x64", True)


def run(problem: Problem, budget: float, folder: Path) -> list[str]:
    """A row of the table."""
    rng = np.random.default_rng(1)
    kernel = je.kernel(
        problem.cuda, problem.name, problem.signature, lang="cuda", grid=problem.grid, block=problem.block
    )
    raw = problem.inputs(rng)
    arrays = {p.name: np.asarray(raw[p.name], KINDS[p.dtype]) for p in kernel.signature.caller_params}
    given = [jnp.asarray(a) for a in arrays.values()]
    function = kernel.specialise(kernel.binding(given))
    source = folder / f"{problem.name}.c"
    source.write_text("#include <math.h>\n" + problem.c)
    loops = InC(source, ("gcc", "-O3", "-march=native"), kernel, function, arrays)
    seeds = {b.name: rng.normal(size=b.shape) for b in function.buffers}

    def value(buffer: Buffer) -> Any:
        return seeds[function.buffers[buffer.of].name] if buffer.role == "shadow" else arrays[buffer.name]

    timed: dict[str, Callable[[], float]] = {"c": loops.seconds}
    primal = Call(function.build(), value)
    loops(), primal.seconds()
    for (_, _, name), got in primal.results.items():
        if not np.allclose(got[0], loops.arrays[name], rtol=1e-3, atol=1e-3):
            raise ArithmeticError(f"{problem.name}: {name} differs from C")
    timed["ours"] = primal.seconds
    timed["jax"] = _through_jax(jax.jit(kernel), given)
    moving = tuple(i for i, a in enumerate(given) if jnp.issubdtype(a.dtype, jnp.floating))
    outs = [b for b in function.buffers if b.is_result]
    floating = any(b.is_floating for b in outs)
    if floating:
        weights = [jnp.asarray(seeds[b.name], KINDS[b.dtype]) for b in outs if b.is_floating]
        timed["gradient"] = _through_jax(_gradient(kernel, moving), [weights, *given])
        timed |= _sweeps(function, value)
    medians = _medians(timed, budget)
    return _row(problem, medians)


def _gradient(kernel: je.Kernel, moving: tuple[int, ...]) -> Callable[..., Any]:
    def gradient(weights: list[jax.Array], *given: jax.Array) -> Any:
        def scalar(*x: jax.Array) -> jax.Array:
            full = list(given)
            for i, a in zip(moving, x, strict=True):
                full[i] = a
            return sum(jnp.vdot(w, r) for w, r in zip(weights, jax.tree.leaves(kernel(*full)), strict=True))

        return jax.grad(scalar, tuple(range(len(moving))))(*(given[i] for i in moving))

    return jax.jit(gradient)


def _sweeps(function: Function, value: Callable[[Buffer], Any]) -> dict[str, Callable[[], float]]:
    """The two sweeps of reverse mode in one thread, or both in one."""
    from jax_enzyme.ir.arrays import Vjp

    wanted = tuple(b.is_floating and b.is_input for b in function.buffers)
    seeded = tuple(b.is_floating and b.is_result for b in function.buffers)
    whole = function.then(Vjp(wanted, seeded))
    if not whole.can_split:
        return {"reverse": Call(whole.build(), value).seconds}
    forward = Call(function.then(Augmented(wanted, seeded)).build(), value)
    forward.seconds()
    kept = {(role == "tape", -1 if role == "tape" else of, name if role == "tape" else ""): memory
            for (role, of, name), memory in forward.results.items()}  # fmt: skip

    def residual(buffer: Buffer) -> Any:
        if buffer.role in ("final", "tape"):
            tape = buffer.role == "tape"
            return kept[tape, -1 if tape else buffer.of, buffer.name if tape else ""]
        return value(buffer)

    back = Call(function.then(Pullback(wanted, seeded)).build(), residual)
    return {"reverse": lambda: forward.seconds() + back.seconds()}


def _through_jax(call: Callable[..., Any], given: list[Any]) -> Callable[[], float]:
    def seconds() -> float:
        began = time.perf_counter_ns()
        jax.block_until_ready(call(*given))
        return (time.perf_counter_ns() - began) * 1e-9

    return seconds


def _medians(timed: dict[str, Callable[[], float]], budget: float) -> dict[str, float]:
    for call in timed.values():
        call()
    samples: dict[str, list[float]] = {name: [] for name in timed}
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(samples["c"]) < 5:
        for name, call in timed.items():
            samples[name].append(call())
    return {name: statistics.quantiles(times, n=4)[0] for name, times in samples.items()}


def _row(problem: Problem, t: dict[str, float]) -> list[str]:
    def ratio(a: str, b: str) -> str:
        return f"{t[a] / t[b]:.2f}" if a in t and b in t else "-"

    return [
        problem.name, problem.size, f"{t['c'] * 1e3:.3f}", f"{t['ours'] * 1e3:.3f}", ratio("ours", "c"),
        f"{t['jax'] * 1e3:.3f}", ratio("jax", "c"), ratio("reverse", "ours"), ratio("gradient", "jax"),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda_on_cpu", description=__doc__)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of measuring for each kernel")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, JAX {jax.__version__}; milliseconds, lower quartiles\n")
    heads = ["kernel", "size", "C", "one thread", "/ C", "JAX", "/ C", "reverse / primal", "gradient / primal, JAX"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    with tempfile.TemporaryDirectory() as folder:
        for problem in PROBLEMS:
            if options.only in problem.name:
                print("| " + " | ".join(run(problem, options.budget, Path(folder))) + " |", flush=True)


if __name__ == "__main__":
    main()
