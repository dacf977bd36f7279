"""The corpus: one row per kernel of this folder, with inputs at which it is differentiable.

`CASES` serves tests at every level: the engine's, which take the path and the signature, and JAX's, which take the
arguments as well. Add a kernel by adding its file and one row.
"""

from __future__ import annotations

import numpy as np

from tests.kernels.case import Case

Rng = np.random.Generator


def _signs(r: Rng, *shape: int, low: float = 0.2, high: float = 1.5) -> np.ndarray:
    """Values of both signs, none nearer to zero than `low`."""
    return r.uniform(low, high, shape) * r.choice([-1.0, 1.0], shape)


def _apart(r: Rng, *shape: int, gap: float = 0.25) -> np.ndarray:
    """Values in random order, any two at least half a gap apart: no ties, no order that a small change could turn."""
    size = int(np.prod(shape))
    return ((r.permutation(size) - size / 2) * gap + r.uniform(0, gap / 2, size)).reshape(shape)


def _positive_definite(r: Rng, n: int) -> np.ndarray:
    a = r.normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


def _lower(r: Rng, n: int) -> np.ndarray:
    return np.tril(r.normal(size=(n, n)), -1) * 0.5 + np.diag(r.uniform(1, 2, n))


def _dominant(r: Rng, n: int) -> np.ndarray:
    return r.normal(size=(n, n)) + n * np.eye(n)


def _rows(r: Rng, m: int, n: int) -> np.ndarray:
    """Rows that sum to one."""
    a = r.uniform(0.1, 1, (m, n))
    return a / a.sum(1, keepdims=True)


LINEAR_ALGEBRA = (
    Case("dot", "n: i32, x: f64[n], y: f64[n] -> f64", lambda r: {"x": r.normal(size=7), "y": r.normal(size=7)}),
    Case(
        "dot_f32",
        "n: i32, x: f32[n], y: f32[n] -> f32",
        lambda r: {"x": r.normal(size=7), "y": r.normal(size=7)},
        file="dot.c",
        symbol="dot",
        flags=("-DREAL=float",),
    ),
    Case(
        "axpy",
        "n: i32, a: f64, x: f64[n], inout y: f64[n]",
        lambda r: {"a": 1.7, "x": r.normal(size=9), "y": r.normal(size=9)},
    ),
    Case(
        "gemv",
        "m: i32, n: i32, a: f64[m,n], x: f64[n], scratch t: f64[m], out y: f64[n]",
        lambda r: {"a": r.normal(size=(4, 3)), "x": r.normal(size=3)},
    ),
    Case(
        "gemm",
        "m: i32, n: i32, k: i32, alpha: f64, a: f64[m,k], b: f64[k,n], beta: f64, inout c: f64[m,n]",
        lambda r: {
            "alpha": 0.8,
            "a": r.normal(size=(3, 5)),
            "b": r.normal(size=(5, 4)),
            "beta": -0.6,
            "c": r.normal(size=(3, 4)),
        },
    ),
    Case(
        "gemm_f32",
        "m: i32, n: i32, k: i32, alpha: f32, a: f32[m,k], b: f32[k,n], beta: f32, inout c: f32[m,n]",
        lambda r: {
            "alpha": 0.8,
            "a": r.normal(size=(3, 5)),
            "b": r.normal(size=(5, 4)),
            "beta": -0.6,
            "c": r.normal(size=(3, 4)),
        },
        file="gemm.c",
        symbol="gemm",
        flags=("-DREAL=float",),
    ),
    Case(
        "trisolve",
        "n: i32, l: f64[n,n], inout b: f64[n]",
        lambda r: {"l": _lower(r, 5), "b": r.normal(size=5)},
    ),
    Case(
        "cholesky",
        "n: i32, inout a: f64[n,n] -> status",
        lambda r: {"a": _positive_definite(r, 4)},
    ),
    Case("lu", "n: i32, inout a: f64[n,n] -> f64", lambda r: {"a": _dominant(r, 4)}),
    Case(
        "lu_pivot",
        "n: i32, a: f64[n,n], b: f64[n], scratch w: f64[n,n], out pivot: i32[n], out x: f64[n]",
        lambda r: {"a": _dominant(r, 4)[r.permutation(4)], "b": r.normal(size=4)},
    ),
    Case(
        "power_iteration",
        "n: i32, steps: i32, a: f64[n,n], start: f64[n], scratch v: f64[n], scratch w: f64[n] -> f64",
        lambda r: {"steps": 4, "a": _positive_definite(r, 4), "start": r.uniform(0.5, 1, 4)},
    ),
    Case(
        "csr_matvec",
        "rows: i32, cols: i32, nnz: i32, start: i32[rows+1], col: i32[nnz], val: f64[nnz], x: f64[cols],"
        " out y: f64[rows]",
        lambda r: {
            "start": np.array([0, 2, 2, 5, 6], np.int32),
            "col": np.array([0, 3, 1, 2, 4, 0], np.int32),
            "val": r.normal(size=6),
            "x": r.normal(size=5),
        },
    ),
    Case(
        "packed_quadratic",
        "n: i32, l: f64[n*(n+1)/2], x: f64[n], scratch t: f64[n] -> f64",
        lambda r: {"l": r.normal(size=10) * 0.5, "x": r.normal(size=4)},
    ),
    Case(
        "tridiagonal",
        "n: i32, a: f64[n], b: f64[n], c: f64[n], scratch cp: f64[n], inout d: f64[n]",
        lambda r: {
            "a": r.normal(size=6),
            "b": r.uniform(4, 5, 6),
            "c": r.normal(size=6),
            "d": r.normal(size=6),
        },
    ),
    Case(
        "givens_qr",
        "m: i32, n: i32, inout a: f64[m,n]",
        lambda r: {"a": r.normal(size=(4, 3)) + np.eye(4, 3) * 3},
    ),
    Case("matrix_exp", "x: f64[3,3], out y: f64[3,3]", lambda r: {"x": r.normal(size=(3, 3)) * 0.7}),
    Case(
        "local_matrix",
        "a: f64[3,3], power: i32 -> f64",
        lambda r: {"a": r.normal(size=(3, 3)) * 0.6, "power": 4},
    ),
    Case(
        "conjugate_gradient",
        "n: i32, a: f64[n,n], b: f64[n], scratch r: f64[n], scratch p: f64[n], scratch ap: f64[n], out x: f64[n]",
        lambda r: {"a": _positive_definite(r, 4) + 2 * np.eye(4), "b": r.normal(size=4)},
        step=1e-3,
    ),
    Case(
        "malloc_scratch",
        "n: i32, a: f64[n,n], out out: f64[n]",
        lambda r: {"a": r.normal(size=(4, 4))},
    ),
)

