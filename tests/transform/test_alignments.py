"""Accesses are aligned as their elements are: rows of batches and places on the tape are no more."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.alignments import forget_alignments
from tests.support.verified import verify

X = np.random.default_rng(3).uniform(0.3, 1.2, (7, 5))

ROWS = {
    "vectors": """#include <immintrin.h>
    double f(const double *x) {
      __m128d p = _mm_mul_pd(_mm_load_pd(x), _mm_load_pd(x + 2));
      return (p[0] + p[1]) * x[4];
    }""",
    "said": """double f(const double *x) {
      const double *at = __builtin_assume_aligned(x, 64);
      double y[5], s = 0;
      for (int i = 0; i < 5; i++) y[i] = at[i] * at[i];
      for (int i = 0; i < 5; i++) s += y[i] * at[4 - i];
      return s;
    }""",
    "bits": """#include <stdint.h>
    double f(const double *x) {
      double y[5], s = 0;
      if ((uintptr_t)x % 32) __builtin_unreachable();
      __builtin_assume((((uintptr_t)x | (uintptr_t)y) & 15) == 0);
      for (int i = 0; i < 5; i++) y[i] = x[i] * x[i];
      for (int i = 0; i < 5; i++) s += y[i] * x[4 - i];
      return s;
    }""",
}

TURNS = """#include <math.h>
double f(int n, const double *x) {
  struct S {double v; double *p;} s[2], z;
  double q[2] = {x[0], x[1]};
  s[0].p = q; s[1].p = q + 1; s[0].v = x[2]; s[1].v = x[3];
  for (int t = 0; t < n; t++) { z = s[0]; s[0] = s[1]; s[1] = z; s[0].v = cos(s[0].v * *s[0].p) + 0.1 * t; }
  return s[0].v + 2 * s[1].v;
}"""

TEXT = """
declare void @llvm.assume(i1)
define void @f(ptr align 32 %x, ptr align 8 %y) {
  call void @llvm.assume(i1 true) [ "align"(ptr %x, i64 64), "nonnull"(ptr %y) ]
  %v = load <2 x double>, ptr %x, align 16
  %w = load double, ptr %x, align 32
  %b = load i8, ptr %y, align 1
  store <4 x float> zeroinitializer, ptr %y, align 4
  store x86_fp80 0xK00000000000000000000, ptr %x, align 16
  %old = atomicrmw fadd ptr %x, double %w monotonic, align 8
  %p = ptrtoint ptr %x to i64
  %q = ptrtoint ptr %y to i64
  %low = and i64 %p, 31
  %fits = icmp eq i64 %low, 0
  call void @llvm.assume(i1 %fits)
  %length = sub i64 %q, %p
  %some = icmp ugt i64 %length, 15
  call void @llvm.assume(i1 %some)
  ret void
}
"""


def test_text() -> None:
    module = parse(TEXT)
    forget_alignments(module)
    verify(module)
    text = to_text(module)
    assert re.findall(r"align (\d+)", text) == ["8", "8", "8", "1", "4", "16", "8"]
    assert '[ "nonnull"(ptr %y) ]' in text
    assert "assume(i1 %some)" in text
    assert "assume(i1 %fits)" not in text


def _differences(f: Any, x: np.ndarray) -> np.ndarray:
    steps = 1e-6 * np.eye(len(x))
    return np.array([(f(x + e) - f(x - e)) / 2e-6 for e in steps])


@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows_of_a_batch(name: str) -> None:
    kernel = je.kernel(ROWS[name], "f", "x: f64[5] -> f64", lang="c")
    assert not re.search(r"(load|store).*align (16|32|64)", kernel.inspect(X[0]).ir("primal"))  # or this process ends
    alone = np.array([kernel(row) for row in X])
    np.testing.assert_array_equal(jax.vmap(kernel)(X), alone)
    wanted = np.stack([_differences(kernel, row) for row in X])
    np.testing.assert_allclose(jax.vmap(jax.grad(kernel))(X), wanted, rtol=1e-7)


def test_local_objects_on_the_tape() -> None:
    kernel = je.kernel(TURNS, "f", "n: i32, x: f64[4] -> f64", lang="c")
    report, x = kernel.inspect(23, X[0, :4]), X[0, :4]
    assert not re.search(r"(load|store) .*%a6.*align (16|32)", report.ir("augmented"))
    assert not re.search(
        r"store <2 x double>.*align 16", report.ir("augmented", optimised=True)
    )  # or this process ends
    wanted = _differences(lambda v: kernel(23, v), x)
    np.testing.assert_allclose(jax.grad(kernel, 1)(23, x), wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(kernel, 1)(23, x), wanted, rtol=1e-6, atol=1e-8)
