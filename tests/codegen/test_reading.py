"""The module of a program is read once, and copied only for who takes it while others look at it."""

from __future__ import annotations

from jax_enzyme.codegen.reading import looked_at, taken
from jax_enzyme.frontends.program import Program

PROGRAM = Program("define double @k(double %x) {\n  ret double %x\n}\n", "k", "llvm", "k.ll")


def test_who_takes_a_module_has_it_alone() -> None:
    with looked_at(PROGRAM) as first, looked_at(PROGRAM) as second:
        assert first is second
        copy = taken(PROGRAM)
        assert copy is not first and copy.functions["k"] is not first.functions["k"]
    with looked_at(PROGRAM) as later:
        assert later is not first
    assert taken(PROGRAM) is later
    assert taken(PROGRAM) is not later
