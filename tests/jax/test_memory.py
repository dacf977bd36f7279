"""Memory: donation, pullbacks that are dropped, calls in threads."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import jax_enzyme as je


@cache
def _step() -> je.Kernel:
    return je.kernel(
        """
        #include <math.h>
        void step(int n, double *s, double h) { for (int i = 0; i < n; i++) s[i] += h * sin(s[i]); }
        """,
        "step",
        "n: i32, inout s: f64[n], h: f64",
        lang="c",
    )


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_donation_updates_in_place() -> None:
    run = jax.jit(_step(), donate_argnums=0)
    state = jnp.arange(100_000.0)
    address = state.unsafe_buffer_pointer()
    for _ in range(3):
        state = run(state, 0.1)
        assert state.unsafe_buffer_pointer() == address


def test_without_donation_the_argument_stays() -> None:
    state = jnp.arange(1000.0)
    moved = jax.jit(_step())(state, 0.1)
    assert moved.unsafe_buffer_pointer() != state.unsafe_buffer_pointer()
    np.testing.assert_array_equal(state, np.arange(1000.0))


def test_dropped_pullbacks_leak_nothing() -> None:
    x = jnp.ones(50_000)

    def drop(count: int) -> None:
        for _ in range(count):
            _, pull = jax.vjp(_step(), x, 0.1)
            del pull

    drop(50)
    gc.collect()
    before = _resident()
    drop(1000)
    gc.collect()
    assert _resident() - before < 40e6  # one tape is 0.4 MB


def test_a_pullback_can_be_called_often_and_in_threads() -> None:
    x = jnp.linspace(0, 1, 1000)
    _, pull = jax.vjp(_step(), x, 0.5)
    expected = 1 + 0.5 * np.cos(x)

    def call(scale: float) -> Any:
        return pull(jnp.full(1000, float(scale)))[0]

    with ThreadPoolExecutor(8) as pool:
        for scale, found in zip(range(64), pool.map(call, range(64)), strict=True):
            np.testing.assert_allclose(found, scale * expected)


def test_first_calls_in_threads() -> None:
    def run(n: int) -> Any:
        return jax.grad(lambda x: jnp.sum(_step()(x, 0.5)))(jnp.zeros(10 + n % 4))

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(run, range(16)):
            np.testing.assert_allclose(found, 1.5)
