"""From jit to launches on GPUs of AMD's, without one: a library in the place of HIP's driver is given linked code
objects, and does on the CPU what the launch would do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.cuda.cases import CASES
from tests.support.stand_in_driver import StandIn

SCALE = """
extern "C" __global__ void scale(int n, double a, const double *x, double *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * sqrt(x[i]) * x[i];
}
"""


def scale(block: int, source: str = SCALE) -> je.Kernel:
    grid = f"(n+{block - 1})//{block}"
    return je.kernel(
        source, "scale", "n: i32, a: f64, x: f64[n], out y: f64[n]", lang="cuda", grid=grid, block=block
    )  # fmt: skip


def test_value_gradient_and_batch(amd_launches: StandIn) -> None:
    kernel, x, a = scale(64), jnp.linspace(1.0, 2.0, 100), 1.5
    np.testing.assert_allclose(jax.jit(kernel)(a, x), a * x**1.5, rtol=1e-14)
    log = amd_launches.log
    assert "cuLaunchKernel je_kernel_0 2 1 1 64 1 1 0 device 0 stream 0" in log
    weights = jnp.cos(jnp.arange(100.0))
    slopes = 1.5 * a * jnp.sqrt(x)
    reverse = jax.jit(jax.grad(lambda x: jnp.vdot(weights, kernel(a, x))))(x)
    np.testing.assert_allclose(reverse, weights * slopes, rtol=1e-13)
    _, forward = jax.jvp(lambda x: kernel(a, x), (x,), (weights,))
    np.testing.assert_allclose(forward, weights * slopes, rtol=1e-13)
    amd_launches.launches()
    many = jax.jit(jax.vmap(kernel, in_axes=(0, None)))(jnp.arange(1.0, 4.0), x)
    np.testing.assert_allclose(many, jnp.arange(1.0, 4.0)[:, None] * x**1.5, rtol=1e-14)
    assert [launch[1] for launch in amd_launches.launches()] == ["6"]


def test_shared_memory(amd_launches: StandIn) -> None:
    """A tiled product: value and gradient against NumPy."""
    case = next(c for c in CASES if c.name == "matmul")
    way, arrays = case.launches[0], case.inputs(np.random.default_rng(7))
    kernel = je.kernel(str(case.path), case.name, case.signature, grid=way.grid, block=way.block)  # pyright: ignore[reportArgumentType]
    given = [arrays[p.name] for p in kernel.signature.caller_params]
    np.testing.assert_allclose(jax.jit(kernel)(*given), case.reference(arrays)[0], rtol=1e-11)
    found = jax.jit(jax.grad(lambda *g: jnp.sum(kernel(*g)), argnums=1))(*given)
    expected = np.broadcast_to(arrays["b"].sum(axis=1), found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert len(amd_launches.launches()) >= 2


class TestRefusals:
    @pytest.fixture
    def another_gpu(self, amd_launches: StandIn) -> Iterator[StandIn]:
        amd_launches.library.stand_in_architecture(b"gfx1100")
        yield amd_launches
        amd_launches.library.stand_in_architecture(b"gfx90a:sramecc+:xnack-")

    def test_a_gpu_without_code(self, another_gpu: StandIn) -> None:
        with pytest.raises(jax.errors.JaxRuntimeError, match="no code for this GPU, gfx1100"):
            jax.jit(scale(72))(1.0, jnp.ones(8))

    def test_a_grid_whose_threads_hip_cannot_count(self, amd_launches: StandIn) -> None:
        """Blocks times threads are a 32-bit number."""
        source = SCALE.replace("if (i < n)", "if (i == 0)")
        kernel = je.kernel(
            source, "scale", "n: i32, a: f64, x: f64[n], out y: f64[n]", lang="cuda", grid=2**26, block=64
        )  # fmt: skip
        with pytest.raises(jax.errors.JaxRuntimeError, match="too large along x: this GPU allows 67108863"):
            jax.jit(kernel)(1.0, jnp.ones(8))

    def test_no_driver(self) -> None:
        """In a process of its own: the driver is looked for once."""
        program = "from jax_enzyme.xla_ffi import _ext; print(_ext.driver_error(amd=True))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        if not done.stdout.strip():
            pytest.skip("AMD's driver is here")
        assert done.stdout.startswith("there is no AMD driver on this machine (libamdhip64.so:")


def test_a_program_is_lowered_for_either_vendor() -> None:
    """One custom call: which code runs is decided on the device."""
    traced = jax.jit(scale(64)).trace(1.0, jnp.ones(8))
    texts = [traced.lower(lowering_platforms=(name,)).as_text() for name in ("cuda", "rocm")]
    assert all("custom_call @jax_enzyme_cuda" in text for text in texts)
