"""Stores to objects that a loop comes to in other iterations than its first."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.analysis.other_objects import leads_elsewhere
from jax_enzyme.ir.reader import parse

LOOP = """
declare void @swap(ptr, ptr)
define double @f(i64 %n, ptr %x, ptr %y) {{
entry:
  %a = alloca [2 x double]
  %b = alloca [2 x double]
  %variable = alloca ptr
  {first}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  {pointer}
  %v = load double, ptr %p
  %next = add i64 %i, 1
  {last}
  %ends = icmp eq i64 %next, %n
  br i1 %ends, label %exit, label %loop
exit:
  ret double %v
}}
"""


def _loop(pointer: str = "%p = load ptr, ptr %variable", first: str = "", last: str = "") -> str:
    return LOOP.format(pointer=pointer, first=first, last=last)


IN_TURN = "%p = phi ptr [ %a, %entry ], [ %q, %loop ]\n  %q = phi ptr [ %b, %entry ], [ %p, %loop ]"


@pytest.mark.parametrize(
    ("text", "elsewhere"),
    [
        (_loop(IN_TURN), True),
        (_loop("%p = phi ptr [ %x, %entry ], [ %q, %loop ]", last="%q = load ptr, ptr %p"), True),
        (
            _loop(
                "%p = phi ptr [ %a, %entry ], [ %q, %loop ]",
                last="%is = icmp eq ptr %p, %a\n  %q = select i1 %is, ptr %b, ptr %a",
            ),
            True,
        ),
        (
            _loop(
                "%p = phi ptr [ %x, %entry ], [ %q, %loop ]",
                last="%far = icmp slt i64 %i, 5\n  %step = getelementptr double, ptr %p, i64 %i\n"
                "  %q = select i1 %far, ptr %step, ptr %x",
            ),
            False,
        ),
        (_loop("%p = getelementptr double, ptr %x, i64 %i"), False),
        (_loop(first="store ptr %x, ptr %variable", last="store ptr %y, ptr %variable"), True),
        (_loop(first="store ptr %x, ptr %variable", last="call void @swap(ptr %variable, ptr %variable)"), True),
        (
            _loop(
                first="store ptr %x, ptr %variable",
                last="%q = getelementptr double, ptr %p, i64 1\n  store ptr %q, ptr %variable",
            ),
            False,
        ),
    ],
)
def test_what_loops_come_to(text: str, elsewhere: bool) -> None:
    assert leads_elsewhere(parse(text)) is elsewhere


TURNS = """#include <math.h>
double f(int n, const int *k, const double *x) {
  struct S {double v[4]; double *p;} s0, s1, *s = &s0;
  double q[2] = {x[0], x[1]}, r = 0;
  s0.p = q; s1.p = q + 1;
  for (int i = 0; i < 4; i++) { s0.v[i] = x[i]; s1.v[i] = x[i + 4]; }
  for (int t = 0; t < n; t++) {
    int i = 0;
    while (i < 4 && s->v[i] < 1.5) { s->v[i] = cos(s->v[i] * *s->p) + 0.1 * t; i += 1 + k[0]; }
    s = s == &s0 ? &s1 : &s0;
  }
  for (int i = 0; i < 4; i++) r += s0.v[i] * (i + 1) + s1.v[i] * i;
  return r;
}"""


def _turns(n: int, x: np.ndarray) -> float:
    v = [list(x[:4]), list(x[4:])]
    for t in range(n):
        now, i = v[t % 2], 0
        while i < 4 and now[i] < 1.5:
            now[i] = math.cos(now[i] * x[t % 2]) + 0.1 * t
            i += 1
    return sum(a * (i + 1) + b * i for i, (a, b) in enumerate(zip(*v, strict=True)))


def test_what_is_read_is_written() -> None:
    """LLVM's pipeline took the store to `s1.p` away: no load was seen to read it."""
    x = np.random.default_rng(3).uniform(0.3, 1.2, 8)
    kernel = je.kernel(TURNS, "f", "n: i32, k: i32[2], x: f64[8] -> f64", lang="c")
    k = np.zeros(2, np.int32)
    np.testing.assert_allclose(kernel(23, k, x), _turns(23, x), rtol=1e-13)
    wanted = [(_turns(23, x + e) - _turns(23, x - e)) / 2e-6 for e in 1e-6 * np.eye(8)]
    for derivative in (jax.grad(kernel, 2), jax.jacfwd(kernel, 2)):
        np.testing.assert_allclose(derivative(23, k, x), wanted, rtol=1e-6, atol=1e-8)
