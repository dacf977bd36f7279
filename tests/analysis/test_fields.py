"""Which pointers are where in a record, and how far the elements of an array reach."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.congruence import Congruence, overlap
from jax_enzyme.analysis.fields import points_to_by_place
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.places import Places
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Value

RECORD = """
; record: ptr, ptr, [4 x double], i64; the two pointers lead to different memory
define void @f(ptr %x, ptr %y, i64 %n) {
entry:
  %r = call ptr @malloc(i64 56)
  %copy = call ptr @malloc(i64 56)
  store ptr %x, ptr %r
  %second = getelementptr inbounds i8, ptr %r, i64 8
  store ptr %y, ptr %second
  %array = getelementptr inbounds i8, ptr %r, i64 16
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %at = getelementptr inbounds double, ptr %array, i64 %i
  %element = load double, ptr %at
  %i.next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %i.next, 5
  %wrapped = select i1 %done, i64 0, i64 %i.next
  %round = getelementptr inbounds double, ptr %array, i64 %wrapped
  br i1 %done, label %out, label %loop

out:
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %second, i64 8, i1 false)
  %a = load ptr, ptr %r
  %b = load ptr, ptr %second
  %c = load ptr, ptr %copy
  %copy.second = getelementptr inbounds i8, ptr %copy, i64 8
  %nothing = load ptr, ptr %copy.second
  %any.at = getelementptr inbounds ptr, ptr %r, i64 %n
  %any = load ptr, ptr %any.at
  %half.at = getelementptr inbounds i8, ptr %r, i64 4
  %half = load i64, ptr %half.at
  %moved = call ptr @realloc(ptr %r, i64 112)
  %moved.second = getelementptr inbounds i8, ptr %moved, i64 8
  %d = load ptr, ptr %moved.second
  ret void
}

declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@pytest.fixture(name="solved")
def _solved() -> PointsTo:
    module = parse(RECORD)
    return points_to_by_place(module, module.functions["f"])


def _value(points_to: PointsTo, name: str) -> Value:
    return next(i for i in points_to.root.instructions() if i.name == name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", {"x"}),
        ("b", {"y"}),
        ("c", {"y"}),
        ("nothing", set[str]()),
        ("any", {"x", "y"}),
        ("half", {"x", "y"}),
        ("d", {"y"}),
        ("element", set[str]()),
    ],
)
def test_members(solved: PointsTo, name: str, expected: set[str]) -> None:
    found = {o.site.name for o in solved.of(_value(solved, name)) if o.site is not None}
    assert found == expected


def test_contents_are_all_members(solved: PointsTo) -> None:
    record = solved.objects[_value(solved, "r")]
    assert {o.site.name for o in solved.contents[record] if o.site is not None} == {"x", "y"}


@pytest.mark.parametrize("name", ["at", "round"])
def test_elements_end_where_the_loop_does(solved: PointsTo, name: str) -> None:
    (places,) = Places(solved).within(_value(solved, name)).values()
    spans = [c.span for c in places if c.span is not None]
    assert len(spans) == len(places)
    assert (min(first for first, _ in spans), max(last for _, last in spans)) == (16, 48)
    (place,) = Places(solved).of(_value(solved, name)).values()
    assert place == Congruence(0, 8)


def test_bounded_arithmetic() -> None:
    counter = Congruence.bounded(0, 4, 1)
    elements = counter * Congruence(8, 0) + Congruence(16, 0)
    assert elements == Congruence.bounded(16, 48, 8)
    assert Congruence(100, 0) - elements == Congruence.bounded(52, 84, 8)
    assert elements + Congruence(0, 8) == Congruence(0, 8)
    assert Congruence(0, 1).masked(7) == Congruence.bounded(0, 7, 1)
    assert not overlap(elements, 8, Congruence(56, 0), 4)
    assert overlap(elements, 8, Congruence(55, 0), 4)
    assert not overlap(elements, 4, Congruence(20, 0), 4)
    assert overlap(elements, 4, Congruence(0, 8), 4)
