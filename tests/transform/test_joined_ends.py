"""Marked loops of which LLVM has made several ends of an iteration end in one place again, or stay as they are."""

from __future__ import annotations

import pytest

from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import verify
from jax_enzyme.transform.joined_latches import join_latches

_LOOP = """
define void @f(ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi i64 [ 0, %entry ], [ %sum, %latch ]
  %up = icmp ult i64 %i, 9
  br i1 %up, label %way0, label %low
{ways}way{count}:
  br label %latch
low:
  %p = getelementptr inbounds i64, ptr %y, i64 %i
  store i64 %s, ptr %p, align 8
  %done = icmp eq i64 %i, 9
  br i1 %done, label %exit, label %latch
latch:
  %rest = sub i64 9, %i
  %part = {operation}
  %sum = add i64 %s, %part
  %next = add i64 %i, 1
  br label %loop, !je.loop !0
exit:
  ret void
}}
!0 = !{{!"je.parallel"}}
"""
_WAY = """way{0}:
  %c{0} = icmp ult i64 %n, {0}
  br i1 %c{0}, label %left{0}, label %right{0}
left{0}:
  br label %way{1}
right{0}:
  br label %way{1}
"""


@pytest.mark.parametrize(
    ("operation", "ways", "joined"),
    [
        ("mul i64 %rest, 3", 0, True),
        ("sdiv i64 100, %rest", 0, False),  # by zero, if it ran in the last iteration
        ("mul i64 %rest, 3", 60, True),  # two ways at each: asked block by block, not way by way
    ],
)
def test_ends_of_iterations(operation: str, ways: int, joined: bool) -> None:
    text = "".join(_WAY.format(way, way + 1) for way in range(ways))
    module = parse(_LOOP.format(operation=operation, ways=text, count=ways))
    function = ArrayFunction(module, "f", ())
    mended = join_latches(function)
    verify(mended.module)
    assert (mended is not function) is joined
