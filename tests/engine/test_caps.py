"""Programs that are larger than what the engine looks at, one for each limit of its own: right or refused, never wrong.

`MADE` is a fast exponential: its mantissa is an integer that was computed from a number, and it comes to memory as one.
"""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.ad.facts.causes import MADE, PARTS, UNKNOWN_POINTER_CALL, Cause
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Jvp, Vjp
from tests.support.engine import Native, agree, native, three_way

HEAD = "#include <stdlib.h>\n#include <string.h>\nstatic long long fast(double x) {\n"
HEAD += "  return (long long)(6497320848556798.0 * x + 4606921278410026770.0);\n}\n"
SIGNATURE = "n: i32, at: i32[1], x: f64[n] -> f64"
X = np.array([0.31, 0.42, 0.53, 0.64, 0.75, 0.86])


def program(body: str, before: str = "") -> Native:
    """`body` has n = 6, at[0] = 2 and x, and adds to t."""
    source = (
        f"{HEAD}{before}\ndouble k(int n, const int *at, const double *x) {{\n  double t = 0;\n{body}\n  return t;\n}}"
    )
    return native(source, "k", SIGNATURE, {"n": 6})


def each(count: int, line: str) -> str:
    """A line for every number below `count`, which it has as `I`; `J` is the next."""
    return "\n".join(line.replace("I", str(i)).replace("J", str(i + 1)) for i in range(count))


def is_refused(kernel: Native, cause: Cause) -> None:
    wanted = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    seeded = tuple(b.is_result and b.is_floating for b in kernel.buffers)
    for step in (Jvp(wanted), Vjp(wanted, seeded)):
        with pytest.raises(DifferentiationError) as caught:
            kernel.run((step,), [])
        assert cause.what.partition("{")[0] in caught.value.cause


def is_right(kernel: Native, tolerance: float = 1e-8, step: float = 1e-6) -> None:
    agree(three_way(kernel, [np.array([2], np.int32), X], step=step), tolerance, max(1e-5, 1e4 * tolerance))


STORED = "for (int i = 0; i < n; i++) { long long b = fast(x[i]); memcpy(TO + 8 * i, &b, 8); }\n"
SQUARES = "for (int i = 0; i < n; i++) { double b = x[i] * x[i]; memcpy(TO + 8 * i, &b, 8); }\n"
SUM = "for (int i = 0; i < n; i++) { double v; memcpy(&v, FROM + 8 * i, 8); t += v * (i + 1); }\n"


def copied(count: int, fill: str) -> str:
    """From one memory to the next, with a hole in each, so that no optimiser sees through it."""
    memory = each(count + 1, "char *mI = malloc(8 * (size_t)n);\n")
    copies = each(count, "memcpy(mJ, mI, 8 * (size_t)n); memset(mI + 8 * at[0], 0, 8);\n")
    return memory + fill.replace("TO", "m0") + copies + SUM.replace("FROM", f"m{count}")


SHIFTED = """
  char *a = calloc(n + 200, 8);
  FILL
  for (int i = 0; i < 150 + at[0]; i++) memmove(a + 8, a, 8 * (size_t)(n + 180));
  double v;
  memcpy(&v, a + 8 * 152, 8);
  t = v;
"""
COMPUTED_ON = """
  char *a = malloc(8 * (size_t)n), *b = malloc(8 * (size_t)n);
  for (int i = 0; i < n; i++) { long long v = fast(x[i]); memcpy(a + 8 * i, &v, 8); }
  memcpy(b, a, 8 * (size_t)n);
  memset(a + 8 * at[0], 0, 8);
  for (int i = 0; i < n; i++) {
    long long v;
    memcpy(&v, b + 8 * i, 8);
    v += 1ll << 52;
    double d;
    memcpy(&d, &v, 8);
    t += d;
  }
"""
MANY_OBJECTS = "char *s[40];\n" + each(40, "s[I] = malloc(8 * (size_t)n + 8);\n") + "char *p = s[at[0] * 7 % 40] + 8;\n"
MOVED_ON = "char *a = malloc(400);\nchar *p = a;\n" + each(30, "if (at[0] == I + 10) p += 8;\n")
BEHIND_A_POINTER = "struct { char *p; int k; } s[3];\nfor (int i = 0; i < 3; i++) s[i].p = malloc(8 * (size_t)n);\n"
BEHIND_A_POINTER += "char *p = s[at[0] % 3].p;\n"
SWAPPED = """
  char a[8 * COUNT], b[8 * COUNT];
  for (int i = 0; i < COUNT; i++) {
    double v = x[i % 6] * x[i % 6] * (i + 1), w = x[i % 6];
    memcpy(a + 8 * i, &v, 8);
    memcpy(b + 8 * i, &w, 8);
  }
  for (int i = 0; i < 8 * COUNT; i++) { char c = a[i]; a[i] = b[i]; b[i] = c; }
  for (int i = 0; i < COUNT; i++) { double v; memcpy(&v, b + 8 * ((i + at[0]) % COUNT), 8); t += v * i; }
"""
TABLE = each(40, "static double fI(double x) { return x * J + x * x; }\n")
TABLE += "static double (*table[])(double) = {" + ", ".join(f"f{i}" for i in range(40)) + "};\n"

