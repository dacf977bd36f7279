"""Rules that users give: the derivatives are right in every mode and order, and belong to the kernel's identity."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.errors import DifferentiationError, NoRuleError, SignatureError
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.options import Options
from jax_enzyme.rules.user import UserRule, attached
from jax_enzyme.signature import Binding, parse
from tests.support.engine import Native, agree, three_way

_LIBRARY = """
#include <math.h>
#include <stdlib.h>
static int calls = 0;
double je_test_sinc(double x) { return sin(x) / x; }
float je_test_wave(float x, int n) { return sinf(n * x); }
double je_test_sine(double x) { return sin(x); }
double je_test_cosine(double x) { return cos(x); }
void je_test_text(char **at) { *at = malloc(8); }
void je_test_log(const char *what, const double *x, int n) { calls += n + (what != 0) + (x != 0); }
double je_test_scale(void) { return 3.0; }
"""
_SOURCE = """
double je_test_sinc(double);
float je_test_wave(float, int);
double je_test_sine(double);
void je_test_log(const char *, const double *, int);
double je_test_scale(void);

double mean(int n, const double *x, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        y[i] = je_test_sinc(x[i] * x[i]) * x[i];
        s += y[i] * je_test_sinc(s + 1);
    }
    return s;
}
float waves(int n, const float *x) {
    float s = 0;
    for (int i = 0; i < n; i++) s += je_test_wave(x[i], i + 1) * x[0];
    return s;
}
double logged(double x) {
    double y[2] = {x * x, x};
    je_test_log("y", y, 2);
    return y[0] * y[1] * je_test_scale();
}
double turned(double x) { return je_test_sine(x) * x; }
double both(double x) { return turned(x) + je_test_sinc(x); }
"""
SINC = je.rule("je_test_sinc", "(cos(x0) * x0 - sin(x0)) / (x0 * x0)")
WAVE = je.rule("je_test_wave", "x1 * cos(x1 * x0)", None)
LOG = je.inactive("je_test_log")
SINE = je.rule("je_test_sine", "je_test_cosine(x0)")


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("library")
    (folder / "library.c").write_text(_LIBRARY + _PAIR_LIBRARY)
    output = folder / "library.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-O1", "-shared", "-fPIC", "-o", str(output)]
    subprocess.run([*command, str(folder / "library.c"), "-lm"], check=True, capture_output=True)
    return ctypes.CDLL(str(output), mode=ctypes.RTLD_GLOBAL)


def kernel(symbol: str, signature: str, rules: tuple[UserRule, ...], n: int | None = None) -> Native:
    program = load(_SOURCE, symbol, "c")
    program = type(program)(attached(program.ir, rules), symbol, "c", program.source_name)
    return Native(program, parse(signature), Binding.of({} if n is None else {"n": n}, {}), Options())


def test_a_formula() -> None:
    x = np.array([0.5, -1.2, 0.8, 2.0])
    agree(three_way(kernel("mean", "n: i32, x: f64[n], out y: f64[n] -> f64", (SINC,), 4), [x]))


def test_an_integer_argument_and_single_precision() -> None:
    subject = kernel("waves", "n: i32, x: f32[n] -> f32", (WAVE,), 3)
    x = np.array([0.3, 0.5, -0.7], np.float32)
    given, seeded = (True, False), (False, True)
    w = np.ones((), np.float32)
    (found,) = [r for r in subject.run((Vjp(given, seeded),), [x, w]) if r.shape == (3,)]
    n = np.arange(1, 4)
    expected = n * np.cos(n * x) * x[0]
    expected[0] += np.sum(np.sin(n * x))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_inactive_function_that_sees_active_memory() -> None:
    subject = kernel("logged", "x: f64 -> f64", (LOG,))
    agree(three_way(subject, [np.asarray(1.5)]))


def test_what_an_inactive_function_allocates_is_freed_without_a_shadow() -> None:
    """Where an address stands in memory that has a shadow, nothing is known of what stands there in the shadow."""
    source = (
        "#include <stdlib.h>\nvoid je_test_text(char **);\ndouble k(double x) {\n"
        "  int n = 8 + (x > 50);\n  double *v = malloc(8);\n  *v = x * x;\n  double y = *v;\n"
        "  char **t = malloc(8 * n);\n  je_test_text(t);\n  void *q = v;\n"
        "  if (x > 1) {\n    free(v);\n    for (int i = 1; i < x; i++) t[i] = 0;\n    q = t[n - 8];\n  }\n"
        "  free(q);\n  free(t);\n  return y;\n}"
    )
    program = load(source, "k", "c")
    ir = attached(program.ir, (je.inactive("je_test_text"),))
    subject = Native(type(program)(ir, "k", "c", program.source_name), parse("x: f64 -> f64"), Binding.of({}, {}))
    assert float(subject.run((Vjp((True, False), (False, True)),), [1.5, 1.0])[-1]) == 3.0
    with pytest.raises(DifferentiationError, match=r"(?s)pointer of unknown origin.*kernel\.c:16"):
        subject.run((Jvp((True, False)),), [1.5, 1.0])


def test_a_formula_that_calls_the_library() -> None:
    subject = kernel("turned", "x: f64 -> f64", (SINE,))
    agree(three_way(subject, [np.asarray(0.7)]))
    with pytest.raises(NoRuleError, match="je_test_cosine"):
        subject.run((Jvp((True, False)), Jvp((True, False, True, False))), [0.7, 1.0, 1.0, 0.0])


def test_a_rule_for_what_only_a_formula_calls() -> None:
    subject = kernel("turned", "x: f64 -> f64", (SINE, je.rule("je_test_cosine", "-je_test_sine(x0)")))
    once, twice = Jvp((True, False)), Jvp((True, False, False, False))
    second = subject.run((once, twice), [0.7, 1.0, 1.0])
    assert float(second[-1]) == pytest.approx(2 * np.cos(0.7) - 0.7 * np.sin(0.7))


def test_a_formula_that_calls_the_source() -> None:
    source = (
        "double je_test_sine(double);\ndouble slope(double x) { return 1 - 2 * x; }\n"
        "double k(double x) { return je_test_sine(x); }"
    )
    program = load(source, "k", "c")
    ir = attached(program.ir, (je.rule("je_test_sine", "slope(x0)"),))
    subject = Native(type(program)(ir, "k", "c", program.source_name), parse("x: f64 -> f64"), Binding.of({}, {}))
    assert float(subject.run((Jvp((True, False)),), [0.7, 1.0])[-1]) == pytest.approx(1 - 2 * 0.7)


def test_derivatives_of_any_order() -> None:
    subject = kernel("mean", "n: i32, x: f64[n], out y: f64[n] -> f64", (SINC,), 2)
    x, v = np.array([0.5, 1.5]), np.array([1.0, -0.4])
    once = Jvp((True, False, False))

    def slope(x: np.ndarray) -> float:
        return float(subject.run((once,), [x, v])[-1])

    again = subject.run((once, Jvp((True, False, False, False, False, False))), [x, v, v])
    h = 1e-5
    assert float(again[-1]) == pytest.approx((slope(x + h * v) - slope(x - h * v)) / (2 * h), rel=1e-6)


def test_several_rules_and_what_has_none() -> None:
    agree(three_way(kernel("both", "x: f64 -> f64", (SINC, SINE)), [np.asarray(0.7)]))
    with pytest.raises(NoRuleError, match="je_test_sine"):
        kernel("both", "x: f64 -> f64", (SINC,)).run((Jvp((True, False)),), [0.7, 1.0])


def test_rules_belong_to_the_kernel() -> None:
    def make(*rules: UserRule) -> je.Kernel:
        return je.kernel(_SOURCE, "both", "x: f64 -> f64", lang="c", rules=rules)

    one, same, other = make(SINC, SINE), make(SINC, SINE), make(SINC)
    assert one == same and hash(one) == hash(same)
    assert one != other
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one and "je_test_cosine" in copy.program.ir


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (je.rule("je_test_sink", "x0"), r"does not call\n.*je_test_sinc"),
        (je.rule("turned", standard=True), "the package has none"),
        (je.rule("je_test_sinc", standard=True), "the source does not define it"),
        (je.rule("je_test_sinc", "x0", "x1"), "does not fit the function, which is declared as double"),
        (je.rule("je_test_wave", "x0", "x1"), "None for every integer"),
        (je.rule("je_test_log", "x0"), "no pointers"),
    ],
)
def test_rules_that_do_not_fit(rule: UserRule, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        attached(load(_SOURCE, "both", "c").ir, [rule])


@pytest.mark.parametrize(
    ("formula", "message"),
    [("x0 +", "does not parse"), ("x1 * x0", "reads x1"), ("z", "is no argument"), ("x0 ** 2", "not understood")],
)
def test_formulas_that_are_wrong(formula: str, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        je.rule("f", formula)


def test_a_formula_calls_functions_as_they_are() -> None:
    with pytest.raises(SignatureError, match="calls sin with 2 arguments"):
        je.rule("f", "sin(x0, x0)")
    assert je.rule("f", 2.0) == je.rule("f", "2.0")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ((SINE, je.inactive("je_test_sine")), "two rules for `je_test_sine`"),
        (("je_test_sine",), "is given 'je_test_sine'"),
        (SINE, "is given UserRule"),
        ("a word", "is given 'a word'"),
        (3, "is given 3"),
    ],
)
def test_what_is_no_set_of_rules(rules: Any, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        je.kernel(_SOURCE, "both", "x: f64 -> f64", lang="c", rules=rules)


def test_a_rule_needs_a_symbol_and_formulas() -> None:
    with pytest.raises(SignatureError, match="is no symbol"):
        je.inactive("log message")
    with pytest.raises(SignatureError, match="has no formula"):
        je.rule("f")
    with pytest.raises(SignatureError, match="has a rule already"):
        attached(load("double erf(double); double f(double x) { return erf(x); }", "f", "c").ir, [je.rule("erf", "1")])


# -- pairs of functions ----------------------------------------------------------------------------------------------

_PAIRS = """
#include <stdlib.h>
void je_test_mix(int n, const double *x, double *y);
double je_test_sum(int n, const double *x);

