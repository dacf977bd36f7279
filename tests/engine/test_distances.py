"""Distances of places in memory that are added to addresses: right within an object, and an error where a derivative
would walk from one object's shadow with the distance of two objects."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jax_enzyme as je
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

NODES = """#include <stdlib.h>
struct node { double v; long next; };
static void __attribute__((noinline)) link(struct node *a, struct node *b) { a->next = FROM b - FROM a; }
double k(double x) {
  struct node *t[5];
  double s = 0;
  for (int i = 0; i < 5; i++) {
    ALLOCATE
    t[i]->v = x * (i + x);
  }
  for (int i = 1; i < 5; i++) LINK;
  for (struct node *p = t[4];; p = (struct node *)(FROM p + p->next)) {
    s += p->v * p->v;
    if (p == t[0]) return s;
  }
}"""
EACH = "t[i] = malloc(sizeof **t + 24 * i);"
ONE = "t[i] = (i ? t[0] - 1 : (struct node *)malloc(sizeof **t * 5)) + (i ? 1 + 3 * i % 5 : 0);"
WAYS = {
    "link(t[i], t[i - 1])": 3,
    "t[i]->next = FROM t[i - 1] - FROM t[i]": 11,
}
ROWS = "double *t[40]; for (int i = 0; i < 40; i++) t[i] = malloc(16 + 16 * (i % 4)), t[i][0] = x * i;\n  "
BESIDES = {
    "a table": "long d[40]; for (int i = 0; i < 39; i++) d[i] = t[i + 1] - t[i];\n"
    "  double *p = t[0]; for (int i = 0; i < 39; i++) p += d[i], s += *p;",
    "an argument": "for (int i = 0; i < 39; i++) s += at(t[i], t[i + 1] - t[i], 1);",
    "a branch": "for (int i = 0; i < 40; i++) { long d = 0;\n"
    "  for (int j = 0; j < 40; j++) if (j % 3 == 1) d = t[j] - t[i];\n  s += t[i][d]; }",
}
RECURSIVE = """#include <stdlib.h>
static double __attribute__((noinline)) at(double *p, long d, int i) { return i ? at(p, d, i - 1) : p[d]; }
"""


def _nodes(counted: str, allocate: str, way: str) -> str:
    words = {"LINK": way, "FROM": counted, "ALLOCATE": allocate}
    source = NODES
    for word, meaning in words.items():
        source = source.replace(word, meaning)
    return source


def _raises(source: str, line: int | None) -> None:
    kernel = je.kernel(source, "k", "x: f64 -> f64", lang="c")
    kernel(1.5)
    place = "" if line is None else rf".*:{line}:"
    for derivative in (jax.grad(kernel), lambda x: jax.jvp(kernel, (x,), (1.0,))):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?s)distance of two objects" + place):
            jax.block_until_ready(derivative(1.5))


@pytest.mark.parametrize("counted", ["", "(char *)"])
@pytest.mark.parametrize("way", WAYS)
def test_from_node_to_node(counted: str, way: str) -> None:
    _raises(_nodes(counted, EACH, way), WAYS[way])


@pytest.mark.parametrize("body", BESIDES.values(), ids=BESIDES)
def test_by_other_ways(body: str) -> None:
    _raises(f"{RECURSIVE}double k(double x) {{\n  double s = 0;\n  {ROWS}{body}\n  return s;\n}}", None)


@pytest.mark.parametrize("counted", ["", "(char *)"])
def test_within_one_object(counted: str) -> None:
    for way in WAYS:
        agree(three_way(native(_nodes(counted, ONE, way), "k", "x: f64 -> f64", {}), [1.5]))


SWAPPED = """
double k(const double *x) {
  double a[6], b[6], *p = a, *q = b, s = 0;
  for (int i = 0; i < 6; i++) a[i] = x[i] * x[i], b[i] = 0;
  for (int r = 0; r < 3; r++) {
    double *largest = p, *t = p;
    for (int i = 0; i < 6; i++) {
      q[i] = p[5 - i] * 1.5 - x[i];
      if (q[i] > *largest) largest = &p[i];
    }
    long at = largest - p;
    s += q[at] * p[at];
    p = q, q = t;
  }
  return s;
}
"""
SLICES = """
#include <vector>
struct slice { long begin, end; };
extern "C" double k(const double *x) {
  std::vector<std::vector<double>> rows;
  std::vector<slice> slices;
  for (int i = 0; i < 6; i++) {
    std::vector<double> row;
    for (int j = 0; j <= i % 4; j++) row.push_back(x[i] * x[j]);
    rows.push_back(row);
  }
  for (auto &row : rows) {
    double *begin = row.data();
    while (*begin < 1.5 && begin < row.data() + row.size() - 1) begin++;
    slices.push_back({begin - row.data(), long(row.size())});
  }
  double s = 0;
  for (int i = 0; i < 6; i++)
    for (double *p = rows[i].data() + slices[i].begin; p < rows[i].data() + slices[i].end; p++) s += *p * *p;
  return s;
}
"""


@pytest.mark.parametrize("source, lang", [(SWAPPED, "c"), (SLICES, "c++")])
def test_of_one_of_several_objects(source: str, lang: str) -> None:
    agree(three_way(native(source, "k", "x: f64[6] -> f64", {}, lang=lang), [np.linspace(1, 2, 6)]))


OVERLAP = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
void k(const double *x, double *y) {
  double *a = malloc(48);
  for (int i = 0; i < 6; i++) a[i] = x[i] * x[i], y[i] = x[i];
  uintptr_t apart = (uintptr_t)a - (uintptr_t)y;
  if (apart - 48 < (uintptr_t)-95) memcpy(y + 1, a, 40);
  else memmove(y, a + 1, 32);
  for (int i = 0; i < 6; i++) y[i] *= i + 1;
  free(a);
}
"""


def test_that_is_only_compared() -> None:
    """Two objects, and whether they overlap: no address is made of that."""
    agree(three_way(native(OVERLAP, "k", "x: f64[6], out y: f64[6]", {}), [np.linspace(1, 2, 6)]))
