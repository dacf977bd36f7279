from __future__ import annotations

import cmath
import math
from collections.abc import Callable

import pytest

from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.lower_calls import lower_calls
from tests.rules.native import Compiled
from tests.support.verified import verify

TWO = "{ double, double }"


def lowered(text: str) -> Module:
    module = parse(text)
    before = to_text(module)
    result = lower_calls(module)
    verify(result)
    assert to_text(module) == before, "the argument has changed"
    return result


def calls(module: Module) -> list[str]:
    lines = (line.strip() for line in to_text(module).splitlines())
    return [line.split("@")[1].split("(")[0] for line in lines if " call " in f" {line}" and not line.startswith("de")]


POINTERS = """
declare double @modf(double, ptr)
declare double @frexp(double, ptr)
declare double @remquo(double, double, ptr)
declare double @lgamma_r(double, ptr)
declare i64 @lround(double)
declare i32 @llvm.lround.i32.f64(double)
declare void @sincos(double, ptr, ptr)
declare void @sincosf(float, ptr, ptr)

define double @whole(double %x) {
  %p = alloca double
  %r = call double @modf(double %x, ptr %p)
  %i = load double, ptr %p
  ret double %i
}
define double @rest(double %x) {
  %p = alloca double
  %r = call double @modf(double %x, ptr %p)
  ret double %r
}
define double @joined(double %x) {
  %p = alloca i32
  %r = call double @frexp(double %x, ptr %p)
  %e = load i32, ptr %p
  %f = sitofp i32 %e to double
  %s = fmul double %f, 16.0
  %t = fadd double %s, %r
  ret double %t
}
define double @quotient(double %x, double %y) {
  %p = alloca i32
  %r = call double @remquo(double %x, double %y, ptr %p)
  %e = load i32, ptr %p
  %f = sitofp i32 %e to double
  %s = fmul double %f, 16.0
  %t = fadd double %s, %r
  ret double %t
}
define double @gamma(double %x) {
  %p = alloca i32
  %r = call double @lgamma_r(double %x, ptr %p)
  %e = load i32, ptr %p
  %f = sitofp i32 %e to double
  %t = fmul double %f, %r
  ret double %t
}
define double @next(double %x) {
  %l = call i64 @lround(double %x)
  %i = call i32 @llvm.lround.i32.f64(double %x)
  %s = trunc i64 %l to i32
  %t = add i32 %s, %i
  %f = sitofp i32 %t to double
  ret double %f
}
define double @both(double %x) {
  %p = alloca double
  %q = alloca double
  call void @sincos(double %x, ptr %p, ptr %q)
  %s = load double, ptr %p
  %c = load double, ptr %q
  %t = fdiv double %s, %c
  ret double %t
}
define float @single(float %x) {
  %p = alloca float
  %q = alloca float
  call void @sincosf(float %x, ptr %p, ptr %q)
  %s = load float, ptr %p
  ret float %s
}
"""


def test_results_through_pointers() -> None:
    module = lowered(POINTERS)
    names = set(calls(module))
    assert names.isdisjoint(
        {"modf", "frexp", "remquo", "lgamma_r", "lround", "llvm.lround.i32.f64", "sincos", "sincosf"}
    )
    compiled = Compiled(module)
    for x in (2.75, -2.75, 3.0, 0.1, 1e300, -1e-300):
        rest, whole = math.modf(x)
        assert compiled["rest"](x) == rest
        assert compiled["whole"](x) == whole
        fraction, exponent = math.frexp(x)
        assert compiled["joined"](x) == 16.0 * exponent + fraction
    for x, near in ((2.5, 3), (-2.5, -3), (0.49999999999999994, 0), (-0.2, 0), (7.0, 7)):
        assert compiled["next"](x) == 2 * near
    assert compiled["rest"](math.inf) == 0.0
    assert compiled["whole"](-math.inf) == -math.inf
    assert compiled["quotient"](7.25, 2.0) == 16.0 * 4 - 0.75
    assert compiled["quotient"](-7.25, 2.0) == -16.0 * 4 + 0.75
    assert compiled["gamma"](2.5) == pytest.approx(math.lgamma(2.5), rel=1e-14)
    assert compiled["gamma"](-0.5) == pytest.approx(-math.lgamma(-0.5), rel=1e-14)
    assert compiled["both"](0.7) == pytest.approx(math.tan(0.7), rel=1e-15)
    assert compiled["single"](0.5) == pytest.approx(math.sin(0.5), rel=1e-6)


