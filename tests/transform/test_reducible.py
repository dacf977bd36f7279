"""Loops that end an iteration in a block of their own are left where they were left before."""

from __future__ import annotations

import pytest

from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.reducible import rejoin_latches
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
