"""Marked loops of which LLVM has made several ends of an iteration end in one place again, or stay as they are."""

from __future__ import annotations

import itertools

import pytest

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.joined_ends import join_ends, join_marked_ends
from tests.analysis.interpreter import Run
from tests.support.verified import verify

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
    mended = join_marked_ends(function)
    verify(mended.module)
    assert (mended is not function) is joined


_TWO = """
define i64 @f(i64 %n, i64 %m) {{
entry:
  br label %start
start:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi i64 [ 0, %entry ], [ %kept, %latch ]
  %none = icmp eq i64 %m, 0
  br i1 %none, label %short, label %inner
inner:
  %k = phi i64 [ 0, %start ], [ %k.next, %inner ]
  %t = phi i64 [ %s, %start ], [ %t.next, %inner ]
  %t.next = add i64 %t, %k
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %m
  br i1 %more, label %inner, label %long
short:
  %a = mul i64 %s, 3
  %a.kept = add i64 %a, {short}
  %a.last = icmp eq i64 %i, %n
  br i1 %a.last, label %exit, label %latch
long:
  %t.left = phi i64 [ %t.next, %inner ]
  %b = mul i64 %t.left, 3
  %b.kept = {long}
  %b.last = icmp eq i64 %i, %n
  br i1 %b.last, label %{exit}, label %latch
latch:
  %kept = phi i64 [ %a.kept, %short ], [ %b.kept, %long ]
  %next = add i64 %i, 1
  br label %start
exit:
  %r = phi i64 [ %a.kept, %short ]{more}
  ret i64 %r
other:
  %q = phi i64 [ %b.kept, %long ]
  %j = phi i64 [ %i, %long ]
  %o = xor i64 %q, %j
  ret i64 %o
}}
"""


@pytest.mark.parametrize("exit_", ["exit", "other"])
@pytest.mark.parametrize(("short", "long", "moved"), [("7", "add i64 %b, 9", True), ("7", "sub i64 %b, 9", False)])
def test_two_ends_of_iterations_with_loops_inside(exit_: str, short: str, long: str, moved: bool) -> None:
    """Where they are alike all of them is one; otherwise what they ask is."""
    more = ", [ %b.kept, %long ]" if exit_ == "exit" else ""
    text = _TWO.format(short=short, long=long, exit=exit_, more=more)
    text = text if exit_ == "other" else text[: text.index("other:")] + "}\n"
    before, module = parse(text).functions["f"], parse(text)
    after = module.functions["f"]
    assert join_ends(after, lambda loop: bool(loop.children))
    verify(module)
    latch = next(b for b in after.blocks if b.name == "latch")
    assert isinstance(latch.terminator, I.CondBranch)
    assert sum(i.opcode == "mul" for i in after.instructions()) == (1 if moved else 2)
    assert not join_ends(after, lambda loop: bool(loop.children))
    for n, m in itertools.product(range(4), range(4)):
        assert _result(before, n, m) == _result(after, n, m)


def _result(function: Function, *numbers: int) -> object:
    run = Run(function, [*numbers], lambda _, __: None, lambda _, __: None)
    run.go()
    returned = (v for v in function.returned() if v in run.registers)
    return [run.registers[v] for v in returned]
