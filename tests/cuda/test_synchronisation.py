"""Barriers, votes, shuffles, early exits and atomics, for blocks that fill warps and blocks that do not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.errors import LoweringError
from jax_enzyme.frontends import load
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.reader import parse as parse_ir
from jax_enzyme.signature import Binding, parse, parse_launch
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.lower import lower
from tests.cuda import device
from tests.support.engine import Native, agree
from tests.support.engine import together as three_way


def native(
    source: str, signature: str, dims: dict[str, int], grid: object, block: object, shared: object = 0
) -> Native:
    parsed = parse(signature)
    program = load(source, None, "cuda")
    return Native(replace(program, launch=parse_launch(parsed, grid, block, shared)), parsed, Binding.of(dims, {}))


def run(source: str, signature: str, dims: dict[str, int], grid: object, block: object, *given: object) -> list:
    return native('extern "C" __global__ void kernel' + source, signature, dims, grid, block).run(
        (), [np.asarray(g) for g in given]
    )


def test_votes_of_a_block() -> None:
    source = """(int n, const int *x, int *y) {
      int t = threadIdx.x;
      int count = __syncthreads_count(x[t] > 0), all = __syncthreads_and(x[t] > 0), any = __syncthreads_or(x[t] > 3);
      y[t] = 100 * count + 10 * !!all + !!any;
    }"""
    x = np.array([1, 0, 2, 3, 0], np.int32)
    (y,) = run(source, "n: i32, x: i32[n], out y: i32[n]", {"n": 5}, 1, 5, x)
    np.testing.assert_array_equal(y, [300] * 5)
    (y,) = run(source, "n: i32, x: i32[n], out y: i32[n]", {"n": 5}, 1, 5, x + 4)
    np.testing.assert_array_equal(y, [511] * 5)


def test_restrict_is_about_one_thread() -> None:
    """What a thread wrote behind such a pointer may be another number after it has met others."""
    source = """(const double *x, double *__restrict__ y, double *__restrict__ z) {
      int t = threadIdx.x;
      y[t] = x[t];
      __syncthreads();
      if (t >= 32) y[t - 32] = 3 * x[t];
      __syncthreads();
      z[t] = y[t];
    }"""
    signature, x = "x: f64[64], out y: f64[64], out z: f64[64]", np.arange(64.0) + 0.5
    subject = native('extern "C" __global__ void kernel' + source, signature, {}, 1, 64)
    for found in subject.run((), [x]):
        np.testing.assert_array_equal(found, np.concatenate([3 * x[32:], x[32:]]))
    agree(three_way(subject, [x]))


def test_an_address_in_two_arms_is_no_address_of_its_own() -> None:
    """Both arms compute it from the thread's number; kept for each thread in memory, it hid where reverse reads."""
    source = """(int n, const double *x, double *y) {
      __shared__ double s[33];
      int t = threadIdx.x, g = blockIdx.x * blockDim.x + threadIdx.x;
      s[t] = (g < n ? x[g] : 0.0);
      if (g < n) y[g] = 0;
      __syncthreads();
      for (int k = 0; k < 3; k++) {
        bool done = false;
        double v = 0.25;
        if (t >= 1) { if (g < n) { if (t + 5 < n) { v = s[t] * x[g % n] + s[(t + 32) % 33]; done = true; } } }
        __syncthreads();
        if (!done) s[t] += 0.3 * v;
        __syncthreads();
      }
      if (t % 4 == 0 && g < n) y[g] += s[t];
      if (g < n) { if (t >= 2) { if (t < 32) y[g] += s[t - 1] * s[t + 1]; } }
    }"""
    signature, x = "n: i32, x: f64[n], out y: f64[n]", np.linspace(0.3, 1.2, 63)
    subject = native('extern "C" __global__ void kernel' + source, signature, {"n": 63}, 2, 33)
    agree(three_way(subject, [x]))


def test_restrict_and_additions_of_other_lanes() -> None:
    source = """(const double *x, double *__restrict__ y) {
      int t = threadIdx.x;
      atomicAdd(y + t % 4, x[t]);
      double other = __shfl_sync(0xffffffffu, x[t], (t + 5) % 32);
      atomicAdd(y + (t + 5) % 4, other);
      atomicAdd(y + t % 4, x[t]);
    }"""
    x = np.random.default_rng(0).normal(size=32)
    subject = native('extern "C" __global__ void kernel' + source, "x: f64[32], inout y: f64[4]", {}, 1, 32)
    np.testing.assert_allclose(subject.run((), [x, np.zeros(4)])[0], 3 * x.reshape(8, 4).sum(0), rtol=1e-12)
    agree(three_way(subject, [x, np.zeros(4)]))


