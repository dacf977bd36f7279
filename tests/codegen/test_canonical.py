"""The canonical form: optimised before differentiation, regular, without alias scopes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jax_enzyme.analysis.objects import is_memory_free
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.object import build_function
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.signature import Binding
from jax_enzyme.signature import parse as parse_signature
from jax_enzyme.transform.bind import bind
from tests.support.native import call
from tests.support.verified import verify

_NORM = """
#include <math.h>
static {inline} double mag(const double *a, long n) {{
    double s = 0;
    for (long i = 0; i < n; i++) s += a[i] * a[i];
    return sqrt(s);
}}
void norm(double *out, const double *in, long n) {{
    for (long i = 0; i < n; i++) out[i] = in[i] / mag(in, n);
}}
"""
_EXITS = """
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) {
        if (x[i] > 10) { *y = -1; return; }
        switch ((int)x[i]) {
            case 0: *y += x[i]; break;
            case 3: *y *= x[i]; break;
            case 4: *y -= 1; break;
            case 7: *y = 2 * x[i]; return;
            default: *y += 0.5;
        }
    }
}
"""
_RECURSIVE = """
static double power(double x, int n) { return n == 0 ? 1 : n % 2 ? x * power(x * x, n / 2) : power(x * x, n / 2); }
void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = power(x[i], i); }
"""


def _bound(source: str, symbol: str, signature: str, **dims: int) -> ArrayFunction:
    program = load(source, symbol, lang="c")
    return bind(parse(program.ir), symbol, parse_signature(signature), Binding.of(dims, {}))


def _agrees(function: ArrayFunction, *arrays: np.ndarray) -> ArrayFunction:
    """The canonical form, checked to be valid and to compute what the original does."""
    result = canonical(function)
    verify(result.module)
    expected = call(build_function(function), arrays)
    for ours, theirs in zip(call(build_function(result), arrays), expected, strict=True):
        assert np.array_equal(ours, theirs)
    return result


@pytest.mark.parametrize("inline", ["", "__attribute__((noinline))", "__attribute__((always_inline))"])
def test_invariant_call_leaves_the_loop_before_it_is_inlined(inline: str) -> None:
    function = _bound(_NORM.format(inline=inline), "norm", "out y: f64[n], x: f64[n], n: i64", n=100)
    result = _agrees(function, np.linspace(1, 2, 100))
    text = to_text(result.module)
    assert "call double @mag" not in text
    # Two loops one after the other, not one in the other: the root is taken between them.
    sqrt, loops = text.index("@llvm.sqrt.f64(double %"), [m.start() for m in re.finditer("= icmp eq i64 .*, 100", text)]
    assert len(loops) == 2 and loops[0] < sqrt < loops[1]


def test_one_exit_and_no_switch() -> None:
    function = _bound(_EXITS, "f", "x: f64[n], inout y: f64[], n: i32", n=6)
    for x in ([0.5, 3.5, 4.5, 5, 6, 0.1], [0.5, 7.5, 1, 1, 1, 1], [0.5, 11, 1, 1, 1, 1]):
        result = _agrees(function, np.array(x), np.array(1.0))
    text = to_text(result.module)
    assert text.count(" ret i64") == 1
    assert " switch " not in text


def test_recursion_stays_a_call() -> None:
    result = _agrees(_bound(_RECURSIVE, "f", "x: f64[n], out y: f64[n], n: i32", n=9), np.linspace(-1, 2, 9))
    assert "@power(" in to_text(result.module)


def test_alias_scopes_go() -> None:
    source = """
static inline void add(double *restrict a, const double *restrict b, int n) {
    for (int i = 0; i < n; i++) a[i] += b[i];
}
void f(double *x, const double *y, int n) { add(x, y, n); add(x + 1, y + 1, n - 1); }
"""
    function = _bound(source, "f", "inout x: f64[n], y: f64[n], n: i32", n=8)
    text = to_text(_agrees(function, np.arange(8.0), np.ones(8)).module)
    assert "!alias.scope" not in text and "!noalias" not in text and "noalias.scope.decl" not in text


def test_lines_of_the_source_stay() -> None:
    text = to_text(canonical(_bound(_EXITS, "f", "x: f64[n], inout y: f64[], n: i32", n=6)).module)
    assert "!DILocation(line: 7" in text


def test_the_argument_does_not_change() -> None:
    function = _bound(_EXITS, "f", "x: f64[n], inout y: f64[], n: i32", n=6)
    before = to_text(function.module)
    canonical(function)
    assert to_text(function.module) == before


def test_functions_that_always_fail_have_an_end() -> None:
    """Those of abstract classes, say. Only of the kernel itself is it refused."""
    text = """
define double @fails(double %x) {
  call void @llvm.trap()
  unreachable
}
define i64 @je.primal() {
  call void @unknown(ptr @fails)
  ret i64 0
}
declare void @unknown(ptr)
declare void @llvm.trap()
"""
    result = canonical(ArrayFunction(parse(text), "je.primal", ()))
    verify(result.module)
    assert result.module.functions["fails"].blocks[-1].terminator.opcode == "ret"


def test_groups_of_attributes_say_what_touches_no_memory() -> None:
    function = _bound(
        "#include <math.h>\nvoid f(const double *x, double *y) { *y = erf(*x); }", "f", "x: f64[], out y: f64[]"
    )
    calls = [i for i in canonical(function).module.functions[function.symbol].instructions() if callee_name(i) == "erf"]
    assert len(calls) == 1 and all(map(is_memory_free, calls))


def test_a_kernel_that_nobody_else_needs_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither on its way here, nor to see whether anything is left to inline."""
    copies: list[Module] = []

    def seen(module: Module) -> Module:
        copies.append(module)
        return clone(module)

    monkeypatch.setattr("jax_enzyme.codegen.canonical.clone", seen)
    program = load(
        "double f(int n, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }", "f", "c"
    )
    derived.regular(program, parse_signature("n: i32, x: f64[n] -> f64"), Binding.of({"n": 33}, {}))
    assert not copies
