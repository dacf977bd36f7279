"""Nests of loops that are checked in front: tables of indices, of bounds and of rows, and windows. What is wrong in the
first, a middle or the last iteration is found where it is; what is right stays so."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.sanitize import outside

X = np.arange(1.0, 8.0)
INDICES = "int t[7]; for (int i = 0; i < n; i++) t[i] = i;"
CLEAR = "for (int i = 0; i < n; i++) y[i] = 0;"
SPARSE = f"""int r[8], t[14]; {CLEAR} for (int i = 0; i <= n; i++) r[i] = 2 * i;
for (int i = 0; i < 2 * n; i++) t[i] = i % n;"""
OF_ROWS = "for (int i = 0; i < n; i++) for (int j = r[i]; j < r[i + 1]; j++) y[i] += x[t[j]];"
TABLE = f"""double **a = malloc(8 * n); {CLEAR}
for (int i = 0; i < n; i++) {{ a[i] = malloc(8 * n); for (int j = 0; j < n; j++) if (!LEFT_OUT) a[i][j] = x[j]; }}"""
WHOLE = TABLE.replace("LEFT_OUT", "0")
BY_COLUMNS = "for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) y[i] += a[i][j];"
WINDOW = """for (int i = 1; i < n - 1 + (p == 6); i++) for (int j = 1 - (p == 0) * 9; j < n - 1; j++)
for (int a = -1; a < 2; a++) for (int b = -1; b < 2; b++) y[i] += u[(i + a) * n + j + b];"""
PRODUCT = f"""{CLEAR} double **m[3]; for (int k = 0; k < 3; k++) {{ m[k] = malloc(8 * n);
for (int i = 0; i < n; i++) {{ m[k][i] = malloc(8 * n); for (int j = 0; j < n; j++) m[k][i][j] = x[j] + k * i; }} }}
double **c = m[0], **a = m[1], **b = m[2];"""
SUMS = """for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)
for (int k = 0; k < n; k++) c[i][j] += a[i][k] * b[k][j];
for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i] += c[i][j];"""
BAD, LONG = "index 7, extent 7", "argument `x`: index 7, extent 7"
CASES: dict[str, tuple[str, str, str | dict[int, str]]] = {
    "gather": (f"{INDICES} t[p] = n;", "for (int i = 0; i < n; i++) y[i] = x[t[i]];", LONG),
    "gather_backwards": (f"{INDICES} t[p] = -1;", "for (int i = 0; i < n; i++) y[i] = x[t[n - 1 - i]];", "index -1,"),
    "scatter": (
        f"long t[7]; {CLEAR} for (int i = 0; i < n; i++) t[i] = i; t[p] = n;",
        "for (int i = 0; i < n; i++) y[t[i]] += x[i];",
        "argument `y`: index 7, extent 7",
    ),
    "gather_by_what_nothing_wrote": (
        "int *t = malloc(4 * n); for (int i = 0; i < n; i++) if (i != p) t[i] = i;",
        "for (int i = 0; i < n; i++) y[i] = x[t[i]];",
        "reads what nothing wrote: allocated memory, index P",
    ),
    "members": (
        "struct { int a, b; } t[7]; for (int i = 0; i < n; i++) { t[i].a = 99; t[i].b = i; } t[p].b = n;",
        "for (int i = 0; i < n; i++) y[i] = x[t[i].b];",
        LONG,
    ),
    "downwards_in_steps": (
        "int t[21]; for (int i = 0; i < 21; i++) t[i] = i % 3 == 2 ? i / 3 : 88; t[3 * p + 2] = -4;",
        "for (int i = 20; i >= 0; i -= 3) y[i / 3] = x[t[i]];",
        "index -4, extent 7",
    ),
    "twice": (
        f"{INDICES} int u[7]; for (int i = 0; i < n; i++) u[i] = n - 1 - i; u[p] = n;",
        "for (int i = 0; i < n; i++) y[i] = x[u[t[i]]];",
        LONG,
    ),
    "remainder": ("", "for (int i = 0; i < n; i++) y[i] = x[(i + p) % (n + 1)];", {1: LONG, 3: LONG, 6: LONG}),
    "remainder_of_less": ("", "for (int i = 0; i < n; i++) y[i] = x[(i - p - 1) % n];", {0: "index -1,", 6: "index -"}),
    "choice": ("", "for (int i = 0; i < n; i++) y[i] = x[i == p ? n : i];", LONG),
    "sparse": (f"{SPARSE} t[2 * p + 1] = n;", OF_ROWS, LONG),
    "sparse_row_too_long": (f"{SPARSE} r[p + 1] = 15;", OF_ROWS, "variable `t`: index 14, extent 14"),
    "sparse_row_too_early": (f"{SPARSE} r[p] = -2;", OF_ROWS, "variable `t`: index -2, extent 14"),
    "window": (
        f"double u[49]; {CLEAR} for (int i = 0; i < 49; i++) u[i] = i;",
        WINDOW,
        {0: "variable `u`: index -9, extent 49", 6: "variable `u`: index 49, extent 49"},
    ),
    "window_over_what_nothing_wrote": (
        f"double *u = malloc(8 * 49); {CLEAR} for (int i = 0; i < 49; i++) if (i != 8 + p) u[i] = i;",
        WINDOW.replace("(p == 6)", "0").replace("(p == 0)", "0"),
        {0: "allocated memory, index 8 ", 6: "allocated memory, index 14 "},
    ),
    "short_row": (f"{WHOLE} a[p] = calloc(n - 1, 8);", BY_COLUMNS, "allocated memory: index 6, extent 6"),
    "null_row": (f"{WHOLE} a[p] = 0;", BY_COLUMNS, "at a null pointer"),
    "freed_row": (f"{WHOLE} free(a[p]);", BY_COLUMNS.replace("y[i] += a[i][j]", "a[i][j] = 2"), "use after free"),
    "row_with_a_gap": (
        TABLE.replace("LEFT_OUT", "(i == p && j == p)"),
        BY_COLUMNS,
        "reads what nothing wrote: allocated memory, index P",
    ),
    "in_front_of_a_row": (WHOLE, BY_COLUMNS.replace("a[i][j]", "a[i][j - (i == p)]"), "index -1, extent 7"),
    "table_that_moves": (
        INDICES,
        "for (int i = 0; i < n; i++) { y[i] = x[t[i]]; t[6] += i == p; }",
        {0: LONG, 3: LONG},
    ),
    "row_that_moves": (
        WHOLE,
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { y[i] += a[i][j]; if (i == 0 && j == p) a[6] += 1; }",
        {0: BAD, 3: BAD},
    ),
    "row_that_is_the_table": (
        f"{WHOLE} a[p] = (double *)a;",
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) a[i][j] = 0;",
        {0: "at a null pointer", 3: "at a null pointer"},
    ),
    "bound_that_moves": (
        SPARSE,
        "for (int i = 0; i < n; i++) for (int j = r[i]; j < r[i + 1]; j++) { y[i] += t[j]; if (i == p) r[7] = 15; }",
        {0: "variable `t`: index 14, extent 14", 3: "variable `t`: index 14, extent 14"},
    ),
    "sum_onto_what_nothing_wrote": (
        "double *o = malloc(8 * 49); for (int i = 0; i < 49; i++) if (i != 8 * p) o[i] = 0; y[0] = o[1];",
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int a = 0; a < 3; a++) o[i * n + j] += x[a];",
        {0: "allocated memory, index 0 ", 6: "allocated memory, index 48 "},
    ),
    "gap_in_a_local": (
        CLEAR,
        "for (int i = 0; i < n; i++) { double t[3]; for (int c = 0; c < 3; c++) if (i != p || c != 2) t[c] = x[i]; "
        "for (int c = 0; c < 3; c++) y[i] += 2 * t[c]; }",
        "reads what nothing wrote: local variable `t`, index 2 ",
    ),
    "constants_and_no_end": (
        f"unsigned c = 0; {CLEAR}",
        "for (int i = 0; i < n; i++) for (unsigned a = 3; a >= 0u; a--) c += a * p; y[0] = c;",
        {0: "its time limit is over"},
    ),
    "product_with_a_flag": (
        CLEAR,
        "for (int i = 0; i < n; i++) { int q; y[i] = __builtin_mul_overflow(i, p, &q) ? 0 : x[q]; }",
        {0: "", 3: "index 9, extent 7", 6: "index 12, extent 7"},
    ),
    "product_of_rows": (f"{PRODUCT} a[p] = b[p];", SUMS, ""),
    "product_of_short_rows": (f"{PRODUCT} b[p] = calloc(n - 1, 8);", SUMS, "allocated memory: index 6, extent 6"),
    "product_of_unwritten_rows": (
        f"{PRODUCT} b[p] = malloc(8 * n);",
        SUMS,
        "reads what nothing wrote: allocated memory, index 0 ",
    ),
    "product_of_crooked_rows": (
        f"{PRODUCT} a[p] = (double *)((char *)malloc(8 * n + 8) + 1);",
        SUMS,
        "at an address that is no multiple of 8",
    ),
    "product_into_itself": (f"{PRODUCT} c[p] = a[n - 1 - p];", SUMS, ""),
    "product_into_its_table": (f"{PRODUCT} if (p == 6) c = (double **)c[0];", SUMS, {0: "", 6: "at a null pointer"}),
    "one_of_two_behind_a_table": (
        f"{INDICES} double *o = malloc(8 * n); for (int i = 0; i < n; i++) o[i] = i; const double *v = x;",
        """for (int i = 0; i < n; i++) { y[i] = x[t[i]]; if (x[i] > 3) v = o; }
