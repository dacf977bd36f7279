"""Which pointers are where in a record, and how far the elements of an array reach."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.congruence import Congruence, overlap
from jax_enzyme.analysis.extents import at_multiple
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.table import standard

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
    return PointsTo(module, module.functions["f"])


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
    (places,) = solved.within(_value(solved, name)).values()
    spans = [c.span for c in places if c.span is not None]
    assert len(spans) == len(places)
    assert (min(first for first, _ in spans), max(last for _, last in spans)) == (16, 48)
    (place,) = solved.place(_value(solved, name)).values()
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


def test_overlap_between_records() -> None:
    """Nine numbers in one record, beside a member of each."""
    numbers = Congruence.bounded(656, 720, 8)
    members = [m for m in range(0, 472, 8) if overlap(numbers, 8, Congruence(m, 472), 8)]
    assert members == list(range(184, 256, 8)) == [m for m in members if overlap(Congruence(m, 472), 8, numbers, 8)]
    assert overlap(numbers, 8, Congruence(183, 472), 2) and not overlap(numbers, 8, Congruence(182, 472), 2)


def test_tables_that_never_change_are_not_written_to() -> None:
    module = parse("""
@table = internal constant [2 x double] zeroinitializer
define void @f(ptr %x, i1 %c) {
  %p = select i1 %c, ptr %x, ptr @table
  store ptr %x, ptr %p
  ret void
}
""")
    points_to = PointsTo(module, module.functions["f"])
    p = next(module.functions["f"].instructions())
    assert {str(o) for o in points_to.of(p)} == {"buffer x", "global table"}
    assert {str(o) for o in points_to.written(p)} == {"buffer x"}
    assert not points_to.contents[points_to.objects[module.globals["table"]]]


COUNTED = """
; record: i64 (counts owners), ptr to the next record, double; a list that is counted as it is walked
define void @f(ptr %x, i64 %n) {
entry:
  %head = call ptr @malloc(i64 24)
  store i64 1, ptr %head
  %head.next = getelementptr inbounds i8, ptr %head, i64 8
  store ptr %head, ptr %head.next
  br label %loop

loop:
  %at = phi ptr [ %head, %entry ], [ %next, %loop ]
  %count = load i64, ptr %at
  %more = add i64 %count, -1
  store i64 %more, ptr %at
  %next.at = getelementptr inbounds i8, ptr %at, i64 8
  %next = load ptr, ptr %next.at
  %value.at = getelementptr inbounds i8, ptr %next, i64 16
  %value = load double, ptr %value.at
  %done = icmp eq i64 %count, %n
  br i1 %done, label %out, label %loop

out:
  ret void
}

declare ptr @malloc(i64)
"""


def test_a_counter_beside_a_pointer_does_not_move_it() -> None:
    module = parse(COUNTED)
    function = module.functions["f"]
    solved = PointsTo(module, function)
    found = {i.name: i for i in function.instructions()}
    (head,) = solved.of(found["head"])
    assert solved.place(found["next"]) == {head: Congruence(0, 0)}
    assert solved.place(found["value.at"]) == {head: Congruence(16, 0)}
    assert not solved.of(found["count"])


CHILDREN = """
; node: i32, 8 bytes in front of four pointers; comparisons choose one of these
define void @f(ptr %x, double %a, double %b) {
entry:
  %node = call ptr @malloc(i64 48)
  store i32 -1, ptr %node
  %right = fcmp ogt double %a, 0.5
  %low = zext i1 %right to i64
  %above = fcmp ogt double %b, 0.5
  %high = select i1 %above, i64 2, i64 0
  %index = or disjoint i64 %high, %low
  %children = getelementptr inbounds i8, ptr %node, i64 8
  %child.at = getelementptr inbounds ptr, ptr %children, i64 %index
  store ptr %x, ptr %child.at
  %leaf = load i32, ptr %node
  ret void
}

