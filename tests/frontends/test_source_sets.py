"""Sets of sources: what is compiled and linked for a kernel, and what is said of sets that are none."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jax_enzyme.errors import CompileError
from jax_enzyme.frontends import FRONTENDS, definitions, load, source_set
from jax_enzyme.frontends.definitions import Texts
from jax_enzyme.frontends.flang import compile_with_modules, finished
from jax_enzyme.frontends.source import Source
from jax_enzyme.frontends.source_set import SourceSet
from jax_enzyme.frontends.toolchain import zig
from jax_enzyme.ir import linking
from tests.support.tools import need

Write = Callable[..., list[str]]

STEP = "double half(double); double step(double x) { return half(x) + 1; }\n"
HALF = "double half(double x) { return x / 2; }\ndouble unused(double x) { return x; }\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes files by name, and returns their paths in order."""

    def into(**files: str) -> list[str]:
        paths: list[str] = []
        for name, text in files.items():
            path = tmp_path / "__".join(name.split("__")[:-1]).replace("__", "/")
            path = path.with_suffix("." + name.rpartition("__")[2])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            paths.append(str(path))
        return paths

    return into


def functions(ir: str) -> set[str]:
    return set(linking.names(ir).functions)


def test_several_files(write: Write) -> None:
    program = load(write(step__c=STEP, half__c=HALF), "step")
    assert functions(program.ir) == {"step", "half"}
    assert "define internal double @half" in program.ir
    assert program.source_name.endswith("step.c")


def test_the_kernel_may_be_called_as_a_function_of_a_files_own(write: Write) -> None:
    half = "static double step(double x) { return x / 2; }\ndouble half(double x) { return step(x); }\n"
    for sources in (write(a__c=STEP, b__c=half), write(b__c=half, a__c=STEP)):
        program = load(sources, "step")
        assert len(functions(program.ir)) == 3
        assert "define double @step" in program.ir


def test_languages_mixed(write: Write) -> None:
    need("flang-22")
    need("rustc")
    paths = write(
        top__cpp='extern "C" double half_(double *); extern "C" double twice(double);\n'
        'extern "C" double scale; extern "C" double top(double x) { return half_(&x) + twice(x) * scale; }\n',
        half__f90="real(8) function half(x)\n real(8) :: x\n half = x / 2\nend\n",
        twice__rs='#[no_mangle]\npub extern "C" fn twice(x: f64) -> f64 { 2.0 * x }\n',
        scale__ll="@scale = global double 3.0\n",
    )
    program = load(paths, "top")
    assert program.lang == "c++"
    assert functions(program.ir) == {"top", "half_", "twice"}
    assert "@scale = internal" in program.ir


@pytest.mark.parametrize("symbol", ["energy::potential", "spring_mass::energy::potential", "crate::energy::potential"])
def test_small_functions_of_a_crate_by_their_paths(write: Write, tmp_path: Path, symbol: str) -> None:
    """With the crate's name and edition as Cargo.toml has them: `async` is a name in that of 2015."""
    need("rustc")
    write(
        src__lib__rs="pub mod energy;\nfn twice(x: f64) -> f64 { 2.0 * x }\n",
        src__energy__rs="pub fn potential(x: f64) -> f64 { let async = ::twice(x); async * x }\n",
    )
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "spring-mass"\n')
    assert "fmul" in load(str(tmp_path), symbol).ir


def test_functions_of_libm_set_errno_where_it_is_read(write: Write) -> None:
    logarithm = "#include <math.h>\ndouble logarithm(double x) { return log(x); }\n"
    step = "#include <errno.h>\nextern double logarithm(double);\n"
    step += "double step(double x) { errno = 0; double y = logarithm(x); return errno ? -x : y; }\n"
    step += "double other(double x) { return logarithm(x); }\n"
    for source in (write(logarithm__c=logarithm, step__c=step), write(both__c=logarithm + step)):
        assert "@log(" in load(source, "step").ir
        assert "@log(" in load(source, "step", flags=("-ffast-math", "-fmath-errno")).ir
        assert "@log(" not in load(source, "step", flags=("-ffast-math",)).ir
        assert "@llvm.log.f64(" in load(source, "other").ir


def test_flags_by_language_and_name(write: Write) -> None:
    paths = write(step__c="double half(double); double step(double x) { return half(x) + ONE; }", half__c=HALF)
    program = source_set(paths, flags={"step.c": ("-DONE=17.0",), "c": ("-DNDEBUG",)}).program("step")
    assert "1.700000e+01" in program.ir
    with pytest.raises(CompileError, match="'fortran', which is no source here"):
        source_set(paths, flags={"fortran": ("-O1",)})


def test_a_folder_is_compiled_as_far_as_it_is_needed(write: Write, tmp_path: Path) -> None:
    write(step__c=STEP, half__c=HALF, main__c="#include <nowhere.h>\nint main() { return 0; }\n", note__md="text")
    sources = source_set(tmp_path)
    assert functions(sources.program("step").ir) == {"step", "half"}
    assert functions(sources.program("half").ir) == {"half"}
    assert functions(source_set(str(tmp_path / "*.c")).program("half").ir) == {"half"}
    with pytest.raises(CompileError, match=r"main\.c includes nowhere\.h, which is in none"):
        sources.program("main")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "half.c").write_text(HALF.replace("half", "(half)"))
    both = source_set([tmp_path, tmp_path / "second"])
    assert both.program("step").ir == sources.program("step").ir  # the first one that has it, as a linker does