INTRINSICS = """
declare { double, double } @llvm.sincos.f64(double)
declare { double, double } @llvm.modf.f64(double)
declare { double, i32 } @llvm.frexp.f64.i32(double)
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
declare double @llvm.vector.reduce.fmul.v4f64(double, <4 x double>)
declare double @llvm.vector.reduce.fmax.v4f64(<4 x double>)

define double @tangent(double %x) {
  %r = call { double, double } @llvm.sincos.f64(double %x)
  %s = extractvalue { double, double } %r, 0
  %c = extractvalue { double, double } %r, 1
  %t = fdiv double %s, %c
  ret double %t
}
define double @parts(double %x) {
  %r = call { double, double } @llvm.modf.f64(double %x)
  %s = extractvalue { double, double } %r, 0
  %c = extractvalue { double, double } %r, 1
  %t = fdiv double %s, %c
  ret double %t
}
define double @fraction(double %x) {
  %r = call { double, i32 } @llvm.frexp.f64.i32(double %x)
  %s = extractvalue { double, i32 } %r, 0
  ret double %s
}
define double @total(double %x, double %y) {
  %a = insertelement <4 x double> <double 1.0, double 2.0, double 3.0, double 4.0>, double %x, i32 1
  %b = call double @llvm.vector.reduce.fadd.v4f64(double %y, <4 x double> %a)
  %c = call double @llvm.vector.reduce.fmul.v4f64(double 1.0, <4 x double> %a)
  %d = call double @llvm.vector.reduce.fmax.v4f64(<4 x double> %a)
  %e = fadd double %b, %c
  %f = fadd double %e, %d
  ret double %f
}
"""


def test_intrinsics_with_several_results_or_lanes() -> None:
    module = lowered(INTRINSICS)
    assert not any("sincos" in name or "reduce" in name or name.startswith("llvm.modf") for name in calls(module))
    compiled = Compiled(module)
    assert compiled["tangent"](0.7) == pytest.approx(math.tan(0.7), rel=1e-15)
    assert compiled["parts"](-3.25) == -0.25 / -3.0
    assert compiled["fraction"](12.0) == 0.75
    assert compiled["total"](5.0, 0.5) == 0.5 + 13.0 + 60.0 + 5.0


UNARY = {
    "cexp": cmath.exp, "clog": cmath.log, "csqrt": cmath.sqrt, "csin": cmath.sin, "ccos": cmath.cos, "ctan": cmath.tan,
    "csinh": cmath.sinh, "ccosh": cmath.cosh, "ctanh": cmath.tanh, "casin": cmath.asin, "cacos": cmath.acos,
    "catan": cmath.atan, "casinh": cmath.asinh, "cacosh": cmath.acosh, "catanh": cmath.atanh,
    "conj": lambda z: z.conjugate(), "cproj": lambda z: z,
}  # fmt: skip


def parts_of(name: str, count: int) -> str:
    """Two functions that give the real and the imaginary part of a complex function of `count` arguments."""
    parameters = ", ".join(f"double %x{i}" for i in range(2 * count))
    types = ", ".join(["double"] * (2 * count))
    functions = "".join(
        f"define double @{part}({parameters}) {{\n"
        f"  %z = call {TWO} @{name}({parameters})\n"
        f"  %v = extractvalue {TWO} %z, {index}\n"
        "  ret double %v\n}\n"
        for index, part in enumerate(("re", "im"))
    )
    return f"declare {TWO} @{name}({types})\n{functions}"


@pytest.mark.parametrize("name", UNARY)
def test_complex_functions(name: str) -> None:
    module = lowered(parts_of(name, 1))
    assert name not in calls(module)
    compiled = Compiled(module)
    for z in (0.3 + 0.4j, -1.2 + 0.7j, 0.5 - 1.5j):
        value = complex(compiled["re"](z.real, z.imag), compiled["im"](z.real, z.imag))
        assert cmath.isclose(value, UNARY[name](z), rel_tol=1e-14)


