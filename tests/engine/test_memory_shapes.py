"""Kernels whose memory is like that of old programs: records that are copied and sorted, lists, trees, tables, pools,
words that hold several things, atomic numbers, file-scope variables (`memory_shapes/*.c`).

With what the compiler's own types tell; some also at -O0, where nothing is told, and at -O3, with words in vectors.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import cycle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ir.arrays import Vjp
from tests.support.engine import Native, agree, by_turns, native, three_way

FOLDER = Path(__file__).parent / "memory_shapes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.c"))
IN_SINGLE = ("two_floats_in_a_word",)
ROUNDED = (
    "complex_members", "places_that_hold_pointers_numbers_and_integers_in_turn",
    "records_of_two_precisions_copied", "records_of_two_precisions_sorted",
    "records_returned_by_recursive_functions", "records_returned_by_value", "records_that_are_sorted_into_classes",
    "records_that_are_swapped_by_value", "records_that_are_swapped_byte_for_byte", "tables_of_several_kinds_that_grow",
    "two_floats_in_a_word",
)  # fmt: skip
"""Kernels with parts in single precision."""
AT_LEVELS = (
    "constant_tables_of_pointers", "heap_of_records", "layers_with_their_numbers", "numbers_behind_a_header",
    "packed_records_copied", "records_of_two_precisions_sorted", "records_that_are_swapped_by_value",
    "records_with_pointers_copied_and_moved", "words_that_are_copied", "wide_records_sorted_twice",
)  # fmt: skip
X = np.array([0.83, 1.41, 0.62, 1.07, 0.39, 1.23])


def vector(name: str) -> str:
    return "n: i32, x: T[n], out y: T[n]".replace("T", "f32" if name in IN_SINGLE else "f64")


def check(kernel: Native, name: str, turn: int) -> None:
    rounded = name in ROUNDED
    x = X.astype(np.float32) if name in IN_SINGLE else X
    numbers = three_way(kernel, [x], step=3e-5 if rounded else 1e-6, sweeps=by_turns(turn))
    agree(numbers, 1e-4 if rounded else 1e-8, 2e-2 if rounded else 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_three_way(name: str) -> None:
    check(native((FOLDER / f"{name}.c").read_text(), "k", vector(name), {"n": X.size}), name, NAMES.index(name))


@pytest.mark.parametrize(("name", "level"), [*zip(AT_LEVELS, cycle(("-O0", "-O3")), strict=False)])
def test_levels(name: str, level: str, tmp_path: Path) -> None:
    target = tmp_path / "kernel.ll"
    command = [sys.executable, "-m", "ziglang", "cc", "-S", "-emit-llvm", "-g0", "-fno-sanitize=all", "-UNDEBUG", "-w"]
    command += [level, str(FOLDER / f"{name}.c"), "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    check(native(target.read_text(), "k", vector(name), {"n": X.size}, lang="llvm"), name, NAMES.index(name) + 1)


@pytest.mark.parametrize("name", ["list_that_is_kept_in_order", "search_tree"])
def test_of_one_node(name: str) -> None:
    """Functions that are only called with null."""
    kernel = native((FOLDER / f"{name}.c").read_text(), "k", vector(name), {"n": 1})
    agree(three_way(kernel, [X[:1]]))


def test_what_one_call_leaves_in_file_scope_variables_does_not_reach_the_next() -> None:
    source = (FOLDER / "file_scope_variables_of_a_recursive_function.c").read_text()
    kernel = native(source, "k", vector(""), {"n": X.size})
    first, second = (kernel.run((), [X])[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


HALVES = """
#include <stdint.h>
#include <string.h>
static float wide(uint16_t h) { uint32_t b = (uint32_t)h << 16; float f; memcpy(&f, &b, 4); return f; }
static uint16_t narrow(float f) { uint32_t b; memcpy(&b, &f, 4); return (b + 0x7fff + ((b >> 16) & 1)) >> 16; }
void k(int n, const uint16_t *h, const float *x, float *y) {
    uint16_t kept[16];
    for (int i = 0; i < n; i++) kept[i] = narrow(x[i] * x[i]);
    for (int i = 0; i < n; i++) y[i] = wide(kept[i]) * wide(h[i]);
}"""


def test_half_numbers_in_words() -> None:
    kernel = native(HALVES, "k", "n: i32, h: bf16[n], x: f32[n], out y: f32[n]", {"n": 6})
    h, x, one = X.astype(ml_dtypes.bfloat16), X.astype(np.float32), np.ones(6, np.float32)
    (value,) = kernel.run((), [h, x])
    short = (x * x).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(value, short.astype(np.float32) * h.astype(np.float32))
    of_h, of_x = kernel.run((Vjp((True, True, False), (False, False, True)),), [h, x, one])
    np.testing.assert_array_equal(of_h, short)
    np.testing.assert_allclose(of_x, 2 * x * h.astype(np.float32), rtol=1e-2)


PACKED = """
    #include <stdlib.h>
    #include <string.h>
    static size_t put(char *b, size_t at, const double *v, int m) {
        memcpy(b + at, &m, 4), memcpy(b + at + 4, v, m * sizeof *v);
        return at + 4 + m * sizeof *v;
    }
    static size_t get(const char *b, size_t at, double *v, int *m) {
        memcpy(m, b + at, 4), memcpy(v, b + at + 4, *m * sizeof *v);
        return at + 4 + *m * sizeof *v;
    }
    void k(int n, const double *x, double *y) {
        char *b = malloc(512), *c = malloc(512);
        double u[8];
        size_t end = 0, at = 0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j <= i; j++) u[j] = x[j] * x[i];
            end = put(b, end, u, i + 1);
        }
        memcpy(c, b, end);
        for (int m, i = 0; at < end; i++) {
            at = get(c, at, u, &m);
            y[i] = 0;
            for (int j = 0; j < m; j++) y[i] += u[j] * u[j] * (j + 1);
        }
        free(b), free(c);
    }
