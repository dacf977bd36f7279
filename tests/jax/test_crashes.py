"""What would end the process: integer divisions without a result are errors, and who crashed is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je

DIVIDES = """
static int part(int c, int d) {
  return c / d;
}
double k(double a, int c, int d) {
  return a * a * (part(c, d) + c % d);
}
"""
LEAST = np.int32(-(2**31))


@pytest.fixture(scope="module")
def divides() -> je.Kernel:
    return je.kernel(DIVIDES, "k", "a: f64, c: i32, d: i32 -> f64", lang="c")


ENDLESS = """
static long quotient(long a, long b) { return a / b; }
typedef long (*operation)(long, long);
void unused(const long *a, double x, double *y) { for (long i = a[0];; i--) { *y = x * i; 100 / i; } }
void stored(const long *a, double x, double *y) { for (long i = a[0];; i--) *y += x * (100 / i); }
void forced(const long *a, double x, double *y) { volatile long q; for (long i = a[0];; i--) { q = 100 / i; *y = x; } }
void called(const long *a, double x, double *y) { for (long i = a[0];; i--) *y += x * quotient(100, i); }
void left(const long *a, double x, double *y) { for (long i = a[0]; i; i--) *y += x * (100 / i); }
"""


@pytest.mark.parametrize("symbol", ["unused", "stored", "forced", "called"])
def test_a_loop_that_only_a_division_by_zero_ends(symbol: str) -> None:
    kernel = je.kernel(ENDLESS, symbol, "a: i64[1], x: f64, out y: f64[]", lang="c", flags=("-Wno-unused-value",))
    for call in (kernel, jax.grad(kernel, argnums=1), jax.jit(jax.value_and_grad(kernel, argnums=1))):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="integer division by zero"):
            jax.block_until_ready(call(np.array([4]), 1.5))


def test_a_loop_that_something_else_ends() -> None:
    kernel = je.kernel(ENDLESS, "left", "a: i64[1], x: f64, out y: f64[]", lang="c", flags=("-Wno-unused-value",))
    assert kernel(np.array([4]), 1.5) == 1.5 * (25 + 33 + 50 + 100)
    assert jax.grad(kernel, argnums=1)(np.array([4]), 1.5) == 208


FAILING = """
void abort(void);
void always(double x, double *y) { *y = x; abort(); }
void sometimes(double x, double *y) { *y = 3 * x; if (x > 0) abort(); }
int reported(double x, double *y) { *y = 3 * x; return x > 0; }
"""


@pytest.mark.parametrize(("symbol", "result"), [("always", ""), ("sometimes", ""), ("reported", " -> status")])
def test_a_gradient_that_reads_nothing_of_a_failed_kernel_raises(symbol: str, result: str) -> None:
    """JAX drops calls of which nothing is read, under `jax.jit`."""
    kernel = je.kernel(FAILING, symbol, f"x: f64, out y: f64[]{result}", lang="c")
    gradient = jax.grad(kernel)
    for call, x in ((jax.jit(gradient), 1.5), (jax.jit(jax.vmap(gradient)), np.array([1.5, 2.0]))):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=symbol):
            jax.block_until_ready(call(x))
    if symbol != "always":
        assert jax.jit(gradient)(-1.5) == 3


@pytest.mark.parametrize(
    ("c", "d", "what"), [(np.int32(7), np.int32(0), "by zero"), (LEAST, np.int32(-1), "overflows")]
)
def test_a_division_without_a_result_is_an_error_with_its_line(
    divides: je.Kernel, c: np.int32, d: np.int32, what: str
) -> None:
    gradient = jax.grad(divides)
    for f in (divides, gradient, jax.jit(jax.vmap(gradient, (0, None, None)))):
        with pytest.raises(
            (jax.errors.JaxRuntimeError, ValueError), match=rf"k\W.* failed.*: integer division {what}.*kernel\.c:[36]:"
        ):
            jax.block_until_ready(f(jnp.array([1.5]) if f not in (divides, gradient) else 1.5, c, d))
    assert divides(2.0, np.int32(7), np.int32(2)) == 16
    assert gradient(2.0, np.int32(7), np.int32(2)) == 16


CONSTANT = """
static int part(const int *at) { return 10 / (at[0] - 4); }
double whole(int n, int m, const double *x) { return x[0] + 7 / m; }
double size(int n, int m, const double *x) { int at[1] = {n}; return x[0] + part(at); }
double index_(int n, int m, const double *x) { double s = 0; for (int i = 0; i < n; i++) s += x[i / m]; return s; }
double turn(int n, int m, const double *x) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * (9 / (i - 2));
  return s;
}
"""


@pytest.mark.parametrize("symbol", ["whole", "size", "index_", "turn"])
def test_a_division_by_what_is_zero_in_this_call_is_an_error(symbol: str) -> None:
    """LLVM takes it that what such a division leads to never runs."""
    kernel = je.kernel(CONSTANT, symbol, "n: i32, m: i32, x: f64[n] -> f64", lang="c")
    gradient = jax.grad(kernel, argnums=1)
    for call in (kernel, gradient, jax.jit(lambda m, x: kernel(0, x)), jax.jit(lambda m, x: gradient(0, x))):
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=r"integer division by zero \(kernel\.c:"):
            jax.block_until_ready(call(0, np.ones(4)))


CRASHES = """
import sys
import numpy as np
import jax_enzyme as je
if sys.argv[1] == "handled":
    import faulthandler
    faulthandler.enable()
