"""Memory under other types than its own, as CUDA programs move it, numbers that share a register, and products of
matrices by a warp whose registers these are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cuda.test_synchronisation import native
from tests.support.engine import agree
from tests.support.engine import together as three_way

T = np.arange(32)
HEAD = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(const float *x, float *y) { int t = threadIdx.x; """
PAIR = "__half2 h = __floats2half2_rn(x[t] * x[t], x[t]);"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            """__shared__ float s[32]; __shared__ int q[32];
            s[t] = x[t] * x[t]; __syncthreads(); q[t] = *(int *)&s[31 - t]; __syncthreads();
            y[t] = __int_as_float(q[t]);""",
            lambda x: x[::-1] ** 2,
            id="numbers read as integers",
        ),
        pytest.param(
            """__shared__ alignas(16) float s[32]; s[t] = x[t] * x[t]; __syncthreads();
            if (t < 8) { int4 v = ((int4 *)s)[t]; ((int4 *)s)[t] = make_int4(v.w, v.z, v.y, v.x); }
            __syncthreads(); y[t] = s[t];""",
            lambda x: (x.reshape(8, 4)[:, ::-1] ** 2).ravel(),
            id="four at once",
        ),
        pytest.param(
            """__shared__ int most; if (t == 0) most = 0; __syncthreads();
            atomicMax(&most, __float_as_int(x[t] * (t == 9 ? 9 : 1))); __syncthreads();
            y[t] = __int_as_float(most) * x[t];""",
            lambda x: 9 * x[9] * x,
            id="the largest, as an integer",
        ),
        pytest.param(
            PAIR + """unsigned u[2] = {0, 0};
            for (int i = 0; i < 2; i++) h = __hadd2(*(__half2 *)&u[i], h), u[1 - i] = *(unsigned *)&h;
            h = *(__half2 *)&u[0]; y[t] = __low2float(h) + __high2float(h);""",
            lambda x: 2 * (x**2 + x),
            id="pairs in words",
        ),
        pytest.param(
            PAIR + """unsigned u = *(unsigned *)&h; u = __shfl_xor_sync(~0u, u, 5); h = *(__half2 *)&u;
            y[t] = __low2float(h) * __high2float(h);""",
            lambda x: x[T ^ 5] ** 3,
            id="pairs shuffled",
        ),
    ],
)  # fmt: skip
def test_what_lies_in_words(body: str, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    """Values were those of no program, and derivatives zero: integers were taken for other memory than numbers."""
    subject = native(HEAD + body + "}", "x: f32[32], out y: f32[32]", {}, 1, 32)
    x = (np.random.default_rng(1).integers(16, 48, 32) / 32).astype(np.float32)
    np.testing.assert_allclose(subject.run((), [x])[0], expected(x), rtol=2e-3)
    agree(three_way(subject, [x], step=1e-3), 1e-2, 5e-2)  # tangents are halves, too


_PRODUCT = {
    "m8n8k4 f64": """double c[2] = {1, 2};
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(c[0]), "+d"(c[1]) : "d"((double)a[g * 4 + t]), "d"((double)b[g * 4 + t]));""",
    "m16n8k4 tf32": """float c[4] = {1, 2, 3, 4}; unsigned u[3];
      asm("cvt.rna.tf32.f32 %0, %3; cvt.rna.tf32.f32 %1, %4; cvt.rna.tf32.f32 %2, %5;"
          : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]) : "f"(a[g * 4 + t]), "f"(a[(g + 8) * 4 + t]), "f"(b[g * 4 + t]));
      asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(u[0]), "r"(u[1]), "r"(u[2]));""",
    "m16n8k8 bf16": """float c[4] = {1, 2, 3, 4}; unsigned u[3];
      __shared__ alignas(16) __nv_bfloat16 s[16][8], w[8][8];
      for (int i = lane; i < 128; i += 32) s[i / 8][i % 8] = __float2bfloat16(a[i]);
      for (int i = lane; i < 64; i += 32) w[i % 8][i / 8] = __float2bfloat16(b[i]);
      __syncwarp();
      unsigned rows = (unsigned)__cvta_generic_to_shared(s[lane % 16]);
      unsigned columns = (unsigned)__cvta_generic_to_shared(w[lane < 8 ? lane : 1000]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(u[0]), "=r"(u[1]) : "r"(rows));
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 {%0}, [%1];" : "=r"(u[2]) : "r"(columns));
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(u[0]), "r"(u[1]), "r"(u[2]));""",
    "m16n8k8 f16": """half2 c[2] = {__floats2half2_rn(1, 2), __floats2half2_rn(3, 4)}, h[3];
      h[0] = __floats2half2_rn(a[g * 8 + 2 * t], a[g * 8 + 2 * t + 1]);
      h[1] = __floats2half2_rn(a[(g + 8) * 8 + 2 * t], a[(g + 8) * 8 + 2 * t + 1]);
      h[2] = __floats2half2_rn(b[g * 8 + 2 * t], b[g * 8 + 2 * t + 1]);
      unsigned *u = (unsigned *)h, *d = (unsigned *)c;
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                   : "+r"(d[0]), "+r"(d[1]) : "r"(u[0]), "r"(u[1]), "r"(u[2]));""",
    "m16n8k16 s8": """int c[4] = {1, 2, 3, 4}; unsigned u[3] = {0, 0, 0};
      for (int i = 0; i < 4; i++) {
        u[0] |= ((int)a[g * 16 + 4 * t + i] & 255) << 8 * i, u[2] |= ((int)b[g * 16 + 4 * t + i] & 255) << 8 * i;
        u[1] |= ((int)a[(g + 8) * 16 + 4 * t + i] & 255) << 8 * i;
      }
      asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
          : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(u[0]), "r"(u[1]), "r"(u[2]));""",
}  # fmt: skip


@pytest.mark.parametrize("shape", _PRODUCT)
def test_products_in_registers(shape: str) -> None:
    """The second matrix is given with its columns as rows."""
    sizes, kind = shape.split()
    m, k = (int(part) for part in sizes[1:].split("n8k"))
    one = "(i % 2 ? __high2float(c[i / 2]) : __low2float(c[i / 2]))" if kind == "f16" else "c[i]"
    stored = f"for (int i = 0; i < {m // 4}; i++) y[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = {one};"
    source = (
        HEAD.replace("const float *x", "const float *a, const float *b")
        + "const int lane = t, g = t / 4; t %= 4;"
        + _PRODUCT[shape]
        + stored
        + "}"
    )
    subject = native(source, f"a: f32[{m},{k}], b: f32[8,{k}], out y: f32[{m},8]", {}, 1, 32)
    rng = np.random.default_rng(4)
    a, b = rng.integers(-8, 8, (m, k)).astype("f4"), rng.integers(0, 8, (8, k)).astype("f4")
    expected = a @ b.T + np.repeat([[1, 2], [3, 4]], 8, 0)[:m, [0, 1] * 4]
    np.testing.assert_array_equal(subject.run((), [a, b])[0], expected)
    if kind != "s8":
        agree(three_way(subject, [a, b], step=1e-2), 1e-2, 5e-2)  # tangents are rounded as numbers are
