"""What cannot be proved right is refused in both modes: with cause, place and remedy, and the primal still runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from jax_enzyme.codegen import derived
from jax_enzyme.errors import DifferentiationError, LoweringError, NoRuleError
from jax_enzyme.ir.arrays import Jvp, Step, Vjp
from tests.support.engine import Native, agree, native, three_way


@dataclass(frozen=True)
class Program:
    """`line` is the place in `source` (from its first line, 1) that the message names, `cause` a part of it."""

    name: str
    source: str
    line: int
    cause: str
    signature: str = "x: f64 -> f64"
    inputs: tuple[Any, ...] = (1.5,)
    result: float | None = None
    dims: dict[str, int] = field(default_factory=dict)
    refusal: type[DifferentiationError] = DifferentiationError

    def kernel(self) -> Native:
        return native(self.source, "k", self.signature, self.dims)

    def __str__(self) -> str:
        return self.name


REFUSED = (
    Program(
        "unknown_call",
        "double sin_of_nobody(double);\ndouble k(double x) {\n  return sin_of_nobody(x) * x;\n}",
        3,
        "call of `sin_of_nobody`",
        refusal=NoRuleError,
    ),
    Program(
        "unknown_call_through_memory",
        "void nobody(double *);\ndouble k(double x) {\n  double a[2] = {x, x};\n  nobody(a);\n  return a[1];\n}",
        4,
        "call of `nobody`",
        refusal=NoRuleError,
    ),
    Program(
        "text_and_back",
        "#include <stdio.h>\n#include <stdlib.h>\ndouble k(double x) {\n  char b[64];\n"
        '  snprintf(b, 64, "%.17g", x);\n  return atof(b) * x;\n}',
        5,
        "call of `snprintf`",
        result=2.25,
        refusal=NoRuleError,
    ),
    Program(
        "inline_assembly",
        'double k(double x) {\n  double y = x;\n  __asm__("" : "+r"(y));\n  return y * x;\n}',
        3,
        "inline assembly",
        result=2.25,
        refusal=NoRuleError,
    ),
    Program(
        "assembly_on_memory",
        'double k(double x) {\n  double y = x;\n  __asm__ volatile("" : "+m"(y) : : "memory");\n  return y * x;\n}',
        3,
        "inline assembly",
        result=2.25,
        refusal=NoRuleError,
    ),
    Program(
        "inverse_square_root",
        "#include <stdint.h>\n#include <string.h>\nfloat k(float x) {\n  int32_t i;\n  memcpy(&i, &x, 4);\n"
        "  i = 0x5f3759df - (i >> 1);\n  float y;\n  memcpy(&y, &i, 4);\n"
        "  return y * (1.5f - 0.5f * x * y * y);\n}",
        6,
        "the bits of a number",
        "x: f32 -> f32",
    ),
    Program(
        "mantissa",
        "#include <stdint.h>\n#include <string.h>\ndouble k(double x) {\n  uint64_t b;\n  memcpy(&b, &x, 8);\n"
        "  return (double)(b & 0xfffffffffffffull);\n}",
        6,
        "the bits of a number",
        result=2251799813685248.0,
    ),
    Program(
        "bits_of_an_array",
        "#include <stdint.h>\nvoid k(int n, const double *x, double *y) {\n"
        "  const uint64_t *from = (const uint64_t *)x;\n"
        "  uint64_t *to = (uint64_t *)y;\n  for (int i = 0; i < n; i++)\n    to[i] = from[i] * 5;\n}",
        6,
        "the bits of a number",
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 2.5]),),
        dims={"n": 2},
    ),
    Program(
        "bits_in_a_union",
        "#include <stdint.h>\ntypedef union { double d; uint64_t u; } both;\n"
        "void k(int n, const double *x, double *y) {\n  both t[8];\n"
        "  for (int i = 0; i < n; i++) t[i * 7 % n].d = x[i];\n"
        "  for (int i = 0; i < n; i++)\n    t[i].u += 3;\n  for (int i = 0; i < n; i++) y[i] = t[i].d;\n}",
        7,
        "the bits of a number",
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 2.5, 3.5]),),
        dims={"n": 3},
    ),
    Program(
        "one_byte_of_a_number",
        "#include <string.h>\nvoid k(const double *x, double *y) {\n  unsigned char b[8];\n  memcpy(b, x, 8);\n"
        "  b[6] ^= 0x10;\n  memcpy(y, b, 8);\n}",
        5,
        "the bits of a number",
        "x: f64[1], out y: f64[1]",
        (np.array([1.5]),),
        result=0.75,
    ),
    Program(
        "setjmp",
        "#include <setjmp.h>\nstatic jmp_buf place;\nstatic void leave(double x) { if (x > 1) longjmp(place, 1); }\n"
        "double k(double x) {\n  if (setjmp(place) == 0) {\n    leave(x);\n    return x * x;\n  }\n  return 3 * x;\n}",
        5,
        "a second time",
        result=4.5,
    ),
    Program(
        "variadic_numbers",
        "#include <stdarg.h>\nstatic double total(int n, ...) {\n  va_list all;\n  va_start(all, n);\n  double s = 0;\n"
        "  for (int i = 0; i < n; i++) s += va_arg(all, double);\n  va_end(all);\n  return s;\n}\n"
        "double k(double x) {\n  return total(2, x, x * x);\n}",
        11,
        "`...`",
        result=3.75,
    ),
    Program(
        "variadic_pointers",
        "#include <stdarg.h>\nstatic double total(int n, ...) {\n  va_list all;\n  va_start(all, n);\n  double s = 0;\n"
        "  for (int i = 0; i < n; i++) s += *va_arg(all, double *);\n  va_end(all);\n  return s;\n}\n"
        "double k(double x) {\n  double y = x * x;\n  return total(2, &x, &y);\n}",
        12,
        "`...`",
        result=3.75,
    ),
    Program(
        "pointer_of_an_integer",
        "double k(double x, double *s, long zero) {\n  double *p = (double *)(((long)s * 3 + zero) / 3);\n"
        "  *p = x * x;\n  return s[0];\n}",
        3,
        "pointer of unknown origin",
        "x: f64, scratch s: f64[1], zero: i64 -> f64",
        (1.5, 0),
        result=2.25,
    ),
    Program(
        "read_through_an_integer",
        "double k(double x, double *s, long zero) {\n  s[0] = x * x;\n"
        "  double *p = (double *)(((long)s * 3 + zero) / 3);\n  return *p;\n}",
        4,
        "pointer of unknown origin",
        "x: f64, scratch s: f64[1], zero: i64 -> f64",
        (1.5, 0),
        result=2.25,
    ),
    Program(
        "volatile_variable",
        "double k(double x) {\n  volatile double y;\n  y = x * x;\n  return y * x;\n}",
        3,
        "volatile memory",
        result=3.375,
    ),
    Program(
        "volatile_input",
        "double k(const volatile double *x) {\n  return x[0] * x[1];\n}",
        2,
        "volatile memory",
        "x: f64[2] -> f64",
        (np.array([1.5, 2.0]),),
        result=3.0,
    ),
    Program(
        "computed_goto",
        "double k(double x, int n) {\n  static void *at[] = {&&a, &&b};\n  double s = x;\n  goto *at[n & 1];\n"
        "a:\n  s = s * x;\n  if (++n > 9) return s;\n  goto *at[n & 1];\n"
        "b:\n  s = s + x;\n  n += 2;\n  if (n > 9) return s;\n  goto *at[n % 3 & 1];\n}",
        0,
        "control may go to any label",
        "x: f64, n: i32 -> f64",
        (1.5, 3),
    ),
    Program(
        "compare_and_exchange",
        "#include <stdint.h>\n#include <string.h>\nvoid k(const double *x, double *s) {\n  uint64_t old, new;\n  do {\n"
        "    double d;\n    old = __atomic_load_n((uint64_t *)s, 0);\n    memcpy(&d, &old, 8);\n    d += x[0] * x[0];\n"
        "    memcpy(&new, &d, 8);\n  } while (!__atomic_compare_exchange_n((uint64_t *)s, &old, new, 0, 0, 0));\n}",
        11,
        "an atomic operation",
        "x: f64[1], inout s: f64[]",
        (np.array([1.5]), 1.0),
        result=3.25,
    ),
)


def steps(kernel: Native) -> dict[str, Step]:
    given = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    seeded = tuple(b.is_result and b.is_floating for b in kernel.buffers)
    return {"forward": Jvp(given), "reverse": Vjp(given, seeded)}


def build(kernel: Native, step: Step) -> None:
    derived.build(kernel.program, kernel.signature, kernel.binding, (step,), kernel.options)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("program", REFUSED, ids=str)
def test_refusal(program: Program, mode: str) -> None:
    kernel = program.kernel()
    with pytest.raises(DifferentiationError) as caught:
        build(kernel, steps(kernel)[mode])
    error = caught.value
    assert isinstance(error, program.refusal)
    assert program.cause in error.cause
    assert error.remedy
    if program.line:
        assert error.place is not None and error.place.startswith(f"kernel.c:{program.line}")
    lines = str(error).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 160


@pytest.mark.parametrize("program", [p for p in REFUSED if p.result is not None], ids=str)
def test_the_primal_runs(program: Program) -> None:
    (result,) = program.kernel().run((), list(program.inputs))
    np.testing.assert_allclose(np.ravel(result)[0], program.result)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_remedy_for_unknown_functions_names_the_rules(mode: str) -> None:
    kernel = REFUSED[0].kernel()
    with pytest.raises(NoRuleError, match=r'je\.rule\("sin_of_nobody"') as caught:
        build(kernel, steps(kernel)[mode])
    assert 'je.inactive("sin_of_nobody")' in str(caught.value)


def test_assembly_that_is_none_is_an_error_of_the_call() -> None:
    kernel = native('double k(double x) { __asm__("no_such_word %0" : "+x"(x)); return x; }', "k", "x: f64 -> f64", {})
    with pytest.raises(LoweringError, match="no_such_word"):
        kernel.run((), [1.0])


# -- what looks alike and is right -----------------------------------------------------------------------------------

ACCEPTED = {
    "irreducible": (
        "double k(double x, int n) {\n  double s = x;\n  int i = 0;\n  if (n > 2) goto middle;\ntop:\n"
        "  s = s * x + 1;\n"
        "middle:\n  s = s + x * x;\n  if (++i < 4) goto top;\n  return s;\n}",
        "x: f64, n: i32 -> f64",
        (1.5, 3),
    ),
    "realloc": (
        "#include <stdlib.h>\ndouble k(const double *x) {\n  double *p = malloc(8), s = 0;\n"
        "  for (int i = 0, room = 1; i < 7; i++) {\n    if (i >= room) p = realloc(p, 8 * (room *= 2));\n"
        "    p[i] = x[i] * x[i];\n  }\n  for (int i = 0; i < 7; i++) s += p[i] * p[i];\n  free(p);\n  return s;\n}",
        "x: f64[7] -> f64",
        (np.arange(1.0, 8.0),),
    ),
    "atomic_additions": (
        "double k(const double *x) {\n  double s = x[0];\n  for (int i = 0; i < 4; i++) {\n"
        "    double old = __atomic_fetch_add(&s, x[i] * x[i], 0);\n    __atomic_fetch_sub(&s, old * x[3], 0);\n  }\n"
        "  return s;\n}",
        "x: f64[4] -> f64",
        (np.array([0.5, 1.5, -0.3, 0.7]),),
    ),
    "counting_atomically": (
        "double k(const double *x) {\n  struct { long uses; double sum; } s = {0, 0};\n"
        "  for (int i = 0; i < 4; i++) {\n"
        "    __atomic_fetch_add(&s.uses, 1, 0);\n    s.sum += x[i] * x[i];\n  }\n  return s.sum / (double)s.uses;\n}",
        "x: f64[4] -> f64",
        (np.array([0.5, 1.5, -0.3, 0.7]),),
    ),
    "pointer_through_an_integer": (
        "#include <stdint.h>\ndouble k(const double *x, long h) {\n"
        "  const double *p = (const double *)(((uintptr_t)x ^ h) ^ h);\n  return p[0] * p[1];\n}",
        "x: f64[2], h: i64 -> f64",
        (np.array([1.5, 2.5]), 4660),
    ),
    "not_a_number_by_its_bits": (
        "#include <stdint.h>\n#include <string.h>\ndouble k(double x) {\n  uint64_t b;\n  memcpy(&b, &x, 8);\n"
        "  return (b & 0x7ff0000000000000ull) == 0x7ff0000000000000ull ? 0 : x * x;\n}",
        "x: f64 -> f64",
        (1.5,),
    ),
    "printing": (
        "#include <stdarg.h>\n#include <stdio.h>\nstatic void log_all(const char *format, ...) {\n  va_list all;\n"
        "  va_start(all, format);\n  vfprintf(stdout, format, all);\n  va_end(all);\n}\n"
        'double k(double x) {\n  log_all("%s%.0f", "", x * 0);\n  return x * x;\n}',
        "x: f64 -> f64",
        (1.5,),
    ),
    "volatile_counter": (
        "double k(double x) {\n  volatile int n = 3;\n  double s = 1;\n"
        "  for (int i = 0; i < n; i++) s *= x;\n  return s;\n}",
        "x: f64 -> f64",
        (1.5,),
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    source, signature, inputs = ACCEPTED[name]
    agree(three_way(native(source, "k", signature, {}), [np.asarray(x) for x in inputs]))
