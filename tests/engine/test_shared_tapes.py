"""The tape of a loop that several threads run: slots are each iteration's own, local objects in it are as their owner
has them."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Augmented, Step, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, parse
from tests.support.engine import agree, native, three_way
from tests.support.native import call
from tests.support.team import Team

SIGNATURE = "n: i32, x: f64[n], out y: f64[n]"
_BACK, _KEPT = Vjp((True, False), (False, True)), Augmented((True, False), (False, True))

_OWN_ARRAY = """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel
  {
    double t[128];
#pragma omp for
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < 128; j++) t[j] = exp(0.1 * x[i]) * sin(j * x[(i + j) % n]);
      y[i] = t[i & 127] * t[5];
    }
#pragma omp single
    for (int i = 0; i < 128; i++) y[i] += t[i] * t[i] * t[(i + 1) & 127];
  }
}"""
_COLOURS = """void k(int n, const double *x, double *y) {
  enum { M = 64 };
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int t = 0; t < 6; t++)
#pragma omp parallel for
    for (int i = 1; i < M - 1; i++)
      for (int j = 1 + ((i + t) & 1); j < M - 1; j += 2) {
        double around = y[(i - 1) * M + j] + y[(i + 1) * M + j] + y[i * M + j - 1] + y[i * M + j + 1];
        y[i * M + j] = 0.2 * (y[i * M + j] + around) + 0.01 * x[i * M + j] * y[i * M + j] * around;
      }
}"""
_PAIRS = """#include <math.h>
void k(int n, const double *x, double *y) {
  int m = n / 4;
  double e = 0;
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for reduction(+ : e) schedule(dynamic, 8)
  for (int i = 0; i < m; i++)
    for (int j = i + 1; j < m; j++) {
      double a = x[i] - x[j], b = x[m + i] - x[m + j], c = x[2 * m + i] - x[2 * m + j];
      e -= x[3 * m + i] * x[3 * m + j] / sqrt(a * a + b * b + c * c + 0.01);
    }
  y[0] = e;
}"""
_IN_ONE_CHUNK = """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *a = malloc(8 * n);
#pragma omp parallel for schedule(static, 8)
  for (int i = 0; i < n; i++) a[i] = exp(sin(x[i])) + (i % 8 ? a[i - 1] * x[i] : 0);
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = a[i] * a[i];
  free(a);
}"""


@pytest.mark.parametrize(
    ("source", "shared"),
    [(_OWN_ARRAY, False), (_COLOURS, True), (_PAIRS, True), (_IN_ONE_CHUNK, None)],
    ids=["a thread's own array", "red and black", "pairs in chunks", "an iteration that reads the one before"],
)
def test_the_tape_is_the_same_for_any_number_of_threads(source: str, shared: bool | None) -> None:
    """`shared`: whether forward sweeps are; None: not all of them."""
    n = 4096 if source != _PAIRS else 1600
    program, signature = load(source, "k", "c", ("-fopenmp",)), parse(SIGNATURE)
    binding = Binding.of({"n": n}, {})
    x = np.random.default_rng(4).uniform(0.2, 1.4, n)
    steps: tuple[Step, ...]
    for steps in ((_BACK,), (_KEPT,)):
        said = derived.sharing(program, signature, binding, steps, Options())
        forward = [text.endswith("on several threads") for text in said if not text.startswith("the reverse of ")]
        assert all(forward) if shared else not all(forward), said
        built = derived.build(program, signature, binding, steps, Options())
        given = [x if b.name == "x" else np.cos(np.arange(n)) for b in built.buffers if b.is_input]
        alone = call(built, given)
        for team in (Team(2), Team(4)):
            together = call(built, given, team=team.address)
            assert [a.tobytes() for a in alone] == [b.tobytes() for b in together]
            assert shared is not True or team.ran
    agree(three_way(native(source, "k", SIGNATURE, {"n": n}, flags=("-fopenmp",)), [x]))
