"""What CUDA sources include: the stand-ins for CUDA's headers, used as users do."""

from __future__ import annotations

import numpy as np

from tests.cuda.test_synchronisation import native
from tests.support.engine import Native, agree, three_way

ONE = "n: i32, x: f64[n], out y: f64[n]"


def kernel(body: str, head: str, signature: str = ONE, n: int = 32, block: int = 32) -> Native:
    arguments = {ONE: "int n, const double *x, double *y"}.get(signature)
    source = f'{head}\nextern "C" __global__ void k({arguments}) {{ int t = threadIdx.x; {body} }}'
    return native(source, signature, {"n": n}, 1, block)


def values(n: int = 32) -> np.ndarray:
    return np.random.default_rng(5).uniform(0.1, 0.9, n)


def test_cooperative_groups() -> None:
    subject = kernel(
        """auto block = cg::this_thread_block();
        auto tile = cg::tiled_partition<8>(block);
        __shared__ double s[32];
        s[block.thread_rank()] = cg::reduce(tile, x[t] * x[t], cg::plus<double>());
        block.sync();
        double up = tile.shfl_up(x[t], 1), bits = tile.ballot(t % 3 == 0);
        y[t] = s[31 - t] * up + bits * x[t] + tile.meta_group_rank();""",
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;",
    )
    x, t = values(), np.arange(32)
    total = (x * x).reshape(4, 8).sum(1).repeat(8)
    bits = ((t % 3 == 0).reshape(4, 8) @ 2 ** np.arange(8)).repeat(8)
    expected = total[::-1] * x[np.where(t % 8, t - 1, t)] + bits * x + t // 8
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_complex_numbers() -> None:
    subject = kernel(
        """cuDoubleComplex z = make_cuDoubleComplex(x[t], 1 - x[t]);
        cuDoubleComplex w = cuCmul(z, cuConj(make_cuDoubleComplex(2, x[t])));
        w = cuCadd(cuCdiv(w, cuCsub(z, make_cuDoubleComplex(0, 3))), z);
        y[t] = cuCabs(w) * cuCreal(w) + cuCimag(w);""",
        "#include <cuComplex.h>",
    )
    x = values()
    z = x + 1j * (1 - x)
    w = z * np.conj(2 + 1j * x) / (z - 3j) + z
    np.testing.assert_allclose(subject.run((), [x])[0], abs(w) * w.real + w.imag, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_what_lanes_have_in_common() -> None:
    subject = kernel(
        """int all;
        unsigned same = __match_any_sync(~0u, t % 3), none = __match_all_sync(~0u, t, &all);
        int total = __reduce_add_sync(~0u, t), most = __reduce_max_sync(~0u, t * 7 % 32);
        y[t] = x[t] * (__popc(same) + 100 * total + 10000 * most) + none + all;""",
        "",
    )
    x, t = values(), np.arange(32)
    same = np.where(t % 3 == 2, 10, 11)
    np.testing.assert_allclose(subject.run((), [x])[0], x * (same + 100 * 496 + 10000 * 31), rtol=1e-13)
    agree(three_way(subject, [x]))


def test_half_precision_pairs() -> None:
    signature = "n: i32, x: f16[n,2], out y: f32[n,2]"
    subject = native(
        """#include <cuda_fp16.h>
        extern "C" __global__ void k(int n, const __half2 *x, float2 *y) {
          __half2 v = __ldg(x + threadIdx.x), w = __hfma2(v, __float2half2_rn(2.f), __halves2half2(v.y, v.x));
          float2 f = __half22float2(w * v);
          y[threadIdx.x] = make_float2(f.x + __half2float(__hmax(v.x, v.y)), f.y * __low2float(v));
        }""",
        signature,
        {"n": 16},
        1,
        16,
    )
    x = values().astype(np.float16).reshape(16, 2)
    w = x * np.float16(2) + x[:, ::-1]
    f = (w * x).astype(np.float32)
    expected = np.stack([f[:, 0] + x.max(1), f[:, 1] * x[:, 0]], 1)
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=3e-3)


def test_library_headers_and_integers() -> None:
    subject = kernel(
        """assert(n == 32);
        int i = (__sad(t, 7, 1u) + __umul24(3, t) + __usad(1, 4, 0)) % n;
        y[t] = std::max(x[i], 0.5) * std::min(x[t], 0.7) + (clock64() < 0) + std::sqrt(x[t]);""",
        "#include <algorithm>\n#include <cmath>\n#include <cassert>",
    )
    x, t = values(), np.arange(32)
    i = (abs(t - 7) + 1 + 3 * t + 3) % 32
    expected = np.maximum(x[i], 0.5) * np.minimum(x, 0.7) + np.sqrt(x)
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_structures_by_value() -> None:
    """A structure of numbers is an array in the signature."""
    subject = native(
        """struct Line { double slope, offset; };
        extern "C" __global__ void k(int n, Line line, const double *x, double *y) {
          y[threadIdx.x] = line.slope * x[threadIdx.x] * x[threadIdx.x] + line.offset;
        }""",
        "n: i32, line: f64[2], x: f64[n], out y: f64[n]",
        {"n": 8},
        1,
        8,
    )
    line, x = np.array([0.5, 2.0]), values(8)
    np.testing.assert_allclose(subject.run((), [line, x])[0], 0.5 * x * x + 2, rtol=1e-13)
    agree(three_way(subject, [line, x]))
