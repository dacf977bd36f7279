"""Pointers that are moved and changed through a `long *`, and numbers that are changed by words at places of data: C
forbids both, and old programs do them."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
import pytest

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)

SWAPS = """
#include <math.h>
double f(int n, const double *x) {
  double b[8], c[8], s = 0, *rows[4] = {b, c, b + 2, c + 2};
  for (int i = 0; i < 8; i++) b[i] = x[i], c[i] = x[7 - i];
  for (int t = 0; t < n; t++) {
    WORD *w = (WORD *)rows, z = w[t & 3];
    w[t & 3] = w[(t + 1) & 3];
    w[(t + 1) & 3] = z;
    rows[0][0] = sin(rows[0][1] + rows[2][0]);
  }
  for (int i = 0; i < 8; i++) s += b[i] * (i + 1) + c[i];
  return s;
}"""
STEPS = """
#include <math.h>
double f(int n, const double *x) {
  double b[12], s = 0, *at[2] = {b, b + 1};
  for (int i = 0; i < 12; i++) b[i] = x[i & 7];
  for (int t = 0; t < n; t++) {
    WORD *w = (WORD *)(at + (t & 1));
    *w += ONE;
    at[t & 1][0] = sin(at[0][1] + at[1][0]);
  }
  for (int i = 0; i < 12; i++) s += b[i] * (i + 1);
  return s;
}"""


IN_CPP = SWAPS.replace("double f", 'extern "C" double f')


@pytest.mark.parametrize(
    ("source", "lang"), [(SWAPS, "c"), (STEPS, "c"), (IN_CPP, "c++")], ids=["swaps", "steps", "in C++"]
)
def test_as_where_they_are_moved_as_pointers(source: str, lang: Literal["c", "c++"]) -> None:
    x = np.array([0.83, 1.41, 0.62, 1.07, 0.39, 0.91, 0.48, 1.22])
    found = []
    for word, one in (("double *", "1"), ("long ", "8")):
        text = source.replace("WORD *w", f"{word}*w").replace("WORD *", f"{word}*").replace("ONE", one)
        text = text.replace("*)rows, z", f"*)rows, {'*' * (one == '1')}z")
        kernel = je.kernel(text, "f", "n: i32, x: f64[8] -> f64", lang=lang)
        found.append((kernel(7, x), jax.grad(kernel, argnums=1)(7, x), jax.jacfwd(kernel, argnums=1)(7, x)))
    for pointers, integers in zip(*found, strict=True):
        np.testing.assert_allclose(integers, pointers, rtol=1e-13)
    np.testing.assert_allclose(found[1][1], found[1][2], rtol=1e-13)


CHANGED = """
double f(int n, const int *k, const double *x) {
  double a[8];
  for (int i = 0; i < 8; i++) a[i] = x[i];
  for (int t = 0; t < n; t++) ((int *)a)[2 * k[t & 3] + 1] += 1 << 20;
  return a[2] * 3 + a[1];
}"""
POOL = """
#include <stdlib.h>
#include <string.h>
double f(int n, const int *k, const double *x) {
  char *pool = malloc(512);
  double *a = (double *)(pool + 8 * k[2]), s = 0;
  long *c = (long *)(pool + AT);
  memset(pool, 0, 512);
  for (int i = 0; i < 8; i++) a[i] = x[i] * x[i];
  for (int t = 0; t < n; t++) c[(t + k[1]) & 3] += STEP;
  for (int i = 0; i < 8; i++) s += a[i] * (i + 1) COUNT;
  free(pool);
  return s;
}"""
DOUBLED = POOL.replace("AT", "8 * k[3]").replace("STEP", "1L << 52").replace("COUNT", "")
COUNTED = POOL.replace("AT", "8 * k[0] + 160").replace("STEP", "1").replace("COUNT", "+ c[i & 3]")


@pytest.mark.parametrize("source", [CHANGED, DOUBLED, COUNTED], ids=["changed", "doubled", "counted"])
def test_words_of_numbers_at_places_of_data(source: str) -> None:
    """Right for what only counts; refused, or no number, where numbers change."""
    x, k = np.linspace(0.3, 1.2, 8), np.array([1, 0, 2, 2], np.int32)
    kernel = je.kernel(source, "f", "n: i32, k: i32[4], x: f64[8] -> f64", lang="c")
    try:
        found = jax.grad(kernel, argnums=2)(7, k, x)
    except je.DifferentiationError:
        assert source is CHANGED
        return
    right = 2 * x * np.arange(1, 9)
    np.testing.assert_allclose(found, right if source is COUNTED else np.where(np.arange(8) < 4, np.nan, right))
