"""The model of what a launch moves, against counts by hand, and what fills a multiprocessor."""

from __future__ import annotations

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.codegen.gpu.ptxas import Resources, occupancy
from jax_enzyme.codegen.gpu.traffic import traffic
from tests.cuda.test_ptx import inline

BLOCKS, WARPS = 8, 32
"""Of 128 threads each: 1024 in 32 warps."""

SIGNATURE = "n: i32, x: f64[n], j: i32[1024], z: f32[4096], inout y: f64[1024]"
N = 4100


def of(body: str) -> dict[str, float]:
    source = f"""extern "C" __global__ void f(int n, const double *x, const int *j, const float *z, double *y) {{
      int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; {body} }}"""
    found = traffic(inline(source, "f", SIGNATURE, {"n": N}, grid=BLOCKS, block=128))
    assert found.complete
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # 32 numbers of 8 bytes are 8 sectors; y is read and written, and in caches in between.
        ("y[i] += 2 * x[i];", {"requested": 3 * 8192, "sectors": 3 * 8192, "moved": 2 * 8192, "gathers": 0}),
        # One number further on a warp touches 9, and a block 33.
        ("y[i] = x[i + 1];", {"sectors": 8192 + 9 * 32 * WARPS, "moved": 8192 + 33 * 32 * BLOCKS}),
        # Rows of four numbers, a column after the other: each access has a sector for each thread.
        ("double s = 0; for (int k = 0; k < 4; k++) s += x[4 * i + k] * s + 1; y[i] = s;",
         {"requested": 5 * 8192, "sectors": 8192 + 4 * 32 * 1024, "moved": 8192 + 32 * 1024}),
        # Of a vector each number is an access of its own, of 16 sectors.
        ("float4 q = ((const float4 *)z)[i]; y[i] = q.x + q.y * q.z * q.w;",
         {"sectors": 8192 + 4 * 16 * 32 * WARPS, "moved": 8192 + 16 * 1024}),
        # Where data lead.
        ("y[i] = x[j[i]];", {"sectors": 8192 + 4096 + 32 * 1024, "moved": 8192 + 4096 + 32 * 1024, "gathers": 1}),
        # Three numbers in a row, from where data lead: one sector each.
        ("const double *p = x + 4 * j[i]; y[i] = p[0] + p[1] + p[2];",
         {"sectors": 8192 + 4096 + 3 * 32 * 1024, "moved": 8192 + 4096 + 32 * 1024}),
        # A warp goes along memory from where data say.
        ("y[i] = x[j[i / 32] * 4 + i % 32];", {"sectors": 8192 + (1 + 8) * 32 * WARPS, "gathers": 1}),
        # All threads read one place, then one for each block.
        ("y[i] = x[7] + x[j[blockIdx.x]];", {"sectors": 8192 + 3 * 32 * WARPS, "moved": 8192 + 3 * 32 * BLOCKS}),
        ("if (i < 100) y[i] = 1;", {"requested": 800, "sectors": 25 * 32}),
        ("for (int k = 0; k < 100; k++) y[(i + k * 32) % 1024] = k;", {"requested": 100 * 8192}),
        ("atomicAdd(&y[i % 4], 1.0);", {"adds": 4.0, "requested": 8192, "moved": 32 * BLOCKS}),
        ("atomicAdd(&y[0], x[i]);", {"adds": 1.0}),
        ("""__shared__ double s[128]; s[t] = x[i]; __syncthreads(); double v = s[127 - t];
            for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(~0u, (float)v, o);
            if (t % 32 == 0) atomicAdd(&s[t / 64], v); __syncthreads(); y[i] = s[t / 64];""",
         {"shared": (3 * 1024 + WARPS) * 8, "shuffles": 5.0, "shared_adds": 1.0, "adds": 0.0, "sectors": 2 * 8192}),
        ("double a[8]; for (int k = 0; k < 8; k++) a[(k + j[0]) & 7] = k; y[i] = a[j[1] & 7];", {"local": 9 * 8192}),
    ],
)  # fmt: skip
def test_counts_by_hand(body: str, expected: dict[str, float]) -> None:
    found = of(body)
    assert {name: found[name] for name in expected} == expected


def test_the_report_prints_it() -> None:
    kernel = je.kernel(
        'extern "C" __global__ void f(int n, const double *x, double *y) {'
        " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(y, x[i] * x[i]); }",
        "f", "n: i32, x: f64[n], out y: f64[1]", lang="cuda", grid="(n+255)//256", block=256,
    )  # fmt: skip
    report = kernel.inspect(np.ones(1 << 16))
    assert report.gpu is not None
    moved = report.gpu.traffic()
    assert moved["primal"].requested == 2 * 8 << 16 and moved["primal"].adds == 1
    assert moved["pullback"].moved == (2 * 8 << 16) + 256 * 32 and moved["pullback"].adds == 0
    assert "pullback: 1.06 MB moved" in str(report)


def test_occupancy() -> None:
    def part(registers: int, shared: int, threads: int, arch: str = "sm_90", dynamic: int = 0) -> float:
        return occupancy(Resources("f", registers, 0, 0, 0, shared), arch, threads, dynamic)

    assert part(32, 0, 256) == 1.0 and part(64, 0, 256) == 0.5 and part(72, 0, 128) == 7 * 4 / 64
    assert part(255, 0, 128) == 8 / 64 and part(32, 0, 32) == 0.5
    assert part(32, 40_000, 256) == 5 * 8 / 64 and part(32, 0, 256, "sm_80", 80_000) == 2 * 8 / 64
    assert part(40, 0, 512, "sm_86") == 1.0
