"""Iterations at the ends of a loop that go to other neighbours are made apart; others choose as before."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.codegen import derived
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import callee_name
from tests.support.engine import agree, native, three_way

_SOURCE = """
double k(const double *x, double *y) {{
    double before = 0.5, sum = 0;
    const int n = {n};
    for (int i = 0; i < {n}; i++) {{
        int j = {way};
        double v = x[j] * x[{other}] + 0.3 * before;
        sum += v * v; before = x[j]; y[i] = v;
    }}
    return sum + before;
}}
"""
_WAYS = {
    "ring": ("i == 0 ? n - 1 : i - 1", "i == n - 1 ? 0 : i + 1"),
    "remainders of two": ("(i + n - 2) % n", "(i + 2) % n"),
    "clamped": ("i > 0 ? i - 1 : 0", "i < n - 1 ? i + 1 : n - 1"),
    "downwards": ("n - 1 - i", "n - 1 - (i == n - 1 ? 0 : i + 1)"),
    "mirrored": ("i < 2 ? 2 - i : i - 2", "i + 2 < n ? i + 2 : n - 2"),
}


def _choices(n: int, way: str, other: str) -> int:
    """How many choices are left in the loops of a kernel, whose derivatives are right."""
    source = _SOURCE.format(n=n, way=way, other=other)
    kernel = native(source, "k", f"x: f64[{n}], out y: f64[{n}] -> f64", {}, "c")
    agree(three_way(kernel, [np.cos(np.arange(n, dtype=float))]))
    module = derived.regular(kernel.program, kernel.signature, kernel.binding).module
    inside = [i for loop in Loops.of(module.functions["je.primal"]) for b in loop.blocks for i in b.instructions]
    return sum(isinstance(i, I.Select) or callee_name(i).startswith(("llvm.u", "llvm.s")) for i in inside)


@pytest.mark.parametrize("ways", _WAYS.values(), ids=_WAYS)
def test_what_is_chosen_at_the_ends_is_chosen_there(ways: tuple[str, str]) -> None:
    assert _choices(20, *ways) == 0


def test_where_control_goes_at_the_ends_is_decided_there() -> None:
    source = """
    void k(const double *x, double *y) {
        for (int i = 0; i < 20; i++) {
            if (i == 0) y[i] = 1 + x[1];
            else if (i == 19) y[i] = 2 * x[18];
            else y[i] = x[i] * (x[i + 1] - x[i - 1]);
        }
    }"""
    kernel = native(source, "k", "x: f64[20], out y: f64[20]", {}, "c")
    agree(three_way(kernel, [np.cos(np.arange(20.0))]))
    (loop,) = Loops.of(derived.regular(kernel.program, kernel.signature, kernel.binding).module.functions["je.primal"])
    assert len(loop.blocks) == 1


@pytest.mark.parametrize(("n", "way"), [(20, "i < n / 2 ? i + 1 : i - 1"), (12, "i == 0 ? n - 1 : i - 1")])
def test_other_loops_choose_as_before(n: int, way: str) -> None:
    assert _choices(n, way, "i") > 0


def test_rows_at_the_ends_go_their_own_way_and_loops_are_left_at_their_end() -> None:
    source = """
    void k(double c, const double *x, double *y) {
        for (int i = 0; i < 18; i++)
            for (int j = 0; j < 20; j++) {
                double v = x[i * 20 + j], f = 0;
                if (i > 0) f += x[i * 20 + j - 20] * v; else f += c * v;
                if (i < 17) f += x[i * 20 + j + 20] - v; else f -= c;
                if (j > 0) f += x[i * 20 + j - 1] * v; else f += c * v;
                if (j < 19) f += x[i * 20 + j + 1] - v; else f -= c * c;
                y[i * 20 + j] = f * f;
            }
    }"""
    kernel = native(source, "k", "c: f64, x: f64[18, 20], out y: f64[18, 20]", {}, "c")
    agree(three_way(kernel, [np.array(0.7), np.cos(np.arange(360.0)).reshape(18, 20)]))
    loops = Loops.of(derived.regular(kernel.program, kernel.signature, kernel.binding).module.functions["je.primal"])
    inner = [loop for loop in loops if not loop.children]
    assert len(inner) == 3 and all(len(loop.blocks) == 1 for loop in inner)


def test_a_border_is_asked_about_where_it_is() -> None:
    """Comparisons that decide together: rows and columns inside go one way."""
    source = """
    void k(const double *x, double *y) {
        for (int i = 0; i < 18; i++)
            for (int j = 0; j < 20; j++) {
                const double *v = x + 20 * i + j;
                if (i == 0 || j == 0 || i == 17 || j == 19) { y[i * 20 + j] = v[0] * v[0]; continue; }
                y[i * 20 + j] = v[0] * (v[1] + v[-1] + v[20] * v[-20]);
            }
    }"""
    kernel = native(source, "k", "x: f64[18, 20], out y: f64[18, 20]", {}, "c")
    agree(three_way(kernel, [np.cos(np.arange(360.0)).reshape(18, 20)]))
    loops = Loops.of(derived.regular(kernel.program, kernel.signature, kernel.binding).module.functions["je.primal"])
    assert all(len(loop.blocks) == 1 for loop in loops if not loop.children)
