"""What is measured: functions of the published suites; `shapes.py` has the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gradients import ByHand, Problem
from benchmarks.shapes import KERNELS, shapes, small_shapes
from tests.kernels.corpus import case

ROOT = Path(__file__).resolve().parent.parent
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


def gmm(d: int, k: int, n: int) -> Problem:
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
    order = "d, k, n, alphas, means, icf, x, gamma, m, seed err, bar alphas, bar means, bar icf, work"
    hand = ByHand("gmm", order, {"d": d, "k": k, "n": n}, k * d + k + 32 * (2 * d + 2 + k * d + k))
    return Problem("GMM", f"d={d} k={k} n={n}", path, "gmm_objective", GMM, arguments, wanted, hand=hand)


def rk4(steps: int) -> Problem:
    row = case("rk4_lorenz")
    arguments = dict(row.arguments) | {"steps": steps, "dt": 1e-4}
    return Problem(
        "RK4 (Lorenz)", f"{steps} steps", row.path, row.entry, row.signature, arguments, ("dt", "p", "u"),
        step=1e-6,
    )  # fmt: skip


def elementwise(name: str, n: int) -> Problem:
    row = case(name)
    r = np.random.default_rng(n)
    x = r.uniform(0.2, 1.5, n) * r.choice([-1.0, 1.0], n)
    items = max(1, 2**16 // n)
    size = f"n=2^{n.bit_length() - 1}"
    model = MODELS[name]
    return Problem(name, size, row.path, row.entry, row.signature, {"x": x}, ("x",), items=items, model=model)


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
    order = (
        "n, m, p, cameras, points, weights, pairs, features, seed errors, seed weight_errors, bar cameras, bar points,"
        " bar weights, work"
    )
    hand = ByHand("bundle", order, {"n": cameras, "m": points, "p": observations}, 34 * cameras)
    return Problem(
        "bundle adjustment", f"{observations} observations", KERNELS / "bundle.c", "bundle", BUNDLE, arguments,
        ("cameras", "points", "weights"), step=1e-5, hand=hand,
    )  # fmt: skip


def lstm(layers: int, length: int) -> Problem:
    r = np.random.default_rng(4)
    bits = 14
    arguments = {
        "mains": r.normal(size=(layers, 8, bits)),
        "extra": r.normal(size=(3, bits)),
        "state": r.normal(size=(layers, 2, bits)),
        "sequence": r.integers(0, 2, (length, bits)).astype(float),
    }
    order = "l, c, b, mains, extra, state, sequence, seed loss, seed state, bar mains, bar extra, bar state, work"
    work = -(-bits // 8) * 8 * (20 * layers + 10 + (length - 1) * (8 * layers + 2))
    hand = ByHand("lstm", order, {"l": layers, "c": length, "b": bits}, work)
    return Problem(
        "LSTM", f"{layers} layers, {length} characters", KERNELS / "lstm.c", "lstm", LSTM, arguments,
        ("mains", "extra", "state"), hand=hand,
    )  # fmt: skip


def fft_pair(n: int) -> Problem:
    z = np.random.default_rng(5).normal(size=(n, 2))
    signature = "n: i32, inout z: f64[n,2]"
    return Problem("FFT and back", f"n={n}", KERNELS / "fft_pair.c", "fft_pair", signature, {"z": z}, ("z",))


def dormand_prince(tolerance: float) -> Problem:
    signature = "y0: f64, p: f64[3], end: f64, tolerance: f64, out result: f64[], out steps: i32[]"
    arguments = {"y0": 0.3, "p": np.array([1.1, 3.0, 0.4]), "end": 200.0, "tolerance": tolerance}
    return Problem(
        "Dormand-Prince", f"tolerance {tolerance:g}", KERNELS / "dormand_prince.c", "dormand_prince", signature,
        arguments, ("y0", "p"), step=1e-5, tolerance=1e-5,
    )  # fmt: skip


def brusselator(n: int) -> Problem:
    r = np.random.default_rng(6)
    signature = (
        "n: i32, a: f64, b: f64, alpha: f64, t: f64, u: f64[n,n], v: f64[n,n], out du: f64[n,n], out dv: f64[n,n]"
    )
    arguments = {"a": 3.4, "b": 1.0, "alpha": 10.0, "t": 2.0, "u": r.uniform(size=(n, n)), "v": r.uniform(size=(n, n))}
    return Problem(
        "Brusselator", f"{n} x {n}", KERNELS / "brusselator.c", "brusselator", signature, arguments, ("u", "v"),
        items=16,
    )  # fmt: skip


# In NumPy, since another compiler may leave `norm` at n^2.
MODELS: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]]] = {
    "relu3": lambda given: {"y": np.maximum(given["x"], 0) ** 3},
    "norm": lambda given: {"y": given["x"] / np.linalg.norm(given["x"])},
}


def table() -> list[Problem]:
    """The rows of the table."""
    return [
        gmm(2, 5, 1000),
        gmm(10, 25, 1000),
        gmm(32, 50, 1000),
        gmm(10, 25, 10000),
        rk4(1000),
        bundle(49, 7776, 31843),
        lstm(2, 1024),
        lstm(4, 1024),
        fft_pair(1024),
        fft_pair(65536),
        dormand_prince(1e-10),
        brusselator(32),
        elementwise("relu3", 2**14),
        elementwise("norm", 2**14),
        *shapes(),
    ]


def small() -> list[Problem]:
    """Those with an adjoint by hand, at sizes for tests."""
    return [gmm(3, 4, 37), lstm(2, 9), bundle(3, 5, 21), *small_shapes()]


def growth() -> list[Problem]:
    """For how times grow: the time of `norm` must grow with n, not with its square."""
    return [elementwise("norm", 2**k) for k in range(10, 21, 2)]
