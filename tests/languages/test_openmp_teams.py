"""Regions that ask for their thread have as many as they want, in value and derivatives."""

from __future__ import annotations

from itertools import pairwise

import jax
import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.errors import LoweringError
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way

N = 13
X = np.random.default_rng(2).uniform(0.3, 1.2, N)
SIGNATURE = "n: i32, x: f64[n], out y: f64[n]"

SHARES = """
#include <math.h>
#include <omp.h>
void k(int n, const double *x, double *y) {
  int members = x[0] > 0 ? 3 : 2, owner[64];
  double part[4] = {0}, total = 0, sum = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  omp_set_num_threads(4);
#pragma omp parallel reduction(+ : sum)
  {
    int t = omp_get_thread_num(), first = t * n / 4, end = (t + 1) * n / 4;
    for (int i = first; i < end; i++) { part[t] += x[i] * x[i]; y[i] = part[t]; }
    omp_set_lock(&lock);
    total += exp(part[t]);
    omp_unset_lock(&lock);
#pragma omp barrier
    for (int q = 0; q < t; q++)
      for (int i = first; i < end; i++) y[i] += part[q];
#pragma omp for schedule(static, 2) nowait
    for (int i = 0; i < n; i++) owner[i] = t;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < n; i++) sum += x[i];
    sum += t;
  }
#pragma omp parallel num_threads(members)
  {
    double near[4];
    int t = omp_get_thread_num(), all = omp_get_num_threads();
    for (int q = 0; q < 4; q++) near[q] = x[(t + q) % n];
#pragma omp barrier
    for (int i = t; i < n; i += all) y[i] *= total * near[i % 4] + owner[i] + sum;
  }
}"""


