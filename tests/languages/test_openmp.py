"""OpenMP's directives: with `-fopenmp` a program means what it means without, and its derivatives are those of that."""

from __future__ import annotations

import numpy as np
import pytest

from jax_enzyme.errors import CompileError
from tests.support.engine import agree, by_turns, native, three_way

X = np.random.default_rng(2).uniform(0.3, 1.2, 13)
SIGNATURE = "n: i32, x: f64[n], out y: f64[n]"

LOOPS = """
void k(int n, const double *x, double *y) {
  double s = 0, p = 1, top = -1, low = 9, z[3] = {0, 0, 0}, last = 0, t = 2;
  int all = 1, i, j;
#pragma omp parallel for schedule(static) reduction(+ : s) reduction(* : p)
  for (i = 0; i < n; i++) { s += x[i] * x[i]; p *= x[i]; }
#pragma omp parallel for schedule(static, 3) reduction(max : top) reduction(min : low) reduction(&& : all)
  for (i = 0; i < n; i++) {
    top = x[i] > top ? x[i] : top;
    low = x[i] < low ? x[i] : low;
    all = all && x[i] > 0;
  }
#pragma omp parallel for schedule(dynamic, 2) reduction(+ : z[:3]) firstprivate(t) lastprivate(last)
  for (i = n - 1; i >= 0; i--) { z[i % 3] += t * x[i]; last = i + x[i]; }
#pragma omp parallel for schedule(guided)
  for (i = 0; i < n; i++) y[i] = s * x[i] + p;
#pragma omp parallel for collapse(2) schedule(runtime)
  for (i = 0; i < 3; i++)
    for (j = 0; j < 4; j++) y[i * 4 + j] += x[j] * x[i];
#pragma omp parallel for schedule(auto)
  for (i = 2; i < n; i += 3) y[i] += z[i % 3] + top * low + all + last;
}"""
REGION = """
static void scale(int n, double *y, double by) {
#pragma omp for
  for (int i = 0; i < n; i++) y[i] *= by;
}
void k(int n, const double *x, double *y) {
  double total = 0, mean = 0;
#pragma omp parallel if (n > 2) num_threads(4)
  {
    double mine = 0;
#pragma omp for nowait
    for (int i = 0; i < n; i++) mine += x[i];
#pragma omp critical
    total += mine;
#pragma omp barrier
#pragma omp single
    mean = total / n;
#pragma omp for
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i] - mean;
    scale(n, y, mean);
#pragma omp master
    y[0] += 1;
#pragma omp masked
    y[1] += 1;
#pragma omp error at(execution) severity(warning) message("as the test wants it")
    if (y[1] > 1e9) {
#pragma omp error at(execution)
    }
#pragma omp sections
    {
#pragma omp section
      y[2] *= y[3];
#pragma omp section
      y[4] *= y[5];
    }
#pragma omp for ordered
    for (int i = 1; i < n; i++) {
#pragma omp ordered
      y[i] += y[i - 1];
    }
#pragma omp for ordered(1)
    for (int i = 1; i < n; i++) {
#pragma omp ordered doacross(sink : i - 1)
      y[i] += 0.5 * y[i - 1];
#pragma omp ordered doacross(source :)
    }
#pragma omp for simd
    for (int i = 0; i < n; i++)
#pragma omp atomic
      y[i] += total;
#pragma omp for
    for (int i = 0; i < n; i += 4) {
#pragma omp parallel for
      for (int j = 0; j < 4; j++) if (i + j < n) y[i + j] *= x[i];
    }
  }
}"""
TASKS = """
#include <omp.h>
static double state = 3;
#pragma omp threadprivate(state)
static double sum(int n, const double *x) {
  double a, b;
  if (n == 1) return x[0] * x[0];
#pragma omp task shared(a) if (n > 3) untied
  a = sum(n / 2, x);
#pragma omp task shared(b)
  b = sum(n - n / 2, x + n / 2);
#pragma omp taskwait
  return a * b + 1;
}
void k(int n, const double *x, double *y) {
  double t = 0, last = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  state = x[0];
#pragma omp parallel copyin(state)
#pragma omp single
  {
    t = sum(n, x);
    for (int i = 0; i < n; i++) {
#pragma omp task firstprivate(i)
      y[i] = t * x[i] * state;
    }
#pragma omp taskwait
#pragma omp taskloop grainsize(2) lastprivate(last)
    for (int i = 0; i < n; i++) { y[i] += x[i]; last = y[i]; }
#pragma omp taskgroup task_reduction(+ : t)
    {
#pragma omp task in_reduction(+ : t)
      t += x[1];
#pragma omp task untied
      {
        double *part = omp_alloc(sizeof *part, omp_default_mem_alloc);
#pragma omp task untied
        *part = x[3] * x[4];
#pragma omp taskwait
        y[3] *= *part;
        omp_free(part, omp_default_mem_alloc);
      }
#pragma omp task depend(inout : y[0])
      y[0] *= 2;
#pragma omp task depend(inout : y[0])
      y[0] += 1;
      omp_depend_t chain;
      omp_event_handle_t done = 0;
#pragma omp depobj(chain) depend(inout : y[1])
#pragma omp task depend(depobj : chain) detach(done)
      {
        y[1] *= x[4];
        omp_fulfill_event(done);
      }
#pragma omp depobj(chain) destroy
    }
  }
  omp_set_lock(&lock);
  omp_interop_t other = omp_interop_none;
#pragma omp interop init(targetsync : other)
#pragma omp interop use(other)
#pragma omp interop destroy(other)
  y[0] += other != omp_interop_none;
#pragma omp target nowait depend(inout : y[2]) map(tofrom : y[:n])
  y[2] += t;
#pragma omp taskwait
  omp_unset_lock(&lock);
#pragma omp target teams distribute parallel for map(tofrom : y[:n])
  for (int i = 0; i < n; i++) y[i] += last * omp_get_num_threads() + omp_get_thread_num();
}"""
CLASSES = """
#include <vector>
struct Pair { double a, b; };
#pragma omp declare reduction(join : Pair : omp_out.a += omp_in.a, omp_out.b *= omp_in.b) \\
    initializer(omp_priv = Pair{0, 1})
extern "C" void k(int n, const double *x, double *y) {
  Pair p{0, 1};
  std::vector<double> v(n);
#pragma omp parallel for reduction(join : p) schedule(dynamic, 3)
  for (int i = 0; i < n; i++) { p.a += x[i]; p.b *= x[i]; v.at(i) = x[i] * x[i]; }
#pragma omp parallel
  {
    std::vector<double> mine(n);
#pragma omp for
    for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) mine[j] = v[j] * x[i]; y[i] = p.a * mine[0] + p.b; }
  }
#pragma omp parallel for schedule(static, 2)
  for (int i = 0; i < n; i++) {
    try {
      if (y[i] > 1e9) throw i;
      y[i] *= x[i];
    } catch (int which) {
      y[which] = 0;
    }
  }
}"""
POLICIES = """
#include <algorithm>
#include <execution>
#include <list>
#include <numeric>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
  using namespace std::execution;
  std::transform(par, x, x + n, y, [](double v) { return v * v; });
  const double s = std::reduce(par_unseq, x, x + n, 0.5), d = std::transform_reduce(par, x, x + n, y, 0.0);
  const double p = std::reduce(par, x, x + n, 1.0, std::multiplies<>()), m = *std::max_element(seq, x, x + n);
  std::list<double> l(n);
  std::vector<double> w(n);
  std::copy(par, x, x + n, l.begin());
  std::inclusive_scan(par, l.begin(), l.end(), w.begin());
  std::for_each(par, y, y + n, [=](double &v) { v = v * s + d * m; });
  std::transform(par, w.begin(), w.end(), y, y, [p](double a, double b) { return a + b * p; });
}"""
SCANS = """
#include <omp.h>
struct Best { double v; int at; };
static void best(Best &a, const Best &b) { if (b.v > a.v) a = b; }
#pragma omp declare reduction(best : Best : best(omp_out, omp_in)) initializer(omp_priv = Best{-1e30, -1})
static double g;
static void inner(int n, const double *x, double *y, double &s) {
  Best p = {0.4, -1};
#pragma omp parallel for if (n > 1) reduction(inscan, best : p) reduction(inscan, +: s, g)
  for (int i = n - 1; i >= 0; i -= 2) {
    if (x[i] > p.v) { p.v = x[i]; p.at = i; }
    s += x[i] * x[i];
    g += 0.01 * x[i];
#pragma omp scan inclusive(p, s, g)
    y[i] += p.v * x[i] + p.at * x[i] + s + g * x[i];
  }
  y[0] += p.v;
}
extern "C" void k(int n, const double *x, double *y) {
  double s = x[1], q = 2, top = 0.5;
  g = x[2];
  for (int i = 0; i < n; i++) y[i] = 0;
  inner(n, x, y, s);
  inner(0, x, y, s);
#pragma omp parallel num_threads(2)
  {
#pragma omp for simd reduction(inscan, *: q) reduction(inscan, max: top)
    for (int i = 0; i < n; i++) {
      y[i] += q * x[i] + top;
#pragma omp scan exclusive(q, top)
      q *= 1 + 0.1 * x[i];
      for (int j = 0; j < 2; j++) {
        if (x[i] * (j + 1) < 0.9) continue;
        if (x[i] > top) top = x[i];
      }
    }
    if (omp_get_thread_num() == 0) y[2] += q;
  }
  y[n - 1] += s * g * q + top;
}"""