REFUSED = {
    "copies_4": (copied(4, STORED), MADE),
    "copies_9": (copied(9, STORED), MADE),
    "copies_around_a_cycle": (SHIFTED.replace("FILL", "long long b = fast(x[1]); memcpy(a, &b, 8);"), MADE),
    "copied_and_computed_with": (COMPUTED_ON, MADE),
    "many_objects": (MANY_OBJECTS + STORED.replace("TO", "p") + SUM.replace("FROM", "p"), MADE),
    "moved_on_often": (MOVED_ON + STORED.replace("TO", "p") + SUM.replace("FROM", "p"), MADE),
    "behind_a_pointer": (BEHIND_A_POINTER + STORED.replace("TO", "p") + SUM.replace("FROM", "p"), MADE),
    "long_swap_of_bytes": (SWAPPED.replace("COUNT", "33"), PARTS),
}

CARRIED = """
  long long q = 4607182418800017408ll;
  for (int i = 0; i < n; i++) {
    long long k = (long long)(1e14 * x[i]), r = q + k + at[0], v = (r << 60) + q;
    double d;
    memcpy(&d, &v, 8);
    t += d;
    q = r;
  }
"""
GIVEN = """double f(int n, long long b, const double *x) {
  double d;
  memcpy(&d, &b, 8);
  return n < 2 ? d * x[n] : f(n - 1, b, x) + 0.5 * f(n - 2, b, x);
}"""
RETURNED = """long long f(int n, const double *x) {
  if (n < 2) return fast(x[n]);
  long long p = f(n - 1, x), q = f(n - 2, x);
  return x[n] > 0.5 ? p : q;
}"""
GROWN = """
  long long *a = 0;
  for (int i = 0, room = 0; i < n; i++) {
    if (i >= room) {
      long long *b = malloc(8 * (size_t)(room += at[0]));
      if (a) memcpy(b, a, 8 * (size_t)i);
      free(a);
      a = b;
    }
    a[i] = fast(x[i]);
  }
  for (int i = 0; i < n; i++) { double v; memcpy(&v, a + i, 8); t += v; }
"""
LAST_OF_A_BLOCK = """
  long long *blocks[2] = {malloc(512), malloc(512)};
  blocks[at[0] / 2][63] = fast(x[0]);
  double *read = malloc(512);
  memcpy(read, blocks[at[0] - 1], 512);
  for (int i = 0; i < n; i++) t += read[(i + 58 + at[0] / 2) & 63] * x[i];
"""
BESIDE = """
  char *a = malloc(8 * (size_t)n + 64);
  for (int i = 0; i < n; i++) { long long b = fast(x[i]); memcpy(a + 16 + 8 * i, &b, 8); }
  for (int i = 0; i < n; i++) { double v; memcpy(&v, a + 8 * (i + at[0]), 8); t += v; }
"""
REFUSED["read_from_another_place_on"] = BESIDE, MADE
STREAM = """
  char *s = 0;
  size_t used = 0, room = 0;
  for (int i = 0; i < n; i++) {
    if (used + 9 > room) s = realloc(s, room = 2 * (used + 9));
    int high = (int)(1512775 * x[i] + 1072632447), low = 0;
    s[used] = 'd';
    memcpy(s + used + 1, &low, 4);
    memcpy(s + used + 5, &high, 4);
    used += 7 + at[0];
  }
  for (size_t i = 0; i < used; i += 7 + at[0]) { double v; memcpy(&v, s + i + 1, 8); t += v; }
"""
REFUSED["words_in_a_stream_of_bytes"] = STREAM, MADE
REFUSED["carried_around_a_loop"] = CARRIED, MADE
REFUSED["in_memory_that_grows"] = GROWN, MADE
REFUSED["at_the_end_of_a_block"] = LAST_OF_A_BLOCK, MADE


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, cause = REFUSED[name]
    is_refused(program(body), cause)


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("for (int i = 0; i < n; i++) t += f(4, fast(x[i]), x);", GIVEN),
        ("long long b = f(n - 1, x); memcpy(&t, &b, 8);", RETURNED),
    ],
    ids=["given", "returned"],
)
def test_refused_where_a_function_calls_itself(body: str, function: str) -> None:
    is_refused(program(body, function), MADE)


