"""Which integers in memory may be addresses, by what the source calls them; and what copies of them leave alone."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.congruence import ANY, Congruence, copied_to
from jax_enzyme.analysis.memo import Memo
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.zeros import Zeros
from jax_enzyme.ir.reader import parse

COUNTED = """
define void @f(ptr %x, i64 %n) {{
entry:
  %head = call ptr @malloc(i64 24)
  %own = ptrtoint ptr %head to i64
  %far = ptrtoint ptr %x to i64
  %distance = sub i64 %far, %own
  %link = getelementptr inbounds i8, ptr %head, i64 %n
  store ptr %x, ptr %link, align 8, !tbaa !2
  store i64 {stored}, ptr %head, align 8, !tbaa !0
  %count = load i64, ptr %head, align 8, !tbaa !0
  %moved = load i64, ptr %head, align 8
  %other = load i64, ptr %link, align 8
  %handed = load i64, ptr %head, align 8, !tbaa !0
  %less = icmp ult i64 %count, %moved
  %next = add i64 %count, 1
  %at = getelementptr double, ptr %x, i64 %next
  %place = getelementptr i8, ptr %head, i64 16
  %odd = or i64 %handed, 1
  store i64 %odd, ptr %place, align 8, !tbaa !0
  ret void
}}
declare ptr @malloc(i64)
!0 = !{{!1, !1, i64 0}}
!1 = !{{!"long", !4, i64 0}}
!2 = !{{!3, !3, i64 0}}
!3 = !{{!"any pointer", !4, i64 0}}
!4 = !{{!"omnipotent char", !5, i64 0}}
!5 = !{{!"Simple C++ TBAA"}}
"""


@pytest.mark.parametrize("stored", ["%n", "%distance", "%own", "%other"])
def test_integers_are_plain_unless_they_go_on(stored: str) -> None:
    """Those that are compared and indexed with are, whatever lies there; one that goes on is what memory holds."""
    module = parse(COUNTED.format(stored=stored))
    points_to = PointsTo(module, module.functions["f"])
    loads = {i.name: i for i in points_to.root.instructions()}
    found = {name: not points_to.of(loads[name]) for name in ("count", "moved", "other", "handed")}
    assert found == {"count": True, "moved": True, "other": False, "handed": False}


def test_copies_change_nothing_beyond_their_length() -> None:
    here, there = Congruence(0, 0), Congruence(32, 0)
    assert copied_to(ANY, 8, here, there, 24) == Congruence.bounded(25, 55, 1)
    assert copied_to(Congruence(0, 8), 8, here, there, 24) == Congruence.bounded(32, 48, 8)
    assert copied_to(Congruence(16, 0), 8, here, there, 24) == Congruence(48, 0)
    assert copied_to(ANY, 8, here, there, None) == ANY
    assert copied_to(ANY, 8, here, Congruence(0, 24), 24) == ANY


def test_congruences_include_what_says_more() -> None:
    assert Congruence(0, 4).includes(Congruence(8, 0))
    assert Congruence(0, 4).includes(Congruence(4, 8))
    assert Congruence(0, 4).includes(Congruence.bounded(4, 12, 4))
    assert not Congruence(0, 4).includes(Congruence(2, 4))
    assert not Congruence(0, 4).includes(Congruence(0, 4))
    assert not Congruence(0, 4).includes(Congruence(0, 2))
    assert not Congruence.bounded(0, 8, 4).includes(Congruence(4, 0))


def test_facts_that_rest_on_no_cut_are_found_once() -> None:
    """Around the cycle a -> b -> a only b rests on what is assumed of a, so that b alone is found twice."""
    memo, computed = Memo(), list[str]()

    def fact(name: str) -> int:
        def compute() -> int:
            computed.append(name)
            return {"a": lambda: fact("b") + fact("c"), "b": lambda: fact("a") + fact("c"), "c": lambda: 1}[name]()

        return memo.get(name, compute, lambda: 0, name == "a")

    assert fact("a") == 2
    assert fact("b") == 3
    assert fact("c") == 1
    assert computed == ["a", "b", "c", "b"]


HANDLES = """
define void @f(ptr %x, ptr %y) {
entry:
  %table = alloca [2 x ptr], align 8
  %handle = alloca ptr, align 8
  %second = getelementptr inbounds i8, ptr %table, i64 8
  store ptr %x, ptr %table, align 8
  store ptr %y, ptr %second, align 8
  store ptr inttoptr (i64 1 to ptr), ptr %handle, align 8
  %held = load ptr, ptr %handle, align 8
  %number = ptrtoint ptr %held to i64
  %place = getelementptr ptr, ptr %table, i64 %number
  %found = load ptr, ptr %place, align 8
  ret void
}
"""


def test_numbers_that_are_kept_as_pointers_may_be_any() -> None:
    """Handles of libraries are such numbers: in Open MPI's interface those of persistent requests."""
    module = parse(HANDLES)
    points_to = PointsTo(module, module.functions["f"])
    found = next(i for i in points_to.root.instructions() if i.name == "found")
    assert {o.site for o in points_to.of(found)} == set(points_to.root.arguments)


ARENAS = """
define void @f(ptr %x, ptr %y, i64 %n) {
entry:
  %arena = alloca ptr, align 8
  store ptr null, ptr %arena, align 8
  %held = load ptr, ptr %arena, align 8
  %number = ptrtoint ptr %held to i64
  %past = add i64 %number, 7
  %aligned = and i64 %past, -8
  %room = inttoptr i64 %aligned to ptr
  %next = getelementptr i8, ptr %room, i64 %n
  %sum = add i64 %aligned, %n
  %other = inttoptr i64 %sum to ptr
  ret void
}
"""


def test_what_is_aligned_by_a_mask_leads_where_it_led_before_and_be_it_nowhere() -> None:
    """An allocator of a library that the program gives no memory: what it would hand out lies in none."""
    module = parse(ARENAS)
    points_to = PointsTo(module, module.functions["f"])
    found = {i.name: i for i in points_to.root.instructions()}
    assert not points_to.of(found["room"])
    assert Zeros(points_to).is_null(found["next"])
    assert points_to.of(found["other"]) == {points_to.unknown}, "a number may be an address"
