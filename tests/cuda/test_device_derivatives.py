"""Derivatives of one thread, run on the CPU for all threads: forward, reverse in one kernel and in two, and differences
agree, and so do second derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ad import device
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir.arrays import Augmented, Buffer, Jvp, Pullback, Vjp
from jax_enzyme.ir.instructions import Store, base_of
from tests.cuda.cases import CASES, Case
from tests.cuda.device import agree, derived, on_cpu, results, three_way
from tests.cuda.test_device_threads import native
from tests.cuda.test_kernels import inputs, subject
from tests.support.engine import Native, by_turns

# Every warp operation is a loop over lanes on the CPU: this kernel's derivatives, with 40 and more, take LLVM a minute.
# Smaller kernels in `test_device_threads` have all that it has.
_LONG = ("softmax",)
SHORT = [pytest.param(c, id=c.name) for c in CASES if c.name not in _LONG]
# Gathers, shared tiles with a halo, shuffles, and atomics.
_TWICE = ("cross_sections", "stencil", "reduce", "histogram")


@pytest.mark.parametrize("case", SHORT)
def test_reverse(case: Case) -> None:
    kernel, given = subject(case, case.launches[-1]), inputs(case)[1]
    agree(three_way(kernel, given, step=case.step, sweeps=by_turns(CASES.index(case))))


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES if c.name in _TWICE])
def test_second_order(case: Case) -> None:
    """Forward over reverse on the device gives what it gives on the CPU."""
    # With shuffles in two warps a block, LLVM takes half a minute.
    way = replace(case.launches[0], grid="(n+31)//32", block=32) if case.name == "reduce" else case.launches[0]
    kernel, given = subject(case, way), inputs(case)[1]
    base = kernel.buffers
    pull = Vjp(tuple(b.is_input and b.is_floating for b in base), tuple(b.is_result and b.is_floating for b in base))
    rng = np.random.default_rng(1)
    seeds = [rng.normal(size=b.shape) for b in base if b.is_result and b.is_floating]
    tangents = [rng.normal(size=b.shape) for b in base if b.is_input and b.is_floating]
    first = derived(kernel, pull)
    mask = tuple(b.is_input and b.is_floating and b.role == "primal" for b in first.buffers)
    got = results(on_cpu(derived(kernel, pull, Jvp(mask))), [*given, *seeds, *tangents])
    own = mask[: len(mask) - sum(b.role == "tape" for b in first.buffers)]
    expected = kernel.run((pull, Jvp(own)), [*given, *seeds, *tangents])
    assert len(got) == len(expected)
    for a, b in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def _tapes(kernel: Native) -> list[Buffer]:
    """The tape as the one kernel leaves it, and as the other reads it."""
    wanted = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    steps = [step(wanted, tuple(b.is_result for b in kernel.buffers)) for step in (Augmented, Pullback)]
    return [b for step in steps for b in derived(kernel, step).buffers if b.role == "tape"]


def test_the_tape_is_one_buffer_of_bytes_per_thread() -> None:
    case = next(c for c in CASES if c.name == "galerkin")
    kept, read = _tapes(subject(case, case.launches[0]))
    assert kept.shape == read.shape == (144, 48)
    assert (kept.io, read.io) == ("out", "in")


def test_functions_of_inputs_are_computed_again() -> None:
    source = "(const double *x, double *y) { int i = threadIdx.x; y[i] = exp(x[i]) * sqrt(1 + x[i]) * cos(x[i]); }"
    assert not _tapes(native(source, "x: f64[32], out y: f64[32]", {}, 32))


def test_the_forward_sweep_runs_again_where_that_costs_less_than_a_tape() -> None:
    """Shared memory is filled again, so that nothing of it is kept, and what the kernel computes is not written."""
    case = next(c for c in CASES if c.name == "stencil")
    kernel, given = subject(case, case.launches[0]), inputs(case)[1]
    way = case.launches[0]
    report = (
        je.kernel(
            str(case.path),
            case.name,
            case.signature,
            flags=way.flags,
            grid=way.grid,
            block=way.block,
            shared=way.shared,
        )
        .inspect(*given)
        .gpu
    )
    assert report is not None and report.functions == ("primal", "jvp", "vjp") and report.tape_bytes == 0
    assert any("runs the forward sweep again" in row for _, rows in report.sections() for row in rows)
    function = derived(kernel, Vjp((True, True, False), (False, False, True)))
    (forward,) = [f for name, f in function.module.functions.items() if name.endswith(".forward")]
    stored = {base_of(i.operands[1]) for i in forward.instructions() if isinstance(i, Store)}
    assert stored and forward.arguments[2] not in stored


def test_forward_over_forward() -> None:
    """Tangents of tangents in shared memory have memory of their own."""
    case = next(c for c in CASES if c.name == "stencil")
    kernel, given = subject(case, case.launches[0]), inputs(case)[1]
    first = Jvp(tuple(b.is_input and b.is_floating for b in kernel.buffers))
    second = Jvp(tuple(b.is_input and b.is_floating for b in derived(kernel, first).buffers))
    rng = np.random.default_rng(2)
    moved = [rng.normal(size=np.shape(x)) for x in given]
    again = [rng.normal(size=np.shape(x)) for x in (*given, *moved)]
    got = results(on_cpu(derived(kernel, first, second)), [*given, *moved, *again])
    expected = kernel.run((first, second), [*given, *moved, *again])
    for a, b in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rounds", ["5", "(int)w[0]"], ids=["of known length", "counted"])
def test_halves_of_shared_memory_that_take_turns(rounds: str) -> None:
    """Pointers that change places: reverse keeps which half it was, as an offset."""
    source = f"""(int n, const double *x, const int *w, double *y) {{
      __shared__ double s[3 * 16];
      int i = threadIdx.x;
      double *now = s, *next = &s[n];
      now[i] = x[i];
      for (int t = 0; t < {rounds}; t++) {{
        __syncthreads();
        if (i < n) next[i] = sin(now[i]) * now[(i + 1) % n] + now[0];
        __syncthreads();
        double *before = now;
        now = next;
        next = before;
      }}
      __syncthreads();
      y[i] = now[i] * now[n - 1 - i];
    }}"""
    kernel = native(source, "n: i32, x: f64[n], w: i32[1], out y: f64[n]", {"n": 16}, 16)
    agree(three_way(kernel, [np.linspace(0.2, 1.1, 16), np.array([4], np.int32)]))


_HALVES = """(int n, const double *x, double *y) {
  __shared__ double s[2][16];
  int i = threadIdx.x, half = 0;
  s[0][i] = x[i];
  __syncthreads();
  for (int m = 1; m < n; STEP) {
    double a = s[half][i], b = s[half][i ^ m], c = s[half][(i + m) % n];
    s[half ^ 1][(i + m) % n] = sin(a) * b + cos(a) * exp(-c * c) + 0.1 * tanh(a + b) * c;
    half ^= 1;
    __syncthreads();
  }
  y[i] = s[half][i] * s[half][n - 1 - i];
}"""


@pytest.mark.parametrize("step", ["m++", "m *= 2"])
def test_the_half_of_shared_memory_that_a_loop_ends_with(step: str) -> None:
    """An index computes which half is whose; the last one's address is used behind the loop. Levels are unrolled."""
    kernel = native(_HALVES.replace("STEP", step), "n: i32, x: f64[n], out y: f64[n]", {"n": 16}, 16)
    agree(three_way(kernel, [np.linspace(0.2, 1.1, 16)]))
    module = device.canonical(derived(kernel)).module
    assert bool(Loops.of(module.functions["je.primal"]).all) == (step == "m++")