@pytest.mark.parametrize("n", [32, 45, 70])
def test_votes_of_warps_and_block_together(n: int) -> None:
    source = """(int n, const int *x, int *y) {
      int t = threadIdx.x;
      unsigned ballot = __ballot_sync(0xffffffffu, x[t] & 1);
      int any = __any_sync(0xffffffffu, x[t] == 7), all = __all_sync(0xffffffffu, x[t] >= 0);
      int count = __syncthreads_count(x[t] & 1);
      y[t] = __popc(ballot) * 100000 + count * 100 + !!any * 10 + !!all;
    }"""
    x = np.random.default_rng(0).integers(0, 9, n).astype(np.int32)
    (y,) = run(source, "n: i32, x: i32[n], out y: i32[n]", {"n": n}, 1, n, x)
    for t in range(n):
        warp = x[t // 32 * 32 : t // 32 * 32 + 32]
        expected = (warp & 1).sum() * 100000 + (x & 1).sum() * 100 + (warp == 7).any() * 10 + 1
        assert y[t] == expected


SHUFFLES = {
    "__shfl_sync(~0u, x[t], 5)": lambda t: 5,
    "__shfl_sync(~0u, x[t], t + 3, 8)": lambda t: t // 8 * 8 + (t + 3) % 8,
    "__shfl_up_sync(~0u, x[t], 3)": lambda t: t - 3 if t >= 3 else t,
    "__shfl_up_sync(~0u, x[t], 3, 16)": lambda t: t - 3 if t % 16 >= 3 else t,
    "__shfl_down_sync(~0u, x[t], 5)": lambda t: t + 5 if t + 5 < 32 else t,
    "__shfl_down_sync(~0u, x[t], 5, 8)": lambda t: t + 5 if t % 8 + 5 < 8 else t,
    "__shfl_xor_sync(~0u, x[t], 9)": lambda t: t ^ 9,
}


@pytest.mark.parametrize("kind", ["double", "float", "int", "unsigned long long"])
def test_shuffles(kind: str) -> None:
    dtype = {"double": "f64", "float": "f32", "int": "i32", "unsigned long long": "u64"}[kind]
    stores = " ".join(f"y[{n} + t] = {call};" for n, call in zip(range(0, 32 * 7, 32), SHUFFLES, strict=True))
    source = f"(const {kind} *x, {kind} *y) {{ int t = threadIdx.x; {stores} }}"
    x = (np.arange(32) * 3 + 1).astype({"f64": "f8", "f32": "f4", "i32": "i4", "u64": "u8"}[dtype])
    (y,) = run(source, f"x: {dtype}[32], out y: {dtype}[7,32]", {}, 1, 32, x)
    for (call, source_lane), found in zip(SHUFFLES.items(), y, strict=True):
        np.testing.assert_array_equal(found, x[[source_lane(t) for t in range(32)]], err_msg=call)


def test_a_loop_whose_end_the_block_votes_on() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ double s[16];
      int t = threadIdx.x;
      s[t] = x[t];
      int rounds = 0;
      do {
        __syncthreads();
        double next = 0.5 * (s[t] + s[(t + 1) % n]);
        __syncthreads();
        s[t] = next;
        __syncthreads();
        rounds++;
      } while (__syncthreads_or(fabs(s[t] - s[0]) > 0.5));
      y[t] = s[t] + rounds;
    }"""
    x = np.random.default_rng(1).normal(size=9) * 3
    s, rounds = x.copy(), 0
    while True:
        s, rounds = 0.5 * (s + np.roll(s, -1)), rounds + 1
        if not (np.abs(s - s[0]) > 0.5).any():
            break
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n]", {"n": 9}, 1, 9)
    np.testing.assert_allclose(kernel.run((), [x])[0], s + rounds, rtol=1e-12)
    agree(three_way(kernel, [x]))


def test_a_loop_whose_end_depends_on_shared_memory() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ double s[16], error;
      int t = threadIdx.x;
      s[t] = x[t];
      if (t == 0) error = 1;
      __syncthreads();
      while (error > 0.01) {
        double next = 0.5 * (s[t] + s[(t + 1) % n]);
        __syncthreads();
        s[t] = next;
        if (t == 0) error *= 0.6;
        __syncthreads();
      }
      y[t] = s[t];
    }"""
    x = np.random.default_rng(1).normal(size=9)
    s, error = x.copy(), 1.0
    while error > 0.01:
        s, error = 0.5 * (s + np.roll(s, -1)), error * 0.6
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n]", {"n": 9}, 2, 9)
    np.testing.assert_allclose(kernel.run((), [x])[0], s, rtol=1e-12)
    agree(three_way(kernel, [x]))


