"""Loops of CUDA threads on the CPU: threads are the innermost loop where the kernel was written for that, and only
those that do something run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.canonical import with_regular_loops
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir.arrays import Augmented
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.cuda.flags import name_ways
from jax_enzyme.transform.shared_loops import share_loops


@dataclass(frozen=True)
class Ordered:
    """A kernel, what it computes, and how often its innermost loops run."""

    name: str
    source: str
    signature: str
    grid: object
    block: object
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    innermost: set[int]

    @property
    def kernel(self) -> je.Kernel:
        return je.kernel(self.source, self.name, self.signature, lang="cuda", grid=self.grid, block=self.block)


_R = np.random.default_rng(11)
_A, _B = _R.normal(size=(21, 19)), _R.normal(size=(19, 23))
_X = _R.normal(size=77)
_U = _R.normal(size=(12, 11))
_Z = 0.3 * _R.normal(size=416)
_W = _R.normal(size=(2, 332))


def _march(u: np.ndarray) -> np.ndarray:
    v = np.zeros_like(u)
    for x in range(1, u.shape[1]):
        state = u[0, x]
        for z in range(1, u.shape[0]):
            state = np.sin(state) + u[z, x] * u[z, x - 1]
            v[z, x] = state
    return v


def _levels(s: np.ndarray) -> np.ndarray:
    d = np.zeros(64)
    for n in (32, 16, 8, 4, 2, 1):
        u, v = s[: 2 * n].reshape(n, 2).T
        a = u + v * v
        d[n : 2 * n] = np.sin(u) * np.exp(v) - np.cos(a) * np.tanh(a) + a / (1 + a * a)
        s = d[n : 2 * n] / 2
    return d[1:]


CASES = (
    Ordered(
        "product", """
extern "C" __global__ void product(int m, int k, int n, const double *a, const double *b, double *c) {
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
  if (x >= n || y >= m) return;
  double sum = 0;
  for (int p = 0; p < k; p++) sum += a[y * k + p] * b[p * n + x];
  c[y * n + x] = sum;
}""",
        "m: i32, k: i32, n: i32, a: f64[m,k], b: f64[k,n], out c: f64[m,n]", ("(n+7)//8", "(m+3)//4"), (8, 4),
        (_A, _B), _A @ _B, {8},
    ),
    # Rows lie along y, and so does the innermost loop, over all threads with something to do.
    Ordered(
        "outer", """
extern "C" __global__ void outer(int m, int n, const double *a, const double *b, double *c) {
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x >= m || y >= n) return;
  c[x * n + y] = a[x] * b[y];
}""",
        "m: i32, n: i32, a: f64[m], b: f64[n], out c: f64[m,n]", ("(m+7)//8", "(n+15)//16"), (8, 16),
        (_X, _A[:, 0]), np.outer(_X, _A[:, 0]), {21},
    ),
    # Threads run 3 or 4 rounds, some none at all; what they carry is used behind the loop, and behind a barrier.
    Ordered(
        "strided", """
extern "C" __global__ void strided(int n, const double *x, double *y) {
  __shared__ double s[16];
  int t = threadIdx.x;
  double sum = 1, last = 0;
  for (int i = t; i < n - 72; i += 16) { sum *= 1 + x[i]; last = x[i]; }
  for (int i = t; i < n; i += 16) { sum += x[i] * x[i]; last = x[i]; }
  s[t] = sum * last;
  __syncthreads();
  y[t] = s[15 - t];
}""",
        "n: i32, x: f64[n], out y: f64[16]", 1, 16, (_X,),
        np.array([
            ((1 + (_X[t] if t < 5 else 0)) + np.sum(_X[t::16] ** 2)) * _X[t::16][-1] for t in range(16)
        ])[::-1],
        {5, 16},  # and in the first loop only 5 threads do anything
    ),
    Ordered(
        "march", """
extern "C" __global__ void march(int h, int w, const double *u, double *v) {
  int x = threadIdx.x;
  if (x <= 0 || x >= w) return;
  const double *p = u + x;
  double state = *p;
  for (int z = 1; z < h; z++) {
    p += w;
    state = sin(state) + p[0] * p[-1];
    v[z * w + x] = state;
  }
}""",
        "h: i32, w: i32, u: f64[h,w], out v: f64[h,w]", 1, 32, (_U,), _march(_U), {32},
    ),
    # How often a thread runs its loop is its own matter; what ends it would not end it again if it went on.
    Ordered(
        "uneven", """
