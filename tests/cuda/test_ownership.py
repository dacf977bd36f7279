"""Where no two threads touch one place, cotangents are added plainly; and what is stored once is read once."""

from __future__ import annotations

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ad import device
from jax_enzyme.ad.device.report import reverse_report
from jax_enzyme.codegen.gpu.primal import device_primal
from jax_enzyme.ir.arrays import Vjp
from tests.cuda.device import on_cpu, results
from tests.cuda.test_device_threads import check, native

_ROW = "int t = threadIdx.x; double s = 0; BODY y[t] = s * s;"
_PLANE = """
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= 29 || j >= 13) return;
  double s = BODY; y[j * 29 + i] = s * s;"""


@pytest.mark.parametrize(
    ("body", "way"),
    [
        ("for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) s += sin(x[t * 8 + i + j]);", "plain"),
        ("for (int i = 0; i < 5; i++) for (int j = 0; j < 5; j++) s += sin(x[t * 8 + i + j]);", "atomic"),
        ("for (int i = 0; i < 5; i++) s += sin(x[t + i]);", "atomic"),
        ("for (int i = 0; i < 5; i++) s += sin(x[t + 32 * i]);", "no"),
        ("for (int i = 32 + t; i < 160; i += 32) s += x[i] * x[i - 32] * x[i + 64];", "plain"),
        ("for (int i = 32 + t; i < 160; i += 32) s += x[i] * x[i - 31];", "atomic"),
        ("for (int i = 32 + t; i < 160; i += 32) s += x[i] * x[i - 48];", "atomic"),
        ("for (int i = 36 + t; i < 300; i += 36) s += x[i] * x[i - 36] * x[i + 360];", "plain"),
        ("for (int i = t; i < 96; i += 32) s += x[i]; for (int i = 96 + t; i >= 0; i -= 32) s *= x[i];", "plain"),
        ("for (int i = t; i < 96; i += 32) s += x[i]; for (int i = 97 + t; i >= 0; i -= 32) s *= x[i];", "atomic"),
        ("s = x[(t + 1) % 32];", "no"),
        ("s = x[(t + 1) % 31];", "atomic"),
        ("if (t < 31) s = x[(t + 1) % 31];", "no"),
        ("s = x[t] * x[32 + (t + 5) % 32] * x[95 - t];", "plain"),
        ("s = x[t] * x[31 + (t + 5) % 32];", "atomic"),
        ("x[j * 29 + i] * x[j * 29 + i]", "no"),
        ("x[j * 28 + i] * x[j * 28 + i]", "atomic"),
        ("x[j * 29 + i] * x[(j + 1) % 13 * 29 + i + 377] * x[j * 29 + (i + 28) % 29 + 754]", "no"),
    ],
)
def test_who_touches_a_place(body: str, way: str) -> None:
    plane = body.startswith("x")
    source = (_PLANE if plane else _ROW).replace("BODY", body)
    count = 377 if plane else 32
    launch = ((8, 4), (4, 4)) if plane else (32, 1)
    signature = f"x: f64[1131], out y: f64[{count}]"
    kernel = native(f"(const double *x, double *y) {{ {source} }}", signature, {}, *launch)
    form = device.canonical(device_primal(kernel.program, kernel.signature, kernel.binding))
    (found,) = reverse_report(form, Vjp((True, False), (False, True))).accumulations
    assert found.way == way


_TILE = """
  __shared__ double s[8][9];
  int c = blockIdx.x * 8 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  #pragma unroll
  for (int j = 0; j < 8; j += 4) if (r + j < 13 && c < 11) s[threadIdx.y + j][threadIdx.x] = 2 * x[(r + j) * WIDTH + c];
  __syncthreads();
  c = blockIdx.y * 8 + threadIdx.x; r = blockIdx.x * 8 + threadIdx.y;
  #pragma unroll
  for (int j = 0; j < 8; j += 4) if (c < 13 && r + j < 11) y[(r + j) * 13 + c] = sin(s[threadIdx.x][COLUMN]);"""