def test_a_loop_whose_end_depends_on_what_all_blocks_sum() -> None:
    """All threads read the sum, and so take one way: lanes need no places of their own where they wait."""
    source = """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void relax(int n, double tol, double *x, double *sum) {
      cg::grid_group all = cg::this_grid();
      int i = all.thread_rank();
      double largest = 1;
      while (largest > tol) {
        double v = x[i] * x[i];
        for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
        if (threadIdx.x % 32 == 0) atomicAdd(sum, v);
        all.sync();
        largest = sum[0] / n;
        x[i] *= 0.5 + 0.25 * sin(largest);
        all.sync();
        if (i == 0) sum[0] = 0;
        all.sync();
      }
    }"""
    kernel = je.kernel(source, "relax", "n: i32, tol: f64, inout x: f64[n], inout sum: f64[]", lang="cuda", grid=2,
                       block=64)  # fmt: skip
    x = np.random.default_rng(3).normal(size=128)
    expected, largest = x.copy(), 1.0
    while largest > 0.01:
        largest = np.mean(expected**2)
        expected *= 0.5 + 0.25 * np.sin(largest)
    found, _ = kernel(0.01, x, 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    je.check_grads(lambda x: kernel(0.01, x, 0.0)[0], (x,))
    text = kernel.inspect(0.01, x, 0.0).ir("primal")
    assert len(text.splitlines()) < 1500  # with places for lanes to wait at: 5,148


def test_what_one_thread_alone_reads_and_writes() -> None:
    """No race says that it stays the same until the next barrier."""
    source = """(double *x, double *y) {
      int t = threadIdx.x;
      if (t == 1) return;
      double sum = 0;
      for (int k = 0; k < 3; k++) {
        double v = x[0];
        if (t == 0) x[0] = 2 * v + 1;
        __syncthreads();
        sum += v;
      }
      y[t] = sum;
    }"""
    kernel = native('extern "C" __global__ void k' + source, "inout x: f64[1], out y: f64[2]", {}, 1, 2)
    found = kernel.run((), [np.array([3.0])])
    np.testing.assert_array_equal(found[1], [3 + 7 + 15, 0])


def test_threads_leave_a_loop_one_by_one() -> None:
    """Threads that have left are not counted, and the others still meet."""
    source = """(int n, int *y) {
      int t = threadIdx.x;
      for (int round = 0;; round++) {
        if (round > t) return;
        y[t] = 10 * round + __syncthreads_count(1);
      }
    }"""
    (y,) = run(source, "n: i32, inout y: i32[n]", {"n": 4}, 1, 4, np.zeros(4, np.int32))
    np.testing.assert_array_equal(y, [4, 13, 22, 31])


def test_local_arrays_across_barriers() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ double s[8];
      double own[4];
      int t = threadIdx.x;
      for (int k = 0; k < 4; k++) own[k] = x[(t + k) % n];
      s[t] = own[t % 4];
      __syncthreads();
      own[(t + 1) % 4] += s[(t + 3) % n];
      __syncthreads();
      y[t] = own[0] * own[1] + own[2] * own[3];
    }"""
    x = np.random.default_rng(2).normal(size=7)
    own = np.array([[x[(t + k) % 7] for k in range(4)] for t in range(7)])
    s = np.array([own[t, t % 4] for t in range(7)])
    for t in range(7):
        own[t, (t + 1) % 4] += s[(t + 3) % 7]
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n]", {"n": 7}, 1, 7)
    np.testing.assert_allclose(kernel.run((), [x])[0], own[:, 0] * own[:, 1] + own[:, 2] * own[:, 3], rtol=1e-12)
    agree(three_way(kernel, [x]))


def test_much_local_memory() -> None:
    """1024 threads with 400 bytes each do not fit into a small stack."""
    source = """(int n, const double *x, double *y) {
      __shared__ double s[1024];
      double own[50];
      int t = threadIdx.x;
      for (int k = 0; k < 50; k++) own[k] = sin(x[t] * (k + 1));
      s[t] = own[t % 50];
      __syncthreads();
      own[t % 50] += s[(t + 1) % n];
      __syncthreads();
      double sum = 0;
      for (int k = 0; k < 50; k++) sum += own[k];
      y[t] = sum;
    }"""
    x = np.random.default_rng(2).normal(size=1024)
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n]", {"n": 1024}, 1, "n")
    own = np.sin(x[:, None] * np.arange(1, 51))
    s = own[np.arange(1024), np.arange(1024) % 50]
    np.testing.assert_allclose(kernel.run((), [x])[0], own.sum(1) + np.roll(s, -1), rtol=1e-10)
    agree(three_way(kernel, [x]))


def test_output_and_loops_over_the_grid() -> None:
    source = """(int n, const double *x, double *y) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        if (i == 3) printf("thread %d of %d has %.3f\\n", threadIdx.x, (int)blockDim.x, x[i]);
        y[i] = x[i] * x[i];
      }
    }"""
    x = np.random.default_rng(2).normal(size=11)
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n]", {"n": 11}, 2, 2)
    agree(three_way(kernel, [x]))


def test_atomics_on_integers() -> None:
    source = """(int n, const int *x, int *y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      atomicAdd(&y[0], x[i]);
      atomicMax(&y[1], x[i]);
      atomicMin(&y[2], x[i]);
      atomicCAS(&y[3], 0, x[i]);
      atomicExch(&y[4], x[i]);
      atomicInc((unsigned *)&y[5], 3u);
      atomicOr(&y[6], x[i]);
      __nv_atomic_fetch_add(&y[7], x[i], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
      int seen = __nv_atomic_load_n(&y[8], __NV_ATOMIC_ACQUIRE);
      while (!__nv_atomic_compare_exchange_n(&y[8], &seen, seen - x[i], true, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_RELAXED))
        ;
    }"""
    x = np.array([5, -3, 8, 1, 2], np.int32)
    (y,) = run(source, "n: i32, x: i32[n], out y: i32[9]", {"n": 5}, 3, 2, x)
    np.testing.assert_array_equal(y, [13, 8, -3, 5, 2, 1, 5 | -3 | 8 | 1 | 2, 13, -13])


def test_extrema_of_numbers_by_atomics_on_their_bits() -> None:
    """Of numbers that are not negative the largest integer, of negative ones the least without a sign."""
    source = """
      __device__ float largest(float *a, float v) {
        if (v >= 0) return __int_as_float(atomicMax((int *)a, __float_as_int(v)));
        return __uint_as_float(atomicMin((unsigned *)a, __float_as_uint(v)));
      }
      extern "C" __global__ void kernel(int n, const float *x, float *y) {
        __shared__ float s;
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (threadIdx.x == 0) s = -1e30f;
        __syncthreads();
        if (i < n) largest(&s, x[i] * x[i] - 2);
        __syncthreads();
        if (threadIdx.x == 0) y[blockIdx.x] = s;
      }"""
    kernel = native(source, "n: i32, x: f32[n], out y: f32[3]", {"n": 12}, 3, 4)
    x = np.float32([0.1, 1.2, -0.6, 0.9, 0.4, -2.5, 1.5, 0.2, -3, 1, 2, 0.5])
    agree(three_way(kernel, [x], step=1e-3), 1e-6, 1e-2)
    np.testing.assert_allclose(kernel.run((), [x])[0], (x * x - 2).reshape(3, 4).max(1), rtol=1e-6)


def test_three_dimensions() -> None:
    source = """(int n, int *y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y,
          k = blockIdx.z * blockDim.z + threadIdx.z;
      y[(k * gridDim.y * blockDim.y + j) * gridDim.x * blockDim.x + i] = 100 * k + 10 * j + i;
    }"""
    (y,) = run(source, "n: i32, inout y: i32[n,6,4]", {"n": 6}, (2, 2, 3), (2, 3, 2), np.zeros((6, 6, 4), np.int32))
    np.testing.assert_array_equal(y, [[[100 * k + 10 * j + i for i in range(4)] for j in range(6)] for k in range(6)])


def test_half_precision_is_storage() -> None:
    source = """(int n, const __half *x, __nv_bfloat16 *y) {
      int i = threadIdx.x;
      y[i] = __float2bfloat16(2 * __half2float(x[i]));
    }"""
    x = np.array([1.5, -2.0, 0.25], np.float16)
    (y,) = run(source, "n: i32, x: f16[n], out y: bf16[n]", {"n": 3}, 1, 3, x)
    np.testing.assert_array_equal(np.asarray(y, np.float32), [3, -4, 0.5])


def test_special_functions() -> None:
    from scipy import special

    source = """(int n, const double *x, double *y) {
      int i = threadIdx.x;
      double s, c;
      sincos(x[i], &s, &c);
      y[7 * i] = erfinv(x[i]), y[7 * i + 1] = normcdf(x[i]), y[7 * i + 2] = normcdfinv(x[i]);
      y[7 * i + 3] = rsqrt(x[i]), y[7 * i + 4] = erfcinv(x[i]), y[7 * i + 5] = s * c, y[7 * i + 6] = cospi(x[i]);
    }"""
    x = np.array([1e-12, 0.02, 0.3, 0.49, 0.51, 0.7, 0.99, 1 - 1e-9])
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n,7]", {"n": 8}, 1, 8)
    y = kernel.run((), [x])[0]
    expected = [special.erfinv(x), special.ndtr(x), special.ndtri(x), x**-0.5, special.erfcinv(x)]
    expected += [np.sin(x) * np.cos(x), np.cos(np.pi * x)]
    np.testing.assert_allclose(y.T, expected, rtol=1e-12, atol=1e-16)
    agree(three_way(kernel, [x[2:6].repeat(2)]))


def test_what_a_cpu_cannot_do_is_refused_by_name() -> None:
    source = """(int n, int *y) { asm("membar.gl; bar.arrive 1, 64;"); y[threadIdx.x] = 1; }"""
    with pytest.raises(LoweringError, match=r"inline PTX `bar\.arrive 1, 64`") as caught:
        run(source, "n: i32, inout y: i32[n]", {"n": 3}, 1, 3, np.zeros(3, np.int32))
    assert "kernel.cu:1:" in str(caught.value)


def test_inline_ptx() -> None:
    source = r"""(int n, const double *x, double *y) {
      unsigned t, low, odd, three; int middle; double v, w, z; float f;
      asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
      asm("{\n\t.reg .u32 k, j;\n\tmov.u32 k, %%laneid; // a lane\n\tadd.u32 j, k, 3;\n\tand.b32 %0, j, 7;\n}"
          : "=r"(low));
      asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(odd) : "r"(t), "r"(low), "r"(9));
      asm("bfe.s32 %0, %1, 1, 3;" : "=r"(middle) : "r"(t));
      asm("{ .reg .pred p; setp.lt.s32 p, %1, 0; selp.u32 %0, 1, %2, p; }" : "=r"(three) : "r"(middle), "r"(3));
      asm("ld.global.nc.L1::no_allocate.v2.f64 {%0, %1}, [%2+16];" : "=d"(v), "=d"(w) : "l"(x + 2 * (t / 2)));
      asm("prefetch.global.L2 [%0];" :: "l"(x));
      asm("fma.rn.f64 %0, %1, %2, 0d3FE0000000000000;" : "=d"(z) : "d"(v), "d"(w));
      asm("mul.f64 %0, %0, %1;" : "+d"(z) : "d"(x[t]));
      f = (float)z;
      asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+f"(f));
      asm("shl.b32 %0, %0, 40; add.u32 %0, %0, 5;" : "+r"(low));
      unsigned before, behind;
      asm("mov.u32 %0, %%lanemask_lt; mov.u32 %1, %%lanemask_ge;" : "=r"(before), "=r"(behind));
      if (before != (1u << t) - 1 || behind != ~before) asm("trap;");
      asm("st.global.f64 [%0], %1;" :: "l"(y + t), "d"(z * f + (int)odd * middle + three * low) : "memory");
    }"""
    x, t = np.random.default_rng(1).uniform(0.5, 1, 36), np.arange(32)
    kernel = native('extern "C" __global__ void k' + source, "n: i32, x: f64[n], out y: f64[n]", {"n": 36}, 1, 32)
    start = t // 2 * 2
    z = (x[start + 2] * x[start + 3] + 0.5) * x[:32]
    middle = (t >> 1 & 7) - 8 * (t >> 3 & 1)
    expected = z * z[t ^ 1] + (t ^ (t + 3 & 7) ^ 9) * middle + np.where(middle < 0, 1, 3) * 5
    np.testing.assert_allclose(kernel.run((), [x])[0][:32], expected, rtol=1e-6)
    agree(three_way(kernel, [x]), 1e-5, 1e-3)


def test_inline_ptx_with_conversions_and_atomics() -> None:
    source = r"""(const double *x, double *y, double *total, unsigned *most, unsigned *slot, float *pair) {
      unsigned t = threadIdx.x, high, old; int whole; double r; float f; long long q;
      asm("mul.hi.u32 %0, %1, %2;" : "=r"(high) : "r"(0xC0000000u), "r"(t));
      asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(whole) : "r"(0x40000000), "r"(-8), "r"(5));
      asm("mov.b64 %0, 0d4008000000000000;" : "=d"(r));
      asm("{ .reg .f64 s; cvt.rn.f64.u32 s, %1; div.rn.f64 %0, s, %0; }" : "+d"(r) : "r"(high));
      asm("cvt.rn.f32.f64 %0, %1;" : "=f"(f) : "d"(x[t]));
      asm("cvt.rmi.s32.f64 %0, %1;" : "=r"(high) : "d"(x[t] * -10));
      asm("cvt.s64.s32 %0, %1;" : "=l"(q) : "r"(high));
      asm volatile("red.global.add.f64 [%0], %1;" :: "l"(total), "d"(x[t] * x[t]) : "memory");
      asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" :: "l"(pair), "f"(f), "f"(f * f) : "memory");
      asm volatile("atom.global.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(most), "r"(t) : "memory");
      asm volatile("atom.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(slot), "r"(t), "r"(t + 1) : "memory");
      y[t] = r * x[t] + f * f + whole * x[t] + (double)q;
    }"""
    signature = "x: f64[8], out y: f64[8], inout total: f64[1], inout most: u32[1], inout slot: u32[1]"
    signature += ", inout pair: f32[2]"
    kernel = native('extern "C" __global__ void k' + source, signature, {}, 1, 8)
    x, t = np.random.default_rng(1).uniform(0.5, 1, 8), np.arange(8)
    given = [x, np.ones(1), np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.ones(2, np.float32)]
    y, total, most, slot, pair = kernel.run((), given)
    np.testing.assert_allclose(y, (t * 3 // 4 / 3 + 3) * x + x * x + np.floor(-10 * x), rtol=1e-6)
    np.testing.assert_allclose([total[0], most[0], slot[0]], [1 + np.sum(x * x), 7, 8])
    np.testing.assert_allclose(pair, [1 + np.sum(x), 1 + np.sum(x * x)], rtol=1e-5)
    agree(three_way(kernel, given), 1e-5, 1e-3)


def test_guards_and_saturation_of_inline_ptx() -> None:
    source = r"""extern "C" __device__ float __nv_saturatef(float);
    extern "C" __global__ void k(const float *x, float *y, int *whole) {
      int t = threadIdx.x, next = t; float v = x[t], w;
      asm("{ .reg .pred p; setp.gt.f32 p, %0, 0f3F000000; @p mul.f32 %0, %0, %0; @!p add.f32 %0, %0, 1.0; }" : "+f"(v));
      asm("{ .reg .pred p; setp.eq.s32 p, %0, 1; @p mov.b32 %0, 0x7FFFFFFF; add.sat.s32 %0, %0, 1; }" : "+r"(next));
      asm("{ .reg .f32 s; fma.rn.sat.f32 s, %1, %1, %1; cvt.sat.f32.f32 %0, %1; add.f32 %0, %0, s; }"
          : "=f"(w) : "f"(x[t]));
      y[t] = v, y[5 + t] = w, y[10 + t] = __saturatef(x[t]) + __nv_saturatef(x[t]), whole[t] = next;
    }"""
    kernel = native(source, "x: f32[5], out y: f32[3,5], out whole: i32[5]", {}, 1, 5)
    x = np.array([0.25, 0.75, -3, 7, np.nan], np.float32)
    y, whole = kernel.run((), [x])
    clamped = np.array([0.25, 0.75, 0, 1, 0], np.float32)
    both = clamped + np.array([0.3125, 1, 1, 1, 0], np.float32)
    np.testing.assert_allclose(y, [np.where(x > 0.5, x * x, x + 1), both, 2 * clamped])
    assert list(whole) == [1, 2**31 - 1, 3, 4, 5]
    agree(three_way(kernel, [np.array([0.25, 0.75, -0.5, 1.5, 0.1], np.float32)]), 1e-5, 3e-3)
    for text in ("@p shfl.sync.idx.b32 r, r, 0, 31, 0xffffffff;", "@q add.s32 p, p, p;"):
        body = f'asm("{{ .reg .pred p; setp.eq.s32 p, 0, 0; {text} }}" :: "l"(y));'
        with pytest.raises(LoweringError, match=text.split(".")[0]):
            run(f"(float *y) {{ {body} }}", "inout y: f32[1]", {}, 1, 1, np.zeros(1, np.float32))


def test_guards_of_what_reads_and_writes_memory() -> None:
    """Where the guard says no, nothing is read or written, and registers stay; the addresses there are nobody's."""
    source = r"""extern "C" __global__ void k(const double *x, double *y, double *total) {
      int t = threadIdx.x; double v = 2, w = x[t];
      __shared__ double s[4]; s[t] = 0.5;
      unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
      asm("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.f64 %0, [%1]; mul.f64 %0, %0, %0; }"
          : "+d"(v) : "l"(t % 2 ? x + t : nullptr), "r"(t % 2));
      asm volatile("{ .reg .pred p; setp.gt.s32 p, %3, 1; @!p st.global.f64 [%0], %1; @p red.global.add.f64 [%2], %1; }"
                   :: "l"(t > 1 ? nullptr : y + t), "d"(v * w), "l"(t > 1 ? total : nullptr), "r"(t) : "memory");
      asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 3; @p cp.async.ca.shared.global [%0], [%1], 8; }"
                   :: "r"(to), "l"(t == 3 ? x : nullptr), "r"(t) : "memory");
      y[4 + t] = s[t] * w;
    }"""
    subject = native(source, "x: f64[4], inout y: f64[8], inout total: f64[]", {}, 1, 4)
    x, y = np.random.default_rng(2).uniform(0.5, 1.5, 4), np.arange(8.0)
    v = np.where([False, True, False, True], x, 2) ** 2 * x
    found = subject.run((), [x, y, np.float64(1)])
    np.testing.assert_allclose(found[0], [v[0], v[1], 2, 3, *(0.5 * x[:3]), x[0] * x[3]], rtol=1e-15)
    np.testing.assert_allclose(found[1], 1 + v[2] + v[3])
    agree(three_way(subject, [x, y, np.float64(1)]))


def test_addresses_of_shared_memory_in_inline_ptx() -> None:
    """Copies from global memory in two stages, the last of them short, and loads, stores and sums, at addresses that
    are numbers of 32 bits."""
    source = r"""__device__ unsigned address(void *p) {
      unsigned a;
      asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p));
      return a;
    }
    __device__ void copy(double *to, const double *from, int bytes) {
      unsigned a = (unsigned)__cvta_generic_to_shared(to);
      asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(a), "l"(from), "r"(bytes));
      asm volatile("cp.async.commit_group;" ::);
    }
    extern "C" __global__ void k(int n, const double *x, double *y) {
      __shared__ double s[3][16];
      int t = threadIdx.x;
      copy(s[0] + 2 * t, x + 2 * t, 16);
      for (int i = 0; i < 2; i++) {
        copy(s[(i + 1) % 2] + 2 * t, x + 16 * (i + 1) + 2 * t, i && t == 7 ? 8 : 16);
        asm volatile("cp.async.wait_group %0;" :: "n"(1));
        __syncthreads();
        double v, w;
        asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(v), "=d"(w) : "r"(address(s[i] + 14 - 2 * t)));
        asm volatile("st.shared.f64 [%0+8], %1;" :: "r"(address(s[2]) + 16 * t), "d"(v * w) : "memory");
        asm volatile("st.shared::cta.f64 [%0], %1;" :: "r"(address(s[2]) + 16 * t), "d"(w) : "memory");
        __syncthreads();
        asm volatile("red.shared.add.f64 [%0], %1;" :: "r"(address(s[2] + 2)), "d"(v) : "memory");
        __syncthreads();
        y[8 * i + t] = s[2][2 * t + 1] * s[i][t] + s[2][2 * t];
        __syncthreads();
      }
      asm volatile("cp.async.wait_all;" ::);
      __syncthreads();
      y[16 + t] = s[0][2 * t] - s[0][2 * t + 1];
    }"""
    subject = native(source, "n: i32, x: f64[n], out y: f64[24]", {"n": 48}, 1, 8)
    x = np.random.default_rng(3).uniform(0.5, 1.5, 48)
    stages = x.reshape(3, 8, 2)
    second = stages[:, ::-1, 1] + stages[:, ::-1, 0].sum(1, keepdims=True) * (np.arange(8) == 1)
    products = [stages[i, ::-1].prod(1) * stages[i].ravel()[:8] + second[i] for i in range(2)]
    rest = stages[2] * np.r_[np.ones(15), 0].reshape(8, 2)
    np.testing.assert_allclose(subject.run((), [x])[0], np.r_[(*products, rest[:, 0] - rest[:, 1])], rtol=1e-14)
    agree(three_way(subject, [x]))
    with pytest.raises(LoweringError, match="not computed from one variable"):
        body = '{ asm("ld.shared.s32 %0, [%1];" : "=r"(*y) : "r"(a)); }'
        run(f"(int a, int *y) {body}", "a: i32, out y: i32[]", {}, 1, 1, 4)


def test_conversions_to_integers_saturate() -> None:
    """As a GPU's do; what is no number becomes zero, or of 64 bits on either side the highest bit alone."""
    source = r"""extern "C" __device__ unsigned __nv_double2uint_ru(double);
    extern "C" __global__ void k(const float *x, const double *d, int *y, unsigned *u, long long *q) {
      int t = threadIdx.x; short s;
      asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(y[t]) : "f"(x[t]));
      asm("cvt.rni.s32.f64 %0, %1;" : "=r"(y[8 + t]) : "d"(d[t]));
      asm("cvt.rzi.s16.f32 %0, %1;" : "=h"(s) : "f"(x[t]));
      y[16 + t] = s, y[24 + t] = __float2int_rz(x[t]), y[32 + t] = __double2int_rn(d[t]);
      y[40 + t] = __half2int_rz(__float2half(x[t]));
      asm("cvt.rmi.u32.f32 %0, %1;" : "=r"(u[t]) : "f"(x[t]));
      u[8 + t] = __float2uint_rd(x[t]), u[16 + t] = __double2uint_ru(d[t]);
      u[24 + t] = __nv_double2uint_ru(d[t]);
      asm("cvt.rpi.s64.f32 %0, %1;" : "=l"(q[t]) : "f"(x[t]));
      q[8 + t] = __float2ll_ru(x[t]), q[16 + t] = __double2ull_rz(d[t]);
    }"""
    signature = "x: f32[8], d: f64[8], out y: i32[6,8], out u: u32[4,8], out q: i64[3,8]"
    kernel = native(source, signature, {}, 1, 8)
    d = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -2.5, 70000.7])
    y, u, q = kernel.run((), [d.astype(np.float32), d])
    low, high, least, most = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
    single = [0, high, low, high, low, high, -2, 70000]
    double = [low, high, low, high, low, high, -2, 70001]
    short = [0, 32767, -32768, 32767, -32768, 32767, -2, 32767]
    np.testing.assert_array_equal(y, [single, double, short, single, double, [*single[:3], high, low, high, -2, high]])
    positive, top = 2**32 - 1, 2**31
    down = [0, positive, 0, positive, 0, 3 * 10**9, 0, 70000]
    np.testing.assert_array_equal(u, [down, down, *2 * [[top, *down[1:7], 70001]]])
    up = [least, most, least, most, least, 3 * 10**9, -2, 70001]
    np.testing.assert_array_equal(q, [up, up, [least, -1, 0, -1, 0, 3 * 10**9, 0, 70000]])


