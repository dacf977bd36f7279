"""Derivatives are made and run by several threads at once, and called many times without growing."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.ir.arrays import Derivation, Jvp, Vjp
from tests.kernels.case import Case
from tests.kernels.corpus import case
from tests.support import through_engine
from tests.support.engine import native
from tests.support.native import KernelStatus, call
from tests.support.three_way import Arrays, directions, reference

NAMES = ("fft", "heat", "jacobi_swap", "lu_pivot", "malloc_scratch", "newton", "quicksort", "struct_stack")


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")


def fresh(row: Case, folder: Path, text: str) -> Case:
    """The same kernel with other text, so that nothing is remembered of it."""
    path = folder / f"{row.name}{text}{row.path.suffix}"
    path.write_text(f"// {folder} {text}\n{row.path.read_text()}")
    return Case(row.name, row.signature, row.inputs, str(path), row.entry, row.flags)


def gradient(row: Case, cotangents: Arrays, split: bool) -> Arrays:
    pulled = through_engine.subject(row, split=split).vjp(row.arguments, cotangents)
    return {name: np.array(value) for name, value in pulled.items()}


def seeds(row: Case) -> Arrays:
    model = reference(row.path, row.entry, row.signature, row.flags)
    return directions(row, model, model(row.arguments), salt=3)[1]


def at_once(jobs: list[tuple[Case, Arrays, bool]]) -> list[Arrays]:
    barrier = Barrier(len(jobs))

    def job(row: Case, cotangents: Arrays, split: bool) -> Arrays:
        barrier.wait()
        return gradient(row, cotangents, split)

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [f.result() for f in [pool.submit(job, *j) for j in jobs]]


def same(one: Arrays, other: Arrays) -> None:
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)


def test_different_kernels(no_cache: None, tmp_path: Path) -> None:
    rows = [fresh(case(name), tmp_path, "a") for name in NAMES]
    jobs = [(row, seeds(row), index % 2 == 0) for index, row in enumerate(rows)]
    for job, found in zip(jobs, at_once(jobs), strict=True):
        same(gradient(*job), found)


def test_one_kernel(no_cache: None, tmp_path: Path) -> None:
    row = fresh(case("lu_pivot"), tmp_path, "b")
    weights = seeds(row)
    found = at_once([(row, weights, index % 2 == 0) for index in range(8)])
    for one in (0, 1):
        for other in found[one::2]:
            same(found[one], other)


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", ["jacobi_swap", "malloc_scratch", "newton", "quicksort"])
def test_memory_is_flat(name: str) -> None:
    """Ten thousand calls, of which the last nine thousand take no more memory than the first thousand."""
    row = case(name)
    kernel = through_engine.Specialised.of(row)
    built = kernel.build(kernel.vjp)
    weights = seeds(row)
    values = [
        weights[kernel.buffers[b.of].name] if b.role == "shadow" else row.arguments[b.name]
        for b in built.buffers
        if b.is_input
    ]
    for _ in range(1000):
        call(built, values)
    before = resident()
    for _ in range(9000):
        call(built, values)
    assert resident() - before < 512 * 1024


FAILING = {
    "a status": (
        "c",
        """
        #include <math.h>
        #include <stdlib.h>
        int k(int n, int steps, const double *x, double *y) {
            double *w = malloc(8 * 1000);
            w[0] = x[0];
            for (int i = 1; i < steps; i++) {
                w[i] = sin(w[i - 1] * x[i % n]);
                if (w[i] > 1e3 || i == steps - 1) {
                    free(w);
                    return 3;
                }
                y[i % n] += w[i] * w[i];
            }
            free(w);
            return 0;
        }
        """,
    ),
    "an exception": (
        "c++",
        """
        #include <cmath>
        #include <stdexcept>
        #include <vector>
        extern "C" int k(int n, int steps, const double *x, double *y) {
            std::vector<double> w(1000, x[0]);
            for (int i = 1; i < steps; i++) {
                w[i] = std::sin(w[i - 1] * x[i % n]);
                if (i == steps - 1) throw std::runtime_error("far enough");
                y[i % n] += w[i] * w[i];
            }
            return 0;
        }
        """,
    ),
    "an end within a recursive function": (
        "c",
        """
        #include <math.h>
        #include <stdlib.h>
        static double down(double x, int depth) {
            if (depth == 0) abort();
            double y = sin(x);
            return y * down(x * y, depth - 1);
        }
        int k(int n, int steps, const double *x, double *y) { y[0] = down(x[0], steps); return 0; }
        """,
    ),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("order", ["reverse", "second"])
def test_memory_is_flat_where_calls_fail(name: str, order: str) -> None:
    """What the kernel has, its shadows, and the tape, are given back on the way out of an error too."""
    lang, source = FAILING[name]
    kernel = native(source, "k", "n: i32, steps: i32, x: f64[n], inout y: f64[n] -> status", {"n": 3}, lang)
    given = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    reverse = Vjp(given, tuple(b.is_result and b.is_floating for b in kernel.buffers))
    steps: Derivation = (reverse,)
    if order == "second":
        first = derived.layout(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
        steps = (reverse, Jvp(tuple(b.is_input and b.role == "primal" and b.dtype == "f64" for b in first)))
    built = derived.build(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
    values = [np.int32(60) if b.dtype == "i32" else np.array([0.9, 1.1, 1.3]) for b in built.buffers if b.is_input]

    def calls(count: int) -> None:
        for _ in range(count):
            try:
                call(built, values)
            except KernelStatus:
                continue
            pytest.fail("the call did not fail")

    calls(1000)
    before = resident()
    calls(9000)
    assert resident() - before < 512 * 1024