declare ptr @malloc(i64)
"""


def test_comparisons_choose_one_of_few_places() -> None:
    module = parse(CHILDREN)
    function = module.functions["f"]
    solved = PointsTo(module, function)
    found = {i.name: i for i in function.instructions()}
    (places,) = solved.within(found["child.at"]).values()
    assert places == {Congruence(at, 0) for at in (8, 16, 24, 32)}
    assert not solved.of(found["leaf"])


GUARDED = """
; a table says where a pointer is stored, but the store is aligned
define void @f(ptr %x, ptr %table) {
entry:
  %record = call ptr @malloc(i64 64)
  %offset = load i64, ptr %table
  %at = getelementptr inbounds i8, ptr %record, i64 %offset
  store ptr %x, ptr %at, align 8
  %d = load double, ptr %at, align 4
  ret void
}

declare ptr @malloc(i64)
"""


def test_the_alignment_of_an_access_tells_about_its_place() -> None:
    module = parse(GUARDED)
    solved = PointsTo(module, module.functions["f"])
    described = Words(solved, {}).describe()
    assert "double at 0 mod 4, ptr at 0 mod 8" in described


def test_places_that_are_multiples() -> None:
    assert at_multiple(Congruence(0, 1), 8) == Congruence(0, 8)
    assert at_multiple(Congruence(4, 12), 8) == Congruence(16, 24)
    assert at_multiple(Congruence(8, 24), 8) == Congruence(8, 24)
    assert at_multiple(Congruence(3, 4), 8) == Congruence(3, 4)
    assert at_multiple(Congruence(5, 0), 8) == Congruence(5, 0)


UNSEEN = """
define double @f(ptr %x) {
  %outer = alloca ptr
  %inner = alloca ptr
  store ptr %inner, ptr %outer
  store ptr @square, ptr %inner
  call void @ext(ptr %outer, ptr @called)
  %code = load ptr, ptr %inner
  %r = call double %code(double 1.0)
  ret double %r
}

define double @square(double %x) {
  %y = fmul double %x, %x
  ret double %y
}

define void @called(ptr %data) {
  %inner = load ptr, ptr %data
  ret void
}

declare void @ext(ptr, ptr)
"""


def test_code_that_is_not_there_reaches_through_pointers_and_calls_what_it_is_given() -> None:
    module = parse(UNSEEN)
    solved = PointsTo(module, module.functions["f"])
    outer, inner, _, _, _, code, *_ = module.functions["f"].instructions()
    assert solved.unknown in solved.of(code)
    data = module.functions["called"].arguments[0]
    assert {solved.objects[outer], solved.objects[inner]} <= solved.of(data)


RESULT = """
; g leaves a value and its error; f gives the value, and where control goes depends on the error
define internal double @g(double %x, ptr %r) {{
  %value = fmul double %x, %x
  %error = fmul double %value, 0x3CB0000000000000
  store double %value, ptr %r
  %beside = getelementptr inbounds i8, ptr %r, i64 8
  store double %error, ptr %beside
  ret double %error
}}
define void @f(ptr noalias %x, ptr noalias %y, i64 %n) {{
entry:
  %one = alloca [16 x i8]
  %other = alloca [16 x i8]
  %in = load double, ptr %x
  %unused = call double @g(double %in, ptr %one)
  call void @llvm.memcpy.p0.p0.i64(ptr %other, ptr %one, i64 16, i1 false)
  %result = load double, ptr %other
  %place = getelementptr inbounds i8, ptr %other, i64 8
  %estimate = load double, ptr %place
  %large = fcmp ogt double %estimate, 1.0
  br i1 %large, label %out, label %good
good:
  %at = getelementptr inbounds double, ptr %other, i64 {index}
  %found = load double, ptr %at
  store double %found, ptr %y
  br label %out
out:
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@pytest.mark.parametrize(
    ("index", "useful"),
    [("0", {"value"}), ("1", {"value", "error"}), ("%n", {"value", "error"})],
)
def test_numbers_beside_those_that_an_output_depends_on(index: str, useful: set[str]) -> None:
    """An error is made of the value, not the other way round."""
    module = parse(RESULT.format(index=index))
    root = module.functions["f"]
    points_to = PointsTo(module, root)
    x, y = (points_to.objects[a] for a in root.arguments[:2])
    activity = Activity(points_to, standard(), [x], [y])
    stored = {i.name for i in module.functions["g"].instructions() if activity.value(i)}
    assert stored == useful
    loaded = {i.name for i in root.instructions() if activity.value(i)}
    assert loaded == {"in", "found"}
