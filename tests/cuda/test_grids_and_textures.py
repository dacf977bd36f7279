"""Blocks that wait for each other, textures, sorts and products of matrices by warps, on the CPU."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

import jax_enzyme as je
from tests.cuda.test_headers import kernel
from tests.cuda.test_host_functions import PROGRAMS, check, host, uniform
from tests.support.engine import agree
from tests.support.engine import together as three_way


def relaxed(u: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    mine, sums = u, u.reshape(-1, 32).sum(1).repeat(32)
    for _ in range(rounds):
        u = 0.3 * (np.roll(u, -1) + np.roll(u, 1)) + (u * mine).reshape(-1, 32)[:, ::-1].ravel() + sums
    return u


def test_blocks_wait_for_each_other() -> None:
    """A thread keeps a number, and a block its shared memory, while it waits."""
    u = uniform(96)
    signature = "inout u: f64[n], out v: f64[n], n: i32, rounds: i32"
    alone = je.kernel(PROGRAMS / "grids.cu", "relax", signature, grid="n//32", block=32)
    expected = relaxed(u, 2)
    np.testing.assert_allclose(alone(u, 2)[0], expected, rtol=1e-12)
    check(host("grids", "together", "inout u: f64[n], n: i32, rounds: i32"), (u, 2), expected)
    with pytest.raises(je.LoweringError, match="does not follow"):
        je.check_races(alone, [u, 2])


def test_blocks_of_a_grid_that_nobody_knows() -> None:
    subject = host("grids", "of_data", "inout u: f64[n], n: i32, rounds: i32, blocks: i32[1]")
    with pytest.raises(je.LoweringError, match="size of the grid is not known before") as caught:
        subject(uniform(32), 1, np.ones(1, np.int32))
    assert "grids.cu:33:" in str(caught.value)


def test_textures() -> None:
    signature = "v: f32[nx], u: f32[ny,nx], out y: f32[ny,nx], nx: i32, ny: i32"
    source = PROGRAMS / "textures.cu"
    v, u = uniform(40).astype("f4"), uniform(5, 40).astype("f4")
    subject = je.kernel(source, "fetch", signature)
    ends = v.reshape(-1, 4)
    clamped = np.pad(u, ((0, 1), (1, 0)), "edge")[1:, :-1]
    border = np.pad(u, ((0, 0), (0, 1)))[:, 1:]
    np.testing.assert_allclose(subject(v, u), (ends[:, 0] * ends[:, 3]).repeat(4) * clamped + border**2, rtol=1e-5)
    je.check_grads(subject, (v, u))
    smooth = je.kernel(source, "fetch", signature, flags=("-DINTERPOLATED",))
    np.testing.assert_allclose(smooth(v, u), subject(v, u), rtol=1e-5)  # at the middles of elements
    je.check_grads(smooth, (v, u))


def test_surfaces() -> None:
    image = uniform(5, 8, 2).astype("f4")
    kernel = host("surfaces", "smooth", "image: f32[h,w,2], out y: f32[h,w], w: i32, h: i32")
    squared = np.stack([image[..., 0] * image[..., 1], image[..., 1]], -1).astype("f8")
    zero, row = np.pad(squared[..., 0], 1), np.pad(squared.reshape(5, 16), ((0, 0), (1, 0)), "edge")
    expected = sum(zero[1 - i :, 1 + i :][:5, :8] + 2 * row[:, 1 + i :: 2][:, :8] for i in (-1, 0, 1))
    np.testing.assert_allclose(kernel(image), expected, rtol=1e-5, atol=1e-6)
    je.check_grads(kernel, (image,))


def test_texture_references() -> None:
    """Between elements, in two dimensions that wrap around and end, and in three of which one has a border of zeros."""
    n = 12
    kernel = host(
        "texture_references", "sample", "u: f32[4,n], at: f32[n], c: u8[n,4], out y: f32[n], n: i32 -> status"
    )
    u = uniform(4, n).astype("f4")
    at, c = np.linspace(0.03, 0.97, n, dtype="f4") * 7, np.arange(4 * n, dtype="u1").reshape(n, 4)
    subject = jax.jit(lambda u, at: kernel(u, at, c))
    expected = sampled(u, at, c)
    np.testing.assert_allclose(subject(u, at), expected, rtol=1e-4, atol=1e-5)
    du, dat, dy = uniform(4, n).astype("f4"), uniform(n).astype("f4"), uniform(n).astype("f4")
    step = np.float64(1e-6)  # few steps of this size come to an edge of an element, where there is no derivative
    slope = (sampled(u + step * du, at + step * dat, c) - sampled(u - step * du, at - step * dat, c)) / (2 * step)
    np.testing.assert_allclose(jax.jvp(subject, (u, at), (du, dat))[1], slope, rtol=1e-4, atol=1e-4)
    gu, gat = jax.vjp(subject, u, at)[1](dy)
    np.testing.assert_allclose(np.vdot(gu, du) + np.vdot(gat, dat), slope @ dy, rtol=1e-4)


def sampled(u: np.ndarray, at: np.ndarray, c: np.ndarray) -> np.ndarray:
    """What the kernel of `texture_references` gives, by NumPy and SciPy in double precision."""
    u, at, n = u.astype("f8"), at.astype("f8"), at.size
    wrapped = interpolated(np.pad(np.pad(u, ((1, 1), (0, 0)), "edge"), ((0, 0), (1, 1)), "wrap"))
    image = wrapped(np.stack([np.clip(4 * 0.3 * at - 0.5, -0.5, 3.5) + 1, n * (at % 1) - 0.5 + 1], -1))
    solid = np.pad(np.pad(u.reshape(4, 2, n // 2), ((1, 1), (0, 0), (0, 0))), ((0, 0), (1, 1), (1, 1)), "edge")
    ends = np.clip(at - 0.5 + 1, 0, n // 2 + 1)
    volume = interpolated(solid)(np.stack([0.5 * at - 0.5 + 1, 0 * at + 1.2 - 0.5 + 1, ends], -1))
    quads = u.reshape(n, 4)
    return quads[:, 0] * quads[:, 3] + image * volume + c[:, 2] / 255


def interpolated(values: np.ndarray) -> RegularGridInterpolator:
    return RegularGridInterpolator([np.arange(k) for k in values.shape], values, bounds_error=True)


SORTED = """
typedef cub::BlockRadixSort<double, 16, 3, double> Sort; typedef cub::BlockHistogram<unsigned char, 16, 3, 4> Bins;
typedef cub::BlockReduce<double, 16> Sum;
typedef cub::BlockAdjacentDifference<double, 16> Apart;
__shared__ union { Sort::TempStorage sort; Apart::TempStorage apart; Bins::TempStorage bins; Sum::TempStorage sum; } u;
__shared__ unsigned count[4];
double k[3], v[3];
unsigned char bins[3];
for (int i = 0; i < 3; i++) { k[i] = x[t * 3 + i]; v[i] = k[i] * (t * 3 + i); }
Sort(u.sort).SortDescending(k, v);
__syncthreads();
double d[3];
Apart(u.apart).SubtractLeft(k, d, cub::Difference());
__syncthreads();
Apart(u.apart).SubtractRight(k, k, Product(), 2.0);
__syncthreads();
double total = Sum(u.sum).Sum(k[0] * v[1]);
for (int i = 0; i < 3; i++) bins[i] = x[t * 3 + i] * 4;
__syncthreads();
Bins(u.bins).Histogram(bins, count);
__syncthreads();
for (int i = 0; i < 3; i++) y[t * 3 + i] = v[i] * k[i] * d[i] * count[i] + (t == 0 ? total : 0);
"""


def test_sorts_and_histograms_of_a_block() -> None:
    product = "struct Product { __device__ double operator()(double &a, double &b) { return a * b; } };"
    subject = kernel(SORTED, f"#include <cub/cub.cuh>\n{product}", n=48, block=16)
    x = np.random.default_rng(2).permutation((np.arange(48) + 0.4) / 48)
    order = np.argsort(-x)
    d = np.diff(x[order], prepend=0).reshape(16, 3)
    k, v = (x[order] * np.r_[x[order][1:], 2]).reshape(16, 3), (x * np.arange(48))[order].reshape(16, 3)
    expected = v * k * d * np.histogram(x, 4, (0, 1))[0][:3]
    expected[0] += (k[:, 0] * v[:, 1]).sum()
    np.testing.assert_allclose(subject.run((), [x])[0], expected.ravel(), rtol=1e-12)
    agree(three_way(subject, [x]))


def test_numbers_for_tensor_cores_are_rounded() -> None:
    """To 11 bits, ties away from zero; the derivative is 1."""
    source = """#include <mma.h>
    __global__ void rounded(const float *x, float *y) {
      y[threadIdx.x] = nvcuda::wmma::__float_to_tf32(x[threadIdx.x]);
    }"""
    subject = je.kernel(source, "rounded", "x: f32[n], out y: f32[n]", lang="cuda", grid=1, block="n")
    x = np.array([1 + 2**-11, -1 - 2**-11, 1 + 2**-12, 2.0**127, -1 / 3, np.inf], "f4")
    expected = [1 + 2**-10, -1 - 2**-10, 1, 2.0**127, -0.33325195, np.inf]
    found, pull = jax.vjp(subject, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    weights = uniform(6).astype("f4")
    np.testing.assert_array_equal(pull(weights)[0], weights)
    np.testing.assert_array_equal(jax.jvp(subject, (x,), (weights,))[1], weights)


def test_sorts_of_a_device(tmp_path: Path) -> None:
    """Stable, by all bits or by some."""
    source = tmp_path / "sorts.cu"
    source.write_text(
        """#include <cub/cub.cuh>
        void sorts(const double *x, double *w, int n, double *y, int *ranks) {
          void *memory = nullptr;
          size_t bytes = 0;
          double *v;
          cudaMalloc(&v, n * 8);
          cub::DeviceRadixSort::SortPairs(memory, bytes, x, y, w, v, n);
          cudaMalloc(&memory, bytes);
          cub::DeviceRadixSort::SortPairs(memory, bytes, x, y, w, v, n);
          cub::DoubleBuffer<double> values(v, w);
          int *a, *b;
          cudaMalloc(&a, n * 4);
          cudaMalloc(&b, n * 4);
          for (int i = 0; i < n; i++) a[i] = -i;
          cub::DoubleBuffer<int> keys(a, b);
          cub::DeviceRadixSort::SortPairsDescending(memory, bytes, keys, values, n, 1, 3);
          cudaMemcpy(ranks, keys.Current(), n * 4, cudaMemcpyDeviceToHost);
          cudaMemcpy(w, values.Current(), n * 8, cudaMemcpyDeviceToDevice);
        }"""
    )
    subject = je.kernel(source, "sorts", "x: f64[n], inout w: f64[n], n: i32, out y: f64[n], out ranks: i32[n]")
    x = np.random.default_rng(2).permutation((np.arange(21) + 0.4) / 21)
    w = uniform(21)
    order = np.argsort(-((-np.arange(21) >> 1) & 3), kind="stable")
    found, y, ranks = subject(x, w)
    np.testing.assert_array_equal(y, np.sort(x))
    np.testing.assert_array_equal(ranks, -order)
    np.testing.assert_array_equal(found, w[np.argsort(x)][order])
    je.check_grads(subject, (x, w))


def test_products_of_matrices_by_a_warp() -> None:
    """In double precision, whose derivatives can be held against differences, and of halves with sums of floats."""
    body = """wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, M, N, K, S> c;
    wmma::fill_fragment(c, 0.5);
    for (int k = 0; k < 2; k++) {
      wmma::load_matrix_sync(a, (const T *)x + k * K, 2 * K);
      wmma::load_matrix_sync(b, (const T *)x + M * 2 * K + k * K, 2 * K);
      wmma::mma_sync(c, a, b, c);
    }
    for (int i = 0; i < c.num_elements; i++) c.x[i] = c.x[i] * c.x[i];
    __shared__ S s[M * N];
    wmma::store_matrix_sync(s, c, N, wmma::mem_row_major);
    for (int i = t; i < M * N; i += 32) y[i] = s[i];"""
    head = "#include <mma.h>\nusing namespace nvcuda; constexpr int M = {}, N = {}, K = {}; typedef {} T; typedef {} S;"
    for m, n, k, kind, dtype, total in [(8, 8, 4, "double", "f8", "double"), (32, 8, 16, "half", "f2", "float")]:
        matrices = uniform(m + n, 2 * k).astype(dtype)
        bits = matrices.ravel().view("f8")
        subject = kernel(body, head.format(m, n, k, kind, total), n=bits.size)
        a, b = matrices[:m].astype("f8"), matrices[m:].astype("f8")
        expected = (0.5 + a @ b.T) ** 2
        found = subject.run((), [bits])[0][: m * n]
        np.testing.assert_allclose(found, expected.ravel(), rtol=1e-12 if dtype == "f8" else 1e-4)
    agree(three_way(kernel(body, head.format(8, 8, 4, "double", "double"), n=128), [uniform(128)]))
