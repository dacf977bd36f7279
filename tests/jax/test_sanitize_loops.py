"""Loops whose accesses are checked in front of them, and library functions: what is wrong is found in both."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import uses
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.sanitize.affine import Affine
from jax_enzyme.transform.sanitize.counting import counter_of
from jax_enzyme.transform.sanitize.provenance import may_be_found

CHECKED = je.Options(sanitize=True, time_limit=5)
X = np.arange(1.0, 5.0)
MADE = "double *a = malloc(8 * n); double s = 0; for (int i = 0; i < n; i++) a[i] = x[i];"
ROWS = """double **a = malloc(n * sizeof *a); double s = 0;
for (int i = 0; i < n; i++) { a[i] = calloc(n, 8); a[i][0] = x[i]; }"""
ROOM = "double b[64] = {0}; double s = x[0];"
FLAT = """struct { int m; double *a; } *g = malloc(sizeof *g); double s = 0; g->m = n; g->a = malloc(8 * n * n);
for (int i = 0; i < n; i++) for (int j = 0; j < g->m; j++) g->a[i * n + j] = x[j];"""
OUTSIDE, FREED = "outside of the bounds", "use after free"
LOOPS = {
    "test_of_a_sum": (MADE, "for (int i = 0; i + -3 < n; i++) s += a[i];", OUTSIDE),
    "test_of_a_sum_at_the_end": (MADE, "int i = 0; do { s += a[i]; i += 3; } while (i + -3 < n);", OUTSIDE),
    "misses_its_end": (ROOM, "for (int i = n; i + 1 != n; i++) s += b[i];", OUTSIDE),
    "wraps_around": (ROOM, "for (unsigned i = n; i >= 0; i--) s += b[i];", OUTSIDE),
    "wraps_in_the_next": (ROOM, "for (unsigned i = n; i - 1 >= 0u; i--) s += b[i];", OUTSIDE),
    "index_wraps": (ROOM, "for (int i = 0; i < n; i++) s += b[(unsigned)(i - 1)];", OUTSIDE),
    "product_wraps": (MADE, "for (unsigned i = 0; i < 6; i++) s += a[i * (1u << 30) + i];", OUTSIDE),
    "backwards": (MADE, "for (int i = n - 1; i > -2; i--) s += a[i];", OUTSIDE),
    "pointers": (MADE, "for (double *p = a; p <= a + n; p++) s += *p;", OUTSIDE),
    "pointers_miss_their_end": (ROOM, "for (double *p = b; p != b + 65; p += 2) s += *p;", OUTSIDE),
    "pointer_in_front": (MADE, "double *p = a + n; for (int i = 0; i <= n; i++) s += *--p;", OUTSIDE),
    "second_counter": (MADE, "for (int i = 0, j = n - 1; i <= n; i++, j--) s += a[j];", OUTSIDE),
    "second_counter_wraps": (ROOM, "unsigned j = 2; for (int i = 0; i < n; i++, j--) s += b[j];", OUTSIDE),
    "two_at_a_time": (MADE, "for (int i = 0; i != 6; i += 2) s += a[i];", OUTSIDE),
    "unless_it_is_the_end": (MADE, "for (int i = 0; !(i == n + 1); i++) s += a[i];", OUTSIDE),
    "descriptor_that_moves": (
        "struct { double *p; long at[1]; } t = {malloc(8 * n), {0}}, u; double s = 0; t.p[0] = t.p[1] = x[0];",
        "for (int i = 0; i < 3; i++) { u = t; s += u.p[u.at[0]]; t.at[0] -= i; }",
        OUTSIDE,
    ),
    "last_row": (
        FLAT,
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += g->a[i * n + j + (i == n - 1)];",
        OUTSIDE,
    ),
    "row_too_many": (
        FLAT,
        "for (int i = 0; i <= n; i++) for (int j = 0; j < g->m; j++) s += g->a[i * g->m + j];",
        OUTSIDE,
    ),
    "below_the_diagonal": (
        FLAT,
        "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) s += g->a[i * (n + 1) + j];",
        OUTSIDE,
    ),
    "upwards_and_down": (
        FLAT,
        "for (int i = n; i > 0; i--) for (int j = 0; j != n; j++) s += g->a[(i - 2) * n + j];",
        OUTSIDE,
    ),
    "three_deep": (
        FLAT,
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < 2; k++) s += g->a[i * n + j + k];",
        OUTSIDE,
    ),
    "width_that_moves": (
        FLAT,
        "for (int i = 0; i < 3; i++) for (int j = 0; j < g->m; j++) { s += g->a[i * n + j]; if (i == 1) g->m += 2; }",
        OUTSIDE,
    ),
    "freed_between": (
        FLAT,
        "for (int i = 0; i < n; i++) { if (i == 2) free(g->a); for (int j = 0; j < n; j++) s += g->a[i * n + j]; }",
        FREED,
    ),
    "unwritten_in_a_nest": (
        "double *a = malloc(8 * n * n), s = 0; for (int i = 0; i < n * n; i++) if (i != 6) a[i] = x[i % n];",
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += 2 * a[i * n + j];",
        "reads what nothing wrote: allocated memory, index 6",
    ),
    "element_of_an_array": (
        "double t[3], s = 0; t[0] = x[0]; t[1] = x[1];",
        "s = t[0] * t[1] * t[2];",
        "reads what nothing wrote: local variable `t`, index 2",
    ),
    "on_a_condition": (MADE, "for (int i = 0; i < n; i++) if (x[i] > 3.5) s += a[2 * i];", OUTSIDE),
    "until_a_break": (MADE, "for (int i = 0; i < 99; i++) { s += a[i]; if (s > 1e9) break; }", OUTSIDE),
    "row_that_moves": (
        ROWS,
        "for (int i = 0; i < n; i++) { s += a[1][i]; if (i == 1) a[1] += 2; s += a[1][i]; }",
        OUTSIDE,
    ),
    "bound_that_moves": (
        "struct { int m; double *p; } t = {n, malloc(8 * n)}; double s = 0;",
        "for (int i = 0; i < t.m; i++) { t.p[i] = x[i]; if (i == 2) t.m += 3; }",
        OUTSIDE,
    ),
    "row_that_is_freed": (ROWS, "for (int i = 0; i < n; i++) { s += a[1][i]; if (i == 1) free(a[1]); }", FREED),
    "new_in_each_iteration": (
        "double s = 0;",
        "for (int i = 0; i < n; i++) { double *p = malloc(8); if (i < 3) *p = x[i]; s += 2 * *p; free(p); }",
        "reads what nothing wrote",
    ),
    "written_behind_the_read": (
        "double *a = malloc(8 * n), s = 0;",
        "for (int i = 0; i < n; i++) { s += 2 * a[i]; a[i] = 1; }",
        "reads what nothing wrote",
    ),
}
CALLS = {
    "strcpy": ("char b[4]; double s;", 'strcpy(b, n > 2 ? "hello" : "a"); s = b[0];', OUTSIDE),
    "strcat": ('char d[8] = "12345"; double s;', 'strcat(d, "abc"); s = d[0];', OUTSIDE),
    "strlen": ("char b[4]; double s;", 'memcpy(b, "abcd", 4); s = strlen(b);', OUTSIDE),
    "sprintf": ("char b[4]; double s;", 'sprintf(b, "%d", n * 1000); s = b[0];', OUTSIDE),
    "printf": ("char b[4]; double s = 1;", 'memcpy(b, "abcd", 4); printf("%d%% %*s %s", n, 3, "a", b);', OUTSIDE),
    "of_a_precision": ("char b[2]; double s = 1;", 'memcpy(b, "ab", 2); fprintf(stderr, "%.*s", n, b);', OUTSIDE),
    "of_null": ('double s = 1; const char *t = n > 1 ? 0 : "a";', 'snprintf(0, 0, "%s", t);', "null"),
    "memcmp": ("double b[3] = {0}; double s;", "s = memcmp(b, x, 8 * n);", OUTSIDE),
    "frexp": ("int *e = malloc(2); double s;", "s = frexp(x[0], e);", OUTSIDE),
    "of_freed": ("char *t = malloc(8); double s;", 'strcpy(t, "a"); free(t); s = strlen(t);', FREED),
    "free_of_a_local": (
        "double b[4] = {0}, *p = b, s = 0;",
        "if (n > 1) free(p);",
        "frees local variable `b`, which was not allocated",
    ),
    "free_of_an_argument": (
        "double *p = (double *)x, s = 0;",
        "free(n > 3 ? p : 0);",
        "frees argument `x`, which was not allocated",
    ),
}
WRONG = LOOPS | {f"call_{name}": case for name, case in CALLS.items()}
SOURCE = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + "\n".join(
    f"double {name}(int n, const double *x) {{\n{' '.join(start.split())}\n{body}\nreturn s * x[0];\n}}"
    for name, (start, body, _) in WRONG.items()
)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_at_its_line(name: str) -> None:
    _, body, what = WRONG[name]
    line = 1 + SOURCE.splitlines().index(body, SOURCE.splitlines().index(f"double {name}(int n, const double *x) {{"))
    kernel = je.kernel(SOURCE, name, "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"{re.escape(what)}(?s:.*)\(kernel\.c:{line}\b"):
        jax.block_until_ready(kernel(X))


RIGHT = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double k(int n, const double *x) {
  char b[16], t[8];
  strcpy(b, "abc");
  strncat(b, "defgh", 3);
  strncpy(t, "abcdefgh", 8);
  int m = snprintf(t, 8, "%d%d", n, 1000), e;
  sprintf(t + m, "%s%.*s%.1s", "1", 1, (char[]){'2'}, (char[]){0});
  double c[8], whole, s = strlen(b) + (strchr(b, 'd') - b) + atoi(t) + frexp(x[1], &e) + modf(x[2], &whole) + e;
  int i = 0;
  do { c[i] = x[i]; } while (++i != n);
  for (i = n; i-- > 0;) s = 2 * s + c[i];
  for (unsigned j = 0; j + 1 < (unsigned)n; j++) s += x[j] * c[j + 1];
  for (unsigned j = n; j >= 1; j -= 2) s += c[j - 1];
  for (long j = n - 1; j >= 0; j -= 3) s -= x[j] / c[j];
  for (const double *p = x, *q = c + n; p != x + n; ++p) s += *p * *--q;
  for (const double *p = x + n; p > x; p -= 2) s += p[-1];
  for (int j = 0, u = n, v = -n; u-- > 0; j++, v += 2) s += c[j] * x[(v + n) / 2] + x[u];
  double *w = malloc(8 * n * n), **rows = malloc(8 * n);
  for (int j = 0; j < n; j++) rows[j] = w + j * n;
  for (int j = 0; j < n; j++) for (int l = 0; l <= j; l++) rows[j][l] = w[l * n + j] = x[l] + j;
  for (int j = n - 1; j >= 0; j--)
    for (int l = j; l < n; l++)
      for (int q = 0; q < 2; q++) s += w[j * n + l - q * l] * (q + 1);
  free(rows), free(w);
  struct { double *at; int start[2]; } own = {c, {1, 0}}, copy;
  for (int j = 1; !(j == n); j++) { copy = own; s -= copy.at[j - copy.start[0]] * copy.at[copy.start[1]]; }
  return s;
}
"""
COUNTERS = """
define double @f(ptr %x, i64 %members) {
entry:
  br label %loop
loop:
  %left = phi i64 [ 9, %entry ], [ %less, %body ]
  %i = phi i32 [ 1, %entry ], [ %next, %body ]
  %p = phi ptr [ %x, %entry ], [ %behind, %body ]
  %goes = icmp sgt i64 %left, 0
  %stops = xor i1 %goes, true
  br i1 %stops, label %done, label %body
body:
  %wide = sext i32 %i to i64
  %half = lshr i64 %members, 32
  %sum = add i64 %wide, %half
  %at = getelementptr double, ptr %p, i64 %sum
  %next = add i32 %i, 1
  %less = sub i64 %left, 1
  %behind = getelementptr i8, ptr %p, i64 16
  br label %loop
done:
  ret double 0.0
}
"""


