"""C and C++ over their standard libraries, whose bodies are partly in binaries that no front end sees."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

from jax_enzyme.errors import NoRuleError
from jax_enzyme.ir.arrays import Vjp
from tests.languages.conftest import KERNELS, check
from tests.support.engine import agree, native
from tests.support.engine import one_way as three_way
from tests.support.native import KernelStatus

VECTOR = "n: i32, x: f64[n], out y: f64[n]"
X = np.array([0.9, 0.4, 1.3, 0.7, 1.1])
C = ("sorted_numbers", "sorted_structs", "sorted_indices", "searched")
CPP = (
    "sorted sorted_stably selected vectors nested_vectors complex_numbers value_arrays "
    "virtual_functions caught static_table expression_templates with_string containers permuted heap_order sum_types "
    "shared_list small_closure big_closure sorted_records hash_tables owned_tree dynamic_casts "
    "named_numbers shaded named_steps"
).split()


@pytest.mark.parametrize("name", C)
def test_c(name: str) -> None:
    check("sorting.c", name, "c", VECTOR, {"n": 5}, [X])


@pytest.mark.parametrize("name", ["machine", "distances", "states"])
def test_computed_gotos(name: str) -> None:
    check("labels.c", name, "c", VECTOR, {"n": 5}, [X])


# std::exp and std::pow of complex numbers look for exact zeros, where one side drops the imaginary tangent.
@pytest.mark.filterwarnings(r"ignore:kernel .complex_numbers. compares .*\.cpp:jax_enzyme.ShortcutWarning")
@pytest.mark.parametrize("name", CPP)
def test_cpp(name: str) -> None:
    check("library.cpp", name, "c++", VECTOR, {"n": 5}, [X], flags=("-std=c++20",))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("constant_vector", [0.81, 0.32, 5.07, 0.49, 2.42]),
        ("map_that_grows", [4.61, 3.16, 7.42, 6.38, 5.43]),
        ("numbers_that_are_read", [3.24, np.e * 0.16, np.log(3) * 1.69, 1.96, np.e * 1.21]),
        ("object_of_a_function", [41.5, 42.5, 19.2, 20.2, 26.06]),
    ],
)
def test_static_objects(name: str, expected: list[float]) -> None:
    """Each call starts with new ones."""
    check("static_objects.cpp", name, "c++", VECTOR, {"n": 5}, [X])
    kernel = native((KERNELS / "static_objects.cpp").read_text(), name, VECTOR, {"n": 5}, lang="c++")
    for _ in range(2):
        np.testing.assert_allclose(kernel.run((), [X])[0], expected, rtol=1e-12)


BEHIND_A_TABLE = """
#include <vector>
static const std::vector<double> weights = {1.0, 2.0, 3.0};
struct Shape { virtual double area(double x, int i) const = 0; virtual ~Shape() {} };
struct A : Shape { double area(double x, int i) const override { return weights[i % 3] * x; } };
struct B : Shape { double area(double x, int i) const override { return x * x; } };
extern "C" void k(int n, const double *x, double *y) {
    for (int i = 0; i < n; i++) {
        Shape *s = x[i] > 1 ? (Shape *)new A : new B;
        y[i] = s->area(x[i], i);
        delete s;
    }
}"""


def test_static_objects_of_virtual_functions() -> None:
    kernel = native(BEHIND_A_TABLE, "k", VECTOR, {"n": 5}, lang="c++")
    for _ in range(2):
        np.testing.assert_allclose(kernel.run((), [X])[0], np.where(X > 1, np.array([1, 2, 3, 1, 2]) * X, X * X))


def test_constructors_that_the_source_lists_itself() -> None:
    lists = "static double scale;\nstatic void start(void) { scale = 4; }\n"
    lists += '__attribute__((section(".init_array"), used)) static void (*const first)(void) = start;\n'
    kernel = native(lists + "double k(double x) { return scale * x * x; }", "k", "x: f64 -> f64", {})
    agree(three_way(kernel, [1.5]), 1e-8, 1e-5)
    assert kernel.run((), [1.5]) == [9.0]


SERVICES = """
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
extern "C" void k(int n, const double *x, double *y) {
    static std::mutex lock;
    std::lock_guard<std::mutex> held(lock);
    auto start = std::chrono::steady_clock::now();
    std::string text = std::to_string(n) + std::to_string(-7L);
    for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * text.size() * std::thread::hardware_concurrency();
    static long long elapsed;
    elapsed += (std::chrono::steady_clock::now() - start).count();
}"""


def test_clocks_locks_and_numbers_as_text() -> None:
    kernel = native(SERVICES, "k", VECTOR, {"n": 5}, lang="c++")
    agree(three_way(kernel, [X]))
    np.testing.assert_allclose(kernel.run((), [X])[0], 3 * X**2)


RANDOM = """#define _GNU_SOURCE
#include <stdlib.h>
void k(double *y) {
    unsigned short s[7] = {1, 2, 3, 4, 5, 6, 7}, *old;
    *y++ = drand48(), *y++ = lrand48(), *y++ = mrand48(), *y++ = erand48(s), *y++ = nrand48(s), *y++ = jrand48(s);
    old = seed48(s);
    *y++ = old[2], *y++ = drand48();
    lcong48(s);
    *y++ = drand48(), *y++ = erand48(s + 1);
    srand48(-5);
    *y++ = mrand48(), *y++ = erand48(s), *y++ = rand(), srand(42), *y++ = random();
}"""


def test_random_numbers_are_those_of_glibc() -> None:
    """As a program that starts draws them."""
    expected = """3.907985046680551e-14 2116118 178803790
        0.44199632268870914 565063343 -1485464893 2728 0.42064911573477914
        0.34109501691255772 0.89820311344653803 -786767173 0.16777391060539415 1804289383 71876166"""
    kernel = native(RANDOM, "k", "out y: f64[14]", {})
    np.testing.assert_array_equal(kernel.run((), [])[0], np.array(expected.split(), dtype=float))
    own = native(RANDOM.replace("srand(42)", "initstate(1, (char *)y, 64)"), "k", "out y: f64[14]", {})
    with pytest.raises(KernelStatus):
        own.run((), [])


def test_streams_are_output_and_text(capfd: pytest.CaptureFixture[str]) -> None:
    kernel = native((KERNELS / "streams.cpp").read_text(), "logged", VECTOR, {"n": 5}, lang="c++")
    agree(three_way(kernel, [X]))
    capfd.readouterr()
    np.testing.assert_allclose(kernel.run((), [X])[0], [2 * 0.4 * X[0] ** 2, *(0.4 * X[1:] ** 2)])
    assert capfd.readouterr().err == "pair (0.90,     0.40)\n"
    vjp = Vjp((True, False), (False, True))
    kernel.run((vjp,), [X, X])
    assert capfd.readouterr().err == ""  # the primal has printed it


def test_numbers_that_are_read_from_text_again_are_refused() -> None:
    kernel = native((KERNELS / "streams.cpp").read_text(), "read_again", VECTOR, {"n": 5}, lang="c++")
    kernel.run((), [X])
    with pytest.raises(NoRuleError, match="basic_ostream"):
        kernel.run((Vjp((True, False), (False, True)),), [X, X])


OPENMP = """
#include <omp.h>
void k(int n, const double *x, double *y) {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; i++) s += x[i] * x[i];
#pragma omp parallel
    {
        int at = omp_get_thread_num(), step = omp_get_num_threads();
        for (int i = at; i < n; i += step) y[i] = s * x[i];
    }
}"""


def test_openmp_runs_on_one_thread() -> None:
    kernel = native(OPENMP, "k", VECTOR, {"n": 5}, flags=("-fopenmp", "-O0"))
    agree(three_way(kernel, [X]))
    np.testing.assert_allclose(kernel.run((), [X])[0], np.sum(X**2) * X)


def test_a_class_that_is_not_here_is_an_error_of_the_call() -> None:
    source = """