"""


def test_numbers_that_nobody_can_find_are_never_wrong() -> None:
    """Arrays packed behind counters of four bytes, and copied as a whole: where they stand is not known when the
    derivative is made. Forward mode copies all bytes; reverse mode has no number then, rather than another one."""
    numbers = three_way(native(PACKED, "k", vector("packed"), {"n": X.size}), [X])
    assert np.isclose(numbers.forward, numbers.differences, rtol=1e-6)
    assert np.isnan(numbers.reverse)


def test_blocks_that_are_freed_by_way_of_others() -> None:
    """One is freed where a second may be, and that where one of any size may be: none of them is kept on the tape."""
    source = """#include <math.h>
#include <stdlib.h>
double f(const int at[2], const double x[5]) {
  double *a = malloc(512), *b = malloc(512), *c = malloc(at[0] * 80), s = 0;
  for (int k = 0; k < 64; k++) a[k] = x[k % 5] * x[(k + 1) % 5];
  for (int j = 0; j < 4; j++)
    for (int k = 1; k < 64; k++) s += sin(a[k] * a[k - 1]) * a[(k * at[0] + j) % 64];
  for (int k = 0; k < at[0] * 10; k++) c[k] = x[k % 5];
  b[0] = x[1];
  double *first[2] = {a, b}, *second[2] = {b, c};
  int odd = at[1] > 3;
  s += first[odd][0] * second[1][3];
  free(first[odd]);
  for (int k = 0; k < at[0] * 10; k++) s += c[k] * x[k % 5] * sin(c[k] * k);
  free(second[odd]);
  free(c);
  return s;
}"""
    f = je.kernel(source, "f", "at: i32[2], x: f64[5] -> f64", lang="c")
    je.check_grads(lambda x: f(np.array([5, 0], np.int32), x), (X[:5],), order=1, modes=("rev",))