/* y[i] = x[i] * x[n - 1 - i] + y[i] */
void mix_jvp(int n, const double *x, double *y, const double *dx, double *dy) {
    je_test_mix(n, x, y);
    for (int i = 0; i < n && dy; i++)
        if (dx) dy[i] += dx[i] * x[n - 1 - i] + x[i] * dx[n - 1 - i];
}
typedef struct { int n; double *x; double *xbar; const double *ybar; } frame;
void *mix_forward(int n, const double *x, double *y, double *xbar, double *ybar, long stable, void *arena) {
    frame *f = malloc(sizeof *f);
    *f = (frame){n, malloc(n * sizeof *x), xbar, ybar};
    for (int i = 0; i < n; i++) f->x[i] = x[i];
    je_test_mix(n, x, y);
    return f;
}
void mix_reverse(void *kept) {
    frame *f = kept;
    for (int i = 0; i < f->n && f->xbar && f->ybar; i++) {
        f->xbar[i] += f->ybar[i] * f->x[f->n - 1 - i];
        f->xbar[f->n - 1 - i] += f->ybar[i] * f->x[i];
    }
    free(f->x);
    free(f);
}

typedef struct { double value, tangent; } dual;
typedef struct { double value; void *kept; } swept;
dual sum_jvp(int n, const double *x, const double *dx) {
    dual out = {je_test_sum(n, x), 0};
    for (int i = 0; i < n && dx; i++) out.tangent += dx[i];
    return out;
}
swept sum_forward(int n, const double *x, double *xbar, long stable, void *arena) {
    frame *f = malloc(sizeof *f);
    *f = (frame){n, 0, xbar, 0};
    return (swept){je_test_sum(n, x), f};
}
void sum_reverse(void *kept, double seed) {
    frame *f = kept;
    for (int i = 0; i < f->n && f->xbar; i++) f->xbar[i] += seed;
    free(f);
}

