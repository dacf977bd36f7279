"""What threads do to each other, reversed: shuffles, barriers, atomics, shared memory; and what has no safe reverse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jax_enzyme.ad import device
from jax_enzyme.ad.device.lanes import Lanes
from jax_enzyme.ad.device.report import reverse_report
from jax_enzyme.ad.device.shuffles import Move, moves
from jax_enzyme.ad.device.warps import Warps
from jax_enzyme.analysis.flow import is_shuffle
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.frontends import load
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.ir.instructions import Alloca
from jax_enzyme.signature import Binding, parse, parse_launch
from jax_enzyme.signature.launch import Shape
from tests.cuda.device import agree, derived, on_cpu, results, three_way
from tests.support.engine import Native
from tests.support.native import KernelStatus


def native(
    source: str,
    signature: str,
    dims: dict[str, int],
    block: object,
    grid: object = 1,
    shared: int = 0,
    head: str = "",
) -> Native:
    parsed = parse(signature)
    program = load(f'{head}extern "C" __global__ void kernel{source}', "kernel", "cuda")
    return Native(replace(program, launch=parse_launch(parsed, grid, block, shared)), parsed, Binding.of(dims, {}))


def check(kernel: Native, *given: object) -> None:
    agree(three_way(kernel, [np.asarray(g) for g in given]))


def refusal(kernel: Native) -> str:
    base = kernel.buffers
    wanted = tuple(b.is_input and b.is_floating for b in base)
    with pytest.raises(DifferentiationError) as caught:
        derived(kernel, Vjp(wanted, tuple(b.is_result and b.is_floating for b in base)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "threads"),
    [
        ("__shfl_xor_sync(~0u, v, 5)", 32),
        ("__shfl_down_sync(~0u, v, 3, 8)", 32),
        ("__shfl_up_sync(~0u, v, 2)", 20),
        ("__shfl_up_sync(~0u, v, 1)", 32),
        ("__shfl_sync(~0u, v, 7)", 32),
        ("__shfl_sync(~0u, v, n[t])", 32),
    ],
)
def test_shuffles(call: str, threads: int) -> None:
    source = f"""(const double *x, const int *n, double *y) {{
      int t = threadIdx.x;
      double v = sin(x[t]);
      y[t] = {call} * v;
    }}"""
    rng = np.random.default_rng(0)
    lanes = rng.integers(0, threads, threads).astype(np.int32)
    kernel = native(source, f"x: f64[{threads}], n: i32[{threads}], out y: f64[{threads}]", {}, threads)
    check(kernel, rng.normal(size=threads), lanes)


def test_shuffles_in_a_loop_of_fixed_length() -> None:
    """The loop is unrolled: who read a lane is known in each iteration, and nobody asks all others."""
    source = """(const double *x, double *y) {
      double v = sin(x[threadIdx.x]);
      for (int o = 16; o > 0; o >>= 1) v = v * v + __shfl_down_sync(~0u, v, o);
      y[threadIdx.x] = v;
    }"""
    kernel = native(source, "x: f64[32], out y: f64[32]", {}, 32)
    check(kernel, 0.3 * np.random.default_rng(1).normal(size=32))
    reverse = derived(kernel, Vjp((True, False), (False, True)))
    assert not any(name.startswith("je.shuffle.back.") for name in reverse.module.functions)


def test_shared_memory_that_another_thread_overwrites() -> None:
    """No thread writes later to the place that it read, but another one does: the reverse sweep does not find it again,
    though the forward sweep has just run."""
    source = """(const double *x, double *y) {
      __shared__ double s[33];
      int t = threadIdx.x;
      s[t] = sin(x[t]);
      __syncthreads();
      double v = s[t];
      __syncthreads();
      s[t + 1] = exp(x[t]);
      __syncthreads();
      y[t] = v * v * s[t + 1];
    }"""
    check(native(source, "x: f64[32], out y: f64[32]", {}, 32), np.random.default_rng(2).normal(size=32))


def test_who_read_a_lane() -> None:
    assert moves([lane ^ 5 for lane in range(32)]) == (Move(5, True, 2**32 - 1),)
    down = moves([lane + 8 if lane < 24 else lane for lane in range(32)])
    assert down == (Move(-8, False, 0xFFFFFF00), Move(0, False, 0xFF000000))
    assert moves([3] * 32) is None


def test_numbers_of_lanes() -> None:
    source = "(const double *x, double *y) { int t = threadIdx.x; y[t] = __shfl_sync(~0u, x[t], (t / 2) ^ 1); }"
    kernel = native(source, "x: f64[32], out y: f64[32]", {}, 32)
    form = device.canonical(device_primal(kernel.program, kernel.signature, kernel.binding))
    body = form.module.functions[form.symbols[0]]
    (shuffle,) = [i for i in body.instructions() if is_shuffle(i)]
    assert Lanes(Shape((1, 1, 1), (32, 1, 1), 0)).by_lane(shuffle.operands[2]) == [(t // 2) ^ 1 for t in range(32)]


def test_shared_memory_that_is_used_again() -> None:
    """The same places hold one thing, then another; every barrier has its reverse."""
    source = """(int n, const double *x, double *y) {
      __shared__ double s[12];
      int t = threadIdx.x;
      s[t] = x[t] * x[t];
      __syncthreads();
      double a = s[(t + 1) % n] * s[t];
      __syncthreads();
      s[t] = sin(a);
      __syncthreads();
      for (int k = 1; k < 4; k++) a += s[(t + k) % n] * a;
      y[t] = a;
    }"""
    check(native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 12}, 12), np.random.default_rng(1).normal(size=12))


def test_a_loop_of_barriers_and_single_precision() -> None:
    source = """(int n, const float *x, float *y) {
      extern __shared__ float s[];
      int t = threadIdx.x;
      s[t] = x[blockIdx.x * n + t];
      for (int round = 0; round < 3; round++) {
        __syncthreads();
        float next = 0.5f * s[t] * s[t] + s[(t + 1) % n];
        __syncthreads();
        s[t] = next;
      }
      y[blockIdx.x * n + t] = s[t];
    }"""
    kernel = native(source, "n: i32, x: f32[2*n], out y: f32[2*n]", {"n": 5}, 5, 2, 20)
    x = np.random.default_rng(2).uniform(0.2, 0.8, 10).astype(np.float32)
    agree(three_way(kernel, [x], step=1e-2), tolerance=1e-5, difference_tolerance=1e-2)


def test_flags_of_threads_are_theirs() -> None:
    """Threads that go on differently often: which are done are bytes that eight lanes store under a mask."""
    source = """(int n, double a, const double *w, const double *x, double *y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      double v = x[i];
      for (int k = 0; k < i % 5; k++) v = sin(a * v * w[blockIdx.x]);
      y[i] = v;
    }"""
    kernel = native(source, "n: i32, a: f64, w: f64[3], x: f64[n], out y: f64[n]", {"n": 101}, 40, 3)
    r = np.random.default_rng(0)
    check(kernel, np.float64(0.7), r.normal(size=3), r.normal(size=101))


def test_early_exit_before_a_barrier() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ double s[16];
      int t = threadIdx.x;
      if (t >= n) return;
      s[t] = x[t] * x[t];
      __syncthreads();
      y[t] = s[t] * s[n - 1 - t];
    }"""
    check(native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 11}, 16), np.random.default_rng(3).normal(size=11))