SOURCES = {
    "loops": (LOOPS, "c"),
    "region": (REGION, "c"),
    "tasks": (TASKS, "c"),
    "classes": (CLASSES, "c++"),
    "policies": (POLICIES, "c++"),
    "scans": (SCANS, "c++"),
}

FORTRAN = """
subroutine k(n, x, y)
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  real(8) :: s, t, top
  integer :: i, j, used
  type :: pair
    real(8) :: v
    integer :: place
  end type
  type(pair) :: best
  !$omp declare reduction(larger : pair : omp_out = merge(omp_in, omp_out, omp_in%v > omp_out%v)) &
  !$omp initializer(omp_priv = pair(-1d0, 0))
  s = 0
  best = pair(-1d0, 0)
  !$omp parallel do reduction(larger : best)
  do i = 1, n
    best = merge(pair(x(i), i), best, x(i) > best%v)
  end do
  top = 0
  used = 0
  !$ used = 1
  !$omp parallel do reduction(+:s) reduction(max:top) schedule(static, 2)
  do i = 1, n
    s = s + x(i)**2
    top = max(top, x(i))
  end do
  !$omp parallel do schedule(dynamic, 3) private(t)
  do i = 1, n
    t = x(i) * s
    y(i) = t * t + used
  end do
  !$omp parallel do collapse(2) schedule(guided)
  do i = 1, 3
    do j = 1, 4
      y(i + 3 * (j - 1)) = y(i + 3 * (j - 1)) * x(i) * x(j)
    end do
  end do
  !$omp parallel
  !$omp single
  !$omp task shared(s)
  s = s + x(1)
  !$omp end task
  !$omp taskwait
  !$omp end single
  !$omp sections
  !$omp section
  y(1) = y(1) * 2
  !$omp section
  y(2) = y(2) * 3
  !$omp end sections
  !$omp do lastprivate(t)
  do i = 1, n
    t = x(i)
    y(i) = y(i) + t
  end do
  !$omp workshare
  y = y + s
  !$omp end workshare
  !$omp loop bind(parallel)
  do i = 1, n
    y(i) = y(i) + 0.5d0 * x(i)
  end do
  !$omp critical
  s = s + 1
  !$omp end critical
  !$omp atomic
  s = s + x(2)
  !$omp end parallel
  !$omp target teams distribute parallel do map(tofrom: y)
  do i = 1, n
    y(i) = y(i) * s * top
  end do
  y(1) = y(1) + best%place * best%v
end subroutine
"""