double k(int n, const double *x, double *y) {
    double s = 0;
    for (int t = 0; t < 3; t++) {
        je_test_mix(n, x, y);
        s += je_test_sum(n, y) * x[t % n];
    }
    return s;
}
"""
_PAIR_LIBRARY = """
void je_test_mix(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] += x[i] * x[n - 1 - i]; }
double je_test_sum(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
"""
MIX = je.rule(
    "je_test_mix",
    signature="n: i32, x: f64[n], inout y: f64[n]",
    jvp="mix_jvp",
    vjp=("mix_forward", "mix_reverse"),
)
SUM = je.rule("je_test_sum", signature="n: i32, x: f64[n] -> f64", jvp="sum_jvp", vjp=("sum_forward", "sum_reverse"))


def test_pairs_of_functions() -> None:
    program = load(_PAIRS, "k", "c")
    program = type(program)(attached(program.ir, (MIX, SUM)), "k", "c", program.source_name)
    signature = parse("n: i32, x: f64[n], inout y: f64[n] -> f64")
    subject = Native(program, signature, Binding.of({"n": 4}, {}), Options())
    r = np.random.default_rng(2)
    agree(three_way(subject, [r.normal(size=4), r.normal(size=4)]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"jvp": "a"}, "neither of formulas nor of functions"),
        ({"signature": "x: f64, out y: f64[]", "jvp": "a", "vjp": ("b", "c")}, "cannot be differentiated"),
        ({"signature": "x: f64[2] -> i32", "jvp": "a", "vjp": ("b", "c")}, "returns i32"),
    ],
)
def test_pairs_that_are_wrong(words: dict[str, object], message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        je.rule("f", **words)


def test_a_pair_that_does_not_fit() -> None:
    wrong = je.rule("je_test_sum", signature="x: f64[2] -> f64", jvp="a", vjp=("b", "c"))
    with pytest.raises(SignatureError, match="does not fit the function"):
        attached(load(_PAIRS, "k", "c").ir, [wrong])
