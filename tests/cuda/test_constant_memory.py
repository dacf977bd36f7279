"""`const` parameters: variables in constant memory that the caller sets."""

from __future__ import annotations

import pickle

import jax
import numpy as np
import pytest

import jax_enzyme as je
from tests.support.stand_in_driver import StandIn

SOURCE = """
__constant__ float taps[3];
namespace model { static __constant__ double scale; }
__device__ const float shares[2] = {0.5f, 0.25f};
__device__ float tap(int k) { return taps[k] * shares[0]; }
__device__ float sum(const float *x) { return tap(0) * x[0] + tap(1) * x[1] + tap(2) * x[2]; }
extern "C" __global__ void filter(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sum(x + i) * model::scale + taps[1];
}
"""
ARRAYS = "n: i32, x: f32[n+2], out y: f32[n]"


def filtered(signature: str = f"const taps: f32[3], {ARRAYS}, const scale: f64", lang: str = "cuda") -> je.Kernel:
    return je.kernel(SOURCE, "filter", signature, lang=lang, grid="(n+3)//4", block=4)


def arguments() -> tuple[np.ndarray, np.ndarray, float]:
    x = np.random.default_rng(0).uniform(0.5, 1, 9).astype(np.float32)
    return x, np.array([1, -2, 3], np.float32), 0.75


def expected() -> np.ndarray:
    x, taps, scale = arguments()
    return np.convolve(x, taps[::-1], "valid") * 0.5 * scale + taps[1]


def test_variables_come_behind_the_parameters() -> None:
    kernel = filtered()
    assert str(kernel.signature) == f"{ARRAYS}, const taps: f32[3], const scale: f64[]"
    assert [p.name for p in kernel.signature.caller_params] == ["x", "taps", "scale"]
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    np.testing.assert_allclose(kernel(*arguments()), expected(), rtol=1e-6)
    je.check_grads(kernel, arguments())


def test_on_a_device(gpu_launches: StandIn) -> None:
    x, taps, scale = arguments()
    kernel = filtered(f"{ARRAYS}, const taps: f32[k], const scale: f64")
    np.testing.assert_allclose(jax.jit(kernel)(x, taps, scale), expected(), rtol=1e-6)
    found = jax.grad(lambda taps: kernel(x, taps, scale).sum())(taps)
    windows = np.array([x[k : k + 7].sum() for k in range(3)])
    np.testing.assert_allclose(found, windows * 0.5 * scale + [0, 7, 0], rtol=1e-6)
    assert len(gpu_launches.launches()) == 3


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("taps: f32[4]", "has 12 bytes in the source, and `const taps: f32.4.` has 16"),
        ("taps: i32[3]", "in the source parameter 4 is `float [*]`"),
        ("tap: f32[3]", "no `__constant__` variable named `tap`"),
        ("taps: {a: f32}", "`const taps` is an array or a number"),
    ],
)
def test_variables_that_are_others(variable: str, message: str) -> None:
    with pytest.raises(je.SignatureError, match=message):
        filtered(f"{ARRAYS}, const {variable}")


def test_a_size_that_only_the_arguments_say() -> None:
    with pytest.raises(je.SignatureError, match=r"has 12 bytes in the source, and `const taps: f32.k.` has 20"):
        filtered(f"{ARRAYS}, const taps: f32[k]")(np.ones(9, np.float32), np.ones(5, np.float32))


def test_host_functions_set_their_variables_themselves() -> None:
    source = f"{SOURCE} void all(int n, const float *x, float *y) {{ filter<<<1, 32>>>(n, x, y); }}"
    with pytest.raises(je.SignatureError, match="a host function, which sets its variables itself"):
        je.kernel(source, "all", f"{ARRAYS}, const taps: f32[3]", lang="cuda")
