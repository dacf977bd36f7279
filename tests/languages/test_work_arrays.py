"""Work arrays of old Fortran, which hold numbers and integers at places that only the run knows."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.languages.conftest import KERNELS, check, positive
from tests.support.engine import native, pulled
from tests.support.tools import need

SIGNATURE = "n: i32[], x: f64[m], out y: f64[m]"
FILE = "work_array.f90"


@pytest.mark.parametrize("name", ["transformed", "transformed_twice", "copied"])
def test_numbers_and_integers(name: str) -> None:
    check(FILE, name, "fortran", SIGNATURE, {"m": 6}, [np.array(6, np.int32), positive(6)])


def test_numbers_that_integers_overwrote_have_no_derivative() -> None:
    need("flang-22")
    kernel = native((KERNELS / FILE).read_text(), "spoiled", SIGNATURE, {"m": 3}, lang="fortran")
    inputs, ones = [np.array(3, np.int32), positive(3)], np.ones(3)
    wanted = (False, True, False)
    (_, forward) = kernel.run((Jvp(wanted),), [*inputs, ones])
    (reverse,) = pulled(kernel, (Vjp(wanted, (False, False, True)),), inputs, [ones], {})
    assert np.isnan(forward).all()
    assert np.isnan(reverse).all()
