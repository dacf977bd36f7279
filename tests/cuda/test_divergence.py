"""Warp operations that not all lanes come to: each is one of the lanes that are there together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cuda.test_synchronisation import native
from tests.support.engine import Native, agree
from tests.support.engine import together as three_way
from tests.support.native import KernelStatus


def kernel(body: str, n: int, block: int) -> Native:
    source = f'extern "C" __global__ void k(int n, const double *x, double *y) {{ int t = threadIdx.x; {body} }}'
    return native(source, "n: i32, x: f64[n], out y: f64[n]", {"n": n}, 1, block)


def checked(subject: Native, x: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def values(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(0.1, 0.5, n)


def test_half_a_warp() -> None:
    body = """double v = x[t];
      if (t < 16) { for (int o = 8; o > 0; o /= 2) v += __shfl_xor_sync(0xffffu, v * v, o); }
      y[t] = v;"""
    x = values(32)
    v = x.copy()
    for o in (8, 4, 2, 1):
        v[:16] += (v * v)[np.arange(16) ^ o]
    checked(kernel(body, 32, 32), x, v)


@pytest.mark.parametrize("n", [32, 50])
def test_ways_that_part_and_join(n: int) -> None:
    body = """double v = x[t];
      if (t % 2) v *= __shfl_xor_sync(0xaaaaaaaau, v, 2);
      else {
        v += __shfl_xor_sync(0x55555555u, v * v, 4);
        v = v * __shfl_sync(0x55555555u, v, 0);
      }
      y[t] = v + __shfl_xor_sync(~0u, v, 1);"""
    if n == 50:  # lanes 16 and 17 of the second warp are its last
        body = body.replace("__shfl_xor_sync(0xaaaaaaaau, v, 2)", "__shfl_sync(0xaaaaaaaau, v, 1)")
        body = body.replace("__shfl_xor_sync(0x55555555u, v * v, 4)", "__shfl_sync(0x55555555u, v * v, 2)")
    x = values(n)
    t = np.arange(n)
    lane, warp = t % 32, t // 32 * 32
    odd = x * x[t ^ 2 if n == 32 else warp + 1]
    even = x + (x * x)[t ^ 4 if n == 32 else warp + 2]
    even = even * even[warp]
    v = np.where(lane % 2, odd, even)
    checked(kernel(body, n, n), x, v + v[t ^ 1])


@pytest.mark.parametrize("how", ["if (t < 4)", "if (t >= 4) return;"])
def test_lanes_that_are_not_there_give_zero(how: str) -> None:
    """Also where they were there before: what they shared then is not read."""
    body = """double v = x[t]; y[t] = v;
      for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, v, o);
      HOW {
        v = v * x[t];
        for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xfu, v, o);
        y[t] = v;
      }"""
    x = values(32)

    def total(v: np.ndarray) -> np.ndarray:
        for o in (16, 8, 4, 2, 1):
            v = v + np.where(np.arange(len(v)) + o < 32, np.concatenate([v, np.zeros(o)])[o:], v)
        return v

    v = np.where(np.arange(32) < 4, total(x) * x, 0)
    for o in (16, 8, 4, 2, 1):
        v[:4] += np.concatenate([v, np.zeros(o)])[o : o + 4]
    checked(kernel(body.replace("HOW", how), 32, 32), x, np.where(np.arange(32) < 4, v, x))


def test_loops_of_different_lengths() -> None:
    body = """double v = x[t];
      for (int k = 0; k < t % 5; k++) {
        unsigned m = __activemask();
        v = 0.5 * v + 0.1 * __shfl_sync(m, v * v, __ffs(m) - 1) + 0.01 * __popc(m);
      }
      __syncthreads();
      y[t] = v;"""
    x = values(64)
    v = x.copy()
    for start in (0, 32):
        t = np.arange(start, start + 32)
        for k in range(4):
            here = t[k < t % 5]
            v[here] = 0.5 * v[here] + 0.1 * v[here[0]] ** 2 + 0.01 * len(here)
    checked(kernel(body, 64, 64), x, v)


def test_divergent_warps_meet_their_block() -> None:
    body = """__shared__ double s[64];
      double v = x[t];
      for (int r = 0; r < 2; r++) {
        if (t % 3 == 0) { unsigned m = __activemask(); v += __shfl_sync(m, v * v, __ffs(m) - 1); }
        s[t] = v;
        __syncthreads();
        v = 0.3 * s[(t + 7) % n];
        __syncthreads();
      }
      y[t] = v;"""
    x = values(64)
    v = x.copy()
    for _ in range(2):
        for start in (0, 32):
            here = np.array([t for t in range(start, start + 32) if t % 3 == 0])
            v[here] += v[here[0]] ** 2
        v = 0.3 * np.roll(v, -7)
    checked(kernel(body, 64, 64), x, v)


def test_votes_of_those_that_are_there() -> None:
    body = """unsigned seen = 0;
      if (t % 4 == 1) seen = __ballot_sync(0x22222222u, t > 9);
      y[t] = x[t] * __popc(seen);"""
    x = values(32)
    t = np.arange(32)
    count = ((t % 4 == 1) & (t > 9)).sum()
    checked(kernel(body, 32, 32), x, x * np.where(t % 4 == 1, count, 0))


def test_warps_with_different_numbers_of_operations_between_barriers() -> None:
    body = """__shared__ double s[64];
      double v = x[t];
      if (t % 3 == 0) { unsigned m = __activemask(); v += __shfl_sync(m, v * v, __ffs(m) - 1); }
      s[t] = v;
      __syncthreads();
      if (t / 32 == 0) {
        double w = s[t] + s[t + 32];
        for (int o = 16; o > 0; o /= 2) w += __shfl_xor_sync(~0u, w, o);
        if (t == 0) s[0] = w;
      }
      __syncthreads();
      y[t] = v * s[0];"""
    x = values(64)
    v = x.copy()
    for start in (0, 32):
        here = np.array([t for t in range(start, start + 32) if t % 3 == 0])
        v[here] += v[here[0]] ** 2
    checked(kernel(body, 64, 64), x, v * v.sum())


def test_ways_that_end_in_a_failure_do_not_part_warps() -> None:
    """Warps go round the loop differently often, although a thread may fail in it."""
    body = """double v = x[t];
      for (int k = t < 32 ? 3 : 2; k > 0; k--) {
        if (v < 0) __builtin_trap();
        v += x[t] * __shfl_xor_sync(~0u, v, k);
      }
      __shared__ double s[64];
      s[t] = v;
      __syncthreads();
      y[t] = s[63 - t];"""
    x, t = values(64), np.arange(64)
    v = x.copy()
    for k in (3, 2, 1):
        v = np.where((k < 3) | (t < 32), v + x * v[t ^ k], v)
    checked(kernel(body, 64, 64), x, v[::-1])


def test_shuffles_and_votes_without_masks() -> None:
    """Of the lanes that are there together, as before CUDA 9."""
    body = """double v = x[t];
      if (t % 2) {
        for (int apart = 16; apart > 1; apart /= 2) v += __shfl_xor(v * v, apart);
        if (__any(t == 3)) v *= __popc(__ballot(t > 8));
      } else v = __all(t < 30) ? 0 : __shfl(v, 2) * __shfl_up(v, 4, 16);
      y[t] = v + __shfl_down(v, 1);"""
    x, t = values(32), np.arange(32)
    odd = x.copy()
    for apart in (16, 8, 4, 2):
        odd = odd + (odd * odd)[t ^ apart]
    v = np.where(t % 2, odd * np.sum((t > 8) & (t % 2 == 1)), x[2] * x[np.where(t % 16 < 4, t, t - 4)])
    checked(kernel(body, 32, 32), x, v + v[np.minimum(t + 1, 31)])
    with pytest.raises(KernelStatus):
        kernel("y[t] = __shfl_xor(x[t], 32, 64);", 32, 32).run((), [x])
