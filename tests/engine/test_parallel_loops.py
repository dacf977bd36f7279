"""Loops that directives share out: several threads and one compute the same, to the last bit, in every derivative."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.codegen.object import entry_module
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.ir.arrays import Jvp, Step, Vjp
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options
from jax_enzyme.transform.parallel_loops import share_marked_loops
from tests.support.engine import agree, native, three_way
from tests.support.native import call
from tests.support.team import Team

SIGNATURE = "n: i32, x: f64[n], out y: f64[n]"
STEPS: dict[str, tuple[Step, ...]] = {"p": (), "j": (Jvp((True, False)),), "v": (Vjp((True, False), (False, True)),)}


@dataclass(frozen=True)
class Shared:
    """A source, which of primal, JVP and VJP have loops for several threads, and what is said where none has. `all`: so
    have those of the reverse sweep."""

    source: str
    shares: str
    reason: str = ""
    lang: str = "c"
    n: int = 4000
    all: bool = False


_ROWS = """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int m = n / 8;
  double **row = malloc(m * sizeof *row);
#pragma omp parallel for schedule(static, CHUNK)
  for (int i = 0; i < m; i++) {
    row[i] = malloc((8 + i % 2) * sizeof **row);
    for (int j = 0; j < 8; j++) row[i][j] = exp(sin(x[i * 8 + j])) + BEFORE;
  }
  for (int i = 0; i < n; i++) y[i] = row[i / 8][i % 8] * row[i / 16][7 - i % 8];
  for (int i = 0; i < m; i++) free(row[i]);
  free(row);
}"""

_DIAGONALS = """#include <math.h>
void k(int n, const double *x, double *y) {
  enum { M = 60 };
  double d[M + 1][M + 1];
  for (int i = 0; i <= M; i++) d[i][0] = d[0][i] = i;
  for (int s = 2; s <= 2 * M; s++) {
    int low = s - M > 1 ? s - M : 1, high = s - 1 < M ? s - 1 : M;
#pragma omp parallel for
    for (int i = low; i <= high; i++) {
      int j = s - i;
      double v = x[(i - 1) * M + j - 1];
      for (int q = 0; q < 40; q++) v = sin(v);
      d[i][j] = v - log(exp(-d[i - 1][j]) + exp(-d[i][j - 1]) + exp(-d[i - 1][j - 1]));
    }
  }
  for (int i = 0; i < n; i++) y[i] = d[i / M + 1][i % M + 1];
}"""

CASES = {
    "anti-diagonals between two bounds": Shared(_DIAGONALS, "pjv", n=3600),
    "anti-diagonals of a table on the heap": Shared(
        _DIAGONALS.replace(
            "double d[M + 1][M + 1];",
            "double (*d)[M + 1] = malloc((M + 1) * sizeof *d);\n  for (int i = 0; i <= M * (M + 2); i++) d[0][i] = 9;",
        ).replace("<math.h>", "<math.h>\n#include <stdlib.h>"),
        "pjv",
        n=3600,
    ),
    "a first iteration that has a place of its own": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    if (i == 0) y[i] = x[0] * x[1];
    else y[i] = sin(x[i - 1]) * exp(x[i]);
  }
}""",
        "pjv",
    ),
    "iterations at both ends that have places of their own": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    if (i == 0) y[i] = x[0] * x[1];
    else if (i == n - 1) y[i] = x[i] * x[i];
    else y[i] = sin(x[i - 1]) * exp(x[i + 1]);
  }
}""",
        "pjv",
        n=1000,
        all=True,
    ),
    "the largest and the least of those that conditions allow": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double m = -1e300;
  int low = 1 << 30;
#pragma omp parallel for reduction(max : m) reduction(min : low)
  for (int i = 0; i < n; i++) {
    if (x[i] < 0.4) continue;
    double a = x[i] * exp(x[i]);
    int k = 1000 * x[i];
    if (a > m) m = a;
    if (a < 1.5 && k < low) low = k;
  }
  for (int i = 0; i < n; i++) y[i] = i ? 0 : m * low;
}""",
        "pjv",
        all=True,
    ),
    "the largest of several in each iteration that conditions allow": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double m = -1e300;
#pragma omp parallel for reduction(max : m)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 4; j++) {
      double a = sin(x[i]) * exp(x[(i + j) % n]);
      if (x[i * j % n] > 0.4 && a > m) m = a;
    }
  for (int i = 0; i < n; i++) y[i] = i ? 0 : m;
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "what the program declares how to join": Shared(
        """#include <math.h>
typedef struct { double top, sum; unsigned at; } best;
static best joined(best a, best b) {
  double top = fmax(a.top, b.top);
  best c = {top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top), b.top > a.top ? b.at : a.at};
  return c;
}
#pragma omp declare reduction(join : best : omp_out = joined(omp_out, omp_in)) initializer(omp_priv = (best){-30, 0, 0})
void k(int n, const double *x, double *y) {
  best all = {-30, 0, 0};
  double far = 1;
#pragma omp declare reduction(far : double : omp_out *= omp_in) initializer(omp_priv = 1)
#pragma omp parallel for reduction(join : all) reduction(far : far) schedule(dynamic, 3)
  for (unsigned i = 0; i < (unsigned)n; i++) {
    best own = {3 * x[i], 1, i};
    all = joined(all, own);
    far *= 1 + 0.01 * sin(x[i]);
  }
  for (int i = 0; i < n; i++) y[i] = all.top + log(all.sum) * x[all.at] * far;
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "what the program declares how to join, in a class": Shared(
        """#include <cmath>
struct Moments {
  double n = 0, mean = 0, sum = 0;
  void add(const Moments &o) {
    if (o.n == 0) return;
    double d = o.mean - mean, all = n + o.n;
    mean += d * o.n / all;
    sum += o.sum + d * d * n * o.n / all;
    n = all;
  }
};
#pragma omp declare reduction(add : Moments : omp_out.add(omp_in))
extern "C" void k(int n, const double *x, double *y) {
  Moments m;
#pragma omp parallel for reduction(add : m)
  for (int i = 0; i < n; i++) {
    Moments one;
    one.n = 1, one.mean = std::exp(x[i]);
    m.add(one);
  }
  for (int i = 0; i < n; i++) y[i] = (x[i] - m.mean) / std::sqrt(m.sum / n);
}""",
        "pjv",
        lang="c++",
        n=1000,
    ),
    "what the program declares how to join, begun before the loop": Shared(
        """#include <math.h>
#pragma omp declare reduction(far : double : omp_out *= omp_in) initializer(omp_priv = 1)
void k(int n, const double *x, double *y) {
  double p = 1, q = 1;
#pragma omp parallel reduction(far : p, q)
  {
    p *= x[0];
#pragma omp for
    for (int i = 0; i < n; i++) p *= 1 + 0.01 * x[i];
#pragma omp for
    for (int i = 0; i < n; i++) q *= 1 - 0.01 * x[i];
#pragma omp for
    for (int i = 0; i < n; i++) q *= 1 + 0.01 * sin(x[i]), p *= cos(0.01 * x[i]);
  }
  for (int i = 0; i < n; i++) y[i] = p + x[i] * q;
}""",
        "?",
        n=500,
    ),
    "the last address of those that a condition allows": Shared(
        """void k(int n, const double *x, double *y) {
  const double *last = x;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    const double *p = x + (int)(x[i] * 1000) % n;
    if (x[i] < 1 && p > last) last = p;
  }
  for (int i = 0; i < n; i++) y[i] = i ? 0 : *last * *last;
}""",
        "",
    ),
    "a place of a later iteration": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) {
    double v = x[i];
    for (int q = 0; q < 40; q++) v = sin(v);
    if (i == 1) y[0] = v;
    else y[i] = v;
  }
}""",
        "",
    ),
    "elements by colours in lists": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int *list = malloc(n * sizeof *list), first[5] = {0};
  for (int c = 0, m = 0; c < 4; first[++c] = m)
    for (int e = 0; e < n - 1; e++)
      if (e * 7 % 4 == c) list[m++] = e;
  double *f = calloc(n, sizeof *f);
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int step = 0; step < 2; step++) {
    for (int c = 0; c < 4; c++) {
#pragma omp parallel for
      for (int q = first[c]; q < first[c + 1]; q++) {
        int e = list[q];
        double v = exp(sin(y[e]) * y[e + 1]);
        f[e] += v, f[e + 1] -= v * y[e];
      }
    }
    for (int i = 0; i < n; i++) y[i] += 0.1 * f[i];
  }
}""",
        "pjv",
        n=8000,
        all=True,
    ),
    "elements by colours in Fortran's lists, whose ends may wrap": Shared(
        """subroutine k(n, x, y) bind(c)
  implicit none
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  integer, allocatable :: list(:)
  integer :: first(5), c, e, q, m
  allocate(list(n))
  m = 0
  do c = 1, 4
    first(c) = m + 1
    do e = 1, n - 1
      if (mod(e * 7, 4) == c - 1) then
        m = m + 1
        list(m) = e
      end if
    end do
  end do
  first(5) = m + 1
  y = 0
  do c = 1, 4
    !$omp parallel do private(e)
    do q = first(c), first(c + 1) - 1
      e = list(q)
      y(e) = y(e) + exp(sin(x(e)) * x(e + 1))
      y(e + 1) = y(e + 1) - x(e) * y(e)
    end do
  end do
end subroutine""",
        "pjv",
        lang="fortran",
        n=8000,
        all=True,
    ),
    "a triangular system by levels in lists": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int *list = malloc(n * sizeof *list), first[9] = {0};
  for (int l = 0, m = 0; l < 8; first[++l] = m)
    for (int i = 0; i < n; i++)
      if (i % 8 == l) list[m++] = i;
  for (int l = 0; l < 8; l++) {
#pragma omp parallel for
    for (int q = first[l]; q < first[l + 1]; q++) {
      int i = list[q];
      double sum = x[i];
      for (int e = 1; e <= l; e++) sum -= 0.2 * x[i - e] * y[i - e];
      y[i] = sin(sum) / (1 + x[i] * x[i]);
    }
  }
}""",
        "pjv",
        n=16000,
        all=True,
    ),
    "rows that iterations make": Shared(_ROWS.replace(", CHUNK", "").replace("BEFORE", "1"), "pjv", n=8000),
    "rows that are made of the one before": Shared(
        _ROWS.replace("CHUNK", "8").replace("BEFORE", "(i % 8 ? row[i - 1][j] : 0)"), "", "it calls `malloc`", n=8000
    ),
    "a lock of the library of C++": Shared(
        """#include <cmath>
#include <mutex>
extern "C" void k(int n, const double *x, double *y) {
  std::mutex m;
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = std::sin(x[i]) * std::exp(x[i]);
    std::lock_guard<std::mutex> guard(m);
    double &bin = y[i * (i + 3) / 2 % 8];
    bin = std::sin(bin) + v;
  }
}""",
        "",
        "iterations touch the same places of it",
        lang="c++",
    ),
    "a critical section behind a pointer": Shared(
        """#include <math.h>
static void add(double *y, int i, double v) {
#pragma omp critical
  { double *p = &y[i * (i + 3) / 2 % 8]; *p = sin(*p) + v; }
}
static void (*const table[])(double *, int, double) = {add};
void k(int n, const double *x, double *y) {
  void (*f)(double *, int, double) = table[n > 100000];
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++) f(y, i, sin(x[i]) * exp(x[i]));
}""",
        "",
        "iterations touch the same places of it",
    ),
    "vectors of vectors": Shared(
        """#include <cmath>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
  std::vector<std::vector<double>> a(n / 80, std::vector<double>(80));
#pragma omp parallel for
  for (int i = 0; i < n / 80; i++)
    for (int j = 0; j < 80; j++) a[i][j] = std::sin(x[i * 80 + j]);
  for (int i = 0; i < n; i++) y[i] = a[i / 80][i % 80] * x[i];
}""",
        "pjv",
        lang="c++",
    ),
    "what the last iteration made is added to by those of the next run": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *before = 0, *made = 0;
  for (int t = 0; t < 3; t++) {
    double *last = 0;
#pragma omp parallel for lastprivate(last)
    for (int j = 0; j < n; j++) {
      double *own = malloc(sizeof *own);
      *own = x[j] * x[j];
      if (made) {
#pragma omp atomic
        *made += x[j];
      }
      y[j] = *own + (before ? *before : 0);
      last = own;
    }
    before = made;
    made = last;
  }
}""",
        "",
        "it calls `malloc`",
    ),
    "sums, private variables and last values of taskloops": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double s = 0, m = -1, t = 3, last = 0, w[4] = {1, 2, 3, 4};
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskloop grainsize(16) reduction(+ : s) reduction(max : m) firstprivate(w) private(t)
    for (int i = 0; i < n; i++) {
      t = sin(x[i]);
      for (int q = 0; q < 8; q++) t = sin(t + w[q % 4]);
      s += t * x[i];
      m = i * t > m ? i * t : m;
    }
#pragma omp taskloop lastprivate(last) collapse(2)
    for (int i = 0; i < n / 10; i++)
      for (int j = 0; j < 10; j++) y[i * 10 + j] = last = exp(x[i * 10 + j] * s / n);
  }
  y[0] += last * m / n;
}""",
        "pjv",
    ),
    "sections": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  int m = n / 4;
  double far = 2;
