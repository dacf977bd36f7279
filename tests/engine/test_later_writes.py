"""What no later iteration overwrites is read again instead of being kept: gradients stay right, tapes become small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented
from tests.kernels.case import Case
from tests.kernels.corpus import case
from tests.support import three_way, through_engine
from tests.support.through_engine import Specialised

OWN = str(Path(__file__).parent / "later_writes.c")


def _case(name: str, signature: str, **inputs: int | tuple[int, ...]) -> Case:
    """Numbers in the inputs are passed, shapes are filled."""

    def values(r: np.random.Generator) -> dict[str, object]:
        return {k: v if isinstance(v, int) else r.uniform(0.3, 0.9, v) for k, v in inputs.items()}

    return Case(name, signature, values, file=OWN)


SCAN = "n: i32, x: f64[n], out y: f64[n]"
ROWS = "n: i32, x: f64[n,16], out y: f64[n,16]"
ONCE = [
    _case("scan", SCAN, x=(12,)),
    _case("back", SCAN, x=(12,)),
    _case("table", "n: i32, m: i32, inout t: f64[n,m]", t=(6, 7)),
    _case("triangle", "n: i32, inout a: f64[n,n]", a=(9, 9)),
]
AGAIN = [
    _case("sweeps", "n: i32, count: i32, inout u: f64[n]", count=3, u=(9,)),
    _case("ring", "n: i32, size: i32, x: f64[n], inout r: f64[size]", x=(9,), r=(4,)),
    _case("overlapping", "m: i32, n: i32, inout a: f64[27]", m=5, n=4, a=(27,)),
    _case("rounds", ROWS, x=(3, 16)),
    _case("rolling", "n: i32, m: i32, x: f64[n], inout now: f64[m], scratch next: f64[m]", x=(4,), now=(5,)),
]


def _tape_bytes(row: Case) -> int:
    kernel = Specialised.of(row)
    step = Augmented(kernel.vjp.wanted, kernel.vjp.seeded)
    return sum(b.nbytes for b in kernel.build(step).buffers if b.role == "tape")


@pytest.mark.parametrize("row", ONCE, ids=str)
def test_what_is_written_once_is_not_kept(row: Case) -> None:
    three_way.check(through_engine.subject(row, split=True), row)
    assert _tape_bytes(row) <= 128  # ways that control took


@pytest.mark.parametrize("row", AGAIN, ids=str)
def test_what_is_written_again_is_kept(row: Case) -> None:
    three_way.check(through_engine.subject(row, split=True), row)
    assert _tape_bytes(row) > 0


@pytest.mark.parametrize("row", [_case("running", ROWS, x=(5, 16)), _case("chosen", ROWS, x=(5, 16))], ids=str)
def test_an_array_that_is_new_in_each_iteration_is_kept_instead_of_what_is_read_from_it(row: Case) -> None:
    three_way.check(through_engine.subject(row, split=True), row)
    assert _tape_bytes(row) <= 2 * 5 * 16 * 8 + 64  # it was 20 kB


def test_the_tape_of_lu_grows_with_the_matrix() -> None:
    """Factors that the inner loops read stay: nothing is kept per innermost iteration."""
    row = Case("lu", case("lu").signature, lambda r: {"a": r.normal(size=(12, 12)) + 12 * np.eye(12)}, file="lu.c")
    three_way.check(through_engine.subject(row, split=True), row)
    assert _tape_bytes(row) <= 12 * 12 * 8 + 64


def test_whether_a_row_of_a_sparse_matrix_is_empty_is_seen_from_where_it_starts() -> None:
    """Where each row starts is kept; a byte for each that says whether it is empty was as well."""

    def arguments(r: np.random.Generator) -> dict[str, object]:
        start = np.sort(r.integers(0, 1000, 501)).astype(np.int32)
        columns = r.integers(0, 9, 1000).astype(np.int32)
        return {"start": start, "col": columns, "val": r.normal(size=1000), "x": r.normal(size=9)}

    assert _tape_bytes(Case("csr_matvec", case("csr_matvec").signature, arguments, file="csr_matvec.c")) <= 500 * 4
