"""The kernels that every transformation is tested with: the same function in C, for the engine, in Python, for the
stand-in, and through that with `jax.numpy`, as what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Example:
    """`body(xp, **inputs)` gives the outputs by name; `args(seed)` arguments; `floats` which of them are
    differentiable."""

    symbol: str
    source: str
    signature: str
    body: Callable[..., Mapping[str, Any]]
    args: Callable[[np.random.Generator], tuple[Any, ...]]
    floats: tuple[int, ...]
    order: str = "C"
    static: Mapping[str, int] | None = None
    tolerance: float = 1e-10


def _poly(xp: Any, n: int, x: Any, a: Any) -> Mapping[str, Any]:
    return {"y": a * x * x + x * xp.roll(x, -1) * x}


POLY = Example(
    "poly",
    """
    void poly(int n, const double *x, double a, double *y) {
      for (int i = 0; i < n; i++) y[i] = a * x[i] * x[i] + x[i] * x[(i + 1) % n] * x[i];
    }
    """,
    "n: i32, x: f64[n], a: f64, out y: f64[n]",
    _poly,
    lambda r: (r.normal(size=3), np.float64(r.normal())),
    (0, 1),
)


def _power(xp: Any, n: int, x: Any, p: Any) -> Mapping[str, Any]:
    out = x * 0.0 + 1.0
    for i in range(4):
        out = out * ((x if i < p else 1.0) if isinstance(p, int | np.ndarray) else xp.where(i < p, x, 1.0))
    return {"return": out.sum()}


POWER = Example(
    "power",
    """
    double power(int n, const double *x, int p) {
      double s = 0;
      for (int i = 0; i < n; i++) { double q = 1; for (int k = 0; k < p; k++) q *= x[i]; s += q; }
      return s;
    }
    """,
    "n: i32, x: f64[n], p: i32 -> f64",
    _power,
    lambda r: (r.normal(size=2), np.int32(3)),
    (0,),
)


def _euler(xp: Any, n: int, s: Any, v: Any, h: Any) -> Mapping[str, Any]:
    t = v * s
    return {"s": s + h * t * t, "e": t.sum()}


EULER = Example(
    "euler",
    """
    void euler(int n, double *s, const double *v, double h, double *t, double *e) {
      double sum = 0;
      for (int i = 0; i < n; i++) { t[i] = v[i] * s[i]; sum += t[i]; }
      for (int i = 0; i < n; i++) s[i] += h * t[i] * t[i];
      *e = sum;
    }
    """,
    "n: i32, inout s: f64[n], v: f64[n], h: f64, scratch t: f64[n], out e: f64[]",
    _euler,
    lambda r: (r.normal(size=2), r.normal(size=2), np.float64(r.normal())),
    (0, 1, 2),
)


def _gather(xp: Any, n: int, m: int, idx: Any, x: Any) -> Mapping[str, Any]:
    picked = x[idx.astype(np.int64)] if isinstance(idx, np.ndarray) else x[idx]
    return {"return": (picked * picked).sum(), "y": picked * picked * picked, "twice": idx + idx}


GATHER = Example(
    "gather",
    """
    double gather(int n, int m, const int *idx, const double *x, double *y, int *twice) {
      double s = 0;
      for (int i = 0; i < m; i++) { double q = x[idx[i]]; y[i] = q * q * q; s += q * q; twice[i] = 2 * idx[i]; }
      return s;
    }
    """,
    "n: i32, m: i32, idx: i32[m], x: f64[n], out y: f64[m], out twice: i32[m] -> f64",
    _gather,
    lambda r: (np.array([2, 0, 2], np.int32), r.normal(size=3)),
    (1,),
)


def _single(xp: Any, n: int, x: Any, a: Any) -> Mapping[str, Any]:
    return {"y": x * x * x * a}


SINGLE = Example(
    "single",
    """
    void single(int n, const float *x, float a, float *y) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i] * a; }
    """,
    "n: i32, x: f32[n], a: f32, out y: f32[n]",
    _single,
    lambda r: (r.normal(size=2).astype(np.float32), np.float32(r.normal())),
    (0, 1),
    tolerance=2e-5,
)


def _spin(xp: Any, n: int, z: Any, w: Any) -> Mapping[str, Any]:
    return {"u": z * z * w + xp.conjugate(z) * w, "p": (z * xp.conjugate(z) * w).sum()}


SPIN = Example(
    "spin",
    """
    #include <complex.h>
    void spin(int n, const double complex *z, const double complex *w, double complex *u, double complex *p) {
      double complex s = 0;
      for (int i = 0; i < n; i++) {
        u[i] = z[i] * z[i] * w[i] + conj(z[i]) * w[i];
        s += z[i] * conj(z[i]) * w[i];
      }
      *p = s;
    }
    """,
    "n: i32, z: c128[n], w: c128[n], out u: c128[n], out p: c128[]",
    _spin,
    lambda r: (r.normal(size=2) + 1j * r.normal(size=2), r.normal(size=2) + 1j * r.normal(size=2)),
    (0, 1),
)


def _columns(xp: Any, n: int, m: int, a: Any, x: Any) -> Mapping[str, Any]:
    return {"y": (a * a * x).sum(1), "b": a * x}


COLUMNS = Example(
    "columns",
    """
    void columns(int n, int m, const double *a, const double *x, double *y, double *b) {
      for (int j = 0; j < m; j++)
        for (int i = 0; i < n; i++) {
          y[i] += a[i + j * n] * a[i + j * n] * x[j];
          b[i + j * n] = a[i + j * n] * x[j];
        }
    }
    """,
    "n: i32, m: i32, a: f64[n,m], x: f64[m], out y: f64[n], out b: f64[n,m]",
    _columns,
    lambda r: (r.normal(size=(2, 3)), r.normal(size=3)),
    (0, 1),
    order="F",
)

EXAMPLES = (POLY, POWER, EULER, GATHER, SINGLE, SPIN, COLUMNS)
