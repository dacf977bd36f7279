"""Shapes of loops that gradients are slow on: stencils, factorisations, ragged loops, records, sums over states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import ByHand, Problem
from jax_enzyme.options import Options
from tests.kernels.corpus import case

KERNELS = Path(__file__).resolve().parent / "kernels"
_HEAT = "n: i32, steps: i32, r: f64, scratch v: f64[n,n], inout u: f64[n,n]"
_JACOBI = "n: i32, steps: i32, inout a: f64[n,n], inout b: f64[n,n]"
_PARTICLES = "n: i32, steps: i32, dt: f64, inout p: f64[n,8] -> f64"
_LBM = "h: i32, w: i32, pairs: i32, omega: f64, solid: bool[h,w], scratch g: f64[9,h,w], inout f: f64[9,h,w]"


def shapes() -> list[Problem]:
    r = np.random.default_rng(0)
    square = r.normal(size=(128, 128))
    rows = r.uniform(0.1, 1, (16, 16))
    rows /= rows.sum(1, keepdims=True)
    grids = {"steps": 40, "a": r.normal(size=(90, 90)), "b": r.normal(size=(90, 90))}
    flow = {"steps": 200, "dt": 0.1, "kappa": r.uniform(0.5, 1, 512), "u": 0.1 * r.normal(size=512)}
    waves = {"speed": r.uniform(0.4, 0.6, (40, 40)), "trace": np.zeros(100)}
    states = {"seen": r.integers(0, 16, 500).astype(np.int32), "move": rows, "emit": rows.copy()}
    line = {"a": 1.5, "x": r.normal(size=2**14), "y": r.normal(size=2**14)}
    grid = _heat2d(64, 1000)
    return [
        grid,
        replace(grid, size=f'{grid.size}, "sqrt"', options=Options(checkpoint="sqrt")),
        replace(grid, name="heat2d_copied", symbol="heat2d_copied", hand=None),
        _own("jacobi2d", "90 x 90, 40 steps", "heat2d.c", _JACOBI, grids, ("a", "b")),
        _lbm(40, 60, 50),
        _own(
            "particles", "1000, 10 steps", "particles.c", _PARTICLES,
            {"steps": 10, "dt": 0.01, "p": r.uniform(1, 2, (1000, 8))}, ("dt", "p"),
        ),
        _nbody(100, 20),
        _corpus("heat", "n=512, 200 steps", flow, ("dt", "kappa", "u")),
        _corpus("wave", "40 x 40, 100 steps", waves, ("speed",)),
        _cholesky(128),
        _corpus("lu", "n=128", {"a": square + 128 * np.eye(128)}, ("a",)),
        _fft(1024),
        _corpus("hmm_forward", "500 symbols, 16 states", states, ("move", "emit"), step=1e-5),
        _sparse(20000, 20000, 10),
        _black_scholes(10000),
        _corpus("axpy", "n=2^14", line, ("a", "x", "y")),
    ]  # fmt: skip


def small_shapes() -> list[Problem]:
    """Those with an adjoint by hand, at sizes for tests."""
    return [_heat2d(7, 35), _lbm(7, 9, 3), _nbody(5, 3), _cholesky(9), _fft(16), _sparse(7, 5, 3), _black_scholes(9)]


def _own(
    name: str, size: str, file: str, signature: str, arguments: dict[str, Any], wanted: Sequence[str], **more: Any
) -> Problem:
    path, symbol = KERNELS / file, name.lower()
    return Problem(name, size, path, symbol, signature, arguments, tuple(wanted), tolerance=1e-6, **more)


def _corpus(name: str, size: str, arguments: dict[str, Any], wanted: Sequence[str], **more: Any) -> Problem:
    row = case(name)
    return Problem(name, size, row.path, row.entry, row.signature, arguments, tuple(wanted), tolerance=1e-6, **more)


def _heat2d(n: int, steps: int) -> Problem:
    arguments = {"steps": steps, "r": 0.2, "u": np.random.default_rng(4).normal(size=(n, n))}
    hand = ByHand("heat2d", "n, steps, r, u, seed u, bar u, bar r, work", {"n": n}, (steps // 32 + 36) * n * n)
    return _own("heat2d", f"{n} x {n}, {steps} steps", "heat2d.c", _HEAT, arguments, ("r", "u"), hand=hand)


def _lbm(height: int, width: int, pairs: int) -> Problem:
    r = np.random.default_rng(8)
    solid, f = r.random((height, width)) < 0.05, r.uniform(0.5, 1, (9, height, width))
    arguments = {"pairs": pairs, "omega": 1.2, "solid": solid, "f": f}
    order = "h, w, pairs, omega, solid, f, seed f, bar f, bar omega, work"
    hand = ByHand("lbm", order, {"h": height, "w": width}, 9 * height * width * (2 * pairs + 1))
    size = f"{height} x {width}, {2 * pairs} steps"
    return _own("LBM", size, "lbm.c", _LBM, arguments, ("omega", "f"), hand=hand, step=1e-5)


def _nbody(n: int, steps: int) -> Problem:
    r = np.random.default_rng(1)
    mass, q, v = r.uniform(0.5, 1.5, n), r.normal(size=(n, 3)), r.normal(size=(n, 3))
    arguments = {"steps": steps, "dt": 0.01, "mass": mass, "q": q, "v": v}
    order = "n, steps, dt, mass, q, v, seed q, seed v, bar dt, bar mass, bar q, bar v, work"
    hand = ByHand("nbody", order, {"n": n}, 3 * n * (3 * steps + 7))
    return _corpus("nbody", f"{n} bodies, {steps} steps", arguments, ("dt", "mass", "q", "v"), hand=hand)


def _cholesky(n: int) -> Problem:
    square = np.random.default_rng(5).normal(size=(n, n))
    hand = ByHand("cholesky", "n, a, seed a, bar a, work", {"n": n}, n * n)
    return _corpus("cholesky", f"n={n}", {"a": square @ square.T / n + np.eye(n)}, ("a",), hand=hand)


def _fft(n: int) -> Problem:
    r = np.random.default_rng(6)
    hand = ByHand("fft", "n, seed re, seed im, bar re, bar im, work", {"n": n}, n)
    return _corpus("fft", f"n={n}", {"re": r.normal(size=n), "im": r.normal(size=n)}, ("re", "im"), hand=hand)


def _sparse(rows: int, cols: int, filled: int) -> Problem:
    r = np.random.default_rng(3)
    arguments = {
        "start": np.arange(0, rows * filled + 1, filled, dtype=np.int32),
        "col": r.integers(0, cols, rows * filled).astype(np.int32),
        "val": r.normal(size=rows * filled),
        "x": r.normal(size=cols),
    }
    order = "rows, cols, start, col, val, x, seed y, bar val, bar x"
    hand = ByHand("csr_matvec", order, {"rows": rows, "cols": cols})
    return _corpus("csr_matvec", f"{rows} rows of {filled}", arguments, ("val", "x"), hand=hand)


def _black_scholes(n: int) -> Problem:
    r = np.random.default_rng(2)
    arguments = {"put": r.random(n) < 0.5, "spot": r.uniform(80, 120, n), "strike": r.uniform(80, 120, n)}
    arguments |= {"rate": 0.03, "vol": 0.2, "time": 0.7}
    wanted = ("spot", "strike", "rate", "vol", "time")
    order = "n, put, spot, strike, rate, vol, time, seed price, " + ", ".join(f"bar {name}" for name in wanted)
    return _corpus("black_scholes", f"n={n}", arguments, wanted, hand=ByHand("black_scholes", order, {"n": n}))
