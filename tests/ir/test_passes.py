"""LLVM's passes over our modules: they do their work, and leave their argument alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from llvmlite.binding.newpassmanagers import NewPassManager

from jax_enzyme.ir import passes
from jax_enzyme.ir.inlining import recursive_functions
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.reader_metadata import MetadataReader
from jax_enzyme.ir.verify import VerifyError
from jax_enzyme.ir.writer import to_text

_LOOP = """
define i32 @f(i32 %n, ptr %p) {
entry:
  %s = alloca i32
  store i32 0, ptr %s
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %head ]
  %old = load i32, ptr %s
  %new = add i32 %old, %i
  store i32 %new, ptr %s
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %head, label %out
out:
  %r = load i32, ptr %s
  switch i32 %r, label %c [
    i32 1, label %a
    i32 7, label %b
  ]
a:
  ret i32 %next
b:
  ret i32 2
c:
  ret i32 %r
}
define i32 @other(i32 %n) {
  %s = alloca i32
  store i32 %n, ptr %s
  %r = load i32, ptr %s
  ret i32 %r
}
"""
_CALLS = """
$inline = comdat any
@table = linkonce_odr hidden global [2 x i32] zeroinitializer, comdat($inline)
@kept = global i32 0
@unused = global i32 0
@same = alias i32 (i32), ptr @leaf
@llvm.used = appending global [1 x ptr] [ptr @table], section "llvm.metadata"
declare i32 @outside(i32)
define dso_local i32 @entry(i32 %n) #0 {
  %a = call i32 @leaf(i32 %n) #1
  %b = call i32 @same(i32 %a)
  %c = call i32 @middle(i32 %b)
  %d = call i32 @factorial(i32 %c)
  %e = call i32 @even(i32 %d)
  %f = load i32, ptr @kept
  %g = add i32 %e, %f
  ret i32 %g
}
define linkonce_odr hidden i32 @leaf(i32 %n) #0 comdat($inline) {
  %r = mul i32 %n, 3
  ret i32 %r
}
define weak i32 @middle(i32 %n) noinline {
  %a = call i32 @leaf(i32 %n)
  %b = call i32 @outside(i32 %a)
  ret i32 %b
}
define internal i32 @factorial(i32 %n) alwaysinline {
  %m = sub i32 %n, 1
  %r = call i32 @factorial(i32 %m)
  ret i32 %r
}
define i32 @even(i32 %n) {
  %r = call i32 @odd(i32 %n)
  ret i32 %r
}
define i32 @odd(i32 %n) {
  %r = call i32 @even(i32 %n)
  ret i32 %r
}
define void @nobody() {
  ret void
}
attributes #0 = { noinline optnone nounwind "key"="value" }
attributes #1 = { noinline }
"""


def _opcodes(module: Module, name: str) -> list[str]:
    return [i.opcode for i in module.functions[name].instructions()]


def test_named_passes() -> None:
    module = parse(_LOOP)
    before = to_text(module)
    done = passes.run(module, ["sroa", "loop-simplify", "lcssa", "lower-switch", "mergereturn"])
    assert to_text(module) == before
    assert not {"alloca", "load", "store", "switch"} & set(_opcodes(done, "f"))
    assert _opcodes(done, "f").count("ret") == 1
    assert "%next.lcssa = phi" in to_text(done)
    assert _opcodes(done, "other") == ["ret"]


def test_only_some_functions() -> None:
    done = passes.run(parse(_LOOP), ["sroa"], only=["f"])
    assert "alloca" not in _opcodes(done, "f") and "alloca" in _opcodes(done, "other")


def test_unknown_pass() -> None:
    with pytest.raises(ValueError, match=r"no pass 'licm'; known are: adce"):
        passes.run(Module(), ["licm"])
    with pytest.raises(ValueError, match="no pass 'globaldce' of functions"):
        passes.run(Module(), ["globaldce"], only=[])


@pytest.mark.parametrize("name", passes.NAMES)
def test_every_pass_runs(name: str) -> None:
    module = parse(_LOOP)
    assert passes.run(module, [name]).functions.keys() >= {"f", "other"}


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_optimise(level: int) -> None:
    module = parse(_LOOP)
    before = to_text(module)
    done = passes.optimise(module, level)
    assert to_text(module) == before
    assert ("alloca" in _opcodes(done, "f")) == (level == 0)
    assert "vector.body" not in to_text(done)


def test_unrolling_is_a_choice() -> None:
    module = parse(
        """
        define double @f(ptr %p) {
        entry:
          br label %head
        head:
          %i = phi i64 [ 0, %entry ], [ %next, %head ]
          %s = phi double [ 0.0, %entry ], [ %t, %head ]
          %q = getelementptr double, ptr %p, i64 %i
          %v = load double, ptr %q
          %t = fadd double %s, %v
          %next = add nuw nsw i64 %i, 1
          %more = icmp ult i64 %next, 4
          br i1 %more, label %head, label %out
        out:
          ret double %t
        }
        """
    )
    assert "phi" in _opcodes(passes.optimise(module), "f")
    assert "phi" not in _opcodes(passes.optimise(module, unroll=True), "f")


def test_inline_everything() -> None:
    module = parse(_CALLS)
    before = to_text(module)
    done = passes.inline_everything(module, ["entry", "kept"])
    assert to_text(module) == before
    defined = [name for name, f in done.functions.items() if not f.is_declaration]
    assert defined == ["entry", "factorial", "even", "odd"]
    assert done.functions["entry"].prefix == ("dso_local",)
    assert done.functions["factorial"].prefix == ("internal",)
    assert sorted(done.globals) == ["kept", "llvm.used", "table"]
    assert done.globals["kept"].prefix == () and done.globals["table"].prefix == ("internal",)
    called = [i.callee.name for i in done.functions["entry"].instructions() if isinstance(i, CallBase)]
    assert called == ["outside", "factorial", "even"]


def test_recursive_functions() -> None:
    names = {f.name for f in recursive_functions(parse(_CALLS))}
    assert names == {"factorial", "even", "odd"}


def test_normalise_is_stable() -> None:
    text = to_text(passes.normalise(parse(_CALLS)))
    assert to_text(passes.normalise(parse(text))) == text


def test_broken_modules_never_reach_a_pass() -> None:
    module = parse(_LOOP)
    module.functions["f"].blocks[0].instructions.pop()
    with pytest.raises(VerifyError):
        passes.run(module, ["sroa"])


def test_pass_managers_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's objects, not only what stands for them in Python: each would leave some fifty kilobytes."""
    freed: list[object] = []
    dispose = NewPassManager._dispose
    monkeypatch.setattr(NewPassManager, "_dispose", lambda one: (freed.append(one), dispose(one)))
    module = parse(_LOOP)
    passes.optimise(module)
    passes.run(module, ["sroa"])
    passes.run(module, ["sroa"], only=["f"])
    assert len(freed) == 3


def test_debug_information_that_nobody_asks_for_goes_through_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse((Path(__file__).parent / "fixtures" / "debug_info.ll").read_text())
    kinds = set[str]()
    node = MetadataReader.node

    def noted(reader: MetadataReader) -> MDNode:
        found = node(reader)
        kinds.add(found.kind)
        return found

    monkeypatch.setattr(MetadataReader, "node", noted)
    twice = passes.run(passes.run(module, ["dce"]), ["dce"])
    assert "DISubprogram" in kinds and not kinds & {"DICompositeType", "DIDerivedType", "DILocalVariable"}
    assert "DICompositeType" in {found.kind for found in twice.metadata.values()}