#pragma omp parallel
  {
#pragma omp sections firstprivate(far)
    {
      for (int i = 0; i < m; i++) y[i] = sin(x[i]) * exp(x[i]);
#pragma omp section
      for (int i = m; i < 2 * m; i++) y[i] = cos(x[i]) * sin(exp(x[i]));
#pragma omp section
      { far = x[3]; for (int i = 2 * m; i < 3 * m; i++) y[i] = sin(cos(x[i]) + sin(x[i] * far)); }
#pragma omp section
      for (int i = 3 * m; i < n; i++) y[i] = exp(cos(x[i]) + sin(x[i] * x[i]));
    }
#pragma omp sections
    {
      y[0] *= y[3];
#pragma omp section
      y[1] *= y[2];
    }
  }
}""",
        "pjv",
        all=True,
    ),
    "numbers that sections leave": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double a, b = 3, c = 0, last = 0, same = x[1];
  int best = 0;
#pragma omp parallel
  {
#pragma omp sections reduction(+ : c) lastprivate(last)
    {
      { a = 0; for (int i = 0; i < n; i++) a += sin(x[i] * same); c += a; }
#pragma omp section
      for (int i = 0; i < n; i++) b = 0.9 * b + x[i] * exp(x[i]) / n;
#pragma omp section
      { for (int i = 0; i < n; i++) if (cos(3 * x[i]) > cos(3 * x[best])) best = i; c += x[0]; last = x[best]; }
    }
#pragma omp for
    for (int i = 0; i < n; i++) y[i] = x[i] * a / n + b * last + c / n * best;
  }
}""",
        "pjv",
    ),
    "sections that change a thread's variable, and read another's": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double sum = 0;
#pragma omp parallel num_threads(1)
  {
    double t = 0.5, r = 0;
#pragma omp sections
    {
      { for (int i = 0; i < n; i++) t = 0.9 * t + sin(x[i]); r = t; }
#pragma omp section
      for (int i = 0; i < n; i++) t = 0.8 * t + cos(x[i]);
#pragma omp section
      for (int i = 0; i < n; i++) y[i] = x[i] * r;
    }
    sum += t;
  }
  y[0] += sum;
}""",
        "",
        "each iteration needs a value from the one before",
    ),
    "two sections of Fortran's": Shared(
        """subroutine k(n, x, y)
  integer :: n, i
  real(8) :: x(n), y(n)
  !$omp parallel sections private(i)
  !$omp section
  do i = 1, n / 2
    y(i) = sin(exp(x(i))) * 2
  end do
  !$omp section
  do i = n / 2 + 1, n
    y(i) = exp(x(i)) * 3
  end do
  !$omp end parallel sections
end subroutine""",
        "pjv",
        lang="fortran",
    ),
    "tables of rows that change places": Shared(
        """#include <math.h>
#include <stdlib.h>
static double **table(int m) {
  double **t = malloc(m * sizeof *t);
  for (int i = 0; i < m; i++)
    if (!(t[i] = calloc(m, sizeof **t))) abort();
  return t;
}
static void drop(double **t, int m) {
  for (int i = 0; i < m; i++) free(t[i]);
  free(t);
}
void k(int n, const double *x, double *y) {
  enum { M = 60 };
  double **u = table(M), **v = table(M), *w[M], all[M * M + 8];
  for (int i = 0; i < M; i++) w[i] = all + 4 + i * M;
#pragma omp parallel for
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++) w[i][j] = u[i][j] = sin(x[i * M + j]);
  for (int t = 0; t < 3; t++) {
#pragma omp parallel for
    for (int i = 1; i < M - 1; i++)
      for (int j = 1; j < M - 1; j++) v[i][j] = sin(u[i - 1][j] + u[i + 1][j] * u[i][j - 1]) - w[i][j] * u[i][j + 1];
    double **s = u;
    u = v;
    v = s;
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = i < M * M ? exp(u[i / M][i % M] * v[i / M][i % M]) : 0;
  drop(u, M);
  drop(v, M);
}""",
        "pjv",
        all=True,
    ),
    "tasks of blocks": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int w = n / 16;
  double *a = malloc(n * sizeof *a), part[16], t = 0;
#pragma omp parallel
#pragma omp single
  {
    for (int b = 0; b < 16; b++)
#pragma omp task depend(out : part[b])
    {
      part[b] = 0;
      for (int i = b * w; i < (b + 1) * w; i++) { a[i] = sin(x[i]); part[b] += a[i] * a[i]; }
    }
#pragma omp taskwait
    for (int b = 0; b < 16; b++)
#pragma omp task shared(t) untied
    {
      double s = 0;
      for (int i = b * w; i < (b + 1) * w; i++) s += cos(a[i]) * part[b];
#pragma omp atomic
      t += s;
    }
#pragma omp taskwait
    for (int i = 0; i < n; i++) y[i] = a[i] * t;
  }
  free(a);
}""",
        "pjv",
    ),
    "tasks that need those before them": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel
#pragma omp single
  for (int b = 0; b + 100 <= n; b += 50) {
#pragma omp task depend(inout : y[0]) firstprivate(b)
    for (int i = b; i < b + 100; i++) y[i] = sin(y[i]) + 0.5 * y[i];
  }
}""",
        "",
    ),
    "a taskloop that is one task": Shared(
        """void k(int n, const double *x, double *y) {
  double t = 3;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop num_tasks(1) firstprivate(t)
  for (int i = 0; i < n; i++) {
    t = 0.9 * t + x[i];
    y[i] = i % 8 ? x[i] + t + y[i - 1] / 8 : t;
  }
}""",
        "",
    ),
    "a taskloop of Fortran's": Shared(
        """subroutine k(n, x, y)
  integer :: n, i, q
  real(8) :: x(n), y(n), t, c
  c = x(2)
  !$omp parallel
  !$omp single
  !$omp taskloop private(t) firstprivate(c) grainsize(7)
  do i = 1, n
    t = x(i)
    do q = 1, 5
      t = sin(t + x(i) * c)
    end do
    y(i) = t * 2
  end do
  !$omp end single
  !$omp end parallel
end subroutine""",
        "pjv",
        lang="fortran",
    ),
    "a collapsed stencil in chunks": Shared(  # so that the directive does not say that iterations never meet
        """void k(int n, const double *x, double *y) {
  enum { M = 60 };
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for collapse(2) schedule(static, 8)
  for (int i = 1; i < M - 1; i++)
    for (int j = 2; j < M - 1; j++) {
      int c = i * M + j;
      y[c] = x[c] * x[c] + x[c - 1] * x[c + 1] + x[c - M] * x[c + M] + x[c - 2];
    }
}""",
        "pjv",
        all=True,
    ),
    "collapsed rows that come to where others begin": Shared(
        """void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for collapse(2) schedule(static, 8)
  for (int i = 0; i < 20; i++)
    for (int j = 0; j < 57; j++) y[60 * i + j] = x[i] * x[j], y[60 * i + j + 1140] = x[i] + x[j];
}""",
        "",
        "the places that iterations touch overlap",
    ),
    "a collapsed stencil of Fortran's": Shared(
        """subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(nint(n**(1d0/3)), nint(n**(1d0/3)), nint(n**(1d0/3)))
  real(8), intent(out) :: y(nint(n**(1d0/3)), nint(n**(1d0/3)), nint(n**(1d0/3)))
  integer :: i, j, l, m
  m = nint(n**(1d0/3))
  y = x
  !$omp parallel do collapse(3)
  do l = 2, m - 1
    do j = 2, m - 1
      do i = 2, m - 1
        y(i, j, l) = x(i, j, l) * x(i, j, l - 1) + x(i - 1, j, l) * x(i + 1, j, l) + x(i, j + 1, l) + x(i, j, l + 1)
      end do
    end do
  end do
end subroutine""",
        "pjv",
        lang="fortran",
        n=32**3,
        all=True,
    ),
    "a column of a factorisation in parts, beside the row that all read": Shared(
        """void k(int n, const double *x, double *y) {
  enum { M = 40 };
  for (int i = 0; i < n; i++) y[i] = x[i] + (i % (M + 1) ? 0 : M);
  for (int j = 0; j < M; j++) {
#pragma omp parallel for schedule(dynamic, 2)
    for (int i = j; i < M; i++) {
      double s = y[i * M + j];
      for (int q = 0; q < j; q++) s -= y[i * M + q] * y[j * M + q];
      y[i * M + j] = s / M;
    }
  }
}""",
        "pjv",
        n=1600,
    ),
    "rows of a triangle": Shared(
        """void k(int n, const double *x, double *y) {
  enum { M = 40 };
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < M; i++)
    for (int j = 0; j <= i; j++) {
      double s = 0;
      for (int q = 0; q <= j; q++) s += x[i * M + q] * x[j * M + q];
      y[i * M + j] = s;
    }
}""",
        "pjv",
        n=1600,
        all=True,
    ),
    "norm": Shared(
        """#include <math.h>
static double mag(int n, const double *x) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  return sqrt(s);
}
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = x[i] / mag(n, x);
}""",
        "pjv",
    ),
    "sums": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double s = 0, z[5] = {0, 0, 0, 0, 0};
  int all = 1, any = 0;
#pragma omp parallel for reduction(+ : s) reduction(+ : z[:5]) schedule(dynamic, 8) reduction(&& : all) \\
    reduction(|| : any)
  for (int i = 0; i < n; i++) {
    s += sin(x[i]) * x[i];
    z[i % 5] += x[i] * x[i];
    all = all && x[i] > -9;
    any = any || x[i] > 1.25;
  }
  for (int i = 0; i < n; i++) y[i] = s * z[i % 5] + all + 2 * any;
}""",
        "pjv",
    ),
    "counts": Shared(
        """void k(int n, const double *x, double *y) {
  double sums[8], means[8];
  int counts[8];
  for (int q = 0; q < 8; q++) sums[q] = counts[q] = 0;
#pragma omp parallel for reduction(+ : sums[:8], counts[:8])
  for (int i = 0; i < n; i++) {
    int q = i * 2654435761u >> 29;
    sums[q] += x[i] * x[i] / (1 + x[i]);
    counts[q]++;
  }
  for (int q = 0; q < 8; q++) means[q] = sums[q] / counts[q];
  for (int i = 0; i < n; i++) y[i] = means[i & 7] * means[i & 7];
}""",
        "pjv",
        all=True,
    ),
    "sums with gaps between them": Shared(
        """void k(int n, const double *x, double *y) {
  long double s[4] = {0, 0, 0, 0};
#pragma omp parallel for reduction(+ : s[:4])
  for (int i = 0; i < n; i++) s[i * 2654435761u >> 30] += x[i] * x[i] / (1 + x[i]);
  for (int i = 0; i < n; i++) y[i] = s[i & 3];
}""",
        "v",
        "it adds to numbers with gaps between them",
    ),
    "as many iterations as the data say": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  int m = 2000 + 1000 * x[0];
  if (m > n) m = n;
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < m; i++) y[i] = exp(x[i]) * sin(x[i]);
}""",
        "pjv",
        all=True,
    ),
    "extremes": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double top = 0, low = 9, product = x[0], other = 1, last = 0;
  int count = 0;
#pragma omp parallel for reduction(max : top) reduction(min : low) reduction(* : product, other) reduction(+ : count) \\
    lastprivate(last)
  for (int i = 3; i < n; i += 3) {
    top = x[i] > top ? x[i] : top;
    low = fmin(low, x[i]);
    product *= 1 + x[i] / 4000;
    other *= 2 - exp(x[i - 1] / n);
    count += x[i] > 0.5;
    last = exp(x[i]);
    y[i] = x[i];
  }
  y[0] = top * product + other * count + last - low;
}""",
        "pjv",
        n=3600,
        all=True,
    ),
    "extremes of what a condition computes": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double top = -9, low = 9;
#pragma omp parallel for reduction(max : top) reduction(min : low)
  for (int i = 0; i < n; i++)
    if (x[i] > 0.6) {
      double a = exp(sin(x[i])) * x[i * 7 % n];
      top = fmax(top, a);
      low = fmin(low, a);
    }
  for (int i = 0; i < n; i++) y[i] = top * x[i] + low;
}""",
        "pjv",
        all=True,
    ),
    "a product beside what is the largest": Shared(
        """void k(int n, const double *x, double *y) {
  double product = 1, top = -9;
#pragma omp parallel for reduction(max : top) reduction(* : product)
  for (int i = 1; i < n; i++) {
    product *= 1 + x[i] / n;
    if (x[i] > top) top = x[i];
  }
  for (int i = 0; i < n; i++) y[i] = x[i] * product * top;
}""",
        "?",
        n=1500,
    ),
    "best": Shared(
        """#include <math.h>
