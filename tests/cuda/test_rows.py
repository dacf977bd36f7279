"""What threads add to consecutive places is added row by row: the same numbers, lanes side by side."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen.gpu.ptxas import assemble, find_ptxas
from tests.support.stand_in_driver import StandIn

GATHER = """
extern "C" __global__ void gather(int n, const int *at, const REAL *x, const REAL *s, REAL *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  REAL v = 0;
  for (int k = 0; k < 2; k++) {
    const REAL *p = x + at[2 * i + k] * WIDTH;
    if (s[i] > 0.9f) continue;
    for (int c = 0; c < WIDTH; c++) v += (c + 1) * p[c] * p[(c + 1) % WIDTH] * s[i];
  }
  y[i] = v;
}
"""


def gather(real: str, width: int) -> je.Kernel:
    signature = "n: i32, at: i32[n,2], x: T[m,w], s: T[n], out y: T[n]".replace(
        "T", {"double": "f64", "float": "f32"}[real]
    )
    flags = (f"-DREAL={real}", f"-DWIDTH={width}")
    return je.kernel(GATHER, "gather", signature, lang="cuda", grid="(n+63)//64", block=64, flags=flags)


def plain(at: jax.Array, x: jax.Array, s: jax.Array) -> jax.Array:
    rows = x[at]
    weight = jnp.arange(1.0, x.shape[1] + 1, dtype=x.dtype)
    return jnp.where(s > 0.9, 0.0, jnp.sum(weight * rows * jnp.roll(rows, -1, axis=-1), axis=(1, 2)) * s)


@pytest.mark.parametrize(("real", "width"), [("double", 3), ("double", 6), ("double", 10), ("float", 4)])
def test_rows(gpu_launches: StandIn, real: str, width: int) -> None:
    """Whole warps and one that is not, lanes that leave, and elements of a batch."""
    rng, n, kind = np.random.default_rng(3), 150, {"double": np.float64, "float": np.float32}[real]
    at = jnp.asarray(rng.integers(0, 20, (n, 2)).astype(np.int32))
    x, s = jnp.asarray(rng.normal(size=(2, 20, width)).astype(kind)), rng.uniform(0.1, 0.89, n).astype(kind)
    s[100:110] = 0.95

    def gradient(f: Any) -> Any:
        return jax.jit(jax.vmap(jax.grad(lambda x, s: jnp.sum(jnp.sin(f(at, x, s))), (0, 1)), (0, None)))

    kernel = gather(real, width)
    found, expected = gradient(kernel)(x, jnp.asarray(s)), gradient(plain)(x, jnp.asarray(s))
    tolerance = 1e-10 if real == "double" else 2e-4
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    report = kernel.inspect(at, x[0], jnp.asarray(s)).gpu
    assert report is not None
    ptx = report.ptx("pullback" if "pullback" in report.functions else "vjp")
    assert "activemask" in ptx
    if find_ptxas() is not None:
        assert not assemble(ptx, "sm_90")[0].spills


@pytest.mark.parametrize(("real", "width"), [("float", 2), ("float", 4), ("float", 3), ("float", 8), ("double", 2)])
def test_short_rows_of_floats_are_one_instruction(real: str, width: int) -> None:
    """On devices that have it, and where a row fits into it. What it does, the launches above show."""
    kernel, kind = gather(real, width), {"double": np.float64, "float": np.float32}[real]
    at, x, s = np.zeros((64, 2), np.int32), np.ones((20, width), kind), np.ones(64, kind)
    report = kernel.inspect(at, x, s).gpu
    assert report is not None
    name = "pullback" if "pullback" in report.functions else "vjp"
    instruction = f"red.relaxed.gpu.global.add.v{width}.f32"
    for arch, is_there in (("sm_80", False), ("sm_90", real == "float" and width in (2, 4))):
        ptx = report.ptx(name, arch)
        assert (instruction in ptx) == is_there
        assert (".version 8.1" in ptx) == is_there
        if find_ptxas() is not None:
            assert not assemble(ptx, arch)[0].spills
