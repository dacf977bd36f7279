"""Memory from an arena whose address iterations note in places of their own is of one iteration of the loop that reads
them there."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.independence import Independence, Independent
from jax_enzyme.ir.reader import parse

_LOOPS = """
declare noalias ptr @je.arena.allocate(ptr, i64)
declare void @je.arena.reset(ptr, i64)
declare noalias ptr @malloc(i64)

define internal void @starts_again(ptr %a) noinline {{
  call void @je.arena.reset(ptr %a, i64 0)
  ret void
}}

define i64 @f(ptr noalias %x) {{
entry:
  %arena = alloca [24 x i8], align 16
  %tape = call ptr @malloc(i64 800)
  br label %forward
forward:
  %i = phi i64 [ 0, %entry ], [ %more, %forward ]
  %own = call ptr @je.arena.allocate(ptr %arena, i64 64)
  %slot = getelementptr inbounds ptr, ptr %tape, i64 %i
  store ptr %own, ptr %slot, align 8
  %next.slot = getelementptr inbounds ptr, ptr %slot, i64 1
  {besides}
  %more = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %more, 100
  br i1 %done, label %between, label %forward
between:
  br label %reverse
reverse:
  %r = phi i64 [ 0, %between ], [ %next, %reverse ]
  %number = {number}
  %place = getelementptr inbounds ptr, ptr %tape, i64 %number
  %found = load ptr, ptr %place, align 8
  %v = load double, ptr %found, align 8
  %w = fadd double %v, 1.0
  store double %w, ptr %found, align 8
  %next = add nuw nsw i64 %r, 1
  %end = icmp eq i64 %next, 100
  br i1 %end, label %exit, label %reverse
exit:
  ret i64 0
}}
"""


@pytest.mark.parametrize(
    ("number", "besides", "independent"),
    [
        ("sub nuw nsw i64 99, %r", "", True),
        ("lshr i64 %r, 1", "", False),
        ("and i64 %r, 63", "", False),
        ("add i64 %r, 0", "store ptr %own, ptr %tape, align 8", False),
        (
            "add i64 %r, 0",
            "%part = getelementptr i8, ptr %own, i64 8\n  store ptr %part, ptr %next.slot, align 8",
            False,
        ),
        ("add i64 %r, 0", "%again = load ptr, ptr %slot, align 8\n  store ptr %again, ptr %next.slot, align 8", False),
        ("add i64 %r, 0", "%word = load i64, ptr %slot, align 8\n  store i64 %word, ptr %next.slot, align 8", False),
        ("add i64 %r, 0", "call void @je.arena.reset(ptr %arena, i64 0)", False),
        ("add i64 %r, 0", "call void @starts_again(ptr %arena)", False),
    ],
)
def test_an_iteration_has_what_it_finds_in_its_own_slot(number: str, besides: str, *, independent: bool) -> None:
    module = parse(_LOOPS.format(number=number, besides=besides))
    facts = Independence(module, module.functions["f"])
    loop = next(loop for loop in facts.loops.all if loop.header.name == "reverse")
    found = facts.examine(loop, locals_are_private=False)
    assert isinstance(found, Independent) is independent, found
