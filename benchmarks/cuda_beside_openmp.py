"""CUDA programs on the CPU beside the same computations in C with OpenMP: `python -m benchmarks.cuda_beside_openmp`.

Eight whole host functions (they allocate, copy, launch), of the shapes of Rodinia (Che et al., IISWC 2009), on which
Polygeist compares its CPU code for CUDA with OpenMP by hand (Moses et al., PPoPP 2023). The C is compiled by clang -O3
-fopenmp and runs on libomp's threads, ours on XLA's. Values are compared with those of C, and gradients with forward
mode, before anything is timed. Wall times; threads of libomp go on spinning for a while after a region, so each side
has a phase of its own, after a pause.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je
from benchmarks.in_c import KINDS, InC

jax.config.update("jax_enable_x64", True)
_SOURCES = Path(__file__).resolve().parent / "kernels" / "host"
_PAUSE = 0.3  # seconds; libomp's threads spin for 0.2 (KMP_BLOCKTIME)
_PHASES = 5


@dataclass(frozen=True)
class Program:
    """A host function, in `<name>.cu` and, with the same parameters, in `<name>.c`; what the caller passes, by name."""

    name: str
    signature: str
    inputs: Callable[[np.random.Generator], dict[str, Any]]
    tolerance: float = 1e-9


def _dominant(r: np.random.Generator, n: int) -> np.ndarray:
    return r.normal(size=(n, n)) + n * np.eye(n)


def _flow(r: np.random.Generator, n: int) -> dict[str, Any]:
    state = [r.uniform(low, high, n) for low, high in ((0.5, 1), (0.1, 0.3), (0.1, 0.3), (2, 3))]
    return {"near": r.integers(-1, n, (n, 4)), "normals": r.normal(size=(n, 4, 2)), "v": np.stack(state)}


PROGRAMS = (
    Program(
        "hotspot", "h: i32, w: i32, steps: i32, t: f64[h,w], power: f64[h,w], out r: f64[h,w]",
        lambda r: {"steps": 10, "t": r.normal(size=(512, 512)), "power": r.normal(size=(512, 512))},
    ),
    Program(
        "srad", "h: i32, w: i32, steps: i32, lam: f64, img: f64[h,w], out r: f64[h,w]",
        lambda r: {"steps": 4, "lam": 0.5, "img": r.uniform(0.2, 1, (384, 384))},
    ),
    Program("lud", "n: i32, inout m: f64[n,n]", lambda r: {"m": _dominant(r, 256)}),
    Program(
        "backprop", "n: i32, hidden: i32, x: f32[n], w: f32[n,hidden], out h: f32[hidden]",
        lambda r: {"x": r.normal(size=1 << 16), "w": 0.01 * r.normal(size=(1 << 16, 16))},
        1e-3,
    ),
    Program(
        "pathfinder", "rows: i32, cols: i32, wall: f64[rows,cols], out r: f64[cols]",
        lambda r: {"wall": r.uniform(0, 10, (101, 20000))},
    ),
    Program(
        "gaussian", "n: i32, a: f64[n,n], b: f64[n], out x: f64[n]",
        lambda r: {"a": _dominant(r, 192), "b": r.normal(size=192)},
    ),
    Program(
        "lavamd",
        "cells: i32, per: i32, ncount: i32, near: i32[cells,ncount], pos: f64[cells,per,4], q: f64[cells,per], "
        "alpha: f64, out f: f64[cells,per,4]",
        lambda r: {
            "near": r.integers(0, 64, (64, 9)), "pos": r.uniform(0.1, 1, (64, 50, 4)),
            "q": r.uniform(0.1, 1, (64, 50)), "alpha": 0.5,
        },
    ),
    Program(
        "cfd", "n: i32, near: i32[n,4], normals: f64[n,4,2], v: f64[4,n], out r: f64[4,n]",
        lambda r: _flow(r, 50_000),
    ),
)  # fmt: skip


def _sides(program: Program, folder: Path, threads: int) -> tuple[InC, Callable[[], Any], Callable[[], Any]]:
    """The C, and our value and gradient; all of them checked."""
    rng = np.random.default_rng(1)
    options = je.Options(threads=threads)
    kernel = je.kernel(_SOURCES / f"{program.name}.cu", program.name, program.signature, options=options)
    raw = program.inputs(rng)
    given = [jnp.asarray(raw[p.name], KINDS[p.dtype]) for p in kernel.signature.caller_params]
    function = kernel.specialise(kernel.binding(given))
    source = Path(shutil.copy(_SOURCES / f"{program.name}.c", folder))
    loops = InC(source, (_clang(), "-O3", "-march=native", "-fopenmp", "-w"), kernel, function, raw)
    loops()
    (result,) = (p.name for p in kernel.signature.params if p.direction != "in")
    value = jax.jit(kernel)
    np.testing.assert_allclose(value(*given), loops.arrays[result], rtol=program.tolerance, atol=program.tolerance)

    moving = tuple(i for i, a in enumerate(given) if jnp.issubdtype(a.dtype, jnp.floating))

    def scalar(*moved: jax.Array) -> jax.Array:
        full = list(given)
        for at, a in zip(moving, moved, strict=True):
            full[at] = a
        return jnp.sum(jnp.asarray(kernel(*full)) ** 2)

    point = [given[i] for i in moving]
    gradient = jax.jit(jax.grad(scalar, tuple(range(len(moving)))))
    towards = [jnp.asarray(rng.normal(size=a.shape), a.dtype) for a in point]
    _, tangent = jax.jvp(scalar, point, towards)
    along = sum(jnp.vdot(a, b) for a, b in zip(gradient(*point), towards, strict=True))
    np.testing.assert_allclose(along, tangent, rtol=program.tolerance * 100)
    return loops, lambda: value(*given), lambda: gradient(*point)


def _clang() -> str:
    return next(c for c in ("clang-22", "clang") if shutil.which(c))


def _row(program: Program, folder: Path, threads: int, seconds: float) -> tuple[str, float]:
    """A row of the table, and how many times as fast as the C our value is."""
    loops, value, gradient = _sides(program, folder, threads)
    times: dict[str, list[float]] = {"C": [], "value": [], "gradient": []}
    for _ in range(_PHASES):
        loops.library.omp_set_num_threads(threads)
        _phase(times["C"], loops, seconds)
        time.sleep(_PAUSE)
        _phase(times["value"], value, seconds)
        _phase(times["gradient"], gradient, seconds)
    ms = {side: 1e3 * statistics.median(found) for side, found in times.items()}
    faster = ms["C"] / ms["value"]
    cells = (program.name, f"{ms['C']:.2f}", f"{ms['value']:.2f}", f"{faster:.2f}")
    gradients = (f"{ms['gradient']:.2f}", f"{ms['gradient'] / ms['value']:.1f}", f"{ms['gradient'] / ms['C']:.1f}")
    return "| " + " | ".join((*cells, *gradients)) + " |", faster


def _phase(found: list[float], call: Callable[[], Any], seconds: float) -> None:
    end = time.perf_counter() + seconds / _PHASES
    jax.block_until_ready(call())
    while True:
        began = time.perf_counter()
        jax.block_until_ready(call())
        found.append(time.perf_counter() - began)
        if time.perf_counter() > end:
            return


def main() -> None:
    """Prints the table: milliseconds, medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda_beside_openmp", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of measuring, for each side of a program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    heads = ("program", "OpenMP", "CUDA", "times as fast", "gradient", "/ CUDA", "/ OpenMP")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    with tempfile.TemporaryDirectory() as folder:
        chosen = [p for p in PROGRAMS if options.only in p.name]
        rows = [_row(program, Path(folder), options.threads, options.seconds) for program in chosen]
    print("\n".join(text for text, _ in rows))
    print(f"\n{statistics.geometric_mean(f for _, f in rows):.2f} times as fast as OpenMP in geometric mean")


if __name__ == "__main__":
    main()