extern "C" __global__ void uneven(const double *x, double *y) {
  int t = threadIdx.x;
  double sum = 0;
  for (int k = 0; k != 9 + t % 5; k++) sum += sum * x[k * 32 + t] + x[k * 32 + t];
  y[t] = sum;
}""",
        "x: f64[416], out y: f64[32]", 1, 32, (_Z,),
        np.array([np.prod(1 + _Z.reshape(13, 32)[: 9 + t % 5, t]) - 1 for t in range(32)]), {32},
    ),
    # Every thread walks along a row of its own: then the iterations are the inner loop.
    Ordered(
        "row", """
extern "C" __global__ void row(int m, int k, const double *a, double *y) {
  int t = blockIdx.x * 7 + threadIdx.x;
  double sum = 0;
  for (int p = 0; p < k; p++) sum += a[t * k + p];
  y[t] = sum;
}""",
        "m: i32, k: i32, a: f64[m,k], out y: f64[m]", 3, 7, (_A,), _A.sum(1), {19},
    ),
    Ordered(
        "tree", """
extern "C" __global__ void tree(const double *x, double *y) {
  __shared__ double s[64];
  int t = threadIdx.x;
  s[t] = x[t] * x[t];
  __syncthreads();
  for (int h = 32; h > 8; h /= 2) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  if (t == 0) for (int i = 0; i < 16; i++) y[i] = s[i];
}""",
        "x: f64[64], out y: f64[16]", 1, 64, (_X[:64],), (_X[:64] ** 2).reshape(4, 16)[[0, 2]].sum(0)
        + (_X[:64] ** 2).reshape(4, 16)[[1, 3]].sum(0), {64, 32, 16},
    ),
    # Of each level those threads alone that do anything, however much that is.
    Ordered(
        "levels", """
extern "C" __global__ void levels(const double *x, double *y) {
  __shared__ double s[64], d[64];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int n = 32; n >= 1; n >>= 1) {
    if (t < n) {
      double u = s[2 * t], v = s[2 * t + 1], a = u + v * v;
      d[n + t] = sin(u) * exp(v) - cos(a) * tanh(a) + a / (1 + a * a);
    }
    __syncthreads();
    if (t < n) s[t] = d[n + t] * 0.5;
    __syncthreads();
  }
  if (t >= 1) y[t - 1] = d[t];
}""",
        "x: f64[64], out y: f64[63]", 1, 64, (0.3 * _X[:64],), _levels(0.3 * _X[:64]), {32, 16, 8},
    ),
    # What a thread computes of the next one's number is no reason to count it in each arm; the last one is made apart.
    Ordered(
        "next", """
extern "C" __global__ void next(const double *x, double *y) {
  __shared__ double s[64];
  int t = threadIdx.x;
  s[t] = x[t] * x[t];
  __syncthreads();
  if (t < 40) y[t] = s[t] * s[t == 39 ? 39 : t + 1];
}""",
        "x: f64[64], out y: f64[40]", 1, 64, (_X[:64],), (_X[:40] * np.append(_X[1:40], _X[39])) ** 2, {39},
    ),
    # Of the threads that go past the first branch, 7 alone takes the second: LLVM writes 7 for its place there.
    Ordered(
        "places", """
extern "C" __global__ void places(const double *x, const double *w, double *y) {
  __shared__ double a[7], b[8], g[32];
  int t = threadIdx.x, k = blockIdx.x;
  if (t < 7) a[t] = x[k * 7 + t];
  if (t < 8) b[t] = x[k * 8 + t];
  __syncthreads();
  double sum = x[t];
  for (int i = 0; i < 7; i++) sum += w[t * 7 + i] * a[i];
  for (int i = 0; i < 8; i++) sum *= b[i];
  g[t] = sum;
  __syncthreads();
  if (t < 8) y[k * 8 + t] = g[t] * g[8 + t] + g[24 + t];
}""",
        "x: f64[77], w: f64[224], out y: f64[16]", 2, 32, (_X, _A.ravel()[:224]),
        np.concatenate([
            (g := (_X[:32] + _A.ravel()[:224].reshape(32, 7) @ _X[7 * k :][:7]) * np.prod(_X[8 * k :][:8]))[:8]
            * g[8:16] + g[24:] for k in range(2)
        ]), {32},
    ),
    # Lanes of a warp are the innermost loop too, in one that they run 10 or 11 times and in one that all run as often.
    Ordered(
        "lanes", """
