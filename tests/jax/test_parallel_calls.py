"""Loops on XLA's threads: several Python threads that call at once, iterations that fail, forks and interrupts."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import jax_enzyme as je

SOURCE = """#include <math.h>
#include <stdlib.h>
#ifdef THROWS
struct Guard { double *p; ~Guard() { *p += 0; } };
#endif
#ifdef __cplusplus
extern "C"
#endif
void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < n; i++) {
#ifdef FAILS
    if (x[i] > 200) exit(3);
    if (x[i] > 100) exit(4);
#endif
#ifdef THROWS
    Guard guard{y + i};  // whose destructor runs on the way
    if (x[i] > 200) throw 3;
    if (x[i] > 100) throw 4.0;
#endif
    double v = x[i];
    for (int j = 0; j < 200; j++) v = sin(v) + 0.1 * x[i];
    y[i] = v;
  }
}"""
N = 2000
X = np.random.default_rng(0).uniform(0.2, 1.2, N)


def kernel(*flags: str, lang: str = "c") -> je.Kernel:
    made = je.kernel(SOURCE, "k", "n: i32, x: f64[n], out y: f64[n]", lang=lang, flags=("-fopenmp", *flags))
    assert "on several threads" in made.inspect(X).loops[0][1]
    return made


def test_eight_python_threads_at_once() -> None:
    value, gradient = jax.jit(kernel()), jax.jit(jax.grad(lambda x: kernel()(x).sum()))
    expected = np.asarray(value(X)), np.asarray(gradient(X))
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: (np.asarray(value(X)), np.asarray(gradient(X))), range(24)):
            assert all(a.tobytes() == b.tobytes() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("lang", "flag", "told"), [("c", "-DFAILS", r"\b4\b"), ("c++", "-DTHROWS", r"exception `double` \(kernel.cpp:19:")]
)
def test_an_error_is_that_of_the_first_iteration_in_serial_order(lang: str, flag: str, told: str) -> None:
    failing = X.copy()
    failing[[30, N // 2, N - 1]] = 101, 202, 203
    run = kernel(flag, lang=lang)
    for _ in range(5):
        with pytest.raises(jax.errors.JaxRuntimeError, match=told):
            jax.block_until_ready(run(failing))
    assert np.all(np.isfinite(run(X)))


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("python_handler")
def test_forks_and_interrupts_while_loops_run_on_several_threads() -> None:
    run = jax.jit(kernel())
    expected, ends = np.asarray(run(X)).tobytes(), threading.Event()

    def call() -> bool:
        right = True
        while not ends.is_set():
            right &= np.asarray(run(X)).tobytes() == expected
        return right

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(call) for _ in range(2)]
        try:
            for _ in range(5):
                child = os.fork()
                if child == 0:
                    os._exit(7)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
                # One that comes while a callback of the collector runs is lost: Python shows it and goes on.
                with pytest.raises(KeyboardInterrupt):
                    for _ in range(100):
                        signal.raise_signal(signal.SIGINT)
                        run(X)
        finally:
            ends.set()
        assert all(c.result() for c in calls)
    assert np.asarray(run(X)).tobytes() == expected