typedef struct { double value; int at; } best;
#pragma omp declare reduction(less : best : omp_out = omp_in.value < omp_out.value ? omp_in : omp_out) \\
    initializer(omp_priv = omp_orig)
void k(int n, const double *x, double *y) {
  best b = {9, -1};
  double low = 3, top = 0;
#pragma omp parallel for reduction(less : b) reduction(max : top)
  for (int i = 0; i < n; i++) {
    double v = exp(-x[i]);
    if (v < b.value) { b.value = v; b.at = i; }
    top = fmax(top, v * v);
    y[i] = x[i] * v;
  }
#pragma omp parallel
  {
    double mine = 5;
#pragma omp for nowait
    for (int i = 0; i < n; i++) { double v = x[i] * sin(x[i]); if (v < mine) mine = v; }
#pragma omp critical
    if (mine < low) low = mine;
  }
  y[0] = b.value * low + b.at + top;
}""",
        "pjv",
        all=True,
    ),
    "forces": Shared(
        """void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(guided)
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int j = 0; j < n; j++) { double d = x[i] - x[j]; s += d / (d * d + 0.1); }
    y[i] = s;
  }
}""",
        "pjv",
        n=600,
    ),
    "region": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double total = 0;
#pragma omp parallel
  {
    double mine = 0;
#pragma omp for nowait
    for (int i = 0; i < n; i++) mine += exp(x[i]);
#pragma omp critical
    total += mine;
#pragma omp barrier
#pragma omp for
    for (int i = 0; i < n; i++) {
      double t[4];
      for (int j = 0; j < 4; j++) t[j] = x[(i + j) % n] * total;
      for (int j = 1; j < 4; j++) t[j] += t[j - 1] * t[j];
      y[i] = t[3];
    }
  }
}""",
        "pjv",
    ),
    "scatter": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i * 7 % n] = sin(x[i]);
}""",
        "pjv",
        n=4001,
    ),
    "atomic": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double bins[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = cos(x[i]);
#pragma omp atomic
    bins[i * 5 % 8] += v;
  }
  for (int i = 0; i < n; i++) y[i] = bins[i % 8] * x[i];
}""",
        "pjv",
    ),
    "in order": Shared(
        """void k(int n, const double *x, double *y) {
  double seen[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
#pragma omp critical
    { seen[i % 8] += x[i]; y[i] = seen[i % 8]; }
  }
}""",
        "",  # of what is linear the reverse sweep needs nothing
        "local memory",
    ),
    "if": Shared(
        """void k(int n, const double *x, double *y) {
  int step = x[0] < 9;
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel for if (!step)
  for (int i = 1; i < n; i++) y[i] += 0.5 * y[i - step];
}""",
        "",
        n=3000,
    ),
    "own number": Shared(
        """#include <omp.h>
static double work[4000];
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double *mine = work + 8 * omp_get_thread_num();
    for (int j = 0; j < 8; j++) mine[j] = x[(i + j) % n];
    y[i] = mine[0] * mine[7];
  }
}""",
        "?",
    ),
    "fortran": Shared(
        """subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: s
  integer :: i
  s = 0
  !$omp parallel do reduction(+:s) schedule(static, 16)
  do i = 1, n
    s = s + sin(x(i))
  end do
  !$omp parallel do
  do i = 1, n
    y(i) = s * exp(x(i))
  end do
end subroutine""",
        "pjv",
        lang="fortran",
    ),
    "time steps": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double courant = 1e20, hydro = 1e20;
#pragma omp parallel for reduction(min : courant, hydro)
  for (int i = 0; i < n; i++) {
    double v = x[i] - 0.5;
    if (v > -0.2) {
      double d = sqrt(x[i]) / (0.1 + sqrt(v * v + x[i]));
      if (d < courant) courant = d;
      if (v > 0.2) { double h = 1 / (v + 1e-20); hydro = h < hydro ? h : hydro; }
    }
    y[i] = v;
  }
  y[0] = courant * hydro;
}""",
        "pjv",
        all=True,
    ),
    "fortran's best": Shared(
        """subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: low, top
  integer :: i
  low = 7
  top = 0
  !$omp parallel do reduction(min:low) reduction(max:top)
  do i = 1, n
    y(i) = exp(x(i))
    low = min(low, y(i))
    top = max(top, sin(x(i)) * x(i))
  end do
  y(1) = low * top
end subroutine""",
        "pjv",
        lang="fortran",
        all=True,
    ),
    "scratch": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double t[6];
    for (int q = 0; q < 6; q++) t[q] = sin(x[i] * q);
    t[i * 7L % 6] *= x[i];
    y[i] = t[i % 6] * t[5] + t[i * 5L % 6];
  }
}""",
        "?",
    ),
    "stencil": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  y[0] = x[0];
  y[n - 1] = x[n - 1];
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 1; i < n - 1; i++) y[i] = 0.3 * x[i - 1] * x[i] + 0.4 * x[i] * x[i + 1] + sin(x[i]);
}""",
        "pjv",
        all=True,
    ),
    "rows in chunks": Shared(
        """#include <math.h>
#include <stdlib.h>
enum { M = 50 };
void k(int n, const double *x, double *y) {
  double *u = malloc(8 * n), *v = malloc(8 * n);
  for (int i = 0; i < n; i++) u[i] = v[i] = x[i];
  for (int t = 0; t < 3; t++) {
#pragma omp parallel for schedule(dynamic, 2)
    for (int i = 1; i < n / M - 1; i++)
      for (int j = 1; j < M - 1; j++)
        v[i * M + j] = u[i * M + j] * (1 + 0.05 * (u[(i + 1) * M + j] + u[(i - 1) * M + j]));
    for (int i = 0; i < n; i++) u[i] = v[i];
  }
  for (int i = 0; i < n; i++) y[i] = u[i];
  free(u);
  free(v);
}""",
        "pjv",
        n=10000,
        all=True,
    ),
    "what a thread keeps in chunks": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double part[16];
#pragma omp parallel for private(part) schedule(dynamic, 8)
  for (int i = 0; i < n; i++) {
    if (i % 8 == 0)
      for (int j = 0; j < 16; j++) part[j] = sin(x[i] * j);
    y[i] = part[i % 16] * exp(x[i]);
  }
}""",
        "",
        "local memory: ",
    ),
    "scratch that each iteration fills": Shared(
        """#include <math.h>
enum { M = 80 };
void k(int n, const double *x, double *y) {
  double part[M], row[M];
  for (int i = 0; i < n / M; i++) {
    for (int j = 0; j < M; j++) { part[j] = sin(x[i * M + j]); row[j] = 0; }
    for (int j = 0; j < M; j++)
      for (int l = 0; l < M; l++) row[l] += part[j] * x[i * M + l] * (j + l);
    for (int j = 0; j < M; j++) y[i * M + j] = row[j] * part[M - 1 - j];
  }
}""",
        "pjv",
        n=8000,
        all=True,
    ),
    "sweeps": Shared(
        """#include <math.h>
#include <stdlib.h>
enum { M = 50 };
static void sweep(int m, const double *restrict u, double *restrict v) {
#pragma omp parallel for
  for (int i = 1; i < m - 1; i++)
    for (int j = 1; j < M - 1; j++)
      v[i * M + j] = 0.25 * (u[(i - 1) * M + j] + u[(i + 1) * M + j] + u[i * M + j - 1] + u[i * M + j + 1])
                     + 0.1 * sin(u[i * M + j]);
}
void k(int n, const double *x, double *y) {
  double *u = malloc(8 * n), *v = malloc(8 * n);
  for (int i = 0; i < n; i++) u[i] = v[i] = x[i];
  for (int t = 0; t < 3; t++) { sweep(n / M, u, v); sweep(n / M, v, u); }
  for (int i = 0; i < n; i++) y[i] = u[i];
  free(u);
  free(v);
}""",
        "pjv",
        all=True,
    ),
    "exchanged": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *u = malloc(8 * n), *v = malloc(8 * n);
  for (int i = 0; i < n; i++) u[i] = v[i] = x[i];
  for (int t = 0; t < 5; t++) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] * u[i] + u[i + 1]);
    double *w = u;
    u = v;
    v = w;
  }
  for (int i = 0; i < n; i++) y[i] = u[i];
  free(u);
  free(v);
}""",
        "pjv",
    ),
    "columns": Shared(
        """enum { M = 100 };
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel for
  for (int j = 1; j < M - 1; j++)
    for (int i = 1; i < n / M - 1; i++)
      y[i * M + j] = x[(i - 1) * M + j] * x[(i + 1) * M + j] + x[i * M + j - 1] * x[i * M + j + 1];
}""",
        "pjv",
        all=True,
    ),
    "elements": Shared(
        """void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int e = 0; e < n - 1; e++) {
    double h = x[e + 1] + x[e], f = h * x[e], g = h * h * x[e + 1];
#pragma omp atomic
    y[e] += f;
#pragma omp atomic
    y[e + 1] += g;
  }
}""",
        "pjv",
        all=True,
    ),
    "without a directive": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  y[0] = x[0];
  y[n - 1] = x[n - 1];
  for (int i = 1; i < n - 1; i++) y[i] = exp(sin(x[i]) * x[i - 1]) + cos(x[i + 1]);
}""",
        "pjv",
        n=60000,
        all=True,
    ),
    "do concurrent": Shared(
        """subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  integer :: i
  do concurrent (i = 1:n)
    y(i) = exp(sin(x(i)) * x(n + 1 - i)) + cos(x(i))
  end do
end subroutine""",
        "pjv",
        lang="fortran",
        n=60000,
    ),
    "pointers that change places": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *u = malloc(n * 8), *v = malloc(n * 8);
  for (int i = 0; i < n; i++) u[i] = v[i] = x[i];
  for (int t = 0; t < 5; t++) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) - 0.01 * u[i] * u[i];
    double *w = u;
    u = v;
    v = w;
  }
  for (int i = 0; i < n; i++) y[i] = u[i];
  free(u);
  free(v);
}""",
        "pjv",
        n=20000,
        all=True,
    ),
    "places of the function's own memory that are data": Shared(
        """#include <stdlib.h>
static double z[20000];
void k(int n, const double *x, double *y) {
  double *u = malloc(n * 8);
  int *at = malloc(n * 4);
  for (int i = 0; i < n; i++) at[i] = (i * 7919L + 13) % n;
#pragma omp parallel for
  for (int i = 0; i < n; i++) u[at[i]] = x[i] * x[(i + 1) % n];
#pragma omp parallel for
  for (int i = 0; i < n; i++) z[at[i]] = u[i] * x[i];
  for (int i = 0; i < n; i++) y[i] = z[i];
  free(u);
  free(at);
}""",
        "pjv",
        n=20000,
        all=True,
    ),
    "a collapsed stencil in memory that is cleared": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int a = 8, b = 9, c = n / 72;
  double *v = malloc(a * b * c * 8);
  for (int i = 0; i < a * b * c; i++) v[i] = 0;
#pragma omp parallel for collapse(3)
  for (int i = 1; i < a - 1; i++)
    for (int j = 1; j < b - 1; j++)
      for (int l = 1; l < c - 1; l++) {
        int at = (i * b + j) * c + l;
        v[at] = x[at] * x[at - 1] + x[at + c] * x[at - b * c];
      }
  for (int i = 0; i < n; i++) y[i] = i < a * b * c ? v[i] : x[i];
  free(v);
}""",
        "pjv",
        n=20000,
        all=True,
    ),
    "every second element in turn": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  enum { M = 100 };
  double *a = malloc(n * 8);
  for (int i = 0; i < n; i++) a[i] = x[i];
  for (int t = 0; t < 4; t++)