GRIDS_AND_ODES = (
    Case(
        "gauss_seidel",
        "n: i32, sweeps: i32, f: f64[n,n], inout u: f64[n,n]",
        lambda r: {"sweeps": 3, "f": r.normal(size=(5, 5)), "u": r.normal(size=(5, 5))},
    ),
    Case(
        "jacobi_swap",
        "n: i32, sweeps: i32, f: f64[n], scratch work: f64[n], inout u: f64[n]",
        lambda r: {"sweeps": 3, "f": r.normal(size=7), "u": r.normal(size=7)},
    ),
    Case(
        "heat",
        "n: i32, steps: i32, dt: f64, kappa: f64[n], scratch next: f64[n], inout u: f64[n]",
        lambda r: {"steps": 4, "dt": 0.1, "kappa": r.uniform(0.5, 1, 8), "u": r.normal(size=8)},
    ),
    Case(
        "wave",
        "n: i32, steps: i32, speed: f64[n,n], scratch level: f64[3,n,n], inout trace: f64[steps]",
        lambda r: {"speed": r.uniform(0.4, 0.6, (6, 6)), "trace": np.zeros(7)},
    ),
    Case(
        "rk4_lorenz",
        "steps: i32, dt: f64, p: f64[3], inout u: f64[3]",
        lambda r: {"steps": 20, "dt": 0.01, "p": np.array([10.0, 28.0, 8 / 3]), "u": np.array([1.0, -2.0, 20.0])},
    ),
    Case(
        "adaptive_ode",
        "a: f64, u: f64, end: f64, out accepted: i32[] -> f64",
        lambda r: {"a": 3.1, "u": 1.2, "end": 2.03},
        step=1e-4,
        tolerance=1e-7,
    ),
    Case(
        "nbody",
        "n: i32, steps: i32, dt: f64, mass: f64[n], scratch a: f64[n,3], inout q: f64[n,3], inout v: f64[n,3]",
        lambda r: {
            "steps": 3,
            "dt": 0.05,
            "mass": r.uniform(0.5, 1.5, 4),
            "q": _apart(r, 4, 3, gap=0.5),
            "v": r.normal(size=(4, 3)),
        },
    ),
    Case(
        "lennard_jones",
        "n: i32, q: f64[n,3], box: f64, cutoff: f64, out force: f64[n,3] -> f64",
        lambda r: {
            "q": np.array([[0.1, 0.2, 0.1], [1.3, 0.1, 0.3], [0.2, 1.4, 3.8], [2.2, 2.1, 0.2], [3.1, 1.2, 1.9]]),
            "box": 4.0,
            "cutoff": 1.95,
        },
        step=1e-3,
    ),
    Case(
        "struct_stack",
        "height: f64, speed: f64, gravity: f64, out out: f64[3], out bounces: i32[]",
        lambda r: {"height": 1.52, "speed": 0.3, "gravity": 9.7},
        step=1e-3,
    ),
    Case(
        "pendulum",
        "steps: i32, dt: f64, length: f64, inout angle: f64[], inout speed: f64[] -> f64",
        lambda r: {"steps": 12, "dt": 0.05, "length": 1.3, "angle": np.array(0.7), "speed": np.array(-0.2)},
        file="pendulum.cpp",
    ),
)

