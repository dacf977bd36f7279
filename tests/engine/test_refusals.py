"""What cannot be proved right is refused in both modes: with cause, place and remedy, and the primal still runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ad.docs import page
from jax_enzyme.ad.facts import causes
from jax_enzyme.ad.facts.causes import (
    ALLOCATOR,
    ASSEMBLY,
    BITS,
    CHANGED_FILE,
    COMMUNICATION,
    DEVICE,
    DRAWN_NUMBER,
    GOTO,
    HELD,
    IN_ONE_PLACE,
    MADE,
    MIXED_COPY,
    ORIGIN,
    PARTS,
    SETJMP,
    THROUGH_FILE,
    UNKNOWN_CALL,
    UNKNOWN_POINTER_CALL,
    VARIADIC,
    VOLATILE,
    Cause,
)
from jax_enzyme.codegen import derived
from jax_enzyme.codegen.differentiate import Word
from jax_enzyme.errors import DifferentiationError, LoweringError, NoRuleError
from jax_enzyme.ir.arrays import Augmented, Jvp, Step, Vjp
from jax_enzyme.options import Options
from tests.support.engine import Native, agree, native, three_way

COTANGENT = """#include <stdlib.h>
#include <string.h>
void k(int n, const double *x, double *y) {
  char *w = (char *)y;
  double *b = malloc(n * 8);
  for (int i = 0; i < n; i++) {
    double *p = &b[n - 1 - i];
    b[i] = x[i] * x[i];
    memcpy(w + 16 * i + 4, &p, 8);
  }
  for (int i = 0; i < n; i++) {
    double *p;
    memcpy(&p, w + 16 * i + 4, 8);
    y[2 * i + 1] = *p * *p;
  }
}"""

RECORDS = """#include <string.h>
struct r { double v; double *p; };
void k(int n, double *x, double *w, double *y) {
  struct r *a = (struct r *)w, *b = a + n;
  for (int i = 0; i < n; i++) {
    a[i].v = x[i] * x[i];
    a[i].p = x + (n - 1 - i);
  }
  memcpy(b, a, n * sizeof *a);
  for (int i = 0; i < n; i++) y[i] = b[i].v * *b[i].p;
}"""


@dataclass(frozen=True)
class Program:
    """`line` is the place in `source` (from its first line, 1) that the message names."""

    name: str
    source: str
    line: int
    cause: Cause
    signature: str = "x: f64 -> f64"
    inputs: tuple[Any, ...] = (1.5,)
    result: float | None = None
    dims: dict[str, int] = field(default_factory=dict)
    modes: tuple[str, ...] = ("forward", "reverse")

    def kernel(self) -> Native:
        return native(self.source, "k", self.signature, self.dims)

    def __str__(self) -> str:
        return self.name


REFUSED = (
    Program(
        "pointer_in_the_place_of_a_cotangent",
        COTANGENT,
        9,
        IN_ONE_PLACE,
        "n: i32, x: f64[n], out y: f64[n + n + 4]",
        dims={"n": 12},
        modes=("reverse",),
    ),
    Program(
        "records_with_pointers_copied_among_numbers",
        RECORDS,
        9,
        MIXED_COPY,
        "n: i32, x: f64[n], scratch w: f64[n, 4], out y: f64[n]",
        dims={"n": 6},
        modes=("reverse",),
    ),
    Program(
        "unknown_call",
        "double sin_of_nobody(double);\ndouble k(double x) {\n  return sin_of_nobody(x) * x;\n}",
        3,
        UNKNOWN_CALL,
    ),
    Program(
        "bytes_between_processes",
        "int MPI_Bcast(void *, int, int, int, int);\ndouble k(double x) {\n"
        "  MPI_Bcast(&x, 8, 0x4c00010d, 0, 0x44000000);\n  return x * x;\n}",
        3,
        COMMUNICATION,
    ),
    Program(
        "integers_between_processes",
        "int MPI_Bcast(void *, int, int, int, int);\ndouble k(double x) {\n"
        "  MPI_Bcast(&x, 1, 0x4c000807, 0, 0x44000000);\n  return x * x;\n}",
        3,
        COMMUNICATION,
    ),
    Program(
        "unknown_call_through_memory",
        "void nobody(double *);\ndouble k(double x) {\n  double a[2] = {x, x};\n  nobody(a);\n  return a[1];\n}",
        4,
        UNKNOWN_CALL,
    ),
    Program(
        "functions_that_an_unknown_one_calls_with_the_numbers_of_a_file",
        "#include <search.h>\nstatic double g, h;\nstatic int same(const void *a, const void *b) {\n  h = g * g;\n"
        "  return a == b;\n}\ndouble k(double x) {\n  size_t n = 1;\n  int key = 1;\n  g = x;\n"
        "  lfind(&key, &key, &n, 4, same);\n  return h;\n}",
        11,
        UNKNOWN_CALL,
        result=2.25,
    ),
    Program(
        "an_address_made_of_another_and_the_distance_of_two",
        "#include <stdint.h>\n#include <stdlib.h>\ndouble k(double x) {\n"
        "  double *a = malloc(16), *b = malloc(16), s = 0;\n  a[0] = a[1] = x * x, b[0] = b[1] = x * x * x;\n"
        "  intptr_t away[2] = {\n    (intptr_t)b - (intptr_t)a, 0};\n"
        "  for (int i = 0; i < 2; i++) s += *(double *)((char *)(a + i) + away[i]);\n"
        "  free(a), free(b);\n  return s;\n}",
        7,
        ORIGIN,
    ),
    Program(
        "text_that_a_function_allocates_or_numbers",
        "#define _GNU_SOURCE\n#include <stdarg.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "static int text_of(char **to, const char *form, ...) {\n  va_list list;\n  va_start(list, form);\n"
        "  return vasprintf(to, form, list);\n}\ndouble k(double x) {\n"
        "  char *text, *copy = malloc(16);\n  void *p = malloc(16);\n  ((double *)p)[0] = ((double *)p)[1] = x;\n"
        '  if (x > 9 && text_of(&text, "%.9f", 1.5) > 0)\n    p = text;\n  memcpy(copy, p, 11);\n'
        "  double y = *(double *)copy * x;\n  free(copy), free(p);\n  return y;\n}",
        17,
        ORIGIN,
        result=2.25,
    ),
    Program(
        "text_and_back",
        "#include <stdio.h>\n#include <stdlib.h>\ndouble k(double x) {\n  char b[64];\n"
        '  snprintf(b, 64, "%.17g", x);\n  return atof(b) * x;\n}',
        5,
        UNKNOWN_CALL,
        result=2.25,
    ),
    Program(
        "file_and_back",
        "#include <stdio.h>\ndouble k(double x) {\n  double y = 0;\n  FILE *f = tmpfile();\n"
        "  fwrite(&x, sizeof x, 1, f);\n  rewind(f);\n  fread(&y, sizeof y, 1, f);\n  fclose(f);\n  return y * x;\n}",
        5,
        THROUGH_FILE,
        result=2.25,
    ),
    Program(
        "file_that_is_changed",
        "#include <stdio.h>\ndouble k(double x) {\n  double n = 0;\n"
        '  FILE *f = fopen("none/count", "r+");\n  if (f && fscanf(f, "%lf", &n) == 1) {\n'
        '    rewind(f);\n    fprintf(f, "%g", n + 1);\n    fclose(f);\n  }\n  return (n + 2) * x;\n}',
        4,
        CHANGED_FILE,
        result=3.0,
        modes=("reverse",),
    ),
    Program(
        "time_as_a_factor",
        "#include <time.h>\ndouble k(double x) {\n  return x * (clock() & 7);\n}",
        3,
        DRAWN_NUMBER,
        modes=("reverse",),
    ),
    Program(
        "inline_assembly",
        'double k(double x) {\n  double y = x;\n  __asm__("nop" : "+r"(y));\n  return y * x;\n}',
        3,
        ASSEMBLY,
        result=2.25,
    ),
    Program(
        "assembly_on_memory",
        'double k(double x) {\n  double y = x;\n  __asm__ volatile("nop" : "+m"(y) : : "memory");\n  return y * x;\n}',
        3,
        ASSEMBLY,
        result=2.25,
    ),
    Program(
        "mantissa",
        "#include <stdint.h>\n#include <string.h>\ndouble k(double x) {\n  uint64_t b;\n  memcpy(&b, &x, 8);\n"
        "  return (double)(b & 0xfffffffffffffull);\n}",
        6,
        BITS,
        result=2251799813685248.0,
    ),
    Program(
        "bits_of_an_array",
        "#include <stdint.h>\nvoid k(int n, const double *x, double *y) {\n"
        "  const uint64_t *from = (const uint64_t *)x;\n"
        "  uint64_t *to = (uint64_t *)y;\n  for (int i = 0; i < n; i++)\n    to[i] = from[i] * 5;\n}",
        6,
        BITS,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 2.5]),),
        dims={"n": 2},
    ),
    Program(
        "bits_in_a_union",
        "#include <stdint.h>\ntypedef union { double d; uint64_t u; } both;\n"
        "void k(int n, const double *x, double *y) {\n  both t[8];\n"
        "  for (int i = 0; i < n; i++) t[i * 7 % n].d = x[i];\n"
        "  for (int i = 0; i < n; i++)\n    t[i].u *= 5;\n  for (int i = 0; i < n; i++) y[i] = t[i].d;\n}",
        7,
        BITS,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 2.5, 3.5]),),
        dims={"n": 3},
    ),
    Program(
        "integer_in_a_union",
        "struct either { int tag; union { double d; short i; char c; }; };\n"
        "void k(int n, const double *x, double *y) {\n  struct either t[64];\n  for (int i = 0; i < n; i++)\n"
        "    if (i % 3 == 0) t[i].tag = 1, t[i].i = 3 * i; else if (i % 3 == 1) t[i].tag = 2, t[i].c = i;\n"
        "    else t[i].tag = 0, t[i].d = x[i] * x[i];\n  for (int i = 0; i < n; i++)\n"
        "    y[i] = t[i].tag == 1 ? t[i].i * x[i] : t[i].tag ? t[i].c * x[i] : t[i].d;\n}",
        8,
        HELD,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.arange(1.0, 41.0),),
        dims={"n": 40},
    ),
    Program(
        "one_byte_of_a_number",
        "#include <string.h>\nvoid k(const double *x, double *y) {\n  unsigned char b[8];\n  memcpy(b, x, 8);\n"
        "  b[6] ^= 0x10;\n  memcpy(y, b, 8);\n}",
        6,
        PARTS,
        "x: f64[1], out y: f64[1]",
        (np.array([1.5]),),
        result=0.75,
    ),
    Program(
        "setjmp",
        "#include <setjmp.h>\nstatic jmp_buf place;\nstatic void leave(double x) { if (x > 1) longjmp(place, 1); }\n"
        "double k(double x) {\n  if (setjmp(place) == 0) {\n    leave(x);\n    return x * x;\n  }\n  return 3 * x;\n}",
        5,
        SETJMP,
        result=4.5,
    ),
    Program(
        "variadic_structures",
        "#include <stdarg.h>\nstruct three { double a, b, c; };\nstatic double total(int n, ...) {\n  va_list all;\n"
        "  va_start(all, n);\n  struct three s = va_arg(all, struct three);\n  va_end(all);\n"
        "  return s.a + s.b + s.c;\n}\n"
        "double k(double x) {\n  struct three s = {x, x * x, 0};\n  return total(1, s);\n}",
        12,
        VARIADIC,
        result=3.75,
    ),
    Program(
        "variadic_pointers",
        "#include <stdarg.h>\nstatic double total(int n, ...) {\n  va_list all;\n  va_start(all, n);\n  double s = 0;\n"
        "  for (int i = 0; i < n; i++) s += *va_arg(all, double *);\n  va_end(all);\n  return s;\n}\n"
        "static double (*volatile chosen)(int, ...) = total;\n"
        "double k(double x) {\n  double y = x * x;\n  return total(2, &x, &y) + (chosen == total ? 0 : 1);\n}",
        13,
        VARIADIC,
        result=3.75,
    ),
    Program(
        "pointer_of_an_integer",
        "double k(double x, double *s, long zero) {\n  double *p = (double *)(((long)s * 3 + zero) / 3);\n"
        "  *p = x * x;\n  return s[0];\n}",
        3,
        ORIGIN,
        "x: f64, scratch s: f64[1], zero: i64 -> f64",
        (1.5, 0),
        result=2.25,
    ),
    Program(
        "read_through_an_integer",
        "double k(double x, double *s, long zero) {\n  s[0] = x * x;\n"
        "  double *p = (double *)(((long)s * 3 + zero) / 3);\n  return *p;\n}",
        4,
        ORIGIN,
        "x: f64, scratch s: f64[1], zero: i64 -> f64",
        (1.5, 0),
        result=2.25,
    ),
    Program(
        "pointers_in_bytes",
        "#include <stdlib.h>\ndouble k(const double *x, int n) {\n"
        "  double **held = malloc(8 * n), *kept = malloc(8 * n), s = 0;\n"
        "  for (int i = 0; i < n; i++) held[i] = kept + i, kept[i] = x[i] * x[i];\n"
        "  for (int i = 0; i < 8 * n; i++) ((char *)held)[i] ^= 5;\n"
        "  for (int i = 0; i < 8 * n; i++) ((char *)held)[i] ^= 5;\n"
        "  for (int i = 0; i < n; i++) s += *held[i];\n"
        "  free(held), free(kept);\n  return s;\n}",
        7,
        causes.POINTERS_AS_INTEGERS,
        "x: f64[2], n: i32 -> f64",
        (np.array([1.5, 2.0]), 2),
        result=6.25,
    ),
    Program(
        "address_that_was_passed",
        "double k(const double *x, const unsigned long *at) {\n"
        "  const double *p = at[0] ? (const double *)at[0] : x;\n  return p[0] * x[0];\n}",
        3,
        ORIGIN,
        "x: f64[1], at: u64[1] -> f64",
        (np.array([1.5]), np.zeros(1, np.uint64)),
        result=2.25,
    ),
    Program(
        "address_in_a_library",
        "extern char **environ;\ndouble k(const double *x, int n) {\n"
        "  const double *p = n > 3 ? (const double *)environ[0] : x;\n  return p[0] * x[0];\n}",
        4,
        ORIGIN,
        "x: f64[1], n: i32 -> f64",
        (np.array([1.5]), 0),
        result=2.25,
    ),
    Program(
        "volatile_input",
        "double k(const volatile double *x) {\n  return x[0] * x[1];\n}",
        2,
        VOLATILE,
        "x: f64[2] -> f64",
        (np.array([1.5, 2.0]),),
        result=3.0,
    ),
    Program(
        "assembly_that_jumps",
        'double k(double x, int n) {\n  __asm__ goto("test %0, %0; jz %l1" : : "r"(n) : "cc" : zero);\n'
        "  return x * x;\nzero:\n  return x;\n}",
        0,
        GOTO,
        "x: f64, n: i32 -> f64",
        (1.5, 3),
    ),
    Program(
        "call_through_a_pointer",
        "extern double (*hook)(double);\ndouble k(double x) {\n  return hook(x) * x;\n}",
        3,
        UNKNOWN_POINTER_CALL,
    ),
    Program(
        "fast_exponential",
        "double k(double x) {\n  union { double d; struct { int low, high; } n; } u;\n  u.n.low = 0;\n"
        "  u.n.high = (int)(1477 * x + 1047492) << 10;\n  return u.d;\n}",
        4,
        MADE,
    ),
    Program(
        "fast_exponential_of_a_rounded_number",
        "#include <math.h>\ndouble k(double x) {\n  union { double d; struct { int low, high; } n; } u;\n"
        "  u.n.low = 0;\n  u.n.high = (int)(round(1477 * x) + 1047492) << 10;\n  return u.d;\n}",
        5,
        MADE,
    ),
    Program(
        "fast_exponential_in_memory",
        "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\nvoid k(int n, const double *x, double *y) {\n"
        "  int64_t *t = malloc(n * sizeof *t);\n  for (int i = 0; i < n; i++)\n"
        "    t[i * 3 % n] = (int64_t)(1512775 * x[i] + 1072632447) << 32;\n"
        "  memcpy(y, t, n * sizeof *t);\n  free(t);\n}",
        7,
        MADE,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 2.5]),),
        dims={"n": 2},
    ),
    Program(
        "bits_sent_through_an_array",
        "#include <stdint.h>\n#include <string.h>\nvoid k(int n, const double *x, double *y) {\n  int64_t t[8];\n"
        "  memcpy(t, x, n * sizeof *t);\n  for (int i = 0; i < n; i++)\n    t[i * 3 % n] *= 5;\n"
        "  memcpy(y, t, n * sizeof *t);\n}",
        7,
        BITS,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 2.5]),),
        dims={"n": 2},
    ),
    Program(
        "half_of_a_number",
        "#include <stdint.h>\nvoid k(int n, const double *x, double *y) {\n  uint32_t *half = (uint32_t *)y;\n"
        "  for (int i = 0; i < n; i++) y[i] = x[i];\n  for (int i = 0; i < n; i++)\n"
        "    half[2 * i + 1] = 0x3ff00000;\n}",
        6,
        PARTS,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.array([1.5, 3.0]),),
        result=1.0,
        dims={"n": 2},
    ),
    Program(
        "across_two_numbers",
        "#include <string.h>\nvoid k(int n, const double *x, double *y) {\n  char *w = (char *)y;\n"
        "  for (int i = 0; i < n; i++) {\n    double v = x[i] * x[i];\n"
        "    memcpy(w + 16 * i + 4, &v, sizeof v);\n  }\n}",
        6,
        PARTS,
        "n: i32, x: f64[n], out y: f64[n + n]",
        (np.array([1.5, 3.0]),),
        dims={"n": 2},
    ),
    Program(
        "another_type_of_number",
        "void k(const double *x, double *y) {\n  const float *halves = (const float *)x;\n  y[0] = halves[1];\n}",
        3,
        PARTS,
        "x: f64[1], out y: f64[1]",
        (np.array([1.5]),),
        result=1.9375,
    ),
    Program(
        "fixed_address",
        "double k(double x, int n) {\n  double *device = (double *)0x1000;\n  if (n > 3) {\n    *device = x;\n"
        "    return *device;\n  }\n  return x;\n}",
        4,
        DEVICE,
        "x: f64, n: i32 -> f64",
        (1.5, 1),
        result=1.5,
    ),
    Program(
        "allocator_without_a_shadow",
        "#include <malloc.h>\n#include <stdlib.h>\nvoid k(int n, const double *x, double *y) {\n  double *p[8];\n"
        "  for (int i = 0; i < n; i++) {\n    p[i] = memalign(16, 8);\n    p[i][0] = x[i];\n  }\n"
        "  for (int i = 0; i < n; i++) y[i] = p[n - 1 - i][0] * p[i][0];\n  for (int i = 0; i < n; i++) free(p[i]);\n}",
        6,
        ALLOCATOR,
        "n: i32, x: f64[n], out y: f64[n]",
        (np.arange(1.0, 8.0),),
        result=7.0,
        dims={"n": 7},
        modes=("reverse",),
    ),
)


TAGGED = """
define void @k(i32 %n, ptr %x, ptr %y) {
entry:
  %t = alloca [4 x i64], align 16
  %both = getelementptr double, ptr %x, <2 x i64> <i64 0, i64 1>
  %words = ptrtoint <2 x ptr> %both to <2 x i64>
  %tagged = or <2 x i64> %words, <i64 0, i64 1>
  store <2 x i64> %tagged, ptr %t
  %i = srem i32 %n, 2
  %wide = sext i32 %i to i64
  %at = getelementptr i64, ptr %t, i64 %wide
  %word = load i64, ptr %at
  %plain = and i64 %word, -2
  %p = inttoptr i64 %plain to ptr
  %d = load double, ptr %p
  store double %d, ptr %y
  ret void
}
"""
TAPE = "double k(double x, double tol) { return x < tol ? x * x : k(0.5 * x, tol) * k(0.3 * x, tol); }"
NOTED = (
    "int decide(int);\ndouble k(double x, int n) {\n  double s = x;\n  for (int i = 0; i < n; i++) {\n"
    "    s = s * s * x;\n    if (decide(i)) s += 1;\n  }\n  return s;\n}"
)


def pointers_in_vectors() -> None:
    kernel = native(TAGGED, "k", "q: i32, x: f64[2], out y: f64[1]", {}, "llvm")
    build(kernel, steps(kernel)["forward"])


def split_where_the_tape_holds_addresses() -> None:
    kernel = native(TAPE, "k", "x: f64, tol: f64 -> f64", {})
    step = steps(kernel)["reverse"]
    assert isinstance(step, Vjp)
    build(kernel, Augmented(step.wanted, step.seeded))


def no_loop() -> None:
    kernel = native("double k(double x) { return x * x; }", "k", "x: f64 -> f64", {})
    build(replace(kernel, options=Options(checkpoint="sqrt")), steps(kernel)["reverse"])


def loop_that_cannot_be_cut() -> None:
    kernel = native(NOTED, "k", "x: f64, n: i32 -> f64", {})
    build(replace(kernel, options=Options(checkpoint="sqrt")), steps(kernel)["reverse"])


def no_return() -> None:
    source = "void k(const double *x, double *y) {\n  y[0] = x[0];\n  for (;;) y[0] *= x[0];\n}"
    kernel = native(source, "k", "x: f64[1], out y: f64[1]", {})
    build(kernel, steps(kernel)["reverse"])


def plain(parameters: str, activity: list[Word]) -> None:
    module = f"define void @f(ptr %x, ptr %y) {{\n{parameters}\n  ret void\n}}"
    je.ad.differentiate(module, "f", "forward", activity)


def inactive_parameter() -> None:
    plain("  %a = load double, ptr %x\n  store double %a, ptr %y", ["active", "const"])


def parameter_with_pointers() -> None:
    body = "  store ptr %y, ptr %x\n  %p = load ptr, ptr %x\n  %a = load double, ptr %p\n  %b = fmul double %a, %a"
    plain(f"{body}\n  store double %b, ptr %y", ["active", "active"])


def callers_variable() -> None:
    text = (
        "@p = global ptr null\ndefine double @f(ptr %x, i1 %c) {\n  %p = load ptr, ptr @p\n"
        "  %q = select i1 %c, ptr %p, ptr %x\n  %a = load double, ptr %q\n  ret double %a\n}"
    )
    je.ad.differentiate(text, "f")


def returned_pointer() -> None:
    body = "  %p = call ptr @malloc(i64 8)\n  %b = fmul double %x, %x\n  store double %b, ptr %p\n  ret ptr %p"
    je.ad.differentiate(f"declare ptr @malloc(i64)\ndefine ptr @f(double %x) {{\n{body}\n}}", "f", "forward")


ELSEWHERE: dict[Callable[[], None], Cause] = {
    pointers_in_vectors: causes.POINTERS_AS_INTEGERS,
    split_where_the_tape_holds_addresses: causes.SPLIT,
    no_loop: causes.NO_LOOP,
    loop_that_cannot_be_cut: causes.NOT_CHECKPOINTED,
    no_return: causes.NEVER_RETURNS,
    inactive_parameter: causes.INACTIVE_PARAMETER,
    parameter_with_pointers: causes.POINTER_PARAMETER,
    callers_variable: causes.CALLERS_VARIABLE,
    returned_pointer: causes.RETURNED_POINTER,
}


@pytest.mark.parametrize("attempt", ELSEWHERE, ids=lambda f: f.__name__)
def test_refusal_elsewhere(attempt: Callable[[], None]) -> None:
    cause = ELSEWHERE[attempt]
    with pytest.raises(cause.kind.error) as caught:
        attempt()
    assert is_of(caught.value, cause)


def test_every_cause_has_a_program() -> None:
    shown = {p.cause for p in REFUSED} | set(ELSEWHERE.values())
    assert shown == set(causes.CAUSES)
    keys = [c.key for c in (*causes.CAUSES, *causes.GUARDS, *causes.DEVICE_CAUSES)]
    assert len(keys) == len(set(keys))
    every = {c for c in vars(causes).values() if isinstance(c, Cause)}
    assert every == {*causes.CAUSES, *causes.GUARDS, *causes.DEVICE_CAUSES}


def test_the_page_is_up_to_date() -> None:
    path = Path(__file__).parents[2] / "docs" / "refusals.md"
    assert path.read_text(encoding="utf-8") == page(), "run: python -m jax_enzyme.ad.docs > docs/refusals.md"


def steps(kernel: Native) -> dict[str, Step]:
    given = tuple(b.is_input and b.is_floating for b in kernel.buffers)
    seeded = tuple(b.is_result and b.is_floating for b in kernel.buffers)
    return {"forward": Jvp(given), "reverse": Vjp(given, seeded)}


def build(kernel: Native, step: Step) -> None:
    derived.build(kernel.program, kernel.signature, kernel.binding, (step,), kernel.options)


CASES = [pytest.param(p, m, id=f"{p}-{m}") for p in REFUSED for m in p.modes]


@pytest.mark.parametrize(("program", "mode"), CASES)
def test_refusal(program: Program, mode: str) -> None:
    kernel = program.kernel()
    with pytest.raises(DifferentiationError) as caught:
        build(kernel, steps(kernel)[mode])
    error = caught.value
    assert type(error) is program.cause.kind.error
    assert is_of(error, program.cause)
    if program.line:
        assert error.place is not None and error.place.startswith(f"kernel.c:{program.line}")
    lines = str(error).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 160


def is_of(error: DifferentiationError, cause: Cause) -> bool:
    """Whether an error is that entry of the table: its words, and those of its remedy, up to what is filled in."""
    said = cause.what.partition("{")[0] or cause.what.rpartition("}")[2]
    return said in error.cause and (error.remedy or "").startswith(cause.remedy.partition("{")[0])


@pytest.mark.parametrize("program", [p for p in REFUSED if p.result is not None], ids=str)
def test_the_primal_runs(program: Program) -> None:
    (result,) = program.kernel().run((), list(program.inputs))
    np.testing.assert_allclose(np.ravel(result)[0], program.result)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_remedy_for_unknown_functions_names_the_rules(mode: str) -> None:
    kernel = next(p for p in REFUSED if p.name == "unknown_call").kernel()
    with pytest.raises(NoRuleError, match=r'je\.rule\("sin_of_nobody"') as caught:
        build(kernel, steps(kernel)[mode])
    assert 'je.inactive("sin_of_nobody")' in str(caught.value)


def test_what_has_no_place_is_told_where_it_is_called() -> None:
    """As functions of run-time libraries are that stay functions."""
    below = 'if (n > 0) return 2*below(x, n - 1); __asm__("addsd %0, %0" : "+x"(x)); return x;'
    source = f"static __attribute__((nodebug)) double below(double x, int n) {{ {below} }}\n"
    kernel = native(source + "double k(double x, int n) {\n  return below(x, n); }", "k", "x: f64, n: i32 -> f64", {})
    with pytest.raises(DifferentiationError) as caught:
        build(kernel, steps(kernel)["reverse"])
    assert caught.value.place is not None and caught.value.place.startswith("kernel.c:3")


def test_an_integer_that_is_passed_for_a_pointer_is_told_where() -> None:
    source = (
        "int work();\nvoid k(const double *x, double *y, int n) {\n  work(x, y, n); }\n"
        "int work(const double *x, double *y, double *kept) {\n  double *own = __builtin_malloc(8);\n"
        "  if (!kept) kept = own;\n  *kept = *x * *x; *y = *kept; __builtin_free(own); return 0; }"
    )
    kernel = native(source, "k", "x: f64[1], out y: f64[1], n: i32", {})
    with pytest.raises(DifferentiationError) as caught:
        build(kernel, steps(kernel)["forward"])
    assert is_of(caught.value, ORIGIN)
    assert caught.value.place is not None and caught.value.place.startswith("kernel.c:3")


def test_assembly_that_is_none_is_an_error_of_the_call() -> None:
    kernel = native('double k(double x) { __asm__("no_such_word %0" : "+x"(x)); return x; }', "k", "x: f64 -> f64", {})
    with pytest.raises(LoweringError, match="no_such_word"):
        kernel.run((), [1.0])


# -- what looks alike and is right -----------------------------------------------------------------------------------

ACCEPTED = {
    "exchange_that_takes_place": (
        "#include <stdint.h>\n#include <string.h>\nvoid k(const double *x, double *s) {\n"
        "  uint64_t old = __atomic_load_n((uint64_t *)s, 0), new;\n  double d = x[0] * x[0];\n  memcpy(&new, &d, 8);\n"
        "  __atomic_compare_exchange_n((uint64_t *)s, &old, new, 0, 0, 0);\n}",
        "x: f64[1], inout s: f64[]",
        (np.array([1.5]), 1.0),
    ),
    "file_scope_variable_in_recursion": (
        "static double sum;\nstatic void down(double x, int n) {\n  sum += x * n;\n  if (n > 0) down(x * sum, n - 1);\n"
        "  if (n > 2) down(x, n - 2);\n}\ndouble k(double x, int n) {\n  down(x, n);\n  return sum;\n}",
        "x: f64, n: i32 -> f64",
        (1.5, 3),
    ),
    "addition_by_compare_and_exchange": (
        "#include <stdint.h>\n#include <string.h>\nvoid k(const double *x, double *s) {\n  uint64_t old, new;\n  do {\n"
        "    double d;\n    old = __atomic_load_n((uint64_t *)s, 0);\n    memcpy(&d, &old, 8);\n    d += x[0] * x[0];\n"
        "    memcpy(&new, &d, 8);\n  } while (!__atomic_compare_exchange_n((uint64_t *)s, &old, new, 0, 0, 0));\n}",
        "x: f64[1], inout s: f64[]",
        (np.array([1.5]), 1.0),
    ),
    "assembly_without_a_text": (
        'double k(double x) {\n  double y = x * x, z = x;\n  __asm__("" : "+r"(y));\n'
        '  __asm__ volatile("" : : "rm"(z));\n  __asm__ volatile("" : "+m"(z) : : "memory");\n  return y * z;\n}',
        "x: f64 -> f64",
        (1.5,),
    ),
    "power_of_two_by_bits": (
        "#include <math.h>\n#include <stdint.h>\n#include <string.h>\ndouble k(double x) {\n"
        "  double n = floor(1.4426950408889634 * x + 0.5), r = x - n * 0.6931471805599453, scale;\n"
        "  uint64_t bits = (uint64_t)((int)n + 1023) << 52;\n  memcpy(&scale, &bits, 8);\n"
        "  return scale * (1 + r * (1 + r * (0.5 + r * (1. / 6 + r / 24))));\n}",
        "x: f64 -> f64",
        (2.3,),
    ),
    "sorting_bits": (
        "#include <stdint.h>\n#include <string.h>\nvoid k(const double *x, double *y) {\n  int64_t key[5];\n"
        "  for (int i = 0; i < 5; i++) {\n    double square = x[i] * x[i];\n    memcpy(key + i, &square, 8);\n  }\n"
        "  for (int i = 1; i < 5; i++)\n    for (int j = i; j > 0 && key[j - 1] > key[j]; j--) {\n"
        "      int64_t k = key[j];\n      key[j] = key[j - 1];\n      key[j - 1] = k;\n    }\n"
        "  for (int i = 0; i < 5; i++) {\n    double square;\n    memcpy(&square, key + i, 8);\n"
        "    y[i] = square * (i + 1);\n  }\n}",
        "x: f64[5], out y: f64[5]",
        (np.array([0.7, -1.3, 0.4, 1.9, -0.2]),),
    ),
    "table_by_hash": (
        "#include <stdint.h>\n#include <string.h>\ndouble k(double x) {\n  static const double table[2] = {2, 2};\n"
        "  uint64_t h;\n  memcpy(&h, &x, 8);\n  return x * x * table[h * 0x9e3779b97f4a7c15ull >> 63];\n}",
        "x: f64 -> f64",
        (1.5,),
    ),
    "aligned_by_hand": (
        "#include <stdint.h>\n#include <stdlib.h>\nvoid k(const double *x, double *y) {\n"
        "  char *raw = malloc(4 * 8 + 64);\n"
        "  double *p = (double *)(((uintptr_t)raw + 63) & ~(uintptr_t)63);\n"
        "  for (int i = 0; i < 4; i++) p[i] = x[i] * x[i];\n"
        "  for (int i = 0; i < 4; i++) y[i] = p[3 - i] * x[i];\n  free(raw);\n}",
        "x: f64[4], out y: f64[4]",
        (np.array([0.5, 1.5, -0.3, 0.7]),),
    ),
    "tagged_pointers": (
        "#include <stdint.h>\nstruct node { double v; struct node *next; };\ndouble k(const double *x) {\n"
        "  struct node pool[4], *head = 0;\n  for (int i = 0; i < 4; i++) {\n    pool[i].v = x[i] * x[i];\n"
        "    pool[i].next = (struct node *)((uintptr_t)head | (i & 1));\n    head = &pool[i];\n  }\n  double s = 0;\n"
        "  for (struct node *p = head; p; p = (struct node *)((uintptr_t)p->next & ~(uintptr_t)7))\n"
        "    s = s * p->v + p->v;\n"
        "  return s;\n}",
        "x: f64[4] -> f64",
        (np.array([0.5, 1.5, -0.3, 0.7]),),
    ),
    "list_by_xor": (
        "#include <stdint.h>\nstruct node { double v; uintptr_t link; };\ndouble k(const double *x) {\n"
        "  struct node a[4];\n  for (int i = 0; i < 4; i++) {\n    a[i].v = x[i] * x[i];\n"
        "    a[i].link = (i ? (uintptr_t)&a[i - 1] : 0) ^ (i < 3 ? (uintptr_t)&a[i + 1] : 0);\n  }\n  double s = 0;\n"
        "  for (struct node *p = a, *before = 0; p;) {\n    s = s * 0.5 + p->v;\n"
        "    struct node *next = (struct node *)(p->link ^ (uintptr_t)before);\n    before = p;\n    p = next;\n  }\n"
        "  return s;\n}",
        "x: f64[4] -> f64",
        (np.array([0.5, 1.5, -0.3, 0.7]),),
    ),
    "integers_beside_numbers": (
        "#include <math.h>\nstruct record { double v; long k; };\nvoid k(const double *x, double *y) {\n"
        "  struct record r[4];\n  for (int i = 0; i < 4; i++) {\n    r[i * 3 % 4].k = (long)floor(x[i] * 3);\n"
        "    r[i * 3 % 4].v = x[i] * 3 - (double)r[i * 3 % 4].k;\n  }\n"
        "  for (int i = 0; i < 4; i++) y[i] = r[i].v * r[i].v * (double)(r[i].k + 1);\n}",
        "x: f64[4], out y: f64[4]",
        (np.array([0.5, 1.5, -0.3, 0.7]),),
    ),
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
        "#include <stdarg.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "static void log_all(const char *format, ...) {\n  va_list all;\n"
        "  va_start(all, format);\n  vfprintf(stdout, format, all);\n  va_end(all);\n}\n"
        "static char *text_of(const char *format, ...) {\n  va_list all;\n  va_start(all, format);\n"
        "  int n = vsnprintf(NULL, 0, format, all) + 1;\n  va_end(all);\n  va_start(all, format);\n"
        "  char *s = malloc(n);\n  vsnprintf(s, n, format, all);\n  va_end(all);\n  return s;\n}\n"
        'double k(double x) {\n  log_all("%s%.0f", "", x * 0);\n'
        '  if (x > 9) fputs(text_of("EE: %g is too much", x * x), stderr);\n  return x * x;\n}',
        "x: f64 -> f64",
        (1.5,),
    ),
    "pointers_that_are_not_set_in_this_mode": (
        "struct values { double *x; };\nstruct search { double x; double *given; struct values *other; };\n"
        "static double walk(struct search *p, const double *mode, int n) {\n  if (n <= 0) return p->x;\n"
        "  p->x *= p->x;\n  if (mode[n - 1] < 0) return p->given[n - 1] * p->x;\n"
        "  if (mode[n - 1] > 2) return p->other->x[n - 1] * p->x;\n"
        "  return p->x + walk(p, mode, n - 1) * walk(p, mode, n - 2);\n}\n"
        "double k(double x, const double *mode, int n) {\n  struct search p;\n  p.x = x;\n  p.other = 0;\n"
        "  return walk(&p, mode, n);\n}",
        "x: f64, mode: f64[3], n: i32 -> f64",
        (1.02, np.ones(3), 3),
    ),
    "records_of_which_an_index_chooses_a_number": (
        "typedef struct { double v; int k; double a[2]; float f; } S;\ndouble k(const double *x) {\n"
        "  S s[6];\n  for (int i = 0; i < 6; i++) s[i] = (S){x[i & 1] * 0.7, i, {0.2 * x[(i + 1) & 1], i}, 1};\n"
        "  for (int i = 0; i < 6; i++) {\n    s[(i + 1) % 6].a[i & 1] = 0.4 * s[i].v;\n"
        "    S t = s[i];\n    s[i] = s[(i + 2) % 6];\n    s[(i + 2) % 6] = t;\n  }\n"
        "  double r = 0;\n  for (int i = 0; i < 6; i++) r += s[i].v * s[i].a[1] + s[i].k * s[i].a[0];\n  return r;\n}",
        "x: f64[2] -> f64",
        (np.array([1.3, 0.4]),),
    ),
    "rounding_modes_where_no_derivative_depends_on_them": (
        "static double half(int n) {\n#pragma STDC FENV_ACCESS ON\n  return n * 0.5;\n}\n"
        "double k(double x) { return x * x * half(3); }",
        "x: f64 -> f64",
        (1.5,),
    ),
    "texts_that_a_function_allocates_beside_numbers": (
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "typedef struct { char *name; double *v; } S;\ndouble k(const double *x) {\n"
        "  S *s = malloc(4 * sizeof *s);\n  double sum = 0;\n  for (int i = 0; i < 4; i++) {\n"
        '    asprintf(&s[i].name, "%d %.*f", i, i, *x);\n    s[i].v = malloc(8);\n    *s[i].v = x[i % 2] * x[0];\n  }\n'
        "  S t = s[1];\n  s[1] = s[3];\n  s[3] = t;\n"
        '  for (int i = 0; i < 4; i++) sum += *s[i].v * strlen(s[i].name) * (strcmp(s[i].name, "2") < 0 ? 2 : 1);\n'
        "  for (int i = 0; i < 4; i++) free(s[i].name), free(s[i].v);\n  free(s);\n  return sum;\n}",
        "x: f64[2] -> f64",
        (np.array([1.3, 0.4]),),
    ),
    "texts_and_paths_of_the_library_beside_numbers": (
        "#define _GNU_SOURCE\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"
        "typedef struct { char *name; double *v; } S;\ndouble k(const double *x) {\n"
        "  S *s = malloc(5 * sizeof *s);\n  double sum = 0;\n  for (int i = 0; i < 5; i++) {\n"
        '    s[i].name = i == 0 ? strdup("abc") : i == 1 ? strndup("abcdef", 2) : i == 2 ? realpath("/", 0)\n'
        '              : i == 3 ? realpath("/no/such/file", 0) : getcwd(0, 0);\n'
        "    s[i].v = malloc(8);\n    *s[i].v = x[i % 2] * x[0];\n  }\n"
        "  S t = s[0];\n  s[0] = s[1];\n  s[1] = t;\n"
        "  for (int i = 0; i < 4; i++) sum += *s[i].v * (s[i].name ? strlen(s[i].name) : 7);\n"
        "  sum += *s[4].v * (s[4].name[0] == '/');\n"
        "  for (int i = 0; i < 5; i++) free(s[i].name), free(s[i].v);\n  free(s);\n  return sum;\n}",
        "x: f64[2] -> f64",
        (np.array([1.3, 0.4]),),
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
