"""Memory under other types than its own, as CUDA programs move it, and numbers that share a register."""

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
