"""Blocks of one CUDA kernel that several threads run at once: the results are those of one thread, to the last bit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.ir.arrays import Augmented, Buffer, Jvp, Pullback, Step
from jax_enzyme.xla_ffi.function import Function
from tests.support.native import KernelStatus, call
from tests.support.team import Team


@dataclass(frozen=True)
class Shared:
    """A kernel, and which of primal, forward mode, forward and reverse sweep several threads may run."""

    name: str
    source: str
    signature: str
    grid: object
    block: object
    inputs: tuple[np.ndarray, ...]
    shares: str


_R = np.random.default_rng(5)
CASES = (
    Shared(
        "wave", """
extern "C" __global__ void wave(int n, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += sin(x[i]) * x[i];
}""",
        "n: i32, x: f64[n], inout y: f64[n]", "(n+6)//7", 7, (_R.normal(size=1001), _R.normal(size=1001)), "pjfr",
    ),
    Shared(
        "flip", """
extern "C" __global__ void flip(int h, int w, const float *x, float *y) {
  __shared__ float tile[8][9];
  int i = blockIdx.x * 8 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
  if (i < w && j < h) tile[threadIdx.y][threadIdx.x] = x[j * w + i] * x[j * w + i];
  __syncthreads();
  i = blockIdx.x * 8 + threadIdx.y; j = blockIdx.y * 8 + threadIdx.x;
  if (i < w && j < h) y[i * h + j] = tile[threadIdx.x][threadIdx.y];
}""",
        "h: i32, w: i32, x: f32[h,w], out y: f32[w,h]", ("(w+7)//8", "(h+7)//8"), (8, 8),
        (_R.normal(size=(101, 43)).astype(np.float32),), "pjfr",
    ),
    Shared(
        "rows", """
extern "C" __global__ void rows(int b, int n, const double *x, double *y) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum += exp(x[blockIdx.x * n + i]);
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  for (int i = threadIdx.x; i < n; i += 32) y[blockIdx.x * n + i] = exp(x[blockIdx.x * n + i]) / sum;
}""",
        "b: i32, n: i32, x: f64[b,n], out y: f64[b,n]", "b", 32, (_R.normal(size=(40, 64)),), "pjfr",
    ),
)  # fmt: skip


def _function(case: Shared) -> Function:
    kernel = je.kernel(case.source, case.name, case.signature, lang="cuda", grid=case.grid, block=case.block)
    return kernel.specialise(kernel.binding([jnp.asarray(a) for a in case.inputs]))


def _steps(function: Function) -> dict[str, tuple[Step, ...]]:
    wanted = tuple(b.is_floating and b.is_input for b in function.buffers)
    seeded = tuple(b.is_floating and b.is_result for b in function.buffers)
    return {"p": (), "j": (Jvp(wanted),), "f": (Augmented(wanted, seeded),), "r": (Pullback(wanted, seeded),)}


def _values(buffers: tuple[Buffer, ...], kept: dict[str, np.ndarray]) -> list[Any]:
    r = np.random.default_rng(3)
    return [kept[b.name] if b.name in kept else r.normal(size=b.shape) for b in buffers if b.is_input]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_two_threads_do_what_one_does(case: Shared) -> None:
    function = _function(case)
    names = [b.name for b in function.buffers if b.is_input]
    kept = dict(zip(names, case.inputs, strict=True))
    for mode, steps in _steps(function).items():
        built = function
        for step in steps:
            built = built.then(step)
        code = built.build()
        values = _values(code.buffers, kept)
        team = Team()
        alone, together = call(code, values), call(code, values, team=team.address)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, other)
        assert (len(team.ran) == 2) == (mode in case.shares), (mode, team.ran)
        if mode == "f":
            results = [b for b in code.buffers if b.is_result]
            kept |= {b.name: a for b, a in zip(results, alone, strict=True) if b.role == "tape"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y[i] = x[i];", "in 13 parts on several threads"),
        ("y[i] = x[i] + (i > 8 ? y[i - 8] : 0.0);", "`y`: the places that iterations touch"),
        ("y[(int)x[i]] = 1.0;", "`y`: "),
        ("y[threadIdx.x] = x[i];", "`y`: iterations touch the same places of it"),
        ("atomicAdd(&y[i / 16], x[i]);", "`y`: "),
        ("if (i == 3) printf(\"%d\", i); y[i] = x[i];", "it calls `printf`"),
        ("y[i] = x[i] + total; total += 1.0;", "`__device__` variables pass from block to block"),
    ],
)  # fmt: skip
def test_why_blocks_run_in_one_thread(body: str, why: str) -> None:
    source = f"""
__device__ double total = 0;
extern "C" __global__ void f(int n, const double *x, double *y) {{
  int i = blockIdx.x * 8 + threadIdx.x;
  if (i < n) {{ {body} }}
}}"""
    if "total" not in body:
        source = source.replace("__device__ double total = 0;", "#include <stdio.h>")
    kernel = je.kernel(source, "f", "n: i32, x: f64[n], inout y: f64[n]", lang="cuda", grid="(n+7)//8", block=8)
    report = kernel.inspect(np.ones(100), np.ones(100))
    assert why in dict(report.blocks)["primal"] and "blocks on the CPU" in str(report)


_ASSERTS = """
#include <assert.h>
extern "C" __global__ void f(int n, const double *x, double *y) {
  int i = blockIdx.x * 8 + threadIdx.x;
  assert(x[i] < 700.0);
  assert(x[i] != 500.0);
  y[i] = x[i];
}"""


def test_failures_of_any_thread_are_one_failure() -> None:
    kernel = je.kernel(_ASSERTS, "f", "n: i32, x: f64[n], out y: f64[n]", lang="cuda", grid="n//8", block=8)
    x = np.arange(1024.0)
    code = kernel.specialise(kernel.binding([jnp.asarray(x)])).build()
    numbers: list[int] = []
    team = Team()
    for address in (None, team.address):
        with pytest.raises(KernelStatus) as failed:
            call(code, [x], team=address)
        numbers.append(failed.value.number)
    assert len(team.ran) == 2 and numbers[0] == numbers[1]
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"x\[i\] != 500"):
        kernel(x)


_LONG = """
extern "C" __global__ void f(int n, int rounds, const double *x, double *y) {
  int i = blockIdx.x * 64 + threadIdx.x;
  double v = x[i];
  for (int k = 0; k < rounds; k++) v = cos(v) + x[i];
  y[i] = v * 1e-310;
}"""


def _ticks() -> dict[str, int]:
    """The processor time of every thread of this process, in ticks."""
    found: dict[str, int] = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        found[task.name] = int(fields[11]) + int(fields[12])
    return found


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor")
def test_jax_runs_blocks_in_several_threads() -> None:
    kernel = je.kernel(_LONG, "f", "n: i32, rounds: i32, x: f64[n], out y: f64[n]", lang="cuda", grid="n//64", block=64)
    run = jax.jit(lambda x: kernel(4000, x))
    x = jnp.linspace(0.1, 1.0, 64 * 2000)
    run(x).block_until_ready()
    before = _ticks()
    y = np.asarray(run(x))
    after = _ticks()
    busy = [t for t, ticks in after.items() if ticks - before.get(t, 0) >= 2]
    assert len(busy) >= 2, busy
    # Every thread keeps denormals, as a program of its own would.
    assert np.all((y > 0) & (y < 1e-308))
