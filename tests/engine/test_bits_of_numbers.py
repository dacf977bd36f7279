"""Arithmetic on the bits of numbers, as libraries of elementary functions have it: derivatives, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.ad.facts.causes import BITS, MADE, Cause
from jax_enzyme.errors import DifferentiationError
from tests.engine.test_refusals import build, is_of, steps
from tests.support.engine import Native, agree, native, pulled
from tests.support.engine import one_way as three_way

HEAD = """#include <math.h>
#include <stdint.h>
#include <string.h>
static inline uint64_t bits(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
static inline double number(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }
static inline uint32_t bits4(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
static inline float number4(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
#define HIGH(x) *(1 + (int *)&x)
#define LOW(x) *(int *)&x
"""

SMOOTH = (
    "double v = x * x; HIGH(v) += 3 << 20; return v;",
    "union { double d; uint64_t u; } v = {x * x}; v.u += (uint64_t)floor(x) << 52; return v.d;",
    "uint64_t u = bits(x); int e = (int)(u >> 52 & 0x7ff) - 1022;\n"
    "return log(number((u & ~(0x7ffull << 52)) | 1022ull << 52)) + e * 0.6931471805599453;",
    "uint64_t u = bits(x), t = u - 0x3fe6000000000000; int e = (int64_t)t >> 52;\n"
    "return log(number(u - (t & 0xfffull << 52))) + e * 0.6931471805599453;",
    "int h = bits(x) >> 32, e = -1023; if (h < 0x3ff00000) { e -= 54; x *= 0x1p54; h = bits(x) >> 32; }\n"
    "e += h >> 20; h &= 0xfffff; int i = (h + 0x95f64) & 0x100000; e += i >> 20;\n"
    "x = number((uint64_t)(h | (i ^ 0x3ff00000)) << 32 | (uint32_t)bits(x));\n"
    "return log(x) + e * 0.6931471805599453;",
    "uint32_t h = bits(x) >> 32; h += 0x3ff00000 - 0x3fe6a09e; int e = (int)(h >> 20) - 0x3ff;\n"
    "h = (h & 0xfffff) + 0x3fe6a09e; x = number((uint64_t)h << 32 | (bits(x) & 0xffffffff));\n"
    "return log(x) + e * 0.6931471805599453;",
    "static const uint64_t t[4] = {0x3ff0000000000000, 0x3feb06fe0a31b715, 0x3fe6a09e667f3bcd, 0x3fe6e89f995ad3ad};\n"
    "double z = 5.770780163555854 * x + 0x1.8p52; uint64_t k = bits(z); z -= 0x1.8p52;\n"
    "double r = x - z * 0.17328679513998632, s = number(t[k % 4] + (k << 50));\n"
    "return s + s * (r + r * r * (0.5 + r * (1 / 6. + r * (1 / 24. + r * (1 / 120. + r / 720)))));",
    "static const struct { double a; uint64_t t[8]; } d = {1, {0, 0x3ff0000000000000, 0, 0x3feb06fe0a31b715, 0, "
    "0x3fe6a09e667f3bcd, 0, 0x3fe6e89f995ad3ad}};\n"
    "double z = 5.770780163555854 * x + 0x1.8p52; uint64_t k = bits(z), i = 2 * (k % 4); z -= 0x1.8p52;\n"
    "double r = x - z * 0.17328679513998632 + number(d.t[i]), s = number(d.t[i + 1] + (k << 50));\n"
    "return s + s * (r + r * r * (0.5 + r * (1 / 6. + r * (1 / 24. + r * (1 / 120. + r / 720)))));",
    "double h = x * x, v = h; LOW(h) = 0; double l = v - h; return h * h + l * (v + h);",
    "double h = number((bits(x) + (1ull << 31)) & (-1ull << 32)), l = x - h; return h * h + l * (x + h);",
    "double y = number(0x5fe6eb50c7b537a9 - (bits(x) >> 1)); return y * (1.5 - 0.5 * x * y * y);",
    "double y = number(bits(x) / 3 + 0x2a9f7893782da1ce); return (2 * y + x / (y * y)) / 3;",
    "return number((int64_t)(6497320848556798.0 * x + 4606794787981047000.0)) + x;",
    "double m = number((bits(x) & 0xfffffffffffff) | 0x3fe0000000000000);\n"
    "return (int64_t)bits(x) * 0x1p-52 - 124.2255 - 1.49803 * m - 1.72588 / (0.3520887 + m);",
    "return (int64_t)bits(-x) * 0x1p-52 + number((int64_t)bits(-x) / 2 - (1ll << 61));",
    "double s = 0; uint64_t u = bits(x); for (int i = 0; i < 3; i++) { u += 1ull << 52; s += sin(number(u)); }\n"
    "return s;",
    "double y = sin(x) + 2; return number((bits(x * x) & 0xfff0000000000000) | (bits(y) & 0xfffffffffffff));",
    "uint64_t u = bits(x * x); return number(x > 30 ? 1 : x > 1 ? u + 1 : u - 1) * x;",
    "double v = x * x, w = number(bits(v) + (x > 1 ? -(1 << 28) : 5)); return w * w + (v - w) * (v + w);",
    "return x * x * (double)((int)(bits(x) >> 52 & 0x7ff) - 1023);",
    "int64_t b = bits(x * x), c = bits(x + 3); return number(b > c ? b : c);",
    "int64_t best = 0; for (int i = 0; i < 4; i++) { int64_t v = bits(sin(x + i)); best = best > v ? best : v; }\n"
    "return x * number(best);",
    "uint64_t u = bits(x); uint32_t top = u >> 52; if (top - 1 >= 0x7fe) { if (u >> 63) {\n"
    "u &= -1ull >> 1; top &= 0x7ff; }\n"
    "if (top == 0) { u = bits(x * 0x1p52) & -1ull >> 1; u -= 52ull << 52; } } uint64_t t = u - 0x3fe6955500000000;\n"
    "double z = number(u - (t & 0xfffull << 52)), h = number((bits(z) + (1ull << 31)) & (-1ull << 32));\n"
    "return log(z) + ((int64_t)t >> 52) * 0.6931471805599453 + (z - h) * (z + h) + h * h;",
)  # fmt: skip
"""Each a function of x, smooth where it is tested."""

ROUNDED = {
    "low_word": ("f64", "return number(bits(x * x) & 0xffffffff00000000) * x;", 1e-5),
    "neighbour": ("f64", "return number(bits(x * x) + 1) * x;", 1e-12),
    "flag_in_the_last_bit": ("f64", "return number((bits(x * x) & ~1ull) | (x > 1)) * x;", 1e-12),
    "inverse_root_by_bits": (
        "f32",
        "float y = number4(0x5f3759df - (bits4(x) >> 1)); for (int i = 0; i < 3; i++) y *= 1.5f - 0.5f * x * y * y;\n"
        "return x * x * x * x / (y * y * x * x);",
        1e-3,
    ),
    "power_by_the_high_word": (
        "f64",
        "int h = bits(x) >> 32, p = 2.0 * (h - 1072632447) + 1072632447; double y = number((uint64_t)p << 32);\n"
        "return x * x * x + 1e-9 * y;",
        1e-5,
    ),
    "bf16_truncated": ("f32", "return number4(bits4(x * x) >> 16 << 16) * x;", 1e-2),
    "tf32_rounded": ("f32", "return number4((bits4(x * x) + 0x1000) & 0xffffe000) * x;", 1e-3),
    "tf32_and_the_rest": (
        "f32",
        "float v = x * x, h = number4(bits4(v) & 0xffffe000); return h * x + (v - h) * x;",
        1e-3,
    ),
    "bf16_compared": (
        "f32",
        "float v = x * x, h = number4(bits4(v) & 0xffff0000); return (h > x ? h : fabsf(h)) * x;",
        1e-2,
    ),
}
"""x cubed, its square rounded, and how far off the derivative is."""

REFUSED = {
    "cut_at_a_place_that_depends_on_the_number": (
        "f64", "int e = (int)(bits(x) >> 52) - 1023; return x * number(bits(x) & ~0ull << (20 + e));", BITS
    ),
    "node_of_a_table": (
        "f32",
        "static const float t[128] = {1, 2, 3}; uint32_t m = (bits4(x) & 0x7fffff) | 0x3f800000;\n"
        "float c = number4(m & 0xffff0000); return t[m >> 16 & 127] + (number4(m) - c) / c;",
        BITS,
    ),
    "node_of_a_table_by_a_conversion": (
        "f64",
        "static const double t[16] = {1, 2, 3}; double h = number(bits(x) & -1ull << 45);\n"
        "return t[(int)((h - 1) * 16)] + log1p((x - h) / h);",
        BITS,
    ),
    "node_of_a_table_by_a_search": (
        "f64",
        "static const double t[16] = {1, 2, 3}; double h = number(bits(x) & -1ull << 44); int i = 0;\n"
        "while (i < 15 && h >= 1 + (i + 1) / 16.0) i++; return t[i] + (x - h) * 3;",
        BITS,
    ),
    "node_that_is_rounded_by_another_function": (
        "f64", "double v = x * x, h = number(bits(v) & -1ull << 45); return floor(h * 16) * 0.3 + (v - h) * 2;", BITS
    ),
    "half_an_octave": ("f64", "return x * number(bits(x * x) + (x > 1 ? 1ull << 51 : 3));", BITS),
    "six_digits": ("f64", "return x * number(bits(x) & -1ull << 46);", BITS),
    "logarithm_as_an_integer": ("f64", "return ((double)(int)(bits(x) >> 45) - 130944) / 128;", BITS),
    "product_as_a_sum": ("f64", "return number(bits(x) + bits(x + 1) - (1023ull << 52));", BITS),
    "bits_of_two_numbers": ("f64", "return (double)(int64_t)(bits(x) - bits(x * x));", BITS),
    "bits_that_are_scattered": ("f64", "return (double)(int64_t)(bits(x) * 6364136223846793005);", BITS),
    "bits_that_are_scattered_and_cut": (
        "f64", "return (double)((int64_t)(bits(x) * 6364136223846793005) >> 61);", BITS
    ),
    "first_bits_that_are_scattered": (
        "f64", "return (double)((int)((uint32_t)(bits(x) >> 32) * 1103515245u) >> 29);", BITS
    ),
    "exponential_beside_the_rest": (
        "f64",
        "double z = x * 0x1p32, r = z - floor(z);\n"
        "return number(((uint64_t)(int64_t)z << 20) + (1023ull << 52)) * (1 + r * 1e-9);",
        MADE,
    ),
    "bits_that_choose": (
        "f64",
        "static const double t[16] = {1, 2, 3}; uint64_t u = bits(x);\n"
        "return (int64_t)u * 0x1p-52 + t[u >> 48 & 15];",
        BITS,
    ),
    "exponential_of_few_digits": ("f64", "return number((int64_t)(x * 0x1p16 + 0x3ff0000) << 36);", MADE),
    "exponential_beside_a_table": (
        "f64",
        "static const double t[16] = {1, 2, 3}; int64_t k = (int64_t)(x * 0x1p32 + 0x3ff00000);\n"
        "return number((uint64_t)k << 20) * t[k & 15];",
        MADE,
    ),
    "exponential_by_a_sum_that_rounds": (
        "f64", "return number((bits(x * 1512775.3951951856 + 0x1.8p52) + 1072632447) << 32);", MADE
    ),
    "table_that_says_a_part_of_the_digits": (
        "f64",
        "static const uint64_t t[4] = {1, 2, 3, 4}; uint64_t u = bits(x * 1512775.3951951856 + 0x1.8p52);\n"
        "return number(t[u & 3] + ((u + 1072632447) << 32));",
        MADE,
    ),
    "table_that_says_the_first_digits_alone": (
        "f64",
        "static const uint64_t t[4] = {1, 2, 3, 4}; int64_t k = (int64_t)(x * 1512775.3951951856);\n"
        "double y = number(t[(k & 0xfffff) >> 18] + ((uint64_t)k << 32)); return y + ((k & 0xfffff) == 77);",
        MADE,
    ),
    "table_for_the_digits_of_a_shorter_number": (
        "f64",
        "static const uint64_t t[8] = {1, 2, 3, 4}; int64_t k = (int64_t)(x * 0x1p32);\n"
        "return number(t[k & 7] + ((uint64_t)k << 20));",
        MADE,
    ),
}  # fmt: skip


def kernel_of(kind: str, body: str) -> Native:
    type_ = "double" if kind == "f64" else "float"
    return native(f"{HEAD}{type_} k({type_} x) {{\n{body}\n}}", "k", f"x: {kind} -> {kind}", {})


@pytest.mark.parametrize("x", [0.7, 1.9, 5.3])
def test_smooth(x: float) -> None:
    functions = "".join(f"static double f{i}(double x) {{\n{body}\n}}\n" for i, body in enumerate(SMOOTH))
    calls = "".join(f"  y[{i}] = f{i}(x[{i}]);\n" for i in range(len(SMOOTH)))
    source = f"{HEAD}{functions}void k(const double *x, double *y) {{\n{calls}}}"
    n = len(SMOOTH)
    agree(three_way(native(source, "k", f"x: f64[{n}], out y: f64[{n}]", {}), [np.full(n, x)]), 1e-8, 1e-5)


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded(name: str) -> None:
    kind, body, tolerance = ROUNDED[name]
    kernel = kernel_of(kind, body)
    x = np.asarray(1.37, np.float64 if kind == "f64" else np.float32)
    one = np.ones_like(x)
    (forward,) = kernel.run((steps(kernel)["forward"],), [x, one])[1:]
    (reverse,) = pulled(kernel, (steps(kernel)["reverse"],), [x], [one], {})
    assert abs(forward - 3 * x * x) <= tolerance * 6
    assert abs(reverse - forward) <= 1e-6


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    kind, body, cause = REFUSED[name]
    kernel = kernel_of(kind, body)
    with pytest.raises(DifferentiationError) as caught:
        build(kernel, steps(kernel)["forward"])
    assert isinstance(cause, Cause)
    assert is_of(caught.value, cause)
