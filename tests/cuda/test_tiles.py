"""Tiles in shared memory that are copies of inputs: read at the source where that is right, on the CPU and, in reverse
sweeps, on devices."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.ir.instructions import Alloca
from jax_enzyme.xla_ffi import gpu
from tests.cuda.device import agree, three_way
from tests.support.engine import Native, by_turns


@dataclass(frozen=True)
class Tiled:
    """A kernel and what it computes; `tile`: the type of its tile, where nothing else has that type, and whether the
    tile stays. `taped`: bytes that a thread on a device keeps of tiles for its reverse sweep."""

    name: str
    source: str
    signature: str
    grid: object
    block: object
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray
    tile: tuple[str, bool] | None
    shared: int = 0
    taped: int = 0


_R = np.random.default_rng(17)
_A, _B = _R.normal(size=(9, 10)), _R.normal(size=(10, 7))
_P = _R.normal(size=(8, 2))
_X = _R.normal(size=16)
_Y = _R.normal(size=1024)
_T = _R.normal(size=(40, 8))
_C, _D = _R.normal(size=(16, 8)), _R.normal(size=(8, 16))


def _rounds(x: np.ndarray) -> np.ndarray:
    """Every thread adds what its neighbour stored in the round before."""
    y, s = np.zeros(4), np.zeros(4)
    for p in range(4):
        y += np.roll(s, -1)
        s = x[4 * p : 4 * p + 4].copy()
    return y


def _swizzled(x: np.ndarray) -> np.ndarray:
    i, y = np.arange(8), np.zeros(8)
    for p in range(2):
        s = np.zeros(16)
        s[i ^ i >> 1], s[8:] = x[8 * p + i], x[8 * (1 - p) + 7 - i]
        t = np.concatenate([x[8 * p + i], x[i * i % 5 + p]])
        y += [sum((k + q) * s[(q + k) % 16] * t[q] for q in range(16)) for k in i]
    return y


def _over(x: np.ndarray) -> np.ndarray:
    """Of 12 iterations, the second store counts in the first half of the places, the first in the others."""
    q = np.arange(48)
    turned = 44 + 2 * (q % 4) - q
    s = np.where(q < 24, x[turned] + x[turned + 1], x[q])
    return np.array([np.sum(s * s * (q + t)) for t in range(4)])


def _before(x: np.ndarray) -> np.ndarray:
    y, s = np.zeros(4), np.zeros(48)
    for p in range(2):
        y += np.sum(s * s)
        for i in range(0, 48, 4):
            s[i : i + 4] = x[i + p : i + p + 4]
            y += s[44 - i : 48 - i] * x[i : i + 4]
    return y


def _fewer(x: np.ndarray) -> np.ndarray:
    q = np.arange(48)
    rounds = x[:48], np.where(q < 42, x[1:], x[:48])
    return np.array([np.sum(sum(s * s for s in rounds) * (q + t)) for t in range(4)])


CASES = (
    Tiled(
        "ragged", """
extern "C" __global__ void ragged(int m, int k, int n, const double *a, const double *b, double *c) {
  __shared__ double s[4][4], t[4][5];
  int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 4 + y, j = blockIdx.x * 4 + x;
  double sum = 0;
  for (int p = 0; p < k; p += 4) {
    s[y][x] = i < m && p + x < k ? a[i * k + p + x] : 0.0;
    t[y][x] = p + y < k && j < n ? 2 * b[(p + y) * n + j] : 0.0;
    __syncthreads();
    for (int q = 0; q < 4; q++) sum += s[y][q] * t[q][x];
    __syncthreads();
  }
  if (i < m && j < n) c[i * n + j] = sum;
}""",
        "m: i32, k: i32, n: i32, a: f64[m,k], b: f64[k,n], out c: f64[m,n]", ("(n+3)//4", "(m+3)//4"), (4, 4),
        (_A, _B), 2 * _A @ _B, ("[4 x [4 x double]]", False),
    ),
    Tiled(
        "fields", """
struct Point { double x, m; };
extern "C" __global__ void fields(int n, const Point *p, double *a) {
  extern __shared__ Point s[];
  int i = blockIdx.x * 4 + threadIdx.x;
  double me = p[i].x, sum = 0;
  for (int b = 0; b < n; b += 4) {
    s[threadIdx.x] = p[b + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 4; j++) sum += s[j].m * (s[j].x - me) * (s[j].x - me);
    __syncthreads();
  }
  a[i] = sum;
}""",
        "n: i32, p: f64[n,2], out a: f64[n]", "n//4", 4, (_P,),
        np.array([np.sum(_P[:, 1] * (_P[:, 0] - x) ** 2) for x in _P[:, 0]]), None, 64, 16,
    ),
    # What is read was stored in the round before.
    Tiled(
        "late", """