for (int i = 0; i < n + (p == 6); i++) y[i] += v[i];""",
        {0: "", 6: f"allocated memory: {BAD}"},
    ),
    "beside_an_end": (
        CLEAR,
        "for (int i = 0; i < n; i++) { if (i > p - 1) y[i] += x[i - 1]; if (i + 1 < n) y[i] += x[i + 1]; }",
        {0: "argument `x`: index -1, extent 7", 3: "", 6: ""},
    ),
    "marked": (
        f"{INDICES} t[p] = -1; t[1] = p == 6 ? n : 1;",
        "for (int i = 0; i < n; i++) { y[i] = 0; int q = t[i]; if (q >= 0) y[i] = x[q]; }",
        {0: "", 3: "", 6: LONG},
    ),
    "greatest": (
        "int o = p == 6;",
        """for (int i = 0; i < n; i++) { int b = i; for (int j = i + 1; j < n; j++) if (x[j] > x[b]) b = j + o;
y[i] = x[b]; }""",
        {0: "", 3: "", 6: LONG},
    ),
    "least_of_three": (
        "int o = 3 + (p == 6);",
        """for (int i = 0; i < n; i++) { double a[3] = {x[i], 3.0, x[n - 1 - i]}, *m = a;
for (int j = 1; j < o; j++) if (a[j] < *m) m = a + j; y[i] = *m; }""",
        {0: "", 3: "", 6: "local variable `a`: index 3, extent 3"},
    ),
    "sum_that_wraps": (
        CLEAR,
        "for (int i = 0; i < n; i++) if ((int)(i + 2147483641u) > p - 9) y[i] += x[i + (p == 3)];",
        {0: "", 3: LONG, 6: ""},
    ),
    "right_with_marks": (f"{INDICES} t[p] = -1;", "for (int i = 0; i < n; i++) y[i] = t[i] < 0 ? 0 : x[t[i]];", ""),
    "right_with_empty_rows": (f"{SPARSE} for (int k = p; k <= n; k++) r[k] = 2 * p;", OF_ROWS, ""),
}
SOURCE = "#include <stdlib.h>\n" + "\n".join(
    f"void {name}(int n, int p, const double *x, double *y) {{\n{' '.join(start.split())}\n{' '.join(body.split())}\n}}"
    for name, (start, body, _) in CASES.items()
)
SIGNATURE = "n: i32, p: i32, x: f64[n], out y: f64[n]"


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_found_wherever_it_is(name: str) -> None:
    _, _, expected = CASES[name]
    line = 3 + SOURCE.splitlines().index(f"void {name}(int n, int p, const double *x, double *y) {{")
    plain, checked = (
        je.kernel(SOURCE, name, SIGNATURE, lang="c", options=je.Options(sanitize=sanitize, time_limit=limit))
        for sanitize, limit in ((False, None), (True, 2))
    )
    for p, what in expected.items() if isinstance(expected, dict) else [(p, expected) for p in (0, 3, 6)]:
        if not what:
            np.testing.assert_array_equal(checked(p, X), plain(p, X))
            continue
        words = re.escape(re.sub(r"\bP$", str(p), what))
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"{words}(?s:.*)\(kernel\.c:{line}\b"):
            jax.block_until_ready(checked(p, X))


def test_what_a_failing_loop_has_changed_is_put_back_for_the_second_run() -> None:
    body = """void k(int n, const double *x, double *y) { double *o = malloc(8 * n); o[0] = 1; y[0] += 1;
    for (int i = 0; i < n; i++) y[i] += o[y[0] == 1 ? i : 0] + o[i]; }"""
    kernel = je.kernel(
        f"#include <stdlib.h>\n{body}", "k", "n: i32, x: f64[n], inout y: f64[n]", lang="c",
        options=je.Options(sanitize=True),
    )  # fmt: skip
    with pytest.raises(jax.errors.JaxRuntimeError, match="allocated memory, index 1 "):
        jax.block_until_ready(kernel(X, np.zeros(7)))


def _kept(monkeypatch: pytest.MonkeyPatch, step: str) -> list[str]:
    """The texts of the modules that a step of making code will leave."""
    made: list[str] = []
    whole = getattr(outside, step)

    def kept(*given: object) -> object:
        result = whole(*given)
        made.append(to_text(result.module))
        return result

    monkeypatch.setenv("JAX_ENZYME_CACHE_DIR", "")
    monkeypatch.setattr(outside, step, kept)
    return made


def test_loops_are_unrolled_in_front_of_a_derivative_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _kept(monkeypatch, "with_checks")
    body = "void k(int n, const double *x, double *y) { for (int i = 0; i < n; i++) { double s = 0; LOOP y[i] = s; } }"
    source = body.replace("LOOP", "for (int a = 0; a < 3; a++) s += x[i] * x[i] * a;")
    kernel = je.kernel(source, "k", "n: i32, x: f64[n], out y: f64[n]", lang="c", options=je.Options(sanitize=True))
    jax.jit(jax.grad(lambda x: kernel(x).sum())).lower(X).compile()
    assert "llvm.loop.unroll.full" in made[0]


def test_nests_are_looked_at_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One choice for each nest, in front of it; tables of indices and of rows too."""
    made = _kept(monkeypatch, "sanitized")
    for name, word in (("sparse", "call i1 @je.least.most.4.4"), ("short_row", "call i32 @je_checked_rows_inside(")):
        kernel = je.kernel(SOURCE, name, SIGNATURE, lang="c", options=je.Options(sanitize=True))
        jax.jit(kernel).lower(0, X).compile()
        assert word in made[-1]


