"""Numbers that are scaled by constants one after the other, whose product no number can hold: derivatives are scaled in
the same order, by one constant after the other."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.support.engine import native, pulled

SCALED = "double k(double x, double z) {{ double s = x * {0}; s *= {1}; return s * {2} + z + x * 1e-300; }}"


@pytest.mark.parametrize(
    ("factors", "exact"), [(("1e-200", "1e200", "1e200"), 1e200), (("1e200", "1e-200", "1e-200"), 1e-200)]
)
def test_factors_are_not_merged(factors: tuple[str, ...], exact: float) -> None:
    point = [np.array(1.0), np.array(2.0)]
    for order in (factors, factors[::-1]):
        kernel = native(SCALED.format(*order), "k", "x: f64, z: f64 -> f64", {})
        if order is factors:  # forward mode takes the factors in this order, and reverse mode from the other end
            (*_, tangent) = kernel.run((Jvp((True, True, False)),), [*point, np.array(1.0), np.array(0.0)])
            assert tangent == pytest.approx(exact, rel=1e-12, abs=0)
        else:
            vjp = Vjp((True, True, False), (False, False, True))
            adjoint, _ = pulled(kernel, (vjp,), point, [np.array(1.0)], {})
            assert adjoint == pytest.approx(exact, rel=1e-12, abs=0)