@pytest.mark.parametrize("name", SOURCES)
def test_directives_mean_what_the_serial_program_means(name: str) -> None:
    source, lang = SOURCES[name]
    kernel = native(source, "k", SIGNATURE, {"n": 13}, lang=lang, flags=("-fopenmp",))
    serial = native(source, "k", SIGNATURE, {"n": 13}, lang=lang)
    np.testing.assert_allclose(kernel.run((), [X])[0], serial.run((), [X])[0], rtol=1e-13)
    agree(three_way(kernel, [X], sweeps=by_turns(list(SOURCES).index(name))))


ALLOCATORS = """
#include <omp.h>
#include <stdint.h>
#include <string.h>
void k(int n, const double *x, double *y) {
  omp_alloctrait_t traits[] = {{omp_atk_fallback, omp_atv_null_fb}, {omp_atk_alignment, 4096}};
  omp_allocator_handle_t pages = omp_init_allocator(omp_default_mem_space, 2, traits);
  double own[9];
  double *all[] = {omp_alloc(40, pages), omp_calloc(5, 8, pages), omp_aligned_alloc(64, 40, pages), 0};
  all[3] = omp_realloc(memcpy(omp_alloc(24, pages), x, 24), 80, pages, pages);
#pragma omp parallel for private(own) allocate(pages : own)
  for (int i = 0; i < n; i++) y[i] = own[i % 9] = x[i], y[i] *= 1 + (uintptr_t)own % 4096;
  for (int i = 0; i < 4; i++) y[i] += (uintptr_t)all[i] % 4096 + all[1][i] + (i < 3 ? all[3][i] - x[i] : 0);
  for (int i = 0; i < 4; i++) omp_free(all[i], pages);
  omp_destroy_allocator(pages);
}"""


