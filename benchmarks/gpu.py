"""Kernels and their gradients on a GPU: times, ratios, registers, bandwidth. `make gpu-bench` runs it, prints a table
and writes it to build/gpu-bench.md.

A ratio is the time of outputs and gradients together (the kernel that leaves a tape, then the one that reads it; or the
kernel, then the one that runs it again) over the time of the kernel. Before anything is timed, the gradient is compared
with forward mode.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen.gpu.architecture import architecture
from jax_enzyme.codegen.gpu.ptxas import Resources, find_ptxas
from tests.cuda.cases import CASES

jax.config.update("jax_enable_x64", True)

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A kernel of the tests at a size that keeps a GPU busy. `published`: gradient over primal, of SC 2021."""

    name: str
    size: str
    grid: object
    block: object
    inputs: Callable[[np.random.Generator], Arrays]
    shared: object = 0
    flags: tuple[str, ...] = ()
    published: float | None = None

    @property
    def kernel(self) -> je.Kernel:
        case = next(c for c in CASES if c.name == self.name)
        launch: dict[str, Any] = {"grid": self.grid, "block": self.block, "shared": self.shared}
        return je.kernel(str(case.path), case.name, case.signature, flags=self.flags, **launch)


def _cross_sections(r: np.random.Generator, lookups: int, nuclides: int, points: int) -> Arrays:
    grid = np.sort(r.uniform(0, 1, (nuclides, points)), axis=1)
    grid[:, 0], grid[:, -1] = -0.1, 1.1
    channels = r.normal(size=(nuclides, points, 5))
    energy, density = r.uniform(0.2, 0.8, lookups), r.uniform(0.5, 1.5, nuclides)
    return {"energy": energy, "grid": grid, "channels": channels, "density": density}


def _cells(r: np.random.Generator, n: int) -> Arrays:
    """A distorted cube of n x n x n cells."""
    axis = np.arange(n + 1.0)
    nodes = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    i, j, k = (a.reshape(-1) for a in np.meshgrid(*[np.arange(n)] * 3, indexing="ij"))
    around = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    corner = np.stack([((i + a) * (n + 1) + j + b) * (n + 1) + k + c for a, b, c in around], axis=-1)
    x = nodes + 0.1 * r.uniform(-1, 1, nodes.shape)
    region = r.integers(0, 4, n**3).astype(np.int32)
    return {"corner": corner.astype(np.int32), "region": region, "x": x, "energy": r.uniform(0.5, 1.5, n**3)}


