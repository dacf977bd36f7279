"""`Options(deterministic=True)` on a device: sums that many threads add to do not depend on their order. On the CPU
threads come in one order, so the numbers change places instead."""

from __future__ import annotations

import re
from dataclasses import replace
from math import fsum

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.ad.device import reproducible
from jax_enzyme.codegen.gpu.derived import derived as launched
from jax_enzyme.codegen.gpu.ptx import ptx
from jax_enzyme.codegen.gpu.ptxas import assemble, find_ptxas
from jax_enzyme.ir.arrays import Vjp
from jax_enzyme.options import Options
from tests.cuda.cases import CASES, Case
from tests.cuda.device import derived
from tests.cuda.test_device_threads import native
from tests.cuda.test_kernels import subject
from tests.support.engine import Native
from tests.support.stand_in_driver import StandIn

EXACT = Options(deterministic=True)
TOTAL = """extern "C" __global__ void total(int n, const TYPE *x, TYPE *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(y, x[i]);
}"""


def total(kind: str, dtype: str) -> je.Kernel:
    return je.kernel(
        TOTAL.replace("TYPE", kind), "total", f"n: i32, x: {dtype}[n], out y: {dtype}[]",
        lang="cuda", grid="(n+31)//32", block=32, options=EXACT,
    )  # fmt: skip


def numbers(dtype: type, kind: str) -> np.ndarray:
    """Numbers of all sizes that the type has."""
    rng = np.random.default_rng(3)
    info = np.finfo(dtype)
    if kind == "tiny":
        # XLA's threads flush what is smaller still; devices do not.
        return (rng.normal(size=70) * float(info.smallest_normal) * 2.0**70).astype(dtype)
    if kind == "huge":
        return (rng.normal(size=70) * (float(info.max) / 1000)).astype(dtype)
    spread = rng.normal(size=100) * 2.0 ** rng.integers(info.minexp // 2, info.maxexp // 2, 100)
    found = spread.astype(dtype)
    return np.concatenate([found, -found, rng.normal(size=11).astype(dtype)]) if kind == "cancel" else found


@pytest.mark.parametrize(("name", "dtype"), [("double", np.float64), ("float", np.float32)])
def test_sums_are_exact_in_any_order(name: str, dtype: type, gpu_launches: StandIn) -> None:
    kernel = total(name, "f64" if dtype is np.float64 else "f32")
    rng = np.random.default_rng(5)
    for kind in ("spread", "tiny", "huge", "cancel"):
        x = numbers(dtype, kind)
        got = {np.asarray(kernel(jnp.asarray(rng.permutation(x)))).tobytes() for _ in range(4)}
        assert len(got) == 1
        np.testing.assert_allclose(np.frombuffer(got.pop(), dtype)[0], dtype(fsum(map(float, x))), rtol=1e-6, atol=0)
    assert {launch[0] for launch in gpu_launches.launches()} == {"je_kernel_0", "je_kernel_1"}


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([np.inf, 1.0], np.inf), ([1.0, -np.inf], -np.inf), ([np.inf, -np.inf], np.nan), ([np.nan, 1.0], np.nan),
        ([1.7e308, 1.7e308], np.inf), ([1.7e308, 1.7e308, -1.7e308], 1.7e308), ([-0.0, 0.0], 0.0),
    ],
)  # fmt: skip
def test_what_is_no_number(x: list[float], expected: float, gpu_launches: StandIn) -> None:
    np.testing.assert_array_equal(total("double", "f64")(jnp.asarray(x)), expected)


LAYER = """extern "C" __global__ void layer(int n, double a, const double *w, const double *x, double *y) {
  __shared__ double s[8];
  int t = threadIdx.x, i = blockIdx.x * 8 + t;
  s[t] = i < n ? sin(a * x[i]) : 0.0;
  __syncthreads();
  double sum = 0;
  for (int k = 0; k < 8; k++) sum += w[k] * s[k] * s[(k + t) % 8];
  if (i < n) y[i] = sum;
}"""


def layer(a: jax.Array, w: jax.Array, x: jax.Array) -> jax.Array:
    """The same, of whole blocks."""
    s = jnp.sin(a * x.reshape(-1, 8))
    around = jnp.stack([jnp.roll(s, -t, axis=1) for t in range(8)], axis=1)
    return jnp.einsum("k,bk,btk->bt", w, s, around).reshape(-1)


def test_gradients_in_jax(gpu_launches: StandIn) -> None:
    """Reverse mode, once and again, of sums in shared memory and in buffers."""
    kernel = je.kernel(
        LAYER, "layer", "n: i32, a: f64, w: f64[8], x: f64[n], out y: f64[n]",
        lang="cuda", grid="n//8", block=8, options=EXACT,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    given = jnp.asarray(0.7), jnp.asarray(rng.normal(size=8)), jnp.asarray(rng.normal(size=24))
    moved = tuple(jnp.asarray(rng.normal(size=v.shape)) for v in given)
    found = [
        jax.jvp(jax.grad(lambda *g, f=f: jnp.sum(jnp.sin(f(*g))), argnums=(0, 1, 2)), given, moved)
        for f in (kernel, layer)
    ]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), *found)


