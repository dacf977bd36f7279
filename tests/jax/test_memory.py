"""Memory: donation, pullbacks that are dropped, calls in threads."""

from __future__ import annotations

import gc
import os
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.primitives.calls import _GONE, Calls, calls_of
from jax_enzyme.xla_ffi._ext import kept_memory, kept_tapes, release_memory


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


SQUARES = "void squares(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i]; }"
ROUNDS = """
void rounds(int n, const double *x, double *y) {
  for (int t = 1; t < 4; t++)
    for (int i = 0; i < n; i++) y[i] = t * x[i] * x[i];
}
"""


def _flags_of_memory_at(address: int) -> list[str]:
    """What the system has been told about the memory that an address is in."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            low, high = (int(end, 16) for end in first.split("-"))
            inside = low <= address < high
        elif inside and first == "VmFlags:":
            return rest.split()
    raise AssertionError("the address is in no memory of this process")


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no huge pages for what asks")
def test_large_results_are_huge_pages() -> None:
    n = (32 << 20) // 8 + 1000
    squares = jax.jit(je.kernel(SQUARES, "squares", "n: i32, x: f64[n], out y: f64[n]", lang="c"))
    result = squares(jnp.full(n, 3.0))
    assert "hg" in _flags_of_memory_at(result.unsafe_buffer_pointer() + n * 4)
    assert float(result[0]) == float(result[-1]) == 9.0


@pytest.mark.parametrize(("source", "name", "copies", "factor"), [(SQUARES, "squares", 0, 2), (ROUNDS, "rounds", 1, 6)])
def test_a_cotangent_is_copied_where_the_pullback_writes_to_it(
    source: str, name: str, copies: int, factor: int
) -> None:
    """And stays as the caller has it, however it is called."""
    kernel = je.kernel(source, name, "n: i32, x: f64[n], out y: f64[n]", lang="c")

    def pull(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.vjp(kernel, x)[1](w)[0]

    x, w = jnp.arange(1.0, 65.0), jnp.cos(jnp.arange(64.0))
    assert jax.jit(pull).lower(x, w).compile().as_text().count(" copy(") == copies
    expected, kept = factor * np.asarray(x) * np.asarray(w), np.asarray(w)
    both = jnp.stack([x, 2 * x])
    for _ in range(2):
        np.testing.assert_allclose(jax.jit(pull)(x, w), expected, rtol=1e-14)
        np.testing.assert_allclose(jax.vmap(pull, (0, None))(both, w), expected * np.array([[1.0], [2.0]]), rtol=1e-14)
        np.testing.assert_allclose(jax.jit(pull)(w, w), factor * kept * kept, rtol=1e-14)
        carried = jax.lax.scan(lambda c, scale: (c + pull(scale * x, w), pull(x, w)), jnp.zeros(64), both[:, 0])
        np.testing.assert_allclose(carried[0], 3 * expected, rtol=1e-13)
        np.testing.assert_allclose(carried[1], np.stack([expected] * 2), rtol=1e-14)
        second = jax.jit(jax.grad(lambda x: jnp.vdot(pull(x, w), w)))(x)
        np.testing.assert_allclose(second, factor * kept**2, rtol=1e-14)
        np.testing.assert_array_equal(w, kept)
    given = jax.jit(pull, donate_argnums=1)(x, jnp.array(w))
    np.testing.assert_allclose(given, expected, rtol=1e-14)


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


@cache
def _steep() -> je.Kernel:
    """Its tape has no static size, and takes half a megabyte for each 1,000 rounds."""
    return je.kernel(
        """
        #include <math.h>
        #include <stdlib.h>
        int steep(int rounds, const double *x, double *y) {
            double *s = malloc(20000 * sizeof *s);
            if (!s) return 1;
            for (int i = 0; i < 20000; i++) s[i] = x[i % 64];
            for (int k = 0; k < rounds; k++)
                for (int i = 0; i < 64; i++) s[i] = sin(s[i]);
            for (int i = 0; i < 64; i++) y[i] = s[i];
            free(s);
            return *y > 2;
        }
        """,
        "steep",
        "rounds: i32, x: f64[64], out y: f64[64] -> status",
        lang="c",
    )


def test_large_blocks_stay_between_calls() -> None:
    """The memory of the kernel, of its tape and of shadows: a second call asks the C library for none. Of calls in
    several threads each has its own, and what a failed one had is back."""

    gradient = jax.jit(jax.grad(lambda x, rounds: jnp.sum(_steep()(rounds, x))))
    x = jnp.linspace(0.1, 1, 64)

    def check(rounds: int) -> None:
        slope, y = np.ones(64), np.array(x)
        for _ in range(rounds):
            slope, y = slope * np.cos(y), np.sin(y)
        np.testing.assert_allclose(gradient(x, jnp.int32(rounds)), slope)

    counts = (1500, 2500, 4500)
    for rounds in counts:
        check(rounds)
    _, kept, asked = kept_memory()
    assert kept + kept_tapes()[1] > 4e6
    for rounds in counts:
        check(rounds)
    assert kept_memory()[2] == asked
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, counts * 8))
    assert release_memory() >= kept
    assert kept_memory()[:2] == kept_tapes() == (0, 0)


def test_first_calls_in_threads() -> None:
    def run(n: int) -> Any:
        return jax.grad(lambda x: jnp.sum(_step()(x, 0.5)))(jnp.zeros(10 + n % 4))

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(run, range(16)):
            np.testing.assert_allclose(found, 1.5)


@cache
def _times() -> je.Kernel:
    return je.kernel("double f(double a, int p) { return a * p; }", "f", "a: f64, p: i32 -> f64", lang="c")


def _mapped() -> int:
    """Pieces of memory that are mapped: what a process runs out of first where code stays."""
    gc.collect()
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_code_that_nobody_calls_is_freed() -> None:
    def run(first: int, count: int) -> None:
        for i in range(first, first + count):
            assert float(jax.jit(lambda x, i=i: _times()(x, i))(2.0)) == 2 * i

    run(0, 70)  # what was made last stays a while
    before = _mapped()
    run(70, 40)
    assert _mapped() - before < 40  # each has two


def test_code_that_is_called_stays() -> None:
    """Though its kernel is gone, and many were made since; what was never called is rebuilt."""
    called, lowered = (
        jax.jit(je.kernel(f"double f(double a) {{ return a * {c}; }}", "f", "a: f64 -> f64", lang="c")) for c in (3, 4)
    )
    assert float(called(2.0)) == 6.0
    program = lowered.lower(2.0)
    del lowered
    for i in range(200, 270):
        jax.jit(lambda x, i=i: _times()(x, i)).lower(2.0)
    gc.collect()
    assert float(called(2.0)) == 6.0
    assert float(program.compile()(2.0)) == 8.0


def test_calls_go_with_the_last_kernel_that_is_equal_and_recent_ones_later() -> None:
    def make() -> je.Kernel:
        return je.kernel("double f(double a) { return a * 5; }", "f", "a: f64 -> f64", lang="c")

    kernel, other = make(), make()
    calls = weakref.ref(kernel._calls)
    assert calls() is other._calls
    assert float(kernel(2.0)) == 10.0
    del kernel
    assert calls() is not None
    del other
    gc.collect()
    assert calls() is make()._calls  # made anew, as in the body of a function
    for i in range(_GONE):
        calls_of(f"another kernel {i}")
    gc.collect()
    assert calls() is None


def test_only_so_many_calls_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax_enzyme.primitives.calls._MOST", 3)
    monkeypatch.setattr("jax_enzyme.primitives.calls._made", deque())
    calls = Calls()
    compiled = [calls.get(i, object) for i in range(4)]
    assert [calls.get(i, object) is compiled[i] for i in (3, 2, 1)] == [True, True, True]
    assert calls.get(0, object) is not compiled[0]
