"""What is computed ahead of a branch that may not need it, and its derivatives there."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.analysis.speculation import speculated
from jax_enzyme.ir.reader import parse
from jax_enzyme.options import Lever
from tests.support.engine import agree, native, three_way

AHEAD = """
define double @f(double %x, double %y, i1 %wanted) {
entry:
  %needed = fdiv double %x, %y
  %half = fdiv double %x, 2.0
  %spare = fdiv double %y, %x
  %scaled = fmul double %spare, %half
  %product = fmul double %x, %y
  %low = fcmp olt double %scaled, 1.0
  %both = select i1 %low, i1 %wanted, i1 false
  br i1 %both, label %some, label %end
some:
  %sum = fadd double %scaled, %product
  br label %end
end:
  %s = phi double [ 0.0, %entry ], [ %sum, %some ]
  %result = fadd double %s, %needed
  ret double %result
}
"""

RECURRENCE = """
define double @f(double %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 1.0, %entry ], [ %q, %loop ]
  %q = fdiv double %x, %s
  %next = add i64 %i, 1
  %last = icmp eq i64 %next, 9
  br i1 %last, label %end, label %loop
end:
  %result = phi double [ %q, %loop ]
  ret double %result
}
"""


def test_what_goes_on_both_ways_is_needed() -> None:
    assert not speculated(parse(RECURRENCE).functions["f"])


def test_quotients_that_a_branch_may_not_need() -> None:
    found = speculated(parse(AHEAD).functions["f"])
    assert sorted(i.name for i in found) == ["scaled", "spare"]


def test_what_was_moved_out_of_a_loop_spoils_nothing_where_it_is_not_taken() -> None:
    source = """
    double f(int n, const double *x, double p, double q) {
        double d = 0;
        for (int i = 0; i < n; i++) {
            d += 0.5 * x[i];
            if (d * d > 9 && p < q) { d -= p / q; d *= __builtin_sin(d); }
        }
        return d;
    }
    """
    with jax.enable_x64(True):
        f = je.kernel(source, "f", "n: i32, x: f64[n], p: f64, q: f64 -> f64", lang="c")
        slopes = jax.grad(f, (0, 1, 2))(np.ones(4), 0.0, 0.0)
        np.testing.assert_array_equal(np.concatenate([np.ravel(s) for s in slopes]), [0.5] * 4 + [0, 0])
        je.check_grads(f, (np.full(9, 1.03), 0.3, 0.7))


@pytest.mark.parametrize("condition", ["i != j && r < 0.6", "r < 0.6 && r > 0", "!(i == j || r >= 0.6)"])
def test_a_distance_of_zero_that_is_only_compared_spoils_nothing(condition: str) -> None:
    source = f"""
    #include <math.h>
    double f(int n, const double *x) {{
        double sum = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {{
                double a = x[2 * i] - x[2 * j], b = x[2 * i + 1] - x[2 * j + 1], r = sqrt(a * a + b * b);
                if ({condition}) sum += exp(-r) / r;
            }}
        return sum;
    }}
    """
    kernel = native(source, "f", "n: i32, x: f64[n,2] -> f64", {"n": 8}, "c")
    x = np.random.default_rng(0).uniform(size=(8, 2))
    f = je.kernel(source, "f", "n: i32, x: f64[n,2] -> f64", lang="c")
    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore", je.ShortcutWarning)
        agree(three_way(kernel, [x]))
        np.testing.assert_allclose(
            jax.jacrev(jax.grad(f))(x[:3]), jax.jacfwd(jax.grad(f))(x[:3]), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("factor", [np.inf, -np.inf, np.nan, 1e308, 0.0, 1.5])
def test_a_factor_that_is_the_same_in_all_iterations_spoils_nothing(factor: float) -> None:
    """Where an iteration has a use for the product, infinite numbers go through, and no others."""
    source = """
    double f(int n, const double *x, double c, double y) {
        double sum = 0;
        for (int i = 0; i < n; i++) { double a = c * x[i]; sum += x[i] > 0 ? a + x[i] : y * x[i]; }
        return sum;
    }
    """
    with jax.enable_x64(True):
        f = je.kernel(source, "f", "n: i32, x: f64[n], c: f64, y: f64 -> f64", lang="c")
        for x in (np.linspace(-1, -0.1, 24), np.linspace(-1, 1, 24)):
            slopes = jax.grad(f, (0, 1))(x, factor, 2.0)
            np.testing.assert_array_equal(slopes[0], np.where(x > 0, factor + 1, 2.0))
            np.testing.assert_allclose(slopes[1], x[x > 0].sum())
        second = jax.jacrev(jax.grad(f, (0, 1)), 1)(x, factor, 2.0)
        np.testing.assert_array_equal(second[0], (x > 0).astype(float))
        forward = jax.jacfwd(jax.grad(f, 1), 0)(x, factor, 2.0)
        np.testing.assert_array_equal(forward, (x > 0).astype(float))


def test_a_residual_of_zero_has_a_hessian() -> None:
    source = """
    #include <math.h>
    double f(int n, const double *x) {
        double sum = 0, q = x[0] / x[1];
        for (int i = 0; i < n; i++) {
            double r = (x[i] > 0 ? sqrt(x[i]) : 0) - 1;
            if (x[i] > 0.5) r += q - 1;
            sum += r * r / 2;
        }
        return sum;
    }
    """
    with jax.enable_x64(True):
        f = je.kernel(source, "f", "n: i32, x: f64[n] -> f64", lang="c")
        x = np.ones(3)
        np.testing.assert_array_equal(jax.grad(f)(x), np.zeros(3))
        rows = np.array([[1.5, -1, 0], [1, -0.5, 0], [1, -1, 0.5]])
        for hessian in (jax.hessian(f), jax.jacrev(jax.grad(f))):
            np.testing.assert_allclose(hessian(x), rows.T @ rows, rtol=1e-12)


MASKED = """
#include <math.h>
double f(int n, double c, const double *w, double *x) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        double a = w[i] * x[i], b = c * a;
        s += x[i] > 0 ? b + a * a : x[i];
        x[i] = x[i] > 1 ? a * x[i] : w[i];
    }
    return s;
}
"""


NONE: tuple[Lever, ...] = ()
MASKS: tuple[Lever, ...] = ("unmasked",)


def test_masks_are_asked_for_where_a_gradient_is_no_number() -> None:
    """In a batch and for several cotangents at once, of results that are overwritten: as without the second run."""
    signature = "n: i32, c: f64, w: f64[n], inout x: f64[n] -> f64"
    with jax.enable_x64(True):
        f, masked = (
            je.kernel(MASKED, "f", signature, lang="c", options=je.Options(without=without))
            for without in (NONE, MASKS)
        )
        r = np.random.default_rng(3)
        w, x, seed = r.normal(size=(2, 9)), r.normal(size=(2, 9)), r.normal(size=(2, 9))
        w[1, 2], x[1, 2], w[1, 5], x[1, 5] = np.inf, -1, np.nan, -0.5

        def slopes(g: je.Kernel) -> list[np.ndarray]:
            def one(w: np.ndarray, x: np.ndarray, s: np.ndarray) -> jax.Array:
                value, after = g(1.5, w, x)
                return 2 * value + (s[0] * after[0] + s[7] * after[7])

            rows = jax.jacrev(lambda w, x: g(1.5, w, x)[1], (0, 1))(w[1], x[1])
            return [*jax.vmap(jax.grad(one, (0, 1)))(w, x, seed), *rows]

        for ours, careful in zip(slopes(f), slopes(masked), strict=True):
            np.testing.assert_allclose(ours, careful, rtol=1e-13)
            assert np.isfinite(ours).all()


def test_masks_that_are_needed_often_stay() -> None:
    """Of a quotient that is dropped for a constant, or computed ahead of a branch."""
    loop = "double f(int n, double c, const double *x) {{ double s = 0; for (int i = 0; i < n; i++) {} return s; }}"
    bodies = {
        "s += x[i] > 0 ? c / x[i] * x[i] : 0;": (True, False),
        "s += x[i] > 0 ? c * x[i] : 0.5 * c * c;": (True, True),
        "{ double q = 1 / x[i]; if (q > c) s += __builtin_exp(q) * q; }": (True, False),
    }
    for body, (masks, marked) in bodies.items():
        report = je.kernel(loop.format(body), "f", "n: i32, c: f64, x: f64[n] -> f64", lang="c").inspect(
            1.5, np.ones(9)
        )
        text = report.ir("pullback")
        assert ("fcmp uno" in text, "!je.mask" in text) == (masks, marked), body


def test_what_is_used_first_and_dropped_later_sends_nothing_on() -> None:
    """A product that is infinite where a select uses it, and that a later one leaves out or that saturates."""
    source = """
    #include <math.h>
    double nearest(const double *x, const double *w) {
        double d[9], s = 0;
        for (int i = 0; i < 9; i++) { double t = w[i % 3] * x[i / 3]; d[i] = i % 4 ? fmax(t, 0.1) : 1e9; }
        for (int i = 0; i < 3; i++) {
            double m = INFINITY;
            for (int j = 0; j < 3; j++) m = d[3 * i + j] < m ? d[3 * i + j] : m;
            s += m;
        }
        return s;
    }
    double safe(const double *x, const double *w) {
        double q[3], s = 0;
        for (int i = 0; i < 3; i++) { double a = w[i] * (1 / fabs(x[i])); q[i] = a > 0 ? a : 0.1 * a; }
        for (int i = 0; i < 3; i++) s += x[i] != 0 ? q[i] * w[i] : 0;
        return s;
    }
    double saturated(const double *x, const double *w) {
        double s = 0;
        for (int i = 0; i < 3; i++) { double e = exp(x[i]), g = w[i] > 1 ? e : e * w[i]; s += 1 / (1 + g); }
        return s;
    }
    """
    cases = [
        ("nearest", ([1, 2, 0.5], [3, np.inf, 1.5]), [1.5, 1.5, 3], [0.5, 0, 3]),
        ("safe", ([0, 2, 0.5], [0.7, 2, 0.5]), [0, -1, -1], [0, 2, 2]),
        ("saturated", ([1000, 0, 0], [0.5, 1, 2]), [0, -0.25, -0.25], [0, -0.25, 0]),
    ]
    with jax.enable_x64(True), pytest.warns(je.ShortcutWarning):
        for name, given, *expected in cases:
            f = je.kernel(source, name, "x: f64[3], w: f64[3] -> f64", lang="c")
            for slope, exact in zip(
                jax.grad(f, (0, 1))(*(np.array(g, np.float64) for g in given)), expected, strict=True
            ):
                np.testing.assert_allclose(slope, exact, rtol=1e-14, err_msg=name)


def test_a_second_run_of_shared_loops_starts_from_cotangents_that_are_cleared() -> None:
    source = """
    #include <math.h>
    double f(const double *x, int n) {
        double m = -1e300;
    #pragma omp parallel for reduction(max : m)
        for (int i = 0; i < n; i++) {
            double a = sin(x[i]) * exp(x[i]);
            m = a > m ? a : m;
        }
        return m;
    }
    """
    with jax.enable_x64(True):
        f = je.kernel(source, "f", "x: f64[n], n: i32 -> f64", lang="c", flags=("-fopenmp",))
        x = np.linspace(0.1, 1.5, 4000)
        x[17] = np.nan
        slope = np.zeros(4000)
        slope[-1] = np.exp(1.5) * (np.sin(1.5) + np.cos(1.5))
        np.testing.assert_allclose(jax.grad(f)(x), slope, rtol=1e-14)
