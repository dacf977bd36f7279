"""`je.check_races` of loops that directives share out: both accesses, lines and iterations; quiet where none race."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import jax_enzyme as je
from tests.languages.test_openmp import REGION
from tests.support.parallel_programs import SIZE, programs

SIGNATURE = "n: i32, x: f64[n], out y: f64[n]"
X = np.random.default_rng(1).uniform(0.2, 1.4, 13)

RACING = """#include <stdlib.h>
double total;
static void add(double *p, double v) { *p += v; }
void k(int n, const double *x, double *y) {
  double s = 0, t;
#pragma omp parallel for private(t) reduction(+ : s)
  for (int i = 0; i < n; i++) { t = x[i]; add(&t, 1); s += t; y[i] = t; }
#pragma omp parallel for private(t)
  for (int i = 1; i < n; i++) {
    t = x[i];
    y[i] = t + y[i - 1];  // another one's
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) { double *w = malloc(16); w[0] = x[i]; y[i] = w[0] * s; free(w); }
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    add(&total, x[i]);
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
#pragma omp critical
    s += x[i];
#pragma omp atomic
    total += x[i];
  }
#pragma omp parallel
  {
    double own = 0;
#pragma omp for collapse(2)
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) add(&own, x[i + j]);
#pragma omp for
    for (int i = 0; i < n; i++) {
      t = own;  // one for all
      if (i > 3) y[i] += t;
    }
  }
}"""


def check(source: str, lang: str = "c", *flags: str) -> je.RaceReport:
    return je.check_races(je.kernel(source, "k", SIGNATURE, lang=lang, flags=("-fopenmp", *flags)), [X])


def test_both_accesses_are_named() -> None:
    with pytest.raises(je.RaceError) as caught:
        check(RACING)
    found = {
        (r.memory, *(int(str(a.place).split(":")[1]) for a in (r.first, r.second))) for r in caught.value.report.races
    }
    assert found == {("y[1]", 11, 11), ("variable `total`", 3, 3), ("memory of the kernel's own", 33, 33)}
    assert "write at kernel.c:11:10 by iteration 0 of the loop at kernel.c:8:1" in str(caught.value)


FORTRAN = """subroutine k(n, x, y) bind(c)
  use iso_c_binding
  integer(c_int), value :: n
  real(c_double) :: x(n), y(n), t
  integer :: i
  !$omp parallel do private(t)
  do i = 1, n
    t = x(i)
    y(i) = t * SHIFTED
  end do
end subroutine"""


def test_fortran() -> None:
    concurrent = FORTRAN.replace("!$omp parallel do private(t)\n", "").replace(
        "do i = 1, n", "do concurrent (i=1:n) local(t)"
    )
    assert check(concurrent.replace("SHIFTED", "x(1)"), "fortran", "-fdo-concurrent-to-openmp=host").ok
    with pytest.raises(je.RaceError, match=r"y\[\d+\]: .* at .*f90:8:.* by iteration \d+ of the loop at .*f90:6:"):
        check(concurrent.replace("SHIFTED", "y(mod(i, n) + 1)"), "fortran", "-fdo-concurrent-to-openmp=host")
    with pytest.raises(je.SignatureError, match="-fdo-concurrent-to-openmp=host"):
        check(concurrent.replace("SHIFTED", "x(1)"), "fortran")
    with pytest.raises(je.RaceError, match=r"y\[\d+\]: .* at .*f90:9:.* by iteration \d+ of the loop at .*f90:6:"):
        check(FORTRAN.replace("SHIFTED", "y(mod(i, n) + 1)"), "fortran")


def test_a_region_with_every_construct_has_no_race() -> None:
    assert check(REGION).ok


def test_what_tasks_have_of_their_own_is_no_race() -> None:
    source = """void k(int n, const double *x, double *y) {
  double s = 0, t = 1;
#pragma omp parallel
#pragma omp single
#pragma omp taskloop reduction(+ : s) firstprivate(t)
  for (int i = 0; i < n; i++) s += t = x[i];
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = s * x[i];
}"""
    assert check(source).ok


@settings(max_examples=2)
@given(programs())
def test_generated_programs_have_no_race(source: str) -> None:
    assert check(source.replace(f"N = {SIZE}", "N = 8")).ok


def test_iterations_are_those_of_the_source_where_the_program_declares_how_to_join() -> None:
    source = """#pragma omp declare reduction(mul : double : omp_out *= omp_in) initializer(omp_priv = 1)
void k(int n, const double *x, double *y) {
  double p = 1;
#pragma omp parallel for reduction(mul : p)
  for (int i = 0; i < 40; i++) {
    p *= x[i % n];
    y[i / 39] = x[0];
  }
}"""
    with pytest.raises(je.RaceError, match=r"by iteration 0 of .*\n.* by iteration 1 of ") as caught:
        check(source)
    assert len(caught.value.report.races) == 1


def test_regions_that_ask_for_their_thread_are_refused() -> None:
    source = """#include <omp.h>
void k(int n, const double *x, double *y) {
#pragma omp parallel num_threads(2)
  for (int i = omp_get_thread_num(); i < n; i += 2) y[i] = x[i];
}"""
    with pytest.raises(je.SignatureError, match="asks for its thread"):
        check(source)


FIRSTPRIVATE = """#include <vector>
extern "C" void k(int n, const double *x, double *y) {
  std::vector<double> w(4);
#pragma omp parallel for firstprivate(w)
  for (int i = 0; i < n; i++) {
    w[i % 4] = x[i];
    y[i] = w[i % 4] * x[i];
  }
  y[0] = x[0];
#pragma omp parallel for ordered(1)
  for (int i = 1; i < n; i++) {
#pragma omp ordered depend(sink : i - 1)
    y[i] += y[i - 1];
#pragma omp ordered depend(source)
  }
}
"""


def test_containers_of_each_thread_and_loops_in_order() -> None:
    """Memory from `new` is where it began; iterations that wait for one another are in order."""
    assert not je.check_races(je.kernel(FIRSTPRIVATE, "k", SIGNATURE, lang="c++", flags=("-fopenmp",)), (X,)).races


def test_locks_are_taken_by_calls_that_may_throw() -> None:
    source = """#include <omp.h>
struct Bin { double sum = 0; omp_lock_t lock; Bin() { omp_init_lock(&lock); } ~Bin() { omp_destroy_lock(&lock); } };
extern "C" void k(int n, const double *x, double *y) {
  Bin *bins = new Bin[2];
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    omp_set_lock(&bins[LOCKED].lock);
    bins[i % 2].sum += x[i];
    omp_unset_lock(&bins[LOCKED].lock);
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = bins[i % 2].sum;
  delete[] bins;
}"""
    assert check(source.replace("LOCKED", "i % 2"), "c++").ok
    with pytest.raises(je.RaceError, match=r"kernel.cpp:8:21 by iteration \d+ of the loop"):
        check(source.replace("LOCKED", "i / 2 % 2"), "c++")