#pragma omp parallel for
    for (int i = 1; i < n / M - 1; i++)
      for (int j = 1 + (i + t) % 2; j < M - 1; j += 2)
        a[i * M + j] += 0.3 * (a[i * M + j - 1] * a[i * M + j + 1] + a[(i - 1) * M + j] + a[(i + 1) * M + j]);
  for (int i = 0; i < n; i++) y[i] = a[i];
  free(a);
}""",
        "pjv",
        n=10000,
        all=True,
    ),
    "a table of two arrays": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *w[2] = {malloc(n * 8), malloc(n * 8)};
  for (int i = 0; i < n; i++) w[0][i] = w[1][i] = x[i];
  for (int t = 0; t < 5; t++) {
    const double *u = w[t & 1];
    double *v = w[(t + 1) & 1];
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double c = u[i], before = i > 199 ? u[i - 200] : c, behind = i < n - 200 ? u[i + 200] : c;
      v[i] = c + 0.1 * (before * c + behind);
    }
  }
  for (int i = 0; i < n; i++) y[i] = w[1][i];
  free(w[0]);
  free(w[1]);
}""",
        "pjv",
        n=20000,
        all=True,
    ),
    "a gather through pointers that change places": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *u = malloc(n * 8), *v = malloc(n * 8);
  for (int i = 0; i < n; i++) u[i] = v[i] = x[i];
  for (int t = 0; t < 5; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) v[i] = u[i] * u[i ^ 3] + u[(i + 9) % n];
    double *w = u;
    u = v;
    v = w;
  }
  for (int i = 0; i < n; i++) y[i] = u[i];
  free(u);
  free(v);
}""",
        "pjv",
        n=20000,
        all=True,
    ),
    "corners of elements": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int *start = malloc(4 * n + 4), *list = malloc(16 * n);
  double *f = malloc(32 * n), *p = malloc(8 * n);
  start[0] = 0;
  for (int i = 0; i < n; i++) {
    start[i + 1] = start[i] + 1 + i % 4;
    p[i] = x[i];
  }
  for (int i = 0; i < 4 * n; i++) list[i] = i ^ 1;
  for (int t = 0; t < 2; t++) {
#pragma omp parallel for
    for (int e = 0; e < n; e++)
      for (int q = 0; q < 4; q++) f[4 * e + q] = 0.1 * p[e] * x[(e + q) % n];
#pragma omp parallel for
    for (int g = 0; g < n; g++) {
      double s = 0;
      for (int i = 0, count = start[g + 1] - start[g]; i < count; i++) s += f[(list + start[g])[i]];
      p[g] += s;
    }
  }
  for (int i = 0; i < n; i++) y[i] = p[i];
  free(start);
  free(list);
  free(f);
  free(p);
}""",
        "pjv",
        n=20000,
        all=True,
    ),
    "lists of lists in each iteration": Shared(
        """#include <vector>
extern "C" void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    std::vector<std::vector<double>> near(2);
    for (int j = 0; j < 12; j++)
      if ((i * j) % 3 != 1) near[x[j] > 0.7].push_back(x[(i + j) % n] * (j + 1));
    double s = 0;
    for (double v : near[0]) s += v * v;
    for (double v : near[1]) s += v;
    y[i] = s;
  }
}""",
        "pj",
        lang="c++",
        n=500,
    ),
    "rows of a matrix that a function returns": Shared(
        """#include <vector>
struct Matrix {
  Matrix(int m) : m(m), all((size_t)m * m) {}
  double &at(int i, int j) { return all[(size_t)i * m + j]; }
  double at(int i, int j) const { return all[(size_t)i * m + j]; }
  Matrix times(const Matrix &o) const {
    Matrix r(m);
#pragma omp parallel for
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        double s = 0;
        for (int p = 0; p < m; p++) s += at(i, p) * o.at(p, j);
        r.at(i, j) = s;
      }
    return r;
  }
  int m;
  std::vector<double> all;
};
extern "C" void k(int n, const double *x, double *y) {
  const int m = 30;
  Matrix a(m);
  for (int i = 0; i < n; i++) a.all[i] = 0.2 * x[i];
  Matrix b = a.times(a), c = b.times(a);
  for (int i = 0; i < n; i++) y[i] = c.all[i];
}""",
        "pjv",
        lang="c++",
        n=900,
    ),
    "local memory that steps leave to the next ones": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double w[400] = {0};
  int to[400];
  for (int i = 0; i < n; i++) { y[i] = 0; to[i] = (i * 37) % n; }
  for (int t = 0; t < 5; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      int c = to[i];
      for (int q = 0; q < 20; q++) w[c] += 0.1 * sin(x[i] + q + w[c]);
      y[c] += w[c] * x[c];
    }
  }
}""",
        "pjv",
        n=400,
    ),
    "local memory that nobody clears, and steps write and read in turn": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double w[2][512];
  for (int t = 0; t < 6; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      w[t % 2][i] = sin(x[i] * (t + 1)) + exp(-x[i] * x[i]) + pow(x[i], 0.3);
      if (t > 0) y[i] += w[(t + 1) % 2][(i + 7) % n] * cos(x[i]);
      else y[i] = 0;
    }
  }
}""",
        "pjv",
        n=512,
    ),
    "a few numbers that nobody clears, and steps write and read in turn": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double w[2][60];
  for (int t = 0; t < 6; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double s = 0;
      for (int q = 0; q < 60; q++) s += sin(x[i] * (t + q));
      w[t % 2][i] = s;
      if (t > 0) y[i] += w[(t + 1) % 2][(i + 7) % n] * cos(x[i]);
      else y[i] = 0;
    }
  }
}""",
        "",
        "local memory: it is touched in different ways",
        n=60,
    ),
    "an output that steps leave to the next ones": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int t = 0; t < 20; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double s = t ? y[i] : x[i];
      for (int q = 0; q < 60; q++) s += 0.01 * sin(s + 0.01 * q) * x[i];
      y[i] = s;
    }
  }
}""",
        "pjv",
        n=300,
    ),
    "private arrays, step by step": Shared(
        """#include <math.h>
#include <stdlib.h>
#include <string.h>
void k(int n, const double *x, double *y) {
  double *u = malloc(8 * n), *v = malloc(8 * n);
  memcpy(u, x, 8 * n);
  for (int t = 0; t < 3; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double w[16], z = 0;
      for (int q = 0; q < 16; q++) w[q] = sin(u[i] + q);
      for (int q = 0; q < 16; q++) z += 0.1 * w[q] * w[15 - q] * u[(i + q) % n];
      v[i] = z;
    }
    double *h = u;
    u = v;
    v = h;
  }
  memcpy(y, u, 8 * n);
  free(u);
  free(v);
}""",
        "pjv",
        n=600,
        all=True,
    ),
    "as many iterations as the step leaves": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int t = 0; t < 4; t++) {
#pragma omp parallel for
    for (int i = 100 * t; i < n; i++)
      for (int q = 0; q < 60; q++) y[i] += 0.01 * sin(y[i] + 0.01 * q) * x[i];
  }
}""",
        "pjv",
        n=600,
        all=True,
    ),
    "a triangular factorisation": Shared(
        """void k(int n, const double *x, double *y) {
  enum { M = 8 };
  for (int i = 0; i < n; i++) y[i] = x[i] + (i % (M + 1) == 0 ? 10 : 0);
  for (int p = 0; p < M; p++) {
#pragma omp parallel for
    for (int i = p + 1; i < M; i++) {
      y[i * M + p] /= y[p * M + p];
      for (int j = p + 1; j < M; j++) y[i * M + j] -= y[i * M + p] * y[p * M + j];
    }
  }
}""",
        "",
        n=64,
    ),
    "steps that add to one row or column, and change those behind it": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  int M = (int)sqrt((double)n);
  for (int i = 0; i < n; i++) y[i] = x[i] + (i % (M + 1) == 0 ? 50 : 0);
  for (int p = 0; p < M; p++) {
    for (int i = p + 1; i < M; i++) y[i * M + p] /= y[p * M + p];
#pragma omp parallel for schedule(dynamic)
    for (int i = p + 1; i < M; i++)
      for (int j = p + 1; j < M; j++) y[i * M + j] -= y[i * M + p] * y[j * M + p];
  }
  for (int p = 0; p < M; p++) {
#pragma omp parallel for
    for (int i = p + 1; i < M; i++) {
      y[i * M + p] /= y[p * M + p];
      for (int j = p + 1; j < M; j++) y[i * M + j] -= y[i * M + p] * y[p * M + j];
    }
  }
  for (int p = 0; p < M; p++) {
    double r = 0;
    for (int i = 0; i < M; i++) r += y[i * M + p] * y[i * M + p];
    for (int i = 0; i < M; i++) y[i * M + p] /= sqrt(r);
#pragma omp parallel for
    for (int j = p + 1; j < M; j++) {
      double d = 0;
      for (int i = 0; i < M; i++) d += y[i * M + p] * y[i * M + j];
      for (int i = 0; i < M; i++) y[i * M + j] -= d * y[i * M + p];
    }
  }
}""",
        "pjv",
        n=64 * 64,
        all=True,
    ),
    "steps of nested loops that all add to one number": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  enum { M = 64 };
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int p = 0; p < M; p++) {
#pragma omp parallel for
    for (int i = p + 1; i < M; i++) {
#pragma omp parallel for
      for (int j = p + 1; j < M; j++) y[i * M + j] = sin(y[i * M + j]) * cos(y[p * M + p]) + y[p * M + p];
    }
  }
}""",
        "pjv",
        n=64 * 64,
        all=True,
    ),
    "steps that add to a part of a row": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  enum { M = 64 };
  for (int i = 0; i < n; i++) y[i] = i % 2 ? -0. : x[i];
  for (int p = 0; p < M; p++) {
#pragma omp parallel for
    for (int i = p + 1; i < M; i++)
      for (int j = 0; j < M; j += 2) {
        double v = y[i * M + j] = sin(y[i * M + j]);
#pragma omp atomic
        y[p * M + j] += v * 1e-2;
      }
  }
  for (int i = 0; i < n; i++) y[i] = i % 2 ? copysign(1, y[i]) : y[i];
}""",
        "pjv",
        n=64 * 64,
    ),
    "vector": Shared(
        """#include <cmath>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
  std::vector<double> v(n);
#pragma omp parallel for
  for (int i = 0; i < n; i++) v[i] = std::sin(x[i]);
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = v[i] * v[n - 1 - i];
}""",
        "pjv",
        lang="c++",
    ),
    "a local array in steps that update what lies behind": Shared(
        """void k(int n, const double *x, double *y) {
  enum { M = 60 };
  double a[M][M];
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++) a[i][j] = x[i * M + j] + M * (i == j);
  for (int p = 0; p < 6; p++) {
#pragma omp parallel for
    for (int i = p + 1; i < M; i++) {
      a[i][p] /= a[p][p];
      for (int j = p + 1; j < M; j++) a[i][j] -= a[i][p] * a[p][j];
    }
  }
  for (int i = 0; i < M * M; i++) y[i] = a[i / M][i % M];
  for (int i = M * M; i < n; i++) y[i] = 0;
}""",
        "pjv",
    ),
    "loops inside of which only the run knows how long they are": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < n; i++) {
    double s = x[i];
    for (double t = 0; t < 1; t += 0.05 + 0.01 * (i % 3)) s = sin(s * x[(i + 7) % n]) + 0.1;
    y[i] = s;
  }
}""",
        "pjv",
        all=True,
    ),
    "a loop beside one with two entries": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double s = 1;
  int q = 0;
  if (x[0] > 0.3) goto within;
  for (; q < 9; q++) {
    s += x[q];
within:
    s = s * x[q + 1] + 0.2;
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = sin(x[i] * s) * x[(i + 1) % n];
}""",
        "pjv",
        all=True,
    ),
    "sums in rows that pointers in a table lead to": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *d = calloc(64, 8), **row = malloc(8 * sizeof *row);
  for (int i = 0; i < 8; i++) row[i] = d + 8 * i;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = 0;
    for (int q = 0; q < 8; q++) v += sin(x[i] * q);
#pragma omp atomic
    row[i % 8][i % 5] += v * x[i];
