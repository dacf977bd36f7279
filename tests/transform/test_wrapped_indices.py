"""A mask goes where what it leaves is a number less a constant, and nowhere else."""

from __future__ import annotations

import pytest

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import int_value
from jax_enzyme.transform.wrapped_indices import unwrap_indices
from tests.support.verified import verify

_LOOP = """
define void @f(ptr %x, i64 %n) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %i = add nuw nsw i64 %k, {first}
  %s = add i64 {of}, {moved}
  %j = and i64 %s, {mask}
  %p = getelementptr double, ptr %x, i64 %j
  store double 0x0000000000000000, ptr %p
  %next = add nuw nsw i64 %k, 1
  %done = icmp eq i64 %next, {times}
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


@pytest.mark.parametrize(
    ("first", "of", "moved", "mask", "times", "distance"),
    [
        (1, "%i", 4294967295, 4294967295, 100, -1),
        (2, "%i", 4294967294, 4294967295, 100, -2),
        (1, "%i", 4294967294, 4294967295, 100, None),  # the first is -1, which wraps around to the other end
        (2, "%k", 8, 7, 8, 0),
        (2, "%k", 9, 7, 7, -7 + 8),
        (2, "%k", 9, 7, 8, None),  # the last one begins anew
        (2, "%k", -16, 7, 8, 0),
        (2, "%n", 4294967295, 4294967295, 100, None),  # any number
        (2, "%k", 16, 5, 4, None),  # not all bits below some bit
    ],
)
def test_a_mask_is_a_distance(first: int, of: str, moved: int, mask: int, times: int, distance: int | None) -> None:
    module = parse(_LOOP.format(first=first, of=of, moved=moved, mask=mask, times=times))
    function = ArrayFunction(module, "f", ())
    told = unwrap_indices(function)
    verify(told.module)
    assert (told is function) is (distance is None)
    root = told.module.functions["f"]
    (index,) = (i.operands[1] for i in root.instructions() if isinstance(i, I.GetElementPtr))
    assert isinstance(index, I.BinaryOp)
    assert index.opcode == ("and" if distance is None else "add")
    assert distance in (None, int_value(index.operands[1]))
