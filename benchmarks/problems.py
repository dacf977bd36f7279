"""What is measured, beside what other tools reach (docs/benchmarks.md says where the figures are from)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import Problem
from benchmarks.shapes import shapes
from tests.kernels.corpus import case

KERNELS = Path(__file__).resolve().parent / "kernels"
ROOT = KERNELS.parent.parent
GMM = (
    "d: i32, k: i32, n: i32, alphas: f64[k], means: f64[k,d], icf: f64[k,d*(d+1)/2], x: f64[n,d], gamma: f64, m: i32,"
    " scratch diagonal: f64[k,d], scratch logdet: f64[k], scratch terms: f64[k], scratch u: f64[d], scratch qu: f64[d],"
    " out err: f64[]"
)
BUNDLE = (
    "n: i32, m: i32, p: i32, cameras: f64[n,11], points: f64[m,3], weights: f64[p], pairs: i32[p,2],"
    " features: f64[p,2], out errors: f64[p,2], out weight_errors: f64[p]"
)
LSTM = (
    "l: i32, c: i32, b: i32, mains: f64[l,8,b], extra: f64[3,b], inout state: f64[l,2,b], sequence: f64[c,b],"
    " scratch guess: f64[b], out loss: f64[]"
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


def bundle(cameras: int, points: int, observations: int) -> Problem:
    r = np.random.default_rng(3)
    camera = np.concatenate([0.3 * r.normal(size=3), r.normal(size=3), [500.0, 0.1, 0.2, 1e-2, 1e-3]])
    pairs = np.stack([r.integers(0, cameras, observations), r.integers(0, points, observations)], axis=1)
    arguments = {
        "cameras": camera * r.uniform(0.9, 1.1, (cameras, 11)),
        "points": r.normal(size=(points, 3)) + np.array([0, 0, 8]),
        "weights": r.uniform(0.5, 1.5, observations),
        "pairs": pairs.astype(np.int32),
        "features": r.normal(size=(observations, 2)),
    }
    return Problem(
        "bundle adjustment", f"{observations} observations", KERNELS / "bundle.c", "bundle", BUNDLE, arguments,
        ("cameras", "points", "weights"), {"Enzyme": 3.6, "Tapenade": 4.6}, step=1e-5,
    )  # fmt: skip


def lstm(layers: int, length: int, published: dict[str, float]) -> Problem:
    r = np.random.default_rng(4)
    bits = 14
    arguments = {
        "mains": r.normal(size=(layers, 8, bits)),
        "extra": r.normal(size=(3, bits)),
        "state": r.normal(size=(layers, 2, bits)),
        "sequence": r.integers(0, 2, (length, bits)).astype(float),
    }
    return Problem(
        "LSTM", f"{layers} layers, {length} characters", KERNELS / "lstm.c", "lstm", LSTM, arguments,
        ("mains", "extra", "state"), published,
    )  # fmt: skip


def fft(n: int, published: dict[str, float]) -> Problem:
    z = np.random.default_rng(5).normal(size=(n, 2))
    signature = "n: i32, inout z: f64[n,2]"
    return Problem("FFT and back", f"n={n}", KERNELS / "fft_pair.c", "fft_pair", signature, {"z": z}, ("z",), published)


def dormand_prince(tolerance: float) -> Problem:
    signature = "y0: f64, p: f64[3], end: f64, tolerance: f64, out result: f64[], out steps: i32[]"
    arguments = {"y0": 0.3, "p": np.array([1.1, 3.0, 0.4]), "end": 200.0, "tolerance": tolerance}
    return Problem(
        "Dormand-Prince", f"tolerance {tolerance:g}", KERNELS / "dormand_prince.c", "dormand_prince", signature,
        arguments, ("y0", "p"), {"Enzyme": 14}, step=1e-5, tolerance=1e-5,
    )  # fmt: skip


def brusselator(n: int) -> Problem:
    r = np.random.default_rng(6)
    signature = (
        "n: i32, a: f64, b: f64, alpha: f64, t: f64, u: f64[n,n], v: f64[n,n], out du: f64[n,n], out dv: f64[n,n]"
    )
    arguments = {"a": 3.4, "b": 1.0, "alpha": 10.0, "t": 2.0, "u": r.uniform(size=(n, n)), "v": r.uniform(size=(n, n))}
    return Problem(
        "Brusselator", f"{n} x {n}", KERNELS / "brusselator.c", "brusselator", signature, arguments, ("u", "v"),
        {"Enzyme": 2.7, "Tapenade": 6.0, "Adept": 71}, items=16,
    )  # fmt: skip


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
        bundle(49, 7776, 31843),
        lstm(2, 1024, {"Enzyme": 3.4, "Tapenade": 4.6, "Adept": 16}),
        lstm(4, 1024, {"Enzyme": 3.5, "Tapenade": 4.6, "Adept": 19}),
        fft(1024, {"Enzyme": 4.9, "Adept": 48}),
        fft(65536, {"Enzyme": 5.8, "Adept": 112}),
        dormand_prince(1e-10),
        brusselator(32),
        elementwise("relu3", 2**14),
        elementwise("norm", 2**14),
        *shapes(),
    ]


def growth() -> list[Problem]:
    """The rows of the second: the time of `norm` must grow with n, not with its square."""
    return [elementwise("norm", 2**k) for k in range(10, 21, 2)]
