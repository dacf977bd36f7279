"""Lanes of vectors, and numbers, that nobody looks at: an optimiser leaves them without a value (`poison`), and what is
added to a cotangent for them is zero all the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.case import Case
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way
from tests.support.second import ORDERS, Second
from tests.support.through_engine import Specialised

KERNEL = """
define double @k(ptr %x) {{
  %v = load <4 x double>, ptr %x, align 8
  {lanes}
  %a = extractelement <4 x double> %w, i64 2
  %b = extractelement <4 x double> %w, i64 3
  %c = fadd double %b, 3.0
  %x1 = getelementptr double, ptr %x, i64 1
  %d = load double, ptr %x1, align 8
  %e = fmul double %c, %d
  %f = fadd double %e, %a
  ret double %f
}}
"""
POISON = "double poison, double poison, double 1.0, double 2.0"
LANES = {
    "constants": f"%w = fmul <4 x double> %v, <{POISON}>",
    "tables": f"%t = fmul <4 x double> %v, <{POISON}>\n  %w = fmul <4 x double> %t, <{POISON}>",
    "a quotient": f"%w = fdiv <4 x double> <{POISON.replace('poison', 'undef')}>, %v",
    "a shuffle": "%s = shufflevector <4 x double> %v, <4 x double> poison, "
    "<4 x i32> <i32 poison, i32 poison, i32 1, i32 0>\n  %w = fmul <4 x double> %v, %s",
    "a shuffle of two": f"%t = fadd <4 x double> %v, <{POISON}>\n"
    "  %s = shufflevector <4 x double> %v, <4 x double> %t, <4 x i32> <i32 poison, i32 poison, i32 1, i32 6>"
    "\n  %w = fmul <4 x double> %v, %s",
    "insertions": "%x3 = extractelement <4 x double> %v, i64 3\n"
    "  %p = insertelement <4 x double> poison, double %x3, i64 2\n"
    "  %q = insertelement <4 x double> %p, double %x3, i64 3\n  %w = fmul <4 x double> %v, %q",
    "a choice": "%c0 = fcmp ogt <4 x double> %v, zeroinitializer\n"
    "  %c1 = shufflevector <4 x i1> %c0, <4 x i1> poison, <4 x i32> <i32 poison, i32 poison, i32 2, i32 3>\n"
    "  %n = fneg <4 x double> %v\n  %w = select <4 x i1> %c1, <4 x double> %v, <4 x double> %n",
}
X = np.array([0.8, -1.4, 0.6, 1.1])


@pytest.mark.parametrize("name", LANES)
def test_first_and_second_order(name: str) -> None:
    kernel = native(KERNEL.format(lanes=LANES[name]), "k", "x: f64[4] -> f64", {}, "llvm")
    agree(three_way(kernel, [X]))
    row = Case("k", "x: f64[4] -> f64", lambda _: {"x": X})
    second = Second(Specialised(kernel.program, kernel.signature, kernel.binding, kernel.options), row)
    products = [second.product(order) for order in ORDERS]
    assert products[0] != 0
    np.testing.assert_allclose(products, products[0], rtol=1e-12)


def test_a_number_that_is_not_set_yet() -> None:
    """What the first iteration computes with it is not used."""
    source = """
        double k(int n, const double *x) {
            double last, sum = 0;
            for (int i = 0; i < n; i++) {
                if (i > 0) sum += last * x[i] * x[i];
                last = x[i];
            }
            return sum;
        }
    """
    agree(three_way(native(source, "k", "n: i32, x: f64[n] -> f64", {"n": 4}), [X]))
