"""The passes at work: kernels of every shape have right derivatives, or end in a status and not the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Jvp, Vjp
from jax_enzyme.transform.failure_sites import FIRST_MESSAGE, message
from tests.support.engine import Native, agree, by_turns, native, random_like, three_way
from tests.support.native import KernelStatus
from tests.support.tools import need
from tests.transform.kernels import KERNELS, Kernel

_TOOLS = {"rust": "rustc", "fortran": "flang-22"}


def bound(kernel: Kernel) -> Native:
    tool = _TOOLS.get(kernel.lang)
    if tool is not None:
        need(tool)
    return native(kernel.source, kernel.symbol, kernel.signature, kernel.dims, lang=kernel.lang)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.fails is None], ids=lambda k: k.name)
def test_derivative(kernel: Kernel) -> None:
    single = "f32" in kernel.signature
    sweeps = by_turns(KERNELS.index(kernel))
    numbers = three_way(bound(kernel), kernel.inputs, step=1e-4 if single else 1e-7, sweeps=sweeps)
    agree(numbers, 1e-4 if single else 1e-8, 1e-2 if single else 1e-5)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.fails is not None], ids=lambda k: k.name)
def test_failure_is_a_status(kernel: Kernel) -> None:
    """In the primal and in both derivatives, and the next call is as good as the first."""
    subject = bound(kernel)
    buffers = subject.buffers
    wanted = tuple(b.is_input and b.is_floating for b in buffers)
    seeded = tuple(b.is_result and b.is_floating for b in buffers)
    rng = np.random.default_rng(0)
    tangents = [random_like(rng, b) for b in buffers if b.is_input and b.is_floating]
    cotangents = [random_like(rng, b) for b in buffers if b.is_result and b.is_floating]
    for steps, extra in (((), []), ((Jvp(wanted),), tangents), ((Vjp(wanted, seeded),), cotangents)):
        for _ in range(3):
            with pytest.raises(KernelStatus) as raised:
                subject.run(steps, [*kernel.inputs, *extra])
            kind, number = raised.value.kind, raised.value.number
            assert (kind, min(number, FIRST_MESSAGE)) == kernel.fails
    if kernel.says:
        module = derived.derived(subject.program, subject.signature, subject.binding).module
        assert kernel.says in str(message(module, kind << 32 | number))


@pytest.mark.parametrize("name", ["pointers", "variable_length", "irreducible", "caught", "virtual"])
def test_unoptimised_source(name: str, tmp_path: Path) -> None:
    """What a compiler writes at -O0: every variable in memory, `optnone` everywhere."""
    kernel = next(k for k in KERNELS if k.name == name)
    source = tmp_path / ("kernel.c" if kernel.lang == "c" else "kernel.cpp")
    source.write_text(kernel.source)
    output = tmp_path / "kernel.ll"
    driver = "cc" if kernel.lang == "c" else "c++"
    command = [sys.executable, "-m", "ziglang", driver, "-O0", "-S", "-emit-llvm", "-fno-sanitize=all", "-w"]
    subprocess.run([*command, str(source), "-o", str(output)], check=True)
    subject = native(output.read_text(), kernel.symbol, kernel.signature, kernel.dims, lang="llvm")
    agree(three_way(subject, kernel.inputs, step=1e-7), 1e-8, 1e-5)


_SQUARES = "for (int i = 0; i < n; i++) y[i] = x[i] * x[i];"
_OUT = "n: i32, x: f64[n], out y: f64[n]"


@pytest.mark.parametrize(
    "line", ["x[0] = 3;", "memset(x, 0, n * 8);", "memcpy(x, y, 8);", "double t = x[0]; x[0] = x[1]; x[1] = t;"]
)
def test_input_that_is_written(line: str) -> None:
    """The kernel has a copy: JAX's array stays as it is."""
    source = f"#include <string.h>\nvoid f(int n, double *x, double *y) {{\n  {_SQUARES}\n  {line}\n}}\n"
    subject = native(source, "f", _OUT, {"n": 4})
    x = np.array([1.0, 0.2, 0.5, 0.3])
    (y,) = subject.run((), [x])
    np.testing.assert_array_equal(x, [1.0, 0.2, 0.5, 0.3])
    np.testing.assert_array_equal(y, x * x)
    agree(three_way(subject, [x]))


@pytest.mark.parametrize(
    "source",
    [
        "typedef struct { const double *a; double *b; int n; } c;\n"
        "static void k(c *p) { for (int i = 0; i < p->n; i++) p->b[i] = p->a[i] * p->a[i]; }\n"
        "void f(int n, const double *x, double *y) { c p = {x, y, n}; k(&p); }",
        "static void add(int n, const double *a, double *b) { for (int i = 0; i < n; i++) b[i] += a[i] * a[i]; }\n"
        "void f(int n, const double *x, double *y) { double t[8] = {0}; add(n, x, t); add(n, t, y); }",
        "static void step(int n, const double *a, double *b) { for (int i = 0; i < n; i++) b[i] = a[i] * a[n-1-i]; }\n"
        "void f(int n, const double *x, double *y) { double s[8], t[8]; const double *from = x; double *to = s;\n"
        "  for (int k = 0; k < 4; k++) { step(n, from, to); from = to; to = to == s ? t : s; } step(n, from, y); }",
    ],
    ids=["struct", "callee", "double_buffer"],
)
def test_input_that_is_not_written(source: str) -> None:
    agree(three_way(native(source, "f", _OUT, {"n": 4}), [np.array([1.0, 0.2, 0.5, 0.3])]))


@pytest.mark.parametrize("where", [0, 1])
def test_input_that_may_be_written_is_copied(where: int) -> None:
    source = (
        f"void f(int n, double *x, const int *k, double *y) {{ {_SQUARES} double *p = k[0] ? x : y;\n"
        "  for (int i = 0; i < n; i++) p[i] *= y[i];\n  for (int i = 0; i < n; i++) y[i] += x[i] * p[n - 1 - i]; }"
    )
    subject = native(source, "f", "n: i32, x: f64[n], k: i32[2], out y: f64[n]", {"n": 4})
    agree(three_way(subject, [np.array([1.0, 0.2, 0.5, 0.3]), np.array([where, 0])]))


@pytest.mark.parametrize("access", ["double y = x[i] * x[i]; memcpy(&b, &y, 8);", "b = ((const uint64_t *)x)[i];"])
def test_other_bit_tricks_are_refused(access: str) -> None:
    source = (
        "#include <stdint.h>\n#include <string.h>\ndouble f(int n, const double *x) { double s = 0;\n"
        f"  for (int i = 0; i < n; i++) {{ uint64_t b; {access}\n"
        "    b = 0x5fe6eb50c7b537a9ull ^ (b >> 1); double r; memcpy(&r, &b, 8); s += r; }\n  return s; }"
    )
    subject = native(source, "f", "n: i32, x: f64[n] -> f64", {"n": 4})
    subject.run((), [np.ones(4)])
    with pytest.raises(DifferentiationError, match="bits"):
        subject.run((Jvp((True, False)),), [np.ones(4), np.ones(4)])
