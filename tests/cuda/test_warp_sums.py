"""Where all lanes of a warp add to one place, they add up first: the same numbers, fewer atomic additions."""

from __future__ import annotations

import re
from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.ad import device
from jax_enzyme.ad.device.report import reverse_report
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.codegen.gpu.ptx import ptx
from jax_enzyme.codegen.gpu.ptxas import assemble, find_ptxas
from jax_enzyme.ir.arrays import Vjp
from tests.cuda.device import agree, derived, three_way
from tests.cuda.test_device_threads import native
from tests.support.engine import Native, by_turns
from tests.support.stand_in_driver import StandIn

_RNG = np.random.default_rng(23)
_DISTANCE = "double t = x[i * d + k] - c[k]; v += t * t;"
_CENTRE = "n: i32, d: i32, c: f64[d], x: f64[n*d], out y: f64[n]"


def _centre(count: int) -> tuple:
    return 0.1 * _RNG.normal(size=17), 0.1 * _RNG.normal(size=17 * count)


@dataclass(frozen=True)
class Sum:
    """A kernel; how what it reads at `place` is summed, and why; how many atomic additions to global memory its
    gradient has in all, and to shared memory."""

    name: str
    source: str
    signature: str
    dims: dict[str, int]
    block: object
    grid: object
    given: tuple
    place: str
    way: str
    why: str
    additions: int
    in_shared: int = 0

    @property
    def kernel(self) -> Native:
        return native(self.source, self.signature, self.dims, self.block, self.grid)


_SUMS = (
    Sum(
        "a scalar, in loops and behind a guard; the last warp is not full",
        """(int n, double a, const double *w, const double *x, double *y) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          double v = x[i];
          for (int k = 0; k < i % 5; k++) v = a * v * w[blockIdx.x] + 0.1 * v * v;
          y[i] = v;
        }""",
        "n: i32, a: f64, w: f64[3], x: f64[n], out y: f64[n]",
        {"n": 101},
        40,
        3,
        (0.7, _RNG.normal(size=3), _RNG.normal(size=101)),
        "`a`",
        "warp",
        "one place for a block",
        2,
        2,
    ),
    Sum(
        "one place at a time, all threads there",
        f"""(int n, int d, const double *c, const double *x, double *y) {{
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          double v = 0;
          for (int k = 0; k < d; k++) {{ {_DISTANCE} }}
          y[i] = exp(-v);
        }}""",
        _CENTRE,
        {"n": 96, "d": 17},
        48,
        2,
        _centre(96),
        "`c`",
        "warp",
        "all lanes come by",
        1,
    ),
    Sum(
        "behind a guard",
        f"""(int n, int d, const double *c, const double *x, double *y) {{
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          double v = 0;
          for (int k = 0; k < d; k++) {{ {_DISTANCE} }}
          y[i] = exp(-v);
        }}""",
        _CENTRE,
        {"n": 90, "d": 17},
        64,
        2,
        _centre(90),
        "`c`",
        "warp",
        "the lanes that come by are known",
        1,
    ),
    Sum(
        "behind a guard that leaves holes in warps",
        f"""(int n, int d, const double *c, const double *x, double *y) {{
          int j = threadIdx.x, i = threadIdx.y * 5 + j;
          if (j >= 5 || i >= n) return;
          double v = 0;
          for (int k = 0; k < d; k++) {{ {_DISTANCE} }}
          y[i] = exp(-v);
        }}""",
        _CENTRE,
        {"n": 33, "d": 17},
        (8, 8),
        1,
        _centre(33),
        "`c`",
        "warp",
        "the lanes that come by are known",
        1,
    ),
    Sum(
        "one place for a row of lanes, and one for a column: eight sums at a time",
        """(const double *a, const double *b, double *c) {
          __shared__ double p[8][8], q[8][8];
          int x = threadIdx.x, y = threadIdx.y;
          p[y][x] = sin(a[y * 8 + x]), q[y][x] = cos(b[y * 8 + x]);
          __syncthreads();
          double sum = 0;
          for (int k = 0; k < 8; k++) sum += p[y][k] * q[k][x];
          c[y * 8 + x] = sum;
        }""",
        "a: f64[64], b: f64[64], out c: f64[64]",
        {},
        (8, 8),
        1,
        (_RNG.normal(size=64), _RNG.normal(size=64)),
        "global je.shared._ZZ6kernelE1p",
        "warp",
        "one place for each 8 lanes of a warp",
        0,
        3,
    ),
    Sum(
        "one place in shared memory, which lanes read in loops of their own",
        """(double c, const double *x, double *y) {
          __shared__ double w[1];
          if (threadIdx.x == 0) w[0] = exp(c);
          __syncthreads();
          for (int i = threadIdx.x; i < 50; i += 32) y[i] = exp(x[i]) * w[0];
        }""",
        "c: f64, x: f64[50], out y: f64[50]",
        {},
        32,
        1,
        (0.3, _RNG.normal(size=50)),
        "global je.shared._ZZ6kernelE1w",
        "warp",
        "all lanes come by",
        1,
        1,
    ),
    Sum(
        "a guard that is data",
        f"""(int n, int d, const double *c, const double *x, double *y) {{
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          double v = 0;
          if (x[i * d] > 0) for (int k = 0; k < d; k++) {{ {_DISTANCE} }}
          y[i] = exp(-v);
        }}""",
        _CENTRE,
        {"n": 32, "d": 17},
        32,
        1,
        _centre(32),
        "`c`",
        "atomic",
        "the address is the same for threads that differ",
        0,
    ),
)
SUMS = [pytest.param(s, id=s.name) for s in _SUMS]