def test_conditions_and_choices_are_looked_at_in_front_of_a_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accesses have a check in the version that has one at all of them, and none in the other."""
    made = _kept(monkeypatch, "sanitized")
    for name, accesses in (("beside_an_end", 7), ("marked", 8), ("greatest", 4)):  # 10 without
        kernel = je.kernel(SOURCE, name, SIGNATURE, lang="c", options=je.Options(sanitize=True))
        jax.jit(kernel).lower(0, X).compile()
        assert made[-1].count("call i64 @je_checked_outside(") == accesses, name


def test_scopes_are_declared_where_control_comes_to_a_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows may have changed places when it comes there again, and a loop around may be unrolled."""
    made = _kept(monkeypatch, "sanitized")
    kernel = je.kernel(SOURCE, "product_of_rows", SIGNATURE, lang="c", options=je.Options(sanitize=True))
    jax.jit(kernel).lower(0, X).compile()
    lists = re.findall(r"@llvm\.experimental\.noalias\.scope\.decl\(metadata (!\d+)\)", made[-1])
    declared = {name for node in lists for name in re.findall(rf"^{node} = !{{(.*)}}$", made[-1], re.M)}
    assert declared and declared == set(re.findall(r'^(!\d+) = distinct !{!"je group"', made[-1], re.M))


