"""Loops of a few iterations are unrolled before differentiation; what is not short, or not to be unrolled, stays."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.ir.reader import parse
from tests.support.engine import Native, agree, native, three_way
from tests.support.native import call

SOURCE = """
void k(const double *x, double *y) {{
    double product[{n}], scaled[{n}];
    for (int i = 0; i < {n}; i++) product[i] = x[i] * x[(i + 1) % {n}];
    {pragma}
    for (int i = 0; i < {n}; i++) scaled[i] = product[i] * product[{n} - 1 - i];
    for (int i = 0; i < {n}; i++) y[i] = scaled[i] + product[i];
}}
"""


def _loops(kernel: Native) -> Loops:
    """Those that are left when a kernel is to be differentiated."""
    regular = derived.regular(kernel.program, kernel.signature, kernel.binding)
    return Loops.of(regular.module.functions["je.primal"])


@pytest.mark.parametrize(
    ("n", "pragma", "expected"),
    [(3, "", 0), (4, "", 0), (5, "", 3), (3, "#pragma clang loop unroll(disable)", 1), (40, "", 3)],
)
def test_short_loops_go(n: int, pragma: str, expected: int) -> None:
    kernel = native(SOURCE.format(n=n, pragma=pragma), "k", f"x: f64[{n}], out y: f64[{n}]", {}, "c")
    assert len(_loops(kernel).all) == expected
    agree(three_way(kernel, [np.linspace(-1, 2, n)]))


def test_nests_go_as_far_as_they_are_short() -> None:
    """The products of 3 x 3 matrices: the innermost loop and the next; all three would be long."""
    source = """
    void k(const double *a, double *y) {
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                double sum = 0;
                for (int l = 0; l < 3; l++) sum += a[3 * i + l] * a[3 * l + j] * (l > 0 ? sum : a[i]) + a[l];
                y[3 * i + j] = sum;
            }
    }"""
    kernel = native(source, "k", "a: f64[3,3], out y: f64[3,3]", {}, "c")
    assert len(_loops(kernel).all) <= 1
    agree(three_way(kernel, [np.linspace(-1, 2, 9).reshape(3, 3)]))


@pytest.mark.parametrize(("bits", "expected"), [("u", 1), ("(u ^ (int)t[i])", 2)], ids=["the number", "data"])
def test_what_the_number_of_an_iteration_decides_counts_for_nothing(bits: str, expected: int) -> None:
    """The eight corners of a cell: with the number of the corner all weights and places are chosen."""
    source = f"""
    double k(int m, const double *t, const double *a) {{
        double s = 0;
        for (int i = 0; i < m; i++) {{
            int q = (int)(t[i] * 4);
            double f = t[i] * 4 - q, g = f * f, h = f * g, value = 0, other = 0;
            for (int u = 0; u < 8; u++) {{
                int b = {bits}, x = b >> 2 & 1, y = b >> 1 & 1, z = b & 1, c = ((q + x) * 5 + q + y) * 5 + q + z;
                double w = (x ? f : 1 - f) * (y ? g : 1 - g) * (z ? h : 1 - h);
                value += w * a[c];
                other += w * (a[124 - c] - w) * f;
            }}
            s = s * other + value;
        }}
        return s;
    }}"""
    kernel = native(source, "k", "m: i32, t: f64[m], a: f64[125] -> f64", {"m": 20}, "c")
    assert len(_loops(kernel).all) == expected
    agree(three_way(kernel, [np.linspace(0.01, 0.97, 20), np.linspace(-1, 2, 125)]))


@pytest.mark.parametrize(("n", "expected"), [(9, 1), (17, 3), (33, 3)])
def test_loops_over_small_local_arrays_go_inside_others(n: int, expected: int) -> None:
    source = f"""
    void k(int m, const double *x, double *y) {{
        for (int i = 0; i < m; i++) {{
            double f[{n}], sum = 0;
            for (int q = 0; q < {n}; q++) sum += f[q] = x[q * m + i];
            for (int q = 0; q < {n}; q++) y[q * m + i] = f[{n} - 1 - q] * sum;
        }}
    }}"""
    x = np.linspace(-1, 2, 20 * n).reshape(n, 20)
    kernel = native(source, "k", f"m: i32, x: f64[{n},m], out y: f64[{n},m]", {"m": 20}, "c")
    assert len(_loops(kernel).all) == expected
    agree(three_way(kernel, [x]))


@pytest.mark.parametrize(
    ("start", "a", "order", "expected"),
    [
        ("x[N * i + r]", "a", 10, 1),
        ("x[N * i + r]", "a", 15, 1),
        ("x[N * i + r]", "(a + N * N * i)", 10, 3),
        ("x[r * m + i]", "a", 10, 3),
        ("s * x[r]", "a", 10, 3),
    ],
    ids=["the same for all", "longer", "numbers that lie apart", "rows", "one after the other"],
)
def test_nests_go_where_the_loop_around_can_be_made_vectors(start: str, a: str, order: int, expected: int) -> None:
    """A triangular system for each of `m` points: as values, without a tape of what is kept of a point."""
    source = f"""
    enum {{ N = {order} }};
    double k(int m, const double *x, const double *a) {{
        double s = 0;
        for (int i = 0; i < m; i++) {{
            double z[N];
            for (int r = 0; r < N; r++) {{
                double t = {start};
                for (int k = 0; k < r; k++) t -= {a}[r * N + k] * z[k];
                z[r] = t * {a}[r * (N + 1)];
            }}
            s += z[9] * z[3];
        }}
        return s;
    }}"""
    kernel = native(source, "k", f"m: i32, x: f64[{order},m], a: f64[m,{order * order}] -> f64", {"m": 20}, "c")
    assert len(_loops(kernel).all) == expected
    x, matrices = np.linspace(-1, 1, 20 * order), np.linspace(0.4, 0.5, 20 * order**2)
    agree(three_way(kernel, [x.reshape(order, 20), matrices.reshape(20, -1)]))


@pytest.mark.parametrize(("place", "expected"), [("2", 2), ("(int)w[p] % 3", 5)], ids=["constant", "data"])
def test_nests_over_small_local_arrays_go_inside_any_loop(place: str, expected: int) -> None:
    """Implicit steps, each of which solves three equations: all of the matrix is values, unless its places are data."""
    source = f"""
    double k(int m, const double *x, const double *w) {{
        double s = 0;
        for (int p = 0; p < m; p++) {{
            double a = x[p], b = 1;
            for (int t = 0; t < 20; t++) {{
                double J[3][3] = {{{{2 + a, b, 0.1}}, {{b, 3, a}}, {{0.1, a * b, 4}}}}, f[3] = {{a, b, 0.5}};
                for (int q = 0; q < 3; q++)
                    for (int i = q + 1; i < 3; i++) {{
                        double l = J[i][q] / J[q][q];
                        for (int j = q; j < 3; j++) J[i][j] -= l * J[q][j];
                        f[i] -= l * f[q];
                    }}
                b -= 0.1 * f[{place}] / J[2][{place}];
                a -= 0.1 * (f[1] - J[1][2] * b) / J[1][1];
            }}
            s += a * b;
        }}
        return s;
    }}"""
    kernel = native(source, "k", "m: i32, x: f64[m], w: f64[m] -> f64", {"m": 20}, "c")
    assert len(_loops(kernel).all) == expected
    agree(three_way(kernel, [np.linspace(0.5, 1, 20), np.full(20, 2.5)]))


def test_places_that_a_branch_chooses_among_small_local_arrays_are_values() -> None:
    """A factor of order two in each step: of the stores in both arms LLVM makes one, at a place that is chosen."""
    source = """
    #include <math.h>
    double k(int m, const double *x) {
        double p = 1, q = 0.3, s = 0;
        for (int t = 0; t < m; t++) {
            double S[2][2] = {{p + x[t], q}, {q, p + 2}}, L[2][2];
            for (int i = 0; i < 2; i++)
                for (int j = 0; j <= i; j++) {
                    double v = S[i][j];
                    for (int k = 0; k < j; k++) v -= L[i][k] * L[j][k];
                    if (i == j) L[i][i] = sqrt(v); else L[i][j] = v / L[j][j];
                }
            p = L[0][0] + 0.1 * L[1][0];
            q = 0.2 * L[1][1];
            s += p * q;
        }
        return s;
    }"""
    kernel = native(source, "k", "m: i32, x: f64[m] -> f64", {"m": 20}, "c")
    assert len(_loops(kernel).all) == 1
    agree(three_way(kernel, [np.linspace(0.5, 1, 20)]))


def test_rows_in_reverse_are_vectors_of_their_own() -> None:
    """Unrolled behind the vectoriser, not before, which would leave columns of `w_bar` to the loop around; the value's
    sums keep their order."""
    source = """
    void k(int n, const double *w, const double *h, double *y) {
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int j = 0; j < 16; j++) sum += w[16 * i + j] * h[j];
            y[i] = sum * sum;
        }
    }"""
    kernel = native(source, "k", "n: i32, w: f64[n,16], h: f64[16], out y: f64[n]", {"n": 32}, "c")
    step = Vjp((True, True, False), (False, False, True))
    reverse = derived.derived(kernel.program, kernel.signature, kernel.binding, (step,))
    text = optimised_text(entry_module(reverse))
    assert "masked.scatter" not in text
    if host().has("avx"):
        nests = [loop.parent for f in parse(text).functions.values() if f.blocks for loop in Loops.of(f)]
        assert "store <" in text and not any(nests)
    agree(three_way(kernel, [np.linspace(-1, 1, 512).reshape(32, 16), np.linspace(0.1, 1, 16)]))


@pytest.mark.parametrize(
    ("first", "to", "expected"), [(1, "y", True), (0, "y", False), (1, "u", False)], ids=["there", "outside", "written"]
)
def test_short_arms_that_load_become_choices(first: int, to: str, expected: bool) -> None:
    """Where the buffer has what they read in every iteration, and the loop does not write it."""
    source = f"""
    void k(int n, const double *v, double *u, double *y) {{
        for (int i = 0; i < n; i++) y[i] = u[i];
        for (int i = {first}; i < n - 1; i++) {to}[i] += v[i] * (v[i] > 0.0 ? u[i] - u[i - 1] : u[i + 1] - u[i]);
    }}"""
    kernel = native(source, "k", "n: i32, v: f64[n], inout u: f64[n], out y: f64[n]", {"n": 20}, "c")
    assert (max(len(loop.blocks) for loop in _loops(kernel)) == 1) is expected
    v = np.linspace(-1, 1, 20) + 0.02
    agree(three_way(kernel, [v, np.linspace(0.1, 1, 20) ** 2]))


def test_what_an_arm_that_is_not_taken_loads_leaves_no_trace_in_the_gradient() -> None:
    source = """
    double k(int n, const double *v, const double *u, const double *w) {
        double s = 0;
        for (int i = 0; i < n; i++) { double t = 0; if (v[i] > 0) t = u[i] * w[i]; s += t * t; }
        return s;
    }"""
    kernel = native(source, "k", "n: i32, v: f64[n], u: f64[n], w: f64[n] -> f64", {"n": 16}, "c")
    step = Vjp((False, True, True, False), (False, False, False, True))
    built = derived.build(kernel.program, kernel.signature, kernel.binding, (step,))
    v = np.linspace(-1, 1, 16)
    u, w = np.where(v > 0, 1 + v, np.nan), np.where(v > 0, 1.5, np.inf)
    by_u, by_w = call(built, [v, u, w, np.float64(1)])[-2:]
    np.testing.assert_allclose(by_u, np.where(v > 0, 2 * (1 + v) * 1.5**2, 0))
    np.testing.assert_allclose(by_w, np.where(v > 0, 2 * (1 + v) ** 2 * 1.5, 0))