def test_atomics_in_global_and_shared_memory() -> None:
    source = """(int n, const int *at, const double *x, double *y) {
      __shared__ double s[4];
      int t = threadIdx.x;
      if (t < 4) s[t] = 0;
      __syncthreads();
      if (t < n) atomicAdd(&s[at[t]], x[t] * x[t]);
      __syncthreads();
      if (t < n) atomicAdd(&y[at[n - 1 - t]], s[at[t]] * x[t]);
    }"""
    at = np.random.default_rng(4).integers(0, 4, 13).astype(np.int32)
    kernel = native(source, "n: i32, at: i32[n], x: f64[n], inout y: f64[4]", {"n": 13}, 16)
    check(kernel, at, np.random.default_rng(5).normal(size=13), np.zeros(4))


def test_local_arrays_and_loops_that_differ_between_threads() -> None:
    source = """(int n, const double *x, double *y) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        double w[3];
        for (int k = 0; k < 3; k++) w[k] = x[i] * (k + 1);
        double sum = 0;
        for (int k = 0; k <= i % 3; k++) sum += w[k] * w[2 - k] * sin(w[k]);
        y[i] = sum;
      }
    }"""
    kernel = native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 21}, 4, 2)
    check(kernel, np.random.default_rng(6).normal(size=21))


