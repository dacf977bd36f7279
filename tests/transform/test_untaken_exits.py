"""Exits of a loop that is left elsewhere before are none; all others stay."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.untaken_exits import leave_out_untaken_exits
from tests.analysis.interpreter import Run
from tests.support.verified import verify

_LOOP = """
define i64 @f(i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %at_first = icmp {first}
  br i1 %at_first, label %exit, label %inner
inner:
  {inner}
latch:
  {after}
  %next = add nuw nsw i64 %i, 1
  %at_last = icmp {last}
  br i1 %at_last, label %other, label %loop
exit:
  ret i64 %i
other:
  %found = phi i64 [ %next, %latch ]
  %far = add i64 %found, 1000
  ret i64 %far
}}
"""
_ON = "br label %latch"
_MAY_SKIP = """%odd = trunc i64 %i to i1
  br i1 %odd, label %skip, label %latch
skip:
  br label %latch"""
_JOINS = """%none = icmp eq i64 %i, 0
  br i1 %none, label %latch, label %ask
ask:
  %after.asked = add nuw nsw i64 %i, 1
  %is_end = icmp eq i64 %i, 9
  br i1 %is_end, label %exit, label %latch"""
_ASKS_AGAIN = """%low = icmp ult i64 %i, 9
  br i1 %low, label %latch, label %high
high:
  %is_end = icmp eq i64 %i, 9
  br i1 %is_end, label %exit, label %latch"""


@pytest.mark.parametrize(
    ("first", "last", "inner", "left"),
    [
        ("eq i64 %i, 9", "eq i64 %next, 10", _ON, ["loop"]),  # both in one iteration: the first one asks before
        ("eq i64 %i, 9", "eq i64 %next, 12", _MAY_SKIP, ["loop"]),
        ("eq i64 %i, 10", "eq i64 %next, 10", _ON, ["latch"]),
        ("eq i64 %i, 20", "eq i64 %after, 10", _JOINS, ["ask"]),
        (
            "eq i64 %i, 20",
            "eq i64 %next, 10",
            _ASKS_AGAIN,
            ["inner"],
        ),  # who comes to `high` leaves, and then nobody at the latch
        ("eq i64 %i, 9", "eq i64 %next, %n", _ON, ["latch", "loop"]),  # nobody knows which is before
        ("eq i64 %i, %n", "ugt i64 %next, %n", _ON, ["latch", "loop"]),  # may wrap
    ],
)
def test_the_exit_that_is_taken_first_is_left(first: str, last: str, inner: str, left: list[str]) -> None:
    after = "%after = phi i64 [ 1, %inner ], [ %after.asked, %ask ]" if inner is _JOINS else ""
    module = parse(_LOOP.format(first=first, last=last, inner=inner, after=after))
    function = ArrayFunction(module, "f", ())
    mended = leave_out_untaken_exits(function)
    verify(mended.module)
    (loop,) = Loops.of(mended.module.functions["f"]).all
    assert sorted(b.name for b in loop.exiting) == left
    assert (mended is function) is (left == ["latch", "loop"])
    for n in (3, 9, 10, 11):
        assert _way(module, n) == _way(mended.module, n)


def _way(module: Module, n: int) -> list[str]:
    """The blocks to which control comes."""
    found: list[str] = []
    Run(module.functions["f"], [n], lambda *_: None, lambda _, block: found.append(block.name)).go()
    return found