def test_shared_numbers_are_accessed_as_vectors() -> None:
    source = """(const float *x, float *y) {
      __shared__ float odd[3], s[8][4];
      int t = threadIdx.x;
      if (t < 3) odd[t] = x[t];
      *reinterpret_cast<float4 *>(&s[t][0]) = reinterpret_cast<const float4 *>(x)[t];
      __syncthreads();
      float4 v = *reinterpret_cast<float4 *>(&s[7 - t][0]);
      y[t] = v.x * v.y + v.z * odd[t % 3] + v.w;
    }"""
    kernel = native('extern "C" __global__ void k' + source, "x: f32[8,4], out y: f32[8]", {}, 1, 8)
    x = np.random.default_rng(1).uniform(0.5, 1, (8, 4)).astype(np.float32)
    v = x[::-1].T
    np.testing.assert_allclose(kernel.run((), [x])[0], v[0] * v[1] + v[2] * x[0, np.arange(8) % 3] + v[3], rtol=1e-6)
    agree(three_way(kernel, [x]), 1e-5, 1e-3)


def test_threads_that_part_before_a_barrier_are_an_error() -> None:
    import jax.numpy as jnp

    import jax_enzyme as je

    source = """extern "C" __global__ void parted(int n, const double *x, double *y) {
      if (x[threadIdx.x] > 0) { y[threadIdx.x] = 1; __syncthreads(); } else { __syncthreads(); y[threadIdx.x] = 2; }
    }"""
    kernel = je.kernel(source, "parted", "n: i32, x: f64[n], out y: f64[n]", lang="cuda", grid=1, block="n")
    np.testing.assert_array_equal(kernel(jnp.ones(4)), np.ones(4))
    np.testing.assert_array_equal(kernel(-jnp.ones(4)), 2 * np.ones(4))
    with pytest.raises(Exception, match="the same barrier"):
        kernel(jnp.array([1.0, -1.0, 1.0]))


