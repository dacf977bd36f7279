"""What CUDA sources include: the stand-ins for CUDA's headers, used as users do."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import jax_enzyme
from jax_enzyme.errors import CompileError
from tests.cuda.test_synchronisation import native
from tests.support.engine import Native, agree
from tests.support.engine import together as three_way

HEADERS = Path(jax_enzyme.__file__).parent / "frontends" / "cuda_include"
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
        Pair pair = cg::reduce(tile, Pair{x[t] * x[t], 1}, Joined());
        s[block.thread_rank()] = pair.total * pair.count;
        block.sync();
        double up = tile.shfl_up(x[t], 1), bits = tile.ballot(t % 3 == 0);
        y[t] = s[31 - t] * up + bits * x[t] + tile.meta_group_rank();""",
        """#include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        namespace cg = cooperative_groups;
        struct Pair { double total; int count; };
        struct Joined { __device__ Pair operator()(Pair a, Pair b) const {
          return {a.total + b.total, a.count + b.count}; } };""",
    )
    x, t = values(), np.arange(32)
    total = 8 * (x * x).reshape(4, 8).sum(1).repeat(8)
    bits = ((t % 3 == 0).reshape(4, 8) @ 2 ** np.arange(8)).repeat(8)
    expected = total[::-1] * x[np.where(t % 8, t - 1, t)] + bits * x + t // 8
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


@pytest.mark.parametrize("last_first", [False, True])
def test_all_headers_in_one_file(last_first: bool) -> None:
    paths = [p.relative_to(HEADERS) for p in sorted(HEADERS.rglob("*"), reverse=last_first) if p.is_file()]
    own = [p for p in paths if p.parts[0] not in ("hip", "bits") and not p.name.startswith("jax_enzyme")]
    subject = kernel("y[t] = 2 * x[t];", "".join(f"#include <{p}>\n" for p in own))
    np.testing.assert_array_equal(subject.run((), [values()])[0], 2 * values())


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


def test_complex_classes_and_atomic_objects() -> None:
    """C++'s complex numbers in kernels, by their names in Thrust and `cuda::std`, with numbers of other types."""
    subject = kernel(
        """thrust::complex<double> z(x[t], 0.5);
        cuda::std::complex<float> small(0.25f, 1);
        auto w = 2 * z * small + thrust::exp(z) / std::complex<double>(1, x[t]) - thrust::polar(1.5, x[t]);
        cuda::std::array<double, 2> parts{w.real(), thrust::abs(w)};
        __shared__ cuda::atomic<double, cuda::thread_scope_block> sum;
        if (t == 0) sum.store(0.25, cuda::memory_order_relaxed);
        __syncthreads();
        sum.fetch_add(parts[1], cuda::std::memory_order_relaxed);
        cuda::atomic_ref<double> first(y[0]);
        first += parts[0];
        __syncthreads();
        if (t) y[t] = sum * cuda::ceil_div(t, 8);""",
        """#include <cuda/atomic>
        #include <cuda/cmath>
        #include <cuda/std/array>
        #include <cuda/std/complex>
        #include <thrust/complex.h>""",
    )
    x = values()
    z = x + 0.5j
    w = 2 * z * (0.25 + 1j) + np.exp(z) / (1 + 1j * x) - 1.5 * np.exp(1j * x)
    expected = (0.25 + abs(w).sum()) * -(-np.arange(32) // 8)
    expected[0] = w.real.sum()
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
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
          __half2 v = __ldg(x + threadIdx.x), w = __hfma2(v, __half2(2.f, 2.f), __halves2half2(v.y, v.x));
          float2 f = __half22float2(w * v);
          atomicAdd(y + threadIdx.x, make_float2(f.x, 0));
          float2 old = atomicAdd(y + threadIdx.x, make_float2(__half2float(__hmax(v.x, v.y)), f.y * __low2float(v)));
          if (old.x != f.x) asm("trap;");
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
        """#include <algorithm>
        #include <cmath>
        #include <cassert>
        #include <cuda_profiler_api.h>
        #if !defined(__DRIVER_TYPES_H__) || !defined(__CUDA_RUNTIME_H__)
        #error helper_cuda.h of NVIDIA's samples asks for these
        #endif
        int mode = cudaDevAttrComputeMode + cudaComputeModeProhibited;""",
    )
    x, t = values(), np.arange(32)
    i = (abs(t - 7) + 1 + 3 * t + 3) % 32
    expected = np.maximum(x[i], 0.5) * np.minimum(x, 0.7) + np.sqrt(x)
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_sines_of_half_turns_are_exact() -> None:
    subject = kernel("y[t] = sinpi(x[t]) + 2 * cospi(x[t]) + 4 * sinpif(x[t]) + 8 * cospif(x[t]);", "")
    sines, cosines = np.tile([0.0, 1.0, 0.0, -1.0], 8), np.tile([1.0, 0.0, -1.0, 0.0], 8)
    halves = np.arange(-16, 16) / 2
    np.testing.assert_array_equal(subject.run((), [halves])[0], 5 * sines + 10 * cosines)
    x = 4 * values() - 2
    expected = 5 * np.sin(np.pi * x) + 10 * np.cos(np.pi * x)
    np.testing.assert_allclose(subject.run((), [x])[0], expected, atol=3e-6)
    agree(three_way(kernel("y[t] = sinpi(x[t]) + 2 * cospi(x[t]);", ""), [x]))


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