def test_a_call_that_may_be_of_too_many_functions() -> None:
    is_refused(
        program("for (int i = 0; i < n; i++) t += table[at[0] * 7 * i % 40](x[i]);", TABLE), UNKNOWN_POINTER_CALL
    )


PERMUTED = """for (int i = 0; i < n; i++) {
    float v = x[i] * x[i], w = x[i];
    memcpy(m0 + 8 * i, &v, 4);
    memcpy(m0 + 8 * i + 4, &w, 4);
  }
"""


def in_words(count: int) -> str:
    """Two numbers in a word, which goes from memory to memory by a permutation: each step is seen after the last."""
    memory = each(count + 1, "char *mI = malloc(8 * (size_t)n);\n")
    moves = each(count, "for (int i = 0; i < n; i++) memcpy(mJ + 8 * ((i + at[0]) % n), mI + 8 * i, 8);\n")
    last = f"float v, w; memcpy(&v, m{count} + 8 * i, 4); memcpy(&w, m{count} + 8 * i + 4, 4); t += v * w * (i + 1);"
    return f"{memory}{PERMUTED}{moves}for (int i = 0; i < n; i++) {{ {last} }}"


CONTROL = f"""
  int turns = 0;
  for (int i = 1; i < 12000; i = i * 2 % 7 + i) turns++;                      // run by hand only so far
  for (unsigned i = 0, b = 1; i != 5000; i += b, b ^= 0) t += x[i % 6] * 1e-3;
  t += turns * 1e-3 * x[0] * x[1];
  for (int i = 0; i < n; i++)                                                // of a degree that no polynomial has
    for (int j = 0; j < i; j++)
      for (int k = 0; k < j; k++)
        for (int l = 0; l < k; l++)
          for (int m = 0; m <= l; m++) t = t * 0.9 + x[m] * x[i] + x[j] * x[k];
  double s = t;
  {each(30, "if (at[0] < I + 3) { s += x[at[0] % 6] * s * 0.01;")}
  {"}" * 30}
  t += s;
  double g = x[0];
  {each(32, "if (x[I % 6] > 0.02 * I) g = g * x[J % 6] + 0.1; else g = g * g + 0.2;")}
  t += g * g;
"""
POINTERS = """
  struct { double v; double *p; long k; } r[140];
  double *far = malloc(140 * sizeof *far);
  for (int i = 0; i < 140; i++) {
    far[i] = x[i % 6] * (i + 1);
    r[i].v = x[i % 6] * x[0];
    r[i].k = i % 3;
  }
"""
POINTERS += each(140, "r[I].p = far + I;\n")
POINTERS += """
  struct { double v; double *p; long k; } c[140];
  memcpy(c, r, sizeof r);
  for (int i = 0; i < 140; i++) t += *c[i * at[0] % 140].p + c[i].v * c[i].k;
"""
PASSED_ON = "struct node { double (*f)(struct node *, double); struct node *next; double w; };\n"
PASSED_ON += "static double s0(struct node *s, double x) { return x * x * s->w; }\n"
PASSED_ON += each(6, """static double sJ(struct node *s, double x) {
  struct node *m = malloc(sizeof *m);
  m->w = s->w + 0.1 * x; m->f = sI; m->next = s;
  double r = x * m->f(m, x + 0.1);
  free(m);
  return r;
}""") + "\n"  # fmt: skip

WORK = """
  char *work = malloc(16 * (size_t)n), *k = work + 8 * (size_t)n;
  for (int i = 0; i < n; i++) {
    double w = x[i] * x[i];
    long long c = (long long)(x[i] * 9.03);
    memcpy(work + 8 * i, &w, 8);
    memcpy(k + 8 * i, &c, 8);
  }
  for (int i = 0; i < n; i++) {
    double w;
    long long c;
    memcpy(&w, work + 8 * ((i + at[0]) % n), 8);
    memcpy(&c, k + 8 * i, 8);
    t += w * (c + 1);
  }
"""
RIGHT = {
    "numbers_and_integers_in_one_memory": WORK,
    "copies_9": copied(9, SQUARES),
    "copies_around_a_cycle": SHIFTED.replace("FILL", "double b = x[1] * x[2]; memcpy(a, &b, 8);"),
    "moved_on_often": MOVED_ON + SQUARES.replace("TO", "p") + SUM.replace("FROM", "p"),
    "control": CONTROL,
    "pointers": POINTERS,
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    is_right(program(RIGHT[name]))


def test_words_in_many_steps() -> None:
    is_right(program(in_words(14)), tolerance=1e-6, step=1e-4)


def test_functions_that_are_found_one_after_the_other() -> None:
    body = "struct node m = {s6, 0, x[1]};\nfor (int i = 0; i < n; i++) t += m.f(&m, x[i]);"
    is_right(program(body, PASSED_ON))