ITERATIONS = (
    Case("newton", "n: i32, x: f64[n], out y: f64[n]", lambda r: {"x": r.uniform(0.5, 4, 5)}),
    Case(
        "shifted_exp",
        "n: i32, x: f64[n], out y: f64[n]",
        lambda r: {"x": r.uniform(-0.4, 0.4, 5) + np.array([-3.0, -1.0, 0.0, 2.0, 4.0])},
        symbol="rounded",
    ),
    Case(
        "kepler",
        "n: i32, e: f64, mean: f64[n], out ecc: f64[n], out used: i32[n]",
        lambda r: {"e": 0.4, "mean": r.uniform(0.5, 2.5, 5)},
    ),
    Case(
        "bisection",
        "p: f64, q: f64, lo: f64, hi: f64 -> f64",
        lambda r: {"p": 1.3, "q": 2.9, "lo": 0.1, "hi": 2.3},
        step=1e-3,
    ),
    Case(
        "do_while",
        "n: i32, a: f64[n], b: f64[n], out mean: f64[n]",
        lambda r: {"a": r.uniform(1, 2, 4), "b": r.uniform(0.3, 0.8, 4)},
    ),
    Case(
        "complex_mandel",
        "n: i32, cr: f64[n], ci: f64[n], out mu: f64[n]",
        lambda r: {"cr": np.array([0.5, -0.8, 0.35, -2.1]), "ci": np.array([0.5, 0.6, -0.7, 0.2])},
        step=1e-4,
    ),
    Case(
        "logistic", "n: i32, r: f64, x: f64, inout orbit: f64[n]", lambda r: {"r": 3.3, "x": 0.31, "orbit": np.zeros(8)}
    ),
    Case(
        "horner",
        "degree: i32, n: i32, c: f64[degree+1], x: f64[n], out p: f64[n], out dp: f64[n]",
        lambda r: {"c": r.normal(size=6), "x": r.uniform(-1.2, 1.2, 4)},
    ),
    Case("clenshaw", "n: i32, c: f64[n], x: f64 -> f64", lambda r: {"c": r.normal(size=7), "x": 0.37}),
    Case("bessel", "n: i32, x: f64, inout j: f64[n] -> f64", lambda r: {"x": 2.7, "j": np.zeros(4)}),
    Case("kahan", "n: i32, x: f64[n] -> f64", lambda r: {"x": r.normal(size=9)}),
    Case(
        "momentum",
        "n: i32, steps: i32, rate: f64, beta: f64, curvature: f64[n], inout x: f64[n], inout v: f64[n]",
        lambda r: {
            "steps": 5,
            "rate": 0.2,
            "beta": 0.8,
            "curvature": r.uniform(0.5, 2, 4),
            "x": r.normal(size=4),
            "v": r.normal(size=4),
        },
    ),
)

