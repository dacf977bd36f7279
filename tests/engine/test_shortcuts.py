"""Comparisons with exact values: shortcuts have the derivatives of the side that does the work, in both modes, at the
values themselves; of all others that may hide a derivative there is a warning, and of ordinary ones there is none."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.analysis.equality import exact_comparisons
from jax_enzyme.ir.reader import parse

SOURCE = Path(__file__).parent / "shortcuts.c"
R = np.random.default_rng(11)
UPPER = np.triu(R.normal(size=(4, 4))) + 3 * np.eye(4)
SPARSE = np.array([0.7, 0.0, -1.2, 0.0])
POINT = R.normal(size=4)

Row = tuple[str, Sequence[Any]]

PROVED: dict[str, Row] = {
    "gemv": (
        "m: i32, n: i32, alpha: f64, a: f64[n,m], x: f64[n], beta: f64, inout y: f64[m]",
        (1.5, UPPER[:3], SPARSE[:3], 0.0, POINT),
    ),
    "syr2": (
        "n: i32, alpha: f64, x: f64[n], y: f64[n], inout a: f64[n,n]",
        (1.5, SPARSE, np.array([0.3, 0, 0, 0]), UPPER),
    ),
    "trsv": ("n: i32, u: f64[n,n], inout x: f64[n]", (UPPER, SPARSE)),
    "trmv": ("n: i32, u: f64[n,n], inout x: f64[n]", (UPPER, SPARSE)),
    "csr": (
        "n: i32, nz: i32, start: i32[n+1], column: i32[nz], value: f32[nz], x: f32[k] -> f32",
        (
            np.array([0, 2, 3, 5], np.int32),
            np.array([0, 2, 1, 0, 1], np.int32),
            np.array([0, 2, 0, 1, 0], np.float32),
            np.ones(3, np.float32),
        ),
    ),
    "scaled": ("n: i32, s: f64, x: f64[n], scratch y: f64[n] -> f64", (1.0, POINT)),
    "chosen": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "rotated": ("n: i32, re: f64, im: f64, x: f64[n,2], inout y: f64[n,2]", (0.0, 0.0, UPPER[:, :2], UPPER[:, 2:])),
    "active_set": (
        "n: i32, k: i32, set: i32[k], w: f64[k], g: f64[n] -> f64",
        (np.array([2, 0], np.int32), np.array([0.0, 0.4]), POINT),
    ),
    "bits": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "pairs": ("n: i32, x: f64[n], w: f64[n] -> f64", (SPARSE, POINT)),
    "three_ways": ("n: i32, x: f64[n], w: f64[n] -> f64", (SPARSE, POINT)),
    "signs": ("x: f64, y: f64, z: f64 -> f64", (0.4, 0.4, 0.6)),
    "bounded": ("n: i32, x: f64[n], z: f64 -> f64", (np.zeros(4), 0.6)),
    "by_sign": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "exponent_of_zero": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "rounded_up": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "null_pointers": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "within": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
}
UNPROVED: dict[str, Row] = {
    "unit": ("n: i32, x: f64[n] -> f64", (POINT,)),
    "sinc": ("x: f64 -> f64", (0.0,)),
    "entropy": ("n: i32, p: f64[n] -> f64", (np.abs(SPARSE),)),
    "rooted": ("x: f64 -> f64", (0.0,)),
    "jump": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "endless": ("x: f64 -> f64", (0.0,)),
    "fresh": ("n: i32, beta: f64, x: f64[n], out y: f64[n]", (0.0, POINT)),
    "logarithmic_mean": ("x: f64, y: f64 -> f64", (2.0, 2.0)),
    "words": ("n: i32, x: f64[n] -> f64", (np.zeros(4),)),
    "table": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "places": ("x: f64, a: f64[2], b: f64[2] -> f64", (0.0, POINT[:2], POINT[2:])),
    "last": ("n: i32, x: f64[n] -> f64", (np.tile(SPARSE, 12),)),
    "bit_mask": ("n: i32, x: f64[n] -> f64", (np.tile(SPARSE, 7),)),
    "clamped": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "squares": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "listed": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "packed": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "cached": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "distinct": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "same_bytes": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "flagged": ("n: i32, x: f64[n] -> f64", (np.tile(SPARSE, 12),)),
    "sign_as_a_factor": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "sign_as_an_index": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "squared_choice": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "all_are_zero": ("n: i32, x: f64[n] -> f64", (np.zeros(24),)),
    "as_many_zeros": ("n: i32, x: f64[n] -> f64", (np.zeros(4),)),
    "weighed_zeros": ("n: i32, x: f64[n] -> f64", (np.zeros(4),)),
    "total": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "total_of_two": ("x: f64, z: f64 -> f64", (0.6, 0.6)),
    "total_to_one": ("x: f64, z: f64 -> f64", (1.0, 0.6)),
    "normal": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "halves": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "weighted": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "fraction": ("x: f64, z: f64 -> f64", (1.0, 0.6)),
    "chosen_text": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "copied_text": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "sign_at_last": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "times_its_sign": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "masked_by_numbers": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "mean_of_nonzeros": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "all_the_same": ("n: i32, x: f64[n] -> f64", (np.ones(4),)),
    "no_sign": ("n: i32, x: f64[n] -> f64", (np.zeros(4),)),
    "marked_in_turn": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "between_zeros": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "no_quotient": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "no_inverse": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "whole": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "whole_by_integers": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "beyond": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "touched": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "either_of_two": ("x: f64, z: f64 -> f64", (0.6, 0.6)),
    "nothing_added": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "either_side": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "mixed_bits": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "either_loop": ("n: i32, x: f64[n], inout y: f64[n]", (SPARSE, POINT)),
    "no_spread": ("n: i32, x: f64[n] -> f64", (np.ones(4),)),
    "no_extent": ("n: i32, x: f64[n] -> f64", (np.ones(4),)),
    "most_of_all": ("n: i32, x: f64[n] -> f64", (np.zeros(4),)),
    "bytes_in_turn": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "exponent_alone": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "high_half": ("n: i32, x: f64[n] -> f64", (np.zeros(2),)),
    "bits_of_three": ("n: i32, x: f64[n] -> f64", (np.zeros(3),)),
    "counted_bits": ("x: f64, z: f64 -> f64", (0.0, 0.0)),
    "known_key": ("x: f64, z: f64, key: i64 -> f64", (0.0, 0.6, np.int64(0))),
}
SILENT: dict[str, Row] = {
    "ordinary": ("n: i32, mode: i32, x: f64[n] -> f64", (0, SPARSE)),
    "failing": ("x: f64 -> f64", (2.0,)),
    "scaled_back": ("n: i32, d: f64[n], inout y: f64[n], out info: i32[]", (SPARSE, POINT)),
    "largest": ("n: i32, x: f64[n] -> f64", (POINT,)),
    "ranges_meet": ("n: i32, x: f64[n] -> f64", (POINT,)),
    "counted": ("n: i32, x: f64[n], out zeros: i32[] -> f64", (SPARSE,)),
    "steps": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "converging": ("x: f64 -> f64", (2.0,)),
    "larger_bits": ("x: f64, z: f64 -> f64", (2.0, 2.0)),
    "signs_apart": ("n: i32, x: f64[n], out mask: f64[n] -> f64", (SPARSE,)),
    "by_turns": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "threshold": ("x: f64, z: f64 -> f64", (0.3, 0.6)),
    "upwind": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "in_quarters": ("x: f64, z: f64 -> f64", (0.3, 0.6)),
    "slope": ("x: f64, y: f64, z: f64 -> f64", (0.3, 0.6, 0.2)),
    "put_in_order": ("x: f64, z: f64 -> f64", (0.6, 0.6)),
    "guarded_result": ("x: f64, z: f64 -> f64", (0.0, 0.6)),
    "told_apart": ("n: i32, x: f64[n] -> f64", (SPARSE,)),
    "known_exponent": ("x: f64, z: f64, key: i64 -> f64", (1.3, 0.6, np.int64(1023))),
    "noted": ("n: i32, x: f64[n], inout seen: i32[2] -> f64", (SPARSE, np.zeros(2, np.int32))),
}


def kernel(name: str, rows: dict[str, Row]) -> je.Kernel:
    return je.kernel(SOURCE, name, rows[name][0])


@pytest.mark.parametrize("name", PROVED)
def test_shortcuts_are_differentiated_on_the_general_side(name: str) -> None:
    f, args = kernel(name, PROVED), PROVED[name][1]
    with jax.enable_x64(name != "csr"):
        found = f.inspect(*args).comparisons
        assert found and all(c.proved for c in found)
        je.check_grads(f, args)


@pytest.mark.parametrize("name", UNPROVED)
def test_what_is_not_proved_is_warned_of(name: str) -> None:
    f, args = kernel(name, UNPROVED), UNPROVED[name][1]
    with jax.enable_x64(True):
        report = f.inspect(*args)
        (found,) = report.comparisons
        assert not found.proved and "not proved to be a shortcut" in str(report)
        with pytest.warns(je.ShortcutWarning) as caught:
            jax.linearize(f, *args)
        (warning,) = caught
        text = str(warning.message)
        assert f"`{name}`" in text and f"shortcuts.c:{str(found.place).split(':')[1]}:" in text
        assert warning.filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jax.linearize(f, *args)


def test_counts_stay_those_of_the_function() -> None:
    f = je.kernel(SOURCE, "counted_on", "n: i32, x: f64[n], v: f64[n], out count: i32[] -> f64")
    with jax.enable_x64(True):
        v = np.arange(1.0, 1 + len(SPARSE))
        # The sum is proved, and differentiated so; what the count decides is not.
        assert [c.proved for c in f.inspect(SPARSE, v).comparisons] == [False]
        value, count = f(SPARSE, v)
        assert count == np.count_nonzero(SPARSE) < len(SPARSE)
        with pytest.warns(je.ShortcutWarning):
            found = jax.jit(jax.value_and_grad(lambda x: f(x, v), has_aux=True))(SPARSE)
        np.testing.assert_array_equal(found[0], (value, count))
        np.testing.assert_array_equal(found[1], v)


QUOTIENTS = """
#include <math.h>
double ratio(double x, double z) { double r = 0; if (x != 0) r = x / sqrt(x * x + z * z); return r; }
double entropy(double x, double z) { double r = 0; if (x != 0) r = x * log(z); return r; }
double chosen(double x, double z) { double q = x / z; return x == 0 ? 0 : q; }
double fused(double x, double z) {
    double s = 0;
    if (x != 0) {
        double r = 1 / z;
        s += x * r;
        s += x * (r * s);
    }
    return s;
}
double both(double x, double z) {
    double y = x * x, s = 0;
    if (x != 0 || y != 0) s += (x + y) / z;
    return s;
}
double same(double x, double z) {
    double s = 1;
    if (x + 1 != 1.0) s += (x + 1 - 1.0) / z;
    return s - 1;
}
double twice(double x, double z) {
    double q = x == 0 ? 0 : x / z, r = x == 0 ? 0 : x / z * z;
    return q * r + q;
}
double tiny(double x, double z) { return fabs(x) > 1e-300 ? x / z : 0; }
double sums(int n, const double *x, const double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] == 0) continue;
        s += x[i] / y[i];
    }
    return s > 1 ? 2 * s : s;
}
double size(int n, const double *x) {
    double most = 0, s = 0;
    for (int i = 0; i < n; i++) {
        double a = fabs(x[i]);
        if (a > most) {
            s = 1 + s * (most / a) * (most / a);
            most = a;
        } else if (a != 0)
            s += (a / most) * (a / most);
    }
    return most * sqrt(s);
}"""


@pytest.mark.parametrize("name", ["ratio", "entropy", "chosen", "fused", "both", "same", "twice", "tiny"])
def test_where_a_shortcut_avoids_what_is_no_number_values_stay(name: str) -> None:
    """0 / 0, and 0 times an infinity, which the function never meets; beside a number the general side is taken."""
    with jax.enable_x64(True):
        f = je.kernel(QUOTIENTS, name, "x: f64, z: f64 -> f64", lang="c")
        assert float(jax.value_and_grad(f, (0, 1))(0.0, 0.0)[0]) == 0
        assert float(jax.jvp(f, (0.0, 0.0), (1.0, 0.5))[0]) == 0
        slope = np.log(2) if name == "entropy" else 0.5
        np.testing.assert_allclose(jax.grad(f, (0, 1))(0.0, 2.0), (slope, 0), rtol=1e-14)


def test_branches_behind_a_quotient_of_zero_go_as_in_the_function() -> None:
    with jax.enable_x64(True):
        f = je.kernel(QUOTIENTS, "sums", "n: i32, x: f64[n], y: f64[n] -> f64", lang="c")
        x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 1.0])
        value, slopes = jax.value_and_grad(f, (0, 1))(x, y)
        assert float(value) == float(f(x, y)) == 5
        np.testing.assert_allclose(slopes, [[0, 1, 2], [0, -0.5, -4]], rtol=1e-14)
        tangent = jax.jvp(lambda x: f(x, y), (x,), (np.ones(3),))[1]
        np.testing.assert_allclose(tangent, 3, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::jax_enzyme.ShortcutWarning")
def test_a_sum_scaled_by_the_largest_number_so_far() -> None:
    with jax.enable_x64(True):
        f = je.kernel(QUOTIENTS, "size", "n: i32, x: f64[n] -> f64", lang="c")
        x = np.array([0.0, 3.0, 0.0, -4.0])
        value, slope = jax.value_and_grad(f)(x)
        np.testing.assert_allclose(value, 5, rtol=1e-14)
        np.testing.assert_allclose(slope, x / 5, rtol=1e-14)
        np.testing.assert_allclose(jax.jvp(f, (x,), (x,)), (5, 5), rtol=1e-14)


@pytest.mark.parametrize("name", SILENT)
def test_ordinary_comparisons_are_not_mentioned(name: str) -> None:
    assert kernel(name, SILENT).inspect(*SILENT[name][1]).comparisons == ()


def test_a_warning_is_an_error_where_it_is_asked_to_be_each_time() -> None:
    source = "float sinc(float x) {\n float y = x == 3.0f ? 2 : x * x;\n return x == 1.0f ? 1 : y / (x - 1);\n}"
    f = je.kernel(source, "sinc", "x: f32 -> f32", lang="c")
    for _ in range(2):
        with pytest.raises(je.ShortcutWarning, match=r"kernel\.c:2:.*, .*kernel\.c:3:"):
            jax.grad(f)(2.0)


def test_what_does_not_vary_decides_as_before() -> None:
    """A weight that masks numbers which have no logarithm is no shortcut for a derivative with respect to these."""
    f = je.kernel(SOURCE, "masked", "n: i32, w: f64[n], x: f64[n] -> f64")
    weights, numbers = np.array([1.0, 0.0]), np.array([2.0, 0.0])
    with jax.enable_x64(True):
        assert f.inspect(weights, numbers, wrt="x").comparisons == ()
        (found,) = f.inspect(weights, numbers, wrt="w").comparisons
        assert found.proved and "a shortcut" in str(f.inspect(weights, numbers, wrt="w"))
        np.testing.assert_allclose(jax.grad(f, 1)(weights, numbers), [0.5, 0])
        np.testing.assert_allclose(jax.grad(f)(weights, np.array([2.0, 3.0])), np.log([2.0, 3.0]))


def test_second_derivatives_of_shortcuts() -> None:
    f = kernel("active_set", PROVED)
    args = PROVED["active_set"][1]
    with jax.enable_x64(True):
        je.check_grads(f, args, order=2, modes=("rev",))


def test_what_only_the_second_derivative_varies_is_warned_of() -> None:
    f = kernel("chosen", PROVED)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jacfwd(jax.jacfwd(f, (0, 1)), (0, 1))(0.0, 0.5), [[0, 1], [1, 0]], atol=1e-12)
        with pytest.warns(je.ShortcutWarning, match="a derivative of a derivative"):
            jax.jacfwd(jax.jacfwd(f, 1), 0)(0.0, 0.5)


def test_functions_of_ir_below_jax() -> None:
    skip = """
    define double @f(double %x, double %y) {
      %zero = fcmp oeq double %x, 0.0
      br i1 %zero, label %out, label %work
    work:
      %product = fmul double %x, FACTOR
      %sum = fadd double %product, %y
      br label %out
    out:
      %result = phi double [ %y, %0 ], [ %sum, %work ]
      ret double %result
    }
    """
    derived = je.ad.differentiate(skip.replace("FACTOR", "%y"), "f", "forward")
    assert "fcmp" not in {i.opcode for i in derived.functions["je.primal.jvp"].instructions()}
    with pytest.warns(je.ShortcutWarning, match="`f`"):
        je.ad.differentiate(skip.replace("%x, FACTOR", "%y, 2.0"), "f", "reverse")


_COMPARED = """define void @f(<2 x double> %x, fp128 %y, x86_fp80 %z) {
  %a = fcmp oeq <2 x double> %x, splat (double 0x7FF0000000000000)
  %b = fcmp oeq fp128 %y, 0xL00000000000000007FFF000000000000
  %c = fcmp oeq x86_fp80 %z, 0xK7FFF8000000000000000
  %one = fcmp oeq fp128 %y, 0xL00000000000000003FFF000000000000
  %two = fcmp oeq <2 x double> %x, splat (double 1.0)
  %four = fcmp oeq x86_fp80 %z, 0xK40018000000000000000
  ret void
}"""


def test_infinities_are_no_exact_values() -> None:
    found = exact_comparisons(parse(_COMPARED).functions["f"])
    assert [comparison.name for comparison in found] == ["one", "two", "four"]


_ORDERED = """define void @f(double %x, double %y) {
  %p = fmul double %x, 3.0
  %is = fcmp oge double %p, 0.5
  %a = fsub double %x, 1.0
  %b = fsub double %p, 3.0
  %q = fmul double %a, %b
  %one = fcmp ole double %q, 0.0
  %r = call double @llvm.fma.f64(double %x, double %y, double 0.5)
  %above = fcmp ogt double %r, %y
  ret void
}
declare double @llvm.fma.f64(double, double, double)"""


def test_products_are_asked_at_one_value_where_their_factors_have_a_number_in_common() -> None:
    found = exact_comparisons(parse(_ORDERED).functions["f"])
    assert [comparison.name for comparison in found] == ["one"]


@pytest.mark.parametrize("steps", [2, 500])
def test_bits_of_which_much_is_made_are_warned_of(steps: int) -> None:
    mixed = "\n".join(f"%{n + 1} = xor i64 %{n}, %w" for n in range(1, steps))
    ir = f"define i1 @f(double %x) {{\n%w = bitcast double %x to i64\n%1 = xor i64 %w, %w\n{mixed}\n"
    ir += f"%all = or i64 %{steps}, %w\n%is = icmp eq i64 %all, 0\nret i1 %is\n}}"
    assert [c.name for c in exact_comparisons(parse(ir).functions["f"])] == ["is"]
