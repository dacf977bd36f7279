"""Volatile variables that nobody but the kernel can see: their accesses have derivatives, and still round."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.errors import DifferentiationError
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

TWO_SUM = """
static double two_sum(double u, double v, double *rest) {
  volatile double s = u + v, up = s - v, vp = s - up;
  up -= u; vp -= v;
  *rest = -(up + vp);
  return s;
}
double rest(double x) { double t; two_sum(x, 1e-3, &t); return t; }
double k(double x) { double t, s = two_sum(x, 1e-3, &t); return s * s + t; }
"""
MANY = """
#include <stdlib.h>
struct state { double sum[3]; int at; float weight; };
static void add(volatile struct state *s, double v) { s->sum[s->at % 3] += v * s->weight; s->at++; }
static double turned(volatile double *p, int n) {
  if (n == 0) return *p;
  volatile double q = *p * 1.5 + n;
  *p = *p * *p * 0.1;
  return turned(&q, n - 1) + turned(p, n / 2);
}
double k(int n, const double *x) {
  struct state start = {{1, x[0], x[1] * x[2]}, 0, 0.5f};
  volatile struct state s = start;
  volatile double ring[3] = {0, 0, 0}, large[3000];
  volatile double *heap = malloc(sizeof(double) * n);
  for (volatile int i = 0; i < n; i++) {
    add(&s, x[i] * x[i]);
    ring[i % 3] = ring[(i + 1) % 3] * 0.5 + x[i] * x[i];
    large[i * 7] = heap[i] = s.sum[i % 3];
  }
  volatile double first = heap[0] * heap[n - 1] + large[7];
  free((void *)heap);
  return turned(&first, n) * 1e-3 + ring[0] + 2 * ring[1] + 3 * ring[2] + s.sum[1] * s.sum[2];
}
"""
AGAIN = """
#include <setjmp.h>
double k(double x) {
  jmp_buf place;
  volatile int tries = 0;
  setjmp(place);
  tries = tries + 1;
  if (tries < 3) longjmp(place, tries);
  return x * tries;
}
"""
X = np.array([0.5, 1.25, -2.0, 0.75, 3.0])


@pytest.mark.parametrize("flags", [(), ("-ffast-math",)])
def test_a_sum_keeps_its_rest(flags: tuple[str, ...]) -> None:
    x = np.array(0.7)
    s = 0.7 + 1e-3
    rest = (0.7 - (s - 1e-3)) + (1e-3 - (s - (s - 1e-3)))
    assert rest != 0
    (value,) = native(TWO_SUM, "rest", "x: f64 -> f64", {}, flags=flags).run((), [x])
    assert value == rest
    agree(three_way(native(TWO_SUM, "k", "x: f64 -> f64", {}, flags=flags), [x]))


def test_what_is_kept_when_control_comes_back() -> None:
    (value,) = native(AGAIN, "k", "x: f64 -> f64", {}).run((), [np.array(0.5)])
    assert value == 1.5


def test_arrays_structures_integers_and_heap() -> None:
    agree(three_way(native(MANY, "k", "n: i32, x: f64[n] -> f64", {"n": 5}), [X]))


@pytest.mark.parametrize(
    "source",
    [
        "volatile double *p;\ndouble k(double x) {\n  volatile double s;\n  p = &s;\n  s = x * x;\n  return s * x;\n}",
        "double k(volatile double *x) {\n  return *x * *x;\n}",
    ],
)
def test_memory_that_others_may_see_is_refused_or_right(source: str) -> None:
    signature = "x: f64[] -> f64" if "*x" in source.splitlines()[0] else "x: f64 -> f64"
    kernel = native(source, "k", signature, {})
    try:
        agree(three_way(kernel, [np.array(1.5)]))
    except DifferentiationError as refusal:
        assert "remove `volatile`" in refusal.remedy and refusal.place