def test_assertions_fail_the_call() -> None:
    import jax.numpy as jnp

    import jax_enzyme as je

    source = """#include <assert.h>
    extern "C" __global__ void checked(int n, const float *x, float *y) {
      int i = threadIdx.x;
      assert(x[i] > 0);
      y[i] = sqrtf(x[i]);
    }"""
    kernel = je.kernel(source, "checked", "n: i32, x: f32[n], out y: f32[n]", lang="cuda", grid=1, block="n")
    np.testing.assert_allclose(kernel(jnp.array([4.0, 9.0], jnp.float32)), [2, 3])
    with pytest.raises(Exception, match=r"x\[i\] > 0"):
        kernel(jnp.array([4.0, -9.0], jnp.float32))


def test_threads_that_have_left_do_not_vote() -> None:
    source = """(int n, const int *x, int *y) {
      int t = threadIdx.x;
      for (int k = n; k > 0; k /= 2) {
        if (t >= k) return;
        y[t] = 100 * __syncthreads_count(x[t] > 0) + !!__syncthreads_and(x[t] > 0);
      }
    }"""
    x = np.array([1, 1, 0, 1, 1, 0, 1, 1], np.int32)
    (y,) = run(source, "n: i32, x: i32[n], out y: i32[n]", {"n": 8}, 1, 8, x)
    last = {0: 1, 1: 2, 2: 4, 3: 4}
    expected = [(x[: last.get(t, 8)] > 0).sum() * 100 + (x[: last.get(t, 8)] > 0).all() for t in range(8)]
    np.testing.assert_array_equal(y, expected)


