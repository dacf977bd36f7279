"""Shapes of loops that gradients are slow on: stencils, factorisations, ragged loops, records, sums over states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import Problem
from tests.kernels.corpus import case

_KERNELS = Path(__file__).resolve().parent / "kernels"
HEAT = "n: i32, steps: i32, r: f64, scratch v: f64[n,n], inout u: f64[n,n]"
_JACOBI = "n: i32, steps: i32, inout a: f64[n,n], inout b: f64[n,n]"
_PARTICLES = "n: i32, steps: i32, dt: f64, inout p: f64[n,8] -> f64"


def shapes() -> list[Problem]:
    r = np.random.default_rng(0)
    square = r.normal(size=(128, 128))
    rows = r.uniform(0.1, 1, (16, 16))
    rows /= rows.sum(1, keepdims=True)
    heat = {"steps": 1000, "r": 0.2, "u": r.normal(size=(64, 64))}
    grids = {"steps": 40, "a": r.normal(size=(90, 90)), "b": r.normal(size=(90, 90))}
    flow = {"steps": 200, "dt": 0.1, "kappa": r.uniform(0.5, 1, 512), "u": 0.1 * r.normal(size=512)}
    waves = {"speed": r.uniform(0.4, 0.6, (40, 40)), "trace": np.zeros(100)}
    states = {"seen": r.integers(0, 16, 500).astype(np.int32), "move": rows, "emit": rows.copy()}
    line = {"a": 1.5, "x": r.normal(size=2**14), "y": r.normal(size=2**14)}
    return [
        _own("heat2d", "64 x 64, 1000 steps", "heat2d.c", HEAT, heat, ("r", "u")),
        _own("heat2d_copied", "64 x 64, 1000 steps", "heat2d.c", HEAT, heat, ("r", "u")),
        _own("jacobi2d", "90 x 90, 40 steps", "heat2d.c", _JACOBI, grids, ("a", "b")),
        _own(
            "particles", "1000, 10 steps", "particles.c", _PARTICLES,
            {"steps": 10, "dt": 0.01, "p": r.uniform(1, 2, (1000, 8))}, ("dt", "p"),
        ),
        _corpus("heat", "n=512, 200 steps", flow, ("dt", "kappa", "u")),
        _corpus("wave", "40 x 40, 100 steps", waves, ("speed",)),
        _corpus("cholesky", "n=128", {"a": square @ square.T / 128 + np.eye(128)}, ("a",)),
        _corpus("lu", "n=128", {"a": square + 128 * np.eye(128)}, ("a",)),
        _corpus("fft", "n=1024", {"re": r.normal(size=1024), "im": r.normal(size=1024)}, ("re", "im")),
        _corpus("hmm_forward", "500 symbols, 16 states", states, ("move", "emit"), 1e-5),
        _corpus("axpy", "n=2^14", line, ("a", "x", "y")),
    ]  # fmt: skip


def _own(name: str, size: str, file: str, signature: str, arguments: dict[str, Any], wanted: Sequence[str]) -> Problem:
    return Problem(name, size, _KERNELS / file, name, signature, arguments, tuple(wanted), {}, tolerance=1e-6)


def _corpus(name: str, size: str, arguments: dict[str, Any], wanted: Sequence[str], step: float = 1e-3) -> Problem:
    row = case(name)
    return Problem(
        name, size, row.path, row.entry, row.signature, arguments, tuple(wanted), {}, step=step, tolerance=1e-6
    )
