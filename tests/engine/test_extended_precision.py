"""`long double` inside kernels, which no buffer holds: on x86 80 bits in 16 bytes, on aarch64 IEEE's 128 bits."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from jax_enzyme.errors import NoRuleError
from jax_enzyme.ir.arrays import Vjp
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

X = np.array([0.5, 1.25, 2.1, 0.75, 3.2])
SIGNATURE = "n: i32, x: f64[n] -> f64"
MEMORY = """
#include <stdlib.h>
#include <string.h>
struct record { long double a; double b; int c; };
static long double sums[3];
double k(int n, const double *x) {
  long double a[5], b[5], *heap = malloc(n * sizeof *heap);
  struct record r[5];
  for (int i = 0; i < n; i++) a[i] = heap[n - 1 - i] = (long double)x[i] * x[(2 * i) % n];
  for (int i = 0; i < n; i++) r[i].a = a[i] * heap[i], r[i].b = x[i], r[i].c = i, sums[i % 3] += a[i];
  memcpy(b, a, sizeof a);
  memmove(b + 1, b, (n - 2) * sizeof *b);
  struct record t = r[2];
  r[2] = r[0];
  r[0] = t;
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++)
      if (a[i] < a[j]) { long double s = a[i]; a[i] = a[j]; a[j] = s; }
  free(heap);
  return r[0].a * r[1].b + r[2].a * r[3].b * r[1].c + b[1] * b[2] + a[0] * a[1] + sums[0] * sums[1];
}
"""
FUNCTIONS = """
#define _GNU_SOURCE
#include <complex.h>
#include <math.h>
double k(int n, const double *x) {
  int e;
  long double whole, s, c, sum = powl(x[0], x[1]) + expl(x[2]) * logl(x[3]) + tgammal(x[1]) + fmal(x[0], x[1], x[4]);
  sum += frexpl(37 * x[0] * x[1], &e) * e + x[3] * modfl(-x[4], &whole) * whole;
  sum += frexpl(0 * x[0], &e) + e;
  sincosl(x[2], &s, &c);
  long double _Complex z = x[0] + x[1] * 1.0iL, w = x[2] - x[3] * 1.0iL;
  z = z * w / (z + w * w);
  return sum + s * c * c + creall(z) * cimagl(z) + fabsl(-x[0]) * copysignl(x[1], -1);
}
"""
SHORTCUTS = """
double k(int n, const double *x) {
  long double sum = 0, scale = 2;
  for (int i = 0; i < n; i++) {
    long double v = x[i] - 0.3L;
    if (v != 0) sum += v / scale;
    scale *= 1 + v * v / 3;
  }
  return sum;
}
"""


@pytest.mark.parametrize("source", [MEMORY, FUNCTIONS, SHORTCUTS])
def test_derivatives(source: str) -> None:
    agree(three_way(native(source, "k", SIGNATURE, {"n": 5}), [X]), 1e-8)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="`long double` is that already, or there is none")
@pytest.mark.parametrize("source", [MEMORY, SHORTCUTS])
def test_quadruple(source: str) -> None:
    """The functions take such numbers on aarch64 only."""
    agree(three_way(native(source.replace("long double", "__float128"), "k", SIGNATURE, {"n": 5}), [X]), 1e-8)


def test_what_has_no_rule_is_refused_at_its_line() -> None:
    source = "#include <math.h>\ndouble k(double x) {\n  int q;\n  return remquol(x, 0.3L, &q) * q;\n}"
    kernel = native(source, "k", "x: f64 -> f64", {})
    with pytest.raises(NoRuleError, match="remquol") as caught:
        kernel.run((Vjp((True, False), (False, True)),), [np.array(1.1), np.array(1.0)])
    assert caught.value.place.endswith(":4:10")
