"""What is measured, beside what other tools reach (docs/benchmarks.md says where the figures are from)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import Problem
from tests.kernels.corpus import case

ROOT = Path(__file__).resolve().parent.parent
GMM = (
    "d: i32, k: i32, n: i32, alphas: f64[k], means: f64[k,d], icf: f64[k,d*(d+1)/2], x: f64[n,d], gamma: f64, m: i32,"
    " scratch diagonal: f64[k,d], scratch logdet: f64[k], scratch terms: f64[k], scratch u: f64[d], scratch qu: f64[d],"
    " out err: f64[]"
)


def gmm(d: int, k: int, n: int, published: dict[str, float]) -> Problem:
    r = np.random.default_rng(d)
    arguments = {
        "alphas": r.normal(size=k),
        "means": r.uniform(size=(k, d)),
        "icf": 0.3 * r.normal(size=(k, d * (d + 1) // 2)),
        "x": r.normal(size=(n, d)),
        "gamma": 1.0,
        "m": 0,
    }
    path = ROOT / "examples/gmm/gmm.c"
    wanted = ("alphas", "means", "icf")
    return Problem("GMM", f"d={d} k={k} n={n}", path, "gmm_objective", GMM, arguments, wanted, published)


def rk4(steps: int) -> Problem:
    row = case("rk4_lorenz")
    arguments = dict(row.arguments) | {"steps": steps, "dt": 1e-4}
    return Problem(
        "RK4 (Lorenz)", f"{steps} steps", row.path, row.entry, row.signature, arguments, ("dt", "p", "u"),
        {"Enzyme": 11}, step=1e-6,
    )  # fmt: skip


def elementwise(name: str, n: int) -> Problem:
    row = case(name)
    r = np.random.default_rng(n)
    x = r.uniform(0.2, 1.5, n) * r.choice([-1.0, 1.0], n)
    items = max(1, 2**16 // n)
    size = f"n=2^{n.bit_length() - 1}"
    model = MODELS[name]
    return Problem(name, size, row.path, row.entry, row.signature, {"x": x}, ("x",), {}, items=items, model=model)


# In NumPy, since another compiler may leave `norm` at n^2.
MODELS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]]] = {
    "relu3": lambda given: {"y": np.maximum(given["x"], 0) ** 3},
    "norm": lambda given: {"y": given["x"] / np.linalg.norm(given["x"])},
}


def table() -> list[Problem]:
    """The rows of the first table."""
    return [
        gmm(2, 5, 1000, {"Enzyme": 2.6, "Tapenade": 3.7, "Adept": 15.9}),
        gmm(10, 25, 1000, {"Enzyme": 2.1, "Tapenade": 2.5, "Adept": 53}),
        gmm(32, 50, 1000, {"Enzyme": 2.5, "Tapenade": 3.1, "Adept": 147}),
        gmm(10, 25, 10000, {"Enzyme": 2.2, "Tapenade": 2.5, "Adept": 59}),
        rk4(1000),
        elementwise("relu3", 2**14),
        elementwise("norm", 2**14),
    ]


def growth() -> list[Problem]:
    """The rows of the second: the time of `norm` must grow with n, not with its square."""
    return [elementwise("norm", 2**k) for k in range(10, 21, 2)]
