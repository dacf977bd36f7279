"""Checkpointed loops give the gradient that uncheckpointed ones give, in less memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jax_enzyme.ad.vjp import reversal_of
from jax_enzyme.codegen import derived
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.options import Options
from jax_enzyme.rules.table import standard
from jax_enzyme.signature import Binding
from tests.support.engine import Native, agree, native, three_way

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

LENGTHS = ["sqrt", 1, 3, 100]


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


def _tape_bytes(kernel: Native) -> int:
    job = derived._Job(kernel.program, kernel.signature, kernel.binding, (), kernel.options)  # pyright: ignore
    step = Vjp((True, True, False), (False, True, False))
    return reversal_of(job.canonical(), step, standard(), kernel.options).root.plan.tape.root.size


def test_above_the_budget_a_loop_is_checkpointed() -> None:
    kernel = _diffusion(1000, 50)
    whole = _tape_bytes(replace(kernel, options=Options(checkpoint=False, tape_budget=0)))
    assert _tape_bytes(replace(kernel, options=Options(tape_budget=1 << 30))) == whole
    assert _tape_bytes(replace(kernel, options=Options(tape_budget=1 << 16))) < whole / 20


def test_a_loop_of_unknown_length_cannot_be_checkpointed() -> None:
    signature = "n: i32, steps: i32, dt: f64, inout u: f64[n], scratch w: f64[n]"
    kernel = replace(native(DIFFUSION, "diffuse", signature, {"n": 7}), options=Options(checkpoint="sqrt"))
    with pytest.raises(DifferentiationError, match="no loop to checkpoint"):
        three_way(kernel, [np.int32(5), 0.1, np.ones(7)])


@pytest.mark.parametrize("wrong", [0, -1, "log", 2.5, True])
def test_wrong_options(wrong: object) -> None:
    with pytest.raises(ValueError, match="checkpoint is"):
        Options(checkpoint=wrong)  # type: ignore[arg-type]