def shares(x: np.ndarray) -> np.ndarray:
    bounds = [t * N // 4 for t in range(5)]
    total = sum(np.exp(np.sum(x[a:b] ** 2)) for a, b in pairwise(bounds))
    i = np.arange(N)
    return np.cumsum(x**2) * (total * x[(i % 3 + i % 4) % N] + i // 2 % 4 + x.sum() + 6)


OWN = """
#include <omp.h>
static double state = 3;
static int count;
#pragma omp threadprivate(state, count)
static void add(double d) { state += d * d; count++; }
void k(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
  state = x[0];
#pragma omp parallel num_threads(3)
  count = 1;
#pragma omp parallel num_threads(3) copyin(state)
  {
    double c = 0;
    for (int i = omp_get_thread_num(); i < n; i += omp_get_num_threads()) add(x[i]);
#pragma omp single copyprivate(c)
    c = x[1] * x[2];
    state *= c;
  }
#pragma omp parallel num_threads(3)
  {
    int t = omp_get_thread_num();
    y[t] = state * count;
#pragma omp parallel num_threads(2)
    y[3 + t] += (x[t] + omp_get_thread_num()) * omp_get_num_threads();
  }
#pragma omp parallel num_threads(3) if (n < 9)
  y[6 + omp_get_thread_num()] = x[6] * omp_get_num_threads();
}"""


def own(x: np.ndarray) -> np.ndarray:
    y = np.zeros(N)
    for t in range(3):
        y[t] = (x[0] + np.sum(x[t::3] ** 2)) * x[1] * x[2] * (1 + len(x[t::3]))
    y[3:7] = *x[:3], x[6]
    return y


FORTRAN = """
module own
  real(8) :: acc = 0.5d0
  !$omp threadprivate(acc)
end module
subroutine k(n, x, y)
  use own
  integer, intent(in) :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  integer :: t, i
  real(8) :: part(0:3)
  integer, external :: omp_get_thread_num, omp_get_num_threads
  part = 0
  call omp_set_num_threads(4)
  !$omp parallel private(t, i)
  t = omp_get_thread_num()
  do i = t * n / 4 + 1, (t + 1) * n / omp_get_num_threads()
    part(t) = part(t) + x(i)**2
  end do
  acc = acc + part(t)
  !$omp barrier
  !$omp single
  part(0) = sum(part)
  !$omp end single
  !$omp do schedule(static, 1)
  do i = 1, n
    y(i) = part(0) * x(i) + t + acc
  end do
  !$omp end parallel
end subroutine
"""


CLASSES = """
#include <omp.h>
#include <numeric>
#include <vector>
extern "C" void k(int n, const double *x, double *y) {
  const std::vector<double> v(x, x + n);
  std::vector<double> part(3);
#pragma omp parallel num_threads(3)
  {
    std::vector<double> mine;
    const int t = omp_get_thread_num();
    for (int i = t; i < n; i += 3) { mine.push_back(v.at(i) * v.at(i)); part[t] += mine.back(); }
#pragma omp barrier
    const double all = std::accumulate(part.begin(), part.end(), 0.0);
    for (int i = t; i < n; i += 3) y[i] = mine[i / 3] * all;
  }
}"""


LENGTHS = """
#include <omp.h>
void k(int n, const double *x, double *y) {
  double all[n / 3], *t = all;
  for (int j = 0; j < n / 3; j++) t[j] = 0;
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num();
    double own[n / 3];
    for (int j = 0; j < n / 3; j++) own[j] = (1 + me) * x[j];
#pragma omp barrier
#pragma omp for reduction(+ : t[:n / 3])
    for (int i = 0; i < n; i++) t[i % (n / 3)] += x[i] * own[i % (n / 3)];
  }
  for (int i = 0; i < n; i++) y[i] = t[i % (n / 3)];
}"""


def lengths(x: np.ndarray) -> np.ndarray:
    """Local arrays of a length that only the run knows, one for each thread."""
    rows = np.arange(N) % (N // 3)
    member = np.repeat([0, 1, 2], [5, 4, 4])
    return np.bincount(rows, x * (1 + member) * x[rows])[rows]


def classes(x: np.ndarray) -> np.ndarray:
    return x**2 * np.sum(x**2)


def fortran(x: np.ndarray) -> np.ndarray:
    t = np.arange(N) % 4
    part = np.array([np.sum(x[t * N // 4 : (t + 1) * N // 4] ** 2) for t in range(4)])
    return part.sum() * x + t + 0.5 + part[t]


@pytest.mark.parametrize(
    "source, lang, expected",
    [
        (SHARES, "c", shares),
        (OWN, "c", own),
        (CLASSES, "c++", classes),
        (LENGTHS, "c", lengths),
        (FORTRAN, "fortran", fortran),
    ],
)
def test_members_of_a_team_share_out_work_by_their_numbers(source: str, lang: str, expected) -> None:
    signature = SIGNATURE if lang != "fortran" else SIGNATURE.replace("i32", "i32[]")
    kernel = native(source, "k", signature, {"n": N}, lang=lang, flags=("-fopenmp",))
    np.testing.assert_allclose(kernel.run((), [X])[0], expected(X), rtol=1e-13)
    agree(three_way(kernel, [X]))


def test_the_option_is_the_number_of_threads_where_the_program_names_none() -> None:
    source = """
    #include <omp.h>
    void k(int n, const double *x, double *y) {
      for (int i = 0; i < n; i++) y[i] = omp_get_max_threads();
    #pragma omp parallel
      y[omp_get_thread_num()] += omp_get_num_threads() * x[omp_get_thread_num()];
    }"""
    for threads, members in ((None, 1), (3, 3)):
        options = je.Options(threads=threads)
        kernel = je.kernel(source, "k", SIGNATURE, lang="c", flags=("-fopenmp",), options=options)
        expected = members * np.where(np.arange(N) < members, X + 1, 1)
        np.testing.assert_allclose(kernel(X), expected)
        slope = jax.jit(jax.grad(lambda x, f=kernel: f(x).sum()))(X)
        np.testing.assert_allclose(slope, members * (np.arange(N) < members))


def test_memory_of_the_stack_that_a_member_takes_again_and_again_is_refused() -> None:
    source = """#include <omp.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel num_threads(3)
  for (int i = 0; i < 3; i++) {
    double *z = __builtin_alloca(8 * n);
    for (int j = 0; j < n; j++) z[j] = x[j];
#pragma omp barrier
    y[3 * i + omp_get_thread_num()] = z[i];
  }
}"""
    with pytest.raises(LoweringError, match="again and again") as failed:
        native(source, "k", SIGNATURE, {"n": N}, flags=("-fopenmp",)).run((), [X])
    assert "c:5:" in str(failed.value)


def test_a_barrier_that_some_threads_of_a_team_miss_is_an_error() -> None:
    source = """
    #include <omp.h>
    void k(int n, const double *x, double *y) {
      double part[4];
      for (int i = 0; i < n; i++) y[i] = x[i];
    #pragma omp parallel num_threads(4)
      {
        int t = omp_get_thread_num();
        part[t] = x[t] * x[t];
        if (x[t] > 0) {
    #pragma omp barrier
        }
        y[t] = part[(t + 1) % 4];
      }
    }"""
    kernel = je.kernel(source, "k", SIGNATURE, lang="c", flags=("-fopenmp",))
    slope = jax.grad(lambda x: kernel(x)[:4] @ X[:4])
    np.testing.assert_allclose(slope(X)[:4], 2 * X[:4] * np.roll(X[:4], 1))
    for function in (kernel, slope):
        with pytest.raises(Exception, match=r"the same barrier.*kernel\.c:10:18"):
            jax.block_until_ready(function(X * np.where(np.arange(N) == 1, -1, 1)))


BY_ITSELF = """
static double f(int n, const double *x) { return n ? x[omp_get_thread_num()] + f(n - 1, x) * x[n] : 0; }
void k(int n, const double *x, double *y) {"""
FROM_A_TABLE = """
static double f(int n, const double *x) { return x[n - 1 - omp_get_thread_num()]; }
static double (*const table[])(int, const double *) = {f, 0};
void k(int n, const double *x, double *y) { double (*f)(int, const double *) = table[x[0] > 100];"""
HANDED = """
double f(int n, const double *x) { return x[n - 1 - omp_get_thread_num()]; }
void k(int n, const double *x, double *y, double (*f)(int, const double *)) {"""


@pytest.mark.parametrize(("source", "handed"), [(BY_ITSELF, ""), (FROM_A_TABLE, ""), (HANDED, ", f: fn(f)")])
def test_a_recursive_function_or_a_pointers_that_asks_for_its_thread_is_refused(source: str, handed: str) -> None:
    source = f"""#include <omp.h>
    {source}
    #pragma omp parallel num_threads(2)
      y[omp_get_thread_num()] = f(n, x);
    }}"""
    with pytest.raises(LoweringError, match=r"(?s)recursive.*place: kernel\.c:3"):
        je.kernel(source, "k", SIGNATURE + handed, lang="c", flags=("-fopenmp",)).inspect(X)
