"""Long modules are optimised outside of this process as short ones are inside of it."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from jax_enzyme.codegen import pipelines
from jax_enzyme.codegen.host import host, target_machine
from jax_enzyme.codegen.pipelines import Pipeline
from jax_enzyme.errors import LoweringError

_LOOP = """
define void @f{i}(ptr noalias %x, ptr noalias %y) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %a = load double, ptr %p
  %b = fmul double %a, {i}.5
  %c = fadd double %b, %a
  %q = getelementptr double, ptr %y, i64 %i
  store double %c, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""
_CHOICES = (
    Pipeline(2, relocation="static"),
    Pipeline(3, vectorise=True, slp=True, unroll=True),
    Pipeline(3, vectorise=True, slp=True, unroll=True, near_checks=True),
)


def _module(count: int, triple: str) -> llvm.ModuleRef:
    layout = target_machine().target_data if triple == host().triple else ""
    head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
    return llvm.parse_assembly(head + "".join(_LOOP.format(i=i) for i in range(count)), llvm.create_context())


def _instructions(native: llvm.ModuleRef) -> list[str]:
    return [str(i).partition(", !")[0] for f in native.functions for b in f.blocks for i in b.instructions]


@pytest.mark.parametrize("pipeline", _CHOICES, ids=lambda p: f"O{p.level}{'-near' * p.near_checks}")
def test_both_ways_give_the_same(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    long = _module(64, host().triple)
    assert len(long.as_bitcode()) > pipelines.LONG
    outside = pipeline.run(long, pipeline.builder())
    monkeypatch.setattr(pipelines, "LONG", 1 << 40)
    inside = pipeline.run(_module(64, host().triple), pipeline.builder())
    assert outside is not long
    assert _instructions(outside) == _instructions(inside)
    assert any("<" in i for i in _instructions(inside)) == pipeline.vectorise


@pytest.mark.parametrize(("count", "triple"), [(1, host().triple), (64, "nvptx64-nvidia-cuda")])
def test_short_modules_and_those_of_devices_stay_in_this_process(count: int, triple: str) -> None:
    native = _module(count, triple)
    assert Pipeline(2).run(native, Pipeline(2).builder()) is native


def test_what_fails_outside_is_an_error() -> None:
    with pytest.raises(LoweringError, match="could not optimise"):
        Pipeline(2).through_clang(llvm.parse_assembly(""), b"no bitcode")


def test_numbers_that_are_read_twice_over_and_over_are_optimised_at_once() -> None:
    """LLVM's search for checksums would go 2**48 ways through the largest value of a logistic map."""
    steps = "".join(f"  %s{n} = fsub double 1.0, %c{n}\n  %c{n + 1} = fmul double %c{n}, %s{n}\n" for n in range(48))
    text = f"""
define double @f(ptr %x) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %best = phi double [ 0.0, %entry ], [ %found, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %c0 = load double, ptr %p
{steps}  %better = fcmp ogt double %c48, %best
  %found = select i1 %better, double %c48, double %best
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %loop, label %exit
exit:
  ret double %found
}}
"""
    for pipeline in _CHOICES:
        native = llvm.parse_assembly(text, llvm.create_context())
        assert "fmul" in str(pipeline.run(native, pipeline.builder()))


def test_loops_over_lanes_are_vectors_before_they_are_written_out() -> None:
    """LLVM wrote out those of 32 iterations first, and what is not found again as vectors was as many numbers."""
    pipeline = Pipeline(3, vectorise=True, unroll=True)
    text = str(_module(1, host().triple)).replace("1024", "32")
    native = pipeline.run(llvm.parse_assembly(text, llvm.create_context()), pipeline.builder())
    assert any("<" in i for i in _instructions(native))