def test_names_that_only_macros_make(write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(step__c=STEP, half__c="#define NAME(x) ha##x\ndouble NAME(lf)(double x) { return x; }\n")
    assert functions(source_set(tmp_path).program("step").ir) == {"step", "half"}
    write(half__c='#include "body.h"\n', body__h="#define NAME(x) ha##x\ndouble NAME(lf)(double x) { return x; }\n")
    write(other__c="#define TWICE(x) x##x\ndouble lf(double);\ndouble other(double x) { return lf(x); }\n")
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert functions(source_set(tmp_path).program("step").ir) == {"step", "half"}
    assert "other.c" not in caplog.text  # which has one half of the name


def test_what_compilers_call_for_arithmetic_is_looked_for_in_no_source(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`__muldc3` and `__divti3`."""
    write(
        step__cpp='extern "C" double step(double _Complex a, __int128 b) { return __real__(a * a) + 9 / b; }\n',
        other__cpp="double other(double x) { return x; }\n",
    )
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert functions(load(tmp_path, "step").ir) == {"step"}
    assert "step.cpp ..." in caplog.text
    assert "other" not in caplog.text


def test_sources_that_others_include_are_parts_of_them(write: Write, tmp_path: Path) -> None:
    step = "#include <stdlib.h>\ndouble vec_half(double); double vec_free(double);\n"
    write(
        step__c=step + "double step(double x) { free(malloc(8)); return vec_half(x) + vec_free(x); }\n",
        vec__c='#define NAME(b) vec_##b\n#include "vec_source.c"\n',
        vec_source__c="double NAME(half)(double x) { return x / 2; }\ndouble NAME(free)(double x) { return x; }\n",
    )
    assert functions(load(tmp_path, "step").ir) >= {"step", "vec_half", "vec_free"}
    write(other__c="double free(double x) { return MISSING; }\n")
    assert functions(load(tmp_path, "step").ir) >= {"step"}  # the C library has what this might be
    write(vec__c='#define NAME(b) vec_##b\n#include "vec_source.c"\ndouble later = MISSING;\n')
    with pytest.raises(CompileError, match="'MISSING'"):  # and not what keeps the part alone from compiling
        load(tmp_path, "step")


def test_names_that_macros_rename_do_not_need_the_whole_folder(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(
        names__h="#define half lessened\n#define step my_step\nextern double shift, scale;\n",
        step__c='#include "names.h"\ndouble half(double); void report(void); void free(void *);\n'
        "double step(double x) { if (x < shift) report(); free(0); return half(x); }\n",
        half__c='#include "names.h"\ndouble half(double x) { return x / 2; }\n',
        shift__c='#include "names.h"\ndouble shift = 1;\n',
        table__f90="module table\n type t\n contains\n  procedure :: free\n end type\nend\n",
        other__c='#include "names.h"\nextern double shift;\ndouble other(void) { return shift + 1; }\n',
    )
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert functions(source_set(tmp_path).program("my_step").ir) == {"my_step", "lessened"}
    assert "half.c ..." in caplog.text
    assert "other.c" not in caplog.text
    assert "table.f90" not in caplog.text  # whose symbols are not those of C
    write(half__c='#include "names.h"\ndouble half(double x) { return x / divisor; }\n')
    with pytest.raises(CompileError, match="divisor"):
        source_set(tmp_path).program("my_step")


def test_functions_that_are_inline_but_in_one_source(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No word of a source tells which has them: its own text does not have their names."""
    inline = (
        "{lib} double {name}(double x);\n#ifndef PLAIN\n{lib} double {name}(double x) {{ return x / 2; }}\n#endif\n"
    )
    write(
        include__lib__vec_half__h=inline.format(lib="INLINE", name="lessened"),
        include__lib__more__h=inline.format(lib="INLINE", name="weakened"),
        step__c="#define PLAIN\n#define INLINE\n#include <lib/vec_half.h>\n#include <lib/more.h>\n"
        "double step(double x) { return lessened(x) + weakened(x); }\n",
        half__c="#define INLINE\n#include <lib/vec_half.h>\n",
        bodies__c="#define INLINE\n#include <math.h>\n#include <lib/more.h>\n",
        other__c="double lessened(double);\ndouble other(double x) { return lessened(x) + 1; }\n",
    )
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        sources = source_set(tmp_path, flags=(f"-I{tmp_path / 'include'}",))
        assert functions(sources.program("step").ir) == {"step", "lessened", "weakened"}
    assert "half.c" in caplog.text
    assert "other.c" not in caplog.text


def test_of_a_folder_as_f2c_makes_it_only_what_is_needed_is_compiled(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Names end in underscores, by which macros rename them, and without which they are statements and variables of
    other files."""
    write(
        names__h="#define norm_ zz_norm_\n",
        step__c='#include "names.h"\ndouble norm_(double *), scale_(double *), left_out(double); int return_(void);\n'
        "double step_(double *x) { return return_() ? left_out(*x) : norm_(x) * scale_(x); }\n",
        norm__c='#include "names.h"\ndouble norm_(double *x) { return *x * *x; }\n',
        scale__c="double scale_(double *x) { return *x / 2; }\n",
        return__c="int return_(void) { return 0; }\n",
        other__c="double norm(double x) { double scale = x; return scale; }\ndouble left(void) { return 1; }\n",
        last__c='#include "names.h"\nextern double norm_(double *);\ndouble out(double x) { return norm_(&x); }\n',
    )
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert functions(source_set(tmp_path).program("step_").ir) == {"step_", "zz_norm_", "scale_", "return_"}
    assert "norm.c ..." in caplog.text
    assert "other.c" not in caplog.text
    assert "last.c" not in caplog.text


def test_texts_are_looked_through_once_where_sources_are_compiled_twice(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = "#include <errno.h>\ndouble log_of(double);\n"
    write(
        step__c=step + "double step(double x) { double y = log_of(x); return errno ? -x : y; }\n",
        log__c="#include <math.h>\ndouble log_of(double x) { return log(x); }\n",
    )
    looked: list[bytes] = []
    scanned = definitions._scanned  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(definitions, "_scanned", lambda text: looked.append(text) or scanned(text))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert "@log(" in source_set(tmp_path).program("step").ir
    assert len(looked) == 2


def test_a_function_by_the_name_that_a_macro_replaces_does_not_need_the_whole_folder(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(
        names__h="#define inner_half half\n",
        half__c='#include "names.h"\ndouble inner_half(double x) { return x / 2; }\n',
        other__c='#include "names.h"\ndouble half(double);\ndouble other(double x) { return inner_half(x); }\n',
    )
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert source_set(tmp_path).program("inner_half").symbol == "half"
    assert "half.c" in caplog.text
    assert "other.c" not in caplog.text


def test_the_name_that_procedures_have_in_common(write: Write, tmp_path: Path) -> None:
    need("flang-22")
    write(
        m__f90="module m\n Interface half ! of any\n  module procedure :: of_one, &\n    of_two\n"
        " end interface half\ncontains\n"
        " real function of_one(x)\n  real, intent(in) :: x\n  of_one = x / 2\n end\n"
        " real function of_two(x, y)\n  real, intent(in) :: x, y\n  of_two = (x + y) / 2\n end\nend module\n"
    )
    for name in ("half", "m::HALF"):
        with pytest.raises(CompileError, match=r"is a generic name, of m::of_one, m::of_two\b") as caught:
            source_set(tmp_path).program(name)
        assert caught.value.remedy == 'name the procedure that is meant: "m::of_one"'


def test_comments_of_fortran_define_nothing(write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    need("flang-22")
    body = "      REAL*8 X\n      X = X / 2\n      END\n"
    write(
        step__f="      SUBROUTINE STEP(X)\n      COMPLEX TURN\n      CALL HALF(X)\n      X = TURN(X)\n      END\n",
        half__f=f"C\n      SUBROUTINE HALF(X)\n{body}",
        turn__f90="complex function turn(x)\nreal :: x\nturn = x\nend\n",
        other__f=f"C     AS THE SUBROUTINE HALF\n*> \\b the function TURN\n      SUBROUTINE OTHER(X)\n{body}",
        another__f90="x = 1 ! as the subroutine half\nend\n",
    )
    with caplog.at_level(logging.DEBUG, "jax_enzyme"):
        assert functions(source_set(tmp_path).program("step").ir) == {"step_", "half_", "turn_"}
    assert "half.f ..." in caplog.text
    assert "other" not in caplog.text


def test_long_fortran_files_are_compiled_in_parts(write: Write, tmp_path: Path) -> None:
    """What a kernel needs of it, on the lines of the file; a COMMON that a procedure gives its values with that one."""
    need("flang-22")
    rest = "c     end\n" * 800
    first = "      double precision function first(x)\n      double precision x, c, helper\n      common /k/ c\n"
    text = f"""{rest}{first}      first = helper(x) + c
      end
{rest}      subroutine broken(x)
      double precision x(
  100 end
{rest}      subroutine sets
      common /k/ c
      double precision c
      data c /2.5d0/
      END SUBROUTINE
{rest}      double precision function helper(x)
      double precision x
      helper = 2*x
      end
"""
    (path,) = write(old__f=text)
    for source in (path, tmp_path):
        program = load(source, "first")
        assert functions(program.ir) == {"first_", "helper_"}
        assert "2.500000e+00" in program.ir
        line = text[: text.index("helper = 2*x")].count("\n") + 1
        assert f"!DILocation(line: {line}," in program.ir
        with pytest.raises(CompileError, match=r"old\.f:1607:"):
            load(source, "broken")
    for whole in (text + "      module m\n      end module\n", "#define X\n" + text):
        with pytest.raises(CompileError, match="does not compile"):
            load(write(old__f=whole), "first")


def test_fortran_modules_in_order(write: Write, tmp_path: Path) -> None:
    need("flang-22")
    paths = write(
        step__f90="subroutine step(x)\n use iso_c_binding; use middle, only: twice ! both\n real(8) :: x\n"
        " x = twice(x)\nend\n",
        middle__f90="module middle\r\n use last\r\ncontains\r\n real(8) function twice(x)\r\n  real(8) :: x\r\n"
        "  twice = factor * x\r\n end function\r\nend module\r\n",
        zlast__f90="module last; implicit none\n include 'factor.inc'\nend module\n",
        factor__inc=" real(8), parameter :: factor = 2\n",
    )
    first = load(tmp_path, "step")
    assert "2.000000e+00" in first.ir
    assert load(paths[:3], "step").ir == first.ir
    (tmp_path / "factor.inc").write_text(" real(8), parameter :: factor = 3\n")
    assert "3.000000e+00" in load(tmp_path, "step").ir
    assert load(tmp_path, "middle::twice").symbol == "_QMmiddlePtwice"


def test_nothing_is_compiled_for_the_names_of_the_linker(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object with a destructor and static storage needs `__dso_handle`, of which no source tells."""
    write(
        step__cpp="struct scale { double by; scale() : by(2) {} ~scale() { by = 0; } };\n"
        "double step(double x) { static scale s; return s.by * x; }\n",
        other__cpp="struct handle { int dso; };\nint use(handle h) { return h.dso; }\n",
    )
    sets = sys.modules[SourceSet.__module__]
    compiled: list[str] = []

    def compile_one(source: Source, flags: Any) -> str:
        compiled.append(Path(source.name).stem)
        return FRONTENDS["c++"](source, flags)

    monkeypatch.setattr(sets, "FRONTENDS", {**FRONTENDS, "c++": compile_one})
    assert "@__dso_handle" in load(tmp_path, "step").ir
    assert compiled == ["step"]


def test_modules_that_are_only_used_are_not_compiled(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types and constants are in the module's file; its code is compiled where a procedure or variable is needed, also
    one that has its body in a submodule, or a name of C's. Procedures of other modules may be called the same."""
    need("flang-22")
    write(
        step__f90="subroutine step(x)\n use kinds, only: wp\n use grid, only: init, later\n use held\n real(wp) :: x\n"
        " call init(x)\n call later(x)\n x = x + level\nend\n",
        kinds__f90="module kinds\n integer, parameter :: wp = 8\ncontains\n"
        " subroutine init(x)\n  real(wp) :: x\n  x = 0\n end\nend module\n",
        grid__f90="module grid\n use kinds, only: wp\n interface\n  module subroutine later(x)\n   real(wp) :: x\n"
        "  end\n end interface\ncontains\n subroutine init(x)\n  real(wp) :: x\n  x = 1\n end\nend module\n",
        body__f90="submodule (grid) body\ncontains\n module subroutine later(x)\n  real(wp) :: x\n  x = 2 * x\n"
        " end\nend submodule\n",
        held__f90='module held\n use kinds, only: wp\n real(wp), bind(C, name="water") :: level = 3\nend module\n',
    )
    compiled: list[str] = []

    def compile_one(source: Source, *others: Any) -> Any:
        compiled.append(Path(source.name).stem)
        return compile_with_modules(source, *others)

    monkeypatch.setattr(sys.modules[SourceSet.__module__], "compile_with_modules", compile_one)
    program = load(tmp_path, "step")
    assert functions(program.ir) == {"step_", "_QMgridPinit", "_QMgridPlater"}
    assert "@water = internal" in program.ir
    assert sorted(compiled) == ["body", "grid", "held", "step"]


def test_common_blocks_of_several_sizes(write: Write) -> None:
    need("flang-22")
    small = "subroutine {0}(x)\n real(8) :: x, a{1}\n common /state/ a\n a(2) = x * a(2)\n x = a(2)\nend\n"
    paths = write(
        top__f90="subroutine top(x)\n real(8) :: x, a(3)\n common /state/ a\n"
        " a = 2\n call inner(x)\n x = x + a(2)\nend\n",
        inner__f90=small.format("inner", "(2)"),
    )
    ir = load(paths, "top").ir
    assert "of 16" not in ir
    assert "of 24" in ir


def test_objects_and_libraries_that_hold_bitcode(write: Write, tmp_path: Path) -> None:
    half, step = write(half__c=HALF, step__c=STEP)

    def compiled(source: str, name: str, *flags: str) -> str:
        out = str(tmp_path / name)
        subprocess.run([*zig().command, "clang", "-c", *flags, source, "-o", out], check=True)
        return out

    for name, flag in (("lto.o", "-flto"), ("embedded.o", "-fembed-bitcode")):
        assert functions(load([step, compiled(half, name, flag)], "step").ir) == {"step", "half"}
    archive = str(tmp_path / "libhalf.a")
    subprocess.run([*zig().command, "ar", "rcs", archive, str(tmp_path / "lto.o")], check=True)
    assert functions(load([step, archive], "step").ir) == {"step", "half"}
    with pytest.raises(CompileError, match="machine code only, and no LLVM bitcode") as caught:
        load([step, compiled(half, "plain.o")], "step")
    assert caught.value.place == str(tmp_path / "plain.o")
    assert "-flto" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("half.bc", b"\x81\x02 damaged", "no LLVM bitcode, which starts with the letters BC, and no LLVM IR as text"),
        ("half.bc", b"\0\1 damaged", "no LLVM bitcode, which starts with the letters BC, and no LLVM IR as text"),
        ("half.bc", b"BC\xc0\xde damaged", "no LLVM bitcode: LLVM cannot read this"),
        ("half.o", b"damaged", "no object file: LLVM does not know its format"),  # LLVM ended the process
        ("half.a", b"damaged", "no static library"),
        ("half.a", b"!<arch>\n" + b"damaged" * 20, "the static library is damaged"),
    ],
)
def test_damaged_files_are_named(write: Write, tmp_path: Path, name: str, contents: bytes, message: str) -> None:
    (step,) = write(step__c=STEP)
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(CompileError, match=message) as caught:
        load([step, str(tmp_path / name)], "step")
    assert caught.value.place == str(tmp_path / name)


def test_compile_commands(write: Write, tmp_path: Path) -> None:
    step, half = write(
        src__step__c='#include "scale.h"\ndouble half(double); double step(double x) { return half(x) + SCALE * ONE; }',
        src__half__c=HALF,
    )
    write(include__scale__h="#define SCALE 1\n")
    command = f"/usr/bin/gcc -DONE=17.0 -I../include -O3 -march=native -Wall -MD -MF x.d -o step.o -c {step}"
    entries = [
        {"directory": str(tmp_path / "src"), "file": "step.c", "command": command},
        {"directory": str(tmp_path), "file": half, "arguments": ["cc", "-c", half]},
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    for source in (None, [step, half]):
        program = source_set(source, compile_commands=tmp_path).program("step")
        assert "1.700000e+01" in program.ir
    (mine,) = write(mine__c="double step(double); double twice(double x) { return 2 * step(x); }")
    assert "1.700000e+01" in source_set([tmp_path / "compile_commands.json", mine]).program("twice").ir
    with pytest.raises(CompileError, match="names no such file") as caught:
        source_set([mine], compile_commands=tmp_path)
    assert f'["{tmp_path / "compile_commands.json"}", "mine.c"]' in (caught.value.remedy or "")
    entries.append({"directory": str(tmp_path), "file": "made.c", "command": "cc -c made.c"})
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    with pytest.raises(CompileError, match=r"names a file that is not there: .*made\.c"):
        source_set(None, compile_commands=tmp_path)
    (other,) = write(src__steps__c=STEP)
    with pytest.raises(CompileError, match="names no such file") as caught:
        source_set([other], compile_commands=str(tmp_path / "compile_commands.json"))
    assert step in (caught.value.remedy or "")
    with pytest.raises(CompileError, match="cannot be read"):
        source_set([other], compile_commands=str(tmp_path / "nowhere"))
    for entries, words in (([], "names no file"), ([{"directory": "."}], "has no 'file'")):
        (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
        with pytest.raises(CompileError, match=words):
            source_set(None, compile_commands=tmp_path)


def _compiled_with(folder: Path, file: str, *ways: str) -> Path:
    """A `compile_commands.json` that has a file once for each of some flags."""
    entries = [{"directory": str(folder), "file": file, "command": f"cc {way} -c {file}"} for way in ways]
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder / "compile_commands.json"


def test_a_file_that_is_compiled_in_two_ways(write: Write, tmp_path: Path) -> None:
    (path,) = write(
        step__c='#ifdef step_EXPORTS\n#define API __attribute__((visibility("hidden")))\n#else\n#define API\n#endif\n'
        "double API step(double x) { return 2 * x; }\n"
        "#ifdef TEST\nint main(void) { return 0; }\n#endif\ndouble scaled(double x) { return SCALE * x; }\n"
    )
    ways = ("-DSCALE=2", "-fPIC -std=c11 -Dstep_EXPORTS -DSCALE=3", "-DSCALE=2 -DTEST")
    commands = _compiled_with(tmp_path, path, *ways)
    assert functions(source_set(commands).program("step").ir) >= {"step"}
    with pytest.raises(CompileError, match=r"two ways, and what `scaled` .*: with -DSCALE=2, and with -std=c11 -D"):
        source_set(commands).program("scaled")
    with pytest.raises(CompileError, match=r"two ways, and what `main` is .*: with nothing more, and") as told:
        source_set(commands).program("main")
    assert "flags={'step.c': ('-UTEST',)}, or ('-DTEST',)" in (told.value.remedy or "")
    for scale in (2, 3):
        meant = source_set(commands, flags={"step.c": (f"-DSCALE={scale}",)}).program("scaled")
        assert f"double {scale}.0" in meant.ir
    commands = _compiled_with(tmp_path, path, "-DSCALE=2", "")
    with pytest.raises(CompileError, match="with nothing more it does not compile") as told:
        source_set(commands).program("step")
    assert "undeclared identifier 'SCALE'" in told.value.cause


def test_response_files_of_commands(write: Write, tmp_path: Path) -> None:
    (path,) = write(src__step__c="#include <scale.h>\ndouble step(double x) { return x * SCALE * ONE; }\n")
    write(include__scale__h="#define SCALE 1\n")
    commands = _compiled_with(tmp_path, path, "@flags.rsp")
    with pytest.raises(CompileError, match=r"a response file that cannot be read: .*flags\.rsp"):
        source_set(commands)
    (tmp_path / "flags.rsp").write_text('-Iinclude\n"-DONE=17.0"\n')
    assert "1.700000e+01" in source_set(commands).program("step").ir


def test_fortran_modules_that_are_compiled_in_two_ways(write: Write, tmp_path: Path) -> None:
    need("flang-22")
    (kinds,) = write(kinds__F90="module kinds\n integer, parameter :: wp = WP\nend module\n")
    (step,) = write(step__f90="subroutine step(x)\n use kinds\n real(wp) :: x\n x = 2 * x\nend\n")
    for ways, message in ((("-DWP=8", "-DWP=8 -DB"), ""), (("-DWP=8", "-DWP=4"), "F90 is compiled in two ways")):
        sources = source_set([_compiled_with(tmp_path, kinds, *ways), step])
        if not message:
            assert "double" in sources.program("step").ir
            continue
        with pytest.raises(CompileError, match=message):
            sources.program("step")


def test_templates_and_unused_functions_are_made(write: Write) -> None:
    source = (
        "namespace solver { template <class T> T step(const T *x, int n) { return x[n]; }\n"
        "template <class T> T step(T x) { return x * x; }\n"
        "inline double cube(double x) { return x * x * x; } static double half(double x) { return x / 2; } }\n"
    )
    assert load(source, "solver::step<float>(const float *, int)", "c++").symbol == "_ZN6solver4stepIfEET_PKS1_i"
    assert load(source, "solver::cube", "c++").symbol == "_ZN6solver4cubeEd"
    assert functions(load(source, "solver::half", "c++").ir) == {"_ZN6solverL4halfEd"}
    with pytest.raises(CompileError, match="several functions of this name") as caught:
        load(source, "solver::step<double>", "c++")
    assert 'types of its parameters: "solver::step<double>(' in (caught.value.remedy or "")
    with pytest.raises(CompileError, match="`solver::stop<double>` is not in the source") as caught:
        load(source, "solver::stop<double>", "c++")
    assert "step" in (caught.value.remedy or "")
    (header,) = write(solver__hpp="template <class T> T twice(T x) { return 2 * x; }\n")
    assert functions(load(header, "twice<double>", "c++").ir) == {"_Z5twiceIdET_S0_"}


def test_a_name_is_what_the_compiler_takes_it_for(write: Write) -> None:
    """Through inline namespaces, `using`, other names of namespaces, and for member functions."""
    source = (
        "namespace lib { inline namespace v2 { double halved(double x) { return x / 2; }\n"
        "template <int K> double power(double x) { double r = 1; for (int i = 0; i < K; i++) r *= x; return r; }\n"
        "struct Pair { double a, b; double squared() const { return a * a + b * b; } }; } }\n"
        "namespace user { using lib::halved; } namespace old = lib::v2;\n"
    )
    (path,) = write(lib__cpp=source)
    for name in ("lib::halved", "user::halved", "old::halved", "lib::v2::halved", "halved"):
        assert load(path, name).symbol == "_ZN3lib2v26halvedEd"
    assert load(path, "lib::power<3>").symbol == "_ZN3lib2v25powerILi3EEEdd"
    assert load(path, "lib::Pair::squared").symbol == "_ZNK3lib2v24Pair7squaredEv"
    with pytest.raises(CompileError, match="`lib::doubled` is not in the source"):
        load(path, "lib::doubled")


DDOT = """
      double precision function ddot(n, x, incx, y, incy)
      {integer} n, incx, incy, i
      double precision x(*), y(*)
      ddot = 0
      do i = 1, n
        ddot = ddot + x(1 + (i - 1) * incx) * y(1 + (i - 1) * incy)
      end do
      end
"""
USES_DDOT = """
      double precision function energy(n, x)
      {integer} n, one
      double precision x(*), ddot
      one = 1
      energy = ddot(n, x, one, x, one)
      end
"""


def test_rules_of_blas_win_over_sources(write: Write) -> None:
    need("flang-22")
    paths = write(energy__f=USES_DDOT.format(integer="integer"), ddot__f=DDOT.format(integer="integer"))
    assert functions(source_set(paths).program("energy").ir) == {"energy_"}
    assert functions(source_set(paths, blas="source").program("energy").ir) == {"energy_", "ddot_"}
    assert "ddot_" in functions(source_set(paths).program("ddot").ir)
    wide = write(wide__energy__f=USES_DDOT.format(integer="integer*8"), wide__ddot__f=DDOT.format(integer="integer*8"))
    assert functions(source_set(wide).program("energy").ir) == {"energy_", "ddot_"}


@pytest.mark.parametrize(
    ("files", "symbol", "message"),
    [
        ({"a__c": HALF, "b__c": HALF}, "half", r"two sources define `half`: \S*a\.c:1 and \S*b\.c:1"),
        ({"step__c": STEP, "a__c": HALF, "b__c": HALF}, "step", r"two sources define `half`: \S*a\.c:1 and \S*b\.c:1"),
        ({"a__c": "static double f(double x) { return x; } double g(double x) { return f(x); }",
          "b__c": "static double f(double x) { return x; } double h(double x) { return f(x); }"}, "f",
         "two sources define `f`"),
        ({"a__c": '#include "part.h"\ndouble a(double x) { return f(x); }',
          "b__c": '#include "part.h"\ndouble b(double x) { return f(x); }',
          "part__h": "static double f(double x) { return x; }\n"}, "f",
         r"part\.h:1 in \S*a\.c and \S*part\.h:1 in \S*b\.c"),
        ({"a__c": "double k; double g(double); double f(double x) { return g(k * x); }",
          "b__c": "double k = 0; double g(double x) { return k + x; }"}, "f",
         r'two sources define `k`(?s:.*)without `extern`: flags=\{"c": \("-fcommon",\)\}; else leave one'),
        ({"a__c": "double k = 1; double g(double); double f(double x) { return g(k * x); }",
          "b__c": "double k; double g(double x) { return k + x; }"}, "f",
         r"two sources define `k`(?s:.*)remedy: leave one"),
        ({"step__c": STEP}, "stepp", "`stepp` is not in the source"),
        ({"step__c": STEP, "m__jl": "f(x) = x\n"}, "step", r"the suffix '\.jl' does not tell the language"),
    ],
)  # fmt: skip
def test_bad_sets(write: Write, files: dict[str, str], symbol: str, message: str) -> None:
    paths = write(**files)
    with pytest.raises(CompileError, match=message):
        load([path for path in paths if not path.endswith(".h")], symbol)


@pytest.mark.parametrize("symbol", ["other", None])
def test_sources_that_do_not_compile_are_not_said_to_define_nothing(
    write: Write, tmp_path: Path, symbol: str | None
) -> None:
    write(step__c="#error not here\n" + STEP, half__c="#error nor here\n" + HALF)
    with pytest.raises(CompileError, match=r", of which 2 do not compile, the first at \S*half\.c:1:2") as caught:
        load(str(tmp_path), symbol)
    assert "step.c" in str(caught.value)


@pytest.mark.parametrize("suffix", ["c", "cpp", "f90"])
def test_a_name_that_is_mistyped_compiles_only_what_is_called_nearly_so(
    write: Write, tmp_path: Path, suffix: str
) -> None:
    """What is far from it does not compile here, and nobody notices."""
    far = {f"f{i}__{suffix}": f"this is no program, {'#' if suffix != 'f90' else ''}{i}\n" for i in range(12)}
    near = "double area_of(double r) { return 3 * r * r; }\n"
    if suffix == "f90":
        near = "function area_of(r)\n  real(8) :: r, area_of\n  area_of = 3 * r * r\nend function\n"
    write(**{f"area__{suffix}": near}, **far)
    with pytest.raises(CompileError, match="`area_off` is not in the source") as caught:
        load(str(tmp_path), "area_off")
    assert "not compile" not in str(caught.value)
    assert caught.value.remedy == "did you mean `area_of`?"


def test_another_language_than_lang_says(write: Write) -> None:
    paths = write(step__c=STEP, half__f90="end\n")
    with pytest.raises(CompileError, match=r'lang="c", and by its name this source is fortran') as caught:
        load(paths, "step", "c")
    assert caught.value.place == paths[1]


@pytest.mark.parametrize("form", ["file", "folder", "pattern"])
def test_lang_is_that_of_the_text_among_several_sources(write: Write, tmp_path: Path, form: str) -> None:
    """Files go by their suffixes: `register` and a conversion of `void *` are errors in C++."""
    (path,) = write(old__half__c="double half(void *p) { register double *x = p; return *x / 2; }\n")
    text = 'extern "C" double half(void *);\nextern "C" double step(double x) { auto y = x; return half(&y); }\n'
    named = {"file": path, "folder": str(tmp_path / "old"), "pattern": str(tmp_path / "old" / "*")}[form]
    assert load([text, named], "step", "c++").symbol == "step"


def test_a_file_whose_suffix_tells_nothing_is_in_what_lang_says_beside_text_too(write: Write) -> None:
    (path,) = write(half__inc="double half(double x) { return x / 2; }\n")
    text = "double half(double x);\ndouble step(double x) { return half(x); }\n"
    assert load([text, path], "step", "c").symbol == "step"


def test_a_header_that_is_elsewhere(write: Write, tmp_path: Path) -> None:
    (path,) = write(src__step__c='#include "scale.h"\ndouble step(double x) { return x * SCALE; }\n')
    write(include__deep__scale__h="#define SCALE 2\n")
    with pytest.raises(CompileError, match=r"step\.c includes scale\.h, which is in none of the folders") as caught:
        load([path], "step")
    assert f"-I{tmp_path / 'include' / 'deep'}" in (caught.value.remedy or "")


@pytest.mark.parametrize("name", ["config.h.in", "config.in"])
def test_a_header_that_configure_makes(write: Write, tmp_path: Path, name: str) -> None:
    path, _ = write(project__src__step__c='#include "config.h"\n' + HALF, config__h="")
    template = tmp_path / "project" / name
    template.touch()
    with pytest.raises(CompileError, match=r"includes config\.h") as caught:
        load(path, "half")
    assert f"makes it of {template}" in (caught.value.remedy or "")


def test_a_header_that_configure_makes_for_a_header_far_from_the_source(write: Write, tmp_path: Path) -> None:
    """The folders around the source, which are many, are not looked through first."""
    path, *_ = write(
        mine__step__c='#include "scale.h"\n' + HALF, library__src__scale__h='#include "made.h"\n', library__LICENSE=""
    )
    for number in range(450):
        (tmp_path / "mine" / f"folder{number}").mkdir()
    template = tmp_path / "library" / "made.h.in"
    template.touch()
    with pytest.raises(CompileError, match=r"src/scale\.h includes made\.h, which is in none of the folders") as caught:
        load(path, "half", flags=(f"-I{tmp_path / 'library' / 'src'}",))
    assert f"makes it of {template}" in (caught.value.remedy or "")


def test_a_header_of_another_project(write: Write) -> None:
    path, _ = write(one__src__step__c='#include "scale.h"\n' + HALF, another__scale__h="")
    for advised in (True, False):
        with pytest.raises(CompileError, match=r"includes scale\.h") as caught:
            load(path, "half")
        assert ("another" in (caught.value.remedy or "")) is advised
        (Path(path).parent.parent / "LICENSE").touch()


def test_a_header_that_configure_makes_in_a_folder_of_the_flags(write: Write, tmp_path: Path) -> None:
    path, _ = write(a__b__c__step__c='#include "lib/config.h"\n' + HALF, include__lib__other__h="")
    template = tmp_path / "include" / "lib" / "config.h.in"
    template.touch()
    with pytest.raises(CompileError, match=r"includes lib/config\.h") as caught:
        load(path, "half", flags=(f"-I{tmp_path / 'include'}",))
    assert f"makes it of {template}" in (caught.value.remedy or "")


def test_a_function_that_no_header_declares(write: Write) -> None:
    text = "#include <stdio.h>\nint step(char **text, double x) {{ return {}(text, x); }}\n"
    for name, advised in (("asprintf", True), ("nobody_has_this", False)):
        with pytest.raises(CompileError, match=f"undeclared .*{name}") as caught:
            load(write(step__c=text.format(name)), "step")
        assert ("-D_GNU_SOURCE" in (caught.value.remedy or "")) is advised


def test_c_from_before_1999(write: Write) -> None:
    text = "double step(x) double x; { register i = 2; report(x); return i * x; }\nreport(x) double x; { return 0; }\n"
    (path,) = write(step__c=text)
    with pytest.raises(CompileError, match="Wimplicit-int") as caught:
        load(path, "step")
    assert "flags={'c': ('-std=gnu89',)}" in (caught.value.remedy or "")
    assert "step" in functions(load(path, "step", flags=("-std=gnu89",)).ir)


def test_modules_in_a_circle(write: Write) -> None:
    need("flang-22")
    paths = write(a__f90="module a\n use b\nend module\n", b__f90="module b\n use a\nend module\n")
    with pytest.raises(CompileError, match=r"in a circle: `a` \(\S*a\.f90\) uses `b` \(\S*b\.f90\) uses `a`"):
        load(paths, "f")


def test_what_is_missing_for_a_module_is_said_of_its_file_alone(write: Write) -> None:
    need("flang-22")
    files = write(
        step__f90="subroutine step(x)\n use kinds\n real(wp) :: x\nend\n",
        kinds__F90='#include "precision.h"\nmodule kinds\n integer, parameter :: wp = 8\nend module\n',
    )
    with pytest.raises(CompileError, match=r"\A\S*kinds\.F90 includes precision\.h") as caught:
        load(files, "step")
    assert caught.value.cause.count("includes precision.h") == 1


def test_a_module_that_nobody_defines(write: Write) -> None:
    need("flang-22")
    with pytest.raises(CompileError, match=r"a\.f90 uses the module `b`, which none of the sources defines"):
        load(write(a__f90="subroutine f(x)\n use b\n real(8) :: x\n x = c\nend\n"), "f")


def test_sets_that_are_empty(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text(HALF)
    with pytest.raises(CompileError, match="the folder has no source files") as caught:
        load(tmp_path)
    assert str(tmp_path / "src") in (caught.value.remedy or "")
    with pytest.raises(CompileError, match="no source file matches"):
        load(str(tmp_path / "*.f"))
    with pytest.raises(CompileError, match="sequence of sources is empty"):
        load([])
    with pytest.raises(CompileError, match="there is no source"):
        source_set(None)


def test_functions_that_a_kernel_is_handed_are_kept(write: Write) -> None:
    paths = write(
        apply__c="double apply(double (*f)(double), double x) { return f(x); }\n",
        square__c="double square(double x) { return x * x; } double other(double x) { return x; }\n",
    )
    assert functions(source_set(paths).program("apply", ("square",)).ir) == {"apply", "square"}


@pytest.mark.parametrize(
    "values",
    [
        "      block data\n      real*8 g\n      common /gravity/ g\n      data g /9.5d0/\n      end\n",
        "      block data\n      include 'gravity.inc'\n      data g /9.5d0/\n      end\n",
        "      subroutine s\n      real*8 f, g\nc\n      common /other/ f,\nc none\n     & /gravity/ g\n"
        "      data f, g /0d0,\n     & 9.5d0/\n      end\n",
        "      subroutine s\n      real*8 g(2), h(2), i(2)\n      common /gravity/ g\n      equivalence (g, h)\n"
        "      equivalence (i, h)\n 10   data i(1) /9.5d0/\n      end\n",
        "      subroutine s; real*8 f, g; common /gravity/ g\n      data f, ! first\n     & g /0d0, 9.5d0/; end\n",
        "      subroutine s\n      real*8 :: g = 9.5d0\n      common /gravity/ g\n      end\n",
        "      subroutine s\n      real*8 g /9.5d0/\n      common /gravity/ g\n      end\n",
    ],
    ids=["block data", "included", "continued", "equivalent", "one line", "initialised", "slashes"],
)
def test_values_of_common_blocks_in_another_file(values: str, write: Write, tmp_path: Path) -> None:
    need("flang-22")
    write(
        top__f="      subroutine top(x)\n      real*8 x, g\n      common /gravity/ g\n      x = x * g\n      end\n",
        data__f=values,
        gravity__inc="      real*8 g\n      common /gravity/ g\n",
    )
    assert "9.500000e+00" in load(tmp_path, "top").ir
    assert "9.500000e+00" in load([tmp_path / "top.f", tmp_path / "data.f"], "top").ir


@pytest.mark.parametrize("named", [True, False])
def test_those_sources_are_compiled_that_may_matter(named: bool, write: Write, tmp_path: Path) -> None:
    """With what stands in for a weak function, as where all are linked."""
    paths = write(
        step__c="double half(double); __attribute__((weak)) double scale(double x) { return x * 3; }\n"
        "double step(double x) { return half(scale(x)); }\n",
        half__c=HALF,
        scale__c="double scale(double x) { return x * 5; }\n",
        idle__c="double idle(double x) { return x * 7; }\n",
    )
    sources = source_set(paths if named else tmp_path)
    assert "5.000000e+00" in sources.program("step").ir
    done = sources._done  # pyright: ignore[reportPrivateUsage]
    assert {Path(str(unit.source.path)).name for unit in done} == {"step.c", "half.c", "scale.c"}


@pytest.mark.parametrize(
    "own",
    [
        "#define DEFINE(f) double f(double x)\nDEFINE(gamma) { return x * 5; }\n",
        "#define own gamma\ndouble own(double x) { return x * 5; }\n",
        '#include "gamma.h"\n',
        'double own(double x) __asm__("gam" "ma");\ndouble own(double x) { return x * 5; }\n',
    ],
)
def test_a_named_source_comes_before_the_library_of_its_language(own: str, write: Write) -> None:
    """As where all are linked, though the text of the source does not show that it has the function."""
    paths = write(
        step__c="double gamma(double); double step(double x) { return gamma(x); }\n",
        own__c=own,
        gamma__h="double gamma(double x) { return x * 5; }\n",
    )
    assert "5.000000e+00" in load(paths[:-1], "step").ir


@pytest.mark.parametrize("name", ["sin", "round", "fmin", "fmod", "floorf", "fmaximum_num"])
def test_a_named_source_comes_before_what_the_compiler_has_built_in(name: str, write: Write) -> None:
    two = name in ("fmin", "fmod", "fmaximum_num")
    kind = "float" if name.endswith("f") else "double"
    head = f"{kind} {name}({kind} x{f', {kind} y' if two else ''})"
    step = f"double step(double x) {{ return {name}(x{', x' if two else ''}); }}\n"
    own = f"{head} {{ return x * 5; }}\n"
    weak = f"__attribute__((weak)) {own}"
    paths = write(step__c=f"{head};\n{step}", own__c=own, both__c=own + step, weak__c=weak + step)
    body, make = own.replace(name, "own"), f"#define MAKE(n) {own.replace(name, 'n')}"
    pasted = own.replace(name, f"P(H, {name[2:]})")
    hidden = write(
        renamed__c=f"#define mid {name}\n#define own mid\n{body}",
        named__h=f"#define own {name}\n",
        behind__c=f'#include "named.h"\n{body}',
        deep__h='#include "own.c"\n',
        included__c='#include "deep.h"\n',
        pasted__c=f"#define C(a, b) a##b\n#define P(a, b) C(a, b)\n#define H {name[:2]}\n{pasted}",
        made__c=f"{make}MAKE({name})\n",
        listed__c=f"{make}#define LIST X(other) X({name})\n#define X(n) MAKE(n)\nLIST\n",
        alias__c=f'{body}extern __typeof(own) {name} __attribute__((alias("own")));\n',
        split__c=own.replace(name, f"{name[:2]}\\\n{name[2:]}"),
        macro__c='#define FILE "own.c"\n#include FILE\n',
        paste__h=f"#define PASTE(a) {name[:2]}##a\n",
        angle__c=f"#include <paste.h>\n{own.replace(name, f'PASTE({name[2:]})')}",
        linked__cpp=f'#define C(a, b) a##b\nextern "C" {pasted.replace("P(H", f"C({name[:2]}")}',
    )
    hidden = [one for one in hidden if not one.endswith(".h")][: None if name == "round" else 1]
    for sources in (paths[:2], *paths[2:], *([paths[0], one] for one in hidden)):
        assert "5.000000e+00" in load(sources, "step", flags=(f"-I{Path(paths[0]).parent}",)).ir
    assert "5.000000e+00" not in load(paths[0], "step").ir
    for one in (paths[1], *hidden):  # by way of a folder
        folder = Path(one).with_suffix("")
        folder.mkdir()
        for path in (paths[0], one):
            shutil.copy(path, folder)
        assert "5.000000e+00" in load(folder, "step", flags=(f"-I{Path(one).parent}",)).ir


def test_words_of_a_source_whose_macros_paste_make_no_functions_of_the_library(write: Write, tmp_path: Path) -> None:
    """`s` and `in`, `f` and `m` are variables: all templates of a folder were compiled for `sin` and `fmin`. So
    were all that include a header whose macro prints, or that includes what nobody names; one with macros that paste
    and others with the words `log` and `p`, for `log1p`, with another name for that, or with `format(printf, 1, 2)`."""
    write(
        say__h="#ifdef USER_CONFIG\n#include USER_CONFIG\n#endif\n#include <stdio.h>\n"
        '#define SAY(x) fprintf(stderr, "%g", x)\n#define FORTRAN(x) x##_\n#define LOGS(x) (x > 1 ? p : log)\n'
        "#ifdef OLD\n#define log1p old_log1p\n#endif\n#define PRINTS(a, b) __attribute__((format(printf, a, b)))\n"
        "#define step our_step\n",
        other__c='#include "say.h"\ndouble other(double x) { SAY(x); return x; }\n',
        step__c='#include <math.h>\n#include "say.h"\ndouble step(double x) '
        '{ SAY(x); printf("%g", log1p(x)); return sin(x) + fmin(x, 2); }\n',
        table__c="#define C(a, b) a##_##b\n#define F(a, b) C(a, b)\ndouble F(table, sum)(const double *s, int n) {\n"
        "  double f = 0, m = 1;\n  for (int i = 0, in = n; i < in; i++) f += m * s[i];\n  return f;\n}\n",
    )
    sources = source_set(tmp_path)
    sources.program("step")
    done = sources._done  # pyright: ignore[reportPrivateUsage]
    assert {Path(str(unit.source.path)).name for unit in done} == {"step.c"}


def test_what_assembly_at_file_scope_defines_is_not_the_library_s(write: Write) -> None:
    """A rule for `sin` was about the library's, while the assembly's ran; calls of `round` became an instruction."""
    ret = r"\n mulsd %xmm0, %xmm0\n ret\n"
    own = "".join(f'__asm__(".globl {name}\\n{name}:{ret}");\n' for name in ("round", "erf", "mine"))
    step = "double {0}(double); double step(double x) {{ return {0}(x); }} double other(double x) {{ return x * 5; }}\n"
    for name in ("round", "erf", "mine"):
        paths = write(step__c=step.format(name), own__c=own, both__c=own + step.format(name))
        for sources in (paths[:2], paths[2]):
            with pytest.raises(CompileError, match=f"`{name}` is defined by assembly at file scope"):
                load(sources, "step")
            assert "5.000000e+00" in load(sources, "other").ir
    [wrong] = write(wrong__c='__asm__("no instruction");\ndouble step(double x) { return x; }\n')
    with pytest.raises(CompileError, match="the assembler refuses"):
        load(wrong, "step")


@pytest.mark.parametrize("text", [".globl sin; sin = cos", ".set sin, cos", ".weakref sin, cos", r"sin:\n ret"])
def test_what_assembly_at_file_scope_renames_is_not_the_library_s(text: str, write: Write) -> None:
    """Calls of `sin` were those of `cos`, with the derivative of `sin`."""
    source = f'double sin(double), tan(double);\n__asm__("{text}");\ndouble step(double x) {{ return sin(x); }}\n'
    [path] = write(step__c=f"{source}double other(double x) {{ return tan(x) * 5; }}\n")
    with pytest.raises(CompileError, match="`sin` is defined by assembly at file scope"):
        load(path, "step")
    assert "5.000000e+00" in load(path, "other").ir


def test_of_a_large_file_only_a_part_is_needed(write: Write, tmp_path: Path) -> None:
    many = "".join(f"double g{i}(double x) {{ return nowhere{i}(x) * {i}; }}\n" for i in range(200))
    declared = "".join(f"double nowhere{i}(double);\n" for i in range(200))
    write(large__c=f"{declared}double half(double); {many} double step(double x) {{ return half(x); }}\n", half__c=HALF)
    sources = source_set(tmp_path)
    assert functions(sources.program("step").ir) == {"step", "half"}


def test_of_a_large_fortran_file_only_the_part_that_is_needed_is_read(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, with all that others need of it."""
    need("flang-22")
    text = "".join(f"subroutine s{i}(x)\n real(8) :: x\n x = x * {i}\nend\n" for i in range(12))
    paths = write(
        s__f90=text,
        step__f90="subroutine step(x)\n real(8) :: x\n call s2(x)\n call half(x)\nend\n",
        half__f90="subroutine half(x)\n real(8) :: x\n x = x / 2\n call s3(x)\nend\n",
    )
    usual = load(paths, "step").ir
    read: list[str] = []

    def finish(ir: str, *others: Any) -> str:
        read.append(ir)
        return finished(ir, *others)

    monkeypatch.setattr("jax_enzyme.frontends.flang.LARGE", 8000)
    monkeypatch.setattr("jax_enzyme.frontends.compiled.LARGE", 8000)
    monkeypatch.setattr("jax_enzyme.frontends.flang._FORMAT", "as lowered")
    monkeypatch.setattr("jax_enzyme.frontends.compiled.finished", finish)
    assert linking.same(load(paths, "step").ir, usual, ["step_"])
    assert [functions(ir) for ir in read] == [{"s2_", "s3_"}]


def test_parts_of_large_fortran_files_have_the_classes_of_their_arguments(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("flang-22")
    monkeypatch.setattr("jax_enzyme.frontends.flang.LARGE", 1)
    monkeypatch.setattr("jax_enzyme.frontends.compiled.LARGE", 1)
    monkeypatch.setattr("jax_enzyme.frontends.flang._FORMAT", "as lowered")
    [path] = write(
        m__f90="module m\n type :: spring\n  real(8) :: k\n contains\n  procedure :: force\n end type\n"
        " type :: other\n  real(8) :: k\n end type\ncontains\n"
        " real(8) function force(me)\n  class(spring), intent(in) :: me\n  force = me%k\n end\n"
        " subroutine step(me, y)\n  class(spring), intent(in) :: me\n  real(8), intent(out) :: y\n"
        "  y = me%force()\n end\nend module\n"
    )
    ir = load([path], "step").ir
    assert "@je.comes_with._QMmPstep =" in ir
    assert functions(ir) == {"_QMmPstep", "_QMmPforce"}
    assert "EXdtXother" not in ir


@pytest.mark.parametrize("several", [False, True])
def test_functions_that_nobody_calls_for_others_in_large_files(write: Write, tmp_path: Path, several: bool) -> None:
    many = "".join(f"double g{i}(double x) {{ return x * {i} > 1 ? x : x / {i + 1} + {i}; }}\n" for i in range(250))
    offered = "template <class T> T twice(T x) { return x + x; }\ninline double once(double x) { return x; }\n"
    own = "static double half(double x) { return x / 2; }\n"
    write(large__cpp=f"{offered}{own}{many}double f(double x) {{ return twice(x) * half(x) * once(x); }}\n")
    write(other__cpp=f"{offered}double other(double x) {{ return twice(x) * once(x); }}\n")
    plain = "inline double plain(double x) { return x; }\n"
    write(inline__c=plain + many.replace("g", "h"))
    sources = source_set(tmp_path if several else tmp_path / "large.cpp")
    inlined = sources if several else source_set(tmp_path / "inline.c")
    for name in ("twice<double>", "once", "half", "plain"):
        program = (inlined if name == "plain" else sources).program(name)
        assert program.symbol in functions(program.ir)


def test_classes_with_functions_of_one_name_are_told_apart_by_their_files(write: Write, tmp_path: Path) -> None:
    """All headers are included everywhere, so only a file's own text tells whose functions it has."""
    each = "struct {0} {{ double held; void init(double); double next(double); }};\n"
    body = '#include "all.h"\nvoid {0}::init(double x) {{ held = x; }}\n'
    body += "double {0}::next(double x) {{ return held *= x; }}\n"
    write(
        all__h="#pragma once\n" + "".join(map(each.format, ("Delay", "Filter", "Voice"))),
        **{f"{name.lower()}__cpp": body.format(name) for name in ("Delay", "Filter", "Voice")},
        step__cpp='#include "all.h"\ndouble step(double x) { Filter f; f.init(x); return f.next(x); }\n',
    )
    for symbol, files in (("step", {"step.cpp", "filter.cpp"}), ("Voice::next", {"voice.cpp"})):
        whole = source_set(tmp_path)
        whole.program(symbol)
        done = whole._done  # pyright: ignore[reportPrivateUsage]
        assert {Path(str(unit.source.path)).name for unit in done} == files


def test_a_function_is_looked_for_where_it_is_written_with_its_class(write: Write, tmp_path: Path) -> None:
    """`speed.cpp` has a member of the class that is meant, and a function of that name; `Add` is there for each class.
    Of functions without a class, the file with the types of their parameters comes first."""
    both = '#include "all.h"\nvoid {0}::run(double x) {{ held = x; }}\n'
    both += "namespace arm {{ void Add(const {0} &a, {0} &b) {{ b.held += a.held; }} }}\n"
    write(
        all__h="#pragma once\nnamespace arm { struct Place { double held; void run(double); };\n"
        "struct Speed { double held; Place p; void run(double); };\n"
        "void Add(const Place &, Place &); void Add(const Speed &, Speed &); }\nusing namespace arm;\n",
        place__cpp=both.format("Place"),
        speed__cpp=both.format("Speed") + "// is run for each Place of Speed in arm\n",
        angle__cpp='#include "all.h"\nnamespace arm { struct Angle {}; void Add(const Angle &, Angle &) {} }\n',
        step__cpp='#include "all.h"\ndouble step(double x) { Place p; p.run(x); Add(p, p); return p.held; }\n',
    )
    whole = source_set(tmp_path)
    whole.program("step")
    done = whole._done  # pyright: ignore[reportPrivateUsage]
    assert {Path(str(unit.source.path)).name for unit in done} == {"step.cpp", "place.cpp"}


def test_a_class_that_is_declared_in_one_file_and_defined_in_others(write: Write) -> None:
    """As debug information has it: where its first virtual function has a body. The process ended."""
    paths = write(
        top__cpp='#include "b.h"\ndouble top(double x) { B *b = make(); double y = b->f(x); delete b; return y; }\n',
        d__cpp='#include "b.h"\nstruct D : B { double f(double x) override { return x * x; } };\n'
        "B *make() { return new D; }\n",
        b__cpp='#include "b.h"\nB::~B() {}\n',
        b__h="struct B { virtual double f(double) = 0; virtual ~B(); };\nB *make();\n",
    )
    assert "fmul" in load(paths[:-1], "top").ir


def test_a_name_that_nobody_defines_beside_a_file_that_does_not_compile(write: Write, tmp_path: Path) -> None:
    write(step__c=STEP, main__c="#include <nowhere.h>\nint main() { return 0; }\n")
    assert "half" in linking.names(source_set(tmp_path).program("step").ir).needed


@pytest.mark.parametrize("symbol", ["one_step", "outer"])
def test_what_does_not_compile_is_told_before_others_are_tried(symbol: str, write: Write, tmp_path: Path) -> None:
    write(
        step__c="double one_step(double x) { return x * missing; }\n",
        outer__c="double one_step(double x);\ndouble outer(double x) { return one_step(x); }\n",
        other__c="#define NAME(a, b) a##_##b\ndouble NAME(two, step)(double x) { return x; }\n",
    )
    whole = source_set(tmp_path)
    with pytest.raises(CompileError, match="undeclared identifier 'missing'"):
        whole.program(symbol)
    assert all("other" not in str(unit.source.path) for unit in whole._done)  # pyright: ignore[reportPrivateUsage]


def test_tables_of_macros_are_read_in_time_that_grows_with_them() -> None:
    """A table of 60 kB without a semicolon or a brace took half a minute: each word was held to begin a statement."""
    table = "#define TABLE\n" + "X( some_name, 3[4], other )\n" * 3000
    source = Source("c", "table.c", f'{table}typeof(f) g __attribute__((alias("f")));\n'.encode())
    began = time.process_time()
    assert Texts().makes(source, (), {"f"}) and Texts().makes(source, (), {"g"})
    assert "some_name" in (Texts().hinted(source, ()) or ())
    assert time.process_time() - began < 2