def test_sums_of_a_thread_are_in_registers() -> None:
    """Also where the loops over them are long for LLVM, and longer in tangents than in the kernel."""
    source = """(int n, const double *a, const double *b, double *y) {
      double sums[64] = {}, p[8], q[8];
      for (int k = 0; k < n; k++) {
        for (int i = 0; i < 8; i++) p[i] = a[32 * k + threadIdx.x / 4 * 8 + i];
        for (int i = 0; i < 8; i++) q[i] = b[32 * k + threadIdx.x % 4 * 8 + i];
        for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) sums[8 * i + j] += p[i] * q[j];
      }
      for (int i = 0; i < 64; i++) y[64 * threadIdx.x + i] = sums[i];
    }"""
    kernel = native(source, "n: i32, a: f64[n,32], b: f64[n,32], out y: f64[16,8,8]", {"n": 3}, 16)
    tangents = derived(kernel, Jvp(tuple(b.is_input and b.is_floating for b in kernel.buffers)))
    code = tangents.module.functions[tangents.symbols[0]]
    assert not any(isinstance(i, Alloca) for i in code.instructions())


def test_a_thread_that_leaves_after_it_wrote_what_others_read() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ double s[16];
      int t = threadIdx.x;
      s[t] = x[t] * x[t];
      if (t >= n - 2) return;
      __syncthreads();
      y[t] = s[t] * s[t + 2];
    }"""
    text = refusal(native(source, "n: i32, x: f64[n], inout y: f64[n]", {"n": 16}, 16))
    assert "leaves" in text and "kernel.cu:4" in text and "barriers outside" in text


def test_blocks_that_wait_for_each_other() -> None:
    source = """(int n, const double *x, double *part, double *y) {
      int t = blockIdx.x;
      part[t] = x[t] * x[t];
      __threadfence();
      if (t == n - 1) for (int k = 0; k < n; k++) *y += part[k];
    }"""
    text = refusal(native(source, "n: i32, x: f64[n], inout part: f64[n], inout y: f64[]", {"n": 3}, 1, 3))
    assert "blocks pass on numbers through `part`" in text and "two kernels" in text


def test_what_an_atomic_returns() -> None:
    source = "(int n, const double *x, double *y, double *z) { z[threadIdx.x] = atomicAdd(y, x[threadIdx.x]); }"
    text = refusal(native(source, "n: i32, x: f64[n], inout y: f64[], out z: f64[n]", {"n": 4}, 4))
    assert "order of threads" in text


def test_numbers_in_a_device_variable() -> None:
    source = """(int n, const double *x, double *y) {
      state[threadIdx.x] = x[threadIdx.x];
      y[threadIdx.x] = state[n - 1];
    }"""
    parsed = parse("n: i32, x: f64[n], out y: f64[n]")
    program = load(f'__device__ double state[8];\nextern "C" __global__ void kernel{source}', "kernel", "cuda")
    program = replace(program, launch=parse_launch(parsed, 1, "n", 0))
    text = refusal(Native(program, parsed, Binding.of({"n": 4}, {})))
    assert "`state`" in text and "parameter" in text


def test_how_cotangents_are_added() -> None:
    """Plainly where each thread has places of its own, atomically otherwise; and why."""
    source = """(int n, double a, const int *at, const double *x, const double *u, const double *v, double *y) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[2 * i] * x[2 * i + 1] * u[at[i]] * v[i] * v[i + 1];
    }"""
    signature = "n: i32, a: f64, at: i32[n], x: f64[2*n], u: f64[n], v: f64[n+1], out y: f64[n]"
    kernel = native(source, signature, {"n": 30}, 4, 2)
    base = kernel.buffers
    step = Vjp(tuple(b.is_input and b.is_floating for b in base), tuple(b.is_result for b in base))
    form = device.canonical(device_primal(kernel.program, kernel.signature, kernel.binding))
    ways = {a.memory: (a.way, a.why) for a in reverse_report(form, step).accumulations}
    assert ways["`x`"] == ("no", "every place is read once")
    assert ways["`a`"][0] == "warp" and "one place for a block" in ways["`a`"][1]
    assert ways["`u`"] == ("atomic", "an index is data, or not linear in the thread's number")
    assert ways["`v`"] == ("atomic", "the places of neighbouring threads overlap")
    rng = np.random.default_rng(7)
    at = rng.integers(0, 30, 30).astype(np.int32)
    check(kernel, np.float64(0.7), at, rng.normal(size=60), rng.normal(size=30), rng.normal(size=31))


def test_shadows_that_static_memory_has_no_room_for() -> None:
    source = """(int n, const double *x, double *y) {
      __shared__ double s[4000];
      extern __shared__ double d[];
      int t = threadIdx.x;
      for (int k = t; k < 4000; k += n) s[k] = x[t] * k;
      d[t] = x[t];
      __syncthreads();
      y[t] = s[3999 - t] * d[n - 1 - t];
    }"""
    kernel = native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 8}, 8, 1, 64)
    reverse = derived(kernel, Vjp((True, False), (False, True)))
    assert reverse.shape.shared == 64 + 64 + 32000
    check(kernel, np.random.default_rng(8).normal(size=8))


def test_warps_and_barriers_together() -> None:
    """A sum over a warp, the warps' sums through shared memory, and what all threads make of it."""
    source = """(int n, const double *x, double *y) {
      __shared__ double part[2];
      int t = threadIdx.x;
      double v = x[t] * x[t];
      for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
      if (t % 32 == 0) part[t / 32] = v;
      __syncthreads();
      y[t] = x[t] / (part[0] * part[1]);
    }"""
    kernel = native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": 64}, 64)
    check(kernel, np.random.default_rng(9).normal(size=64))


