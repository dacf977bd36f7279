"""Loops that the source wants unrolled: those that can be are, and the others are no concern of the user's."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from jax_enzyme.codegen import derived, pipelines, unrolling
from jax_enzyme.codegen.host import target_machine
from jax_enzyme.codegen.optimise import retarget
from jax_enzyme.codegen.pipelines import Pipeline
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.metadata import MDString
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import parse_checked
from tests.support.engine import native

SOURCE = """
define void @k(ptr %x, ptr %y) {
entry:
  br label %known
known:
  %i = phi i64 [ 0, %entry ], [ %i1, %known ]
  %sum = phi double [ 0.0, %entry ], [ %more, %known ]
  %xi = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %xi, align 8
  %more = fadd double %sum, %v
  %i1 = add nuw nsw i64 %i, 1
  %on = icmp ult i64 %i1, 5
  br i1 %on, label %known, label %unknown.entry, !llvm.loop !0
unknown.entry:
  br label %unknown
unknown:
  %s = phi double [ %more, %unknown.entry ], [ %half, %unknown ]
  %half = fmul double %s, %v
  %again = fcmp ogt double %half, 0.25
  br i1 %again, label %unknown, label %end, !llvm.loop !2
end:
  store double %half, ptr %y, align 8
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.enable"}
!2 = distinct !{!2, !1}
"""
_UNKNOWN = SOURCE.replace("label %unknown.entry, !llvm.loop !0", "label %unknown.entry")


def test_what_cannot_be_unrolled_is_left_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    kernel = native(SOURCE, "k", "x: f64[5], out y: f64[1]", {}, "llvm")
    module = derived.regular(kernel.program, kernel.signature, kernel.binding).module
    assert capfd.readouterr().err == ""
    instructions = list(module.functions["je.primal"].instructions())
    assert sum(i.opcode == "fadd" for i in instructions) == 5
    assert sum(i.opcode == "fmul" for i in instructions) == 1
    assert any(isinstance(i, I.Phi) for i in instructions)
    assert not any(MDString("llvm.loop.unroll.enable") in node.operands for node in module.metadata.values())


def test_nothing_is_optimised_again_for_wishes_that_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first loop is unrolled at once, and with the second one's wish nothing is left for another round."""
    runs: list[str] = []
    pipeline = Pipeline.run
    monkeypatch.setattr(Pipeline, "run", lambda self, *rest: runs.append("run") or pipeline(self, *rest))
    source = parse(SOURCE.replace("label %end, !llvm.loop !2", "label %end").replace("!2 = distinct !{!2, !1}", ""))
    small = Pipeline(2)
    native = unrolling.optimised(source, parse_checked(source), small, small.builder())
    assert runs == ["run"]
    assert str(native).count("fadd") == 5


def test_a_long_module_is_unrolled_by_the_one_process_that_optimises_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes on functions are llvmlite's, whose assertions take most of the time that a long function takes."""
    if not pipelines.clang_of_the_same_version():
        pytest.skip("long modules are optimised in this process")
    monkeypatch.setattr(pipelines, "LONG", 1)
    monkeypatch.setattr(unrolling, "run_on_functions", None)
    source = parse(SOURCE)
    retarget(source, target_machine())
    pipeline = Pipeline(2)
    native = str(unrolling.optimised(source, parse_checked(source), pipeline, pipeline.builder()))
    assert native.count("fadd") == 5
    assert native.count("hide.loop.unroll.enable") == 1
    assert "llvm.loop.unroll.enable" not in native


@pytest.mark.parametrize(("text", "unrolled"), [(SOURCE, [True, False]), (_UNKNOWN, [False])])
def test_a_long_module_is_optimised_again_where_a_loop_was_unrolled(
    monkeypatch: pytest.MonkeyPatch, text: str, unrolled: list[bool]
) -> None:
    """What stays a loop though it wishes otherwise, as in run-time libraries, doubles no work."""
    if not pipelines.clang_of_the_same_version():
        pytest.skip("long modules are optimised in this process")
    monkeypatch.setattr(pipelines, "LONG", 1)
    found: list[bool] = []
    through = Pipeline.through_clang

    def counted(self: Pipeline, native: llvm.ModuleRef, bitcode: bytes) -> tuple[bytes, bool]:
        code, is_unrolled = through(self, native, bitcode)
        found.append(is_unrolled)
        return code, is_unrolled

    monkeypatch.setattr(Pipeline, "through_clang", counted)
    source = parse(text)
    retarget(source, target_machine())
    pipeline = Pipeline(2)
    unrolling.optimised(source, parse_checked(source), pipeline, pipeline.builder())
    assert found == unrolled