MEMORY_AND_INDICES = (
    Case("prefix_sum", "n: i32, inout x: f64[n]", lambda r: {"x": r.normal(size=8)}),
    Case("running_state", "n: i32, x: f64[n], out y: f64[n]", lambda r: {"x": r.normal(size=9)}),
    Case("overwrite", "n: i32, inout x: f64[n] -> f64", lambda r: {"x": r.normal(size=7)}),
    Case(
        "memory_moves",
        "n: i32, x: f64[n], scratch line: f64[n], out y: f64[n]",
        lambda r: {"x": r.normal(size=8)},
    ),
    Case(
        "triple_state",
        "rows: i32, cols: i32, row: i32, gain: f64, inout table: f64[rows,cols]",
        lambda r: {"row": 1, "gain": 1.2, "table": r.normal(size=(3, 4))},
    ),
    Case(
        "gather_scatter",
        "n: i32, m: i32, tail: i64[m], head: i64[m], x: f64[n], out y: f64[n]",
        lambda r: {
            "tail": np.array([0, 1, 2, 3, 0, 2, 4], np.int64),
            "head": np.array([1, 2, 3, 0, 2, 2, 0], np.int64),
            "x": r.normal(size=5),
        },
    ),
    Case(
        "histogram",
        "n: i32, bins: i32, bin: u8[n], w: f64[n], x: f64[n], inout total: f64[bins], inout mean: f64[bins]",
        lambda r: {
            "bin": np.array([0, 3, 1, 1, 4, 0, 1, 3], np.uint8),
            "w": r.uniform(0.5, 1, 8),
            "x": r.normal(size=8),
            "total": np.zeros(5),
            "mean": np.zeros(5),
        },
    ),
    Case(
        "quicksort",
        "n: i32, inout x: f64[n], out place: i32[n]",
        lambda r: {"x": _apart(r, 12)},
    ),
    Case(
        "order_statistics",
        "n: i32, x: f64[n], out smallest: f64[3]",
        lambda r: {"x": _apart(r, 9)},
        file="order_statistics.cpp",
    ),
    Case(
        "interpolate",
        "n: i32, m: i32, x: f64[n], y: f64[n], at: f64[m], out out: f64[m]",
        lambda r: {
            "x": np.arange(9.0) + r.uniform(-0.1, 0.1, 9),
            "y": r.normal(size=9),
            "at": np.array([3.5, 0.4, 7.6, -0.6]),
        },
    ),
    Case(
        "spline",
        "n: i32, m: i32, x: f64[n], y: f64[n], at: f64[m], scratch u: f64[n], scratch y2: f64[n], out out: f64[m]",
        lambda r: {
            "x": np.arange(6.0) + r.uniform(-0.1, 0.1, 6),
            "y": r.normal(size=6),
            "at": np.array([0.5, 2.4, 4.6, 3.3]),
        },
    ),
    Case("sorted_list", "n: i32, x: f64[n] -> f64", lambda r: {"x": r.permutation(np.linspace(-0.9, 1.3, 6))}),
    Case(
        "fft",
        "n: i32, inout re: f64[n], inout im: f64[n]",
        lambda r: {"re": r.normal(size=32), "im": r.normal(size=32)},
    ),
    Case(
        "floyd_warshall",
        "n: i32, inout d: f64[n,n]",
        lambda r: {"d": np.abs(_apart(r, 5, 5, gap=0.5)) + 0.5},
    ),
    Case(
        "haversine",
        "n: i32, lat: f64[n], lon: f64[n], out dist: f64[n,n]",
        lambda r: {"lat": r.uniform(-1, 1, 4), "lon": _apart(r, 4, gap=0.5)},
    ),
    Case(
        "quaternion",
        "n: i32, q: f64[4], p: f64[n,3], out out: f64[n,3]",
        lambda r: {"q": r.normal(size=4), "p": r.normal(size=(3, 3))},
    ),
)