_TREE = """
  __shared__ double s[32]; int t = threadIdx.x;
  s[t] = sin(x[t]); __syncthreads();
  if (FIRST) s[t] *= s[t + 8]; __syncthreads();
  if (t < 4) s[t] *= s[t + 4];
  __syncthreads(); if (t < 4) y[t] = s[t];"""


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        ("for (int i = t; i < 45; i += 32) s += sin(x[blockIdx.x * 45 + i]);", ["no"]),
        ("for (int i = t; i < 45; i += 32) s += sin(x[blockIdx.x * 44 + i]);", ["atomic"]),
        ("for (int i = t; i < 45; i += 32) s += x[blockIdx.x * 45 + i] * x[blockIdx.x * 45 + 44 - i];", ["atomic"]),
        # What conditions leave of a row is as long as what they leave of the next one, by other threads.
        (
            "for (int k = 0; k < 3; k++) { if (t) s += sin(x[k * 32 + t]); if (t < 31) s += x[k * 32 + t + 33]; }",
            ["atomic"],
        ),
        (_TILE.replace("COLUMN", "threadIdx.y + j").replace("WIDTH", "11"), ["no", "plain"]),
        (_TILE.replace("COLUMN", "(threadIdx.y + j) / 2").replace("WIDTH", "10"), ["atomic", "atomic"]),
        (_TREE.replace("FIRST", "t < 8"), ["no", "plain", "plain", "plain"]),
        (_TREE.replace("FIRST", "t < 9"), ["no", "atomic", "plain", "plain"]),
    ],
)
def test_bounds_of_rows_and_tiles(body: str, ways: list[str]) -> None:
    """What conditions leave of a row or a tile is no other block's; a tile's place that one thread loads is its own."""
    shares = "__shared__" in body
    source = body if shares else f"int t = threadIdx.x; double s = 0; {body} y[blockIdx.x * 32 + t] = s;"
    signature = f"x: f64[143], out y: f64[{143 if shares else 96}]"
    launch = ((8, 4), (2, 2)) if "threadIdx.y" in body else (32, 3 if "blockIdx" in body else 1)
    kernel = native(f"(const double *x, double *y) {{ {source} }}", signature, {}, *launch)
    form = device.canonical(device_primal(kernel.program, kernel.signature, kernel.binding))
    found = reverse_report(form, Vjp((True, False), (False, True))).accumulations
    of_input = {a.way for a in found if a.memory == "`x`"}
    assert [of_input, *({a.way} for a in found if a.memory != "`x`")] == [{way} for way in ways]
    if "atomic" not in ways:
        check(kernel, np.linspace(0.1, 0.9, 143))


@pytest.mark.parametrize(
    ("body", "io"),
    [
        ("y[t] = x[t] * x[t]; y[t + 32] = sin(x[t]);", "in"),
        ("for (int k = 0; k < 3; k++) y[t + 32 * k] = sin(x[t] * k);", "in"),
        ("for (int k = 0; k < 9; k++) y[t] = y[t + 32] * sin(x[t] * k);", "inout"),
        ("double v = sin(x[t]); y[t] = v; if (v > 0) y[t] = v * v;", "in"),
        ("y[t] = x[t]; __syncthreads(); y[(t + 1) % 32] *= 2;", "inout"),
    ],
)
def test_cotangents_that_are_read_alone_are_inputs(body: str, io: str) -> None:
    """XLA would have to copy them otherwise."""
    source = f'extern "C" __global__ void f(const double *x, double *y) {{ int t = threadIdx.x; {body} }}'
    kernel = je.kernel(source, "f", "x: f64[32], out y: f64[96]", lang="cuda", grid=1, block=32)
    report = kernel.inspect(np.full(32, 0.5)).gpu
    assert report is not None
    name = "vjp" if "vjp" in report.functions else "pullback"
    layout = report._of(name).layout()  # pyright: ignore[reportPrivateUsage]
    assert [b.io for b in layout.buffers if b.name == "y_bar"] == [io]
    assert all(b.nbytes == 0 for b in layout.buffers if b.name == "y" and b.io == "scratch")  # nobody reads it


@pytest.mark.parametrize(
    ("block", "grid", "small", "many"),
    [(512, 2, (128, 1, 1), (8, 1, 1)), ((32, 16), (1, 2), (32, 4, 1), (1, 8, 1)), (256, 4, (256, 1, 1), (4, 1, 1))],
)
def test_derivatives_in_smaller_blocks(block: object, grid: object, small: tuple, many: tuple) -> None:
    """Where nothing depends on the block: the same numbers, and nothing becomes atomic."""
    source = """extern "C" __global__ void f(int n, const double *x, double *y) {
      int t = threadIdx.y * blockDim.x + threadIdx.x, size = blockDim.x * blockDim.y;
      int i = (blockIdx.y * gridDim.x + blockIdx.x) * size + t;
      if (i < n) y[i] = sin(x[i]) * (1 + threadIdx.y + 2 * blockIdx.y + t % 5);
    }"""
    kernel = je.kernel(source, "f", "n: i32, x: f64[n], out y: f64[n]", lang="cuda", grid=grid, block=block)
    report = kernel.inspect(np.full(1000, 0.5)).gpu
    assert report is not None and report.reverse is not None
    assert [a.way for a in report.reverse.accumulations] == ["no"]
    for name in report.functions[1:]:
        shape = report._of(name).layout().shape  # pyright: ignore[reportPrivateUsage]
        assert (shape.block, shape.grid) == (small, many)
    found = results(on_cpu(report._of("jvp").launched().function), [np.full(1000, 0.5), np.ones(1000)])  # pyright: ignore[reportPrivateUsage]
    np.testing.assert_allclose(found["tangent", 1], np.cos(0.5) / np.sin(0.5) * kernel(np.full(1000, 0.5)))
