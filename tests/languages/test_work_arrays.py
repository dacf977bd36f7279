"""Work arrays of old Fortran, and of C, which hold numbers and integers at places that only the run knows."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.languages.conftest import KERNELS, check, positive
from tests.support.engine import native, pulled
from tests.support.tools import need

SIGNATURE = "n: i32[], x: f64[m], out y: f64[m]"
WITH_ROOM = f"{SIGNATURE}, scratch w: f64[m], scratch kept: f64[m]"
FILE = "work_array.f90"


@pytest.mark.parametrize("name", ["transformed", "transformed_twice", "copied", "reused", "reused_below", "decided"])
def test_numbers_and_integers(name: str) -> None:
    check(FILE, name, "fortran", SIGNATURE, {"m": 6}, [np.array(6, np.int32), positive(6)])


@pytest.mark.parametrize("io", ["scratch", "out"])
def test_work_arrays_of_the_caller(io: str) -> None:
    signature = f"n: i32[], x: f64[n], out y: f64[n], {io} w: f64[3*n+15]"
    check(FILE, "transformed_in", "fortran", signature, {"n": 12}, [positive(12)])


def test_whole_copies() -> None:
    check(FILE, "copied_whole", "fortran", WITH_ROOM, {"m": 6}, [np.array(6, np.int32), positive(6)])


@pytest.mark.parametrize(
    "name", ["spoiled", "read_halves", "read_rests", "read_below", "read_words", "read_quarters", "read_copies"]
)
def test_bytes_that_are_numbers_and_integers_have_no_derivative(name: str) -> None:
    need("flang-22")
    signature = WITH_ROOM if name == "read_copies" else SIGNATURE
    kernel = native((KERNELS / FILE).read_text(), name, signature, {"m": 3}, lang="fortran")
    inputs, ones = [np.array(3, np.int32), positive(3)], np.ones(3)
    room = (False,) * signature.count("scratch")
    wanted = (False, True, False, *room)
    (_, forward) = kernel.run((Jvp(wanted),), [*inputs, ones])
    (reverse,) = pulled(kernel, (Vjp(wanted, (False, False, True, *room)),), inputs, [ones], {})
    assert np.isnan(forward).all()
    assert np.isnan(reverse).all()


@pytest.mark.parametrize("n", [4, 5])
def test_numbers_and_integers_of_c(n: int) -> None:
    signature = "where: i32[], n: i32, x: f64[n], out y: f64[n]"
    check("work_array.c", "ranked", "c", signature, {"n": n}, [np.array(n, np.int32), positive(n)])
    kernel = native((KERNELS / "work_array.c").read_text(), "ranked", signature, {"n": n}, lang="c")
    inside = [np.array(-n, np.int32), positive(n) * 1e-320]  # the integers are the numbers' halves
    (_, forward) = kernel.run((Jvp((False, True, False)),), [*inside, np.ones(n)])
    (reverse,) = pulled(kernel, (Vjp((False, True, False), (False, False, True)),), inside, [np.ones(n)], {})
    assert np.isnan(forward).all()
    assert np.isnan(reverse).any()


def test_numbers_of_c_that_are_copied_to_and_fro() -> None:
    signature = "where: i32[2], n: i32, x: f64[n], out y: f64[n]"
    check("work_array.c", "moved", "c", signature, {"n": 4}, [np.array([3, 4], np.int32), positive(4)])


def test_numbers_of_halves_that_were_computed_from_numbers_are_refused() -> None:
    need("flang-22")
    kernel = native((KERNELS / FILE).read_text(), "made", SIGNATURE, {"m": 3}, lang="fortran")
    with pytest.raises(DifferentiationError, match="a number is made of an integer"):
        kernel.run((Jvp((False, True, False)),), [np.array(3, np.int32), positive(3), np.ones(3)])
