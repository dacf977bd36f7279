"""Loops with several entries get one; those that end an iteration in a block of their own are left where they were
left before."""

from __future__ import annotations

import pytest

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.reducible import make_reducible, rejoin_latches
from tests.support.verified import verify

_LOOP = """
define i32 @f(i32 %n) {{
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  %next = add i32 %i, 1
  switch i32 %n, label %exit [ {} ]
latch:
  br label %loop
exit:
  ret i32 %i
}}
"""


@pytest.mark.parametrize(("edges", "blocks"), [(1, 3), (2, 4)])
def test_one_edge_can_take_the_place_of_a_latch(edges: int, blocks: int) -> None:
    """Each case of a switch is an edge, of which a phi tells one by one."""
    module = parse(_LOOP.format(" ".join(f"i32 {case}, label %latch" for case in range(edges))))
    rejoin_latches(module)
    verify(module)
    assert len(module.functions["f"].blocks) == blocks


_TWO_ENTRIES = """
define double @f(ptr %x, i1 %c) {
entry:
  br label %rows
rows:
  %i = phi i64 [ 0, %entry ], [ %more, %end ]
  %at = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %at
  br i1 %c, label %a, label %b
a:
  %p = phi double [ %v, %rows ], [ %r, %b ]
  %q = fmul double %p, 2.0
  br label %b
b:
  %s = phi double [ 0.0, %rows ], [ %q, %a ]
  %r = fadd double %s, 1.0
  %again = fcmp olt double %r, 9.0
  br i1 %again, label %a, label %end
end:
  store double %r, ptr %at
  %more = add i64 %i, 1
  %done = icmp eq i64 %more, 100
  br i1 %done, label %exit, label %rows
exit:
  ret double 0.0
}
"""


def test_nothing_that_a_loop_with_two_entries_computes_goes_on_around_the_loop_outside() -> None:
    module = run(make_reducible(parse(_TWO_ENTRIES)), ("sroa",))
    verify(module)
    rows = next(b for b in module.functions["f"].blocks if b.name == "rows")
    assert [str(i.type) for i in rows.instructions if isinstance(i, I.Phi)] == ["i64"]