def test_local_variables_of_every_thread_are_aligned() -> None:
    """Those of different threads lie one behind the other."""
    program = load(
        """extern "C" __global__ void k(const double *x, double *y) {
          __align__(32) double a[5];
          for (int i = 0; i < 5; i++) a[(i + threadIdx.x) % 5] = x[i];
          __syncthreads();
          y[threadIdx.x] = a[threadIdx.x % 3];
        }""",
        "k",
        "cuda",
    )
    module = parse_ir(program.ir)
    machine = target_machine()
    lowered = lower(module, "k", Shape((1, 1, 1), (8, 1, 1), 0), {}, host().triple, str(machine.target_data))
    layout = DataLayout(lowered)
    arrays = [i for i in lowered.functions["k"].instructions() if isinstance(i, I.Alloca) and i.align == 32]
    assert arrays
    for array in arrays:
        assert isinstance(array.allocated_type, T.ArrayType) and array.allocated_type.count == 8
        assert layout.alloc_size(array.allocated_type.element) == 64


def test_shared_memory_in_a_template() -> None:
    source = """template <int N> __device__ double turned(double v, int t) {
      __shared__ double s[N];
      s[t] = v;
      __syncthreads();
      return s[N - 1 - t];
    }
    extern "C" __global__ void k(int n, const double *x, double *y) {
      y[threadIdx.x] = turned<8>(x[threadIdx.x], threadIdx.x) * x[threadIdx.x];
    }"""
    kernel = native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 8}, 1, 8)
    x = np.arange(8.0)
    np.testing.assert_allclose(kernel.run((), [x])[0], x * x[::-1])
    device.agree(device.three_way(kernel, [x]))


