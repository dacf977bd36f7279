"""Reads of numbers of 8 and 16 bits that nothing wrote, in the checking mode: runs with two patterns tell."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jax_enzyme as je

X = np.arange(1.0, 5.0)
# One kernel, so that it is compiled once: `which` is what it does, and where `missing` is 1 an element is not written.
SOURCE = """
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double k(int which, int missing, const double *x, double *kept) {
  double s = 0;
  kept[0] += 1;
  if (which == 0) {
    bool *seen = malloc(4);
    for (int i = missing; i < 4; i++) seen[i] = i & 1;
    for (int i = 0; i < 4; i++)
      if (seen[i]) s += x[i] * x[i]; /* 0 */
    free(seen);
  } else if (which == 1) {
    unsigned char all[1024];
    for (int i = 0; i < 1024 - missing; i++) all[i] = i;
    for (int i = 0; i < 1024; i++)
      s += all[i * 7 % 1024] * x[i & 3]; /* 1 */
  } else if (which == 2) {
    int16_t small[5];
    for (int i = 0; i < 5 - missing; i++) small[i] = -i;
    for (int i = 0; i < 5; i++)
      s += small[i] * x[i & 3]; /* 2 */
  } else if (which == 3) {
    char from[8], to[16];
    for (int i = missing; i < 8; i++) from[i] = 0xa5 + i;
    memcpy(to + 3, from, 8);
    for (int i = 0; i < 8; i++) {
      char c = to[3 + i], d = c;
      if (i & 1) d = (char)0xe1;
      s += d * x[i & 3]; /* 3 */
    }
  }
  return s;
}
"""
SAYS = ["allocated memory, index 0", "`all`, index 1023", "`small`, index 4", "`d`"]


@pytest.fixture(scope="module")
def kernel() -> je.Kernel:
    signature = "which: i32, missing: i32, x: f64[4], inout kept: f64[1] -> f64"
    return je.kernel(SOURCE, "k", signature, lang="c", options=je.Options(sanitize=True))


@pytest.mark.parametrize("which", range(len(SAYS)))
def test_an_element_that_nothing_wrote_is_found_and_all_values_are_right(kernel: je.Kernel, which: int) -> None:
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if f"/* {which} */" in text)
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"nothing wrote: .*{SAYS[which]} \(kernel\.c:{line}:"):
        jax.block_until_ready(kernel(np.int32(which), np.int32(1), X, np.zeros(1)))
    result, kept = kernel(np.int32(which), np.int32(0), X, np.zeros(1))
    wanted = [
        lambda i: X[i & 3] ** 2 * (i & 1) * (i < 4),
        lambda i: (i * 7 % 256) * X[i & 3],
        lambda i: -i * X[i & 3] * (i < 5),
        lambda i: np.array(0xE1 if i & 1 else 0xA5 + i).astype(np.int8) * X[i & 3] * (i < 8),
    ][which]
    np.testing.assert_array_equal(result, sum(wanted(i) for i in range(1024 if which == 1 else 8)))
    np.testing.assert_array_equal(kept, 1.0)  # what runs again starts from the same contents


def test_gradients_where_all_is_written_are_right_and_fail_where_it_is_not(kernel: je.Kernel) -> None:
    def value(which: int, missing: int, x: np.ndarray) -> jax.Array:
        return kernel(np.int32(which), np.int32(missing), x, np.zeros(1))[0]

    for which in range(len(SAYS)):
        found, gradient = jax.value_and_grad(value, argnums=2)(which, 0, X)
        _, tangent = jax.jvp(lambda x, w=which: value(w, 0, x), (X,), (np.ones(4),))
        h = 1e-6
        differences = [float(value(which, 0, X + h * e) - value(which, 0, X - h * e)) / (2 * h) for e in np.eye(4)]
        np.testing.assert_array_equal(found, value(which, 0, X))
        np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-4)
        np.testing.assert_allclose(tangent, np.sum(gradient), rtol=1e-12)
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"nothing wrote: .*{SAYS[which]}"):
            jax.block_until_ready(jax.grad(value, argnums=2)(which, 1, X))


def test_a_kernel_that_prints_runs_once(capfd: pytest.CaptureFixture[str]) -> None:
    source = """
    #include <stdio.h>
    double k(int n, const double *x) {
      char b[8];
      for (int i = 0; i < n; i++) b[i] = 0xa5;
      printf("once\\n");
      return b[n - 1] * x[0];
    }"""
    printing = je.kernel(source, "k", "n: i32, x: f64[4] -> f64", lang="c", options=je.Options(sanitize=True))
    jax.block_until_ready(printing(np.int32(8), X))
    assert capfd.readouterr().out == "once\n"