#pragma omp atomic
    d[i % 64] += v;
  }
  for (int i = 0; i < n; i++) y[i] = x[i] * d[i % 64];
  free(d);
  free(row);
}""",
        "pjv",
    ),
    "extremes that each iteration looks for in loops": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  enum { M = 60 };
  double hi = 0, lo = 9, last = -3, top = -1, where = 0;
#pragma omp parallel for reduction(max : hi, last) reduction(min : lo)
  for (int i = 0; i < M; i++)
    for (int j = i % 3; j < M; j++) {
      double v = sin(5 * x[i * M + j]);
      hi = fmax(hi, v * x[i]);
      if (v * x[j] < lo) lo = v * x[j];
      if (v * x[7] >= last) last = v * x[7];
    }
#pragma omp parallel
  {
    double best = -1, at = 0;
#pragma omp for nowait
    for (int i = 0; i < M; i++)
      for (int j = 0; j < M; j++) {
        double v = sin(7 * x[i * M + j]) * x[M * M - i];
        at = v > best ? i * j : at;
        best = v > best ? v : best;
      }
#pragma omp critical
    if (best > top) top = best, where = at;
  }
  for (int i = 0; i < n; i++) y[i] = x[i] * hi + lo * last * x[n - 1 - i] + top * where;
}""",
        "pjv",
    ),
    "the largest change of a step": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  enum { M = 60 };
  double u[M][M], w[M][M], most = 0, all = 0;
  for (int i = 0; i < M; i++) for (int j = 0; j < M; j++) u[i][j] = w[i][j] = x[i * M + j];
  for (int t = 0; t < 3; t++) {
    most = 0;
#pragma omp parallel for reduction(max : most)
    for (int i = 1; i < M - 1; i++)
      for (int j = 1; j < M - 1; j++) {
        w[i][j] = 0.25 * sin(u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
        if (fabs(w[i][j] - u[i][j]) > most) most = fabs(w[i][j] - u[i][j]);
      }
    all += most;
    for (int i = 1; i < M - 1; i++) for (int j = 1; j < M - 1; j++) u[i][j] = w[i][j];
  }
  for (int i = 0; i < n; i++) y[i] = u[i % M][i / M % M] + all * x[i];
}""",
        "pjv",
        all=True,
    ),
    "sums in one of two arrays, which data chose before": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *a = calloc(64, 8), *b = calloc(64, 8), *h;
  if (x[0] > 0.5) {
    h = a;
    for (int i = 0; i < 9; i++) b[i] = x[i];
  } else {
    h = b;
    for (int i = 0; i < 9; i++) a[i] = x[i] * x[i];
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double v = exp(sin(x[i]));
#pragma omp atomic
    h[i * 7 & 63] += v;
  }
  for (int i = 0; i < n; i++) y[i] = x[i] + h[i & 63] + a[i & 7] * b[i & 7];
  free(a), free(b);
}""",
        "pjv",
    ),
    "rows of a sparse matrix that is kept, in chunks": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int *row = malloc((n + 1) * 4);
  double *a = malloc(n * 5 * 8), *q = malloc(n * 8);
  row[0] = 0;
  for (int i = 0; i < n; i++) row[i + 1] = row[i] + 3 + i % 3;
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = row[i]; j < row[i + 1]; j++) a[j] = sin(x[i] * (j - row[i] + 1));
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int j = row[i]; j < row[i + 1]; j++) s += exp(a[j] * x[i]);
    q[i] = s;
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = sin(q[i]) * exp(q[i]);
  free(row), free(a), free(q);
}""",
        "pjv",
        all=True,
    ),
    "a vector of each iteration's own, in collapsed loops": Shared(
        """#include <vector>
#include <cmath>
extern "C" void k(int n, const double *x, double *y) {
  constexpr int H = 4, M = 32;
#pragma omp parallel for collapse(2)
  for (int h = 0; h < H; h++)
    for (int i = 0; i < M; i++) {
      std::vector<double> score(M);
      double top = -9, z = 0, s = 0;
      for (int j = 0; j < M; j++) top = std::fmax(top, score[j] = x[i * H + h] * x[j * H + h]);
      for (int j = 0; j < M; j++) z += score[j] = std::exp(score[j] - top);
      for (int j = 0; j < M; j++) s += score[j] * x[j * H + h];
      y[i * H + h] = s / z;
    }
  for (int i = H * M; i < n; i++) y[i] = 0;
}""",
        "pjv",
        lang="c++",
        n=140,
        all=True,
    ),
    "a vector of each thread's own, made behind a loop": Shared(
        """#include <algorithm>
#include <cmath>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
  std::vector<double> q(8);
  for (int c = 0; c < 8; c++) q[c] = std::exp(x[c]);
  double total = 0;
#pragma omp parallel
  {
    std::vector<double> term(8);
#pragma omp for reduction(+ : total)
    for (int i = 0; i < n; i++) {
      for (int c = 0; c < 8; c++) term[c] = q[c] * x[i] - 0.5 * x[i] * x[i] * (c + 1);
      double top = *std::max_element(term.begin(), term.end()), z = 0;
      for (int c = 0; c < 8; c++) z += std::exp(term[c] - top);
      total += top + std::log(z);
    }
  }
  for (int i = 0; i < n; i++) y[i] = total * x[i];
}""",
        "pjv",
        lang="c++",
        n=500,
        all=True,
    ),
    "pairs that add to both of their ends": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for reduction(+ : y[:n]) schedule(dynamic)
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++) {
      double d = x[j] - x[i], w = d / sqrt(d * d + 0.01);
      y[i] += w;
      y[j] -= w;
    }
}""",
        "pjv",
        n=90,
        all=True,
    ),
    "vectors of several lengths, of each iteration's own": Shared(
        """#include <cmath>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < n; i++) {
    int m = 5 + i % 9;
    std::vector<double> w(m), v(m, 0.0);
    for (int j = 0; j < m; j++) w[j] = x[(i + j) % n] * x[i];
    for (int j = 1; j < m; j++) v[j] += std::sin(w[j - 1]) * w[j];
    double t = 0;
    for (int j = 0; j < m; j++) t += v[j] * w[j];
    y[i] = t;
  }
}""",
        "pjv",
        lang="c++",
        n=400,
        all=True,
    ),
    "neighbours that there are none of at the edges": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  enum { M = 40 };
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++) {
      double s = (4 + x[i] * x[j]) * sin(x[i * M + j]);
      if (i > 0) s -= x[(i - 1) * M + j];
      if (i < M - 1) s -= x[(i + 1) * M + j];
      if (j > 0) s -= x[i * M + j - 1];
      if (j < M - 1) s -= x[i * M + j + 1];
      y[i * M + j] = s;
    }
}""",
        "pjv",
        n=1600,
        all=True,
    ),
    "sums in a local array that is read again": Shared(
        """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double bins[64] = {0}, *far = calloc(64, 8);
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    int b = i * i & 62;
    double f = exp(-x[i]);
#pragma omp atomic
    bins[b] += f;
#pragma omp atomic
    bins[b + 1] += f * x[i];
#pragma omp atomic
    far[b] += f * f;
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = x[i] * bins[i & 63] * sin(x[i] * far[i & 62]);
  free(far);
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "a stack of each iteration's own, in chunks": Shared(
        """void k(int n, const double *x, double *y) {
#pragma omp parallel for schedule(dynamic, 8)
  for (int i = 0; i < n; i++) {
    int stack[64], top = 0;
    double s = 0, w[64];
    stack[top++] = 1;
    while (top) {
      int c = stack[--top];
      w[c & 63] = x[(i + c) % n] * (c & 1 ? x[i] : 2);
      s += w[c & 63] * w[c & 63];
      if (c < 12 + i % 9) stack[top++] = 2 * c, stack[top++] = 2 * c + 1;
    }
    y[i] = s;
  }
}""",
        "pjv",
        n=1000,
    ),
    "sums in memory that is made only sometimes": Shared(
        """#include <stdlib.h>
void k(int n, const double *x, double *y) {
  double *h = x[0] > 0.1 ? calloc(64, 8) : NULL;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    y[i] = x[i];
    if (h) {
#pragma omp atomic
      h[i * 7 & 63] += x[i] * x[i];
    }
  }
  for (int i = 0; i < 64; i++) y[i] *= h ? h[i] : 1;
  free(h);
}""",
        "v",
        "it is reached through a pointer that is loaded or chosen",
    ),
    "a thread's own memory behind a pointer that data chose": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel
  {
    double w[64], *p = w;
    for (int s = 0; x[s] > 0.5 && s < 20; s++) p++;
#pragma omp for
    for (int i = 0; i < n; i++) {
      int m = 8 + i % 23;
      for (int q = 0; q < m; q++) p[q] = x[(i + q) % n] * (q + 1);
      for (int r = 0; r < 5; r++)
        for (int q = 1; q < m; q++) p[q] += .01 * sin(p[q - 1]) * p[(q * 3) % m];
      double a = 0;
      for (int q = 0; q < m; q++) a += p[q];
      y[i] = a;
    }
  }
}""",
        "",
        "iterations touch the same places of it",
    ),
    "sweeps until one changes little": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double e = 1;
  for (int i = 0; i < n; i++) y[i] = x[i];
  while (e > 1e-2) {
    e = 0;
#pragma omp parallel for reduction(max : e)
    for (int i = 0; i < n; i++) {
      double o = y[i];
      y[i] = 0.5 * (o + x[i] * sin(o) / (1 + o * o));
      double d = fabs(o - y[i]);
      if (d > e) e = d;
    }
  }
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "sweeps, in a function, from one array into another until they agree": Shared(
        """#include <math.h>
static double sweep(int n, const double *x, const double *u, double *v) {
  double e = 0;
#pragma omp parallel for reduction(+ : e)
  for (int i = 1; i < n - 1; i++) {
    v[i] = 0.25 * (u[i - 1] + u[i + 1]) + x[i] * sin(u[i]) / 4;
    e += (v[i] - u[i]) * (v[i] - u[i]);
  }
  return sqrt(e);
}
void k(int n, const double *x, double *y) {
  double v[2000] = {0};
  for (int i = 0; i < n; i++) y[i] = 0;
  y[0] = v[0] = x[0], y[n - 1] = v[n - 1] = x[n - 1];
  do sweep(n, x, y, v);
  while (sweep(n, x, v, y) > 1e-1);
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "the largest of several sums, in an array that stays in registers": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double m[8];
  for (int j = 0; j < 8; j++) m[j] = -1e300;
#pragma omp parallel for reduction(max : m[:8])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 8; j++) m[j] = fmax(m[j], sin(x[i]) * exp(x[i]) * ((i * 7919 + 37 * j) % 4001));
  for (int i = 0; i < n; i++) y[i] = m[i % 8];
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "the largest in each class, of as many as the caller says": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  int K = n / 100;
  double m[K];
  for (int j = 0; j < K; j++) m[j] = -1e300;
#pragma omp parallel for reduction(max : m[:K])
  for (int i = 0; i < n; i++) {
    int j = i * 7 % K;
    double a = sin(x[i]) * exp(x[i]) * (i * 7919 % 4001);
    if (a > m[j]) m[j] = a;
  }
  for (int i = 0; i < n; i++) y[i] = m[i % K];
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "the smallest in each class of data, one iteration at a time": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double m[12] = {0};
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double a = -sin(x[i]) * exp(x[i]) * (i * 7919 % 4001);
    int j = (int)(x[i] * 8);
#pragma omp critical
    m[j] = fmin(m[j], a);
  }
  for (int i = 0; i < n; i++) y[i] = m[i % 12];
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "products in an allocatable array of Fortran": Shared(
        """subroutine k(n, x, y) bind(c)
  integer :: n, i, j, kk
  real(8) :: x(n), y(n)
  real(8), allocatable :: m(:)
  kk = n / 100
  allocate(m(kk))
  m = 1
!$omp parallel do reduction(*: m) private(j)
  do i = 1, n
    j = mod(i * 7, kk) + 1
    m(j) = m(j) * (1 + sin(x(i) * j) * exp(x(i)) * 1d-2)
  end do
  do i = 1, n
    y(i) = m(mod(i, kk) + 1)
  end do
end subroutine""",
        "pjv",
        lang="fortran",
        n=2000,
        all=True,
    ),
    "the largest of two that were read before either was replaced": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double m[8];
  for (int j = 0; j < 8; j++) m[j] = -1e300;
#pragma omp parallel for reduction(max : m)
  for (int i = 0; i < n; i++) {
    double a = sin(x[i]) * exp(x[i]) * (i * 7919 % 4001), b = a - i * 31 % 500;
    int j = i * 7 % 8, l = (int)(x[i] * 5);
    double p = m[j], q = m[l];
    if (a > p) m[j] = a;
    if (b > q) m[l] = b;
  }
  for (int i = 0; i < n; i++) y[i] = m[i % 8];
}""",
        "",
        "iterations touch the same places of it",
        n=2000,
    ),
    "forces between all pairs, in Fortran": Shared(
        """subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: f(2, n / 2), d(2)
  integer :: i, j
  f = 0
  !$omp parallel do reduction(+: f) private(d)
  do i = 1, n / 2 - 1
    do j = i + 1, n / 2
      d = x(2 * i - 1:2 * i) - x(2 * j - 1:2 * j)
      d = d / (sum(d * d) + 0.1d0)
      f(:, i) = f(:, i) - d
      f(:, j) = f(:, j) + d
    end do
  end do
  y = reshape(f, [n])
end subroutine""",
        "pjv",
        lang="fortran",
        n=300,
        all=True,
    ),
    "an array of the last iteration's, in Fortran": Shared(
        """subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: w(4), v(n / 1000)
  integer :: i, j
  !$omp parallel do lastprivate(w, v)
  do i = 1, n
    do j = 1, 4
      w(j) = sin(j * x(i))
      v(1 + mod(j, n / 1000)) = w(j) * x(i)
    end do
    v(n / 1000) = v(1) * x(i)
    y(i) = sum(w) * v(1)
  end do
  y(5:8) = w(1:4) * y(5:8)
  y(1:2) = v(1:2) + y(1:2)
