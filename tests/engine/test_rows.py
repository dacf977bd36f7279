"""Tapes of loops whose length is known when they begin, and not before: a row of memory for each time they are run."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.codegen.inspection import inspect
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse
from tests.support.engine import agree, native, three_way
from tests.support.native import call
from tests.support.team import Team

SIGNATURE = "n: i32, m: i32[1], len: i32[n], x: f64[n], out y: f64[n]"


@dataclass(frozen=True)
class Rows:
    """The body of a kernel, with how many rows its tape has for how many loops in all."""

    body: str
    rows: int
    nodes: int = 0


CASES = {
    "lists of different lengths": Rows(
        """  for (int i = 0; i < n; i++) {
    double s = x[i];
    for (int e = 0; e < len[i]; e++) s = sin(s) * x[(i + e) % n] + x[e];
    y[i] = s;
  }""",
        1,
    ),
    "a loop that an argument ends": Rows(
        """  for (int i = 0; i < n; i++) y[i] = 0;
  for (int i = 0; i < *m; i++) {
    double t = exp(sin(x[i]));
    for (int j = 0; j < 5; j++) t = t > 1.3 ? t * sin(t) + x[i] : t + x[i] * t;
    y[i] = t * x[i];
  }""",
        1,
    ),
    "rows in rows, and nodes in those": Rows(
        """  double t = 0;
  for (int i = 0; i < n; i++) y[i] = 0;
  for (int i = 0; i < *m; i++) {
    t += x[i];
    for (int j = 0; j < len[i]; j++) {
      t = sin(t + x[j]);
      for (int l = 0; l < j; l++) {
        if (x[l] > 0.7) t *= cos(x[l] * t);
        for (int q = 0; q < 3; q++) t = t * 0.5 + sin(x[q] * t);
      }
      for (double r = 4; r > 0.3 + 0.1 * t * t; r *= 0.5) t += 0.01 * sin(t * r);
    }
    y[i] = t;
  }""",
        3,
        1,
    ),
    "rows in nodes": Rows(
        """  double t = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (double r = 4; r > 0.3 + 0.01 * t; r *= 0.5)
    for (int j = 0; j < len[3]; j++) {
      t = sin(t + x[j] * r);
      y[j] += t * t;
    }""",
        1,
        1,
    ),
    "packed triangles in rows": Rows(
        """  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int s = 0; s < *m; s++)
    for (int i = 0; i < 32; i++)
      for (int j = 0; j < i; j++) y[j] = sin(y[j] + 0.1 * x[i] * y[i]);""",
        1,
    ),
    "downwards": Rows(
        """  for (int i = 0; i < n; i++) y[i] = 1;
  for (int i = *m; i > 3; i--) y[i - 1] = sin(x[i - 1] * y[i - 1] + sin(x[i - 3] * y[i - 4] + y[i + 1]));""",
        1,
    ),
    "in steps that divide nothing": Rows(
        """  for (int i = 0; i < n; i++) y[i] = 1;
  for (int i = 0; i < *m; i += 3) y[i] = sin(x[i] * y[i] + sin(x[i + 2] * y[i + 2]));""",
        0,
        1,
    ),
    "no iteration": Rows(
        """  double t = x[0];
  for (int i = 0; i < *m - 90; i++) t = sin(t * x[i]) + x[i];
  for (int i = 0; i < n; i++) y[i] = t * x[i];""",
        1,
    ),
}


def _source(body: str) -> str:
    head = "void k(int n, const int *m, const int *len, const double *restrict x, double *restrict y)"
    return f"#include <math.h>\n{head} {{\n{body}\n}}"


def _inputs(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [np.array([n - 3], np.int32), rng.integers(0, 7, n).astype(np.int32), rng.uniform(0.2, 1.4, n)]


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_rows(name: str) -> None:
    """`inspect` names the rows and chains; of derivatives, those of second order are right as well."""
    case = CASES[name]
    n = 40
    kernel = native(_source(case.body), "k", SIGNATURE, {"n": n})
    given = _inputs(n)
    agree(three_way(kernel, given))
    wanted, seeded = (False, False, True, False), (False, False, False, True)
    found = inspect(kernel.program, kernel.signature, kernel.binding, wrt=("x",)).reverse
    assert found is not None
    kept = [each.what for each in found.kept]
    assert kept.count("the row of a loop") == case.rows
    assert kept.count("the last iteration of a loop") == case.nodes

    rng = np.random.default_rng(5)
    x, w = given[2], rng.standard_normal(n)
    v = rng.standard_normal(n)

    def gradient(x: np.ndarray) -> np.ndarray:
        return kernel.run((Vjp(wanted, seeded),), [*given[:2], x, w])[-1]

    h = 1e-6
    expected = (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)
    twice = kernel.run((Vjp(wanted, seeded), Jvp((False, False, True, False, False, False))), [*given[:2], x, w, v])
    np.testing.assert_allclose(twice[-1], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["lists of different lengths", "a loop that an argument ends"])
def test_rows_in_loops_that_several_threads_run(name: str) -> None:
    """Both sweeps are shared, and their results the same to the last bit for any number of threads."""
    n = 3000
    loop = re.compile(r"^  (?=for \(int i = 0; i < (n; i\+\+\) \{|\*m))", re.MULTILINE)
    body = loop.sub("#pragma omp parallel for\n  ", CASES[name].body)
    program, signature = load(_source(body), "k", "c", ("-fopenmp",)), parse(SIGNATURE)
    binding = Binding.of({"n": n}, {})
    steps = (Vjp((False, False, True, False), (False, False, False, True)),)
    said = derived.sharing(program, signature, binding, steps, Options())
    assert len(said) == 2
    assert all(text.endswith("on several threads") for text in said), said
    built = derived.build(program, signature, binding, steps, Options())
    given = [*_inputs(n), np.cos(np.arange(n))]
    alone = call(built, given)
    for team in (Team(2), Team(4)):
        together = call(built, given, team=team.address)
        assert [a.tobytes() for a in alone] == [b.tobytes() for b in together]
        assert team.ran