def test_memory_of_an_allocator_has_the_alignment_that_it_was_made_for() -> None:
    kernel = native(ALLOCATORS, "k", SIGNATURE, {"n": 13}, flags=("-fopenmp",))
    np.testing.assert_array_equal(kernel.run((), [X])[0], X)
    agree(three_way(kernel, [X]))


SUM_OF_EXPONENTIALS = """
#include <math.h>
typedef struct { double top, sum; } part;
static void join(part *a, part *b) {
  double top = a->top > b->top ? a->top : b->top;
  a->sum = a->sum * exp(a->top - top) + b->sum * exp(b->top - top);
  a->top = top;
}
#pragma omp declare reduction(join : part : join(&omp_out, &omp_in)) initializer(omp_priv = (part){-INFINITY, 0})
void k(int n, const double *x, double *y) {
  part p = {x[0], 1};
#pragma omp parallel for reduction(join : p)
  for (int i = 1; i < n; i++) {
    part one = {x[i], 1};
    if (x[i] > 9) join(&p, &one);
  }
  for (int i = 0; i < n; i++) y[i] = p.top + log(p.sum);
}"""


def test_a_loop_without_anything_to_reduce_is_joined_once() -> None:
    kernel = native(SUM_OF_EXPONENTIALS, "k", SIGNATURE, {"n": 13}, flags=("-fopenmp",))
    np.testing.assert_array_equal(kernel.run((), [X])[0], np.full(13, X[0]))  # and not NaN, of infinity less infinity


SOME_OF_THEM = """
#include <math.h>
struct Sum {
  double top, sum;
  Sum &operator+=(double v) {
    if (isinf(v)) return *this;
    if (v > top) { sum = sum * exp(top - v) + 1; top = v; } else sum += exp(v - top);
    return *this;
  }
};
static void join(Sum &a, const Sum &b) {
  double top = fmax(a.top, b.top);
  a = {top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top)};
}
#pragma omp declare reduction(join : Sum : join(omp_out, omp_in)) initializer(omp_priv = Sum{-INFINITY, 0})
extern "C" void k(int n, const double *x, double *y) {
  Sum s{-INFINITY, 0}, none{-INFINITY, 0};
#pragma omp parallel for reduction(join : s)
  for (int i = 0; i < n; i++) if (x[i] > -9) { Sum &r = s; (r += x[i] > 0 ? x[i] : -INFINITY) += x[i] * x[i]; }
#pragma omp parallel for reduction(join : none)
  for (int i = 0; i < n; i++) none += x[i] > 9 ? x[i] : -INFINITY;
  *y = s.top + log(s.sum) + none.sum;
}"""


def test_what_no_iteration_reduced_is_joined_with_nothing() -> None:
    """Ranges of a loop, and all of one: infinity less infinity is no number."""
    x = np.linspace(0.2, 1.7, 200)
    x[:70] = x[170:] = -10
    x[90:110] = -1.5
    kernel = native(SOME_OF_THEM, "k", "n: i32, x: f64[n], out y: f64[]", {"n": 200}, lang="c++", flags=("-fopenmp",))
    kept, over = x[x > 0], x[x > -9] ** 2
    np.testing.assert_allclose(kernel.run((), [x])[0], np.log(np.exp(kept).sum() + np.exp(over).sum()), rtol=1e-14)
    agree(three_way(kernel, [x]))