LEARNING = (
    Case(
        "relu3",
        "n: i32, x: f64[n], out y: f64[n]",
        lambda r: {"x": _signs(r, 8)},
    ),
    Case("norm", "n: i32, x: f64[n], out y: f64[n]", lambda r: {"x": r.normal(size=6)}),
    Case("log_sum_exp", "n: i32, x: f64[n] -> f64", lambda r: {"x": _apart(r, 7)}),
    Case("softmax", "m: i32, n: i32, x: f64[m,n], out y: f64[m,n]", lambda r: {"x": _apart(r, 3, 4)}),
    Case(
        "softmax_f32",
        "m: i32, n: i32, x: f32[m,n], out y: f32[m,n]",
        lambda r: {"x": _apart(r, 3, 4)},
        file="softmax.c",
        symbol="softmax",
        flags=("-DREAL=float",),
    ),
    Case(
        "layer_norm",
        "m: i32, n: i32, x: f64[m,n], gain: f64[n], offset: f64[n], out y: f64[m,n]",
        lambda r: {"x": r.normal(size=(2, 5)), "gain": r.normal(size=5), "offset": r.normal(size=5)},
    ),
    Case(
        "layer_norm_f32",
        "m: i32, n: i32, x: f32[m,n], gain: f32[n], offset: f32[n], out y: f32[m,n]",
        lambda r: {"x": r.normal(size=(2, 5)), "gain": r.normal(size=5), "offset": r.normal(size=5)},
        file="layer_norm.c",
        symbol="layer_norm",
        flags=("-DREAL=float",),
    ),
    Case(
        "conv2d",
        "h: i32, w: i32, k: i32, image: f64[h,w], kernel: f64[k,k], out out: f64[h,w]",
        lambda r: {"image": r.normal(size=(4, 5)), "kernel": r.normal(size=(3, 3)) * 0.3},
    ),
    Case(
        "conv_reverse",
        "n: i32, k: i32, x: f64[n], h: f64[k], out y: f64[n+k-1]",
        lambda r: {"x": r.normal(size=6), "h": r.normal(size=3)},
    ),
    Case(
        "max_pool",
        "h: i32, w: i32, x: f64[h,w], out y: f64[h//2,w//2], out where: i32[h//2,w//2]",
        lambda r: {"x": _apart(r, 4, 6)},
    ),
    Case(
        "lstm_cell",
        "steps: i32, d: i32, weight: f64[4,d], bias: f64[4,d], x: f64[steps,d], inout h: f64[d], inout c: f64[d]",
        lambda r: {
            "weight": r.normal(size=(4, 3)),
            "bias": r.normal(size=(4, 3)),
            "x": r.normal(size=(4, 3)),
            "h": r.normal(size=3),
            "c": r.normal(size=3),
        },
    ),
    Case(
        "attention",
        "n: i32, d: i32, q: f64[n,d], k: f64[n,d], v: f64[n,d], scratch w: f64[n], out out: f64[n,d]",
        lambda r: {"q": r.normal(size=(4, 3)), "k": r.normal(size=(4, 3)), "v": r.normal(size=(4, 3))},
        step=1e-3,
    ),
    Case(
        "kmeans_loss",
        "n: i32, k: i32, d: i32, x: f64[n,d], centre: f64[k,d], out label: i32[n] -> f64",
        lambda r: {
            "x": np.repeat(np.eye(3, 2) * 4, 2, 0) + r.normal(size=(6, 2)) * 0.3,
            "centre": np.eye(3, 2) * 4 + r.normal(size=(3, 2)) * 0.3,
        },
    ),
    Case(
        "hmm_forward",
        "t: i32, s: i32, symbols: i32, seen: i32[t], move: f64[s,s], emit: f64[s,symbols],"
        " scratch alpha: f64[s], scratch next: f64[s] -> f64",
        lambda r: {"seen": np.array([0, 2, 1, 1, 0, 2], np.int32), "move": _rows(r, 3, 3), "emit": _rows(r, 3, 3)},
    ),
    Case(
        "viterbi",
        "t: i32, s: i32, emit: f64[t,s], move: f64[s,s], scratch score: f64[t,s], scratch back: i32[t,s],"
        " out path: i32[t] -> f64",
        lambda r: {"emit": _apart(r, 5, 3), "move": _apart(r, 3, 3, gap=0.17)},
        step=1e-3,
    ),
    Case(
        "soft_dtw",
        "m: i32, n: i32, gamma: f64, x: f64[m], y: f64[n], scratch r: f64[m+1,n+1] -> f64",
        lambda r: {"gamma": 0.7, "x": _apart(r, 5, gap=0.4), "y": _apart(r, 4, gap=0.43)},
        step=1e-3,
    ),
    Case(
        "sinkhorn",
        "n: i32, m: i32, sweeps: i32, cost: f64[n,m], a: f64[n], b: f64[m], scratch k: f64[n,m], scratch u: f64[n],"
        " scratch v: f64[m] -> f64",
        lambda r: {
            "sweeps": 4,
            "cost": r.uniform(0.1, 1, (3, 4)),
            "a": r.uniform(0.2, 0.5, 3),
            "b": r.uniform(0.2, 0.5, 4),
        },
    ),
    Case(
        "kalman",
        "n: i32, q: f64, r: f64, z: f64[n], out estimate: f64[n] -> f64",
        lambda r: {"q": 0.3, "r": 0.8, "z": r.normal(size=6)},
    ),
    Case(
        "moments",
        "n: i32, x: f64[n], out mean: f64[], out variance: f64[], out z: f64[n], out above: i32[]",
        lambda r: {"x": _apart(r, 7)},
    ),
    Case(
        "black_scholes",
        "n: i32, put: bool[n], spot: f64[n], strike: f64[n], rate: f64, vol: f64, time: f64, out price: f64[n]",
        lambda r: {
            "put": np.array([False, True, True, False]),
            "spot": r.uniform(80, 120, 4),
            "strike": r.uniform(80, 120, 4),
            "rate": 0.03,
            "vol": 0.25,
            "time": 1.5,
        },
    ),
    Case(
        "biquad",
        "sections: i32, n: i32, coef: f64[sections,5], inout x: f64[n]",
        lambda r: {"coef": r.normal(size=(2, 5)) * 0.4, "x": r.normal(size=8)},
    ),
)

