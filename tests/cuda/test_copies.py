"""What many blocks add to is added to copies, which one block adds up: the same numbers, in a second launch."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.support.stand_in_driver import StandIn

MODEL = """
extern "C" __global__ void model(int n, int d, const REAL *w, const REAL *table, const int *row, const REAL *x,
                                 REAL *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  REAL v = x[i];
  for (int k = 0; k < d; k++) v = v * w[k] + table[row[i]];
  y[i] = v;
}
"""


def model(real: str, blocks: int) -> je.Kernel:
    kind = {"double": "f64", "float": "f32"}[real]
    signature = "n: i32, d: i32, w: T[d], table: T[200], row: i32[n], x: T[n], out y: T[n]".replace("T", kind)
    return je.kernel(MODEL, "model", signature, lang="cuda", grid=blocks, block=4, flags=(f"-DREAL={real}",))


def plain(w: jax.Array, table: jax.Array, row: jax.Array, x: jax.Array) -> jax.Array:
    v = x
    for k in range(w.size):
        v = v * w[k] + table[row]
    return v


@pytest.mark.parametrize(("real", "bits"), [("double", 64), ("float", 32)])
def test_gradient_of_weights(gpu_launches: StandIn, real: str, bits: int) -> None:
    """`w` in 32 copies; the table, which is too large, in none. Element by element of a batch."""
    rng, n = np.random.default_rng(3), 4096
    kind = np.dtype(f"f{bits // 8}")
    w = jnp.asarray(rng.uniform(0.5, 0.9, (2, 3)).astype(kind))
    table, x = (jnp.asarray(rng.normal(size=s).astype(kind)) for s in (200, n))
    row = jnp.asarray(rng.integers(0, 200, n).astype(np.int32))

    def gradient(f: Any) -> Any:
        return jax.jit(jax.vmap(jax.grad(lambda w, t: jnp.sum(jnp.sin(f(w, t, row, x))), (0, 1)), (0, None)))

    found = gradient(model(real, 1024))(w, table)
    grids = [launch[1] for launch in gpu_launches.launches()]
    assert grids[-2:] == ["2048", "2"], grids
    expected = gradient(plain)(w, table)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9 if bits == 64 else 2e-3, atol=1e-9 if bits == 64 else 2e-3)


def test_which_shadows(gpu_launches: StandIn) -> None:
    """Only where there are many blocks, and in a second kernel of one block."""
    given = np.ones(3), np.ones(200), np.zeros(4096, np.int32), np.ones(4096)
    for blocks, kernels in ((1023, 1), (1024, 2)):
        report = model("double", blocks).inspect(*(a[: 4 * blocks] if a.size > 200 else a for a in given)).gpu
        assert report is not None
        assert report.ptx("pullback" if "pullback" in report.functions else "vjp").count(".entry") == kernels