struct A { virtual ~A() {} double a; };
struct B : A { double b; };
extern "C" double k(double *x) { struct { void *table; double a; } odd = {x, *x}; void *there[3] = {x, x, x};
  odd.table = there + 2; A *p = reinterpret_cast<A *>(&odd); auto *b = dynamic_cast<B *>(p); return b ? b->b : 1; }
"""
    kernel = native(source, "k", "x: f64[] -> f64", {}, lang="c++")
    with pytest.raises(KernelStatus):
        kernel.run((), [np.array(1.0)])


def test_the_library_calls_back_a_function_that_may_fail() -> None:
    source = """#include <math.h>
#include <stdlib.h>
static int order(const void *a, const void *b) {
  double p = *(const double *)a, q = *(const double *)b;
  if (isnan(p)) abort();
  return (p > q) - (p < q);
}
double k(int n, const double *x) {
  double key = 3;
  int (*volatile compare)(const void *, const void *) = order;
  const double *found = bsearch(&key, x, n, 8, compare);
  return (found ? found - x : -1) + order(x, x + 1);
}"""
    kernel = native(source, "k", "n: i32, x: f64[n] -> f64", {"n": 4})
    assert kernel.run((), [np.array([1.0, 2.0, 3.0, 4.0])]) == [1.0]
    with pytest.raises(KernelStatus):
        kernel.run((), [np.array([np.nan, 2.0, 3.0, 4.0])])


def test_qsort_is_stable_and_sorts() -> None:
    source = (KERNELS / "sorting.c").read_text()
    values = np.round(np.random.default_rng(0).uniform(0, 9, 257)) + 0.5
    kernel = native(source, "sorted_structs", VECTOR, {"n": 257})
    (result,) = kernel.run((), [values])
    order = np.argsort(values**2, kind="stable")
    np.testing.assert_allclose(result, (values**2)[order] * np.arange(1, 258) + values[order])


def test_a_formula_in_text_is_parsed() -> None:
    """`strtod` says where a number ends, and the parser goes on there."""
    source = """#include <stdlib.h>