TURNS = """#include <stdlib.h>
typedef struct { double **now, **then; } rows;
static void swap(long *a, long *b, int m) { for (int i = 0; i < m; i++) { long t = a[i]; a[i] = b[i]; b[i] = t; } }
void k(int n, const double *x, double *y) {
  rows *r = malloc(sizeof *r); r->now = malloc(8 * n); r->then = malloc(8 * n);
  for (int i = 0; i < n; i++) { r->now[i] = malloc(8 * n); r->then[i] = malloc(8 * n);
    for (int j = 0; j < n; j++) { r->now[i][j] = x[j]; r->then[i][j] = x[i]; } }
  for (int t = 0; t < 4; t++) {
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) r->then[i][j] = r->now[i][j - 1] + r->now[i - 1][j];
    swap((long *)&r->now, (long *)&r->then, n / 7);
  }
  for (int i = 0; i < n; i++) y[i] = r->now[i][i];
}"""


def test_nests_inside_of_a_loop_that_changes_what_they_go_over_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes turns in the loop over time is read in front of the two loops in it, and not only of the innermost."""
    made = _kept(monkeypatch, "sanitized")
    signature = "n: i32, x: f64[n], out y: f64[n]"
    kernel = je.kernel(TURNS, "k", signature, lang="c", options=je.Options(sanitize=True))
    np.testing.assert_array_equal(jax.jit(kernel)(X), je.kernel(TURNS, "k", signature, lang="c")(X))
    assert made[-1].count("call i32 @je_checked_rows_inside(") == 7  # 4 without the two loops
