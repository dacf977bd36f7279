"""Right programs of many kinds under Options(sanitize=True): they give what they give without it."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
import pytest

import jax_enzyme as je
from tests.support.tools import need

MAP = """
#include <map>
extern "C" double k(int n, const double *x) {
  std::map<int, double> m;
  for (int i = 0; i < n; i++) m[(int)(x[i] * 97)] += x[i];
  double s = 0;
  for (auto &p : m) s += p.first * p.second;
  return s;
}
"""
VECTORS = """
#include <algorithm>
#include <vector>
struct Grid {
  int n;
  std::vector<std::vector<double>> at;
  explicit Grid(int n) : n(n), at(n, std::vector<double>(n, 0.0)) {}
};
extern "C" double k(int n, const double *x) {
  Grid g(n), h(n);
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) g.at[i][j] = x[(i * j) % n];
  for (int t = 0; t < 3; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        h.at[i][j] = 0.25 * (g.at[i - 1][j] + g.at[i + 1][j] + g.at[i][j - 1] + g.at[i][j + 1]);
    std::swap(g.at, h.at);
    g.at[t].push_back(x[t]);
  }
  return g.at[n / 2][n / 2] + h.at[1].back();
}
"""
PUNNED = """
struct record { double v; int k; float f; };
double k(int n, const double *x) {
  struct record r[32];
  n = 8;
  for (int i = 0; i < n; i++) r[i] = (struct record){x[i], (7 * i) % n, (float)x[i + n]};
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && r[j - 1].k > r[j].k; j--) {
      long *p = (long *)&r[j - 1], *q = (long *)&r[j];
      for (int w = 0; w < 2; w++) { long z = p[w]; p[w] = q[w]; q[w] = z; }
    }
  double s = 0;
  for (int i = 0; i < n; i++) s += r[i].v * r[i].f * (i + 1);
  return s;
}
"""
TAGGED = """
#include <stdlib.h>
struct value { long tag; double a, b; };
static double of(struct value v, double t) { return v.tag == 0 ? 2 : v.tag == 1 ? v.a * t : v.a + v.b * t; }
double k(int n, const double *x) {
  struct value s[2], *h = malloc(2 * sizeof *h);
  s[0].tag = h[0].tag = 0;
  s[1].tag = h[1].tag = TAG;
  s[1].a = h[1].a = x[0];
  double r = 0;
  for (int i = 0; i < n; i++) {
    struct value e = s[i & 1], g = h[i & 1];
    r += of(e, x[i]) + of(g, x[i]);
  }
  free(h);
  return r;
}
"""
PACKED = """
#include <stdint.h>
#include <stdlib.h>
struct __attribute__((packed)) row { char at; double v; };
struct cell { unsigned kind : 3, on : 1; int level : 8; double v; };
struct small { unsigned char a : 2, b : 3; };
double k(int n, const double *x) {
  struct cell c[40], t;
  struct small *s = malloc(n * sizeof *s);
  for (int i = 0; i < n; i++) {
    c[i].kind = i % 5, c[i].on = x[i] > 1, c[i].level = -i, c[i].v = x[i];
    s[i].a = i, s[i].b = i;
  }
  t = c[0], c[0] = c[n - 1], c[n - 1] = t;
  double r = 0;
  struct row rows[40];
  char *room = malloc(32 * n), *next = room;
  for (int i = 0; i < n; i++) {
    double *a = (double *)(((uintptr_t)(next + 1) + 7) & ~(uintptr_t)7);
    *next = i, *a = x[i];
    rows[i].at = *next, rows[i].v = *a;
    next = (char *)(a + 1) + (i & 3);
    r += rows[i].v * rows[i].at;
  }
  free(room);
  for (int i = 0; i < n; i++) r += (c[i].on ? c[i].kind : c[i].level) * c[i].v + s[i].a * s[i].b;
  free(s);
  return r;
}
"""
TREE = """
#include <stdlib.h>
typedef struct T { double key; struct T *l, *r; } T;
static void drop(T *t) { if (t) { drop(t->l); drop(t->r); free(t); } }
double k(int n, const double *x) {
  T *root = 0, **end;
  T local[2] = {{0.5, 0, 0}, {0.25, local, 0}};
  for (int i = 0; i < n; i++) {
    T **at = &root;
    while (*at) at = x[i] < (*at)->key ? &(*at)->l : &(*at)->r;
    *at = calloc(1, sizeof(T));
    (*at)->key = x[i];
  }
  double s = local[1].l->key;
  for (T *t = root; t; t = t->r) s = 2 * s + t->key;
  drop(root);
  return s;
}
"""

SHARED = """
#include <memory>
struct Base { virtual double f(double) const = 0; virtual ~Base() {} };
struct Line : Base {
  double slope[2];
  Line(double c) : slope{c, 1} {}
  double f(double x) const override { double s = 0; for (double c : slope) s += c * x; return s; }
};
extern "C" double k(int n, const double *x) {
  std::shared_ptr<Base> p = std::make_shared<Line>(2.0);
  std::unique_ptr<Base> q(new Line(3));
  return p->f(x[0]) + q->f(x[n - 1]);
}
"""


CONSTRUCTED = """
function k(n, x) bind(c) result(s)
  integer(4), value :: n
  real(8), intent(in) :: x(n)
  real(8) :: s, b(4, 4), a(8)
  integer :: i
  a = x(1:8)
  s = 0
  do i = 1, 3
    b = reshape([a(1:4), a(5:8)], [4, 4], pad=x(3:6), order=[2, 1])
    s = s + sum(b) * i
  end do
end function
"""

LINES = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double k(int n, const double *x) {
  FILE *f = tmpfile();
  fputs("one\\na line that is longer than the one before, so that more memory is needed\\n", f);
  rewind(f);
  size_t m = 4;
  char *line = malloc(m);
  double s = 0;
  while (getline(&line, &m, f) > 0) s += strlen(line) * x[0];
  free(line);
  fclose(f);
  return s;
}
"""


@pytest.mark.parametrize(
    ("lang", "source"),
    [
        ("c++", MAP),
        ("c++", SHARED),
        ("c++", VECTORS),
        ("c", TREE),
        ("c", PUNNED),
        ("c", PACKED),
        ("c", TAGGED.replace("TAG", "1")),
        ("c", LINES),
        ("fortran", CONSTRUCTED),
    ],
    ids=["map", "shared", "vectors", "tree", "punned", "packed", "tagged", "lines", "constructed"],
)
def test_right_programs_stay_right(lang: Literal["c", "c++", "fortran"], source: str) -> None:
    if lang == "fortran":
        need("flang-22")
    x = np.random.default_rng(1).uniform(0.1, 2.0, 40)
    plain, checked = (
        je.kernel(source, "k", "n: i32, x: f64[n] -> f64", lang=lang, options=je.Options(sanitize=sanitize))
        for sanitize in (False, True)
    )
    assert plain(x) == checked(x)


def test_parts_of_a_copy_that_nothing_wrote_are_told_where_they_are_computed_with() -> None:
    kernel = je.kernel(
        TAGGED.replace("TAG", "2"), "k", "n: i32, x: f64[n] -> f64", lang="c", options=je.Options(sanitize=True)
    )
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"reads what nothing wrote: local variable `s` \(kernel\.c:12"
    ):
        jax.block_until_ready(kernel(np.arange(1.0, 5.0)))
