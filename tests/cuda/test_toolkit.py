"""Sources that are read with a CUDA toolkit's own headers, and libdevice's functions by their names."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import jax_enzyme as je
from tests.support.tools import need

BLOCK_SUM = """
#include <cuda_fp16.h>
extern "C" __global__ void total(int n, const double *x, double *y) {
  __shared__ double s[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  double v = i < n ? x[i] * x[i] : 0.0;
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  if (t == 0) {
    for (int w = 1; w < blockDim.x / 32; w++) v += s[w];
    atomicAdd(y, v + sin(x[i]) * rsqrt(x[i]) + erfinv(0.1 * x[i]) + max(x[i], 0.2));
  }
}"""


def toolkit() -> str:
    nvcc = shutil.which("nvcc")
    places = ["/usr/local/cuda", *([str(Path(nvcc).resolve().parent.parent)] if nvcc else [])]
    found = next((p for p in places if Path(p, "include", "cuda_runtime.h").is_file()), None)
    if found is None:
        pytest.skip("needs the headers of a CUDA toolkit")
    need(
        "clang's headers for CUDA", bool(list(Path("/usr/lib").glob("llvm-*/lib/clang/*/include/__clang_cuda_math.h")))
    )
    return found


def test_headers_of_a_toolkit() -> None:
    signature = "n: i32, x: f64[n], out y: f64[1]"
    flags = (f"--cuda-path={toolkit()}",)
    kernel = je.kernel(BLOCK_SUM, "total", signature, lang="cuda", grid="(n+63)//64", block=64, flags=flags)
    x = np.linspace(0.1, 1, 128)
    first = x[::64]
    expected = (x * x).sum() + np.sum(
        np.sin(first) / np.sqrt(first) + special.erfinv(0.1 * first) + np.maximum(first, 0.2)
    )
    np.testing.assert_allclose(kernel(x), [expected], rtol=1e-13)
    je.check_grads(kernel, [x])


def test_a_folder_without_a_toolkit(tmp_path: Path) -> None:
    with pytest.raises(je.CompileError, match="no CUDA toolkit in"):
        je.kernel(
            BLOCK_SUM, "total", "n: i32, x: f64[n], out y: f64[1]",
            lang="cuda", grid=1, block=64, flags=(f"--cuda-path={tmp_path}",),
        )  # fmt: skip


def test_functions_of_libdevice() -> None:
    kernel = je.kernel(
        """extern "C" __device__ double __nv_erfinv(double), __nv_erfcinv(double), __nv_sinpi(double), __nv_sin(double);
        extern "C" __device__ double __nv_norm3d(double, double, double), __nv_normcdfinv(double), __nv_rsqrt(double);
        extern "C" __global__ void k(int n, const double *x, double *y) {
          double v = x[threadIdx.x];
          y[threadIdx.x] = __nv_erfinv(v) + __nv_erfcinv(v) * __nv_sinpi(v) + __nv_norm3d(v, 1, 2) * __nv_sin(v) +
                           __nv_normcdfinv(v) * __nv_rsqrt(v);
        }""",
        "k", "n: i32, x: f64[n], out y: f64[n]", lang="cuda", grid=1, block="n",
    )  # fmt: skip
    x = np.linspace(0.05, 0.95, 9)
    expected = (
        special.erfinv(x) + special.erfcinv(x) * np.sin(np.pi * x) + np.sqrt(x * x + 5) * np.sin(x)
        + special.ndtri(x) / np.sqrt(x)
    )  # fmt: skip
    np.testing.assert_allclose(kernel(x), expected, rtol=1e-12, atol=1e-14)
    je.check_grads(kernel, [x])
