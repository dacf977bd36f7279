"""Loops of which only the run knows how long they are: counted first, on the device, then reversed with a tape of that
size."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen.gpu.ptx import ptx
from jax_enzyme.codegen.gpu.ptxas import assemble
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.xla_ffi.registration import COUNTED
from tests.cuda.device import agree, derived, run, three_way
from tests.cuda.test_device_threads import native, refusal
from tests.support.engine import Native
from tests.support.stand_in_driver import TARGET, StandIn

_RNG = np.random.default_rng(17)


@dataclass(frozen=True)
class Loop:
    """A kernel in whose reverse something of every iteration is kept, and inputs."""

    name: str
    source: str
    signature: str
    dims: dict[str, int]
    block: int
    grid: int
    given: tuple

    @property
    def kernel(self) -> Native:
        return native(self.source, self.signature, self.dims, self.block, self.grid)


_LOOPS = (
    Loop(
        "nested",
        """(int n, const int *count, const double *x, double *y) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          double v = x[i];
          for (int j = 0; j < count[i]; j++) {
            double w = v;
            for (int k = 0; k < count[j]; k++) w = w * sin(w) + x[k];
            v = 0.5 * cos(w) * v + x[i];
            for (int k = 0; k <= count[j]; k++) v = v * cos(w * v);
          }
          y[i] = v;
        }""",
        "n: i32, count: i32[n], x: f64[n], out y: f64[n]",
        {"n": 11},
        4,
        3,
        (_RNG.integers(0, 5, 11).astype(np.int32), _RNG.normal(size=11)),
    ),
    Loop(
        "until it converges",
        """(int n, const double *x, double *y) {
          double a = x[threadIdx.x], v = a, before = 1;
          for (int k = 0; fabs(v - before) > 1e-3 && k < 100000; k++) {
            before = v;
            v = 0.5 * (v + a / v);
            if (v > 1e6) break;
          }
          y[threadIdx.x] = v * before;
        }""",
        "n: i32, x: f64[n], out y: f64[n]",
        {"n": 7},
        7,
        1,
        (_RNG.uniform(1, 5, 7),),
    ),
    Loop(
        "a lookup in sorted tables",
        """(int n, int g, const int *num, const int *which, const double *density, const double *grid,
            const double *table, const double *energy, const int *material, double *y) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= n) return;
          double total[3] = {0, 0, 0}, e = energy[i];
          for (int j = 0; j < num[material[i]]; j++) {
            const double *x = grid + which[4 * material[i] + j] * g;
            int low = 0, high = g - 1;
            while (high - low > 1) {
              int middle = (low + high) / 2;
              if (x[middle] > e) high = middle; else low = middle;
            }
            double f = (x[low + 1] - e) / (x[low + 1] - x[low]);
            const double *t = table + (which[4 * material[i] + j] * g + low) * 3;
            for (int k = 0; k < 3; k++) total[k] += density[4 * material[i] + j] * (t[3 + k] - f * (t[3 + k] - t[k]));
          }
          y[i] = sin(total[0]) + total[1] * total[2];
        }""",
        "n: i32, g: i32, num: i32[3], which: i32[3,4], density: f64[3,4], grid: f64[5,g], table: f64[5,g,3],"
        " energy: f64[n], material: i32[n], out y: f64[n]",
        {"n": 13, "g": 16},
        8,
        2,
        (
            np.array([1, 4, 2], np.int32),
            _RNG.integers(0, 5, (3, 4)).astype(np.int32),
            _RNG.uniform(size=(3, 4)),
            np.sort(_RNG.uniform(size=(5, 16)), 1),
            _RNG.normal(size=(5, 16, 3)),
            _RNG.uniform(0.3, 0.7, 13),
            _RNG.integers(0, 3, 13).astype(np.int32),
        ),
    ),
    Loop(
        "a block until all agree",
        """(int n, const double *x, double *y) {
          __shared__ double s[16];
          int t = threadIdx.x;
          s[t] = x[t];
          __syncthreads();
          for (;;) {
            double next = 0.5 * s[t] + 0.25 * sin(s[(t + 1) % n]);
            int changed = __syncthreads_or(fabs(next - s[t]) > 0.05);
            s[t] = next;
            __syncthreads();
            if (!changed) break;
          }
          y[t] = s[t];
        }""",
        "n: i32, x: f64[n], out y: f64[n]",
        {"n": 12},
        12,
        1,
        (_RNG.normal(size=12),),
    ),
)
LOOPS = [pytest.param(loop, id=loop.name) for loop in _LOOPS]


def reverse(kernel: Native) -> Vjp:
    base = kernel.buffers
    wanted = tuple(b.is_input and b.is_floating for b in base)
    return Vjp(wanted, tuple(b.is_result and b.is_floating for b in base))


@pytest.mark.parametrize("loop", LOOPS)
def test_three_ways(loop: Loop) -> None:
    """A count that is too small is a trap: the tape is exactly as large as it says."""
    kernel = loop.kernel
    assert derived(kernel, reverse(kernel)).count is not None
    agree(three_way(kernel, list(loop.given)))


@pytest.mark.parametrize("loop", LOOPS)
def test_second_order(loop: Loop) -> None:
    """Forward over reverse gives what it gives on the CPU; the tangents of the tape, where it holds numbers, grow with
    it."""
    kernel, pull = loop.kernel, reverse(loop.kernel)
    rng = np.random.default_rng(1)
    seeds = [rng.normal(size=b.shape) for b in kernel.buffers if b.is_result and b.is_floating]
    tangents = [rng.normal(size=b.shape) for b in kernel.buffers if b.is_input and b.is_floating]
    mask = tuple(b.is_input and b.is_floating and b.role == "primal" for b in derived(kernel, pull).buffers)
    function = derived(kernel, pull, Jvp(mask))
    assert sum(b.grows for b in function.buffers) == 1 + (loop.name != "a lookup in sorted tables")
    own = mask[: len(mask) - 2]
    expected = kernel.run((pull, Jvp(own)), [*loop.given, *seeds, *tangents])
    got = run(function, [*loop.given, *seeds, *tangents])
    for a, b in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("loop", LOOPS)
def test_registers(loop: Loop) -> None:
    """Neither what counts nor the derivative spills."""
    function = derived(loop.kernel, reverse(loop.kernel))
    assert function.count is not None
    for part in (function, function.count.function):
        for arch in ("sm_80", "sm_90"):
            (found,) = assemble(ptx(part, arch), arch)
            assert not found.spills, f"{loop.name} for {arch}: {found}"


def test_what_counts_does_nothing_else() -> None:
    """Of the lookup, the number of iterations is a formula of two loads: no search, no sum, no sine, no loop."""
    loop = _LOOPS[2]
    count = derived(loop.kernel, reverse(loop.kernel)).count
    assert count is not None
    text = ptx(count.function, "sm_90")
    assert text.count("ld.global") == 3 and "f64" not in text and "atom.global.max" in text
    assert text.count("bra ") == 3, "whether the thread has work, iterations, and needs more than others"


SERIES = """
extern "C" __global__ void series(int n, const int *terms, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = x[i];
  for (int k = 0; k < terms[i]; k++) v = v * sin(v) + x[i];
  y[i] = v;
}
"""


def series(block: int = 8) -> je.Kernel:
    signature = "n: i32, terms: i32[n], x: f64[n], out y: f64[n]"
    return je.kernel(SERIES, "series", signature, lang="cuda", grid=f"(n+{block - 1})//{block}", block=block)


def in_jax(terms: np.ndarray, x: jax.Array) -> jax.Array:
    """The same by JAX."""

    def body(k: int, v: jax.Array) -> jax.Array:
        return jnp.where(k < terms, v * jnp.sin(v) + x, v)

    return jax.lax.fori_loop(0, int(np.max(terms)), body, x)


def test_gradient(gpu_launches: StandIn) -> None:
    """Counted, waited for, launched; nothing of it in what a CUDA graph may hold."""
    terms, x = np.array([3, 0, 7, 1, 2, 0, 5, 4, 1, 6], np.int32), jnp.linspace(0.3, 1.2, 10)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(series()(terms, x) ** 2)))
    text = gradient.lower(x).as_text()
    assert f"{TARGET}{COUNTED}" in text
    np.testing.assert_allclose(gradient(x), jax.grad(lambda x: jnp.sum(in_jax(terms, x) ** 2))(x), rtol=1e-11)
    log = gpu_launches.log
    launched = [line.split()[:2] for line in log if line.startswith(("cuLaunch", "cuStream", "cuMemcpyDtoH"))]
    assert launched == [
        ["cuLaunchKernel", "je_kernel_0"],
        ["cuLaunchKernel", "je_kernel_0"],
        ["cuMemcpyDtoHAsync", "8"],
        ["cuStreamSynchronize", "0"],
        ["cuLaunchKernel", "je_kernel_0"],
    ]


def test_vmap_is_one_launch(gpu_launches: StandIn) -> None:
    """Every element of the batch has a count of its own; their tapes lie one after the other."""
    rng = np.random.default_rng(3)
    terms = rng.integers(0, 6, (3, 2, 10)).astype(np.int32)
    x = jnp.asarray(rng.uniform(0.3, 1.2, (2, 10)))
    one = jax.grad(lambda t, x: jnp.sum(jnp.sin(series()(t, x))), argnums=1)
    found = jax.jit(jax.vmap(jax.vmap(one), (0, None)))(terms, x)
    for a in range(3):
        for b in range(2):
            expected = jax.grad(lambda x, t=terms[a, b]: jnp.sum(jnp.sin(in_jax(t, x))))(x[b])
            np.testing.assert_allclose(found[a, b], expected, rtol=1e-11)
    log = gpu_launches.log
    assert "cuMemcpyDtoHAsync 48" in log
    assert [line.split()[2:5] for line in log if line.startswith("cuLaunch")] == [["12", "1", "1"]] * 3


def test_second_derivatives(gpu_launches: StandIn) -> None:
    terms, x = np.array([3, 0, 4], np.int32), jnp.linspace(0.3, 1.2, 3)
    expected = jax.hessian(lambda x: jnp.sum(jnp.sin(in_jax(terms, x))))(x)
    found = jax.jit(jax.hessian(lambda x: jnp.sum(jnp.sin(series()(terms, x)))))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_no_memory(gpu_launches: StandIn) -> None:
    """A tape that no device has room for is an error of the call, with the number in it."""
    terms, x = np.array([3, 2_000_000_000, 7], np.int32), jnp.ones(3)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(series(1024)(terms, x))))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"keeps \d{11} bytes .* for each of 1024 threads"):
        gradient(x).block_until_ready()


def test_a_loop_that_the_kernels_own_results_end() -> None:
    source = """(int n, const double *x, double *y) {
      int t = threadIdx.x;
      y[t] = x[t];
      while (y[t] > 1) y[t] = y[t] * sin(y[t]) + y[(t + 1) % n] * 0;
    }"""
    text = refusal(native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 4}, 4))
    assert "writes to `y`" in text and "kernel.cu" in text and "local variables" in text


def test_a_loop_that_the_order_of_threads_ends() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ int next;
      if (threadIdx.x == 0) next = 0;
      __syncthreads();
      double v = 0;
      for (int k; (k = atomicAdd(&next, 1)) < n;) v = sin(v + x[k]);
      atomicAdd(&y[0], v);
    }"""
    text = refusal(native(source, "n: i32, x: f64[n], inout y: f64[]", {"n": 4}, 4))
    assert "what an atomic operation returns" in text and "kernel.cu:6" in text


def test_reverse_of_such_a_reverse() -> None:
    kernel = _LOOPS[1].kernel
    first = reverse(kernel)
    buffers = derived(kernel, first).buffers
    second = Vjp(tuple(b.role == "primal" and b.io == "in" for b in buffers), tuple(b.is_result for b in buffers))
    with pytest.raises(je.DifferentiationError, match=r"jax\.hessian"):
        derived(kernel, first, second)
