"""Memory that old Fortran shares by COMMON and EQUIVALENCE between numbers and integers."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.languages.conftest import KERNELS, check, positive
from tests.support.engine import native, pulled, three_way
from tests.support.tools import need

VECTOR = "n: i32[], x: f64[n], out y: f64[n]"
FIXED = ("-ffixed-form",)


def test_an_integrator_keeps_its_state_in_a_block() -> None:
    signature = "n: i32[], a: f64[], x: f64[n], out y: f64[n]"
    check("common_blocks.f", "euler", "fortran", signature, {"n": 3}, [np.array(0.7), positive(3)], flags=FIXED)


@pytest.mark.parametrize("name", ["ranked", "front"])
def test_numbers_and_integers(name: str) -> None:
    check("common_blocks.f", name, "fortran", VECTOR, {"n": 5}, [positive(5)], flags=FIXED)


def test_numbers_that_are_moved_as_integers_are_refused() -> None:
    need("flang-22")
    kernel = native((KERNELS / "common_blocks.f").read_text(), "moved", VECTOR, {"n": 5}, "fortran", flags=FIXED)
    with pytest.raises(DifferentiationError, match="taken for another type") as caught:
        three_way(kernel, [positive(5)])
    assert caught.value.place is not None and caught.value.place.startswith("kernel.f90:")


@pytest.mark.parametrize("name", ["twice", "twiced"])
def test_bits_of_numbers_that_integers_change_have_no_derivative(name: str) -> None:
    need("flang-22")
    kernel = native((KERNELS / "common_blocks.f").read_text(), name, VECTOR, {"n": 5}, "fortran", flags=FIXED)
    inputs, ones = [positive(5)], np.ones(5)
    wanted = (True, False)
    (_, forward) = kernel.run((Jvp(wanted),), [*inputs, ones])
    (reverse,) = pulled(kernel, (Vjp(wanted, (False, True)),), inputs, [ones], {})
    assert np.isnan(forward).all()
    assert np.isnan(reverse).all()