static const char *at;
static double factor(double x) {
  while (*at == ' ') at++;
  if (*at == 'x') return at++, x;
  struct { const char *from; char *end; } number = {at};
  double value = *at == '0' ? strtod(at, &number.end) : strtof(at, &number.end);
  if (number.end == at) abort();
  at = number.end;
  return value;
}
static double product(double x) {
  double p = factor(x);
  while (*at == '*') at++, p *= factor(x);
  return p;
}
double k(int n, const double *x) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (at = "2.5*x*x+ 0x1p-2*x+x*1e1"; *at; at += *at == '+') sum += product(x[i]);
  return sum;
}"""
    kernel = native(source, "k", "n: i32, x: f64[n] -> f64", {"n": 5})
    agree(three_way(kernel, [X]))
    np.testing.assert_allclose(kernel.run((), [X])[0], np.sum(2.5 * X**2 + 10.25 * X))


def test_where_numbers_in_text_end() -> None:
    """As the C library says, and with its values."""
    pieces = (
        "",
        "-",
        "+",
        " ",
        "12",
        ".",
        ".5",
        "e3",
        "E-",
        "0x",
        "0X.8P-1",
        "p4",
        "infinit",
        "INFINITY",
        "nan(a_1)",
        "nan(-)",
    )
    texts = ["".join(words) for words in product(pieces, repeat=2)]
    listed = ",".join(f'"{text}"' for text in texts)
    source = f"""#include <stdlib.h>
void k(int n, const double *x, double *y) {{
  static const char *const texts[] = {{{listed}}};
  for (int i = 0; i < n; i += 2) {{
    char *end;
    y[i] = strtod(texts[i / 2], &end);
    y[i + 1] = end - texts[i / 2];
  }}
}}"""
    kernel = native(source, "k", VECTOR, {"n": 2 * len(texts)})
    (found,) = kernel.run((), [np.zeros(2 * len(texts))])
    strtod = ctypes.CDLL(None).strtod
    strtod.restype, end = ctypes.c_double, ctypes.c_void_p()
    for text, got in zip(texts, found.reshape(-1, 2), strict=True):
        buffer = ctypes.create_string_buffer(text.encode())
        value = strtod(buffer, ctypes.byref(end))
        np.testing.assert_array_equal(got, (value, (end.value or 0) - ctypes.addressof(buffer)), text)


def test_a_formula_calls_functions_of_a_table_by_their_names() -> None:
    """The table of the kernel's own variables has a shadow; that of functions, found in the same way, needs none."""
    source = """#include <math.h>
#include <string.h>
struct entry { const char *name; const void *address; int arity; void *context; };
static const struct entry known[] = {{"cos", cos, 1, 0}, {"exp", exp, 1, 0}, {"sqrt", sqrt, 1, 0}, {0, 0, 0, 0}};
static const struct entry *find(const struct entry *table, const char *name, unsigned long size) {
  for (; table->name; table++)
    if (!strncmp(name, table->name, size) && !table->name[size]) return table;
  return 0;
}
static double value(const char **at, const struct entry *own) {
  const char *start = *at;
  while (**at >= 'a' && **at <= 'z') ++*at;
  const struct entry *e = find(own, start, *at - start);
  if (!e) e = find(known, start, *at - start);
  if (!e) return 0;
  if (e->arity == 0) return *(const double *)e->address;
  ++*at;
  double inner = value(at, own);
  return ((double (*)(double))e->address)(inner);
}
double k(int n, const double *v) {
  double x = v[0], y = v[1];
  struct entry own[] = {{"x", &x, 0, 0}, {"y", &y, 0, 0}, {0, 0, 0, 0}};
  const char *at = "cos(exp(x";
  const char *then = "sqrt(y";
  return value(&at, own) * value(&then, own);
}
"""
    kernel = native(source, "k", "n: i32, v: f64[n] -> f64", {"n": 2})
    agree(three_way(kernel, [np.array([0.3, 1.2])]))