@pytest.mark.parametrize(
    "name, function",
    [("cpow", lambda a, b: a**b), ("__muldc3", lambda a, b: a * b), ("__divdc3", lambda a, b: a / b)],
)
def test_complex_functions_of_two_arguments(name: str, function: Callable[[complex, complex], complex]) -> None:
    module = lowered(parts_of(name, 2))
    assert name not in calls(module)
    compiled = Compiled(module)
    for a, b in ((0.3 + 0.4j, -1.2 + 0.7j), (2.0 - 1.0j, 0.1 + 3.0j), (1e200 + 1e200j, 1e-90 + 3e100j)):
        if name != "cpow" or abs(a) < 1e100:
            flat = (a.real, a.imag, b.real, b.imag)
            value = complex(compiled["re"](*flat), compiled["im"](*flat))
            if cmath.isfinite(value):
                assert cmath.isclose(value, function(a, b), rel_tol=1e-13)


FORTRAN = """
declare double @_FortranAModReal8(double, double, ptr, i32)
declare double @_FortranAModuloReal8(double, double, ptr, i32)
declare { double, double } @_FortranAzpowi(double, double, i32)

define double @mod(double %x, double %y) {
  %r = call double @_FortranAModReal8(double %x, double %y, ptr null, i32 1)
  ret double %r
}
define double @modulo(double %x, double %y) {
  %r = call double @_FortranAModuloReal8(double %x, double %y, ptr null, i32 1)
  ret double %r
}
define double @re(double %x, double %y, i32 %n) {
  %z = call { double, double } @_FortranAzpowi(double %x, double %y, i32 %n)
  %r = extractvalue { double, double } %z, 0
  ret double %r
}
define double @im(double %x, double %y, i32 %n) {
  %z = call { double, double } @_FortranAzpowi(double %x, double %y, i32 %n)
  %r = extractvalue { double, double } %z, 1
  ret double %r
}
"""


def test_fortran_runtime() -> None:
    module = lowered(FORTRAN)
    assert not any("Fortran" in name for name in calls(module))
    compiled = Compiled(module)
    for x in (7.5, -7.5, 4.0, -4.0):
        for y in (2.0, -2.0, 3.25):
            assert compiled["mod"](x, y) == math.fmod(x, y)
            assert compiled["modulo"](x, y) == x % y
    for n in (0, 1, 2, 5, -1, -4):
        value = complex(compiled["re"](0.7, -1.1, n), compiled["im"](0.7, -1.1, n))
        assert cmath.isclose(value, (0.7 - 1.1j) ** n, rel_tol=1e-14)


def test_complex_floats_come_in_vectors() -> None:
    module = lowered("""
    declare <2 x float> @cexpf(<2 x float>)
    declare float @cabsf(<2 x float>)
    declare <2 x float> @__divsc3(float, float, float, float)
    define float @f(float %x, float %y) {
      %a = insertelement <2 x float> poison, float %x, i32 0
      %b = insertelement <2 x float> %a, float %y, i32 1
      %z = call <2 x float> @cexpf(<2 x float> %b)
      %r = extractelement <2 x float> %z, i32 0
      %i = extractelement <2 x float> %z, i32 1
      %q = call <2 x float> @__divsc3(float %r, float %i, float 2.0, float 1.0)
      %s = call float @cabsf(<2 x float> %q)
      ret float %s
    }
    """)
    assert {"cexpf", "cabsf", "__divsc3"}.isdisjoint(calls(module))
    z = abs(cmath.exp(0.5 + 0.25j) / (2 + 1j))
    assert Compiled(module)["f"](0.5, 0.25) == pytest.approx(z, rel=1e-6)


def test_real_results_of_complex_arguments() -> None:
    functions = ("cabs", "carg", "creal", "cimag")
    module = lowered(
        "".join(
            f"declare double @{name}(double, double)\n"
            f"define double @my_{name}(double %x, double %y) {{\n"
            f"  %r = call double @{name}(double %x, double %y)\n  ret double %r\n}}\n"
            for name in functions
        )
    )
    compiled = Compiled(module)
    for name, expected in zip(functions, (5.0, math.atan2(-4.0, 3.0), 3.0, -4.0), strict=True):
        assert compiled[f"my_{name}"](3.0, -4.0) == expected