end subroutine""",
        "pjv",
        lang="fortran",
        all=True,
    ),
    "a value of the last iteration, where data say which one that is": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  int m = 1000 * x[0] + 500;
  double last = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel for lastprivate(last)
  for (int i = 0; i < m; i++) {
    last = sin(x[i]) * exp(x[i]);
    y[i] = last * last;
  }
  y[0] += last;
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "a value of the last iteration of loops that grow": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
  for (int t = 1; t < 14; t++) {
    double last = 0;
#pragma omp parallel for lastprivate(last)
    for (int i = 0; i < t * 100; i++) {
      last = sin(x[i]) * exp(x[i]);
      y[i] += last * last;
    }
    y[t] += last;
  }
}""",
        "pjv",
        n=1500,
        all=True,
    ),
    "a flag that iterations set in branches, beside sums": Shared(
        """subroutine k(n, x, y) bind(c)
  integer :: n, i, nbad
  real(8) :: x(n), y(n), s
  logical :: ok
  ok = .true.; s = 0; nbad = 0
!$omp parallel do reduction(.and.: ok) reduction(+: s, nbad)
  do i = 1, n
    y(i) = sin(x(i)) * exp(x(i))
    if (y(i) < 0.3d0) then
      ok = .false.
      nbad = nbad + 1
    else
      s = s + y(i)
    end if
  end do
  if (.not. ok) y(1) = y(1) * s + nbad
end subroutine""",
        "pjv",
        lang="fortran",
        n=2000,
        all=True,
    ),
    "sweeps until no iteration says that there was a change": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int done = 0, turn = 0; !done && turn < 9; turn++) {
    done = 1;
#pragma omp parallel for reduction(&& : done)
    for (int i = 0; i < n; i++) {
      double o = y[i];
      y[i] = 0.5 * (o + x[i] * sin(o) / (1 + o * o));
      if (fabs(o - y[i]) > 1e-2) done = 0;
    }
  }
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "what reductions come to, kept by each iteration": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double s = 0, h = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < n; i++) {
    s += sin(x[i]);
    y[i] = s;
  }
#pragma omp parallel for reduction(+ : h)
  for (int i = 0; i < n; i++) {
    h = sin(h) + x[i];
    y[i] += h;
  }
  y[0] = s * h;
}""",
        "v",  # whose first sweep needs the sum alone
        "each iteration needs a value from the one before",
    ),
    "what the program declares how to join, in an array and a section as long as the caller says": Shared(
        """#include <math.h>
#pragma omp declare reduction(far : double : omp_out = fabs(omp_in) > fabs(omp_out) ? omp_in : omp_out) \\
    initializer(omp_priv = 0)
void k(int n, const double *x, double *y) {
  double m[8] = {0}, all[n / 400], *p = all;
  for (int j = 0; j < n / 400; j++) p[j] = j;
#pragma omp parallel for reduction(far : m[:8], p[1 : n / 400 - 1])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 8; j++) {
      double a = cos(3 * x[i]) * exp(x[i]) * ((i * 7919 + 37 * j) % 4001);
      if (fabs(a) > fabs(m[j])) m[j] = a;
      if (fabs(a) > fabs(p[j % 4 + 1])) p[j % 4 + 1] = -a;
    }
  for (int i = 0; i < n; i++) y[i] = m[i % 8] * p[i % 5];
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "what the program declares how to join, in an array of records": Shared(
        """#include <math.h>
typedef struct { double s, q; int n; } moments;
#pragma omp declare reduction(add : moments : omp_out.s += omp_in.s, omp_out.q += omp_in.q, omp_out.n += omp_in.n) \\
    initializer(omp_priv = (moments){0, 0, 0})
void k(int n, const double *x, double *y) {
  moments m[3] = {{0}};
#pragma omp parallel for reduction(add : m)
  for (int i = 0; i < n; i++) {
    moments *p = m + i % 3;
    double a = sin(x[i]) * exp(x[i]);
    p->s += a, p->q += a * a, p->n++;
  }
  for (int i = 0; i < n; i++) y[i] = m[i % 3].q / m[i % 3].n - m[i % 3].s;
}""",
        "pjv",
        n=2000,
        all=True,
    ),
    "what a program in Fortran declares how to join, a record": Shared(
        """module t
  type best
    real(8) :: v = 0
    integer :: at = 0
  end type
contains
  subroutine better(a, b)
    type(best), intent(inout) :: a
    type(best), intent(in) :: b
    if (abs(b%v) > abs(a%v)) a = b
  end subroutine
end module
subroutine k(n, x, y) bind(c)
  use t
  integer :: n, i
  real(8) :: x(n), y(n), a
  type(best) :: m
!$omp declare reduction(far : best : better(omp_out, omp_in)) initializer(omp_priv = best(0, 0))
  y = 0
!$omp parallel do reduction(far: m) private(a)
  do i = 1, n
    a = cos(3 * x(i)) * exp(x(i)) * mod(i * 7919, 4001)
    call better(m, best(a, i))
  end do
  y(1) = m%v * m%at
end subroutine""",
        "pjv",
        lang="fortran",
        n=2000,
        all=True,
    ),
    "what a program in Fortran declares how to join by functions and expressions, of none too": Shared(
        """module t
contains
  pure function further(a, b) result(c)
    real(8), intent(in) :: a, b
    real(8) :: c
    c = a
    if (abs(b) > abs(a)) c = b
  end function
end module
subroutine k(n, x, y) bind(c)
  use t
  integer :: n, i, q
  real(8) :: x(n), y(n), m, h, a
!$omp declare reduction(far : real(8) : omp_out = further(omp_out, omp_in)) initializer(omp_priv = 0d0)
!$omp declare reduction(hyp : real(8) : omp_out = sqrt(omp_out * omp_out + omp_in * omp_in)) initializer(omp_priv = 0d0)
  y = 0
  do q = 0, n, n
  m = 0.5d0
  h = 0.5d0
!$omp parallel do reduction(far: m) reduction(hyp: h) private(a)
  do i = 1, q
    a = cos(3 * x(i)) * exp(x(i)) * mod(i * 7919, 4001)
    m = further(m, a)
    if (mod(i, 3) == 0) h = sqrt(h * h + a * a)
  end do
  y(1) = y(1) + m
  y(2) = y(2) + h
  end do
end subroutine""",
        "pjv",
        lang="fortran",
        n=2000,
        all=True,
    ),
    "tasks of blocks, of which the last one is shorter": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel
#pragma omp single
  for (int begin = 0; begin < n; begin += 96)
#pragma omp task
    for (int i = begin; i < (begin + 96 < n ? begin + 96 : n); i++) {
      double s = x[i];
      for (int j = 0; j < 30; j++) s = sin(s) + x[i];
      y[i] = s;
    }
}""",
        "pjv",
        all=True,
    ),
    "a row of which every other number is cleared in front of the loop": Shared(
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double row[384];
  for (int j = 0; j < 190; j++) row[2 * j + 1] = 0;
  for (int i = 0; i < n / 96; i++) {
    for (int j = 0; j < 96; j++) {
      double s = x[96 * i + j];
      for (int r = 0; r < 12; r++) s = sin(s) + x[96 * i];
      row[2 * j] = s;
    }
    for (int j = 0; j < 96; j++) y[96 * i + j] = row[2 * j] * (row[190 - 2 * j] + row[2 * j + 1]);
  }
}""",
        "pjv",
        n=96 * 96,
    ),
    "tasks of blocks of rows, which share a row of sums that each clears behind it": Shared(
        """#include <math.h>
#define M 96
void k(int n, const double *x, double *y) {
  static double b[M * M];
  for (int i = 0; i < M * M; i++) b[i] = cos(x[i]);
#pragma omp parallel
#pragma omp single
  for (int begin = 0; begin < M; begin += 16)
#pragma omp task
    for (int i = begin; i < (begin + 16 < M ? begin + 16 : M); i++)
      for (int j = 0; j < M; j++) {
        double s = 0;
        for (int k = 0; k < M; k++) s += x[i * M + k] * b[k * M + j];
        y[i * M + j] = tanh(s);
      }
}""",
        "pjv",
        n=96 * 96,
        all=True,
    ),
}


def _inputs(n: int) -> np.ndarray:
    return np.random.default_rng(4).uniform(0.2, 1.4, n)


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    case = CASES[name]
    signature = SIGNATURE if case.lang != "fortran" else SIGNATURE.replace("i32", "i32[]")
    flags = ("-fopenmp",) if "omp parallel" in case.source else ()
    kernel = native(case.source, "k", signature, {"n": case.n}, lang=case.lang, flags=flags)
    serial = native(case.source, "k", signature, {"n": case.n}, lang=case.lang)
    x = _inputs(case.n)
    for letter, steps in STEPS.items():
        said = derived.sharing(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
        given = [x if b.name == "x" else np.cos(np.arange(case.n)) for b in _built(kernel, steps).buffers if b.is_input]
        team = Team()
        alone, together = call(_built(kernel, steps), given), call(_built(kernel, steps), given, team=team.address)
        assert [a.tobytes() for a in alone] == [b.tobytes() for b in together]
        if not steps:
            np.testing.assert_allclose(alone[0], serial.run((), given)[0], rtol=1e-9, atol=1e-11)
        if case.shares != "?":
            assert bool(team.ran) is (letter in case.shares), said
        if case.all:
            assert all(text.endswith("on several threads") for text in said), said
            assert letter != "v" or any(text.startswith("the reverse of ") for text in said), said
        if letter not in case.shares and case.reason:
            assert any(case.reason in text for text in said), said
    agree(three_way(kernel, [x], sweeps="both" if list(CASES).index(name) % 2 else "together"))


def _built(kernel: native, steps: tuple[Step, ...]) -> derived.Built:
    return derived.build(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)


def test_a_shared_loop_is_vectorised_where_accesses_of_one_array_have_several_strides() -> None:
    source = """#include <math.h>
void k(int n, const double *x, double *y) {
  int m = n / 4;
#pragma omp parallel for
  for (int i = 0; i < m; i++) {
    double a = sqrt(x[i] + 1 / x[i]), b = sqrt(a + 1 / a);
    y[i] = a;
    y[m + 3 * i] = b;
    y[m + 3 * i + 1] = a / b;
    y[m + 3 * i + 2] = a * b;
  }
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 8000}, flags=("-fopenmp",))
    function = derived.regular(kernel.program, kernel.signature, kernel.binding, kernel.options)
    shared, said = share_marked_loops(function)
    assert [text.endswith("on several threads") for text in said] == [True]
    assert "llvm.loop.isvectorized" in optimised_text(entry_module(shared))
    x = _inputs(8000)
    np.testing.assert_allclose(call(_built(kernel, ()), [x])[0][:2000], np.sqrt(x[:2000] + 1 / x[:2000]), rtol=1e-14)


def test_iterations_that_add_to_a_variable_of_a_loop_around_them_have_it_in_common_on_the_tape() -> None:
    """Each iteration of the loop around has its own there, and not each of the loop inside."""
    source = """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int s = 0; s < 3; s++) {
    double bins[16] = {0};
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double f = exp(-x[i]) * (s + 1);
#pragma omp atomic
      bins[(i * 7) & 15] += f * f;
    }
    for (int i = 0; i < n; i++) y[i] = (s ? y[i] : 0) + x[i] * sin(bins[i & 15] * x[i]);
  }
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 2000}, flags=("-fopenmp",))
    said = derived.sharing(kernel.program, kernel.signature, kernel.binding, STEPS["v"], kernel.options)
    assert "on one thread" in said[0], said
    agree(three_way(kernel, [_inputs(2000)]))


def test_a_variable_that_is_copied_to_the_tape_in_the_end_lives_until_then() -> None:
    source = """#include <math.h>
void k(int n, const double *x, double *y) {
  if (x[0] < 99) {
    double bins[16] = {0};
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
#pragma omp atomic
      bins[(i * 7) & 15] += exp(-x[i]);
    }
    for (int i = 0; i < n; i++) y[i] = sin(bins[i & 15] * x[i]);
  }
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 2000}, flags=("-fopenmp",))
    gradient = derived.derived(kernel.program, kernel.signature, kernel.binding, STEPS["v"], kernel.options)
    text = to_text(gradient.module)
    assert re.search(r"call void @llvm.memcpy.*i64 128", text) and "call void @llvm.lifetime.end" not in text
    agree(three_way(kernel, [_inputs(2000)]))


def test_functions_that_are_called_add_to_what_their_caller_has_on_its_tape() -> None:
    """As the parts of a loop do that is cut by checkpoints: what they write there is no slot of an iteration's own."""
    source = """#include <math.h>
void k(int n, const double *x, double *y) {
  double u[64], v[64], *p = u, *q = v;
  for (int i = 0; i < 64; i++) u[i] = x[i], v[i] = 0;
  for (int s = 0; s < 7; s++) {
    for (int i = 0; i < 64; i++) q[i] = 0;
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
#pragma omp atomic
      q[i % 64] += p[(i * 3) % 64] * cos(x[i]) / n * 64;
    }
    double *t = p; p = q; q = t;
  }
  for (int i = 0; i < n; i++) y[i] = p[i % 64] * x[i];
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 2000}, flags=("-fopenmp",))
    kernel = replace(kernel, options=Options(checkpoint=3))
    said = derived.sharing(kernel.program, kernel.signature, kernel.binding, STEPS["v"], kernel.options)
    assert said and all("on one thread" in text for text in said), said
    agree(three_way(kernel, [_inputs(2000)]))


@pytest.mark.parametrize(("index", "phases"), [("i ^ 5", 2), ("(i + 4 * (i % 3)) % n", 2), ("i * 7919 % n", 0)])
def test_ranges_that_add_to_pages_of_their_own_run_at_once(index: str, phases: int) -> None:
    """Where data decide where iterations add: ranges note what they will touch, and go on together if they may."""
    source = f"""#include <math.h>