def test_dynamic_shared_memory_that_the_launch_does_not_give() -> None:
    source = "(double *y) { extern __shared__ double s[]; s[threadIdx.x] = y[0]; __syncthreads(); y[0] = s[3]; }"
    with pytest.raises(LoweringError, match="`s` is dynamic shared memory"):
        run(source, "inout y: f64[1]", {}, 1, 8, np.ones(1))


@pytest.mark.parametrize("threads", [64, 40])
def test_lanes_in_step_by_volatile_memory(threads: int) -> None:
    """Sums of a warp without a barrier, as they were written before CUDA 9."""
    body = """
    __device__ void last_warp(volatile double *s, int t) {
      s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
    }
    extern "C" __global__ void k(int n, const double *x, double *y) {
      __shared__ double s[96];
      volatile __shared__ double shift;
      int t = threadIdx.x;
      s[t] = t < n ? x[t] * x[t] : 0;
      if (t < 32) s[t + 64] = 0;
      if (t < 24 && n < 64) s[t + 40] = 0;
      __syncthreads();
      if (t < 32) {
        last_warp(s, t);
        if (t == 5) shift = x[3];
        double before = shift;
        if (t == 7) shift = x[2];
        y[t] = s[0] * before + shift;
      }
    }"""
    subject = native(body, "n: i32, x: f64[n], out y: f64[32]", {"n": threads}, 1, threads)
    x = np.random.default_rng(1).uniform(0.1, 1, threads)
    wanted = np.full(32, np.sum(x * x) * x[3] + x[2])
    np.testing.assert_allclose(subject.run((), [x])[0], wanted, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_lanes_in_step_where_some_alone_store() -> None:
    """Rows of a sparse matrix, each summed by eight lanes: two of them store its bounds, and all read these in time."""
    body = """
    extern "C" __global__ void k(int n, const int *starts, const double *a, const double *x, double *y) {
      __shared__ volatile double s[32 + 4];
      __shared__ volatile int ends[4][2];
      int lane = threadIdx.x & 7, group = threadIdx.x / 8;
      for (int row = group; row < n; row += 4) {
        if (lane < 2) ends[group][lane] = starts[row + lane];
        double sum = 0;
        for (int j = ends[group][0] + lane, end = ends[group][1]; j < end; j += 8) sum += a[j] * x[j] * x[j];
        s[threadIdx.x] = sum;
        s[threadIdx.x] = sum = sum + s[threadIdx.x + 4];
        s[threadIdx.x] = sum = sum + s[threadIdx.x + 2];
        s[threadIdx.x] = sum = sum + s[threadIdx.x + 1];
        if (lane == 0) y[row] = s[threadIdx.x];
      }
    }"""
    rng = np.random.default_rng(1)
    starts = np.cumsum([0, *rng.integers(0, 20, 10)], dtype=np.int32)
    a, x = rng.normal(size=(2, int(starts[-1])))
    signature = "n: i32, starts: i32[n+1], a: f64[m], x: f64[m], out y: f64[n]"
    subject = native(body, signature, {"n": 10, "m": len(x)}, 1, 32)
    wanted = np.array([np.sum(a[i:j] * x[i:j] ** 2) for i, j in pairwise(starts)])
    np.testing.assert_allclose(subject.run((), [starts, a, x])[0], wanted, rtol=1e-13, atol=1e-13)
    agree(three_way(subject, [starts, a, x]))


def test_lanes_in_step_that_go_around_what_others_do() -> None:
    """Those that go around wait at the end of the iteration; they are not a row ahead."""
    body = """
    extern "C" __global__ void k(int n, const double *x, double *y) {
      __shared__ volatile double s[32];
      int t = threadIdx.x, lane = t & 7;
      for (int row = t >> 3; row < n; row += 4) {
        double a = x[row];
        s[t] = a * (lane + 1);
        if (lane < 4) {
          s[t] = s[t] + s[t + 4];
          if (lane < 2) s[t] = s[t] + s[t + 2];
          if (lane == 0) y[row] = s[t] * s[t + 1] + a;
        }
      }
    }"""
    subject = native(body, "n: i32, x: f64[n], out y: f64[n]", {"n": 13}, 1, 32)
    x = np.random.default_rng(1).uniform(0.5, 1.5, 13)
    np.testing.assert_allclose(subject.run((), [x])[0], 16 * 20 * x * x + x, rtol=1e-14)
    agree(three_way(subject, [x]))


def test_lanes_in_step_that_leave_a_loop() -> None:
    """Those that leave wait behind the loop for the others, also where the way out comes first."""
    body = """
    extern "C" __global__ void k(int n, const double *x, double *y) {
      __shared__ volatile double s[32];
      int t = threadIdx.x, row = 0;
      double sum = 0;
      while (1) {
        s[t] = x[row] * (t + 1);
        if (s[t ^ 1] * (row + 1) < 60 && row < n - 1) {
          if (t < 8) {
            s[t] = s[t] + s[t + 8];
            if (t < 4) s[t] = s[t] + s[t + 4];
            sum += s[t];
          }
          row++;
        } else {
          break;
        }
      }
      s[t ^ 16] = 100 * t + sum;
      y[t] = s[t];
    }"""
    n, lanes = 9, np.arange(32)
    x = np.random.default_rng(0).uniform(0.5, 1.5, n)
    s, sums, here = np.zeros(32), np.zeros(32), np.ones(32, bool)
    for row in range(n):
        s = np.where(here, x[row] * (lanes + 1), s)
        here &= (s[lanes ^ 1] * (row + 1) < 60) & (row < n - 1)
        for step in (8, 4):
            added = s[:step] + s[step : 2 * step]
            s[:step] = np.where(here[:step], added, s[:step])
        sums[:8] += np.where(here[:8], s[:8], 0)
    subject = native(body, "n: i32, x: f64[n], out y: f64[32]", {"n": n}, 1, 32)
    np.testing.assert_allclose(subject.run((), [x])[0], (100 * lanes + sums)[lanes ^ 16], rtol=1e-14)
    agree(three_way(subject, [x]))


def test_lanes_in_step_that_read_behind_a_loop_what_others_store_in_it() -> None:
    body = """
    extern "C" __global__ void k(int n, const double *x, double *y) {
      __shared__ volatile double s[32];
      int t = threadIdx.x, left = t % 6 + 2;
      double a = x[t];
      do {
        s[t] = a * 0.5;
        a += s[t ^ 4];
      } while (--left > 0);
      y[t] = a + s[t ^ 8];
    }"""
    lanes = np.arange(32)
    x = np.random.default_rng(0).uniform(0.5, 1.5, 32)
    a, s = x, np.zeros(32)
    for turn in range(7):
        here = turn < lanes % 6 + 2
        s = np.where(here, a * 0.5, s)
        a = np.where(here, a + s[lanes ^ 4], a)
    subject = native(body, "n: i32, x: f64[n], out y: f64[n]", {"n": 32}, 1, 32)
    np.testing.assert_allclose(subject.run((), [x])[0], a + s[lanes ^ 8], rtol=1e-14)
    agree(three_way(subject, [x]))
