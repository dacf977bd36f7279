"""Functions that call one another are not copied for every path through their calls."""

from __future__ import annotations

import numpy as np

from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.code_size import leave_large
from jax_enzyme.frontends import load
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reader import parse
from jax_enzyme.signature import Binding
from jax_enzyme.signature import parse as parse_signature
from jax_enzyme.transform.bind import bind
from tests.support.engine import agree, native, three_way

_TURN = """
#include <math.h>
static double turn(double x, double *y, int k) {
  double a = x, b = *y;
  for (int i = 0; i < 3; i++) {
    a = a * cos(b) + 0.1 * b * sin(a);
    b = a > b ? b / (1 + a * a) : sqrt(1 + b * b) - 0.5;
  }
  double s = a * b, t = tanh(s), u = a * a + b * b, v = u * t - s;
  *y = 0.9 * *y + 0.1 * atan2(u + k, 2 + v * v);
  return x + 0.1 * (t + log1p(u) / (2 + v * v) - exp(-u));
}
static double f0(double x, double *y) { return 0.5 * (turn(x, y, 0) - turn(-x, y, 1)); }
"""
_SIGNATURE = "x: f64, y: f64 -> f64"


def _chain(depth: int) -> str:
    """Three calls of the next function in each: 3 ** depth paths, of which two thirds are taken."""
    levels = (
        f"static double f{n + 1}(double x, double *y) {{ double a = f{n}(x, y), b = f{n}(a + x, y);"
        f" return b > 0 ? 0.5 * f{n}(0.5 * b, y) : 0.4 * (a - b); }}"
        for n in range(depth)
    )
    last = f"double k(double x, double y) {{ double r = f{depth}(x, &y); return r + y; }}"
    return "\n".join((_TURN, *levels, last))


def _length(module: Module) -> int:
    return sum(len(list(f.instructions())) for f in module.functions.values())


def _canonical(source: str) -> Module:
    module = parse(load(source, "k", "c").ir)
    return canonical(bind(module, "k", parse_signature(_SIGNATURE), Binding())).module


def test_length_does_not_grow_with_paths() -> None:
    short = _canonical(_chain(1))
    assert sum(not f.is_declaration for f in short.functions.values()) == 1
    assert _length(_canonical(_chain(8))) < 4000 + _length(short)


def test_derivatives_through_functions_that_stay() -> None:
    agree(three_way(native(_chain(5), "k", _SIGNATURE, {}), [np.array(0.3), np.array(0.2)]))


def test_what_has_copies_already_grows_no_more() -> None:
    """Each round of simplification would add a quarter to what the one before has made of the source."""
    arithmetic = "".join(f" s = s * x + {n}.5;" for n in range(25))
    levels = (
        f"static double g{n + 1}(double x) {{ double s = g{n}(x) * g{n}(x + 1);{arithmetic} return s; }}"
        for n in range(40)
    )
    last = "double k(double x) { return g40(x); }"
    module = parse(load("\n".join(("static double g0(double x) { return x; }", *levels, last)), "k", "c").ir)
    lengths: list[int] = []
    for _ in range(3):
        mark_for_inlining(module, ["k"])
        leave_large(module, "k", may_grow=not lengths)
        module = run(module, ["always-inline", "globaldce"])
        lengths.append(_length(module))
    assert lengths[0] > 4000
    assert lengths[2] <= 1.01 * lengths[0]


def test_functions_in_tables_are_counted() -> None:
    """As interpolation in n dimensions calls that in n - 1 twice, and a table has one of each."""
    levels = (
        f"static double g{n + 1}(double x) {{ double s = g{n}(x) * g{n}(x + 1);{' s = s * x + 1.5;' * 25} return s; }}"
        for n in range(12)
    )
    last = "double (*const table[])(double) = {g12, g11}; double k(double x, int i) { return table[i](x); }"
    module = parse(load("\n".join(("static double g0(double x) { return x; }", *levels, last)), "k", "c").ir)
    mark_for_inlining(module, ["k"])
    leave_large(module, "k")
    assert _length(run(module, ["always-inline", "globaldce"])) < 5000


def test_libraries_are_not_copied_beyond_all_bounds() -> None:
    """As every assignment of Fortran's to an allocatable variable asks what there may be to free, of all types. What
    has no places, as run-time libraries have none, is copied as long as that can be compiled."""
    arithmetic = "\n".join(f"%m{n + 1} = fadd double %m{n}, {n}.5" for n in range(500))
    calls = "\n".join(f"%v{n + 1} = call double @assign(double %v{n})" for n in range(200))
    for count, stays in ((50, False), (200, True)):
        some = "\n".join(calls.splitlines()[:count])
        module = parse(f"""
define internal double @assign(double %m0) {{
{arithmetic}
ret double %m500
}}
define double @k(double %v0) {{
{some}
ret double %v{count}
}}
""")
        mark_for_inlining(module, ["k"])
        leave_large(module, "k")
        assert _length(module) < 1000
        length = _length(run(module, ["always-inline", "globaldce"]))
        assert length < 1000 if stays else length > 500 * count