def test_gradients_do_not_depend_on_the_order(gpu_launches: StandIn) -> None:
    """Threads that change places: the gradient by what they share keeps every bit."""
    kernel = je.kernel(
        """extern "C" __global__ void curve(int n, double a, const double *c, const double *x, double *y) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) y[i] = (a + x[i] * x[i]) * c[(int)(8 * x[i])];
        }""",
        "curve", "n: i32, a: f64, c: f64[8], x: f64[n], out y: f64[n]",
        lang="cuda", grid="(n+6)//7", block=7, options=EXACT,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    a, c, x = 0.3, jnp.asarray(rng.normal(size=8)), rng.uniform(0, 1, 100)
    pull = jax.jit(jax.grad(lambda a, c, x: jnp.sum(kernel(a, c, x)), argnums=1))
    assert len({np.asarray(pull(a, c, jnp.asarray(rng.permutation(x)))).tobytes() for _ in range(5)}) == 1
    several = jax.vmap(pull, in_axes=(0, None, None))(jnp.asarray([0.1, 0.3]), c, x)
    np.testing.assert_array_equal(several[1], pull(a, c, x))


def test_shared_memory_of_two_types(gpu_launches: StandIn) -> None:
    kernel = je.kernel(
        """extern "C" __global__ void mixed(const double *x, const float *q, double *y) {
          extern __shared__ double s[];
          float *f = (float *)(s + 4);
          int t = threadIdx.x;
          s[t] = x[t] * x[t];
          f[t] = q[t] * q[t];
          __syncthreads();
          double sum = 0;
          for (int k = 0; k < 4; k++) sum += s[k] * f[(k + t) % 4];
          y[t] = sum;
        }""",
        "mixed", "x: f64[4], q: f32[4], out y: f64[4]", lang="cuda", grid=1, block=4, shared=48, options=EXACT,
    )  # fmt: skip
    x, q = jnp.asarray([0.5, -1.0, 2.0, 0.3]), jnp.asarray([1.0, 0.2, -0.7, 0.4], jnp.float32)
    found = jax.grad(lambda x, q: jnp.sum(kernel(x, q)), argnums=(0, 1))(x, q)
    np.testing.assert_allclose(found[0], 2 * x * np.sum(np.square(q)), rtol=1e-6)
    np.testing.assert_allclose(found[1], 2 * q * np.sum(np.square(x)), rtol=1e-6)


def test_loops_of_unknown_length(gpu_launches: StandIn) -> None:
    """What counts first takes the same buffers."""
    source = """extern "C" __global__ void power(int n, double a, const int *count, double *y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      double p = 1;
      for (int k = 0; i < n && k < count[i]; k++) p *= sin(a + k);
      if (i < n) y[i] = p;
    }"""
    signature = "n: i32, a: f64, count: i32[n], out y: f64[n]"
    count = jnp.asarray([3, 1, 4, 1, 5, 0], jnp.int32)
    kernel = je.kernel(source, "power", signature, lang="cuda", grid=2, block=3, options=EXACT)
    expected = sum(np.prod(p := np.sin(0.7 + np.arange(n))) * np.sum(np.cos(0.7 + np.arange(n)) / p) for n in count)
    np.testing.assert_allclose(jax.grad(lambda a: jnp.sum(kernel(a, count)))(0.7), expected, rtol=1e-12)


def reverse(kernel: Native) -> Vjp:
    base = kernel.buffers
    return Vjp(tuple(b.is_input and b.is_floating for b in base), tuple(b.is_result and b.is_floating for b in base))


@pytest.mark.parametrize("case", [c for c in CASES if c.name in ("matmul", "histogram")], ids=lambda c: c.name)
def test_instructions(case: Case) -> None:
    """Nothing but integers is added atomically, and at most two numbers are spilled, where a block may have 1,024
    threads."""
    kernel = subject(case, case.launches[0])
    exact = reproducible(derived(kernel, reverse(kernel)))
    # A second stage adds up what is in buffers: the gradient of the histogram adds to shared memory alone, where every
    # place is loaded by one thread.
    assert len(exact.symbols) == {"matmul": 2, "histogram": 1}[case.name]
    text = ptx(exact, "sm_90")
    added = re.findall(r"\b(?:atom|red)\.\S*add\S*", text)
    assert bool(added) == (case.name == "matmul")
    assert all(word.endswith("64") and not word.endswith("f64") for word in added)
    if find_ptxas() is not None:
        assert all(found.spill_stores <= 16 for found in assemble(text, "sm_90"))


def test_places_of_one_thread_stay_as_they_are() -> None:
    source = "(int n, const double *x, double *y) { int t = threadIdx.x; y[t] = sin(x[t]); }"
    kernel = native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 5}, 5)
    function = derived(kernel, Vjp((True, False), (False, True)))
    assert reproducible(function) is function


def test_no_checkpoints_on_a_device() -> None:
    kernel = native("(double *y) { y[threadIdx.x] *= y[threadIdx.x]; }", "inout y: f64[5]", {}, 5)
    with pytest.raises(je.DifferentiationError, match="checkpoint='sqrt' was asked for"):
        derived(kernel, Vjp((True,), (True,)), options=Options(checkpoint="sqrt"))


def test_what_an_addition_returns_has_an_order() -> None:
    kernel = je.kernel(
        """extern "C" __global__ void turns(const double *x, double *total, double *y) {
          y[threadIdx.x] = atomicAdd(total, x[threadIdx.x]);
        }""",
        "turns", "x: f64[8], inout total: f64[], out y: f64[8]", lang="cuda", grid=1, block=8, options=EXACT,
    )  # fmt: skip
    x, t = jnp.ones(8), jnp.zeros(())
    base = kernel.specialise(kernel.binding([x, t])).base
    words = r"what it returns depends on the order of threads\n.*place: kernel.cu:2"
    with pytest.raises(je.DifferentiationError, match=words) as error:
        launched(base.program, base.signature, base.binding, (), base.options)
    assert "default_device" in str(error.value)
    launched(base.program, base.signature, base.binding, (), replace(base.options, deterministic=False))