void k(int n, const double *x, double *y) {{
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = exp(x[{index}]) * x[i];
}}"""
    kernel = native(source, "k", SIGNATURE, {"n": 16_384}, flags=("-fopenmp",))
    x = _inputs(16_384)
    found: list[bytes] = []
    for threads in (0, 2, 3):
        team = Team(threads=threads)
        given = [x, np.cos(x)]
        result = call(_built(kernel, STEPS["v"]), given, team=team.address if threads else None)
        ran = [(a, b) for parts in team.ran.values() for a, b in parts]
        if threads:
            assert (ran.count((6, 8)), ran.count((6, 7))) == (1, phases), "what they touch, then what they add"
        found.append(result[-1].tobytes())
    assert len(set(found)) == 1
    agree(three_way(kernel, [x]))


def test_rows_whose_lengths_are_data_are_not_taken_for_as_long_as_a_type_permits() -> None:
    """Each range would have a copy of all of f, of more numbers than are added."""
    source = """#include <stdlib.h>
#include <math.h>
void k(int n, const double *x, double *y) {
  int m = n / 8, *first = malloc(4 * (m + 1)), *list = malloc(4 * n);
  double *f = malloc(8 * n);
  for (int i = 0; i <= m; i++) first[i] = 8 * i - (x[i] > 9);
  for (int q = 0; q < n; q++) list[q] = q ^ 5;
#pragma omp parallel for
  for (int q = 0; q < n; q++) f[q] = sin(x[q]);
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double s = 0;
    if (i < m)
      for (int q = first[i]; q < first[i + 1]; q++) s += f[list[q]] * f[list[q]];
    y[i] = s;
  }
  free(first); free(list); free(f);
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 16_384}, flags=("-fopenmp",))
    gradient = derived.derived(kernel.program, kernel.signature, kernel.binding, STEPS["v"], kernel.options)
    text = to_text(share_marked_loops(canonical(gradient))[0].module)
    sizes = [int(size) for size in re.findall(r"[cm]alloc\(i64 (?:noundef )?(\d+)", text)]
    assert len(sizes) >= 3 and max(sizes) < 8 * 8 * 16_384
    x = _inputs(16_384)
    found = [
        call(_built(kernel, STEPS["v"]), [x, np.cos(x)], team=t and t.address)[-1] for t in (None, Team(2), Team(4))
    ]
    assert len({f.tobytes() for f in found}) == 1
    agree(three_way(kernel, [x]))


def test_loops_that_add_up_as_often_as_data_say_are_cut_when_they_begin() -> None:
    """Some of the last ranges may be empty, and loops that are too short for copies are one range."""
    source = """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int m = (int)x[0], high = 3, *at = malloc(4 * n);
  if (m > n - 1) m = n - 1;
  double e = 0, h[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; i++) { y[i] = 0; at[i] = (i * 7 + 3) % n; }
#pragma omp parallel for reduction(+ : e, h[:4]) reduction(max : high)
  for (int q = 0; q < m; q++) {
    double v = exp(-x[1 + q]) * sin(3 * x[1 + at[q] % (n - 1)]);
    e += v * v;
    h[q & 3] += v;
    high = at[q] > high ? at[q] : high;
#pragma omp atomic
    y[at[q]] += v * x[1];
  }
  for (int i = 0; i < n; i++) y[i] += (e + high) * h[i & 3];
  free(at);
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 900}, flags=("-fopenmp",))
    serial = native(source, "k", SIGNATURE, {"n": 900})
    x = _inputs(900)
    for steps in STEPS.values():
        said = derived.sharing(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
        assert said and all(text.endswith("on several threads") for text in said), said
        built = _built(kernel, steps)
        for m in (0, 1, 17, 401, 899):
            x[0] = m + 0.5
            given = [x if b.name == "x" else np.cos(np.arange(900)) for b in built.buffers if b.is_input]
            alone, teams = call(built, given), [Team(2), Team(4)]
            together = [call(built, given, team=team.address) for team in teams]
            assert {b"".join(a.tobytes() for a in t) for t in together} == {b"".join(a.tobytes() for a in alone)}
            assert all(bool(team.ran) is (m > 400) for team in teams), m
            if not steps:
                np.testing.assert_allclose(alone[0], serial.run((), given)[0], rtol=1e-9, atol=1e-11)
    agree(three_way(kernel, [x]))


def test_iterations_that_keep_rows_whose_lengths_are_data_for_a_later_call_are_shared() -> None:
    source = """#include <math.h>
#include <stdlib.h>
void k(int n, const double *x, double *y) {
  int *at = malloc(4 * (n + 1));
  double *w = malloc(8 * n);
  at[0] = 0;
  for (int i = 0; i < n; i++) { at[i + 1] = at[i] + (x[i] > 0.5 ? 8 : 4); w[i] = x[i]; }
  for (int t = 0; t < 3; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double s = 0;
      for (int j = at[i]; j < at[i + 1]; j++) s += w[7 * j % n] * w[i];
      y[i] = s;
    }
    for (int i = 0; i < n; i++) w[i] = sin(y[i]);
  }
  free(at);
  free(w);
}"""
    x, found = _inputs(3000), set[bytes]()
    for threads in (1, 2):
        options = je.Options(threads=threads)
        kernel = je.kernel(source, "k", SIGNATURE, lang="c", flags=("-fopenmp",), options=options)
        found.add(np.asarray(jax.grad(lambda x, k=kernel: jnp.sum(k(x) ** 2))(x)).tobytes())
    said = [text for name, text in kernel.inspect(x).loops if name == "augmented"]
    assert len(found) == 1 and said and all(text.endswith("on several threads") for text in said), said


def test_the_option_caps_the_threads_and_changes_no_bit() -> None:
    x = _inputs(4000)
    found: list[bytes] = []
    for threads in (1, 2, 4, None):
        options = je.Options(threads=threads)
        kernel = je.kernel(CASES["sums"].source, "k", SIGNATURE, lang="c", flags=("-fopenmp",), options=options)
        value, gradient = jax.jit(jax.value_and_grad(lambda x, k=kernel: jnp.sum(k(x) ** 2)))(x)
        batch = jax.vmap(kernel)(jnp.stack([x, x]))
        found.append(np.asarray(value).tobytes() + np.asarray(gradient).tobytes() + np.asarray(batch).tobytes())
    assert len(set(found)) == 1
    with pytest.raises(ValueError, match="threads"):
        je.Options(threads=0)


REPEATED = {
    "atomic sums of each step": (
        """#include <math.h>