@pytest.mark.parametrize("schedule", ["static, 5", "dynamic, 5", "guided"])
def test_parts_of_sections_are_joined_whatever_the_schedule(schedule: str) -> None:
    """A schedule that asks whether there is a chunk has two ways to what is behind the loop."""
    source = f"""
#pragma omp declare reduction(add : double : omp_out += omp_in) initializer(omp_priv = 0)
void k(int n, const double *x, double *y) {{
  double all[n / 8], *t = all;
  for (int j = 0; j < n / 8; j++) t[j] = j;
#pragma omp parallel for reduction(add : t[:n / 8]) schedule({schedule})
  for (int i = 0; i < n; i++) t[i % (n / 8)] += x[i];
  for (int i = 0; i < n; i++) y[i] = t[i % (n / 8)];
}}"""
    x = np.random.default_rng(3).uniform(0.3, 1.2, 70)
    rows = np.arange(70) % 8
    sums = np.arange(8) + np.bincount(rows, x)
    found = native(source, "k", SIGNATURE, {"n": 70}, flags=("-fopenmp",)).run((), [x])[0]
    np.testing.assert_allclose(found, sums[rows])


def test_fortran_directives_mean_what_the_serial_program_means() -> None:
    signature = "n: i32[], x: f64[n], out y: f64[n]"
    kernel = native(FORTRAN, "k", signature, {"n": 13}, lang="fortran", flags=("-fopenmp",))
    t, s = X * np.sum(X**2), np.sum(X**2)
    y = t * t + 1
    y[:12].reshape(4, 3)[:] *= X[:3] * X[:4, None]
    y[:2] *= [2, 3]
    expected = (y + 1.5 * X + s + X[0]) * (s + X[0] + 1 + X[1]) * np.max(X)
    expected[0] += (np.argmax(X) + 1) * np.max(X)
    np.testing.assert_allclose(kernel.run((), [X])[0], expected, rtol=1e-13)
    agree(three_way(kernel, [X]))


CANCEL = """void k(int n, const double *x, double *y) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    if (x[i] > 2) {
#pragma omp cancel for
    }
    y[i] = x[i];
  }
}"""
SCAN_OF_OBJECTS = """
struct V { double a; V() : a(0) {} V &operator=(const V &o) { a = o.a; return *this; } };
#pragma omp declare reduction(+ : V : omp_out.a += omp_in.a)
extern "C" void k(int n, const double *x, double *y) {
  V v;
#pragma omp parallel for reduction(inscan, + : v)
  for (int i = 0; i < n; i++) {
    v.a += x[i];
#pragma omp scan inclusive(v)
    y[i] = v.a;
  }
}"""
SCAN_OF_ARRAYS = """void k(int n, const double *x, double *y) {
  double a[2] = {0, 0};
#pragma omp parallel for reduction(inscan, + : a)
  for (int i = 0; i < n; i++) {
    a[i % 2] += x[i];
#pragma omp scan inclusive(a)
    y[i] = a[0];
  }
}"""

SECTIONS = """void k(int n, const double *x, double *y) {
  double h[4][2] = {0}, *p = y;
  for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel
  {
#pragma omp for reduction(+ : h[0:1][0:2], p[1:1])
    for (int i = 0; i < n; i++) h[0][i % 2] += x[i], p[1] += x[i];
#pragma omp for reduction(+ : SECOND)
    for (int i = 0; i < n; i++) h[3][i % 2] += x[i], p[3] += x[i], h[0][1] += x[i];
  }
  for (int i = 0; i < n; i++) y[i] += h[0][i % 2] * x[i] + h[3][i % 2];
}"""

SIMD = """void k(int n, const double *x, double *y) {
#pragma omp simd reduction(+ : y[0:1], y[2:1])
  for (int i = 0; i < n; i++) y[0] += x[i], y[2] += x[i];
}"""


@pytest.mark.parametrize(
    ("source", "cause", "line"),
    [
        (CANCEL, "cancellation", 5),
        (SCAN_OF_OBJECTS, "inscan", 6),
        (SCAN_OF_ARRAYS, "inscan", 3),
        (SECTIONS.replace("SECOND", "h[3:1][0:2], h[0:1][0:2], p[3:1]"), "several sections", 8),
        (SECTIONS.replace("SECOND", "h[0:4][0:2], p[3:1], p[1:1]"), "several sections", 8),
        (SIMD, "several sections", 2),
    ],
)
def test_what_has_no_serial_meaning_is_refused_at_its_line(source: str, cause: str, line: int) -> None:
    lang = "c++" if "operator" in source else "c"
    with pytest.raises(CompileError, match=cause) as caught:
        native(source, "k", SIGNATURE, {"n": 13}, lang=lang, flags=("-fopenmp",))
    assert (caught.value.place or "").split(":")[1] == str(line)
    native(source, "k", SIGNATURE, {"n": 13}, lang=lang)
    native(SECTIONS.replace("SECOND", "h[0:4][0:2], p[3:1]"), "k", SIGNATURE, {"n": 13}, flags=("-fopenmp",))


