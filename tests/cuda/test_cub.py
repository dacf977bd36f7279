"""CUB's primitives of threads, warps, blocks and devices, by the stand-in for its headers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import jax_enzyme as je
from tests.cuda.test_headers import kernel, values
from tests.support.engine import agree
from tests.support.engine import together as three_way

REDUCED = """
struct Moments { double sum, squares; float count; };
struct Joined { __device__ Moments operator()(const Moments &a, const Moments &b) const {
  return {a.sum + b.sum, a.squares + b.squares, a.count + b.count}; } };
"""


def first(value: float, n: int) -> np.ndarray:
    return np.r_[value, np.zeros(n - 1)]


def test_block_reduce() -> None:
    """Of numbers, of structures and of those with the first valid threads only: valid in thread 0."""
    n = 64
    subject = kernel(
        f"""typedef cub::BlockReduce<double, {n}> Sum; typedef cub::BlockReduce<Moments, {n}> Moment;
        typedef cub::BlockReduce<cub::KeyValuePair<int, double>, {n}> Place;
        __shared__ Sum::TempStorage s; __shared__ Moment::TempStorage m; __shared__ Place::TempStorage p;
        double some = Sum(s).Sum(x[t] * x[t], {n} - 5);
        Moments all = Moment(m).Reduce(Moments{{x[t], x[t] * x[t], 1}}, Joined());
        auto largest = Place(p).Reduce(cub::KeyValuePair<int, double>(t, x[t]), cub::ArgMax());
        if (t == 0)
          y[0] = some * (all.squares / all.count - all.sum * all.sum / (all.count * all.count))
            + largest.key * largest.value;""",
        f"#include <cub/cub.cuh>\n{REDUCED}",
        n=n,
        block=n,
    )
    x = values(n)
    expected = (x[:-5] ** 2).sum() * x.var() + x.argmax() * x.max()
    np.testing.assert_allclose(subject.run((), [x])[0], first(expected, n), rtol=1e-6)
    agree(three_way(subject, [x]))


def test_block_loads_scans_and_exchanges() -> None:
    subject = kernel(
        """typedef cub::BlockLoad<double, 24, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
        typedef cub::BlockStore<double, 24, 4, cub::BLOCK_STORE_STRIPED> Store;
        typedef cub::BlockScan<double, 24> Scan; typedef cub::BlockExchange<double, 24, 4> Exchange;
        __shared__ union { Load::TempStorage l; Store::TempStorage o; Scan::TempStorage s; Exchange::TempStorage e; } u;
        double v[4], most, total;
        Load(u.l).Load(x, v, 95, 0.5);
        __syncthreads();
        Scan(u.s).InclusiveScan(v[3], most, cub::Max());
        __syncthreads();
        Scan(u.s).ExclusiveSum(v, v, total);
        for (int i = 0; i < 4; i++) v[i] *= most + total;
        __syncthreads();
        Exchange(u.e).BlockedToStriped(v);
        Store(u.o).Store(y, v);""",
        "#include <cub/block/block_load.cuh>\n#include <cub/block/block_scan.cuh>",
        n=96,
        block=24,
    )
    x = values(96)
    v = np.r_[x[:95], 0.5]
    expected = (np.cumsum(v) - v) * (np.maximum.accumulate(v[3::4]).repeat(4) + v.sum())
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-12)
    agree(three_way(subject, [x]))


def test_warps_and_what_blocks_before_hold() -> None:
    subject = kernel(
        """typedef cub::WarpReduce<double, 16> Reduce; typedef cub::WarpScan<double> Warp;
        typedef cub::BlockScan<double, 32> Block;
        __shared__ Reduce::TempStorage r[2]; __shared__ Warp::TempStorage w; __shared__ Block::TempStorage b;
        Running running{0.25};
        for (int i = 0; i < 64; i += 32) {
          double v = x[i + t], before, sum = Reduce(r[t / 16]).Sum(v, 9);
          Warp(w).ExclusiveSum(v, before);
          Block(b).InclusiveSum(v, v, running);
          __syncthreads();
          y[i + t] = v * before + (t % 16 ? 0 : sum * sum);
        }""",
        """#include <cub/cub.cuh>
        struct Running { double total; __device__ double operator()(double sum) {
          double old = total; total += sum; return old; } };""",
        n=64,
    )
    x = values(64)
    rows = x.reshape(2, 32)
    before = (np.cumsum(rows, 1) - rows).ravel()
    sums = np.where(np.arange(64) % 16, 0, x.reshape(4, 16)[:, :9].sum(1).repeat(16) ** 2)
    np.testing.assert_allclose(subject.run((), [x])[0], (np.cumsum(x) + 0.25) * before + sums, rtol=1e-12)
    agree(three_way(subject, [x]))


def test_devices(tmp_path: Path) -> None:
    """Host functions ask for memory first, and pass what is there."""
    source = tmp_path / "norms.cu"
    source.write_text(
        """#include <cub/cub.cuh>
        void norms(const double *x, int n, double *sums, double *most) {
          void *memory = nullptr;
          size_t bytes = 0;
          cub::DeviceScan::InclusiveSum(memory, bytes, x, sums, n);
          cudaMalloc(&memory, bytes);
          cub::DeviceScan::InclusiveSum(memory, bytes, x, sums, n);
          cub::DeviceReduce::Max(memory, bytes, sums, most, n);
          cudaFree(memory);
        }"""
    )
    norms = je.kernel(source, "norms", "x: f64[n], n: i32, out sums: f64[n], out most: f64[]")
    x = values(9) - 0.5
    sums, most = norms(x)
    np.testing.assert_allclose(sums, np.cumsum(x), rtol=1e-13)
    np.testing.assert_allclose(most, np.cumsum(x).max(), rtol=1e-13)
    je.check_grads(norms, (x,))
