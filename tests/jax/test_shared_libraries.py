"""Functions that a shared library has, and no source: values, derivatives by rules, other processes, refusals."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import export

import jax_enzyme as je
from jax_enzyme.frontends.shared_libraries import linked
from jax_enzyme.xla_ffi.registration import CPU_TARGET

LIBRARY = """
#include <math.h>
double shape = 3.0;
static int count;
double sinc_of_library(double x) { return sin(x) / x; }
void note(double x) { count++; }
double hypot(double x, double y) { return -1; }
void run_first(void (**table)(void *, int *), void *data, int *left) { if (*left) { *left = 0; table[1](data, left); } }
void dscal_(const int *n, const double *a, double *x, const int *by) { for (int i = 0; i < *n; i++) x[i] *= *a + 1; }
"""
SOURCE = """
double sinc_of_library(double), hypot(double, double);
void note(double), dscal_(const int *, const double *, double *, const int *);
extern double shape;
double total(int n, const double *x) {
  double s = 0;
  for (int i = 0; i < n; i++) { note(x[i]); s += shape * sinc_of_library(x[i]); }
  return s;
}
double plain(double x) {
  return sinc_of_library(x);
}
double scaled(int n, double *x) { int one = 1; double a = 2; dscal_(&n, &a, x, &one); return hypot(x[0], x[1]); }
double absent(double);
double lacks(double x) { return absent(sinc_of_library(x)); }
void run_first(void (**)(void *, int *), void *, int *);
static struct { double factor; int left; } cell = {0, 1};
static void fill(void *data, int *left) { double **place = data; if (!*place) __builtin_abort(); **place = 2.5; }
static void (*table[])(void *, int *) = {0, fill};
double filled(double x) { double *place = &cell.factor; run_first(table, &place, &cell.left); return cell.factor * x; }
"""
ARRAY = "n: i32, x: f64[n] -> f64"
RULES = (je.rule("sinc_of_library", "(cos(x0) * x0 - sin(x0)) / (x0 * x0)"), je.inactive("note"))
X = np.array([0.5, 1.0, 2.0])
LOADER = """
import pickle, sys
import jax
from jax import export
jax.config.update("jax_enable_x64", True)
print(export.deserialize(open(sys.argv[1], "rb").read()).call(pickle.loads(bytes.fromhex(sys.argv[2]))).tolist())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with the sources, and the library built, for this machine and for another."""
    made = tmp_path_factory.mktemp("shared")
    (made / "kernel.c").write_text(SOURCE)
    (made / "library.c").write_text(LIBRARY)
    _build(made, "libtable.so", "-shared", "-fPIC")
    _build(made, "libother.so", "-shared", "-fPIC", "-target", "aarch64-linux-gnu")
    _build(made, "table.o", "-c")
    (made / "libscript.so").write_text("/* GNU ld script */\nINPUT(libtable.so)\n")
    (made / "libtable.a").write_bytes(b"!<arch>\n")
    return made


def _build(folder: Path, name: str, *flags: str) -> None:
    command = [sys.executable, "-m", "ziglang", "cc", "-O1", *flags, "-o", name, "library.c"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)


def kernel(folder: Path, symbol: str, signature: str, libraries: Any = ("libtable.so",), **more: Any) -> je.Kernel:
    return je.kernel(folder / "kernel.c", symbol, signature, libraries=libraries, **more)


def test_functions_that_a_library_finds_in_memory(folder: Path) -> None:
    """In a table that it is handed: one that may fail is entered all the same."""
    filled = je.kernel(folder / "kernel.c", "filled", "x: f64 -> f64", libraries=(str(folder / "libtable.so"),))
    np.testing.assert_allclose(filled(2.0), 5.0)


def test_derivatives_are_those_of_rules(folder: Path) -> None:
    total = kernel(folder, "total", ARRAY, rules=RULES)
    with jax.enable_x64(True):
        np.testing.assert_allclose(total(X), 3 * np.sum(np.sin(X) / X))
        je.check_grads(total, (X,))
        checked = kernel(folder, "total", ARRAY, rules=RULES, options=je.Options(sanitize=True))
        np.testing.assert_allclose(jax.grad(checked)(X), jax.jit(jax.grad(total))(X))


def test_what_has_no_rule_is_refused_with_its_line(folder: Path) -> None:
    plain = kernel(folder, "plain", "x: f64 -> f64")
    with jax.enable_x64(True):
        np.testing.assert_allclose(plain(1.0), np.sin(1.0))
        with pytest.raises(je.NoRuleError, match=r"sinc_of_library.*\n.*kernel\.c:11"):
            jax.grad(plain)(1.0)


def test_routines_come_from_the_library_and_functions_of_c_do_not(folder: Path) -> None:
    """A rule for a name of math.h is about that function; whoever links a BLAS wants that one."""
    with jax.enable_x64(True):
        scaled = kernel(folder, "scaled", "n: i32, inout x: f64[n] -> f64")
        returned, x = scaled(np.array([3.0, 4.0]))
        np.testing.assert_allclose(x, [9.0, 12.0])
        np.testing.assert_allclose(returned, 15.0)


def test_a_library_is_named_in_many_ways(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = kernel(folder, "plain", "x: f64 -> f64")
    assert one.program.libraries == (str(folder / "libtable.so"),)
    for same in ("libtable.so", "./libtable.so", folder / "libtable.so", [Path("libtable.so")]):
        assert kernel(folder, "plain", "x: f64 -> f64", same) == one
    assert kernel(folder, "plain", "x: f64 -> f64", (), flags=(f"-L{folder}", "-ltable")) == one
    assert kernel(folder, "plain", "x: f64 -> f64", ("libtable.so", "libm.so.6")) != one
    of_script = kernel(folder, "plain", "x: f64 -> f64", "libscript.so")
    again = pickle.loads(pickle.dumps(of_script))
    assert again == of_script and hash(again) == hash(of_script)
    np.testing.assert_allclose(again(1.0), np.sin(1.0), rtol=1e-6)
    monkeypatch.chdir(tmp_path)
    library = je.library(folder / "kernel.c", libraries="libtable.so")
    assert library.kernel("plain", "x: f64 -> f64") == one
    assert library != je.library(folder / "kernel.c")
    for by_name in ("libm.so.6", "libm.so", "m"):
        assert kernel(folder, "plain", "x: f64 -> f64", ("libtable.so", by_name)).program.libraries[1] == by_name


def test_flags_for_linkers() -> None:
    given = ("-O2", "-lone", "-l", "two", "-l:libthree.so.3", "-Lnowhere", "-lstatic=four")
    assert linked(given) == (
        ("-O2", "-Lnowhere", "-lstatic=four"), ("libone.so", "libtwo.so", "libthree.so.3")
    )  # fmt: skip


def test_stored_programs_open_it_where_they_run(folder: Path, tmp_path: Path) -> None:
    library = tmp_path / "libtable.so"
    library.write_bytes((folder / "libtable.so").read_bytes())
    checks = [export.DisabledSafetyCheck.custom_call(CPU_TARGET)]
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(kernel(folder, "total", ARRAY, library, rules=RULES)))
        expected = gradient(X).tolist()
        (tmp_path / "program").write_bytes(export.export(gradient, disabled_checks=checks)(X).serialize())
    command = [sys.executable, "-c", LOADER, str(tmp_path / "program"), pickle.dumps(X).hex()]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.strip() == str(expected)
    library.unlink()
    failed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert failed.returncode and f"no shared library `{library}`" in failed.stderr


@pytest.mark.parametrize(
    ("libraries", "said"),
    [
        ("libnowhere.so", r"(?s)no shared library `libnowhere\.so`.*loader looks.*libnowhere\.so"),
        ("./nowhere.so", r"no shared library `\./nowhere\.so`"),
        ("kernel.c", "is no shared library"),
        ("table.o", "machine code that is no shared library"),
        ("libtable.a", "a static library"),
        ("libother.so", "another processor, aarch64"),
        ("./", "a folder"),
    ],
)
def test_what_cannot_be_opened(folder: Path, libraries: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(je.CompileError, match=said):
        kernel(folder, "plain", "x: f64 -> f64", libraries)


def test_what_no_library_has_is_listed_with_its_users(folder: Path) -> None:
    with pytest.raises(je.CompileError, match=r"(?s)libtable\.so:.*`absent`: called in `lacks` at .*kernel\.c:15"):
        kernel(folder, "lacks", "x: f64 -> f64")
    with pytest.raises(je.CompileError, match="sinc_of_library") as caught:
        kernel(folder, "plain", "x: f64 -> f64", ())
    assert "libraries=(" in str(caught.value.remedy)


@pytest.mark.parametrize("libraries", [3, b"libm.so.6", ("",), [None]])
def test_what_names_no_library(folder: Path, libraries: Any) -> None:
    with pytest.raises(je.ArgumentError, match="libraries= is a sequence"):
        kernel(folder, "plain", "x: f64 -> f64", libraries)


def test_kernels_of_devices_have_none(folder: Path) -> None:
    source = "__global__ void f(double *x) { x[threadIdx.x] = 1; }"
    with pytest.raises(je.SignatureError, match="a CUDA kernel cannot call them"):
        je.kernel(source, "f", "out x: f64[4]", lang="cuda", grid=1, block=4, libraries=folder / "libtable.so")
