"""Modules that nobody needs any more."""

from __future__ import annotations

import gc

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.ir.arrays import ArrayFunction, of_module, through
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module, take_apart
from jax_enzyme.ir.reader import parse

LOOP = """
define i64 @f(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = call i64 @f(ptr %x, i64 %i)
  ret i64 %r
}
"""


def test_what_is_taken_apart_leaves_no_circles() -> None:
    module = parse(LOOP)
    gc.collect()
    gc.disable()
    try:
        PointsTo(module, module.functions["f"])
        take_apart(module)
        del module
        assert gc.collect() == 0
        parse(LOOP)
        assert gc.collect() > 0
    finally:
        gc.enable()


def test_what_lies_between_two_passes_is_taken_apart_and_nothing_else() -> None:
    made: list[Module] = []

    def copied(module: Module) -> Module:
        made.append(clone(module))
        return made[-1]

    given = ArrayFunction(parse(LOOP), "f", ())
    result = through(given, of_module(copied), of_module(lambda m: m), of_module(copied))
    assert result.module is made[1]
    assert [len(m.functions["f"].entry.instructions) for m in (given.module, *made)] == [1, 0, 1]