def test_what_moves_on_by_a_constant_follows_the_counter() -> None:
    module = parse(COUNTERS)
    function = module.functions["f"]
    (loop,) = Loops.of(function).all
    counter = counter_of(loop)
    assert counter is not None and counter.phi.name == "left"
    affine = Affine(loop, {loop: counter}, DataLayout(module), None)
    at = next(i for i in function.instructions() if i.name == "at")
    assert affine.is_linear(at) and affine.root(at) is function.arguments[0]


def test_right_loops_and_calls_stay_right() -> None:
    plain, checked = (
        je.kernel(RIGHT, "k", "n: i32, x: f64[n] -> f64", lang="c", options=je.Options(sanitize=sanitize))
        for sanitize in (False, True)
    )
    assert plain(X) == checked(X)


def test_derivatives_of_a_wrong_loop_fail_as_it_does() -> None:
    kernel = je.kernel(SOURCE, "backwards", "n: i32, x: f64[n] -> f64", lang="c", options=CHECKED)
    directions = (np.ones(4),)
    derivatives = {
        "jvp": lambda x: jax.jvp(kernel, (x,), directions)[1],
        "vjp": lambda x: jax.vjp(kernel, x)[1](1.0)[0],
        "jit of grad": jax.jit(jax.grad(kernel)),
        "batch": jax.vmap(jax.grad(kernel)),
    }
    for name, derivative in derivatives.items():
        x = np.stack([X, X]) if name == "batch" else X
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"`backwards`(?s:.*){OUTSIDE}.*index -1, extent 4"):
            jax.block_until_ready(derivative(x))


VARIABLES = """
declare void @f(ptr)
declare void @_FortranAAssign(ptr)
declare i64 @je_checked_outside(ptr, i64)
define i64 @k(ptr %x, i64 %i) {
  %plain = alloca [4 x i64]
  %stored = alloca i64
  %handed = alloca i64
  %number = alloca i64
  %descriptor = alloca [4 x i64]
  %inside = getelementptr i64, ptr %plain, i64 %i
  store i64 1, ptr %inside
  %where = ptrtoint ptr %inside to i64
  %far = add i64 %where, 8
  %beyond = icmp ugt i64 %far, 40
  %told = call i64 @je_checked_outside(ptr null, i64 %far)
  %step = getelementptr i8, ptr %stored, i64 0
  store ptr %step, ptr %x
  call void @f(ptr %handed)
  %as = ptrtoint ptr %number to i64
  call void @_FortranAAssign(ptr %descriptor)
  ret i64 %as
}
"""


def test_the_run_time_is_told_of_variables_whose_address_may_come_back() -> None:
    function = parse(VARIABLES).functions["k"]
    users = uses(function)
    found = {i.name for i in function.instructions() if isinstance(i, I.Alloca) and may_be_found(i, users)}
    assert found == {"stored", "handed", "number"}