extern "C" __global__ void late(const double *x, double *y) {
  __shared__ double s[4];
  int t = threadIdx.x;
  double sum = 0;
  s[t] = 0;
  for (int p = 0; p < 4; p++) {
    __syncthreads();
    sum += s[(t + 1) % 4];
    __syncthreads();
    s[t] = x[4 * p + t];
  }
  y[t] = sum;
}""",
        "x: f64[16], out y: f64[4]", 1, 4, (_X,), _rounds(_X), None,
    ),
    # Half of the threads store: the others' places hold what came before.
    Tiled(
        "some", """
extern "C" __global__ void some(const double *x, double *y) {
  __shared__ double s[4];
  int t = threadIdx.x;
  double sum = 0;
  for (int p = 0; p < 4; p++) {
    if (p == 0 || t < 2) s[t] = x[4 * p + t];
    __syncthreads();
    for (int q = 0; q < 4; q++) sum += (t + 1) * s[q];
    __syncthreads();
  }
  y[t] = sum;
}""",
        "x: f64[16], out y: f64[4]", 1, 4, (_X,),
        np.arange(1, 5) * (4 * _X[2:4].sum() + _X.reshape(4, 4)[:, :2].sum()), None,
    ),
    # Two stores to the same places: the second counts.
    Tiled(
        "twice", """
extern "C" __global__ void twice(const double *x, double *y) {
  __shared__ double s[80];
  int t = threadIdx.x;
  s[t] = x[t % 16];
  __syncthreads();
  s[t + 2] = x[(t + 8) % 16];
  __syncthreads();
  y[t] = s[3 - t % 4] * s[3];
}""",
        "x: f64[16], out y: f64[64]", 1, 64, (_X,), np.tile([_X[9], _X[8], _X[1], _X[0]], 16) * _X[9],
        ("[80 x double]", True),
    ),
    Tiled(
        "across", """
extern "C" __global__ void across(const double *x, double *y) {
  __shared__ double s[32][33];
  s[threadIdx.y][threadIdx.x] = x[32 * threadIdx.y + threadIdx.x];
  __syncthreads();
  y[32 * threadIdx.y + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}""",
        "x: f64[1024], out y: f64[1024]", 1, (32, 32), (_Y,), _Y.reshape(32, 32).T.reshape(-1),
        ("[32 x [33 x double]]", True),
    ),
    # Pairs that are turned over, by threads whose numbers are quotients and remainders, behind pointers that move on.
    Tiled(
        "pairs", """
extern "C" __global__ void pairs(int m, int k, int n, const double *a, const double *b, double *c) {
  __shared__ double s[4 * 8], t[4 * 8];
  int x = threadIdx.x, row = x / 4, column = x % 4;
  a += blockIdx.y * 8 * k;
  b += blockIdx.x * 8;
  double sum[2][2] = {};
  for (int p = 0; p < k; p += 4) {
    double2 two = *(const double2 *)&a[x / 2 * k + x % 2 * 2];
    s[x % 2 * 16 + x / 2] = two.x;
    s[x % 2 * 16 + 8 + x / 2] = two.y;
    *(double2 *)&t[row * 8 + column * 2] = *(const double2 *)&b[row * n + column * 2];
    __syncthreads();
    a += 4;
    b += 4 * n;
    for (int q = 0; q < 4; q++)
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) sum[i][j] += s[q * 8 + row * 2 + i] * t[q * 8 + column * 2 + j];
    __syncthreads();
  }
  c += blockIdx.y * 8 * n + blockIdx.x * 8;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) c[(row * 2 + i) * n + column * 2 + j] = sum[i][j];
}""",
        "m: i32, k: i32, n: i32, a: f64[m,k], b: f64[k,n], out c: f64[m,n]", ("n//8", "m//8"), 16,
        (_C, _D), _C @ _D, None,
    ),
    # Places that are a permutation of the threads' numbers, and two stores whose sources lie apart unevenly.
    Tiled(
        "swizzled", """
