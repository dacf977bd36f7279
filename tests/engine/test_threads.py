"""Derivatives are made and run by several threads at once, and called many times without growing."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from tests.kernels.case import Case
from tests.kernels.corpus import case
from tests.support import through_engine
from tests.support.native import call
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