IR = """
define void @k(i32 %n, ptr %x, ptr %y) {
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 3, ptr @body, i32 %n, ptr %x, ptr %y)
  ret void
}
define internal void @body(ptr %id, ptr %bound, i32 %n, ptr %x, ptr %y) {
entry:
  call void @__kmpc_dispatch_init_4(ptr null, i32 0, i32 35, i32 1, i32 %n, i32 1, i32 2)
  %last = alloca i32
  %low = alloca i32
  %high = alloca i32
  %step = alloca i32
  br label %chunks
chunks:
  %some = call i32 @__kmpc_dispatch_next_4(ptr null, i32 0, ptr %last, ptr %low, ptr %high, ptr %step)
  %any = icmp ne i32 %some, 0
  br i1 %any, label %first, label %end
first:
  %from = load i32, ptr %low
  %to = load i32, ptr %high
  br label %loop
loop:
  %i = phi i32 [ %from, %first ], [ %next, %loop ]
  %at = sub i32 %i, 1
  %px = getelementptr double, ptr %x, i32 %at
  %py = getelementptr double, ptr %y, i32 %at
  %v = load double, ptr %px
  %w = fmul double %v, %v
  store double %w, ptr %py
  %next = add i32 %i, 1
  %more = icmp sle i32 %next, %to
  br i1 %more, label %loop, label %chunks
end:
  ret void
}
declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare void @__kmpc_dispatch_init_4(ptr, i32, i32, i32, i32, i32, i32)
declare i32 @__kmpc_dispatch_next_4(ptr, i32, ptr, ptr, ptr, ptr)
"""


def test_ir_that_was_compiled_for_threads_has_its_serial_meaning() -> None:
    kernel = native(IR, "k", SIGNATURE, {"n": 13}, lang="llvm")
    np.testing.assert_array_equal(kernel.run((), [X])[0], X * X)
    agree(three_way(kernel, [X]))


@pytest.mark.parametrize("schedule", ["static, 1", "static, 2", "dynamic"])
def test_iterations_that_teams_and_threads_share_all_run(schedule: str) -> None:
    source = f"""void k(int n, const double *x, double *y) {{
#pragma omp teams num_teams(3)
#pragma omp distribute parallel for schedule({schedule})
  for (int i = 0; i < n; i++) y[i] = 2 * x[i];
}}"""
    kernel = native(source, "k", SIGNATURE, {"n": 13}, flags=("-fopenmp",))
    np.testing.assert_array_equal(kernel.run((), [X])[0], 2 * X)


def test_simd_leaves_private_arrays_to_each_iteration() -> None:
    """Equal indices in one vector, and a private array that each iteration fills anew."""
    source = """void k(int n, const double *x, double *y) {
  double h[4] = {0, 0, 0, 0}, t[4], s = 0;
#pragma omp simd reduction(+ : h)
  for (int i = 0; i < n; i++) h[(int)(x[i] * 40) & 3] += x[i];
#pragma omp simd private(t) reduction(+ : s)
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < 4; j++) t[j] = x[i] * (j + 1);
    t[(int)(x[i] * 40) & 3] += 1;
    y[i] = t[(int)(x[i] * 20) & 3];
    s += t[0];
  }
  for (int i = 0; i < n; i++) y[i] += s * h[i & 3];
}"""
    x = np.random.default_rng(0).uniform(0.1, 1, 200)
    own, serial = (native(source, "k", SIGNATURE, {"n": 200}, flags=f) for f in (("-fopenmp",), ()))
    np.testing.assert_allclose(own.run((), [x])[0], serial.run((), [x])[0], rtol=1e-12)


@pytest.mark.parametrize("lines", [(3, "static"), (3, "dynamic"), (3, "static, 2")])
def test_loops_without_iterations_do_nothing(lines: tuple[int, str]) -> None:
    count, schedule = lines
    source = f"""void k(int n, const double *x, double *y) {{
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel for schedule({schedule})
  for (int i = n; i < {count}; i++) y[i] = 0;
}}"""
    kernel = native(source, "k", SIGNATURE, {"n": 13}, flags=("-fopenmp",))
    np.testing.assert_array_equal(kernel.run((), [X])[0], X)
