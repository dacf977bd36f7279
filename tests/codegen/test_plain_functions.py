"""What `je.ad.differentiate` assumes of functions of a program: each case is right, or refused at its line."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.frontends import load
from jax_enzyme.ir.writer import to_text

_D, _L, _P, _I = ctypes.c_double, ctypes.c_longdouble, ctypes.c_void_p, ctypes.c_int32
_MODES = ("forward", "reverse")


class Pair(ctypes.Structure):
    _fields_ = (("value", _D), ("tangent", _D))


@contextmanager
def machine(text: str) -> Iterator[Callable[..., ctypes._CFuncPtr]]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.finalize_object()
    yield lambda name, result, *types: ctypes.CFUNCTYPE(result, *types)(engine.get_function_address(name))


def derived(source: str, mode: str, words: tuple[str, ...] | None = None, options: je.Options | None = None) -> str:
    return to_text(je.ad.differentiate(load(source, "f", "c").ir, "f", mode, words, options=options))


def slope(at: Callable[..., ctypes._CFuncPtr], mode: str, x: float, *rest: int) -> float:
    """df/dx of `double f(double x, int ...)`."""
    kinds = [_I] * len(rest)
    if mode == "forward":
        return at("f_jvp", Pair, _D, _D, *kinds)(x, 1.0, *rest).tangent
    bar = np.zeros(1)
    at("f_vjp", None, _D, _P, *kinds, _D)(x, bar.ctypes.data, *rest, 1.0)
    return float(bar[0])


STATE = """
#include <stdlib.h>
double scale = 1, total; static int calls; static double room[4]; static double *heap;
void set(double s, double t) { scale = s; total = t; }
int count(void) { return calls; }
static double power(double x, int n) { return n <= 0 ? x : power(x * scale, n - 1) * power(x, n - 2); }
double f(double x, int n) {
    calls++;
    total += x * x;
    for (int i = 0; i < 4; i++) room[i] = x * (i + 1);
    heap = malloc(n * sizeof *heap);
    for (int i = 0; i < n; i++) heap[i] = scale * room[i];
    double s = total * x + power(x, 3);
    for (int i = 0; i < n; i++) s += heap[i] * room[3 - i];
    free(heap);
    return s;
}
"""


@pytest.mark.parametrize("mode", _MODES)
def test_file_scope_variables_are_the_programs(mode: str) -> None:
    with machine(derived(STATE, mode, ("active", "const"))) as at:
        put, primal = at("set", None, _D, _D), at("f", _D, _D, _I)

        def value(x: float) -> float:
            put(3.0, 2.0)
            return primal(x, 4)

        expected = (value(1.1 + 1e-6) - value(1.1 - 1e-6)) / 2e-6
        put(3.0, 2.0)
        before = at("count", _I)()
        np.testing.assert_allclose(slope(at, mode, 1.1, 4), expected, rtol=1e-8)
        assert at("count", _I)() == before + 1


LED_ELSEWHERE = {
    "allocated": ("static double *kept;", "kept = malloc(16); kept[1] = x * x * x; return kept[1];", "kept[1]", 27.0),
    "cursor": ("static double t[3] = {1, 2, 3}, *kept = t;", "return *kept++ * x * x * x;", "*kept", 2.0),
    "swapped": (
        "static double a = 2, b = 5, *kept = &a, *other = &b;",
        "double *t = kept; kept = other; other = t; return x * x * x;",
        "*kept * 10 + *other",
        52.0,
    ),
    "once": (
        "static double *kept, n;",
        "if (!kept) { kept = malloc(8); n++; *kept = 1; } return *kept * x * x * x;",
        "n",
        1,
    ),
}


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("name", LED_ELSEWHERE)
def test_pointers_at_file_scope_lead_where_the_function_leaves_them(name: str, mode: str) -> None:
    variables, body, seen, after = LED_ELSEWHERE[name]
    look = f"double look(void) {{ return {seen}; }}"
    with machine(derived(f"#include <stdlib.h>\n{variables}\n{look} double f(double x) {{ {body} }}", mode)) as at:
        assert slope(at, mode, 3.0) == 27.0
        assert at("look", _D)() == after


def test_what_a_linear_function_leaves_in_the_callers_memory() -> None:
    """The reverse sweep reads none of it."""
    source = "void f(int n, double *x) { for (int k = 0; k < 3; k++) for (int i = 1; i < n; i++) x[i] += x[i - 1]; }"
    x, bar = np.ones(4), np.ones(4)
    with machine(derived(source, "reverse", ("const", "active"))) as at:
        at("f_vjp", None, _I, _P, _P)(4, x.ctypes.data, bar.ctypes.data)
    np.testing.assert_array_equal(x, [1.0, 4.0, 10.0, 20.0])
    np.testing.assert_array_equal(bar, [20.0, 10.0, 4.0, 1.0])


def test_a_variable_of_another_file() -> None:
    text = derived("extern double scale; double f(double x) { return scale * x * x; }", "forward")
    with machine(text.replace("@scale = external global double", "@scale = global double 5.0")) as at:
        assert slope(at, "forward", 3.0) == 30.0


RECORD = "struct record { double *p; int n; };\n"


@pytest.mark.parametrize("mode", _MODES)
def test_memory_of_the_callers(mode: str) -> None:
    """What pointers in memory lead to may be read, and written with what has no derivative."""
    source = RECORD + (
        "double f(struct record *r, double x) {"
        " double s = 0; for (int i = 0; i < r->n; i++) { s += r->p[i] * x * x; r->p[i] = 1; } return s; }"
    )

    class Record(ctypes.Structure):
        _fields_ = (("p", _P), ("n", _I))

    numbers = np.array([2.0, 3.0])
    record = Record(numbers.ctypes.data, 2)
    with machine(derived(source, mode, ("const", "active"))) as at:
        if mode == "forward":
            got = at("f_jvp", Pair, _P, _D, _D)(ctypes.addressof(record), 3.0, 1.0).tangent
        else:
            bar = np.zeros(1)
            at("f_vjp", None, _P, _D, _P, _D)(ctypes.addressof(record), 3.0, bar.ctypes.data, 1.0)
            got = bar[0]
    assert got == 30.0
    np.testing.assert_array_equal(numbers, 1.0)


@pytest.mark.parametrize("mode", _MODES)
def test_a_structure_at_file_scope(mode: str) -> None:
    source = (
        "struct state { double *p; double s; int n; } now;"
        "void set(double *p, double s, int n) { now.p = p; now.s = s; now.n = n; }"
        "double f(double x) { double a = 0; for (int i = 0; i < now.n; i++) a += now.p[i] * x; return a * now.s * x; }"
    )
    with machine(derived(source, mode)) as at:
        p = np.array([1.0, 2.0])
        at("set", None, _P, _D, _I)(p.ctypes.data, 3.0, 2)
        assert slope(at, mode, 2.0) == 36.0


def test_copies_between_parameters() -> None:
    source = "#include <string.h>\nvoid f(double *x, double *y) { memmove(y, x, 16); y[0] *= x[1]; }"
    with machine(derived(source, "reverse")) as at:
        x, bar = np.array([2.0, 3.0, 4.0]), np.ones(3)
        both = (x.ctypes.data, bar.ctypes.data)
        at("f_vjp", None, *[_P] * 4)(*both, *(v + 8 for v in both))
    np.testing.assert_array_equal(bar, [5.0, 1.0, 0.0])


CHOICE = "double f(struct record *r, double *x, int flag) {\n  double *q;\n  %s\n  return q[0] * q[0]; }"


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("words", [("const", "active", "const"), ("active", "active", "const")])
@pytest.mark.parametrize("pick", ["q = flag ? x : r->p;", "if (flag) { q = x; x[1] = 2; } else q = r->p;"])
def test_a_pointer_to_either(mode: str, words: tuple[str, ...], pick: str) -> None:
    with pytest.raises(
        je.DifferentiationError, match=r"(?s)parameter 1 of `f` leads to memory that holds pointers.*:4"
    ):
        derived(RECORD + CHOICE % pick, mode, words)


REFUSED = {
    "stored for the caller": (
        RECORD
        + "double f(struct record *r, double x) {\n  r->p[0] = x * x; r->p[1] = r->p[0] * x;\n  return r->p[r->n]; }",
        ("const", "active"),
        "parameter 1 of `f` leads to memory that holds pointers",
    ),
    "variable with a pointer to another": (
        "double room[3]; double *p; double f(double x) {\n  room[0] = x * x;\n  return p[0]; }",
        ("active",),
        "file-scope variable `room` may hold, or share",
    ),
    "variable that starts with the address of another": (
        "double room[3]; double *table[1] = {room}; double f(double x) {\n  room[0] = x * x;\n  return table[0][0]; }",
        ("active",),
        "file-scope variable `(room|table)` may hold, or share",
    ),
    "variable with active memory": (
        "double *p; double f(double *x, int n) {\n  double *q = n ? x : p;\n  return q[0] * q[0]; }",
        ("active", "const"),
        "file-scope variable `p` may hold, or share",
    ),
    "pointer to a variable, returned": (
        "double *f(double x) {\n  static double room[2]; room[0] = x * x;\n  return room; }",
        ("active",),
        "`f` returns a pointer to memory with derivatives",
    ),
    "rows of an active table": (
        "double f(double **rows, double x) {\n  return rows[1][0] * x; }",
        ("active", "active"),
        "parameter 1 of `f` leads to memory that holds pointers",
    ),
    "memory that unknown code is given": (
        "void order(double *); double f(double *x) {\n  order(x); return x[0] * x[1]; }",
        ("active",),
        "call of `order`: a derivative depends on it",
    ),
    "function of the caller's": (
        "typedef double (*fun)(double); double f(fun g, double x) {\n  return 2 * g(x); }",
        ("const", "active"),
        "a call through a pointer",
    ),
    "memory that such a function leads to": (
        "typedef double *(*fun)(double *); double f(fun g, double *x) {\n  return *g(x) * x[0]; }",
        ("const", "active"),
        "a call through a pointer",
    ),
    "address that is passed as an integer": (
        "double f(unsigned long at, const double *x) {\n  const double *q = at ? (double *)at : x;\n"
        "  return q[0] * x[0]; }",
        ("const", "active"),
        "memory that is reached through a pointer of unknown origin",
    ),
    "function in memory": (
        "struct s { double (*g)(double); }; double f(struct s *s, double x) {\n  return 2 * s->g(x); }",
        ("const", "active"),
        "a call through a pointer",
    ),
}


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, mode: str) -> None:
    source, words, message = REFUSED[name]
    with pytest.raises(je.DifferentiationError, match=rf"(?s){message}.*kernel.c:\d"):
        derived(source, mode, words)


def test_a_function_of_the_callers_without_derivative() -> None:
    source = "typedef void (*fun)(int); double f(double x, fun g) { g(3); return x * x; }"
    seen: list[int] = []
    note = ctypes.CFUNCTYPE(None, _I)(seen.append)
    with machine(derived(source, "forward", ("active", "const"))) as at:
        assert at("f_jvp", Pair, _D, _D, _P)(3.0, 1.0, ctypes.cast(note, _P)).tangent == 6.0
    assert seen == [3]


def test_long_double_by_value() -> None:
    with machine(derived("long double f(long double x) { return x * x * x; }", "reverse")) as at:
        bar = _L(0)
        at("f_vjp", None, _L, _P, _L)(_L(2), ctypes.addressof(bar), _L(1))
    assert bar.value == 12


def test_a_structure_by_value_is_a_copy() -> None:
    source = "struct s { double a, b, c; }; double f(struct s s) { s.a *= s.c; return s.a * s.b; }"
    with machine(derived(source, "reverse")) as at:
        s, bar = np.array([2.0, 3.0, 5.0]), np.zeros(3)
        at("f_vjp", None, _P, _P, _D)(s.ctypes.data, bar.ctypes.data, 1.0)
    np.testing.assert_array_equal(bar, [15.0, 10.0, 6.0])
    np.testing.assert_array_equal(s, [2.0, 3.0, 5.0])


def test_checkpoints_need_sizes() -> None:
    source = "void f(int n, double *x) { for (int i = 0; i < n; i++) x[i % 3] = x[0] * x[1]; }"
    with pytest.raises(je.DifferentiationError, match="what parameter 2 leads to, whose size nobody says"):
        derived(source, "reverse", options=je.Options(checkpoint="sqrt"))


CHAIN = """
void f(int n, double *x, double *y) {
    for (int i = 0; i < n; i++) { y[i] = x[i] * x[n - 1 - i] + y[i] * x[i]; x[i] *= y[n - 1 - i]; }
}
"""


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_parameters_that_overlap(mode: str, start: int) -> None:
    """The same memory, memory that overlaps, and memory that lies behind, with derivatives that lie so as well."""
    r = np.random.default_rng(start)
    memory, direction, weights = (r.uniform(0.5, 1.5, 3 + start) for _ in range(3))
    with machine(derived(CHAIN, mode)) as at:
        primal = at("f", None, _I, _P, _P)

        def value(step: float) -> float:
            changed = memory + step * direction
            primal(3, changed.ctypes.data, changed[start:].ctypes.data)
            return float(weights @ changed)

        expected = (value(1e-6) - value(-1e-6)) / 2e-6
        found = (direction if mode == "forward" else weights).copy()
        both = [v.ctypes.data for v in (memory.copy(), found)]
        name = "f_jvp" if mode == "forward" else "f_vjp"
        at(name, None, _I, _P, _P, _P, _P)(3, *both, *(v + 8 * start for v in both))
    np.testing.assert_allclose(found @ (weights if mode == "forward" else direction), expected, rtol=1e-7)


def test_a_split_derivative_of_one_piece_of_memory() -> None:
    source = "double f(double *x, double *y) { for (int i = 0; i < 3; i++) y[i] = x[i] * x[i] * y[i]; return y[0]; }"
    with machine(derived(source, "split")) as at:
        x, bar, tape = np.array([2.0, 3.0, 5.0]), np.zeros(3), np.zeros(64)
        assert at("f_augmented", _D, _P, _P, _P)(x.ctypes.data, x.ctypes.data, tape.ctypes.data) == 8.0
        both = (x.ctypes.data, bar.ctypes.data)
        at("f_pullback", None, *[_P] * 4, _D, _D, _P)(*both, *both, 8.0, 1.0, tape.ctypes.data)
    np.testing.assert_array_equal(bar, [12.0, 0.0, 0.0])


@pytest.mark.parametrize("restrict", ["", "restrict"])
def test_what_is_read_alone_may_be_passed_twice(restrict: str) -> None:
    source = """double f(int n, const double *R x, const double *R y) {
        double s = 0;
        for (int i = 0; i < n; i++) s += sin(x[0]) * y[i];
        return s;
    }"""
    text = derived(f"#include <math.h>\n{source}".replace("R", restrict), "reverse")
    native = llvm.parse_assembly(text)
    target = llvm.Target.from_default_triple().create_target_machine()
    # What says that it lies apart would be kept in registers throughout the loop.
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(target, tuning)
    builder.getModulePassManager().run(native, builder)
    x, bar = np.array([2.0, 3.0]), np.zeros(2)
    with machine(str(native)) as at:
        both = (x.ctypes.data, bar.ctypes.data)
        at("f_vjp", None, _I, *[_P] * 4, _D)(2, *both, *both, 1.0)
    np.testing.assert_allclose(bar, [np.cos(2.0) * 5 + np.sin(2.0), np.sin(2.0)])


def test_parameters_of_their_own_need_no_choice() -> None:
    restricted = CHAIN.replace("*x", "*restrict x", 1).replace("*y", "*restrict y", 1)
    for source in (restricted, "double f(double *x, double *y) { return x[0] * y[0]; }"):
        assert "f_vjp.apart" not in derived(source, "reverse")


FAILING = """
#include <assert.h>
#include <stdlib.h>
#include <string.h>
double f(double x, int how) {
    double a[4] = {x, x, x, x}, b[4] = {x, x / 3, x / 7, x};
    memcpy(a, b, how == 5 ? 20 : how * 8);
    if (how == 1) exit(3);
    if (how == 2) abort();
    assert(how != 3);
    if (how == 4) __builtin_trap();
    return x * (how == 5 ? a[2] : a[0]);
}
"""
_RUNS = """
import os, sys
import ctypes, numpy as np, os
from tests.codegen.test_plain_functions import CHAIN, FAILING, derived, machine, slope
for mode in ("forward", "reverse"):
    with machine(derived(FAILING, mode, ("active", "const"))) as at:
        for how in range(6):
            child = os.fork()
            if not child:
                os._exit(77 if slope(at, mode, 3.0, how) == 6.0 else 78)
            print(mode, how, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
GLOBAL = "double scale[2]; double *place(void) { return scale + 1; } void f(double *x) { x[0] *= scale[0]; }"
with machine(derived(GLOBAL, "forward")) as at:
    bar = np.ones(1).ctypes
    if not os.fork():
        at("f_jvp", None, *[ctypes.c_void_p] * 2)(at("place", ctypes.c_void_p)(), bar.data)
    os.wait()
with machine(derived(CHAIN, "reverse")) as at:
    kept = np.ones((3, 3))
    x, bar, other = (row.ctypes.data for row in kept[:3])
    at("f_vjp", None, ctypes.c_int, *[ctypes.c_void_p] * 4)(3, x, bar, x, other)
"""


def test_a_function_that_fails_has_derivatives_that_do() -> None:
    done = subprocess.run([sys.executable, "-c", _RUNS], capture_output=True, text=True, cwd=os.getcwd())
    found = [line.split() for line in done.stdout.splitlines()]
    assert [f[2] for f in found] == ["77", "3", "-6", "-6", "-6", "-6"] * 2, done.stderr
    for name in ("f_jvp", "f_vjp"):
        assert f"{name}: `abort` was called (kernel.c:9" in done.stderr
        assert f"{name}: assertion `how != 3` failed" in done.stderr
        assert f"{name}: memory is copied or cleared from or up to a place within a number" in done.stderr
    assert "f_jvp: parameter 1 leads to the file-scope variable `scale`" in done.stderr
    # At last, one memory with two places for its derivatives.
    assert done.returncode == -6 and "f_vjp: parameters 2 and 3 lead to the same memory" in done.stderr


def test_an_exception_aborts() -> None:
    source = 'extern "C" double f(double x) { if (x < 0) throw 5; return x * x; }'
    text = to_text(je.ad.differentiate(load(source, "f", "c++").ir, "f"))
    assert "f_vjp: C++ exception `int`" in text


@pytest.mark.parametrize("mode", _MODES)
def test_a_function_is_called_as_it_is_defined(mode: str) -> None:
    """An optimiser gives functions that nobody else sees a convention of their own, `fastcc`, and takes a call in
    another one for undefined."""
    source = """
    define internal fastcc double @f(double %x, i32 %n) {
      %last = icmp slt i32 %n, 2
      br i1 %last, label %out, label %more
    more:
      %one = sub i32 %n, 1
      %two = sub i32 %n, 2
      %a = call fastcc double @f(double %x, i32 %one)
      %b = call fastcc double @f(double %x, i32 %two)
      %r = fmul double %a, %b
      ret double %r
    out:
      ret double %x
    }"""
    with machine(to_text(je.ad.differentiate(source, "f", mode))) as at:
        np.testing.assert_allclose(slope(at, mode, 1.5, 4), 5 * 1.5**4, rtol=1e-14)


def test_what_is_not_used_is_not_looked_at() -> None:
    source = """
    #include <setjmp.h>
    static double old(double x) { asm volatile("" : "+x"(x)); return x; }
    double (*table[2])(double) = {old, old};
    static void __attribute__((constructor)) start(void) { table[0] = 0; }
    double unused(double x, jmp_buf b) { if (setjmp(b)) return x; return table[1](x); }
    double f(double x) { return 3 * x * x; }
    """
    text = derived(source, "reverse")
    assert text.count("@llvm.global_ctors = ") == 1 and "@start.1" not in text
    with machine(text) as at:
        assert slope(at, "reverse", 2.0) == 12.0
