"""`je.ad.differentiate`: derivatives in IR agree with one another and with differences, called through LLVM's JIT."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import llvmlite.binding as llvm
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.frontends import load
from jax_enzyme.ir import types as T
from jax_enzyme.ir.instructions import Call
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import read
from jax_enzyme.ir.writer import to_text

_SOURCE = """
#include <math.h>
#include <stdlib.h>

double weighted(int n, const double *x, double a, double *y) {
    double s = 0;
    for (int i = 0; i < n; i++) {
        y[i] = y[i] * sin(a * x[i]);
        s += y[i] * x[i];
    }
    return s * s;
}

void squares(int n, const float *x, float *y) {
    float *t = malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) t[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = t[n - 1 - i] * x[i];
    free(t);
}

double smooth(double x, double y) {
    return exp(x * y) + lgamma(x);
}

double of_four(const double *x, double *t) {
    double s = 1;
    for (int i = 0; i < 4; i++) {
        s = s * cos(x[i]) + t[i];
        t[i] = s;
    }
    return s;
}

int sign(double x) { return x < 0 ? -1 : x > 0; }

double other(double *a, double *b, int which) { double *p = which ? a : b; *p = *p * a[0]; return b[0]; }
"""
_POINTER = ctypes.c_void_p


@pytest.fixture(scope="module")
def module() -> Module:
    return read(load(_SOURCE, "weighted", "c").ir)


@contextmanager
def machine(module: Module) -> Iterator[llvm.ExecutionEngine]:
    """A plain MCJIT, as any user of llvmlite has it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    native = llvm.parse_assembly(to_text(module))
    native.verify()
    engine = llvm.create_mcjit_compiler(native, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    yield engine


def function(engine: llvm.ExecutionEngine, name: str, result: object, *types: object) -> ctypes._CFuncPtr:
    return ctypes.CFUNCTYPE(result, *types)(engine.get_function_address(name))


def pointer(array: np.ndarray) -> int:
    return array.ctypes.data


class Pair(ctypes.Structure):
    _fields_ = (("value", ctypes.c_double), ("tangent", ctypes.c_double))


def weighted(x: np.ndarray, a: float, y: np.ndarray) -> tuple[float, np.ndarray]:
    out = y * np.sin(a * x)
    return float(np.sum(out * x)) ** 2, out


def test_three_ways(module: Module) -> None:
    r = np.random.default_rng(3)
    x, y, a = r.normal(size=5), r.normal(size=5), 0.7
    dx, dy, da = r.normal(size=5), r.normal(size=5), 1.3
    w, wy = 0.9, r.normal(size=5)
    h = 1e-6
    above, below = (weighted(x + s * dx, a + s * da, y + s * dy) for s in (h, -h))
    expected = w * (above[0] - below[0]) / (2 * h) + wy @ (above[1] - below[1]) / (2 * h)

    i32, double = ctypes.c_int32, ctypes.c_double
    with machine(je.ad.differentiate(module, "weighted", "forward")) as engine:
        jvp = function(engine, "weighted_jvp", Pair, i32, *[_POINTER] * 2, double, double, *[_POINTER] * 2)
        out, tangent = y.copy(), dy.copy()
        pair = jvp(5, pointer(x), pointer(dx), a, da, pointer(out), pointer(tangent))
        value, left = weighted(x, a, y)
        np.testing.assert_allclose(pair.value, value)
        np.testing.assert_allclose(out, left)
        np.testing.assert_allclose(w * pair.tangent + wy @ tangent, expected, rtol=1e-8)
    with machine(je.ad.differentiate(module, "weighted", "reverse")) as engine:
        vjp = function(engine, "weighted_vjp", None, i32, *[_POINTER] * 2, double, *[_POINTER] * 3, double)
        out, seeds, xbar, abar = y.copy(), wy.copy(), np.ones(5), np.full(1, 10.0)
        vjp(5, pointer(x), pointer(xbar), a, pointer(abar), pointer(out), pointer(seeds), w)
        # Cotangents of what is only read are added to what was there.
        np.testing.assert_allclose((xbar - 1) @ dx + (abar[0] - 10) * da + seeds @ dy, expected, rtol=1e-8)


def test_split_with_a_static_tape(module: Module) -> None:
    r = np.random.default_rng(5)
    x, t = r.normal(size=4), r.normal(size=4)
    dx = r.normal(size=4)

    def value(x: np.ndarray) -> float:
        s = 1.0
        for i in range(4):
            s = s * np.cos(x[i]) + t[i]
        return s

    derived = je.ad.differentiate(module, "of_four", "split")
    with machine(derived) as engine:
        size = ctypes.c_int64.from_address(engine.get_global_value_address("of_four_tape_size")).value
        tape = np.zeros(size // 8 + 4)
        forward = function(engine, "of_four_augmented", ctypes.c_double, *[_POINTER] * 3)
        scratch = t.copy()
        result = forward(pointer(x), pointer(scratch), pointer(tape))
        np.testing.assert_allclose(result, value(x))
        back = function(engine, "of_four_pullback", None, *[_POINTER] * 4, *[ctypes.c_double] * 2, _POINTER)
        xbar, tbar = np.zeros(4), np.zeros(4)
        back(pointer(x), pointer(xbar), pointer(scratch), pointer(tbar), result, 1.0, pointer(tape))
    h = 1e-6
    np.testing.assert_allclose(xbar @ dx, (value(x + h * dx) - value(x - h * dx)) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize("words", [("active", "const"), ("const", "active"), ("active", "active")])
def test_numbers_by_value(module: Module, words: Sequence[str]) -> None:
    derived = je.ad.differentiate(to_text(module), "smooth", "reverse", words)
    double = ctypes.c_double
    types = [t for w in words for t in ([double, _POINTER] if w == "active" else [double])]
    with machine(derived) as engine:
        vjp = function(engine, "smooth_vjp", None, *types, double)
        bars = [np.zeros(1), np.zeros(1)]
        arguments = [
            v for w, x, b in zip(words, (1.5, 0.4), bars, strict=True) for v in [x, pointer(b)][: 1 + (w != "const")]
        ]
        vjp(*arguments, 2.0)
    digamma = 0.03648997397857652
    expected = (2 * (0.4 * np.exp(0.6) + digamma), 2 * 1.5 * np.exp(0.6))
    for word, bar, right in zip(words, bars, expected, strict=True):
        np.testing.assert_allclose(bar[0], right if word == "active" else 0, rtol=1e-12)


def test_single_precision_and_allocation(module: Module) -> None:
    x = np.array([0.5, 1.5, -2.0], np.float32)
    with machine(je.ad.differentiate(module, "squares", "reverse")) as engine:
        vjp = function(engine, "squares_vjp", None, ctypes.c_int32, *[_POINTER] * 4)
        y, ybar, xbar = np.zeros(3, np.float32), np.array([1, 0, 2], np.float32), np.zeros(3, np.float32)
        vjp(3, pointer(x), pointer(xbar), pointer(y), pointer(ybar))
    expected = [x[2] ** 2 + 2 * 2 * x[0] * x[2], 0, 2 * x[0] * x[2] + 2 * x[0] ** 2]
    np.testing.assert_allclose(xbar, np.array(expected, np.float32), rtol=1e-6)


def test_the_original_is_still_there(module: Module) -> None:
    before = to_text(module)
    derived = je.ad.differentiate(module, "smooth", "forward")
    assert {"smooth", "weighted", "smooth_jvp"} <= derived.functions.keys()
    assert to_text(module) == before
    with machine(derived) as engine:
        assert function(engine, "sign", ctypes.c_int32, ctypes.c_double)(-2.0) == -1


def test_an_integer_result_has_no_derivative(module: Module) -> None:
    with machine(je.ad.differentiate(module, "sign", "forward")) as engine:
        assert function(engine, "sign_jvp", ctypes.c_int32, *[ctypes.c_double] * 2)(2.0, 1.0) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "defines no function `nothing`"),
        (("smooth", "backward"), "no mode 'backward'"),
        (("smooth", "reverse", ("active",)), "1 words of activity for the 2 parameters"),
        (("smooth", "reverse", ("active", "maybe")), r"activity\[1\] is 'maybe'"),
        (("sign", "reverse", ("const", "const")), "2 words"),
        (("weighted", "reverse", ("active", "active", "active", "active")), "an integer is const"),
    ],
)
def test_bad_requests(module: Module, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(je.CompileError, match=message):
        je.ad.differentiate(module, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, "f"), "a module is .*, not int"),
        ((None, "f"), "not NoneType"),
        (("define double @f(double %x) { ret double %x }", 3), "symbol is .*, not 3"),
        (("define double @f(double %x) { ret double %x }", "f", "forward", "active"), "activity is a sequence"),
        (("define double @f(double %x) { ret double %x }", "f", "forward", 1), "activity is a sequence"),
    ],
)
def test_arguments_of_other_types(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(je.ArgumentError, match=message):
        je.ad.differentiate(*arguments)


@pytest.mark.parametrize("taken", ["define double @f_jvp() { ret double 1.0 }", "@f_jvp = global double 1.0"])
def test_names_that_are_taken(taken: str) -> None:
    with pytest.raises(je.CompileError, match="defines `f_jvp` already"):
        je.ad.differentiate(f"{taken} define double @f(double %x) {{ ret double %x }}", "f", "forward")


def test_arguments_without_names() -> None:
    with pytest.raises(je.CompileError, match="arguments without names"):
        je.ad.differentiate("define double @f(double %x, ...) { ret double %x }", "f")


def test_narrow_integers_are_passed_as_the_function_passes_them() -> None:
    body = "%y = load double, ptr %p store double %y, ptr %q ret i8 %n"
    text = f"define signext i8 @f(ptr %p, ptr %q, i8 signext %n) {{ {body} }}"
    for mode in ("forward", "split"):
        derived = je.ad.differentiate(text, "f", mode).functions["f_jvp" if mode == "forward" else "f_augmented"]
        assert derived.return_attributes == ("signext",)
        assert [a.attributes for a in derived.arguments if T.is_int(a.type)] == [("signext",)]


def test_memory_that_needs_a_shadow(module: Module) -> None:
    with pytest.raises(je.DifferentiationError, match="parameter 2 of `other` leads to memory with"):
        je.ad.differentiate(module, "other", "reverse", ("active", "const", "const"))


def test_broken_text() -> None:
    with pytest.raises(je.CompileError):
        je.ad.differentiate("define void @f( {", "f")


_ENDING = """
define double @f(double %x, i32 %n) {
  %y = fmul double %x, %x
  %ends = icmp eq i32 %n, 3
  br i1 %ends, label %end, label %go
end:
  CALL
  unreachable
go:
  ret double %y
}
declare void @exit(i32)
declare void @abort()
"""


@pytest.mark.parametrize(
    ("call", "declared", "texts"),
    [
        ("", set(), 0),
        ("call void @exit(i32 7)", {"exit"}, 0),
        ("call void @exit(i32 %n)", {"exit"}, 0),
        ("call void @abort()", {"abort", "write"}, 3),
    ],
)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_only_what_a_derivative_needs_is_declared(
    call: str, declared: set[str], texts: int, mode: Literal["forward", "reverse"]
) -> None:
    """A function that cannot fail has derivatives that do not look for failures."""
    made = je.ad.differentiate(_ENDING.replace("CALL", call), "f", mode)
    derived = [f for f in made.functions.values() if f.name != "f"]
    called = {i.callee.name for f in derived for i in f.instructions() if isinstance(i, Call)}
    called = {name for name in called if not name.startswith("llvm.")}
    assert {n for n, f in made.functions.items() if f.is_declaration} & called == declared
    assert len(made.globals) == texts