extern "C" __global__ void swizzled(const double *x, double *y) {
  __shared__ double s[16], t[16];
  int i = threadIdx.x;
  double sum = 0;
  for (int p = 0; p < 2; p++) {
    s[i ^ i >> 1] = x[8 * p + i];
    s[8 + i] = x[8 * (1 - p) + 7 - i];
    t[i] = x[8 * p + i];
    t[8 + i] = x[i * i % 5 + p];
    __syncthreads();
    for (int q = 0; q < 16; q++) sum += (i + q) * s[(q + i) % 16] * t[q];
    __syncthreads();
  }
  y[i] = sum;
}""",
        "x: f64[16], out y: f64[8]", 1, 8, (_X,), _swizzled(_X), None, 0, 528,
    ),
    # Loops of copies, of which one begins at the thread's number; they have the same number of iterations for each.
    Tiled(
        "begun", """
extern "C" __global__ void begun(int k, const double *a, double *c) {
  __shared__ double s[40][4], u[640];
  int x = threadIdx.x, y = threadIdx.y;
  double sum = 0;
  for (int p = 0; p < k; p += 4) {
    for (int i = 2 * y + x / 4; i < 40; i += 4) s[i][x % 4] = a[i * k + p + x % 4];
    for (int i = 0; i < 40; i++) u[16 * i + 8 * y + x] = a[i * k + p + x % 4];
    __syncthreads();
    for (int q = 0; q < 40; q++) sum += s[q][x % 4] * s[39 - q][y] * u[16 * q + 8 - 8 * y + (x + 1) % 8];
    __syncthreads();
  }
  c[8 * y + x] = sum;
}""",
        "k: i32, a: f64[40,k], out c: f64[2,8]", 1, (8, 2), (_T,),
        np.tile(sum(_T[::-1, p : p + 2].T @ (_T[:, p : p + 4] * np.roll(_T[:, p : p + 4], -1, 1)) for p in (0, 4)), 2),
        ("[40 x [4 x double]]", False), 0, 16,
    ),
    # A later iteration stores in the same place.
    Tiled(
        "over", """
extern "C" __global__ void over(const double *x, double *y) {
  __shared__ double s[48];
  int t = threadIdx.x;
  double sum = 0;
  for (int i = t; i < 48; i += 4) {
    s[i] = x[i];
    s[44 + 2 * t - i] = x[i] + x[i + 1];
  }
  __syncthreads();
  for (int q = 0; q < 48; q++) sum += s[q] * s[q] * (q + t);
  y[t] = sum;
}""",
        "x: f64[49], out y: f64[4]", 1, 4, (_Y[:49],), _over(_Y[:49]), None,
    ),
    # What is read was stored in an earlier iteration, or an earlier round.
    Tiled(
        "before", """
extern "C" __global__ void before(const double *x, double *y) {
  __shared__ double s[48], u[48];
  int t = threadIdx.x;
  double sum = 0;
  for (int i = t; i < 48; i += 4) s[i] = u[i] = 0;
  for (int p = 0; p < 2; p++) {
    __syncthreads();
    for (int q = 0; q < 48; q++) sum += u[q] * u[q];
    __syncthreads();
    for (int i = t; i < 48; i += 4) {
      s[i] = u[i] = x[i + p];
      sum += s[44 + 2 * t - i] * x[i];
    }
  }
  y[t] = sum;
}""",
        "x: f64[49], out y: f64[4]", 1, 4, (_Y[:49],), _before(_Y[:49]), None, 0, 976,
    ),
    # Threads have other numbers of iterations: a place keeps what it had.
    Tiled(
        "fewer", """
