"""Prints the time of kernels under `Options(sanitize=True)` over their time without: the table of docs/crashes.md."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import jax_enzyme as je

_FOLDER = Path(__file__).parent / "kernels" / "checked"
_RANDOM = np.random.default_rng(0)
_VECTOR = _RANDOM.uniform(0.5, 1.5, 20000)
_MATRICES = tuple(_RANDOM.random((128, 128)) for _ in range(2))
_GRID = _RANDOM.random((200, 200))
_ROWS = len(_VECTOR)
_SPARSE = (
    np.arange(0, 5 * _ROWS + 1, 5, dtype=np.int32),
    _RANDOM.integers(0, _ROWS, 5 * _ROWS).astype(np.int32),
    _RANDOM.random(5 * _ROWS),
    _VECTOR,
)


@dataclass(frozen=True)
class Case:
    """A kernel `k` of a file, and what it is called with."""

    title: str
    file: str
    signature: str
    arguments: tuple[Any, ...]


_SUM = "n: i32, x: f64[n] -> f64"
_SQUARE = "n: i32, a: f64[n,n], b: f64[n,n], out c: f64[n,n]"
CASES = (
    Case("dot product", "dot_product.c", "n: i32, x: f64[n], y: f64[n] -> f64", (_VECTOR, _VECTOR)),
    Case("axpy", "axpy.c", "n: i32, x: f64[n], out y: f64[n]", (_VECTOR,)),
    Case("matrix product, flat", "product.c", _SQUARE, _MATRICES),
    Case("stencil in two dimensions", "stencil.c", "n: i32, m: i32, u0: f64[n,m], out u: f64[n,m]", (_GRID,)),
    Case("product of matrices of rows, double **", "product_of_rows.c", _SQUARE, _MATRICES),
    Case(
        "the same, rows from the signature",
        "product_of_given_rows.c",
        "n: i32, a: f64[n][n], b: f64[n][n], out c: f64[n][n]",
        _MATRICES,
    ),
    Case("LU of a matrix of rows", "lu_rows.c", "n: i32, x: f64[n,n] -> f64", _MATRICES[:1]),
    Case(
        "stencil in three dimensions, double ***",
        "stencil_of_rows.c",
        "n: i32, x: f64[n,n,n] -> f64",
        (_RANDOM.random((40, 40, 40)),),
    ),
    Case("linked list", "linked_list.c", _SUM, (_VECTOR[:5000],)),
    Case("binary tree", "binary_tree.c", _SUM, (_VECTOR[:4000],)),
    Case(
        "sparse matrix (CSR)",
        "csr_gather.c",
        "n: i32, z: i32, ptr: i32[n+1], idx: i32[z], v: f64[z], x: f64[n], out y: f64[n]",
        _SPARSE,
    ),
    Case(
        "features on a graph",
        "graph.c",
        "n: i32, z: i32, h: i32, ptr: i32[n+1], idx: i32[z], x: f64[n,h], out y: f64[n,h]",
        (_SPARSE[0][:4001], _SPARSE[1][:20000] % 4000, _RANDOM.random((4000, 8))),
    ),
    Case(
        "finite elements, gathered and scattered",
        "elements.c",
        "n: i32, m: i32, t: i32[m,8], k: f64[8,8], u: f64[n], out v: f64[n]",
        (_SPARSE[1][:32000].reshape(4000, 8), _RANDOM.random((8, 8)), _VECTOR),
    ),
    Case(
        "products of 3 by 3 matrices in records",
        "matrices.c",
        "n: i32, a: f64[n,9], b: f64[n,9], out c: f64[n,9]",
        tuple(_RANDOM.random((4000, 9)) for _ in range(2)),
    ),
    Case("structure of pointers to arrays", "structures_of_pointers.c", _SUM, (_VECTOR[:2000],)),
    Case("lists of neighbours, by pointer", "neighbour_lists.c", _SUM, (_VECTOR[:2000],)),
    Case("strings", "strings.c", _SUM, (_VECTOR,)),
    Case("std::vector of std::vector", "vector_of_vectors.cpp", _SUM, (_VECTOR[:200],)),
    Case("class around a std::vector", "grid_class.cpp", _SUM, (_VECTOR[:200],)),
    Case("std::map", "map.cpp", _SUM, (_VECTOR,)),
    Case("quicksort", "sort.c", "n: i32, x: f64[n], out y: f64[n]", (_VECTOR,)),
    Case("bodies in structures", "n_body.c", "n: i32, q: f64[n,3], out o: f64[n,3]", (_RANDOM.random((60, 3)),)),
    Case("exp, log, sin", "functions.c", "n: i32, x: f64[n], out y: f64[n]", (_VECTOR,)),
    Case("recursion", "recursion.c", "x: f64 -> f64", (1.0,)),
    Case("histogram", "histogram.c", "n: i32, b: i32, x: f64[n], inout h: f64[b]", (_VECTOR, np.zeros(64))),
    Case("Fortran, allocatable arrays", "allocatable.f90", "n: i32, x: f64[n,n], out s: f64[]", (_GRID,)),
    Case("Fortran, derived type with arrays", "derived_type.f90", "n: i32, x: f64[n], out s: f64[]", (_VECTOR[:2000],)),
    Case("table of constants", "lookup_tables.c", _SUM, (_VECTOR,)),
)


class DifferentResultError(Exception):
    """A kernel with checks gives something else than without: its time would mean nothing."""


def run(case: Case, budget: float) -> tuple[float, float]:
    """The least time of a call without and with checks, in seconds; they take turns."""
    calls = [_call(case, sanitize) for sanitize in (False, True)]
    plain, checked = (jax.tree.leaves(call()) for call in calls)
    if not all(np.array_equal(a, b) for a, b in zip(plain, checked, strict=True)):
        raise DifferentResultError(case.title)
    times, ends = [float("inf")] * 2, time.perf_counter() + budget
    while time.perf_counter() < ends:
        for index, call in enumerate(calls):
            began = time.process_time()
            call()
            times[index] = min(times[index], time.process_time() - began)
    return times[0], times[1]


def _call(case: Case, sanitize: bool) -> Callable[[], Any]:
    kernel = je.kernel(_FOLDER / case.file, "k", case.signature, options=je.Options(sanitize=sanitize))
    compiled, arguments = jax.jit(kernel), [jax.numpy.asarray(a) for a in case.arguments]
    return lambda: jax.block_until_ready(compiled(*arguments))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checked", description=__doc__)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of measuring for each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    console = Console(width=None if os.isatty(1) else 100)
    shown = Table(title="Kernels with checks over kernels without (least times of a call; results are equal)")
    for head in ("kernel", "without, µs", "with, µs", "times"):
        shown.add_column(head, justify="left" if head == "kernel" else "right")
    ratios: list[float] = []
    for case in CASES:
        if options.only not in case.title:
            continue
        plain, checked = run(case, options.budget)
        ratios.append(checked / plain)
        shown.add_row(case.title, f"{plain * 1e6:,.1f}", f"{checked * 1e6:,.1f}", f"{ratios[-1]:.1f}")
    console.print(shown)
    if ratios:
        console.print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.1f}, largest {max(ratios):.1f}")


if __name__ == "__main__":
    main()
