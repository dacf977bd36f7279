"""The functions whose adjoints are written by hand, at the size that is timed and at one for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import Problem
from benchmarks.problems import KERNELS, bundle, gmm, lstm
from benchmarks.shapes import HEAT
from jax_enzyme.options import Options
from tests.kernels.corpus import case


@dataclass(frozen=True)
class HandWritten:
    """A function with its adjoint in C, `<symbol>` of `source`.

    `order` is what it is called with: integers of `sizes`, arguments of the problem by name, `seed NAME` for the
    cotangent of a result, `bar NAME` for the gradient by an argument, `work` for memory of `work` doubles. Ours has
    `options`.
    """

    problem: Problem
    source: Path
    symbol: str
    order: str
    sizes: Mapping[str, int]
    work: int = 0
    options: Options = field(default_factory=Options)


def hand_written(small: bool = False) -> list[HandWritten]:
    return [
        _mixture(*(3, 4, 37) if small else (10, 25, 1000)),
        _bodies(*(5, 3) if small else (100, 20)),
        _options(9 if small else 10000),
        _sparse(*(7, 5, 3) if small else (20000, 20000, 10)),
        heat := _heat(*(7, 35) if small else (64, 1000)),
        replace(
            heat,
            problem=replace(heat.problem, size=heat.problem.size + ', "sqrt"'),
            options=Options(checkpoint="sqrt"),
        ),
        _cholesky(9 if small else 128),
        _transform(16 if small else 1024),
        _characters(2, 9 if small else 1024),
        _observations(*(3, 5, 21) if small else (49, 7776, 31843)),
        _flow(*(7, 9, 3) if small else (40, 60, 50)),
    ]


def _made(problem: Problem, stem: str, order: str, sizes: Mapping[str, int], work: int = 0) -> HandWritten:
    source = Path(__file__).resolve().parent / f"{stem}.c"
    return HandWritten(problem, source, f"{stem}_adjoint", order, sizes, work)


def _corpus(name: str, size: str, arguments: dict[str, Any], wanted: tuple[str, ...]) -> Problem:
    row = case(name)
    return Problem(name, size, row.path, row.entry, row.signature, arguments, wanted, {})


def _mixture(d: int, k: int, n: int) -> HandWritten:
    order = "d, k, n, alphas, means, icf, x, gamma, m, seed err, bar alphas, bar means, bar icf, work"
    work = k * d + k + 32 * (2 * d + 2 + k * d + k)
    return _made(gmm(d, k, n, {}), "gmm", order, {"d": d, "k": k, "n": n}, work)


def _bodies(n: int, steps: int) -> HandWritten:
    r = np.random.default_rng(1)
    arguments = {
        "steps": steps,
        "dt": 0.01,
        "mass": r.uniform(0.5, 1.5, n),
        "q": r.normal(size=(n, 3)),
        "v": r.normal(size=(n, 3)),
    }
    problem = _corpus("nbody", f"{n} bodies, {steps} steps", arguments, ("dt", "mass", "q", "v"))
    order = "n, steps, dt, mass, q, v, seed q, seed v, bar dt, bar mass, bar q, bar v, work"
    return _made(problem, "nbody", order, {"n": n}, 3 * n * (3 * steps + 7))


def _options(n: int) -> HandWritten:
    r = np.random.default_rng(2)
    arguments = {"put": r.random(n) < 0.5, "spot": r.uniform(80, 120, n), "strike": r.uniform(80, 120, n)}
    arguments |= {"rate": 0.03, "vol": 0.2, "time": 0.7}
    wanted = ("spot", "strike", "rate", "vol", "time")
    order = "n, put, spot, strike, rate, vol, time, seed price, " + ", ".join(f"bar {name}" for name in wanted)
    return _made(_corpus("black_scholes", f"n={n}", arguments, wanted), "black_scholes", order, {"n": n})


def _sparse(rows: int, cols: int, filled: int) -> HandWritten:
    r = np.random.default_rng(3)
    arguments = {
        "start": np.arange(0, rows * filled + 1, filled, dtype=np.int32),
        "col": r.integers(0, cols, rows * filled).astype(np.int32),
        "val": r.normal(size=rows * filled),
        "x": r.normal(size=cols),
    }
    problem = _corpus("csr_matvec", f"{rows} rows of {filled}", arguments, ("val", "x"))
    order = "rows, cols, start, col, val, x, seed y, bar val, bar x"
    return _made(problem, "csr_matvec", order, {"rows": rows, "cols": cols})


def _heat(n: int, steps: int) -> HandWritten:
    arguments = {"steps": steps, "r": 0.2, "u": np.random.default_rng(4).normal(size=(n, n))}
    path = KERNELS / "heat2d.c"
    problem = Problem("heat2d", f"{n} x {n}, {steps} steps", path, "heat2d", HEAT, arguments, ("r", "u"), {})
    order = "n, steps, r, u, seed u, bar u, bar r, work"
    return _made(problem, "heat2d", order, {"n": n}, (steps // 32 + 36) * n * n)


def _cholesky(n: int) -> HandWritten:
    square = np.random.default_rng(5).normal(size=(n, n))
    problem = _corpus("cholesky", f"n={n}", {"a": square @ square.T / n + np.eye(n)}, ("a",))
    return _made(problem, "cholesky", "n, a, seed a, bar a, work", {"n": n}, n * n)


def _transform(n: int) -> HandWritten:
    r = np.random.default_rng(6)
    problem = _corpus("fft", f"n={n}", {"re": r.normal(size=n), "im": r.normal(size=n)}, ("re", "im"))
    return _made(problem, "fft", "n, seed re, seed im, bar re, bar im, work", {"n": n}, n)


def _characters(layers: int, length: int) -> HandWritten:
    order = "l, c, b, mains, extra, state, sequence, seed loss, seed state, bar mains, bar extra, bar state, work"
    problem = lstm(layers, length, {})
    bits = problem.arguments["mains"].shape[2]
    work = -(-bits // 8) * 8 * (20 * layers + 10 + (length - 1) * (8 * layers + 2))
    return _made(problem, "lstm", order, {"l": layers, "c": length, "b": bits}, work)


def _observations(cameras: int, points: int, observations: int) -> HandWritten:
    order = (
        "n, m, p, cameras, points, weights, pairs, features, seed errors, seed weight_errors, bar cameras, bar points,"
        " bar weights, work"
    )
    sizes = {"n": cameras, "m": points, "p": observations}
    return _made(bundle(cameras, points, observations), "bundle", order, sizes, 34 * cameras)


def _flow(height: int, width: int, pairs: int) -> HandWritten:
    r = np.random.default_rng(8)
    arguments = {
        "pairs": pairs,
        "omega": 1.2,
        "solid": r.random((height, width)) < 0.05,
        "f": r.uniform(0.5, 1, (9, height, width)),
    }
    signature = "h: i32, w: i32, pairs: i32, omega: f64, solid: bool[h,w], scratch g: f64[9,h,w], inout f: f64[9,h,w]"
    path, size = KERNELS / "lbm.c", f"{height} x {width}, {2 * pairs} steps"
    problem = Problem("LBM", size, path, "lbm", signature, arguments, ("omega", "f"), {})
    order = "h, w, pairs, omega, solid, f, seed f, bar f, bar omega, work"
    return _made(problem, "lbm", order, {"h": height, "w": width}, 9 * height * width * (2 * pairs + 1))