extern "C" __global__ void fewer(const double *x, double *y) {
  __shared__ double s[48];
  int t = threadIdx.x;
  double sum = 0;
  for (int p = 0; p < 2; p++) {
    for (int i = t; i < 48 - 6 * p; i += 4) s[i] = x[i + p];
    __syncthreads();
    for (int q = 0; q < 48; q++) sum += s[q] * s[q] * (q + t);
    __syncthreads();
  }
  y[t] = sum;
}""",
        "x: f64[49], out y: f64[4]", 1, 4, (_Y[:49],), _fewer(_Y[:49]), None, 0, 800,
    ),
)  # fmt: skip


def made(case: Tiled) -> je.Kernel:
    return je.kernel(
        case.source, case.name, case.signature, lang="cuda", grid=case.grid, block=case.block, shared=case.shared
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_reverse_sweeps_of_devices_read_the_same(case: Tiled) -> None:
    kernel = made(case)
    bound = Native(kernel.program, kernel.signature, kernel.binding(case.inputs))
    agree(three_way(bound, list(case.inputs), sweeps=by_turns(CASES.index(case))))
    report = kernel.inspect(*case.inputs).gpu
    assert report.tape_bytes == case.taped * report.threads


def test_a_tape_that_no_device_here_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """extern "C" __global__ void chaos(double *x) {
      for (int k = 0; k < 100; k++) x[threadIdx.x] = sin(3 * x[threadIdx.x]);
    }"""
    kernel = je.kernel(source, None, "inout x: f64[32]", lang="cuda", grid=1, block=32)
    needed = kernel.inspect(_X.repeat(2)).gpu.tape_bytes
    assert needed == 100 * 8 * 32

    def lowered(room: int | None) -> object:
        monkeypatch.setattr(gpu, "device_memory", lambda: room)
        traced = jax.jit(jax.grad(lambda x: kernel(x).sum())).trace(_X.repeat(2))
        return traced.lower(lowering_platforms=("cuda",))

    assert lowered(None) and lowered(needed)
    with pytest.raises(je.LoweringError, match=f"`chaos` keeps {needed} bytes .* has {needed - 1}"):
        lowered(needed - 1)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_tiles_hold_what_was_stored(case: Tiled) -> None:
    kernel = made(case)
    np.testing.assert_allclose(kernel(*case.inputs), case.expected, rtol=1e-12)
    je.check_grads(kernel, case.inputs)
    base = kernel.specialise(kernel.binding([jnp.asarray(a) for a in case.inputs])).base
    bound = derived.regular(base.program, base.signature, base.binding)
    local = [i for f in bound.module.functions.values() for i in f.instructions() if isinstance(i, Alloca)]
    if case.tile is not None:
        kind, stays = case.tile
        assert (kind in {str(i.allocated_type) for i in local}) == stays


def test_arrays_of_several_types_in_dynamic_shared_memory() -> None:
    """Copies of integers to where numbers lie as well have no adjoint."""
    source = """
        __global__ void mix(const double *x, const float *w, const int *at, double *y) {
          extern __shared__ char memory[];
          double *a = (double *)memory;
          float *b = (float *)(a + 64);
          int *c = (int *)(b + 64);
          int t = threadIdx.x, i = 64 * blockIdx.x + t;
          a[t] = x[i], b[t] = w[i], c[t] = at[i];
          __syncthreads();
          double v = a[c[t]] * b[(t + 3) % 64];
          __syncthreads();
          a[t] = v * v;
          __syncthreads();
          y[i] = a[63 - t] * v;
        }"""
    kernel = je.kernel(source, "mix", "x: f64[n], w: f32[n], at: i32[n], out y: f64[n]", lang="cuda", grid="n//64",
                       block=64, shared=1024)  # fmt: skip
    noise = np.random.default_rng(2)
    x, w, at = noise.uniform(1, 2, (2, 64)), noise.uniform(1, 2, (2, 64)).astype("f4"), noise.integers(0, 64, (2, 64))
    v = np.take_along_axis(x, at, 1) * np.roll(w, -3, 1)
    arguments = (x.ravel(), w.ravel(), at.ravel().astype("i4"))
    np.testing.assert_allclose(kernel(*arguments), (v[:, ::-1] ** 2 * v).ravel(), rtol=1e-12)
    je.check_grads(kernel, arguments)


def test_numbers_that_follow_one_at_an_aligned_place() -> None:
    """The second of a pair is read eight bytes behind the first, which lies at a multiple of 16."""
    source = """extern "C" __global__ void halves(const double *x, double *y) {
      __shared__ double s[16];
      int t = threadIdx.x;
      double2 two = ((const double2 *)x)[t];
      s[t] = two.x;
      s[t + 8] = two.y;
      __syncthreads();
      double sum = 0;
      for (int j = 0; j < 4; j++) sum += s[(t + j) % 8] * s[8 + (t * 3 + j) % 8];
      y[t] = sum;
    }"""
    kernel = je.kernel(source, "halves", "x: f64[16], out y: f64[8]", lang="cuda", grid=1, block=8)
    x = _X.repeat(2)[:16]
    t, j = np.ogrid[:8, :4]
    np.testing.assert_allclose(kernel(x), (x[::2][(t + j) % 8] * x[1::2][(t * 3 + j) % 8]).sum(1))
    je.check_grads(kernel, (x,))
