"""Vectorised loops call libmvec where there is one, and only where that is allowed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jax_enzyme.codegen.object import build_function, entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.codegen.vector_math import vector_functions
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.options import Options
from tests.codegen.support import array_function, elementwise, vector
from tests.support.native import call

N = 1003
_EXP = "declare double @llvm.exp.f64(double)"
needs_libmvec = pytest.mark.skipif(not vector_functions(), reason="this system has no libmvec")


def _calls(function: ArrayFunction, options: Options | None = None) -> set[str]:
    text = optimised_text(entry_module(function), options or Options())
    return set(re.findall(r"call .*@(\w+)\(", text))


def _function(expression: str, declarations: str, dtype: str = "f64") -> ArrayFunction:
    type_ = {"f64": "double", "f32": "float"}[dtype]
    text = elementwise(expression, N, type_, declarations)
    return array_function(text, vector("x", N, dtype=dtype), vector("y", N, "out", dtype))


@needs_libmvec
def test_intrinsics_become_vector_calls() -> None:
    function = _function("%y = call double @llvm.exp.f64(double %x)", _EXP)
    assert any(name.startswith(("_ZGVdN", "_ZGVeN", "_ZGVbN")) and name.endswith("_exp") for name in _calls(function))
    x = np.linspace(-700, 700, N)
    assert np.allclose(call(build_function(function), [x])[0], np.exp(x), rtol=1e-15 * 5, atol=0)


@needs_libmvec
def test_calls_for_vectors_take_as_many_of_the_library() -> None:
    text = """declare <8 x double> @llvm.pow.v8f64(<8 x double>, <8 x double>)
define i64 @je.primal(ptr noalias %x, ptr noalias %y) {
  %v = load <8 x double>, ptr %x, align 8
  %p = call <8 x double> @llvm.pow.v8f64(<8 x double> %v, <8 x double> %v)
  store <8 x double> %p, ptr %y, align 8
  ret i64 0
}"""
    function = array_function(text, vector("x", 8), vector("y", 8, "out"))
    assert {name[:4] for name in _calls(function)} == {"_ZGV"}
    x = np.linspace(0.3, 3, 8)
    for options in (Options(), Options(vector_math=False)):
        assert np.allclose(call(build_function(function, options), [x])[0], x**x, rtol=1e-15 * 5, atol=0)


@needs_libmvec
@pytest.mark.parametrize(("dtype", "type_", "suffix"), [("f64", "double", ""), ("f32", "float", "f")])
@pytest.mark.parametrize("name", ["tanh", "erf", "cbrt", "log1p", "asinh"])
def test_every_width_is_within_four_ulp(name: str, dtype: str, type_: str, suffix: str) -> None:
    declaration = f"declare {type_} @{name}{suffix}({type_})"
    function = _function(f"%y = call {type_} @{name}{suffix}({type_} %x)", declaration, dtype)
    assert any(n.endswith(f"_{name}{suffix}") and n.startswith("_ZGV") for n in _calls(function))
    x = np.linspace(0.01, 3.0, N).astype(dtype.replace("f", "float"))
    vectorised = call(build_function(function), [x])[0]
    scalar = call(build_function(function, Options(vector_math=False)), [x])[0]
    assert np.all(np.abs(vectorised - scalar) <= 5 * np.spacing(np.abs(scalar)))


@needs_libmvec
def test_calls_under_a_condition_are_masked() -> None:
    body = """%positive = fcmp ogt double %x, 0.0
  br i1 %positive, label %then, label %join

then:
  %l = call double @log(double %x)
  br label %join

join:
  %y = phi double [ %l, %then ], [ 0.0, %loop ]"""
    text = elementwise(body, N, declarations="declare double @log(double)").replace("%next, %loop ]", "%next, %join ]")
    function = array_function(text, vector("x", N), vector("y", N, "out"))
    called = _calls(function)
    assert any(name.endswith("v_log") for name in called)
    assert not any("masked" in name for name in called)
    x = np.linspace(-2, 2, N)
    expected = np.log(np.where(x > 0, x, 1.0))
    assert np.allclose(call(build_function(function), [x])[0], expected, rtol=1e-14, atol=0)


def test_option_keeps_calls_scalar() -> None:
    function = _function("%y = call double @llvm.exp.f64(double %x)", _EXP)
    assert not any(name.startswith("_ZGV") for name in _calls(function, Options(vector_math=False)))


def test_modules_that_read_errno_keep_their_calls() -> None:
    errno = """declare double @log(double)
declare ptr @__errno_location()
define i32 @failed() {
  %p = call ptr @__errno_location()
  %e = load i32, ptr %p
  ret i32 %e
}"""
    function = _function("%y = call double @log(double %x)", errno)
    assert not any(name.startswith("_ZGV") for name in _calls(function))


def test_a_function_of_the_kernel_that_has_a_name_of_math_h_is_the_kernels() -> None:
    own = "define double @exp(double %x) {\n  %r = fadd double %x, 1.0\n  ret double %r\n}"
    function = _function("%y = call double @exp(double %x)", own)
    x = np.linspace(0, 1, N)
    assert np.array_equal(call(build_function(function), [x])[0], x + 1)


def test_a_declaration_of_another_type_is_left_alone() -> None:
    function = _function("%y = call double @pow(double %x)", "declare double @pow(double)")
    assert not any(name.startswith("_ZGV") for name in _calls(function))
