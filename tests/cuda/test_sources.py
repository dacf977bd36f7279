"""CUDA C++ with the usual headers, NVVM IR, and sources that do not compile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.errors import CompileError, SignatureError
from jax_enzyme.frontends import Program, cuda, load
from jax_enzyme.ir.module import Module
from jax_enzyme.signature import Binding, parse, parse_launch
from tests.support.engine import Native, agree, three_way

HEADERS = """
#include <cuda_runtime.h>
#include <math.h>
#include <cmath>
#include <cstdint>
#include <cfloat>
#include <stdio.h>
#include <cassert>

template <typename T> __device__ T square(T x) { return x * x; }

template <typename T, int N> __global__ void powers(int n, const T *__restrict__ x, T *__restrict__ y) {
  const uint32_t i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  T product = T(1);
#pragma unroll
  for (int k = 0; k < N; ++k) product *= std::sin(x[i]) + DBL_EPSILON;
  y[i] = square(product) + (T)M_PI + __ldg(x + i);
}

template __global__ void powers<double, 3>(int, const double *, double *);
"""

IR = """
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
@part = internal addrspace(3) global [64 x double] undef, align 8

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
declare void @llvm.nvvm.barrier0()
declare double @__nv_sin(double)
declare float @__nv_fast_expf(float)
declare double @__nv_rsqrt(double)

define ptx_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = sext i32 %t to i64
  %xp = getelementptr double, ptr addrspace(1) %x, i64 %i
  %v = load double, ptr addrspace(1) %xp
  %s = call double @__nv_sin(double %v)
  %sp = getelementptr [64 x double], ptr addrspace(3) @part, i64 0, i64 %i
  store double %s, ptr addrspace(3) %sp
  call void @llvm.nvvm.barrier0()
  %other = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  %o = sext i32 %other to i64
  %op = getelementptr [64 x double], ptr addrspacecast (ptr addrspace(3) @part to ptr), i64 0, i64 %o
  %w = load double, ptr %op
  %f = fptrunc double %w to float
  %e = call float @__nv_fast_expf(float %f)
  %next = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %e, i32 1, i32 31)
  %d = fpext float %next to double
  %r = call double @__nv_rsqrt(double %d)
  %yp = getelementptr double, ptr addrspace(1) %y, i64 %i
  store double %r, ptr addrspace(1) %yp
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @k, !"kernel", i32 1}
"""


def native(program: Program, signature: str, dims: dict[str, int], grid: object, block: object) -> Native:
    parsed = parse(signature)
    return Native(replace(program, launch=parse_launch(parsed, grid, block)), parsed, Binding.of(dims, {}))


def test_headers_and_templates() -> None:
    program = load(HEADERS, None, "cuda")
    kernel = native(program, "n: i32, x: f64[n], out y: f64[n]", {"n": 11}, 2, 8)
    x = np.random.default_rng(0).normal(size=11)
    np.testing.assert_allclose(kernel.run((), [x])[0], np.sin(x) ** 6 + np.pi + x, rtol=1e-12)
    agree(three_way(kernel, [x]))


def test_nvvm_ir() -> None:
    kernel = native(load(IR, "k", "cuda"), "x: f64[32], out y: f64[32]", {}, 1, 32)
    x = np.random.default_rng(0).normal(size=32)
    e = np.exp(np.sin(x[np.arange(32) ^ 1]).astype(np.float32))
    expected = e[np.minimum(np.arange(32) + 1, 31)] ** -0.5
    np.testing.assert_allclose(kernel.run((), [x])[0], expected, rtol=1e-6)
    agree(three_way(kernel, [x], step=1e-4), tolerance=1e-5, difference_tolerance=1e-2)


def test_flags_choose_what_is_compiled() -> None:
    source = 'extern "C" __global__ void k(double *y) { *y = VALUE; }'
    for value in (2, 3):
        program = load(source, "k", "cuda", (f"-DVALUE={value}",))
        assert native(program, "inout y: f64[]", {}, 1, 1).run((), [np.float64(0)])[0] == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("__global__ void k(double *y) { *y = missing; }", "undeclared identifier 'missing'"),
        ("__global__ int k(double *y) { return 1; }", "must have void return type"),
        (
            "__host__ double f(); __global__ void k(double *y) { *y = f(); }",
            "call to __host__ function from __global__ function",
        ),
    ],
)
def test_what_clang_refuses(source: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        load(source, "k", "cuda")


def test_types_are_held_against_the_source() -> None:
    program = load('extern "C" __global__ void k(int n, const float *x, double *y) { y[0] = x[0]; }', None, "cuda")
    kernel = native(program, "n: i32, x: f64[n], out y: f64[n]", {"n": 3}, 1, 1)
    with pytest.raises(SignatureError, match=r"`x` is f64\[n\] in the signature"):
        kernel.run((), [np.zeros(3)])


def test_templates_that_nobody_launches() -> None:
    """An instance is made where it is asked for; numbers among its arguments may have suffixes, as demanglers write."""
    source = """#include <cuda_fp16.h>
    template <class T, class S, unsigned N> __global__ void k(T *y, const S *x) { *y = N * (T)*x; }"""
    for asked in ("k<double, __half, 3>", "k<double, _Float16, 3u>"):
        subject = native(load(source, asked, "cuda"), "out y: f64[], x: f16[]", {}, 1, 1)
        np.testing.assert_array_equal(subject.run((), [np.float16(2)])[0], 6)


def test_another_version_reads_a_source_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is done behind clang is in the disk cache, under a key that knows what this package is made of."""
    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cuda, "own_digest", lambda: "one")
    source = 'extern "C" __global__ void k(double *y) { *y = 1; }'
    first = load(source, "k", "cuda")
    seen: list[Module] = []
    monkeypatch.setattr(cuda, "draw_no_conclusions", seen.append)
    assert load(source, "k", "cuda").ir == first.ir and not seen
    monkeypatch.setattr(cuda, "own_digest", lambda: "two")
    load(source, "k", "cuda")
    assert seen