def test_what_every_source_may_use_without_asking() -> None:
    """As with nvcc, which includes C's headers by itself; integers are numbers to mathematical functions."""
    subject = kernel(
        """size_t k = t; uint u = 3; int64_t w = INT_MAX; uint8_t b = 5; ushort h = 6;
        double part[std::min(2, 4)], m = fmax(sqrt(n), 1) + pow(2, 3) + exp(0) + fmin(1, x[k]) + max(-INFINITY, 0.5f);
        memcpy(part, x + (t & ~1), sizeof part);
        m += part[0] * part[1] + (w > u) + b + h + (x[k] < FLT_MAX) * M_PI + norm3d(part[0], 1.0, x[k]);
        m += __umul64hi(1ull << 63, 6) + __mul64hi(-1, 1) + __byte_perm(0x11223344, 0x55667788, 0x7531) % 1000;
        m += __funnelshift_l(0x80000000u, 1, 1) + __float2int_rd(-1.5f) + __double2uint_rz(2.7);
        m += __dp4a(0x01020304, 0x01010101, 1);
        y[k] = m * __hiloint2double(__double2hiint(x[k]), __double2loint(x[k]));""",
        "",
    )
    x = values()
    part = x.reshape(16, 2).repeat(2, 0)
    m = np.sqrt(32.0) + 8 + 1 + np.minimum(1, x) + 0.5 + part.prod(1) + 1 + 5 + 6 + np.pi
    m += np.sqrt(part[:, 0] ** 2 + 1 + x * x) + 3 - 1 + 0x55771133 % 1000 + 3 - 2 + 2 + 11
    np.testing.assert_allclose(subject.run((), [x])[0], m * x, rtol=1e-13)