def test_warps_that_have_no_row_leave() -> None:
    """All lanes of a warp agree on whether there is a row for them, in every block."""
    source = """(int rows, const int *start, const int *at, const double *value, const double *x, double *y) {
      int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread / 32, lane = thread & 31;
      if (row >= rows) return;
      double sum = 0;
      for (int j = start[row] + lane; j < start[row + 1]; j += 32) sum += value[j] * x[at[j]];
      for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
      if (lane == 0) y[row] = sum * sum;
    }"""
    signature = "rows: i32, start: i32[rows+1], at: i32[60], value: f64[60], x: f64[7], out y: f64[rows]"
    rng = np.random.default_rng(9)
    kernel = native(source, signature, {"rows": 3}, 64, 2)
    start, at = np.array([0, 2, 40, 60], np.int32), rng.integers(0, 7, 60).astype(np.int32)
    check(kernel, start, at, rng.normal(size=60), rng.normal(size=7))


def test_what_lanes_agree_on() -> None:
    source = """(int n, const int *x, int *y) {
      int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread / 32;
      y[0] = row < n;
      y[1] = thread < 96;
      y[2] = thread <= 95;
      y[3] = x[row] > 5;
      y[4] = thread < 97;
      y[5] = (thread & 63) == 3;
      y[6] = x[thread] > 5;
    }"""
    kernel = native(source, "n: i32, x: i32[128], inout y: i32[7]", {"n": 3}, 64, 2)
    form = device.canonical(device_primal(kernel.program, kernel.signature, kernel.binding))
    body = form.module.functions[form.symbols[0]]
    warps = Warps(Lanes(form.shape), lambda load: True)
    stored = [i.operands[0] for i in body.instructions() if i.opcode == "store"]
    assert [warps.agree(v) for v in stored] == [True, True, True, True, False, False, False]


def test_a_loop_of_barriers_with_a_guard_in_it_and_behind_it() -> None:
    """All threads go round the loop together, those that have work to do and those that have none."""
    source = """(int n, const double *u, double *v) {
      __shared__ double s[6];
      int i = blockIdx.x * 4 + threadIdx.x, t = threadIdx.x + 1, at = min(i, n - 1);
      bool in = i < n;
      double now = u[at], next = u[n + at];
      if (in) v[i] = now;
      for (int k = 1; k < 4; k++) {
        double before = now;
        now = next;
        next = u[(k + 1) * n + at];
        __syncthreads();
        s[t] = now;
        if (t == 1) s[0] = u[k * n + max(i - 1, 0)];
        if (t == 4) s[5] = u[k * n + min(i + 1, n - 1)];
        __syncthreads();
        if (in) v[k * n + i] = i == 0 || i == n - 1 ? now : (before + next + s[t - 1] * s[t + 1]) * now;
      }
      if (in) v[4 * n + i] = next;
    }"""
    kernel = native(source, "n: i32, u: f64[5,n], out v: f64[5,n]", {"n": 6}, 4, 2)
    u = np.random.default_rng(10).normal(size=(5, 6))
    v = u.copy()
    v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] * u[1:-1, 2:]) * u[1:-1, 1:-1]
    np.testing.assert_allclose(kernel.run((), [u])[0], v, rtol=1e-13)
    check(kernel, u)