def test_aligned_memory() -> None:
    module = lowered("""
    declare i32 @posix_memalign(ptr, i64, i64)
    define ptr @f() {
      %p = alloca ptr
      %status = call i32 @posix_memalign(ptr %p, i64 64, i64 256)
      %q = load ptr, ptr %p
      ret ptr %q
    }
    """)
    assert calls(module) == ["aligned_alloc"]


@pytest.mark.parametrize("known", ["", "declare i32 @snprintf(...)"])
def test_texts_that_are_allocated(known: str) -> None:
    module = lowered(f"""
    {known}
    declare i32 @asprintf(ptr, ptr, ...)
    define i32 @f(ptr %p, ptr %form, double %x) {{
      %length = call i32 (ptr, ptr, ...) @asprintf(ptr %p, ptr %form, double %x)
      ret i32 %length
    }}
    """)
    assert calls(module) == ["snprintf", "malloc", "snprintf"]


ALLOCATED = {
    "strdup": ("ptr %text", ["strlen", "malloc", "llvm.memcpy.p0.p0.i64"]),
    "strndup": ("ptr %text, i64 %size", ["strnlen", "malloc", "llvm.memcpy.p0.p0.i64"]),
    "realpath": ("ptr %text, ptr null", ["malloc", "realpath", "free"]),
    "canonicalize_file_name": ("ptr %text", ["malloc", "realpath", "free"]),
    "getcwd": ("ptr null, i64 %size", ["malloc", "getcwd", "free"]),
}


@pytest.mark.parametrize("name", ALLOCATED)
def test_texts_in_memory_of_the_kernels_own(name: str) -> None:
    arguments, made = ALLOCATED[name]
    types = ", ".join(argument.split()[0] for argument in arguments.split(", "))
    module = lowered(f"""
    declare ptr @{name}({types})
    define ptr @f(ptr %text, i64 %size) {{
      %made = call ptr @{name}({arguments})
      ret ptr %made
    }}
    """)
    assert calls(module) == made


STAYS = {
    "another function": """
        declare double @sin(double)
        define double @f(double %x) {
          %y = call double @sin(double %x)
          ret double %y
        }""",
    "the module's own": """
        define double @modf(double %x, ptr %p) {
          ret double %x
        }
        define double @f(double %x, ptr %p) {
          %y = call double @modf(double %x, ptr %p)
          ret double %y
        }""",
    "a real argument": """
        declare double @conj(double)
        define double @f(double %x) {
          %y = call double @conj(double %x)
          ret double %y
        }""",
    "another type": """
        declare i32 @frexp(i32)
        define i32 @f(i32 %x) {
          %y = call i32 @frexp(i32 %x)
          ret i32 %y
        }""",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_is_no_such_call_stays(text: str) -> None:
    module = parse(text)
    assert lower_calls(module) is module


def test_source_positions_and_debug_records_survive() -> None:
    module = parse("""
    declare double @modf(double, ptr)
    define double @f(double %x, ptr %p) !dbg !5 {
      %r = call double @modf(double %x, ptr %p), !dbg !9
        #dbg_value(double %r, !8, !DIExpression(), !9)
      %s = fadd double %r, 1.0, !dbg !9
      ret double %s, !dbg !9
    }
    !llvm.dbg.cu = !{!0}
    !llvm.module.flags = !{!3}
    !0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
    !1 = !DIFile(filename: "a.c", directory: "/")
    !3 = !{i32 2, !"Debug Info Version", i32 3}
    !5 = distinct !DISubprogram(name: "f", file: !1, line: 1, type: !6, unit: !0, spFlags: DISPFlagDefinition)
    !6 = !DISubroutineType(types: !7)
    !7 = !{null}
    !8 = !DILocalVariable(name: "r", scope: !5, file: !1, line: 2)
    !9 = !DILocation(line: 2, column: 3, scope: !5)
    """)
    result = lower_calls(module)
    verify(result)
    text = to_text(result)
    assert text.count("!dbg !9") == 5
    assert "#dbg_value(double %r, " in text