PROBLEMS = (
    Problem(
        "cross_sections", "1M lookups, 12 nuclides, 1024 points", "(lookups+127)//128", 128,
        lambda r: _cross_sections(r, 1 << 20, 12, 1024), published=3.2,
    ),
    Problem(
        "multipole", "1M lookups, 32 poles", "(lookups+127)//128", 128,
        lambda r: {
            "energy": r.uniform(1.0, 4.0, 1 << 20),
            "pole": np.stack([r.uniform(0.5, 2.5, 32), -r.uniform(1.5, 2.0, 32)], axis=-1),
            "residue": r.normal(size=(32, 2)), "doppler": np.float64(0.7),
        },
        published=4.2,
    ),
    Problem("hydro_element", "90 x 90 x 90 cells", "(elements+127)//128", 128, lambda r: _cells(r, 90), published=2.0),
    Problem(
        "lattice_boltzmann", "2048 x 2048", ("(nx+31)//32", "(ny+3)//4"), (32, 4),
        lambda r: {"omega": np.float64(0.8), "f": r.uniform(0.5, 1.5, (9, 2048, 2048))}, published=6.3,
    ),
    Problem(
        "galerkin", "200k elements of 4 x 4", "elements", (4, 4),
        lambda r: {
            "matrix": r.normal(size=(4, 4)), "jacobian": r.uniform(0.5, 1.5, (200_000, 2)),
            "u": r.normal(size=(200_000, 4, 4)),
        },
        published=18.4,
    ),
    Problem(
        "matmul", "1024 x 1024 x 1024", ("(n+15)//16", "(m+15)//16"), (16, 16),
        lambda r: {"beta": np.float64(0.3), **{k: r.normal(size=(1024, 1024)) for k in "abc"}}, flags=("-DTILE=16",),
    ),
    Problem("softmax", "8192 rows of 1024", "rows", 128, lambda r: {"x": r.normal(size=(8192, 1024))}),
    Problem(
        "reduce", "16M", "(n+255)//256", 256,
        lambda r: {"x": r.normal(size=1 << 24), "w": r.uniform(0.5, 1.5, 1 << 24), "total": np.float64(0.5)}, 64,
    ),
    Problem(
        "stencil", "16M", "(n+255)//256", 256,
        lambda r: {"a": np.float64(0.2), "u": r.normal(size=1 << 24)}, flags=("-DSIZE=256",),
    ),
    Problem(
        "bodies", "16k bodies", "(n+127)//128", 128,
        lambda r: {
            "softening": np.float64(0.1), "position": r.normal(size=(1 << 14, 3)), "mass": r.uniform(0.5, 1.5, 1 << 14),
        },
        128 * 32,
    ),
    Problem(
        "histogram", "16M samples", 1024, 256,
        lambda r: {
            "x": r.uniform(0.02, 0.98, 1 << 24), "w": r.uniform(0.5, 1.5, 1 << 24), "bins": r.normal(size=6),
        },
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Seconds, bytes that the kernel reads and writes at least, and what its derivatives take of a multiprocessor."""

    primal: float
    forward: float
    gradient: float
    bytes: int
    tape: int
    resources: tuple[Resources, ...]


def run(problem: Problem, budget: float) -> Figures:
    """Times a kernel, its forward derivative and its gradient, in turn."""
    rng = np.random.default_rng(1)
    kernel, arrays = problem.kernel, problem.inputs(rng)
    given = [jnp.asarray(arrays[p.name]) for p in kernel.signature.caller_params]
    moving = [i for i, a in enumerate(given) if jnp.issubdtype(a.dtype, jnp.floating)]

    def call(*values: jax.Array) -> list[jax.Array]:
        full = dict(zip(moving, values, strict=True))
        return jax.tree.leaves(kernel(*(full.get(i, a) for i, a in enumerate(given))))

    at = [given[i] for i in moving]
    along = [jnp.asarray(rng.normal(size=a.shape)) for a in at]
    primal = jax.jit(call)
    weights = [jnp.asarray(rng.normal(size=r.shape)) for r in primal(*at)]
    forward = jax.jit(lambda x, v: jax.jvp(call, list(x), list(v)))
    gradient = jax.jit(lambda x, w: (lambda out, pull: (out, pull(list(w))))(*jax.vjp(call, *x)))
    _check(forward(at, along)[1], gradient(at, weights)[1], along, weights)
    seconds = _medians([lambda: primal(*at), lambda: forward(at, along), lambda: gradient(at, weights)], budget)
    moved = sum(a.nbytes for a in given) + sum(w.nbytes for w in weights)
    resources, tape = _resources(kernel, given)
    return Figures(*seconds, moved, tape, resources)


def _check(tangents: Any, cotangents: Any, along: list[jax.Array], weights: list[jax.Array]) -> None:
    forward = float(sum(jnp.sum(w * t) for w, t in zip(weights, tangents, strict=True)))
    reverse = float(sum(jnp.sum(v * c) for v, c in zip(along, cotangents, strict=True)))
    size = float(sum(jnp.sum(jnp.abs(w * t)) for w, t in zip(weights, tangents, strict=True)))
    if abs(forward - reverse) > 1e-9 * size:
        raise ArithmeticError(f"forward mode gives {forward}, reverse mode {reverse}")


def _medians(calls: list[Callable[[], Any]], budget: float) -> list[float]:
    """The median time of each call on the device: some in a row, so that starting them is hidden, all in turn."""

    def timed(call: Callable[[], Any], count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            out = call()
        jax.block_until_ready(out)
        return (time.perf_counter() - began) / count

    for call in calls:
        jax.block_until_ready(call())
    counts = [max(1, min(200, int(0.02 / max(timed(c, 3), 1e-7)))) for c in calls]
    samples: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(samples[0]) < 5:
        for sample, call, count in zip(samples, calls, counts, strict=True):
            sample.append(timed(call, count))
    return [statistics.median(s) for s in samples]


def _resources(kernel: je.Kernel, given: list[jax.Array]) -> tuple[tuple[Resources, ...], int]:
    """What the kernel and those of its gradient take, and the bytes of the tape between these."""
    gpu = kernel.inspect(*given).gpu
    assert gpu is not None and gpu.tape_bytes is not None
    if find_ptxas() is None:
        return (), gpu.tape_bytes
    capability = jax.devices("cuda")[0].compute_capability.replace(".", "")
    found = gpu.resources(architecture(f"sm_{capability}"))
    return tuple(r for n, r in found.items() if n != "jvp" and isinstance(r, Resources)), gpu.tape_bytes


def report(budget: float, only: str) -> str:
    """The table, in Markdown."""
    device = jax.devices("cuda")[0]
    lines = [
        f"{device.device_kind}, compute capability {device.compute_capability}, JAX {jax.__version__}",
        "",
        "| kernel | size | primal µs | GB/s | forward / primal | gradient / primal | published | tape MB | registers |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for problem in PROBLEMS:
        if only not in problem.name:
            continue
        f = run(problem, budget)
        published = "" if problem.published is None else f"{problem.published:g}"
        lines.append(
            f"| {problem.name} | {problem.size} | {f.primal * 1e6:,.1f} | {f.bytes / f.primal / 1e9:,.0f} |"
            f" {f.forward / f.primal:.2f} | {f.gradient / f.primal:.2f} | {published} | {f.tape / 1e6:,.1f} |"
            f" {', '.join(map(_described, f.resources))} |"
        )
        print(lines[-1], flush=True)
    lines += [
        "",
        "Registers per thread: the kernel; the one that leaves a tape and the pullback, or both in one; in brackets the"
        " bytes that spill.",
    ]
    return "\n".join(lines) + "\n"


def _described(resources: Resources) -> str:
    return f"{resources.registers}" + (
        f" ({resources.spill_stores + resources.spill_loads})" if resources.spills else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of measuring for each kernel")
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args()
    text = report(options.budget, options.only)
    path = Path("build/gpu-bench.md")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    print(f"\n{text}\nwritten to {path}")


if __name__ == "__main__":
    main()
