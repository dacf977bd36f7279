"""Source places from debug information."""

from __future__ import annotations

from pathlib import Path

from jax_enzyme.ir import passes
from jax_enzyme.ir.clone import clone_function
from jax_enzyme.ir.debug import function_location, location, trace
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse, read
from tests.ir.support import compiled

_TEXT = """
define i32 @f(i32 %x) !dbg !4 {
  %plain = add i32 %x, 1, !dbg !10
  %ours = add i32 %x, 2, !dbg !11
  %library = add i32 %x, 3, !dbg !12
  %unknown = add i32 %x, 4, !dbg !13
  %outward = add i32 %x, 5, !dbg !14
  %inside = add i32 %x, 6, !dbg !DILocation(line: 77, scope: !4)
  %elsewhere = add i32 %x, 7, !dbg !16
  %none = add i32 %x, 8
  ret i32 %x
}
!llvm.dbg.cu = !{!0}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1)
!1 = !DIFile(filename: "src/main.c", directory: "/home/me")
!2 = !DIFile(filename: "/usr/include/library.h", directory: "")
!3 = !DIFile(filename: "/home/me/src/helper.h", directory: "")
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 5, unit: !0)
!5 = distinct !DISubprogram(name: "lib", scope: !2, file: !2, line: 100, unit: !0)
!6 = distinct !DISubprogram(name: "helper", scope: !3, file: !3, line: 9, unit: !0)
!7 = distinct !DILexicalBlock(scope: !6)
!10 = !DILocation(line: 6, column: 3, scope: !4)
!11 = !DILocation(line: 12, column: 2, scope: !7, inlinedAt: !10)
!12 = !DILocation(line: 120, column: 8, scope: !5, inlinedAt: !11)
!13 = !DILocation(line: 0, scope: !4)
!14 = !DILocation(line: 0, scope: !6, inlinedAt: !10)
!16 = !DILocation(line: 121, column: 8, scope: !5)
"""


def _location(module: Module, name: str) -> str | None:
    [instruction] = [i for i in module.functions["f"].instructions() if i.name == name]
    return location(module, instruction)


def test_locations() -> None:
    module = parse(_TEXT)
    assert _location(module, "plain") == "src/main.c:6:3"
    assert _location(module, "ours") == "/home/me/src/helper.h:12:2"
    assert _location(module, "library") == "/home/me/src/helper.h:12:2"
    assert _location(module, "unknown") == "src/main.c:5"
    assert _location(module, "outward") == "src/main.c:6:3"
    assert _location(module, "inside") == "src/main.c:77"
    assert _location(module, "elsewhere") == "/usr/include/library.h:121:8"
    assert _location(module, "none") is None
    assert function_location(module, module.functions["f"]) == "src/main.c:5"


def test_trace() -> None:
    module = parse(_TEXT)
    [instruction] = [i for i in module.functions["f"].instructions() if i.name == "library"]
    assert trace(module, instruction) == [
        "/usr/include/library.h:120:8",
        "/home/me/src/helper.h:12:2",
        "src/main.c:6:3",
    ]


def test_debug_information_survives_new_calls_and_copies(tmp_path: Path) -> None:
    """LLVM drops all of it, with a word on stderr only, for a call without a place or a subprogram of two functions."""
    source = tmp_path / "kernel.c"
    source.write_text("double inner(double x) {\n    return x * x;\n}\ndouble outer(double x) { return inner(x); }\n")
    module = read(compiled(source, tmp_path, "-O1", "-g", "-Xclang", "-disable-llvm-passes"))
    outer = module.functions["outer"]
    module.functions["copy"] = clone_function(module.functions["inner"], "copy")
    [call] = [i for i in outer.instructions() if isinstance(i, CallBase) and i.callee.name == "inner"]
    call.metadata = []
    call.operands[-1] = module.functions["copy"]
    module = passes.inline_everything(module, ["outer"])
    found = {i.opcode: location(module, i) for i in module.functions["outer"].instructions()}
    assert (found["fmul"] or "").endswith("kernel.c:2:14")


def test_lines_survive_compiling_inlining_and_optimising(tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(
        "static double inner(double x) {\n"
        "    return x * x;\n"
        "}\n"
        "double outer(double x) {\n"
        "    return inner(x) + 1.0;\n"
        "}\n"
    )
    module = read(compiled(source, tmp_path, "-O1", "-g", "-Xclang", "-disable-llvm-passes"))
    module = passes.optimise(passes.inline_everything(module, ["outer"]))
    lines = {i.opcode: (location(module, i) or "").rsplit(":", 2)[-2] for i in module.functions["outer"].instructions()}
    assert lines["fmul"] == "2" and lines["fadd"] == "5"
