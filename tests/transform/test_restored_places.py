"""Numbers that are cleared in front of a loop and put back behind it stay where they are, where nothing reads them."""

from __future__ import annotations

import pytest

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.restored_places import keep_restored_places
from tests.support.verified import verify

_LOOP = """
define i64 @f(ptr noalias %a, ptr noalias %b) {{
entry:
  br label %rows
rows:
  %i = phi i64 [ 0, %entry ], [ %more, %end ]
  %p = getelementptr inbounds double, ptr %a, i64 %i
  %t = load double, ptr %p, align 8
  store double 0.0, ptr %p, align 8
  br label %row
row:
  %j = phi i64 [ 0, %rows ], [ %next, %row ]
  %s = phi double [ 0.0, %rows ], [ %sum, %row ]
  %first = add nsw i64 %i, {first}
  %at = add nsw i64 %first, %j
  %q = getelementptr inbounds double, ptr %a, i64 %at
  %v = load double, ptr %q, align 8
  %sum = fadd double %s, %v
  %next = add nuw nsw i64 %j, 1
  %stop = icmp eq i64 %next, 50
  br i1 %stop, label %end, label %row
end:
  {added}
  store double {back}, ptr %p, align 8
  %r = getelementptr inbounds double, ptr %b, i64 %i
  store double %sum, ptr %r, align 8
  %more = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %more, 40
  br i1 %done, label %exit, label %rows
exit:
  ret i64 0
}}
"""


@pytest.mark.parametrize(
    ("first", "back", "stores"),
    [(1, "%t", 1), (0, "%t", 3), (-1, "%t", 3), (-49, "%t", 3), (-50, "%t", 1), (1, "%sum", 3)],
)
def test_what_is_put_back_stays_where_nothing_in_between_touches_it(first: int, back: str, stores: int) -> None:
    function = ArrayFunction(parse(_LOOP.format(first=first, back=back, added="")), "f", ())
    _check(function, stores)


_ADDED = "%at.again = getelementptr inbounds double, ptr %a, i64 {at}\n  %again = load double, ptr %at.again, align 8\n"


@pytest.mark.parametrize(
    ("cleared", "at", "added", "stores"),
    [
        ("0.0", "%i", "fadd nsz double %again, %t", 1),
        ("0.0", "%i", "fadd double %again, %t", 3),  # may be -0.0
        ("1.0", "%i", "fadd nsz double %again, %t", 3),
        ("0.0", "%first", "fadd nsz double %again, %t", 3),  # what another place holds
        ("0.0", "%i", "fadd nsz double %again, %again", 3),
        ("0.0", "%i", "fsub nsz double %again, %t", 3),
    ],
)
def test_what_is_added_to_a_zero_is_put_back(cleared: str, at: str, added: str, stores: int) -> None:
    text = _LOOP.format(first=1, back="%added", added=f"{_ADDED.format(at=at)}  %added = {added}")
    _check(ArrayFunction(parse(text.replace("store double 0.0", f"store double {cleared}")), "f", ()), stores)


def _check(function: ArrayFunction, stores: int) -> None:
    changed = keep_restored_places(function)
    assert (changed is function) is (stores == 3)
    verify(changed.module)
    found = [i for i in changed.module.functions["f"].instructions() if isinstance(i, I.Store)]
    assert len(found) == stores