CONTROL = (
    Case(
        "early_return_bound",
        "n: i32, bound: f64, x: f64[n] -> f64",
        lambda r: {"bound": 3.0, "x": np.array([1.2, 1.5, 1.1, 2.0, 1.3])},
        file="early_return.c",
        symbol="early_return",
    ),
    Case(
        "early_return_negative",
        "n: i32, bound: f64, x: f64[n] -> f64",
        lambda r: {"bound": 3.0, "x": np.array([1.2, 1.5, -0.7, 2.0, 1.3])},
        file="early_return.c",
        symbol="early_return",
    ),
    Case(
        "early_return_end",
        "n: i32, bound: f64, x: f64[n] -> f64",
        lambda r: {"bound": 30.0, "x": np.array([1.2, 1.5, 0.7, 2.0, 1.3])},
        file="early_return.c",
        symbol="early_return",
    ),
    Case(
        "nested_exits",
        "m: i32, n: i32, x: f64[m,n], limit: f64, inout y: f64[m]",
        lambda r: {
            "x": np.array([[0.5, -0.3, 0.7, 0.4], [1.2, 1.0, 0.3, 0.2], [0.4, 0.1, -0.8, 0.3], [0.2, 3.9, 0.5, 0.1]]),
            "limit": 1.7,
            "y": r.normal(size=4),
        },
    ),
    Case(
        "guarded",
        "n: i32, use: bool[n], x: f64[n], d: f64[n], out y: f64[n]",
        lambda r: {
            "use": np.array([True, False, True, False, True]),
            "x": np.array([0.7, -0.3, -1.2, -0.4, 2.1]),
            "d": np.array([0.9, 0.0, 1.4, 0.0, -0.6]),
        },
        step=1e-3,
    ),
    Case(
        "switch_ops",
        "n: i32, op: i32[n], x: f64[n] -> f64",
        lambda r: {"op": np.array([0, 2, 1, 3, 9, 4, 0, 2], np.int32), "x": _signs(r, 8)},
    ),
    Case(
        "quadrature",
        "a: f64, b: f64, start: f64, end: f64 -> f64",
        lambda r: {"a": 0.4, "b": 1.7, "start": 0.2, "end": 2.9},
    ),
    Case(
        "templates",
        "n: i32, x: f64[n,4], scale: f64 -> f64",
        lambda r: {"x": r.normal(size=(3, 4)), "scale": 0.8},
        file="templates.cpp",
    ),
    Case("ir_fma", "n: i32, c: f64[n], x: f64 -> f64", lambda r: {"c": r.normal(size=5), "x": 0.6}, file="ir_fma.ll"),
    Case(
        "ir_select",
        "n: i32, x: f64[n], out y: f64[n]",
        lambda r: {"x": np.array([0.9, -0.4, 3.1, -2.6, 0.2, 1.3])},
        file="ir_select.ll",
    ),
    Case(
        "ir_vector",
        "n: i32, x: f64[n,4], y: f64[n,4] -> f64",
        lambda r: {"x": r.normal(size=(3, 4)), "y": r.normal(size=(3, 4))},
        file="ir_vector.ll",
    ),
)

CASES: tuple[Case, ...] = LINEAR_ALGEBRA + GRIDS_AND_ODES + ITERATIONS + MEMORY_AND_INDICES + LEARNING + CONTROL


def case(name: str) -> Case:
    """The row of that name."""
    return next(row for row in CASES if row.name == name)
