"""Programs whose gradients are compiled: generated ones of any size, and C++ as people write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

_EIGEN = Path("/usr/include/eigen3")


@dataclass(frozen=True)
class Problem:
    """A kernel `f`. Those of one `kind` are of growing size; `missing` says what is not here that it needs."""

    name: str
    kind: str
    source: str
    signature: str
    arguments: tuple[Any, ...]
    lang: str = "c"
    flags: tuple[str, ...] = ()
    argnums: int | tuple[int, ...] = 0
    value_alone: bool = False
    missing: str | None = None


def _growing(start: str, lines: Iterator[str], result: str) -> str:
    """A function of x[8] in C, of lines that change the numbers that it starts with."""
    head = f"#include <math.h>\ndouble f(const double *x) {{\n  double {start};\n"
    return head + "\n".join(lines) + f"\n  return {result};\n}}\n"


def _independent(count: int) -> str:
    terms = (
        f"  s += x[{i % 8}] * x[{(3 * i + 1) % 8}] * {1 + i % 7}.5"
        f" / (1.0 + x[{5 * i % 8}] * x[{(i + i // 8) % 8}] + {i}.0);"
        for i in range(count)
    )
    return _growing("s = 0", terms, "s")


def _dependent(count: int) -> str:
    lines = (
        f"  t = t * x[{i % 8}] + sin(t);" if i % 2 else f"  t = t - x[{3 * i % 8}] * t * 0.01;" for i in range(count)
    )
    return _growing("t = x[0]", lines, "t")


def _loops(count: int) -> str:
    loops = (
        f"  for (int i = 0; i < 8; i++) for (int k = 0; k < 8; k++) w[i] = w[i] * x[k] * 0.{i % 9 + 1} + sin(w[i]);"
        for i in range(count)
    )
    return _growing("w[8] = {1, 2, 3, 4, 5, 6, 7, 8}", loops, "w[0] + w[7]")


def _records(count: int) -> str:
    records = (
        f"  struct r *r{i} = make(s, r{i - 1}); s = r{i}->v * r{i}->v * 0.125 + 0.3 * x[{i % 8}];"
        for i in range(1, count + 1)
    )
    start = """#include <stdlib.h>
struct r { double v; struct r *next; };
static struct r *make(double v, struct r *n) {
  struct r *p = malloc(sizeof *p); p->v = v; p->next = n; return p;
}
double f(const double *x) {
  double s = x[0], t = 0; struct r *r0 = 0;
"""
    end = f"  struct r *p = r{count};\n  while (p) {{ t += p->v; struct r *q = p->next; free(p); p = q; }}\n"
    return start + "\n".join(records) + "\n" + end + "  return t;\n}\n"


def _ways_out(count: int) -> str:
    steps = (
        f"  if (t > {i}.5) return t * x[{i % 8}] + sin(t);\n  t += x[{(i + 1) % 8}] * 0.{i % 9 + 1};"
        for i in range(count)
    )
    return _growing("t = x[0]", steps, "t")


def _constants(count: int) -> str:
    steps = (f"  t = t * {i}.25 + {i * i}.125 / (x[{i % 8}] + {i}.5);" for i in range(count))
    return _growing("t = x[0]", chain(steps, ["  if (t != t || t == 3.75) return x[1];"]), "t")


def _unreached(count: int) -> str:
    others = (
        f"double g{i}(double *x, int n) {{ double s = 0; for (int k = 0; k < n; k++) {{ s += x[k] * {i}.5;"
        f" if (s > {i}) s = sin(s) * x[k]; else x[k] = s; }} return s; }}"
        for i in range(count)
    )
    return "#include <math.h>\ndouble f(const double *x) { return x[0] * x[0]; }\n" + "\n".join(others) + "\n"


_LLT = """
#include <Eigen/Dense>
using namespace Eigen;
extern "C" double f(int n, const double *a, const double *b) {
  Map<const MatrixXd> A(a, n, n); Map<const VectorXd> B(b, n);
  return B.dot(A.llt().solve(B));
}
"""
_SORT = """
#include <algorithm>
#include <vector>
struct R { double key; int id; double v; };
extern "C" double f(int n, const double *a, const double *b) {
  std::vector<R> r;
  for (int i = 0; i < n; i++) r.push_back({a[i], i, b[i]});
  std::sort(r.begin(), r.end(), [](const R &x, const R &y) { return x.key < y.key; });
  double s = 0;
  for (int i = 0; i < n; i++) s += r[i].v * r[i].key * (i + 1);
  return s;
}
"""
_MAP = """
#include <map>
extern "C" double f(int n, const double *a, const int *k) {
  std::map<int, double> m;
  for (int i = 0; i < n; i++) m[k[i]] += a[i] * a[i];
  double s = 0;
  for (auto &p : m) s += p.second * p.second * p.first;
  return s;
}
"""


def _generated(large: bool) -> Iterator[Problem]:
    x = np.linspace(0.5, 1.0, 8)
    families: tuple[tuple[str, Callable[[int], str], int, int], ...] = (
        ("independent statements", _independent, 125, 16000),
        ("dependent statements", _dependent, 125, 16000),
        ("loops", _loops, 15, 480),
        ("records", _records, 50, 1600),
        ("ways out", _ways_out, 50, 1600),
        ("constants and a question", _constants, 50, 1600),
        ("unreached functions", _unreached, 500, 4000),
    )
    for kind, make, size, most in families:
        while size <= (most if large else min(most, 1000)):
            yield Problem(f"{size} {kind}", kind, make(size), "x: f64[8] -> f64", (x,))
            size *= 2


def problems(large: bool = False) -> list[Problem]:
    """All of them; generated ones of more than 1,000 statements only where asked."""
    x = np.linspace(0.5, 1.0, 8)
    matrix = 4 * np.eye(6) + 0.01 * np.arange(36).reshape(6, 6)
    no_eigen = None if _EIGEN.is_dir() else "apt install libeigen3-dev"
    solve = "n: i32, a: f64[n,n], b: f64[n] -> f64"
    two, keys = "n: i32, a: f64[n], b: f64[n] -> f64", np.array([3, 1, 3, 2, 2, 1, 9, 5], np.int32)
    return [
        *_generated(large),
        Problem(
            "Eigen LLT", "Eigen", _LLT, solve, (matrix + matrix.T, x[:6]), "c++", (f"-I{_EIGEN}",), (0, 1),
            missing=no_eigen,
        ),
        Problem("std::sort of records", "sort", _SORT, two, (x[[3, 1, 4, 0, 5, 2, 6, 7]], x), "c++", (), (0, 1)),
        Problem("std::map", "map", _MAP, "n: i32, a: f64[n], k: i32[n] -> f64", (x, keys), "c++"),
    ]  # fmt: skip
