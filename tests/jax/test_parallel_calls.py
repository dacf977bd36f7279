"""Loops on XLA's threads: several Python threads that call at once, and iterations that fail."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import jax_enzyme as je

SOURCE = """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < n; i++) {
#ifdef FAILS
    if (x[i] > 200) exit(3);
    if (x[i] > 100) exit(4);
#endif
    double v = x[i];
    for (int j = 0; j < 200; j++) v = sin(v) + 0.1 * x[i];
    y[i] = v;
  }
}"""
N = 2000
X = np.random.default_rng(0).uniform(0.2, 1.2, N)


def kernel(*flags: str) -> je.Kernel:
    made = je.kernel(SOURCE, "k", "n: i32, x: f64[n], out y: f64[n]", lang="c", flags=("-fopenmp", *flags))
    assert "on several threads" in made.inspect(X).loops[0][1]
    return made


def test_eight_python_threads_at_once() -> None:
    value, gradient = jax.jit(kernel()), jax.jit(jax.grad(lambda x: kernel()(x).sum()))
    expected = np.asarray(value(X)), np.asarray(gradient(X))
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: (np.asarray(value(X)), np.asarray(gradient(X))), range(24)):
            assert all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))


def test_an_error_is_that_of_the_first_iteration_in_serial_order() -> None:
    failing = X.copy()
    failing[[30, N // 2, N - 1]] = 101, 202, 203
    run = kernel("-DFAILS")
    for _ in range(5):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"\b4\b"):
            jax.block_until_ready(run(failing))
    assert np.all(np.isfinite(run(X)))