far = "double far(int n, const double *x) { return x[0] + x[n + (1L << 40)]; }"
deep = "double deep(double a, int d) { double b[64]; for (int i = 0; i < 64; i++) b[i] = a + i;"
deep += " return d <= 0 ? a : b[d & 63] + deep(a * 1.0001, d - 1); }"
within = "int puts(const char *); double within(double a) { return a + puts((char *)(8 + (long)a)); }"
ended = 'void errx(int, const char *, ...); double ended(double a) { errx(5, "no licence"); return a; }'
if sys.argv[1] == "ended":
    je.kernel(ended, "ended", "a: f64 -> f64", lang="c")(1.0)
elif sys.argv[1] == "within":
    je.kernel(within, "within", "a: f64 -> f64", lang="c")(1.0)
elif sys.argv[1] == "deep":
    je.kernel(deep, "deep", "a: f64, d: i32 -> f64", lang="c")(1.0, np.int32(100000000))
else:
    je.kernel(far, "far", "n: i32, x: f64[n] -> f64", lang="c")(np.ones(4))
"""


@pytest.mark.parametrize("how", ["far", "handled", "deep"])
def test_a_kernel_that_crashes_is_named(how: str, tmp_path: Path) -> None:
    """Whoever else handles the signal is heard as well."""
    done = subprocess.run(
        [sys.executable, "-c", "import jax\njax.config.update('jax_enable_x64', True)\n" + CRASHES, how],
        capture_output=True,
        text=True,
        env=dict(os.environ, JAX_PLATFORMS="cpu"),
        cwd=tmp_path,
    )
    assert done.returncode < 0
    assert f"jax_enzyme: kernel `{'deep' if how == 'deep' else 'far'}` accessed memory that is not there" in done.stderr
    assert ("Current thread" in done.stderr) == (how == "handled")


def test_a_crash_in_a_library_is_told_with_that(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import jax\njax.config.update('jax_enable_x64', True)\n" + CRASHES, "within"],
        capture_output=True,
        text=True,
        env=dict(os.environ, JAX_PLATFORMS="cpu"),
        cwd=tmp_path,
    )
    assert done.returncode < 0
    assert (
        "jax_enzyme: kernel `within` accessed memory that is not there, or overflowed its stack, in libc" in done.stderr
    )


def test_a_kernel_in_which_a_library_ends_the_process_is_named(tmp_path: Path) -> None:
    """It ends as the library says, and nothing is destroyed that threads still use."""
    done = subprocess.run(
        [sys.executable, "-c", "import jax\njax.config.update('jax_enable_x64', True)\n" + CRASHES, "ended"],
        capture_output=True,
        text=True,
        env=dict(os.environ, JAX_PLATFORMS="cpu"),
        cwd=tmp_path,
    )
    assert done.returncode == 5 and "no licence" in done.stderr
    assert "jax_enzyme: a library that kernel `ended` calls has ended the process" in done.stderr


EXHAUSTED = """
import resource
import jax, numpy as np
import jax_enzyme as je
source = "double k(double x, int m) { for (double v = 0; v < m; v += 1) x = x * x * 0.5 + 1 / x; return x; }"
gradient = jax.grad(je.kernel(source, "k", "x: f64, m: i32 -> f64", lang="c"))
gradient(1.5, np.int32(3))
limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (300 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
gradient(1.5, np.int32(2000000000))
"""


def test_a_tape_that_finds_no_memory_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import jax\njax.config.update('jax_enable_x64', True)\n" + EXHAUSTED],
        capture_output=True,
        text=True,
        env=dict(os.environ, JAX_PLATFORMS="cpu"),
        cwd=tmp_path,
    )
    assert done.returncode < 0
    assert "no memory is left for the tape of a derivative" in done.stderr
    assert "kernel `k` was aborted" in done.stderr
