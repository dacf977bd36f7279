"""Tapes whose size only the forward sweep finds out: the process keeps them, and a gradient is the same to the last bit
whether it still does."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.xla_ffi._ext import kept_tapes, release_memory

_SOURCE = """
#include <math.h>
// How long the loops run depends on x; reverse reads what they leave in s and y.
void relax(int n, int most, const double *x, double *s, double *y) {
    for (int i = 0; i < n; i++) {
        int k = 0;
        do {
            s[i] = sin(s[i]) + x[i] * x[i];
            k++;
        } while (s[i] * s[i] < 0.9 * k && k < most);
        y[i] = s[i] * x[(i + 1) % n];
    }
    for (int i = 1; i < n; i++) y[i] *= y[i - 1];
}
"""


@cache
def _relax() -> je.Kernel:
    return je.kernel(_SOURCE, "relax", "n: i32, most: i32, x: f64[n], inout s: f64[n], out y: f64[n]", lang="c")


def _function(x: jax.Array, s: jax.Array) -> jax.Array:
    moved, y = _relax()(np.int32(40), x, s)
    return jnp.sum(jnp.cos(moved)) + jnp.sum(y)


def _model(x: jax.Array, s: jax.Array) -> jax.Array:
    """The same in jax.numpy."""

    def more(state: tuple[Any, Any], k: Any) -> tuple[tuple[Any, Any], None]:
        value, runs = state
        new = jnp.where(runs, jnp.sin(value) + x * x, value)
        return (new, runs & (new * new < 0.9 * (k + 1))), None

    (moved, _), _ = jax.lax.scan(more, (s, jnp.ones(len(x), bool)), jnp.arange(40))
    y = jnp.cumprod(moved * jnp.roll(x, -1))
    return jnp.sum(jnp.cos(moved)) + jnp.sum(y)


def _points(*shape: int) -> tuple[jax.Array, jax.Array]:
    random = np.random.default_rng(3)
    return jnp.asarray(random.uniform(0.5, 1.4, shape)), jnp.asarray(random.uniform(-1, 1, shape))


def _in_a_scan(f: Callable[..., Any], xs: jax.Array, ss: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda total, at: (0.5 * total + f(*at) * total, None), jnp.ones(()), (xs, ss))[0]


def _in_a_branch(f: Callable[..., Any], xs: jax.Array, ss: jax.Array) -> jax.Array:
    return jax.lax.cond(xs[0, 0] > 0, f, lambda x, s: jnp.sum(x * s), xs[1], ss[1])


WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "plain": lambda f: lambda xs, ss: f(xs[0], ss[0]),
    "batch": lambda f: lambda xs, ss: jnp.sum(jnp.sin(jax.vmap(f)(xs, ss))),
    "shared": lambda f: lambda xs, ss: jnp.sum(jnp.sin(jax.vmap(f, (None, 0))(xs[0], ss))),
    "scan": lambda f: partial(_in_a_scan, f),
    "remat": lambda f: partial(_in_a_scan, jax.checkpoint(f)),
    "saved": lambda f: partial(_in_a_scan, jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)),
    "branch": lambda f: partial(_in_a_branch, f),
    "twice": lambda f: lambda xs, ss: f(xs[0], ss[0]) * f(xs[0], ss[0] + f(xs[1], ss[1])),
}


@pytest.mark.parametrize("way", WAYS)
def test_inside_of(way: str) -> None:
    points = _points(6, 5)
    found = jax.jit(jax.value_and_grad(WAYS[way](_function), (0, 1)))(*points)
    expected = jax.jit(jax.value_and_grad(WAYS[way](_model), (0, 1)))(*points)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12), found, expected)


def test_forward_and_second_derivatives_and_differences() -> None:
    from jax.test_util import check_grads

    x, s = (p[0] for p in _points(1, 5))
    check_grads(jax.jit(_function), (x, s), order=1, modes=("fwd", "rev"), rtol=1e-6)
    ours, theirs = (jax.jit(jax.hessian(f))(x, s) for f in (_function, _model))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def test_the_kernel_runs_once() -> None:
    """The pullback of a kept tape does not run the kernel again: that of one that has gone does, to the same bits."""
    points = _points(2, 50)
    release_memory()
    pulls = [jax.vjp(_function, x, s)[1] for x, s in zip(*points, strict=True)]
    assert kept_tapes()[0] == 2
    before = [pull(1.0) for pull in pulls]
    again = [pull(1.0) for pull in pulls]
    release_memory()
    assert kept_tapes() == (0, 0)
    gone = [pull(1.0) for pull in pulls]
    assert kept_tapes() == (0, 0)
    jax.tree.map(np.testing.assert_array_equal, before, again)
    jax.tree.map(np.testing.assert_array_equal, before, gone)


def test_cotangents_share_a_forward_sweep() -> None:
    x, s = (p[0] for p in _points(1, 30))
    release_memory()
    rows = jax.jacrev(lambda x: _relax()(np.int32(40), x, s)[1])(x)
    assert kept_tapes()[0] == 1
    columns = jax.jacfwd(lambda x: _relax()(np.int32(40), x, s)[1])(x)
    np.testing.assert_allclose(rows, columns, rtol=1e-10, atol=1e-12)


def test_a_handle_of_something_else_is_not_followed() -> None:
    """Numbers that are no handle, and the handle of another derivative of the same kernel."""
    from jax_enzyme.ir.arrays import Augmented, Pullback
    from tests.support import through_engine

    x, s = (np.asarray(p[0]) for p in _points(1, 5))
    arguments = {"most": np.int32(40), "x": x, "s": s}
    kernel = through_engine.specialise(_relax().program, str(_relax().signature), arguments)
    given = {**arguments, "n": np.int32(5), "s_bar": np.ones(5), "y_bar": np.ones(5)}
    both, one = (kernel.vjp.wanted, kernel.vjp.seeded), (kernel.vjp.wanted, _only(kernel.vjp.seeded, -1))

    def run(step: Any, handle: Any = None) -> dict[str, np.ndarray]:
        built = kernel.build(step)
        values = [handle if b.role == "tape" else given[b.name] for b in built.buffers if b.is_input]
        return {b.name: value for b, value in through_engine.results(built, values)}

    handle, other = run(Augmented(*both))["tape"], run(Augmented(*one))["tape"]
    expected = run(Pullback(*both), handle)
    for wrong in (np.zeros(16, np.uint8), np.full(16, 255, np.uint8), other, handle[::-1].copy()):
        jax.tree.map(np.testing.assert_array_equal, run(Pullback(*both), wrong), expected)


def _only(flags: tuple[bool, ...], index: int) -> tuple[bool, ...]:
    return tuple(flag and i == index % len(flags) for i, flag in enumerate(flags))


def test_tapes_that_nobody_reads_have_a_bound() -> None:
    """Of many forward sweeps the oldest tapes go: their pullbacks are right all the same."""
    steps = np.int32(1000)
    longer = je.kernel(
        """
        #include <math.h>
        void spin(int steps, int n, const double *x, double *y) {
            for (int i = 0; i < n; i++) y[i] = x[i];
            for (int k = 0; k < steps; k++) for (int i = 0; i < n; i++) y[i] = sin(y[i] + x[i]);
        }
        """,
        "spin",
        "steps: i32, n: i32, x: f64[n], out y: f64[n]",
        lang="c",
    )
    x = jnp.linspace(0, 1, 1000)
    release_memory()
    pulls = [jax.vjp(partial(longer, steps), x)[1] for _ in range(3)]
    count, one = kept_tapes()
    assert count == 3
    most = min(512 << 20, os.sysconf("SC_PHYS_PAGES") // 16 * os.sysconf("SC_PAGE_SIZE"))
    for _ in range(most // (one // 3) + 2):
        jax.vjp(partial(longer, steps), x)
    gc.collect()
    assert kept_tapes()[1] <= most
    first, last = pulls[0](x)[0], jax.vjp(partial(longer, steps), x)[1](x)[0]
    np.testing.assert_array_equal(first, last)
    release_memory()


def test_threads_share_what_is_kept() -> None:
    points = _points(1, 200)
    x, s = points[0][0], points[1][0]
    gradient = jax.jit(jax.grad(_function))
    expected = gradient(x, s)
    pull = jax.vjp(_function, x, s)[1]

    def call(turn: int) -> Any:
        if turn % 7 == 0:
            release_memory()
        return pull(1.0)[0] if turn % 2 else gradient(x, s)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(call, range(200)):
            np.testing.assert_array_equal(found, expected)


def test_a_forked_process_does_not_follow_its_parents_handles() -> None:
    x, s = (p[0] for p in _points(1, 5))
    pull = jax.vjp(_function, x, s)[1]
    jax.block_until_ready(pull(1.0))
    assert kept_tapes()[0] > 0
    with warnings.catch_warnings(action="ignore"):  # JAX's, of threads that the child does not have
        child = os.fork()
    if child == 0:
        os._exit(kept_tapes()[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
