"""`load`: every kind of source, and what is said when something is missing."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import load
from jax_enzyme.ir import reader
from jax_enzyme.transform.failure_sites import site
from tests.support.tools import need

SQUARE = "double square(double x) { return x * x; }\n"
NORM = """#include <math.h>
static double mag(int n, const double *x) { double s = 0; while (n-- > 0) s += x[n] * x[n]; return sqrt(s); }
void norm(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] / mag(n, x); }
"""


def test_inline_c() -> None:
    program = load(NORM, lang="c")
    assert (program.symbol, program.lang, program.source_name) == ("norm", "c", "kernel.c")
    assert "define internal double @mag" in program.ir
    assert "optnone" not in program.ir
    assert "target-cpu" not in program.ir
    assert 'DIFile(filename: "kernel.c", directory: "")' in program.ir
    assert "call double @llvm.sqrt.f64" in program.ir
    assert "jax_enzyme-" not in program.ir, "temporary folders are not part of a program"
    assert pickle.loads(pickle.dumps(program)) == program
    assert load(NORM, lang="c") == program
    assert load(NORM, "norm", lang="c").key == program.key


def test_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "norm.c"
    path.write_text(NORM)
    assert load(path) == load(str(path)) == load(str(path), lang="c")
    assert load(path).source_name == str(path)
    monkeypatch.chdir(tmp_path)
    assert load("norm.c").source_name == "norm.c"


def test_flags() -> None:
    source = "double f(double x) { return FACTOR * x; }"
    assert "2.000000e+00" in load(source, lang="c", flags=("-DFACTOR=2.0",)).ir
    assert load(source, lang="c", flags=["-DFACTOR=2.0"]) != load(source, lang="c", flags=["-DFACTOR=3.0"])
    assert "optnone" not in load(source, lang="c", flags=["-DFACTOR=2.0", "-O0"]).ir


def test_asserts_are_on_unless_switched_off() -> None:
    source = "#include <assert.h>\ndouble f(double x) { assert(x > 0); return x; }"
    assert "__assert_fail" in load(source, lang="c").ir
    assert "__assert_fail" not in load(source, lang="c", flags=("-DNDEBUG",)).ir


def test_cpp() -> None:
    source = "namespace a { double f(const double *x) { auto g = [&](int i) { return x[i]; }; return g(0); } }"
    assert load(source, lang="c++").symbol == "_ZN1a1fEPKd"
    assert load(source, "f", lang="c++").symbol == load(source, "a::f", lang="c++").symbol == "_ZN1a1fEPKd"
    both = "double f(double x) { return x; } double f(float x) { return x; }"
    with pytest.raises(CompileError, match=re.escape("`f` is not unique: f(double), f(float)")):
        load(both, "f", lang="c++")
    assert load(both, "_Z1ff", lang="c++").symbol == load(both, "f(float)", lang="c++").symbol == "_Z1ff"
    throws = 'extern "C" double f(double x) { if (x < 0) throw 1; return x; }'
    assert "__cxa_throw" in load(throws, lang="c++").ir


def test_llvm_text_and_bitcode() -> None:
    import llvmlite.binding as llvm

    text = load(SQUARE, lang="c").ir
    again = load(text, "square", lang="llvm")
    assert again.lang == "llvm"
    bitcode = llvm.parse_assembly(text).as_bitcode()
    assert load(bitcode, "square").symbol == "square"
    assert load(bitcode).source_name == "<bitcode>"
    assert reader.parse(load(bitcode).ir).functions["square"]
    with pytest.raises(CompileError, match="no LLVM bitcode"):
        load(b"nothing")
    with pytest.raises(CompileError, match="no LLVM IR"):
        load("define double @f(double %x) {\n ret float %x\n}", lang="llvm")
    with pytest.raises(CompileError, match="flags -O3 mean nothing"):
        load(text, "square", lang="llvm", flags=("-O3",))


def test_scalable_vectors_are_refused_before_llvm_ends_the_process() -> None:
    text = """
        define void @f(ptr %x) {
          %v = load <vscale x 2 x double>, ptr %x
          ret void
        }"""
    with pytest.raises(CompileError, match=r"`<vscale x 2 x double>` in @f is a vector whose length") as caught:
        load(text, "f", lang="llvm")
    assert caught.value.remedy is not None


def test_files_of_llvm(tmp_path: Path) -> None:
    import llvmlite.binding as llvm

    text = load(SQUARE, lang="c").ir
    (tmp_path / "k.ll").write_text(text)
    (tmp_path / "k.bc").write_bytes(llvm.parse_assembly(text).as_bitcode())
    assert load(tmp_path / "k.ll").symbol == load(tmp_path / "k.bc").symbol == "square"


@pytest.mark.parametrize(
    ("source", "lang", "message"),
    [
        ("nowhere.c", None, "cannot be read: No such file"),
        ("nowhere.c", "c", "cannot be read: No such file"),
        (Path("nowhere.c"), None, "cannot be read: No such file"),
        (SQUARE, None, "inline source text needs lang="),
        (SQUARE, "cobol", "no front end for the language 'cobol'"),
        (3, None, "a source is a path"),
    ],
)
def test_no_source(source: object, lang: str | None, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        load(source, None, lang)


@pytest.mark.parametrize("text", ["double f(", "/* nothing */", "// nothing"])
def test_a_text_that_is_taken_for_a_path(text: str) -> None:
    with pytest.raises(CompileError, match=r"source file") as caught:
        load(text, None, "c")
    assert "the text of a program has a line feed" in (caught.value.remedy or "")


def test_an_unknown_suffix(tmp_path: Path) -> None:
    path = tmp_path / "kernel.xyz"
    path.write_text(SQUARE)
    with pytest.raises(CompileError, match=r"'\.xyz' does not tell the language") as caught:
        load(path)
    assert caught.value.place == str(path)
    assert load(path, lang="c").symbol == "square"
    header = path.rename(tmp_path / "kernel.h")
    with pytest.raises(CompileError, match=re.escape('give lang="c++" or lang="c"')):
        load(header)
    assert load(header.rename(tmp_path / "kernel.hpp"), "square").lang == "c++"


def test_the_compiler_s_message_is_in_the_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError, match="undeclared identifier 'y'") as caught:
        load("double f(double x)\n{\n  return x * y;\n}\n", lang="c")
    assert caught.value.place == "kernel.c:3:14"
    assert caught.value.remedy
    assert "zig" not in caught.value.cause
    assert capfd.readouterr() == ("", "")


def test_warnings_are_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    load("double f(double x) { int unused; return x; }", lang="c", flags=("-Wall",))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("source", "symbol", "lang", "parts"),
    [
        (SQUARE, "sqare", "c", ["`sqare` is not in the source", "similar names: square", "did you mean `square`"]),
        ("#include <math.h>\n" + SQUARE, "sin", "c", ["it defines square"]),
        (SQUARE, "something", "c", ["it defines square"]),
        (NORM, "magnitude", "c", ["it defines norm"]),
        (SQUARE + NORM, None, "c", ["exactly one external function", "defines 2: square, norm"]),
        ("static double f(double x) { return x; }", None, "c", ["defines none", "name the function"]),
        (SQUARE, "squared", "c++", ["similar names: square", "did you mean `square`"]),
        (
            "double f(double x) { return x; } double f(double x, int n) { return x * n; }",
            "f",
            "c++",
            ["f(double, int)"],
        ),
        (SQUARE, "my_numerical_library_square", "c", ["did you mean `square`"]),
        (SQUARE, "other", "c++", ["name it as the source does"]),
        ("namespace n { double f(double x) { return x; } }", "n::f", "c", ['lang="c++"']),
        ("subroutine f(x)\nreal x\nend\n", "f", "c", ['lang="fortran"']),
    ],
)
def test_no_such_symbol(source: str, symbol: str | None, lang: str, parts: list[str]) -> None:
    with pytest.raises(CompileError) as caught:
        load(source, symbol, lang)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(("lang", "meant"), [("C", "c"), ("cpp", "c++"), ("cu", "cuda"), ("F90", "fortran")])
def test_a_language_by_another_name(lang: str, meant: str) -> None:
    with pytest.raises(CompileError, match=re.escape(f'did you mean "{meant}"?')):
        load(SQUARE, "square", lang=lang)


def test_a_name_that_a_macro_changes_is_one_as_well() -> None:
    source = "#define square lib_square\n" + SQUARE
    assert load(source, "square", "c").symbol == load(source, "lib_square", "c").symbol == "lib_square"


def test_static_functions_can_be_kernels_by_name() -> None:
    assert load(NORM + "double g(int n, double *x) { return mag(n, x); }", "mag", lang="c").symbol == "mag"


def test_rust() -> None:
    need("rustc")
    source = '#[no_mangle]\npub extern "C" fn square(x: f64) -> f64 { x * x }\npub fn other(x: f64) -> f64 { x }\n'
    program = load(source, "square", lang="rust")
    assert program.symbol == "square"
    assert "target-cpu" not in program.ir
    with pytest.raises(CompileError, match="no_mangle"):
        load("fn f(x: f64) -> f64 { x }", "nothing_like_it", lang="rust")
    with pytest.raises(CompileError, match="the rust source does not compile") as caught:
        load("pub fn f(x: f64) -> f64 { y }", lang="rust")
    assert "cannot find value `y`" in caught.value.cause


def test_fortran() -> None:
    need("flang-22")
    source = "subroutine square(x)\n  double precision, intent(inout) :: x\n  x = x * x\nend subroutine\n"
    program = load(source, "square", lang="fortran")
    assert program.symbol == "square_"
    assert load(source, lang="fortran") == program
    with pytest.raises(CompileError, match="the fortran source does not compile"):
        load("subroutine f(x)\n  x = \nend subroutine\n", lang="fortran")


def test_a_fortran_module_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("flang-22")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    source = "module leaves\ncontains\nsubroutine f(x) bind(c)\n real(8) :: x\n x = 2 * x\nend subroutine\nend module\n"
    assert load(source, "f", "fortran").symbol == "f"
    assert not list(folder.iterdir())


def test_zig_panics_without_what_they_print() -> None:
    text = """
    @text = private constant [8 x i8] c"too hot\\00"
    @table = internal constant [1 x ptr] [ptr @trace]
    define internal void @trace() { call void asm sideeffect "syscall", ""() ret void }
    define internal fastcc void @debug.defaultPanic(ptr %text, i64 %length) noreturn {
      call void @trace()
      unreachable
    }
    define internal fastcc void @"debug.FullPanic((function 'defaultPanic')).outOfBounds__anon_7"(i64 %i) noreturn {
      call fastcc void @debug.defaultPanic(ptr @text, i64 %i)
      unreachable
    }
    define double @at(ptr %x, i64 %i) {
      %hot = icmp eq i64 %i, 1
      br i1 %hot, label %panic, label %go
    panic:
      call fastcc void @debug.defaultPanic(ptr @text, i64 7)
      unreachable
    go:
      %out = icmp ugt i64 %i, 1
      br i1 %out, label %outside, label %inside
    outside:
      call fastcc void @"debug.FullPanic((function 'defaultPanic')).outOfBounds__anon_7"(i64 %i)
      unreachable
    inside:
      %y = load double, ptr %x
      ret double %y
    }"""
    program = load(text, "at", lang="llvm")
    assert "@trace" not in program.ir
    module = reader.parse(program.ir)
    found = [site(module, i) for i in module.functions["at"].instructions()]
    assert [f.what for f in found if f] == ["Zig panic: too hot", "Zig panic: out of bounds"]


def test_a_function_that_only_an_alias_exports() -> None:
    text = """
    @twice = alias double (double), ptr @body
    define private double @body(double %x) {
      %y = fadd double %x, %x
      ret double %y
    }
    define double @four(double %x) {
      %a = call double @twice(double %x)
      %b = call double @twice(double %a)
      ret double %b
    }"""
    for symbol in ("twice", "four"):
        assert load(text, symbol, lang="llvm").symbol == symbol
