"""Kernels of Numba's CUDA target: compiled without a GPU, run and differentiated on the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jax_enzyme as je

numba = pytest.importorskip("numba")
cuda = pytest.importorskip("numba.cuda")


@cuda.jit(device=True)
def curve(v):
    return v * v + math.exp(v)


@cuda.jit
def total(x, y):
    s = cuda.shared.array(32, numba.float64)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i]
    cuda.syncthreads()
    if i < x.shape[0]:
        cuda.atomic.add(y, 0, math.sin(s[31 - t]) * curve(x[i]))


@cuda.jit
def surface(a, x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        powers = cuda.local.array(4, numba.float64)
        for k in range(4):
            powers[k] = x[i, j] ** k
        v = 0.0
        for k in range(4):
            v += powers[k] * a / (k + 1)
        y[i, j] = v + x[i, j] * x[i, j - 1] if j > 0 else v


@cuda.jit
def neighbours(x, y):
    i = cuda.grid(1)
    v = x[i] + cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 1)
    v += cuda.shfl_down_sync(0xFFFFFFFF, v, 4)
    y[i] = v * v + cuda.any_sync(0xFFFFFFFF, i == 3)


def test_shared_memory_atomics_and_device_functions() -> None:
    kernel = je.kernel(total, None, "x: f64[n], out y: f64[1]", grid=2, block=32)
    x = np.linspace(0.1, 1, 64)
    expected = np.sum(np.sin(x.reshape(2, 32)[:, ::-1].ravel()) * (x * x + np.exp(x)))
    np.testing.assert_allclose(kernel(x), [expected], rtol=1e-13)
    je.check_grads(kernel, [x])


def test_two_dimensions_and_local_arrays() -> None:
    extents = ("(n+7)//8", "(m+7)//8")
    kernel = je.kernel(surface, None, "a: f64, x: f64[n,m], out y: f64[n,m]", grid=extents, block=(8, 8))
    x = np.random.default_rng(0).uniform(size=(5, 9))
    expected = 2.0 * (1 + x / 2 + x**2 / 3 + x**3 / 4)
    expected[:, 1:] += x[:, 1:] * x[:, :-1]
    np.testing.assert_allclose(kernel(2.0, x), expected, rtol=1e-13)
    je.check_grads(kernel, [2.0, x], order=2)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_shuffles_of_numbers_are_differentiated(dtype: str) -> None:
    kernel = je.kernel(neighbours, None, f"x: {dtype}[n], out y: {dtype}[n]", grid=2, block=32)
    x = np.linspace(0.1, 1, 64).astype(dtype.replace("f32", "f4").replace("f64", "f8"))
    t = np.arange(64)
    v = x + x[t ^ 1]
    v = v + np.where(t % 32 < 28, v[(t + 4) % 64], v)
    np.testing.assert_allclose(kernel(x), v * v + (t < 32), rtol=1e-6 if dtype == "f32" else 1e-13)
    je.check_grads(kernel, [x])


def test_a_wrong_signature_is_refused() -> None:
    with pytest.raises(je.SignatureError, match="has 2"):
        je.kernel(total, None, "inout x: f64[n]", grid=1, block=32)
    with pytest.raises(je.SignatureError, match="returns nothing"):
        je.kernel(total, None, "x: f64[n], out y: f64[1] -> f64", grid=1, block=32)


def test_what_numba_cannot_compile() -> None:
    @cuda.jit
    def strange(x, y):
        y[0] = {}.missing

    with pytest.raises(je.CompileError, match="Numba cannot compile the function for CUDA"):
        je.kernel(strange, None, "x: f64[n], out y: f64[1]", grid=1, block=32)


def test_other_targets_are_left_alone() -> None:
    """Compiled for CUDA, then for the CPU, then for CUDA, in one process."""

    def doubled(x, y):
        for i in range(x.shape[0]):
            y[i] = 2 * x[i]

    signature = "x: f64[n], out y: f64[1]"
    x = np.linspace(0.1, 1, 64)
    before = je.kernel(total, None, signature, grid=2, block=32)(x)
    np.testing.assert_array_equal(je.kernel(doubled, None, "x: f64[n], out y: f64[n]")(x), 2 * x)
    np.testing.assert_array_equal(numba.njit(lambda x: x + 1)(x), x + 1)
    np.testing.assert_array_equal(je.kernel(total, None, signature, grid=2, block=32)(x), before)