void k(int n, const double *x, double *y) {
  for (int s = 0; s < 3; s++) {
    double bins[16] = {0};
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double f = exp(-x[i]) * (s + 1);
#pragma omp atomic
      bins[(i * 7) & 15] += f * f;
    }
#pragma omp parallel for
    for (int i = 0; i < n; i++) y[i] = (s ? y[i] : 0) + x[i] * sin(bins[i & 15] * x[i]);
  }
}""",
        je.Options(),
    ),
    "steps between checkpoints": (
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double u[2000], v[2000], e = 0;
  for (int i = 0; i < n; i++) u[i] = v[i] = x[i];
  for (int t = 0; t < 12; t++) {
#pragma omp parallel for reduction(+ : e)
    for (int i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * sin(u[i - 1] - 2 * u[i] + u[i + 1]), e += v[i] * u[i];
    for (int i = 0; i < n; i++) u[i] = v[i] * (1 + 1e-6 * e);
  }
  for (int i = 0; i < n; i++) y[i] = u[i];
}""",
        je.Options(checkpoint="sqrt"),
    ),
    "the largest in each class, through indices": (
        """#include <math.h>
void k(int n, const double *x, double *y) {
  double m[16] = {0};
#pragma omp parallel for reduction(max : m)
  for (int i = 0; i < n; i++) {
    int j = x[i] * 11;
    double a = sin(x[i]) * exp(x[(i * 37) % n]);
    if (a > m[j]) m[j] = a;
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = exp(m[i & 15] * x[(i * 7) % n]);
}""",
        je.Options(),
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_gradients_have_the_same_bits_each_time(name: str) -> None:
    """On threads that wait for nobody: what races differs now and then."""
    source, asked = REPEATED[name]
    x = _inputs(2000)
    found: dict[bytes, int] = {}
    for threads, calls in ((1, 1), (2, 50)):
        options = replace(asked, threads=threads)
        kernel = je.kernel(source, "k", SIGNATURE, lang="c", flags=("-fopenmp",), options=options)
        gradient = jax.jit(jax.grad(lambda x, k=kernel: jnp.sum(k(x) ** 2)))
        for _ in range(calls):
            bits = np.asarray(gradient(x)).tobytes()
            found[bits] = found.get(bits, 0) + 1
    assert list(found.values()) == [51]


@pytest.mark.parametrize("relation", ["<", "<="])
def test_of_equals_the_same_one_is_the_best_whatever_range_it_is_in(relation: str) -> None:
    source = """void k(int n, const double *x, double *y) {
  double best = 1;
  int at = -1;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
#pragma omp critical
    if (x[i] RELATION best) { best = x[i]; at = i; }
  }
  y[0] = best;
  y[1] = at;
}""".replace("RELATION", relation)
    kernel = je.kernel(source, "k", "n: i32, x: f64[n], out y: f64[2]", lang="c", flags=("-fopenmp",))
    tied = np.floor(_inputs(20_000) * 16) / 16
    assert any("on several threads" in text for _, text in kernel.inspect(tied).loops)
    first = np.concatenate([[1.0], np.full(19_999, 2.0)])
    for x in (tied, np.where(np.arange(20_000) % 3, tied, np.nan), first, np.full(20_000, np.nan)):
        best, at = 1.0, -1
        for i, value in enumerate(x.tolist()):
            if value < best or (value == best and relation == "<="):
                best, at = value, i
        assert kernel(x).tolist() == [best, at]


@pytest.mark.parametrize(
    "step",
    ["m[at] = fmax(m[at], 1.5 * x[i])", "m[at] = m[at] > x[i] ? m[at] : x[i]", "if (x[i] > m[at]) m[at] = x[i]"],
)
def test_what_no_iteration_came_to_stays_no_number(step: str) -> None:
    """As a mark of places without data; NaN is replaced by any number in the first two, and by none in the third."""
    source = f"""#include <math.h>
void k(int n, const double *x, double *y) {{
  double m[16];
  for (int j = 0; j < 16; j++) m[j] = j % 3 ? NAN : x[j];
#pragma omp parallel for
  for (int i = 0; i < n; i++) {{
    int at = i * 7 % 14;
#pragma omp critical
    {{ {step}; }}
  }}
  for (int i = 0; i < n; i++) y[i] = m[i % 16] * x[i];
}}"""
    x = _inputs(4000)
    serial = native(source, "k", SIGNATURE, {"n": 4000})
    kernel = native(source, "k", SIGNATURE, {"n": 4000}, flags=("-fopenmp",))
    for steps in ((), STEPS["v"]):
        given = [x if b.name == "x" else np.ones(4000) for b in _built(kernel, steps).buffers if b.is_input]
        results = (call(_built(each, steps), given) for each in (kernel, serial))
        for found, expected in zip(*results, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_sums_without_a_directive_keep_their_order() -> None:
    source = """#include <math.h>
void k(int n, const double *x, double *y) {
  double s = 0;
  for (int i = 0; i < n; i++) { s = 0.5 * s + sin(x[i]); y[i] = s; }
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 100_000})
    assert derived.sharing(kernel.program, kernel.signature, kernel.binding, (), kernel.options) == ()


def test_loops_without_a_directive_that_a_break_may_leave_are_not_shared() -> None:
    source = """#include <math.h>
void f(int n, const double *a, double *y) {
    for (int i = 0; i < n; i++) {
        LEAVE
        for (int k = 0; k < n; k++) y[i] += sin(a[k] * a[i]);
    }
}"""
    shared = []
    for leave in ("", "if (a[i] > 3) break;", "if (a[i] > 3) abort();"):
        text = "#include <stdlib.h>\n" + source.replace("LEAVE", leave)
        f = je.kernel(text, "f", "n: i32, a: f64[n], inout y: f64[n]", lang="c")
        loops = f.inspect(np.zeros(1500), np.zeros(1500)).loops
        shared.append(any(said.endswith("on several threads") for name, said in loops if name == "primal"))
    assert shared == [True, False, True]


@pytest.mark.parametrize(("pointer", "handed"), [("", ""), (", void (*add)(double *, int, double)", ", _: fn(add)")])
def test_loops_whose_iterations_synchronise_in_another_source_are_not_taken_at_their_word(
    tmp_path: Path, pointer: str, handed: str
) -> None:
    (tmp_path / "loop.c").write_text(f"""
    void add(double *bins, int i, double v);
    void f(int n, const double *x, double *bins{pointer}) {{
      for (int i = 0; i < 8; i++) bins[i] = 0;
    #pragma omp parallel for
      for (int i = 0; i < n; i++) add(bins, i, x[i] * x[i]);
    }}""")
    (tmp_path / "add.c").write_text("""
    void add(double *bins, int i, double v) {
    #pragma omp critical
      bins[i % 8] = bins[i % 8] * 0.5 + v;
    }""")
    sources = [tmp_path / "loop.c", tmp_path / "add.c"]
    f = je.kernel(sources, "f", f"n: i32, x: f64[n], out bins: f64[8]{handed}", flags=("-fopenmp",))
    said = [text for name, text in f.inspect(_inputs(40000)).loops if name == "primal"]
    assert said and all("on one thread" in text for text in said), said


TELLING = {
    "nothing": ("", "0", True),
    "a maximum": (
        "#pragma omp for reduction(max : top)\n for (int i = 0; i < n; i++) top = fmax(top, x[i]);",
        "0",
        True,
    ),
    "a sum": ("#pragma omp atomic\n count += 1;", "0", True),
    "a capture": ("int own;\n#pragma omp atomic capture\n own = count++;", "own", False),
    "a critical section": ("int own;\n#pragma omp critical\n own = count++;", "own", False),
    "a lock": ("int own = take(&count, &lock);", "own", False),
    "a threadprivate variable": ("", "mine", False),
    "one thread": ("", "0", False),
    "as many threads as the run knows": ("", "0", False),
    "several threads": ("", "0", True),
}
"""By what threads have come by: a part of the region before its loop, what tells a thread its part of an array, and
whether the directive is believed that iterations do not meet."""


@pytest.mark.parametrize("name", TELLING)
def test_loops_behind_what_tells_threads_apart_are_not_taken_at_their_word(name: str) -> None:
    before, own, believed = TELLING[name]
    numbers = {"one thread": "1", "as many threads as the run knows": "at[100]", "several threads": "few"}
    number = numbers.get(name, "")
    source = f"""#include <math.h>
#include <omp.h>
static int mine;
#pragma omp threadprivate(mine)
static int take(int *count, omp_lock_t *lock) {{
  omp_set_lock(lock);
  int own = (*count)++;
  omp_unset_lock(lock);
  return own;
}}
void k(int n, const int *at, const double *x, double *w, double *y) {{
  int count = 0;
  double top = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  int few = n > 9 ? 4 : 2;
  {number and f"omp_set_num_threads({number});"}
#pragma omp parallel
  {{
{before}
    double *part = w + n * {own};
#pragma omp for
    for (int i = 0; i < n; i++) {{
      part[at[i]] = sin(x[i]) * exp(x[i]);
      y[i] = part[at[i]] + part[at[i]];
    }}
  }}
}}"""
    signature = "n: i32, at: i32[n], x: f64[n], scratch w: f64[n], out y: f64[n]"
    kernel = je.kernel(source, "k", signature, lang="c", flags=("-fopenmp",))
    x, at = _inputs(4000), np.arange(4000, dtype=np.int32) // (1 if believed else 100)
    said = [text for name, text in kernel.inspect(at, x).loops if name == "primal"]
    assert said[-1].endswith("on several threads") is believed, said
    np.testing.assert_allclose(kernel(at, x), 2 * np.sin(x) * np.exp(x), rtol=1e-14)


@pytest.mark.parametrize(
    ("schedule", "believed"),
    [("", True), ("static", True), ("guided", True), ("dynamic, 1", True), ("dynamic, 8", False), ("static, 8", False)],
)
def test_iterations_of_one_chunk_may_depend_on_those_before_them(schedule: str, believed: bool) -> None:
    source = f"""#include <math.h>
void k(int n, const int *joined, const double *x, double *y) {{
#pragma omp parallel for {f"schedule({schedule})" if schedule else ""}
  for (int i = 0; i < n; i++) {{
    y[i] = sin(x[i]);
    if (joined[i]) y[i] += 0.5 * y[i - 1];
  }}
}}"""
    signature = "n: i32, joined: i32[n], x: f64[n], out y: f64[n]"
    kernel = je.kernel(source, "k", signature, lang="c", flags=("-fopenmp",))
    x, joined = _inputs(8000), np.arange(8000, dtype=np.int32) % (1 if believed else 8)
    said = [text for name, text in kernel.inspect(joined, x).loops if name == "primal"]
    assert said[-1].endswith("on several threads") is believed, said
    expected = np.sin(x)
    for i in np.flatnonzero(joined):
        expected[i] += 0.5 * expected[i - 1]
    np.testing.assert_allclose(kernel(joined, x), expected, rtol=1e-14)


MADE = {
    "outside": ("", "shared", True),
    "in the region": ("double *own = malloc(n * 64); own[7] = 1;", "own", False),
    "by a function": ("double *own = make(n);", "own", False),
    "outside, by a function that regions call too": ("double *own = make(n);\n y[0] = own[at[0]];", "shared", True),
    "by a function in a table": ("double *own = known.make(n);", "own", False),
    "a copy of a variable": ("double own[32000];\n memcpy(own, fixed, sizeof own);", "own", False),
}
"""By where memory is made: a part of the region before its loop, the memory, and whether it counts as memory that all
threads have in common."""


@pytest.mark.parametrize("name", MADE)
def test_memory_is_common_to_all_threads_only_where_it_is_made_outside_of_regions(name: str) -> None:
    before, memory, believed = MADE[name]
    source = f"""#include <math.h>
#include <stdlib.h>
#include <string.h>
static double fixed[32000];
static double *make(int n) {{
  double *made = malloc(n * 64);
  memset(made, 0, n * 64);
  made[7] = 1;
  return made;
}}
static const struct {{ double *(*make)(int); }} known = {{make}};
void k(int n, const int *at, const double *x, double *y) {{
  double *shared = make(n);
  for (int i = 0; i < 8 * n; i++) shared[i] = fixed[i] = x[i / 8];
#pragma omp parallel
  {{
{before}
#pragma omp for
    for (int i = 0; i < n; i++) {{
      double *these = {memory} + at[i];
      for (int j = 0; j < 8; j++) these[j] = sin(x[i] * j);
      y[i] = these[(int)(x[i] * 5)];
    }}
  }}
}}"""
    kernel = je.kernel(source, "k", "n: i32, at: i32[n], x: f64[n], out y: f64[n]", lang="c", flags=("-fopenmp",))
    x, at = _inputs(4000), 8 * (np.arange(4000, dtype=np.int32) // (1 if believed else 100))
    said = [text for name, text in kernel.inspect(at, x).loops if name == "primal"]
    assert said[-1].endswith("on several threads") is believed, said
    np.testing.assert_allclose(kernel(at, x), np.sin(x * np.trunc(x * 5)), rtol=1e-13)


def test_memory_that_a_region_of_fortrans_allocates_is_a_threads_own() -> None:
    source = """subroutine k(n, at, x, y)
  integer, intent(in) :: n, at(n)
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8), allocatable :: own(:)
  integer :: i, j
  !$omp parallel private(own, j)
  allocate(own(8 * n))
  own(8) = 1
  !$omp do
  do i = 1, n
    do j = 1, 8
      own(at(i) + j) = sin(x(i) * j)
    end do
    y(i) = own(at(i) + int(x(i) * 5) + 1)
  end do
  deallocate(own)
  !$omp end parallel
end subroutine"""
    kernel = je.kernel(
        source, "k", "n: i32[], at: i32[n], x: f64[n], out y: f64[n]", lang="fortran", flags=("-fopenmp",)
    )
    x, at = _inputs(4000), 8 * (np.arange(4000, dtype=np.int32) // 1000)
    said = [text for name, text in kernel.inspect(at, x).loops if name == "primal"]
    assert "on one thread" in said[0], said
    np.testing.assert_allclose(kernel(at, x), np.sin(x * (np.trunc(x * 5) + 1)), rtol=1e-13)


def test_inspect_says_which_loops_are_shared_and_why_others_are_not() -> None:
    source = """void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = x[i] * x[i];
  for (int i = 1; i < n; i++) y[i] += y[i - 1];
#pragma omp parallel for
  for (int i = 1; i < 9; i++) y[i] = x[i];
  double late = 1;

#pragma omp parallel for lastprivate(conditional : late)
  for (int i = 0; i < n; i++) if (x[i] > 0.5) late = 1 / (1 + x[i] * x[i]);
  y[0] = late;
}"""
    kernel = je.kernel(source, "k", SIGNATURE, lang="c", flags=("-fopenmp",))
    report = kernel.inspect(_inputs(40000))
    said = [text for name, text in report.loops if name == "primal"]
    assert any(":3:" in text and text.endswith("on several threads") for text in said)
    assert any(":10:" in text and text.endswith("a reduction that the program declares") for text in said)
    assert {name for name, _ in report.loops} >= {"primal", "jvp"}
    assert "parallel loops" in str(report)


def test_inspect_names_loops_in_functions_that_call_themselves() -> None:
    source = """static void half(int m, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < m; i++) y[i] += x[i] * y[i];
  if (m > 1000) {
    half(m / 2, x, y);
    half(m - m / 2, x + m / 2, y + m / 2);
  }
  y[0] += x[m - 1];
}
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  half(n, x, y);
}"""
    kernel = native(source, "k", SIGNATURE, {"n": 8000}, flags=("-fopenmp",))
    for steps in STEPS.values():
        said = derived.sharing(kernel.program, kernel.signature, kernel.binding, steps, kernel.options)
        assert said and all("kernel.c:3:" in text and "a function that is called" in text for text in said), said


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_of_what_a_loop_adds_to_start_at_zero(threads: int) -> None:
    """The function initialises y, which its loop does not do with the copies of y that it is given."""
    source = """
    #include <math.h>
    void bins(int n, int m, const int *at, const double *x, double *y) {
      for (int j = 0; j < m; j++) y[j] = 0;
    #pragma omp parallel for
      for (int i = 0; i < n; i++) {
        double t = exp(-x[i] * x[i]);
    #pragma omp atomic
        y[at[i]] += t;
      }
    }
    """
    signature = "n: i32, m: i32, at: i32[n], x: f64[n], out y: f64[m]"
    flags, options = ("-fopenmp",), je.Options(threads=threads)
    bins = jax.jit(je.kernel(source, "bins", signature, lang="c", m=50, flags=flags, options=options))
    at, x = np.arange(20_000, dtype=np.int32) * 7 % 50, np.linspace(-1, 1, 20_000)
    expected = np.bincount(at, np.exp(-x * x), 50)
    for _ in range(6):
        np.testing.assert_allclose(bins(at, x), expected, rtol=1e-12)


def test_every_second_place_is_the_same_for_any_number_of_threads() -> None:
    """Where vectors leave gaps, LLVM runs the last iterations without them, and `cos` of math.h rounds differently."""
    source = """
    #include <math.h>
    void relax(int n, double *x) {
      for (int c = 0; c < 2; c++) {
    #pragma omp parallel for
        for (int i = 1 + c; i < n - 1; i += 2) x[i] = 0.5 * (x[i - 1] + x[i + 1]) * cos(x[i]);
      }
    }
    """
    x = np.random.default_rng(0).normal(size=20_000)
    found = set[bytes]()
    for threads in (1, 2):
        options = je.Options(threads=threads)
        relax = je.kernel(source, "relax", "n: i32, inout x: f64[n]", lang="c", flags=("-fopenmp",), options=options)
        loss = jax.jit(jax.grad(lambda x, f=relax: (f(x) ** 2).sum()))
        for _ in range(5):
            slope = loss(x)
            found.add(np.asarray(relax(x)).tobytes() + np.asarray(slope).tobytes())
    assert len(found) == 1
    je.check_grads(relax, (x[:40],))
