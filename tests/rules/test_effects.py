from __future__ import annotations

import pytest

from jax_enzyme.rules.effects import Effect, effect, inert
from jax_enzyme.rules.table import standard


@pytest.mark.parametrize(
    "name, expected",
    [
        ("llvm.lifetime.start.p0", Effect.IGNORED),
        ("llvm.dbg.value", Effect.IGNORED),
        ("llvm.assume", Effect.IGNORED),
        ("llvm.experimental.noalias.scope.decl", Effect.IGNORED),
        ("llvm.prefetch.p0", Effect.IGNORED),
        ("llvm.expect.i1", Effect.PURE_INT),
        ("llvm.ctpop.i64", Effect.PURE_INT),
        ("llvm.abs.v4i32", Effect.PURE_INT),
        ("llvm.smax.i32", Effect.PURE_INT),
        ("llvm.umul.with.overflow.i64", Effect.PURE_INT),
        ("llvm.objectsize.i64.p0", Effect.PURE_INT),
        ("llvm.vector.reduce.add.v4i32", Effect.PURE_INT),
        ("abs", Effect.PURE_INT),
        ("llvm.launder.invariant.group.p0", Effect.SAME_POINTER),
        ("llvm.memcpy.p0.p0.i64", Effect.MEMORY_COPY),
        ("llvm.memcpy.inline.p0.p0.i32", Effect.MEMORY_COPY),
        ("llvm.memmove.p1.p0.i64", Effect.MEMORY_COPY),
        ("memmove", Effect.MEMORY_COPY),
        ("llvm.memset.p0.i64", Effect.MEMORY_SET),
        ("llvm.memset.inline.p0.i64", Effect.MEMORY_SET),
        ("llvm.stacksave.p0", Effect.STACK),
        ("malloc", Effect.ALLOCATE),
        ("_Znwm", Effect.ALLOCATE),
        ("__rust_alloc", Effect.ALLOCATE),
        ("_RNvCs8olqAOyxdkE_7___rustc12___rust_alloc", Effect.ALLOCATE),
        ("realloc", Effect.REALLOCATE),
        ("free", Effect.FREE),
        ("_ZdlPvm", Effect.FREE),
        ("printf", Effect.OUTPUT),
        ("puts", Effect.OUTPUT),
        ("abort", Effect.ABORT),
        ("__assert_fail", Effect.ABORT),
        ("_FortranAStopStatement", Effect.ABORT),
        ("llvm.trap", Effect.TRAP),
        ("llvm.ubsantrap", Effect.TRAP),
        ("_ZSt20__throw_length_errorPKc", Effect.THROW),
        ("_ZN4core9panicking5panic17h0123456789abcdefE", Effect.THROW),
        ("llvm.masked.load.v4f64.p0", Effect.MASKED_LOAD),
        ("llvm.masked.store.v4f64.p0", Effect.MASKED_STORE),
        ("llvm.masked.gather.v4f64.v4p0", Effect.GATHER),
        ("llvm.masked.scatter.v4f64.v4p0", Effect.SCATTER),
        ("llvm.vector.reduce.fadd.v4f64", Effect.VECTOR_REDUCE),
        ("clock", Effect.READ_CLOCK),
        ("sin", None),
        ("llvm.sin.f64", None),
        ("llvm.unknown.f64", None),
        ("my_function", None),
        ("", None),
    ],
)
def test_effects(name: str, expected: Effect | None) -> None:
    assert effect(name) is expected


def test_inert_calls() -> None:
    assert inert("llvm.dbg.value")
    assert inert("llvm.ctpop.i32")
    assert not inert("malloc")
    assert not inert("unknown")


def test_no_name_has_both_a_rule_and_an_effect() -> None:
    for name in standard().functions:
        assert effect(name) is None
        assert effect(f"llvm.{name}.f64") is None or name == "abs"
