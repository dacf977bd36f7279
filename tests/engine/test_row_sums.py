"""Sums for one element of a row after the other are made for whole rows: the same numbers, and the same gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reader import parse
from tests.kernels.case import Case
from tests.support import three_way, through_engine
from tests.support.native import call
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "row_sums.c")
PRODUCT = "n: i32, m: i32, l: i32, a: f64[n,l], b: f64[l,m], inout c: f64[n,m]"


def _product(n: int, m: int, k: int) -> Case:
    shapes = {"a": (n, k), "b": (k, m), "c": (n, m)}
    return Case("product", PRODUCT, lambda r: {k: r.normal(size=s) for k, s in shapes.items()}, file=OWN)


def _case(name: str, signature: str, **shapes: tuple[int, ...]) -> Case:
    return Case(name, signature, lambda r: {k: r.normal(size=s) for k, s in shapes.items()}, file=OWN)


def _triangle(m: int) -> Case:
    return _case("triangle", "n: i32, m: i32, x: f64[n,m], inout y: f64[m,m]", x=(10, m), y=(m, m))


TURNED = {
    "product": _product(3, 24, 10),
    "window": _case(
        "window",
        "m: i32, w: f64[30], x: f64[5,m+5], inout y: f64[m], inout norm: f64[m]",
        w=(30,),
        x=(5, 31),
        y=(26,),
        norm=(26,),
    ),
    "distances": _case(
        "distances", "n: i32, m: i32, c: f64[n,m], x: f64[m,3], inout y: f64[m]", c=(20, 25), x=(25, 3), y=(25,)
    ),
    "triangle": _triangle(48),
    "largest": _case("largest", "n: i32, m: i32, x: f64[n,m], inout y: f64[m]", x=(20, 24), y=(24,)),
}
AS_WRITTEN = {
    "in_place": _case("in_place", "n: i32, m: i32, inout x: f64[n,m+1]", x=(20, 31)),
    "ragged": _case("ragged", "m: i32, x: f64[m,m], inout y: f64[m]", x=(30, 30), y=(30,)),
    "some": _case("some", "n: i32, m: i32, a: f64[n], x: f64[n,m], inout y: f64[m]", a=(30,), x=(30, 30), y=(30,)),
    "ends": _case("ends", "n: i32, m: i32, x: f64[n,m], inout y: f64[m]", x=(20, 24), y=(24,)),
    "marked": replace(
        _case("marked", "n: i32, m: i32, x: f64[n,m], inout y: f64[m]", x=(20, 24), y=(24,)), flags=("-fopenmp",)
    ),
    "short": _product(3, 23, 10),
    "short triangle": _triangle(40),
}


def _rows(row: Case, options: je.Options | None = None) -> int:
    """The rows of sums that a kernel has in its canonical form, where it has no local memory of its own."""
    kernel = Specialised.of(row)
    module = derived.regular(kernel.program, kernel.signature, kernel.binding, options).module
    return sum(isinstance(i, I.Alloca) for f in module.functions.values() for i in f.instructions())


@pytest.mark.parametrize(
    ("name", "rows"), [("product", 1), ("window", 2), ("distances", 2), ("largest", 1), ("triangle", 1)]
)
def test_whole_rows(name: str, rows: int) -> None:
    row = TURNED[name]
    three_way.check(through_engine.subject(row, split=True), row)
    assert _rows(row) == rows


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_as_written(name: str) -> None:
    row = AS_WRITTEN[name]
    three_way.check(through_engine.subject(row, split=True), row)
    assert _rows(row) == 0


def test_values_are_the_same_to_the_last_bit_without_rows() -> None:
    row, without = TURNED["product"], je.Options(without=("rows",))
    assert _rows(row, without) == 0
    given = list(row.arguments.values())
    usual, as_written = (call(Specialised.of(row, options).build(), given) for options in (None, without))
    for a, b in zip(usual, as_written, strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_of_a_row_are_vectors_in_both_sweeps() -> None:
    kernel = Specialised.of(_product(3, 64, 40))
    function = derived.derived(kernel.program, kernel.signature, kernel.binding, (kernel.vjp,), None)
    found = parse(optimised_text(entry_module(function)))
    sums = [i for f in found.functions.values() for i in f.instructions() if isinstance(i, I.Call)]
    assert any(isinstance(i.type, T.VectorType) for i in sums)


def test_rows_and_late_sums_in_loops_that_threads_share() -> None:
    """Each thread has rows, and adjoints that wait, of its own, with zeros around them."""
    source = """void k(int n, int m, const double *w, const double *x, double *y) {
#pragma omp parallel for
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
          double sum = 0;
          for (int p = 0; p < 5; p++)
            for (int q = 0; q < 7; q++) sum += w[(i * 5 + p) * 7 + q] * x[p * (m + 6) + j + q];
          y[i * m + j] = sum > 0 ? sum : 0;
        }
    }"""
    n, m = 200, 300
    r = np.random.default_rng(0)
    given = r.normal(size=(n, 5, 7)), r.normal(size=(5, m + 6))
    signature = "n: i32, m: i32, w: f64[n,5,7], x: f64[5,m+6], out y: f64[n,m]"
    found = set[bytes]()
    gradients = list[np.ndarray]()
    for threads in (1, 2):
        options = je.Options(threads=threads)
        kernel = je.kernel(source, "k", signature, lang="c", m=m, flags=("-fopenmp",), options=options)
        assert all(text.endswith("on several threads") for _, text in kernel.inspect(*given).loops)
        for _ in range(5):
            value, pullback = jax.vjp(kernel, *given)
            gradients = list(pullback(value))
            found.add(b"".join(np.asarray(g).tobytes() for g in (value, *gradients)))
    assert len(found) == 1
    windows = np.lib.stride_tricks.sliding_window_view(given[1], 7, 1)  # p, j, q
    seed = np.maximum(np.einsum("ipq,pjq->ij", given[0], windows), 0)
    np.testing.assert_allclose(gradients[0], np.einsum("ij,pjq->ipq", seed, windows), rtol=1e-9, atol=1e-9)
    spread = np.zeros_like(given[1])
    for q in range(7):
        spread[:, q : q + m] += np.einsum("ij,ip->pj", seed, given[0][:, :, q])
    np.testing.assert_allclose(gradients[1], spread, rtol=1e-9, atol=1e-9)