@pytest.mark.parametrize(
    ("memory", "copy"),
    [
        ("__shared__ float4 s[8];", "s[t] = x[t];"),
        ("__shared__ float4 s[8];", "__pipeline_memcpy_async(s + t, x + t, 16);"),
        ("extern __shared__ char all[]; float4 *s = (float4 *)all;", "__pipeline_memcpy_async(s + t, x + t, 16);"),
    ],
)
def test_vectors_between_global_and_shared_memory(memory: str, copy: str) -> None:
    """Copies of structures, and of so many bytes, are loads and stores of numbers, with the alignment of the whole."""
    source = f"""(const float4 *x, float4 *y) {{
      {memory}
      int t = threadIdx.x;
      {copy}
      __syncthreads();
      float4 a = s[7 - t], b = s[t];
      y[t] = make_float4(a.x * b.y, a.y * b.z, a.z * b.w, a.w * b.x);
    }}"""
    shared = 128 * ("extern" in memory)
    kernel = native(source, "x: f32[8,4], out y: f32[8,4]", {}, 8, 1, shared, "#include <cuda_pipeline.h>\n")
    x = np.random.default_rng(11).normal(size=(8, 4)).astype(np.float32)
    agree(three_way(kernel, [x], step=1e-2), tolerance=1e-5, difference_tolerance=1e-2)


def test_additions_by_comparing_and_exchanging() -> None:
    source = """(int n, const int *at, const double *x, double *y) {
      int t = threadIdx.x;
      if (t >= n) return;
      unsigned long long *place = (unsigned long long *)&y[at[t]], old = *place, assumed;
      do {
        assumed = old;
        old = atomicCAS(place, assumed, __double_as_longlong(sin(x[t]) + __longlong_as_double(assumed)));
      } while (assumed != old);
    }"""
    at = np.random.default_rng(12).integers(0, 3, 13).astype(np.int32)
    kernel = native(source, "n: i32, at: i32[n], x: f64[n], inout y: f64[3]", {"n": 13}, 16)
    check(kernel, at, np.random.default_rng(13).normal(size=13), np.zeros(3))


def test_halves_of_numbers_between_lanes() -> None:
    source = """(const double *x, double *y) {
      int t = threadIdx.x;
      double v = sin(x[t]);
      int low = __double2loint(v), high = __double2hiint(v);
      low = __shfl_xor_sync(~0u, low, 3);
      high = __shfl_xor_sync(~0u, high, 3);
      y[t] = __hiloint2double(high, low) * x[t];
    }"""
    check(native(source, "x: f64[32], out y: f64[32]", {}, 32), np.random.default_rng(14).normal(size=32))


def test_barriers_of_a_part_of_the_block() -> None:
    source = """(const double *x, double *y) {
      __shared__ double s[64];
      s[threadIdx.x] = sin(x[threadIdx.x]);
      __nvvm_barrier_sync_cnt(1, 64);
      y[threadIdx.x] = s[63 - threadIdx.x] * s[63 - threadIdx.x];
    }"""
    assert "llvm.nvvm.barrier.cta.sync.count" in refusal(native(source, "x: f64[64], out y: f64[64]", {}, 64))


def test_the_stand_in_fails_where_a_device_hangs() -> None:
    """Lanes that a mask names and that never come; not those that are at their end. Shared memory holds no zeros."""

    def run(text: str) -> np.ndarray:
        kernel = native(f"(const double *x, double *y) {{ {text} }}", "x: f64[32], out y: f64[32]", {}, 32)
        (found,) = results(on_cpu(derived(kernel)), [np.ones(32)]).values()
        return found

    with pytest.raises(KernelStatus):
        run("int t = threadIdx.x; if (t < 16) y[t] = __shfl_xor_sync(~0u, x[t], 1); __syncthreads(); y[t] += y[t ^ 1];")
    run("int t = threadIdx.x; if (t < 16) y[t] = __shfl_xor_sync(0xffffu, x[t], 1);")
    run("int t = threadIdx.x; if (t >= 16) return; y[t] = __shfl_xor_sync(~0u, x[t], 1);")
    assert np.isnan(run("__shared__ double s[32]; y[threadIdx.x] = s[threadIdx.x] * x[threadIdx.x];")).all()