def test_groups_of_lanes() -> None:
    subject = kernel(
        """auto tile = cg::tiled_partition<16>(cg::this_thread_block());
        cg::thread_block_tile<16> same = tile;
        auto thirds = cg::labeled_partition(same, t % 3), odd = cg::binary_partition(tile, t & 1);
        double before = cg::exclusive_scan(tile, x[t]), sum = cg::reduce(thirds, x[t], cg::plus<double>());
        __shared__ double s[32];
        auto eight = cg::tiled_partition(cg::this_thread_block(), 8);
        y[t] = before * sum + odd.shfl(x[t], 2) + halved(eight, s + t / 8 * 8, x[t])
          + 0 * cg::coalesced_threads().size() + cg::this_grid().thread_rank();""",
        """#include <cooperative_groups.h>
        #include <cooperative_groups/scan.h>
        namespace cg = cooperative_groups;
        __device__ double halved(cg::thread_group g, double *s, double v) {
          for (int i = g.size() / 2; i > 0; i /= 2) {
            s[g.thread_rank()] = v;
            g.sync();
            if (g.thread_rank() < i) v += s[g.thread_rank() + i];
            g.sync();
          }
          return g.thread_rank() ? 0 : v;
        }""",
    )
    x, t = values(), np.arange(32)
    tiles = x.reshape(2, 16)
    before = (np.cumsum(tiles, 1) - tiles).ravel()
    sums = np.array([sum(x[j] for j in range(i // 16 * 16, i // 16 * 16 + 16) if j % 3 == i % 3) for i in t])
    third = x[t // 16 * 16 + 4 + t % 2]
    expected = before * sums + third + np.where(t % 8, 0, x.reshape(4, 8).sum(1).repeat(8)) + t
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_tiles_of_tiles_and_of_lanes_that_are_together() -> None:
    """A tile is numbered within what was divided, also where its type does not say that; lanes are tiled by rank."""
    subject = kernel(
        """auto block = cg::this_thread_block();
        cg::thread_block_tile<4> inner = cg::tiled_partition<4>(cg::tiled_partition<16>(block));
        cg::thread_block_tile<4> flat = cg::tiled_partition<4>(block);
        y[t] = x[t] * (numbered(inner) + 100 * numbered(flat));
        if (t % 3) y[t] += shared(cg::coalesced_threads(), x[t]);""",
        """#include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        namespace cg = cooperative_groups;
        __device__ int numbered(cg::thread_block_tile<4> g) { return g.meta_group_rank() + 10 * g.meta_group_size(); }
        __device__ double shared(cg::coalesced_group g, double v) {
          auto part = cg::tiled_partition(g, 3);
          return cg::reduce(part, v * v, cg::plus<double>()) * part.thread_rank();
        }""",
    )
    x, t = values(), np.arange(32)
    expected = x * (t % 16 // 4 + 10 * 4 + 100 * (t // 4 + 10 * 8))
    lanes = t[t % 3 > 0]
    for part in (lanes[i : i + 3] for i in range(0, len(lanes), 3)):
        expected[part] += (x[part] ** 2).sum() * np.arange(len(part))
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_one_thread_for_its_group_and_barriers_in_two_parts() -> None:
    subject = kernel(
        """auto block = cg::this_thread_block();
        auto tile = cg::tiled_partition<8>(block);
        __shared__ double s[2], all[32];
        double squared = cg::invoke_one_broadcast(tile, [&](double by) { return x[t] * x[t] * by; }, 3.0);
        auto third = cg::binary_partition(tile, t % 3 == 0);
        double least = cg::invoke_one_broadcast(third, [&] { return x[t]; });
        all[t] = squared * least;
        cg::invoke_one(block, [&] { s[0] = sin(x[5]); });
        auto token = block.barrier_arrive();
        double mine = x[t] * least;
        block.barrier_wait(static_cast<cg::thread_block::arrival_token &&>(token));
        y[t] = mine * s[0] + all[31 - t];""",
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;",
    )
    x, t = values(), np.arange(32)
    first = [next(q for q in range(k // 8 * 8, 32) if (q % 3 == 0) == (k % 3 == 0)) for k in range(32)]
    all_ = 3 * x[t // 8 * 8] ** 2 * x[first]
    np.testing.assert_allclose(subject.run((), [x])[0], x * x[first] * np.sin(x[5]) + all_[::-1], rtol=1e-13)
    agree(three_way(subject, [x]))


def test_halves_between_lanes() -> None:
    signature = "n: i32, x: f16[n,2], out y: f32[n]"
    subject = native(
        """#include <cuda_fp16.h>
        extern "C" __global__ void k(int n, const __half2 *x, float *y) {
          __half2 v = x[threadIdx.x], w = __shfl_xor_sync(~0u, v, 1);
          w += __hmax2(v, -v);
          y[threadIdx.x] = __half2float(__hadd(w.x, w.y)) * __half2float(hexp2(__shfl_up_sync(~0u, v.x, 1)));
        }""",
        signature,
        {"n": 32},
        1,
        32,
    )
    x = values(64).astype(np.float16).reshape(32, 2)
    w = x.reshape(16, 2, 2)[:, ::-1].reshape(32, 2) + np.abs(x)
    expected = (w[:, 0] + w[:, 1]).astype(np.float32) * np.exp2(
        x[np.maximum(np.arange(32) - 1, 0), 0].astype(np.float32)
    )
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=3e-3)


def test_directed_rounding() -> None:
    """Beside exact fractions; derivatives are those of the operations."""
    subject = kernel(
        """double a = x[t], b = x[(t + 1) % 32] - 0.5, c = -x[(t + 7) % 32];
        double found[6] = {__dadd_rd(a, b), __dsub_ru(a, b), __dmul_rz(a, b), __ddiv_ru(a, b),
                           __fma_rd(a, b, c), __dsqrt_ru(a)};
        y[t] = found[t % 6];""",
        "",
    )
    x, t = values(), np.arange(32)
    (y,) = subject.run((), [x])
    for i, (a, b, c) in enumerate(zip(x, x[(t + 1) % 32] - 0.5, -x[(t + 7) % 32], strict=True)):
        a, b, c = Fraction(a), Fraction(b), Fraction(c)
        found, below, above = (Fraction(v) for v in (y[i], np.nextafter(y[i], -np.inf), np.nextafter(y[i], np.inf)))
        exact = (a + b, a - b, a * b, a / b, a * b + c, None)[i % 6]
        match i % 6:
            case 0 | 4:
                assert found <= exact < above
            case 1 | 3:
                assert below < exact <= found
            case 2:
                assert (found <= exact < above) if exact > 0 else (below < exact <= found)
            case _:
                assert below * below < a <= found * found
    agree(three_way(subject, [x]))


@pytest.mark.parametrize("way", ["thread", "block"])
def test_copies_beside_other_work(way: str) -> None:
    """Each thread by itself, in two halves; and all of a block, with a barrier that counts."""
    body = {
        "thread": """__shared__ double s[2][32];
        __pipeline_memcpy_async(&s[0][t], x + t, 8);
        for (int i = 0; i < 3; i++) {
          if (i < 2) __pipeline_memcpy_async(&s[(i + 1) & 1][t], x + 32 * (i + 1) + t, 8);
          __pipeline_commit();
          __pipeline_wait_prior(i < 2);
          __syncthreads();
          y[32 * i + t] = s[i & 1][31 - t] * x[t];
          __syncthreads();
        }""",
        "block": """auto block = cooperative_groups::this_thread_block();
        __shared__ double s[32];
        __shared__ cuda::barrier<cuda::thread_scope_block> all;
        if (t == 0) init(&all, block.size());
        block.sync();
        for (int i = 0; i < 3; i++) {
          cuda::memcpy_async(block, s, x + 32 * i, 32 * sizeof(double), all);
          all.arrive_and_wait();
          y[32 * i + t] = s[31 - t] * x[t];
          all.wait(all.arrive());
        }""",
    }[way]
    subject = kernel(body, "#include <cuda_pipeline.h>\n#include <cuda/barrier>", n=96)
    x = values(96)
    expected = (x.reshape(3, 32)[:, ::-1] * x[:32]).ravel()
    np.testing.assert_allclose(subject.run((), [x])[0], expected, rtol=1e-13)
    agree(three_way(subject, [x]))


def test_several_integers_in_a_word() -> None:
    subject = kernel(
        """unsigned a = 0x80ff017fu + t, b = 0x7f01ff80u, low = 0xffu;
        y[t] = (__vadd4(a, b) & low) + (__vmaxs2(a, b) >> 16) + __vsadu4(a, b) + (__vcmpgtu2(a, b) & 7)
          + (__vabsdiffs4(a, b) & low) + (__vaddss2(a, b) >> 16) + (__vavgu4(a, b) & low) + (__vnegss4(a) & low);""",
        "",
    )
    t = np.arange(32)
    low = (0x7F + t) & 0xFF  # the lowest byte of a; its upper half is 0x80ff
    signed = low.astype(np.int8).astype(int)
    expected = (low + 0x80) % 256 + 0x7F01 + (1 + 254 + 254) + abs(low - 0x80) + 7 * (0x17F + t > 0xFF80)
    expected = (
        expected
        + abs(signed + 128) % 256
        + (0x80FF + 0x7F01) % 65536
        + (low + 0x81) // 2
        + np.minimum(-signed, 127) % 256
    )
    np.testing.assert_array_equal(subject.run((), [values()])[0], expected)


def test_functions_of_the_host_are_not_for_kernels() -> None:
    with pytest.raises(CompileError, match="rand"):
        kernel("y[t] = rand() * x[t];", "#include <cstdlib>")


@pytest.mark.parametrize(
    ("state", "known"),
    [
        ("curandState", [2084792631, 1387130457, 1638986637]),
        ("curandStatePhilox4_32_10_t", [2874394069, 2304117015, 4112307437]),
    ],
)
def test_random_numbers_are_those_of_curand(state: str, known: list[int]) -> None:
    """`known`: of cuRAND 10.3 with the same arguments."""
    subject = native(
        f"""#include <curand_kernel.h>
        extern "C" __global__ void k(const double *x, double *y, unsigned *numbers) {{
          int t = threadIdx.x; {state} s;
          curand_init(0x123456789abcdefull, 15838ull * t, 12345ull * t, &s);
          for (int i = 0; i < 3; i++) {{ unsigned number = curand(&s); if (t == 2) numbers[i] = number; }}
          float u = curand_uniform(&s), v = curand_log_normal(&s, 0.0f, 1.0f);
          double z = curand_normal_double(&s) + curand_normal_double(&s);
          y[t] = exp(-u * x[t]) + v * x[t] + z * x[t] * x[t];
        }}""",
        "x: f64[4], out y: f64[4], out numbers: u32[3]", {}, 1, 4,
    )  # fmt: skip
    assert list(subject.run((), [values(4)])[1]) == known
    agree(three_way(subject, [values(4)]), 1e-6, 1e-6)
