"""Intrinsics of x86's vector instructions: derivatives by three ways, and results beside those of the instructions."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.errors import NoRuleError
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.support.engine import native

DOUBLES = """
#include <immintrin.h>
void k(const double *x, double *y) {
  __m256d a = _mm256_loadu_pd(x), b = _mm256_loadu_pd(x + 4), h = _mm256_hadd_pd(a, _mm256_hsub_pd(b, a));
  __m256i some = _mm256_set_epi64x(-1, 0, -1, x[0] > 1 ? -1 : 0);
  __m256d c = _mm256_blendv_pd(a, b, _mm256_sub_pd(a, b)), less = _mm256_cmp_pd(a, b, _CMP_LT_OQ);
  __m256d g = _mm256_mask_i32gather_pd(c, x, _mm_set_epi32(1, 3, 0, 2), less, 8);
  __m256d p = _mm256_permutevar_pd(_mm256_addsub_pd(a, g), _mm256_set_epi64x(2, x[1] > 0 ? 2 : 0, 0, 2));
  __m256d s = _mm256_mul_pd(_mm256_mul_pd(h, p), _mm256_maskload_pd(x + 2, some));
  _mm256_storeu_pd(y, _mm256_round_pd(s, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
  _mm256_maskstore_pd(y, some, s);
  __m128d u = _mm256_castpd256_pd128(a), v = _mm256_castpd256_pd128(b), dot = _mm_dp_pd(u, v, 0x31);
  __m128d first = _mm_cmplt_sd(u, v), chosen = _mm_or_pd(_mm_and_pd(first, u), _mm_andnot_pd(first, dot));
  y[4] = _mm_cvtsd_f64(chosen) * _mm256_movemask_pd(less) * _mm256_testz_pd(a, c);
  _mm_storeu_pd(y + 5, _mm_mul_pd(_mm_max_sd(u, dot), _mm_round_sd(u, dot, _MM_FROUND_TO_ZERO)));
  y[7] = _mm_comigt_sd(u, v) ? x[0] * _mm_cvtsd_si32(v) : x[1] * _mm_cvttsd_si32(u);
  __m256d whole = _mm256_cvtepi32_pd(_mm256_cvttpd_epi32(b)), turned = _mm256_fmsubadd_pd(a, whole, g);
  __m256i moved = _mm256_lddqu_si256((const __m256i *)(x + 1)), masks = _mm256_castpd_si256(less);
  __m256d sums = _mm256_fmaddsub_pd(turned, _mm256_castsi256_pd(moved), b);
  _mm256_storeu_pd(y + 8, _mm256_testc_si256(masks, _mm256_set1_epi64x(-1)) ? sums : _mm256_mul_pd(sums, a));
}
"""
FLOATS = """
#include <immintrin.h>
void k(const float *x, float *y) {
  __m256 a = _mm256_loadu_ps(x), b = _mm256_hadd_ps(_mm256_addsub_ps(a, _mm256_mul_ps(a, a)), a);
  __m256 c = _mm256_dp_ps(b, _mm256_rcp_ps(a), 0x75), d = _mm256_mul_ps(_mm256_rsqrt_ps(a), c);
  __m128 e = _mm256_castps256_ps128(d), f = _mm_mul_ps(_mm_rsqrt_ss(e), _mm_min_ss(e, _mm256_extractf128_ps(b, 1)));
  _mm256_storeu_ps(y, _mm256_add_ps(d, _mm256_permutevar8x32_ps(b, _mm256_set_epi32(0, 7, x[0] > 0, 2, 5, 4, 3, 6))));
  _mm_storeu_ps(y + 8, _mm_add_ps(_mm_insert_ps(f, e, 0x62), _mm256_cvtpd_ps(_mm256_cvtps_pd(e))));
}
"""


def in_numpy(x: jax.Array) -> jax.Array:
    """What FLOATS computes, without the rounding of approximate reciprocals."""
    square = x * x
    turned = jnp.where(jnp.arange(8) % 2 == 0, x - square, x + square)
    pairs, own = (v.reshape(4, 2).sum(1) for v in (turned, x))
    b = jnp.concatenate([pairs[:2], own[:2], pairs[2:], own[2:]])
    products = (b / x).reshape(2, 4)[:, :3].sum(1)
    d = (products[:, None] * jnp.array([1.0, 0, 1, 0])).ravel() / jnp.sqrt(x)
    e = d[:4]
    f = jnp.concatenate([(jnp.minimum(e[0], b[4]) / jnp.sqrt(e[0]))[None], e[1:] * e[1:]])
    inserted = jnp.stack([f[0], jnp.zeros_like(f[1]), e[1], f[3]])
    return jnp.concatenate([d + b[jnp.array([6, 3, 4, 5, 2, 1, 7, 0])], inserted + e])


@pytest.mark.parametrize("x", [[0.7, 2.3, -1.6, 5.9, 3.3, 0.4, -2.5, 1.2], [4.2, 1.1, 3.7, -0.3, 0.6, 2.8, 0.9, 7.4]])
def test_double_precision(x: list[float]) -> None:
    kernel = je.kernel(DOUBLES, "k", "x: f64[8], out y: f64[12]", lang="c", flags=("-mavx2", "-mfma"))
    je.check_grads(kernel, (np.array(x),), modes=("fwd", "rev"))


MASKED = """
#include <immintrin.h>
__attribute__((target("avx512f"))) void k(const double *x, double *y) {
  __m512d a = _mm512_loadu_pd(x), b = _mm512_mul_pd(a, a), one = _mm512_set1_pd(1);
  __mmask8 m = _mm512_cmp_pd_mask(a, one, _CMP_LT_OQ);
  __m512i places = _mm512_set_epi64(3, 5, 1, 0, 3, 2, 7, 4);
  __m512d c = _mm512_mask_compress_pd(b, m, a), d = _mm512_mask_expand_pd(c, m, b);
  __m512d g = _mm512_mask_i64gather_pd(d, m, places, x, 8), r = _mm512_floor_pd(_mm512_mul_pd(a, g));
  _mm512_storeu_pd(y, _mm512_fmaddsub_pd(c, d, _mm512_mul_pd(r, g)));
  _mm512_mask_i64scatter_pd(y, m, places, _mm512_add_pd(d, g), 8);
  __m512i signed_ = _mm512_ternarylogic_epi64(_mm512_set1_epi64(1L << 63), _mm512_castpd_si512(g),
                                              _mm512_castpd_si512(_mm512_sub_pd(a, one)), 0xac);
  _mm512_storeu_pd(y + 8, _mm512_mul_pd(_mm512_castsi512_pd(signed_), c));
}
"""


@pytest.mark.skipif("avx512f" not in Path("/proc/cpuinfo").read_text(), reason="no such instructions")
def test_masks() -> None:
    kernel = je.kernel(MASKED, "k", "x: f64[8], out y: f64[16]", lang="c")
    x = np.array([0.7, 2.3, 1.6, 0.9, 3.3, 0.4, 2.5, 0.2])
    je.check_grads(kernel, (x,))


@pytest.mark.skipif("avx512vl" not in Path("/proc/cpuinfo").read_text(), reason="no such instructions")
def test_vectors_of_which_a_half_is_gathered_and_scattered() -> None:
    """Two `float` by indices of 64 bits: what is gathered has zeros behind them."""
    source = """
    #include <immintrin.h>
    __attribute__((target("avx512f,avx512vl"))) void k(const float *x, float *y) {
      __m128 a = _mm_loadu_ps(x), g = _mm_mmask_i64gather_ps(a, 1, _mm_set_epi64x(1, 2), x, 4);
      for (int i = 0; i < 4; i++) y[i] = x[0];
      _mm_mask_i64scatter_ps(y, 3, _mm_set_epi64x(3, 1), _mm_mul_ps(a, g), 4);
      _mm_storeu_ps(y + 4, _mm_mul_ps(g, g));
    }"""
    kernel = je.kernel(source, "k", "x: f32[4], out y: f32[8]", lang="c")
    x = np.array([3, 5, 7, 11], np.float32)
    np.testing.assert_array_equal(kernel(x), [3, 21, 3, 25, 49, 25, 0, 0])
    expected = np.zeros((8, 4))
    expected[[0, 1, 1, 2, 3, 4, 5], [0, 0, 2, 0, 1, 2, 1]] = [1, 7, 3, 1, 10, 14, 10]
    np.testing.assert_array_equal(jax.jacrev(kernel)(x), expected)
    np.testing.assert_array_equal(jax.jacfwd(kernel)(x), expected)


def test_what_the_vectoriser_breaks_is_made_without_it() -> None:
    """LLVM 22 has a value used before it is made here, and the process ends where its code is generated."""
    source = """
    #include <immintrin.h>
    double k(const double *x) {
      __m256d v = _mm256_loadu_pd(x), m = _mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_GT_OQ);
      __m256d s = _mm256_mul_pd(v, _mm256_and_pd(v, m)), p = _mm256_blendv_pd(_mm256_set1_pd(1.5), v, m);
      __m256d t = s + _mm256_permute4x64_pd(v, 0x1b) * p;
      double r = t[0] + 2 * t[1] + 3 * t[2] * t[3];
      for (int i = 4; i < 7; i++) r += x[i] * x[i] * x[i];
      return r;
    }
    """
    kernel = je.kernel(source, "k", "x: f64[7] -> f64", lang="c", flags=("-mavx2",))
    je.check_grads(kernel, (np.array([0.3, -1.2, 0.7, 2.1, 1.5, -0.4, 0.9]),))


def test_single_precision() -> None:
    kernel = je.kernel(FLOATS, "k", "x: f32[8], out y: f32[12]", lang="c", flags=("-mavx2",))
    x = jnp.array([0.7, 2.3, 1.6, 0.9, 3.3, 0.4, 2.5, 1.2], jnp.float32)
    np.testing.assert_allclose(kernel(x), in_numpy(x), rtol=1e-2)
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(mode(kernel)(x), mode(in_numpy)(x), rtol=1e-2, atol=1e-2)


ROUNDED = """
#include <immintrin.h>
__attribute__((target("avx512bf16,avx512vl"))) void k(const float *x, float *y) {
  __m128bh r = _mm256_cvtneps_pbh(_mm256_loadu_ps(x));
  _mm_storeu_ps(y, (__m128)r);
}
"""


def test_an_instruction_that_is_not_there_is_refused_at_its_line() -> None:
    """LLVM would end the process. (Of processors that round to bfloat so, this instruction is left alone.)"""
    with pytest.raises(je.CompileError, match=r"(?s)no instruction for the intrinsic `llvm\.x86\..*kernel\.c:4"):
        je.kernel(ROUNDED, "k", "x: f32[8], out y: f32[4]", lang="c")


@pytest.mark.parametrize("flags", [(), ("-mavx",)])
def test_extrema_in_assembly(flags: tuple[str, ...]) -> None:
    """As Eigen has them for clang. Where an operand is no number, the other way round it would be the result."""
    source = """
    #include <immintrin.h>
    #ifdef __AVX__
    #define OP(op, r, a, b) asm("v" op " %1, %2, %0" : "=x"(r) : "x"(a), "x"(b))
    #else
    #define OP(op, r, a, b) r = b; asm(op " %1, %0" : "+x"(r) : "x"(a))
    #endif
    void k(const double *x, double *y) {
      __m128d a = _mm_loadu_pd(x), b = _mm_loadu_pd(x + 2), lo, hi;
      OP("minpd", lo, a, b);
      OP("maxpd", hi, a, b);
      _mm_storeu_pd(y, _mm_mul_pd(lo, lo));
      _mm_storeu_pd(y + 2, _mm_mul_pd(hi, _mm_mul_pd(hi, hi)));
    }
    """
    kernel = je.kernel(source, "k", "x: f64[4], out y: f64[4]", lang="c", flags=flags)
    x = jnp.array([1.5, 2.5, 3.0, jnp.nan])
    assert kernel(x).tolist() == [1.5**2, 2.5**2, 27.0, 2.5**3]
    assert jax.grad(lambda x: kernel(x).sum())(x).tolist() == [3.0, 5.0 + 3 * 2.5**2, 27.0, 0.0]
    tangent = jax.jvp(kernel, (x,), (jnp.ones(4),))[1]
    assert tangent.tolist() == [3.0, 5.0, 27.0, 3 * 2.5**2]


@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("code", ['"sqrtsd %1, %0" : "=x"(r) : "x"(x)', '"sqrtsd %0, %0" : "=&x"(r) : "0"(x)'])
def test_roots_of_inline_assembly(kind: str, code: str) -> None:
    """As musl and Rust's libm have them."""
    wide = kind == "f64"
    code, real = (code, "double") if wide else (code.replace("sqrtsd", "sqrtss"), "float")
    source = f"{real} k({real} x) {{ {real} r; __asm__({code}); return r * x; }}"
    kernel = je.kernel(source, "k", f"x: {kind} -> {kind}", lang="c")
    x = jnp.asarray(2.25, float if wide else jnp.float32)
    assert kernel(x) == 3.375
    assert jax.jvp(kernel, (x,), (jnp.ones_like(x),))[1] == 2.25
    assert jax.grad(kernel)(x) == 2.25
    assert jax.grad(jax.grad(kernel))(x) == 0.5


@pytest.mark.parametrize(
    "call",
    [
        "__builtin_ia32_scalefpd512_mask(a, b, a, -1, 4)",
        "__builtin_ia32_getmantpd512_mask(a, 2, a, 15, 4)",
        "a * __builtin_ia32_getexppd512_mask(b, b, -1, 4)",
        "__builtin_ia32_rcp14pd512_mask(a, a, -1)",
        "__builtin_ia32_rsqrt14pd512_mask(a, b, 15)",
        "__builtin_ia32_reducepd512_mask(a, 0, a, -1, 4)",
        "__builtin_ia32_rangepd512_mask(a, b, 5, a, -1, 4)",
    ],
)
def test_what_has_no_rule_is_refused(call: str) -> None:
    """Also on processors that have not got the instruction: a derivative is refused before there is code."""
    source = f"""typedef double V __attribute__((vector_size(64)));
    __attribute__((target("avx512f,avx512dq"))) double k(const double *x) {{
      V a = x[0] - (V){{}}, b = x[1] - (V){{}};
      return ({call})[0];
    }}"""
    kernel = native(source, "k", "x: f64[2] -> f64", {})
    for step in (Jvp((True, False)), Vjp((True, False), (False, True))):
        with pytest.raises(NoRuleError, match=r"(?s)llvm\.x86\.avx512.*kernel\.c:4"):
            kernel.run((step,), [])