extern "C" __global__ void lanes(int n, const double *x, double *y) {
  const double *row = x + threadIdx.y * n;
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) sum += row[i] * row[i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  for (int i = threadIdx.x; i < 320; i += 32) y[threadIdx.y * 320 + i] = sum * row[i];
}""",
        "n: i32, x: f64[2,n], out y: f64[2,320]", 1, (32, 2), (_W,),
        np.sum(_W * _W, 1, keepdims=True) * _W[:, :320], {32},
    ),
)  # fmt: skip


@pytest.mark.parametrize("more", ["", "if (__shfl_xor_sync(~0u, x[t], 1) > 9) z[0] = 0;"], ids=["block", "warps"])
def test_additions_in_loops_are_those_of_all_threads(more: str) -> None:
    """What a thread adds to in memory it does not keep in a register while the others take their turns."""
    kernel = je.kernel(
        """extern "C" __global__ void add(const double *x, double *y, double *z) {
          int t = threadIdx.x;
          MORE
          for (int k = t % 3; k < t % 4; k++) atomicAdd(&z[0], x[t]);
          for (int k = t; k < 400; k += 40) z[1 + t] = atomicAdd(&y[0], x[k % 40] * x[t]) < -1e9;
        }""".replace("MORE", more),
        "add", "x: f64[40], out y: f64[1], out z: f64[41]", lang="cuda", grid=1, block=40,
    )  # fmt: skip
    x, t = _X[:40], np.arange(40)
    y, z = kernel(x)
    np.testing.assert_allclose(y[0], 10 * np.sum(x * x), rtol=1e-12)
    np.testing.assert_allclose(z[0], np.sum(np.maximum(0, t % 4 - t % 3) * x), rtol=1e-12)
    je.check_grads(kernel, (x,))


def _innermost(kernel: je.Kernel, inputs: tuple[np.ndarray, ...]) -> set[int]:
    """How often the innermost loops run."""
    base = kernel.specialise(kernel.binding([jnp.asarray(a) for a in inputs])).base
    regular = derived.regular(base.program, base.signature, base.binding, base.options)
    function = regular.module.functions[regular.symbol]
    cfg = Cfg(function)
    loops = Loops(cfg, Dominators(cfg))
    facts = Recurrences(function, loops, regular.module)
    counts = [facts.trip_count(loop).maximum for loop in loops if not loop.children]
    return {1 + count for count in counts if count is not None}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_threads_are_the_innermost_loop(case: Ordered) -> None:
    kernel = case.kernel
    np.testing.assert_allclose(kernel(*case.inputs), case.expected, rtol=1e-12)
    je.check_grads(kernel, case.inputs)
    assert _innermost(kernel, case.inputs) == case.innermost


def test_shifts_and_butterflies_read_neighbours() -> None:
    """At a fixed distance, by an index that does not wrap around."""
    kernel = je.kernel(
        """extern "C" __global__ void moves(const double *x, double *y) {
          double v = x[threadIdx.x];
          v = sin(v) * __shfl_down_sync(~0u, v, 3);
          v = sin(v) * __shfl_up_sync(~0u, v, 2, 8);
          v = sin(v) * __shfl_xor_sync(~0u, v, 8);
          y[threadIdx.x] = v;
        }""",
        "moves", "x: f64[64], out y: f64[64]", lang="cuda", grid=1, block=64,
    )  # fmt: skip
    x, lane = _X[:64], np.arange(64)
    v = np.sin(x) * x[np.where(lane % 32 < 29, lane + 3, lane) % 64]
    v = np.sin(v) * v[np.where(lane % 8 >= 2, lane - 2, lane)]
    np.testing.assert_allclose(kernel(x), np.sin(v) * v[lane ^ 8], rtol=1e-12)
    je.check_grads(kernel, (x,))
    base = kernel.specialise(kernel.binding([jnp.asarray(x)])).base
    module = derived.regular(base.program, base.signature, base.binding, base.options).module
    places = [
        o for i in module.functions["je.primal"].instructions() if i.opcode == "getelementptr" for o in i.operands
    ]
    assert not {"and", "xor", "select"} & {o.opcode for o in places if isinstance(o, Instruction)}


_BRANCHES = """
extern "C" __global__ void branches(int n, const float *a, const float *b, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float v = a[i + j * n], w = b[i + j * n], r = sqrtf(v * v + w * w + 1), q = v / r;
    if (w > 0.5f) s += q * q * r;
    else if (w < -0.5f) s += v * q;
    else s += sqrtf(r + q * q) / (r + 2);
  }
  y[i] = s * s;
}"""


def test_a_sweep_is_vectorised_whose_tape_holds_numbers_and_branches() -> None:
    signature = "n: i32, a: f32[4,n], b: f32[4,n], out y: f32[n]"
    kernel = je.kernel(_BRANCHES, "branches", signature, lang="cuda", grid="n//64", block=64)
    inputs = [jnp.asarray(_R.normal(size=(4, 640)), np.float32) for _ in range(2)]
    base = kernel.specialise(kernel.binding(inputs)).base
    step = Augmented((True, True, False), (False, False, True))
    sweep = derived.derived(base.program, base.signature, base.binding, (step,), base.options)
    shared, said = share_loops(with_regular_loops(sweep), [10], 1)
    assert said == ("in 10 parts on several threads",)
    assert "llvm.loop.isvectorized" in optimised_text(entry_module(shared))


def test_a_note_of_the_way_is_asked_again() -> None:
    """Each of three steps is for fewer threads, and what they found is theirs behind a barrier alone."""
    kernel = je.kernel(
        """extern "C" __global__ void cone(int n, int first, const double *x, double *y) {
          __shared__ double now[64], next[64];
          int t = threadIdx.x, i = t - first;
          bool in = i >= 0 && i < n, done = false;
          now[t] = in ? x[i] : 1;
          __syncthreads();
          for (int k = 1; k < 4; k++) {
            done = false;
            if (t >= k && t < 64 - k) if (in) { done = true; next[t] = now[t - 1] * now[t + 1] + x[i]; }
            __syncthreads();
            if (done) now[t] = next[t];
            __syncthreads();
          }
          if (done) y[i] = now[t];
        }""",
        "cone", "n: i32, first: i32, x: f64[n], inout y: f64[n]", lang="cuda", grid=1, block=64,
    )  # fmt: skip
    x, y, first = 0.3 * _X[:58], _X[:58], 4
    now, done, inside = np.ones(64), np.ones(64, bool), (np.arange(64) >= first) & (np.arange(64) < first + 58)
    now[inside] = x
    for k in range(1, 4):
        done = inside & (np.arange(64) >= k) & (np.arange(64) < 64 - k)
        near = np.roll(now, 1) * np.roll(now, -1)
        near[inside] += x
        now = np.where(done, near, now)
    np.testing.assert_allclose(kernel(first, x, y), np.where(done[inside], now[inside], y), rtol=1e-12)
    je.check_grads(lambda x, y: kernel(first, x, y), (x, y))
    base = kernel.specialise(kernel.binding([jnp.asarray(first), jnp.asarray(x), jnp.asarray(y)])).base
    function = derived.regular(base.program, base.signature, base.binding, base.options)
    locals_ = [i for i in function.module.functions[function.symbol].instructions() if i.opcode == "alloca"]
    assert len(locals_) == 2


def test_which_iteration_it_is_is_no_way() -> None:
    module = parse("""
define void @f(i1 %a, i32 %n, ptr %p) {
entry:
  br i1 %a, label %loop, label %end
loop:
  %first = phi i1 [ true, %entry ], [ false, %join ]
  switch i32 %n, label %join [ i32 7, label %seven ]
seven:
  br label %join
join:
  %was = phi i1 [ true, %seven ], [ false, %loop ]
  store i1 %was, ptr %p
  br i1 %first, label %loop, label %end
end:
  %any = phi i1 [ true, %join ], [ false, %entry ]
  store i1 %any, ptr %p
  ret void
}""")
    name_ways(module.functions["f"])
    left = [i for i in module.functions["f"].instructions() if i.opcode == "phi"]
    assert len(left) == 3