def reverse(kernel: Native) -> Vjp:
    base = kernel.buffers
    wanted = tuple(b.is_input and b.is_floating for b in base)
    return Vjp(wanted, tuple(b.is_result and b.is_floating for b in base))


@pytest.mark.parametrize("case", SUMS)
def test_numbers_and_report(case: Sum) -> None:
    kernel = case.kernel
    agree(three_way(kernel, [np.asarray(g) for g in case.given], sweeps=by_turns(_SUMS.index(case))))
    form = device.canonical(device_primal(kernel.program, kernel.signature, kernel.binding))
    ways = {a.memory: (a.way, a.why) for a in reverse_report(form, reverse(kernel)).accumulations}
    way, why = ways[case.place]
    assert way == case.way and case.why in why


@pytest.mark.parametrize("case", SUMS)
def test_instructions(case: Sum) -> None:
    """One atomic addition per warp and place, for any number of loops around it, and no spills; of a row of eight lanes
    each adds one of eight sums, of a column of four two."""
    text = ptx(derived(case.kernel, reverse(case.kernel)), "sm_90")
    if case.way == "warp":
        assert len(re.findall(r"\b(?:red|atom)\.global", text)) == case.additions
        assert len(re.findall(r"\b(?:red|atom)\.shared", text)) == case.in_shared
        assert "shfl.sync" in text
    else:
        assert "shfl.sync" not in text
    if find_ptxas() is not None:
        (found,) = assemble(text, "sm_90")
        assert not found.spills


def test_in_jax(gpu_launches: StandIn) -> None:
    """Under `vmap`, and a second time: blocks belong to one element of the batch, sums of tangents are sums as well."""
    kernel = je.kernel(
        """extern "C" __global__ void scale(int n, double a, const double *x, double *y) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) y[i] = sin(a * x[i]);
        }""",
        "scale", "n: i32, a: f64, x: f64[n], out y: f64[n]", lang="cuda", grid="(n+31)//32", block=32,
    )  # fmt: skip
    a, x = jnp.array([0.3, 0.9]), jnp.linspace(0.1, 1.0, 40)
    one = jax.grad(lambda a: jnp.sum(kernel(a, x)))
    found = jax.jit(jax.vmap(one))(a)
    np.testing.assert_allclose(found, [jnp.sum(x * jnp.cos(s * x)) for s in a], rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.grad(one))(a[0]), -jnp.sum(x * x * jnp.sin(a[0] * x)), rtol=1e-12)


def test_inspect() -> None:
    kernel = je.kernel(
        """extern "C" __global__ void scale(int n, double a, const double *x, const int *at, double *y) {
          y[threadIdx.x] = a * x[at[threadIdx.x]];
        }""",
        "scale", "n: i32, a: f64, x: f64[n], at: i32[n], out y: f64[n]", lang="cuda", grid=1, block="n",
    )  # fmt: skip
    report = kernel.inspect(1.0, np.ones(8), np.arange(8, dtype=np.int32))
    text = str(report)
    assert "`a`: warp sums" in text and "`x`: atomic sums" in text and "an index is data" in text
    assert report.gpu is not None and report.gpu.functions == ("primal", "jvp", "augmented", "pullback")
    assert ".entry je_kernel_0" in report.gpu.ptx("pullback", "sm_80")
