"""CUB's primitives of threads, warps, blocks and devices, by the stand-in for its headers."""

from __future__ import annotations

import warnings
from itertools import pairwise
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
        typedef cub::BlockScan<double, 32> Block; typedef cub::BlockScan<double2, 32> Composed;
        __shared__ Composed::TempStorage c; __shared__ Reduce::TempStorage r[2]; __shared__ Warp::TempStorage w;
        __shared__ Block::TempStorage b;
        Running running{0.25};
        Steps steps{double2{0.5, 0.25}};
        for (int i = 0; i < 64; i += 32) {
          double2 step[1] = {{0.5 + x[i + t], x[i + t]}};
          Composed(c).InclusiveScan(step, step, Then(), steps);
          double v = step[0].y, before, sum = Reduce(r[t / 16]).Sum(v, 9);
          Warp(w).ExclusiveSum(v, before);
          Block(b).InclusiveSum(v, v, running);
          __syncthreads();
          y[i + t] = v * before + (t % 16 ? 0 : sum * sum);
        }""",
        """#include <cub/cub.cuh>
        struct Running { double total; __device__ double operator()(double sum) {
          double old = total; total += sum; return old; } };
        struct Then { __device__ double2 operator()(double2 f, double2 g) const {
          return {g.x * f.x, g.x * f.y + g.y}; } };
        struct Steps { double2 all; __device__ double2 operator()(double2 next) {
          double2 old = all; all = Then()(all, next); return old; } };""",
        n=64,
    )
    x = values(64)
    v, state = np.zeros(64), 0.25
    for i in range(64):
        v[i] = state = (0.5 + x[i]) * state + x[i]
    rows = v.reshape(2, 32)
    before = (np.cumsum(rows, 1) - rows).ravel()
    sums = np.where(np.arange(64) % 16, 0, v.reshape(4, 16)[:, :9].sum(1).repeat(16) ** 2)
    np.testing.assert_allclose(subject.run((), [x])[0], (np.cumsum(v) + 0.25) * before + sums, rtol=1e-12)
    agree(three_way(subject, [x]))


def test_neighbours_merges_and_lanes() -> None:
    """Orders by a comparison of the source's, in a block and in a warp, where runs begin and end, and functors of
    `cuda::`, which CUB takes in the place of its own."""
    subject = kernel(
        """typedef cub::BlockMergeSort<double, 32, 2, int> Block; typedef cub::WarpMergeSort<double, 4, 16> Warp;
        typedef cub::BlockDiscontinuity<int, 32> Runs; typedef cub::BlockShuffle<double, 32> Beside;
        typedef cub::WarpLoad<double, 2, cub::WARP_LOAD_TRANSPOSE> Load; typedef cub::WarpExchange<double, 2> Across;
        typedef cub::WarpStore<double, 2, cub::WARP_STORE_STRIPED> Store; typedef cub::BlockReduce<double, 32> All;
        __shared__ union { Beside::TempStorage s; Across::TempStorage a; All::TempStorage t; } u;
        __shared__ Block::TempStorage b; __shared__ Runs::TempStorage r; __shared__ Warp::TempStorage w[2];
        Load::TempStorage l; Store::TempStorage o;
        double v[2], first[4] = {x[t], x[t + 32], x[t] + 2, x[t + 32] + 2}, before = 0;
        int place[2] = {2 * t, 2 * t + 1}, head[2], tail[2];
        Load(l).Load(x, v);
        Block(b).Sort(v, place, Down());
        __syncthreads();
        for (int i = 0; i < 2; i++) place[i] /= 8;
        Runs(r).FlagHeads(head, place, cub::Inequality());
        __syncthreads();
        Runs(r).FlagTails(tail, place, Another(), 9);
        __syncthreads();
        Beside(u.s).Offset(v[1], before, -1);
        Warp(w[t / 16]).Sort(first, Down(), 32, -1.0);
        __syncthreads();
        double most = All(u.t).Reduce(first[0], cuda::maximum<>()), all = 0;
        __syncthreads();
        all = All(u.t).Reduce(first[1], cuda::std::plus<>());
        v[0] = v[0] * (1 + head[0] + 2 * head[1]) + before * tail[0];
        v[1] = v[1] * first[0] + (t == 0 ? most * all : 0) + tail[1];
        __syncthreads();
        Across(u.a).BlockedToStriped(v, v);
        Store(o).Store(y, v);""",
        """#include <cub/cub.cuh>
        #include <cuda/functional>
        #include <cuda/std/functional>
        struct Down { __device__ bool operator()(double a, double b) { return a > b; } };
        struct Another { __device__ bool operator()(int a, int b, int at) const { return a != b && at != 9; } };""",
        n=64,
    )
    x = np.random.default_rng(2).permutation(64) / 64 + 0.1
    order = np.argsort(-x)
    v, place = x[order], order // 8
    differs = place[1:] != place[:-1]
    head, tail = np.r_[1, differs], np.r_[differs & (np.arange(1, 64) != 9), place[-1] != 9]
    # Of each section the first 32 items are valid: those of eight lanes.
    lanes = np.sort(x.reshape(2, 2, 16).transpose(1, 0, 2)[:, :, :8].reshape(2, 16))[:, ::-1]
    first = np.concatenate([lanes + 2, lanes, np.full((2, 32), -1.0)], axis=1).reshape(32, 4)
    expected = np.empty((32, 2))
    expected[:, 0] = v[::2] * (1 + head[::2] + 2 * head[1::2]) + np.r_[0, v[1:-1:2]] * tail[::2]
    expected[:, 1] = v[1::2] * first[:, 0] + tail[1::2]
    expected[0, 1] += first[:, 0].max() * first[:, 1].sum()
    np.testing.assert_allclose(subject.run((), [x])[0], expected.ravel(), rtol=1e-12)
    agree(three_way(subject, [x]))


def test_two_warps_sort_and_what_moves_out_of_a_block() -> None:
    """Each warp in memory of its own, which is no race that a look would warn of."""
    source = """#include <cub/cub.cuh>
        #include <cuda/functional>
        struct Less { __device__ bool operator()(double a, double b) const { return a < b; } };
        extern "C" __global__ void moves(const double *x, double *y, int *z) {
          typedef cub::BlockDiscontinuity<int, 64> Runs; typedef cub::BlockShuffle<double, 64> Beside;
          typedef cub::WarpMergeSort<double, 2> Sort; typedef cub::WarpExchange<double, 2> Across;
          typedef cub::BlockExchange<double, 64, 2> Block;
          __shared__ Runs::TempStorage r; __shared__ Beside::TempStorage s; __shared__ Block::TempStorage b;
          __shared__ Sort::TempStorage w[2]; __shared__ Across::TempStorage a[2];
          int t = threadIdx.x, head[2], tail[2], key[2] = {2 * t / 6, (2 * t + 1) / 6};
          int ranks[2] = {(2 * t + 5) % 64, (2 * t + 6) % 64};
          double v[2] = {x[2 * t], x[2 * t + 1]}, up[2] = {0, 0}, down[2] = {0, 0}, suffix, prefix;
          Beside(s).Up(v, up, suffix);
          __syncthreads();
          Beside(s).Down(v, down, prefix);
          Runs(r).FlagHeadsAndTails(head, 0, tail, 21, key, cub::Inequality());
          Sort(w[t / 32]).Sort(v, Less());
          Across(a[t / 32]).ScatterToStriped(v, ranks);
          v[0] = cuda::maximum<double>()(v[0], t == 3 ? NAN : -2);
          Block(b).BlockedToWarpStriped(v);
          for (int i = 0; i < 2; i++) {
            y[2 * t + i] = v[i] * (i ? prefix : suffix) + up[i] * down[i];
            z[2 * t + i] = head[i] + 2 * tail[i];
          }
        }"""
    signature = "x: f64[128], out y: f64[128], out z: i32[128]"
    moves = je.kernel(source, "moves", signature, lang="cuda", grid=1, block=64)
    x = np.random.default_rng(2).permutation(128) / 64 - 1
    with warnings.catch_warnings(action="error", category=je.RaceWarning):
        y, z = moves(x)
    places = np.arange(64).reshape(2, 32).T.ravel()  # of a row of two items for each lane, blocked to striped
    v = np.concatenate([np.roll(np.sort(row), 5)[places][places] for row in x.reshape(2, 64)])
    np.testing.assert_allclose(y, v * np.tile([x[-1], x[0]], 64) + np.r_[0, x[:-1]] * np.r_[x[1:], 0])
    differs = np.diff(np.arange(128) // 6) != 0
    np.testing.assert_array_equal(z, np.r_[0, differs] + 2 * np.r_[differs, 0])
    je.check_grads(moves, (x,))


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


def test_segments_and_what_functions_make_of_elements(tmp_path: Path) -> None:
    """Sums are of the type that adding makes: of flags into integers, and of squares from an integer zero."""
    source = tmp_path / "segments.cu"
    source.write_text(
        """#include <cub/cub.cuh>
        struct Square { __device__ double operator()(double v) const { return v * v; } };
        struct Down { __device__ bool operator()(double a, double b) const { return a > b; } };
        struct Twice { double *y; __device__ void operator()(int i) const { y[i] *= 2; } };
        struct Halved { __device__ void operator()(double &v) { v /= 2; } };
        void segments(const double *x, const bool *flags, const int *ends, int n, int m, double *sums, int *counts,
                      int *seen, double *sorted, double *all) {
          double *squares; void *memory = nullptr; size_t bytes = 0;
          cudaMalloc(&squares, n * sizeof(double));
          cub::TransformInputIterator<double, Square, const double *, int> of(x, Square());
          cub::DeviceSegmentedReduce::Sum(memory, bytes, of + 1, sums, m, ends, ends + 1);
          cudaMalloc(&memory, bytes);
          cub::DeviceSegmentedReduce::Sum(memory, bytes, of + 1, sums, m, ends, ends + 1);
          cub::DeviceReduce::TransformReduce(memory, bytes, x, all, n, cub::Sum(), Square(), 0);
          cub::DeviceSegmentedReduce::Sum(memory, bytes, flags, counts, m, ends, ends + 1);
          cub::DeviceScan::InclusiveSum(memory, bytes, flags, seen, n);
          cub::DeviceTransform::Transform(x, sorted, n, Square());
          cub::DeviceMergeSort::SortKeys(memory, bytes, sorted, n, Down());
          cub::DeviceFor::Bulk(memory, bytes, n - 1, Twice{sorted});
          cub::DeviceFor::ForEachN(sorted + 1, n - 1, Halved());
          cudaFree(memory);
          cudaFree(squares);
        }"""
    )
    signature = "x: f64[n], flags: bool[n], ends: i32[m+1], n: i32, m: i32, out sums: f64[m], out counts: i32[m], "
    signature += "out seen: i32[n], out sorted: f64[n], out all: f64[]"
    segments = je.kernel(source, "segments", signature)
    x, ends = np.random.default_rng(4).permutation(9) / 9 + 0.2, np.array([0, 3, 3, 8], np.int32)
    flags = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1], bool)
    sums, counts, seen, in_order, total = segments(x, flags, ends)
    np.testing.assert_array_equal(counts, [flags[a:b].sum() for a, b in pairwise(ends)])
    np.testing.assert_array_equal(seen, np.cumsum(flags))
    np.testing.assert_allclose(sums, [(x[1 + a : 1 + b] ** 2).sum() for a, b in pairwise(ends)], rtol=1e-13)
    np.testing.assert_allclose(in_order, np.sort(x * x)[::-1] * np.r_[2, [1] * 7, 0.5], rtol=1e-13)
    np.testing.assert_allclose(total, (x * x).sum(), rtol=1e-13)
    je.check_grads(segments, (x, flags, ends))
