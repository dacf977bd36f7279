"""The CUDA kernels of the tests: how each is launched, inputs, and the same function in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

KERNELS = Path(__file__).parent / "kernels"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Launch:
    """One way to start a kernel."""

    grid: object
    block: object
    shared: object = 0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """`launches` all give the same result. `dims` are the extents that go with `inputs`."""

    name: str
    signature: str
    launches: tuple[Launch, ...]
    dims: dict[str, int]
    inputs: Callable[[np.random.Generator], Arrays]
    reference: Callable[[Arrays], list[np.ndarray]]
    step: float = 1e-6

    @property
    def path(self) -> Path:
        return KERNELS / f"{self.name}.cu"


def _cross_sections(a: Arrays) -> list[np.ndarray]:
    total = np.zeros((len(a["energy"]), 5))
    for i, energy in enumerate(a["energy"]):
        for n, density in enumerate(a["density"]):
            total[i] += density * np.array([np.interp(energy, a["grid"][n], a["channels"][n, :, c]) for c in range(5)])
    return [total]


def _multipole(a: Arrays) -> list[np.ndarray]:
    root = np.sqrt(a["energy"])[:, None]
    pole, residue = (a[k][:, 0] + 1j * a[k][:, 1] for k in ("pole", "residue"))
    z = (root - pole) / a["doppler"]
    w = 1j * (0.5124242 * z / (z * z - 0.2752551) + 0.05176536 * z / (z * z - 2.724745))
    phase = np.exp(-0.3j * np.arange(len(pole)) * root)
    sigma = np.sum(phase * residue * w, axis=1) / a["energy"]
    return [np.stack([sigma.real, sigma.imag], axis=-1)]


def _hydro(a: Arrays) -> list[np.ndarray]:
    p = a["x"][a["corner"]].transpose(1, 0, 2)

    def triple(u: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.sum(u * np.cross(v, w), axis=-1)

    v = (
        triple(p[3] - p[1] + p[7] - p[2], p[6] - p[3], p[2] - p[0])
        + triple(p[4] - p[3] + p[5] - p[7], p[6] - p[4], p[7] - p[0])
        + triple(p[1] - p[4] + p[2] - p[5], p[6] - p[1], p[5] - p[0])
    ) / 12
    e, c = a["energy"], 1 / v - 1
    laws = [2 / 3 * e / v, c * (1.5 + c) + 0.4 * e / v, np.exp(-0.1 * v) * e + np.cbrt(v), 0.1 * e * e]
    return [v, np.choose(a["region"], laws)]


def _lattice(a: Arrays) -> list[np.ndarray]:
    cx, cy = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1]), np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    weight = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    f = np.stack([np.roll(a["f"][q], (cy[q], cx[q]), axis=(0, 1)) for q in range(9)])
    rho = f.sum(0)
    ux, uy = np.tensordot(cx, f, 1) / rho, np.tensordot(cy, f, 1) / rho
    cu = 3 * (cx[:, None, None] * ux + cy[:, None, None] * uy)
    equilibrium = weight[:, None, None] * rho * (1 + cu + 0.5 * cu * cu - 1.5 * (ux * ux + uy * uy))
    return [f + a["omega"] * (equilibrium - f)]


def _galerkin(a: Arrays) -> list[np.ndarray]:
    u, d, jacobian = a["u"], a["matrix"], a["jacobian"]
    fx, fy = 0.5 * u * u * jacobian[:, 0, None, None], np.sin(u) * jacobian[:, 1, None, None]
    total = np.einsum("ik,ejk->eji", d, fx) + np.einsum("jk,eki->eji", d, fy)
    return [total + 0.1 * total.transpose(0, 2, 1) * u]


def _softmax(a: Arrays) -> list[np.ndarray]:
    e = np.exp(a["x"] - a["x"].max(axis=1, keepdims=True))
    return [e / e.sum(axis=1, keepdims=True)]


def _reduce(block: int) -> Callable[[Arrays], list[np.ndarray]]:
    def reference(a: Arrays) -> list[np.ndarray]:
        terms = a["w"] * a["x"] ** 2
        sums = [terms[i : i + block].sum() for i in range(0, len(terms), block)]
        return [a["total"] + sum(np.sqrt(1 + s * s) for s in sums)]

    return reference


def _stencil(a: Arrays) -> list[np.ndarray]:
    u = np.pad(a["u"], 1)
    return [u[1:-1] + a["a"] * (u[:-2] - 2 * u[1:-1] + u[2:]) * (1 + u[1:-1] * u[2:])]


def _bodies(a: Arrays) -> list[np.ndarray]:
    d = a["position"][None] - a["position"][:, None]
    r = (np.sum(d * d, axis=-1) + a["softening"]) ** -1.5
    return [np.einsum("j,ij,ijc->ic", a["mass"], r, d)]


def _histogram(a: Arrays) -> list[np.ndarray]:
    bins = a["bins"].copy()
    place = np.clip(a["x"], 0, 1) * 5
    at = np.minimum(place.astype(int), 4)
    f = place - at
    np.add.at(bins, at, a["w"] * (1 - f))
    np.add.at(bins, at + 1, a["w"] * f * f)
    return [bins]


def _cells(r: np.random.Generator) -> Arrays:
    """Two layers of distorted cubes."""
    nodes = np.stack(np.meshgrid(*[np.arange(3.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    place = lambda i, j, k: 9 * i + 3 * j + k  # noqa: E731
    around = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    corner = [[place(i + a, j + b, k + c) for a, b, c in around] for i in range(2) for j in range(2) for k in range(2)]
    return {
        "corner": np.array(corner, np.int32),
        "region": np.array([0, 1, 2, 3, 0, 1, 2, 3], np.int32),
        "x": nodes + 0.1 * r.normal(size=nodes.shape),
        "energy": r.uniform(0.5, 1.5, 8),
    }


CASES = (
    Case(
        "cross_sections",
        "lookups: i32, nuclides: i32, points: i32, energy: f64[lookups], grid: f64[nuclides,points],"
        " channels: f64[nuclides,points,5], density: f64[nuclides], out total: f64[lookups,5]",
        (Launch("(lookups+31)//32", 32), Launch("(lookups+6)//7", 7)),
        {"lookups": 33, "nuclides": 3, "points": 9},
        lambda r: {
            "energy": r.uniform(0.2, 0.8, 33),
            "grid": np.linspace(0, 1, 9) + np.sort(r.uniform(0, 0.1, (3, 9)), axis=1) - [[0.0]] * 3,
            "channels": r.normal(size=(3, 9, 5)),
            "density": r.uniform(0.5, 1.5, 3),
        },
        _cross_sections,
        step=1e-7,
    ),
    Case(
        "multipole",
        "lookups: i32, poles: i32, energy: f64[lookups], pole: f64[poles,2], residue: f64[poles,2], doppler: f64,"
        " out sigma: f64[lookups,2]",
        (Launch(2, 8), Launch("lookups", 1)),
        {"lookups": 21, "poles": 4},
        lambda r: {
            "energy": r.uniform(1.0, 4.0, 21),
            "pole": np.stack([r.uniform(0.5, 2.5, 4), -r.uniform(1.5, 2.0, 4)], axis=-1),
            "residue": r.normal(size=(4, 2)),
            "doppler": np.float64(0.7),
        },
        _multipole,
    ),
    Case(
        "hydro_element",
        "elements: i32, nodes: i32, corner: i32[elements,8], region: i32[elements], x: f64[nodes,3],"
        " energy: f64[elements], out volume: f64[elements], out pressure: f64[elements]",
        (Launch("(elements+4)//5", 5), Launch(1, 64)),
        {"elements": 8, "nodes": 27},
        _cells,
        _hydro,
    ),
    Case(
        "lattice_boltzmann",
        "ny: i32, nx: i32, omega: f64, f: f64[9,ny,nx], out g: f64[9,ny,nx]",
        (Launch(("(nx+3)//4", "(ny+1)//2"), (4, 2)), Launch(("nx", "ny"), (1, 1))),
        {"ny": 5, "nx": 6},
        lambda r: {"omega": np.float64(0.8), "f": r.uniform(0.5, 1.5, (9, 5, 6))},
        _lattice,
    ),
    Case(
        "galerkin",
        "elements: i32, matrix: f64[4,4], jacobian: f64[elements,2], u: f64[elements,4,4], out r: f64[elements,4,4]",
        (Launch("elements", (4, 4)),),
        {"elements": 3},
        lambda r: {
            "matrix": r.normal(size=(4, 4)),
            "jacobian": r.uniform(0.5, 1.5, (3, 2)),
            "u": r.normal(size=(3, 4, 4)),
        },
        _galerkin,
    ),
    Case(
        "matmul",
        "m: i32, k: i32, n: i32, beta: f64, a: f64[m,k], b: f64[k,n], inout c: f64[m,n]",
        (
            Launch(("(n+3)//4", "(m+3)//4"), (4, 4)),
            Launch(("(n+7)//8", "(m+7)//8"), (8, 8), flags=("-DTILE=8",)),
        ),
        {"m": 6, "k": 9, "n": 7},
        lambda r: {
            "beta": np.float64(0.3),
            "a": r.normal(size=(6, 9)),
            "b": r.normal(size=(9, 7)),
            "c": r.normal(size=(6, 7)),
        },
        lambda a: [a["a"] @ a["b"] + a["beta"] * a["c"]],
    ),
    Case(
        "softmax",
        "rows: i32, n: i32, x: f64[rows,n], out y: f64[rows,n]",
        (Launch("rows", 64), Launch("rows", 32)),
        {"rows": 3, "n": 75},
        lambda r: {"x": r.normal(size=(3, 75))},
        _softmax,
    ),
    Case(
        "reduce",
        "n: i32, x: f64[n], w: f64[n], inout total: f64[]",
        (Launch("(n+39)//40", 40, 16), Launch("(n+39)//40", (40, 1, 1), "8*(40+31)//32")),
        {"n": 103},
        lambda r: {"x": r.normal(size=103), "w": r.uniform(0.5, 1.5, 103), "total": np.float64(0.5)},
        _reduce(40),
    ),
    Case(
        "stencil",
        "n: i32, a: f64, u: f64[n], out v: f64[n]",
        (Launch("(n+15)//16", 16), Launch("(n+7)//8", 8, flags=("-DSIZE=8",))),
        {"n": 41},
        lambda r: {"a": np.float64(0.2), "u": r.normal(size=41)},
        _stencil,
    ),
    Case(
        "bodies",
        "n: i32, softening: f64, position: f64[n,3], mass: f64[n], out force: f64[n,3]",
        (Launch("(n+7)//8", 8, "8*32"), Launch(1, 32, 1024)),
        {"n": 19},
        lambda r: {"softening": np.float64(0.1), "position": r.normal(size=(19, 3)), "mass": r.uniform(0.5, 1.5, 19)},
        _bodies,
    ),
    Case(
        "histogram",
        "n: i32, x: f64[n], w: f64[n], inout bins: f64[6]",
        (Launch(2, 16), Launch(1, 64), Launch(5, 7)),
        {"n": 77},
        lambda r: {"x": r.uniform(0.02, 0.98, 77), "w": r.uniform(0.5, 1.5, 77), "bins": r.normal(size=6)},
        _histogram,
        step=1e-8,
    ),
)
