"""The helper functions against mpmath and C's own definitions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import mpmath
import pytest
from mpmath import mp, mpf

from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.helpers import PREFIX, link, source
from jax_enzyme.rules.table import standard
from tests.rules.native import Compiled

ROOT = 1.4616321449683622

CALLERS = """
declare double @je.digamma.f64(double)
declare double @je.polygamma.f64(i32, double)
declare double @je.frexp_fraction.f64(double)
declare i32 @je.frexp_exponent.f64(double)
declare double @je.modf_fraction.f64(double)
declare i32 @je.remquo_quotient.f64(double, double)
declare i32 @je.lgamma_sign.f64(double)

define double @digamma(double %x) {
  %y = call double @je.digamma.f64(double %x)
  ret double %y
}
define double @polygamma(i32 %n, double %x) {
  %y = call double @je.polygamma.f64(i32 %n, double %x)
  ret double %y
}
define double @fraction(double %x) {
  %y = call double @je.frexp_fraction.f64(double %x)
  ret double %y
}
define i32 @exponent(double %x) {
  %y = call i32 @je.frexp_exponent.f64(double %x)
  ret i32 %y
}
define double @rest(double %x) {
  %y = call double @je.modf_fraction.f64(double %x)
  ret double %y
}
define i32 @quotient(double %x, double %y) {
  %z = call i32 @je.remquo_quotient.f64(double %x, double %y)
  ret i32 %z
}
define i32 @sign(double %x) {
  %y = call i32 @je.lgamma_sign.f64(double %x)
  ret i32 %y
}
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return Compiled(parse(CALLERS))


def positives() -> Iterator[float]:
    numbers = random.Random(1)
    for _ in range(400):
        yield math.exp(numbers.uniform(-20, math.log(1e6)))
        yield ROOT + numbers.uniform(-0.3, 0.3)
        yield ROOT * (1 + numbers.uniform(-1, 1) * 10 ** numbers.uniform(-15, -3))


def test_digamma_has_full_relative_accuracy_at_positive_numbers(compiled: Compiled) -> None:
    digamma = compiled["digamma"]
    with mp.workdps(30):
        for x in positives():
            expected = mpmath.digamma(mpf(x))
            assert abs(digamma(x) - expected) <= 1e-14 * abs(expected), x


def test_digamma_at_negative_numbers(compiled: Compiled) -> None:
    numbers = random.Random(2)
    with mp.workdps(30):
        for _ in range(300):
            x = -math.exp(numbers.uniform(-10, 8))
            expected = mpmath.digamma(mpf(x))
            assert abs(compiled["digamma"](x) - expected) <= 1e-13 * max(1, abs(expected)), x


@pytest.mark.parametrize("order", range(0, 9))
def test_polygamma(compiled: Compiled, order: int) -> None:
    numbers = random.Random(order)
    with mp.workdps(30):
        for sign in (1, -1):
            for _ in range(60):
                x = sign * math.exp(numbers.uniform(-6, 6))
                expected = mpmath.psi(order, mpf(x))
                assert abs(compiled["polygamma"](order, x) - expected) <= 1e-13 * max(1, abs(expected)), x


@pytest.mark.parametrize("x", [0.0, -0.0, -1.0, -7.0, -math.inf, math.nan])
def test_poles_and_nan(compiled: Compiled, x: float) -> None:
    assert math.isnan(compiled["digamma"](x))
    assert math.isnan(compiled["polygamma"](1, x))
    assert math.isnan(compiled["polygamma"](-1, 2.0))


@pytest.mark.parametrize("x", [1.0, -3.7, 5e-324, 1e-310, 1.7e308, 0.5, 0.0, -0.0, math.inf, -math.inf])
def test_frexp_and_modf(compiled: Compiled, x: float) -> None:
    fraction, exponent = math.frexp(x)
    assert str(compiled["fraction"](x)) == str(fraction)
    assert compiled["exponent"](x) == exponent
    assert str(compiled["rest"](x)) == str(math.modf(x)[0])


def test_frexp_and_modf_of_nan(compiled: Compiled) -> None:
    assert math.isnan(compiled["fraction"](math.nan))
    assert math.isnan(compiled["rest"](math.nan))
    assert compiled["exponent"](math.nan) == 0


@pytest.mark.parametrize("x, y, quotient", [(7.3, 2.0, 4), (-7.3, 2.0, -4), (5.0, 3.0, 2), (0.4, 1.0, 0)])
def test_remquo(compiled: Compiled, x: float, y: float, quotient: int) -> None:
    assert compiled["quotient"](x, y) % 8 == quotient % 8


@pytest.mark.parametrize("x, sign", [(2.5, 1), (-0.5, -1), (-1.5, 1)])
def test_sign_of_gamma(compiled: Compiled, x: float, sign: int) -> None:
    assert compiled["sign"](x) == sign


def test_link_copies_what_is_called_and_nothing_else() -> None:
    module = parse("declare double @je.digamma.f64(double)\n")
    link(module)
    assert {name for name in module.functions if name.startswith(PREFIX)} == {
        "je.digamma.f64", "je.digamma_positive.f64", "je.horner.f64",
    }  # fmt: skip
    assert set(module.globals) == {"je.digamma_far", "je.digamma_root"}


def test_link_leaves_other_modules_alone() -> None:
    module = parse("declare double @sin(double)\n")
    before = to_text(module)
    link(module)
    assert to_text(module) == before


def test_a_helper_of_another_type_is_an_error() -> None:
    with pytest.raises(ValueError, match="digamma"):
        link(parse("declare float @je.digamma.f64(float)\n"))


def test_every_helper_with_a_row_has_a_body() -> None:
    bodies = parse(source()).functions
    for name in bodies:
        if name.startswith(PREFIX):
            assert not bodies[name].is_declaration
    for name in ("digamma", "polygamma", "frexp_fraction", "cexp_re", "cpow_im", "cdivide_re"):
        assert f"je.{name}.f64" in bodies
        assert standard().for_call(f"je.{name}.f64") is not None
