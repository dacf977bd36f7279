"""A program twice as long takes the engine about twice the work: calls of Python functions are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from jax_enzyme.ad import sweeps
from jax_enzyme.codegen import derived
from jax_enzyme.frontends import load
from jax_enzyme.ir.values import Value
from jax_enzyme.transform import moved_words
from tests.support.through_engine import Specialised, specialise

INDEPENDENT = "  s += x[{a}] * x[{b}] / (1.0 + x[{a}] + {i}.0);"
DEPENDENT = "  s = s * x[{a}] + sin(s);"
LOOP = "  for (int i = 0; i < 8; i++) for (int k = 0; k < 8; k++) w[i] = w[i] * x[k] + sin(w[i]);"
RECORD = "  p = make(s, p); s = p->v * p->v * 0.125 + x[{a}];"
CHOICE = "  if (x[{a}] > {i}.5) s = s * x[{b}]; else if (x[{b}] > {i}.25) s = x[{a}] * x[{b}]; p = make(s, p);"
VARIABLE = "  {{ static double kept{i}[8] = {{1, 2}}; kept{i}[{a}] += x[{b}]; s += kept{i}[{b}] * kept{i}[1]; }}"
TAGGED = (
    "  if (x[{a}] > {i}.5e-3) t[m + {a} & 7].i = {i} + m; else t[m + {b} & 7].d = x[{a}] * x[{b}];"
    " if (x[{b}] > {i}.25e-3) s += (t[m + {a} & 7].i * {i} + 1) * x[{b}]; else s += t[m + {a} & 7].d;"
)
BEST = (
    "  {{ double least = x[{a}]; for (int i = 0; i < m; i++)"
    " {{ double d = (x[i & 7] - {i}.5) * x[{b}]; if (d < least) least = d; }} s += least * least; }}"
)
TEXT = """
#include <math.h>
#include <stdlib.h>
struct r {{ double v; struct r *next; }};
static struct r *make(double v, struct r *n) {{
  struct r *p = malloc(sizeof *p); p->v = v; p->next = n; return p;
}}
double f(const double *x) {{
  double s = x[0], w[8] = {{1, 2, 3, 4, 5, 6, 7, 8}}; struct r *p = 0;
  union {{ double d; long i; }} t[8]; int m = 8 + (x[0] > 100);
  for (int i = 0; i < 8; i++) t[i].d = x[i];
{lines}
  while (p) {{ s += p->v; struct r *q = p->next; free(p); p = q; }}
  return s + w[0] + w[7];
}}
"""


def kernel(line: str, count: int) -> Specialised:
    lines = "\n".join(line.format(i=i, a=i % 8, b=(3 * i + i // 8) % 8) for i in range(count))
    program = load(TEXT.format(lines=lines), "f", "c")
    return specialise(program, "x: f64[8] -> f64", {"x": np.linspace(0.5, 1.0, 8)})


def work(line: str, count: int, forward: bool) -> int:
    """The calls of Python functions, and the steps of generators, from a program to a derivative of it."""
    calls = 0

    def seen(frame: FrameType, event: str, value: object) -> None:
        nonlocal calls
        calls += event == "call"

    of = kernel(line, count)
    step = of.jvp if forward else of.vjp
    sys.setprofile(seen)
    try:
        derived.derived(of.program, of.signature, of.binding, (step,), of.options)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("forward", [True, False], ids=["forward", "reverse"])
@pytest.mark.parametrize(
    ("line", "count"),
    [(INDEPENDENT, 100), (DEPENDENT, 100), (LOOP, 6), (RECORD, 30), (VARIABLE, 80), (TAGGED, 40), (BEST, 10)],
    ids=["independent statements", "dependent statements", "loops", "records", "variables", "unions", "extremes"],
)
def test_twice_the_program(line: str, count: int, forward: bool) -> None:
    assert work(line, 2 * count, forward) <= 2.5 * work(line, count, forward)


def test_numbers_that_branches_choose_are_not_traced_back_from_each_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they may be addresses is asked of all at once (`transform.moved_words`)."""
    looked_at = 0
    sources = moved_words._same

    def seen(value: Value) -> list[Value]:
        nonlocal looked_at
        looked_at += 1
        return sources(value)

    monkeypatch.setattr(moved_words, "_same", seen)
    counts: list[int] = []
    for count in (30, 60):
        looked_at = 0
        work(CHOICE, count, forward=True)
        counts.append(looked_at)
    assert counts[1] <= 2.5 * counts[0]


WORKSPACE = (
    "  {{ double *t = calloc(64, 8); for (int i = 0; i < 64; i++) t[i * 5 % 64] += x[{a}] * x[i & 7];"
    " for (int i = 0; i < 64; i++) s += t[i] * t[i]; free(t); }}"
)


class Counted(dict[Any, Any]):
    """Counts what it is asked for one by one."""

    looked_at = 0

    def __iter__(self) -> Iterator[Any]:
        for key in super().__iter__():
            self.looked_at += 1
            yield key

    def items(self) -> Any:
        return [(key, self[key]) for key in self]


def test_the_blocks_of_a_sweep_are_not_gone_through_for_each_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    move = sweeps.load_before_loops
    blocks: list[Counted] = []

    def moved(recipes: Any, positions: Any, *others: Any) -> None:
        blocks.append(Counted(positions))
        move(recipes, blocks[-1], *others)

    monkeypatch.setattr(sweeps, "load_before_loops", moved)
    counts: list[int] = []
    for count in (2, 4):
        blocks.clear()
        work(WORKSPACE, count, forward=False)
        counts.append(sum(each.looked_at for each in blocks))
    assert 0 < counts[1] <= 2.5 * counts[0]
