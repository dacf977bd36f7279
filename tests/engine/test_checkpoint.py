"""Checkpointed loops give the gradient that uncheckpointed ones give, in less memory."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from jax_enzyme.ad.vjp import reversal_of
from jax_enzyme.codegen import derived
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.options import Lever, Options
from jax_enzyme.rules.table import standard
from jax_enzyme.signature import Binding
from tests.support.engine import Native, agree, native, pulled, random_like, three_way
from tests.support.loops import LONG

DIFFUSION = """
#include <math.h>
void diffuse(int n, int steps, double dt, double *u, double *w) {
    for (int t = 0; t < steps; t++) {
        for (int i = 1; i < n - 1; i++)
            w[i] = u[i] + dt * (u[i - 1] - 2 * u[i] + u[i + 1]) + dt * sin(u[i] * u[i]);
        for (int i = 1; i < n - 1; i++) u[i] = w[i];
    }
}
"""

SWAPPED = """
#include <stdlib.h>
double swapped(int n, int steps, const double *x) {
    double *a = malloc(8 * n), *b = malloc(8 * n), sum = 0;
    for (int i = 0; i < n; i++) a[i] = x[i];
    for (int t = 0; t < steps; t++) {
        for (int i = 0; i < n; i++) b[i] = a[i] * a[(i + 1) % n] * 0.3 + 0.8 * a[i];
        double *c = a;
        a = b;
        b = c;
    }
    for (int i = 0; i < n; i++) sum += a[i] * a[i];
    free(a);
    free(b);
    return sum;
}
"""

ROTATED = """
#include <stdlib.h>
double rotated(int n, const int *k, const double *x) {
    int m = k[0];
    double **rows = malloc(m * sizeof *rows), *data = malloc(m * sizeof *data), sum = 0;
    for (int i = 0; i < m; i++) { data[i] = x[i % n]; rows[i] = data + i; }
    for (int t = 0; t < 11; t++) {
        double *first = rows[0];
        for (int i = 0; i + 1 < m; i++) rows[i] = rows[i + 1];
        rows[m - 1] = first;
        for (int i = 0; i + 1 < m; i++) *rows[i] = 0.9 * *rows[i] + 0.1 * *rows[i + 1] * *rows[i];
    }
    for (int i = 0; i < m; i++) sum += *rows[i] * i;
    free(rows);
    free(data);
    return sum;
}
"""

LENGTHS = ["sqrt", "log", 1, 3, 100]


def _diffusion(steps: int, n: int = 7) -> Native:
    signature = "n: i32, steps: i32, dt: f64, inout u: f64[n], scratch w: f64[n]"
    return replace(native(DIFFUSION, "diffuse", signature, {}), binding=Binding.of({"n": n}, {"steps": steps}))


@pytest.mark.parametrize("length", LENGTHS)
def test_state_in_buffers(length: str | int) -> None:
    values = np.random.default_rng(0).standard_normal(7)
    agree(three_way(replace(_diffusion(20), options=Options(checkpoint=length)), [0.1, values]))


@pytest.mark.parametrize("length", LENGTHS)
def test_state_behind_swapped_pointers(length: str | int) -> None:
    kernel = native(SWAPPED, "swapped", "n: i32, steps: i32, x: f64[n] -> f64", {})
    kernel = replace(kernel, binding=Binding.of({"n": 5}, {"steps": 11}), options=Options(checkpoint=length))
    agree(three_way(kernel, [np.random.default_rng(1).uniform(0.2, 1, 5)]))


def test_state_in_tables_of_pointers_of_any_length() -> None:
    kernel = native(ROTATED, "rotated", "n: i32, k: i32[1], x: f64[n] -> f64", {"n": 5})
    kernel = replace(kernel, options=Options(checkpoint="sqrt"))
    agree(three_way(kernel, [np.array([7], np.int32), np.random.default_rng(2).uniform(0.2, 1, 5)]))


def _tape_bytes(kernel: Native) -> int:
    job = derived._Job(kernel.program, kernel.signature, kernel.binding, (), kernel.options)  # pyright: ignore
    step = Vjp((True, True, False), (False, True, False))
    return reversal_of(job.canonical(), step, standard(), kernel.options).root.plan.tape.root.size


def test_above_the_budget_a_loop_is_checkpointed() -> None:
    kernel = _diffusion(1000, 50)
    whole = _tape_bytes(replace(kernel, options=Options(checkpoint=False, tape_budget=0)))
    assert _tape_bytes(replace(kernel, options=Options(tape_budget=1 << 30))) == whole
    assert _tape_bytes(replace(kernel, options=Options(tape_budget=1 << 16))) < whole / 20


def test_a_dearer_tape_is_shorter() -> None:
    kernel = _diffusion(20, 50)
    sizes = [_tape_bytes(replace(kernel, options=Options(tape_cost=cost))) for cost in (0.25, 1.0, 64.0)]
    assert sizes[0] >= sizes[1] > sizes[2]
    x = np.random.default_rng(2).standard_normal(50)
    for cost in (0.25, 64.0):
        agree(three_way(replace(kernel, options=Options(tape_cost=cost)), [0.1, x]))


@pytest.mark.parametrize("part", get_args(Lever))
def test_gradients_do_without_each_part_of_the_plan(part: Lever) -> None:
    kernel = _diffusion(20, 50)
    without = replace(kernel, options=Options(without=(part,)))
    if part in ("recomputing", "reloading"):
        assert _tape_bytes(without) > _tape_bytes(kernel)
    agree(three_way(without, [0.1, np.random.default_rng(3).standard_normal(50)]))


@pytest.mark.parametrize("name", LONG)
def test_loops_of_every_shape(name: str) -> None:
    """Lengths that only the run knows, several exits, memory of its own: segments whose length follows the loop."""
    long = LONG[name]
    agree(three_way(long.kernel("sqrt"), long.arguments()))
    expected = _gradient(long.kernel(False), long.arguments())
    for length in ("log", 3):
        found = _gradient(long.kernel(length), long.arguments())
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12 * np.max(np.abs(b)))


def _gradient(kernel: Native, inputs: list) -> list[np.ndarray]:
    wanted = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    seeded = tuple(b.is_result and b.is_floating for b in kernel.buffers)
    results = [b for b in kernel.buffers if b.is_result and b.is_floating]
    cotangents = [random_like(np.random.default_rng(3), b) for b in results]
    return pulled(kernel, (Vjp(wanted, seeded),), inputs, cotangents, {})


@pytest.mark.parametrize("way", ["limit", "break", "return", "never"])
def test_every_way_out(way: str) -> None:
    long = LONG["several ways out"]
    steps, limit, b, x = long.arguments()
    match way:
        case "limit":
            limit = 50.0
        case "break":
            x = np.add(x, [0.8, 0, 0, 0, 0])
        case "return":
            x = np.add(x, [0, 0.9, 0, 0, 0])
        case _:
            steps, x = np.int32(5), 0.1 * x
    agree(three_way(long.kernel("sqrt"), [steps, limit, b, x]))


@pytest.mark.parametrize("checkpoint", ["sqrt", "log"])
def test_any_number_of_iterations(checkpoint: str) -> None:
    """Records are dropped, segments doubled and halved at all kinds of lengths."""
    signature = "n: i32, steps: i32, dt: f64, inout u: f64[n], scratch w: f64[n]"
    kernel = native(DIFFUSION, "diffuse", signature, {"n": 6})
    cut = replace(kernel, options=Options(checkpoint=checkpoint))
    values = np.random.default_rng(0).standard_normal(6)
    for steps in [*range(12), 15, 16, 17, 31, 32, 33, 64, 100, 257, 1000]:
        inputs = [np.int32(steps), 0.01, values]
        for a, b in zip(_gradient(cut, inputs), _gradient(kernel, inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


REFUSED = {
    "frees or resizes memory": """
        #include <stdlib.h>
        double kernel(int n, int steps, const double *b) {
            double *u = malloc(8 * n), s = 0;
            for (int i = 0; i < n; i++) u[i] = b[i];
            for (int t = 0; t < steps; t++) {
                double *w = malloc(8 * n);
                for (int i = 0; i < n; i++) w[i] = u[i] * u[(i + 1) % n];
                free(u);
                u = w;
            }
            for (int i = 0; i < n; i++) s += u[i];
            free(u);
            return s;
        }
    """,
    "may do something else when an iteration runs again": """
        #include <unistd.h>
        double kernel(int n, int steps, const double *b) {
            double s = 1;
            for (int t = 0; t < steps; t++) s *= b[sysconf(_SC_NPROCESSORS_ONLN) % n] * s;
            return s;
        }
    """,
    "in a function that calls itself": """
        static double f(int d, int steps, double x) {
            for (int t = 0; t < steps; t++) x *= 1.5 - x;
            return d == 0 ? x : f(d - 1, steps, x) * f(d - 1, steps, x * 0.9);
        }
        double kernel(int n, int steps, const double *b) { return f(n, steps, b[0]); }
    """,
    "mixes numbers with pointers that change, or that numbers may replace": """
        #include <math.h>
        struct node { double v[4]; struct node *next; };
        double kernel(int n, int steps, const double *b) {
            struct node here, *p = &here;
            here.next = &here;
            for (int i = 0; i < 4; i++) here.v[i] = b[i % n] * (i + 1);
            for (int t = 0; t < steps; t++, p = p->next)
                for (int i = 0; i < 4; i++) {
                    p->v[i] += 0.2 * cos(p->v[i]);
                    if (p->v[0] < b[1]) break;
                }
            return here.v[0] + here.v[1] * 2;
        }
    """,
    "there is no loop to checkpoint": "double kernel(int n, int steps, const double *b) { return b[0] * b[n - 1]; }",
}


@pytest.mark.parametrize("cause", REFUSED)
def test_refused(cause: str) -> None:
    """With the reason, and its place; without checkpointing it can be done."""
    made = native(REFUSED[cause], "kernel", "n: i32, steps: i32, b: f64[n] -> f64", {"n": 3}, flags=("-g",))
    inputs = [np.int32(3), np.full(3, 0.5)]
    with pytest.raises(DifferentiationError, match=cause) as caught:
        _gradient(replace(made, options=Options(checkpoint="sqrt")), inputs)
    assert "je.primal" not in str(caught.value)
    if "no loop" not in cause:
        assert caught.value.place is not None and "kernel.c" in caught.value.place
    assert all(np.all(np.isfinite(g)) for g in _gradient(made, inputs))


def test_memory_of_a_long_loop() -> None:
    """10,000 steps, a number that only the run knows, of a grid whose full tape would take gigabytes."""
    signature = "n: i32, steps: i32, dt: f64, inout u: f64[n], scratch w: f64[n]"
    kernel = replace(native(DIFFUSION, "diffuse", signature, {"n": 500}), options=Options(checkpoint="sqrt"))
    values = np.random.default_rng(0).standard_normal(500)
    _gradient(kernel, [np.int32(1), 0.1, values])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradient = _gradient(kernel, [np.int32(10_000), 0.1, values])
    assert all(np.all(np.isfinite(g)) for g in gradient)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


@pytest.mark.parametrize("wrong", [0, -1, "binomial", 2.5, True])
def test_wrong_options(wrong: object) -> None:
    with pytest.raises(ValueError, match="checkpoint is"):
        Options(checkpoint=wrong)  # type: ignore[arg-type]
