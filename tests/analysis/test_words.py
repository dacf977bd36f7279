"""Where pointers lead to in records, and which numbers lie there."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.congruence import ANY, MANY, Congruence, repeated
from jax_enzyme.analysis.extents import inside
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.tbaa import READS_INTEGER, accessed_type, copied_type, kept_access
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantTable, Value

RECORDS = """
%record = type { double, i32, float, [3 x float], ptr }

define void @f(i64 %n, ptr %x) {
entry:
  %a = call ptr @malloc(i64 4000)
  %b = call ptr @malloc(i64 4000)
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %last ]
  %r = getelementptr inbounds %record, ptr %a, i64 %i
  %d = load double, ptr %x, align 8
  store double %d, ptr %r, align 8
  %k.at = getelementptr inbounds i8, ptr %r, i64 8
  store i32 1, ptr %k.at, align 8
  %f = fptrunc double %d to float
  %f.at = getelementptr inbounds i8, ptr %r, i64 12
  store float %f, ptr %f.at, align 4
  %p.at = getelementptr inbounds i8, ptr %r, i64 32
  store ptr %r, ptr %p.at, align 8
  br label %inner

inner:
  %j = phi i64 [ 0, %loop ], [ %j.next, %inner ]
  %e.at = getelementptr inbounds %record, ptr %r, i64 0, i32 3, i64 %j
  store float %f, ptr %e.at, align 4
  %j.next = add nuw nsw i64 %j, 1
  %j.done = icmp eq i64 %j.next, 3
  br i1 %j.done, label %last, label %inner

last:
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %out, label %loop

out:
  %bytes = mul i64 %n, 40
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %bytes, i1 false)
  %s = getelementptr inbounds %record, ptr %b, i64 %n
  %s.k = getelementptr inbounds i8, ptr %s, i64 8
  %s.p = getelementptr inbounds i8, ptr %s, i64 32
  %t = load ptr, ptr %s.p, align 8
  %anywhere = getelementptr inbounds i8, ptr %b, i64 %n
  ret void
}

declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def _value(function: Function, name: str) -> Value:
    return next(i for i in function.instructions() if i.name == name)


@pytest.fixture(name="words")
def _words() -> Words:
    module = parse(RECORDS)
    return Words(PointsTo(module, module.functions["f"]), {})


def pieces(words: Words, name: str, size: int) -> list[tuple[int, str]]:
    found = words.numbers(_value(words.points_to.root, name), size)
    assert found is not None
    return sorted((offset, str(type_)) for offset, type_ in found)


def test_numbers_of_a_record_that_was_copied(words: Words) -> None:
    assert pieces(words, "s", 8) == [(0, "double")]
    assert pieces(words, "s.k", 4) == []
    assert pieces(words, "s.k", 8) == [(4, "float")]
    assert pieces(words, "s.k", 24) == [(4, "float"), (8, "float"), (12, "float"), (16, "float")]
    assert pieces(words, "s.p", 8) == []


def test_pointers_of_a_record_that_was_copied(words: Words) -> None:
    root = words.points_to.root
    assert words.pointers(_value(root, "s.p"), 8) == {(0, T.PTR)}
    assert words.pointers(_value(root, "s"), 8) == frozenset()
    (place,) = words.points_to.place(_value(root, "t")).values()
    assert place == Congruence(0, 40)


def test_what_is_anywhere_meets_everything(words: Words) -> None:
    found = pieces(words, "anywhere", 4)
    assert {(-7, "double"), (3, "double"), (-3, "float"), (3, "float")} <= set(found)


def test_pattern_of_a_copy(words: Words) -> None:
    copy = next(i for i in words.points_to.root.instructions() if isinstance(i, I.Call) and len(i.arguments) == 4)
    found = words.pattern((copy.arguments[0], copy.arguments[1]))
    assert found is not None
    period, held = found
    assert period == 40
    assert sorted((o, str(t)) for o, t in held) == [
        (0, "double"), (12, "float"), (16, "float"), (20, "float"), (24, "float"), (32, "ptr")
    ]  # fmt: skip


def test_congruences() -> None:
    assert Congruence(3, 0).join(Congruence(15, 0)) == Congruence(3, 12)
    assert Congruence(3, 12).join(Congruence(9, 0)) == Congruence(3, 6)
    assert Congruence(1, 4) * Congruence(6, 0) == Congruence(6, 24)
    assert Congruence(5, 24).cut() == Congruence(5, 8)
    assert Congruence(0, 0) - Congruence(4, 16) == Congruence(12, 16)
    assert Congruence(1, 3) * Congruence(1 << 40, 0) == Congruence.of(0, 1 << 40)
    assert Congruence(7, 24).masked(-8) == Congruence(0, 8)
    assert Congruence(7, 24).join(ANY) == ANY


def test_nothing_is_outside_of_an_object() -> None:
    assert inside(Congruence(0, 8), 8, 24) == Congruence(0, 8)
    assert inside(Congruence(16, 24), 8, 24) == Congruence(16, 0)  # the next one would be outside
    assert inside(ANY, 8, 8) == Congruence(0, 0)
    assert inside(Congruence(24, 0), 8, 24) is None
    assert inside(Congruence(4, 8), 8, 8) is None
    assert inside(Congruence(24, 0), 8, None) == Congruence(24, 0)


def test_many_places_repeat_with_the_longest_period() -> None:
    assert repeated(Congruence(104, 0), [Congruence(0, 0), Congruence(0, 88), Congruence(8, 8)]) == Congruence(16, 88)
    assert repeated(Congruence(104, 0), [Congruence(0, 0), Congruence(16, 0)]) == Congruence(0, 8)
    assert repeated(Congruence(5, 0), [Congruence(0, 88)] * 2 * MANY) == ANY


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("place", [Congruence(0, 1), Congruence(6, 8), Congruence(5, 24), Congruence(-3, 0)], ids=str)
def test_shifts_to_the_right(place: Congruence, signed: bool) -> None:
    """Of all integers of six bits: those that are at a place are, after both shifts, where the analysis says."""
    bits, up = 6, 2
    for by in range(bits):
        after = (place * Congruence(1 << up, 0)).shifted_right(by, bits, signed=signed)
        for number in range(-100, 100):
            if number != place.offset and not (place.modulus and (number - place.offset) % place.modulus == 0):
                continue
            wrapped = (number << up) % (1 << bits)
            wrapped -= (1 << bits) if signed and wrapped >> (bits - 1) else 0
            away = (wrapped >> by) - after.offset
            assert away == 0 if after.modulus == 0 else away % after.modulus == 0


BITS = """
define void @f(ptr %x, ptr %k) {
  %a = alloca double
  %d = load double, ptr %x
  store double %d, ptr %a
  %copied = load i64, ptr %a
  %kind = load i64, ptr %k
  %said = load i64, ptr %a, !tbaa !0
  %cast = bitcast double %d to i64
  %more = add i64 %kind, 1
  %mixed = xor i64 %more, %copied
  %rounded = fptosi double %d to i64
  %test = fcmp ogt double %d, 0.0
  %wide = zext i1 %test to i64
  %least = call i64 @llvm.umin.i64(i64 %more, i64 %wide)
  %chosen = select i1 %test, i64 %least, i64 %cast
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)

!0 = !{!1, !1, i64 0}
!1 = !{!"je integer", !2, i64 0}
!2 = !{!"jax_enzyme"}
"""


def test_integers_that_may_be_bits() -> None:
    module = parse(BITS)
    function = module.functions["f"]
    words = Words(PointsTo(module, function), {})
    found = {i.name for i in function.instructions() if i.type == T.I64 and words.may_be_bits(i)}
    assert found == {"copied", "cast", "mixed", "chosen"}


COPIES = """
define void @f(ptr %x, ptr %p) {
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 16, i1 false), !tbaa !1
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 16, i1 false), !tbaa !4
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 16, i1 false), !tbaa.struct !6
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 16, i1 false), !tbaa.struct !7
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 24, i1 false), !tbaa.struct !6
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %p, i64 24, i1 false), !tbaa.struct !8
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

!0 = !{!"Simple C/C++ TBAA"}
!1 = !{!2, !2, i64 0}
!2 = !{!"double", !3, i64 0}
!3 = !{!"omnipotent char", !0, i64 0}
!4 = !{!5, !5, i64 0}
!5 = !{!"int", !3, i64 0}
!6 = !{i64 0, i64 8, !1, i64 8, i64 8, !1}
!7 = !{i64 0, i64 8, !1, i64 8, i64 4, !4}
!8 = !{i64 0, i64 8, !1, i64 16, i64 8, !1}
"""


def test_types_of_copies() -> None:
    """A copy of numbers is one, and so is one of structures of nothing else, without gaps. One of integers may be of
    their bits; what a derivative says of its own is kept."""
    module = parse(COPIES)
    copies = [i for i in module.functions["f"].instructions() if isinstance(i, I.CallBase)]
    assert [copied_type(module, c) for c in copies] == [T.DOUBLE, None, None, T.DOUBLE, None, None, None]
    copies[2].metadata.append(READS_INTEGER)
    assert copied_type(module, copies[2]) == T.I1
    for copy in copies:
        copy.metadata = kept_access(module, copy)
    assert [copied_type(module, c) for c in copies] == [T.DOUBLE, None, T.I1, T.DOUBLE, None, None, None]
    assert [accessed_type(module, c) for c in copies[:4]] == [T.DOUBLE, T.I1, T.I1, T.DOUBLE]


def test_numbers_of_a_long_table() -> None:
    rows = ", ".join(f"%row {{ i32 {n}, [2 x double] [double {n}.5, double 0.0] }}" for n in range(300))
    module = parse(
        "%row = type { i32, [2 x double] }\n"
        f"@table = internal constant [300 x %row] [{rows}], align 16\n"
        "define void @f(i64 %n) {\n"
        "  %r = getelementptr inbounds %row, ptr @table, i64 %n\n"
        "  %x = getelementptr inbounds i8, ptr %r, i64 8\n"
        "  ret void\n}\n"
    )
    assert isinstance(module.globals["table"].initializer, ConstantTable)
    words = Words(PointsTo(module, module.functions["f"]), {})
    assert pieces(words, "r", 8) == []
    assert pieces(words, "x", 16) == [(0, "double"), (8, "double")]


def _many(count: int) -> tuple[Words, list[Value]]:
    """A copy from one of so many objects, each with a number at a place of its own, to one of as many others."""
    ends = [f"%{end}{i} = call ptr @malloc(i64 800)" for end in ("from", "to") for i in range(count)]
    places = [f"%at{i} = getelementptr i8, ptr %from{i}, i64 {8 * i + 8}" for i in range(count)]
    stores = [f"store double 1.0, ptr %at{i}" for i in range(count)]
    chosen = [
        f"%{end}.{i} = select i1 %c, ptr %{end}{i}, ptr %{end}{'' if i == 1 else '.'}{i - 1}"
        for end in ("from", "to")
        for i in range(1, count)
    ]
    copy = f"call void @llvm.memcpy.p0.p0.i64(ptr %to.{count - 1}, ptr %start, i64 %n, i1 false)"
    start = f"%start = getelementptr i8, ptr %from.{count - 1}, i64 8"
    body = "\n".join([*ends, *places, *stores, *chosen, start, copy])
    module = parse(
        f"define void @f(i1 %c, i64 %n) {{\n{body}\nret void\n}}\n"
        "declare ptr @malloc(i64)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    )
    root = module.functions["f"]
    return Words(PointsTo(module, root), {}), [_value(root, f"{end}{count - 1}") for end in ("from", "to")]


def test_a_copy_between_many_objects_carries_what_each_of_them_holds_to_each_other() -> None:
    words, (source, target) = _many(4)
    assert words.numbers(source, 800) == {(8 * i + 8, T.DOUBLE) for i in range(4)}  # and back
    assert words.numbers(target, 800) == {(8 * i, T.DOUBLE) for i in range(4)}


def test_a_copy_between_many_objects_takes_work_in_proportion_to_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[int] = []
    carry = Words._carry  # pyright: ignore[reportPrivateUsage]

    def counted(self: Words, facts: object, found: list[object]) -> None:
        ways.append(len(found))
        carry(self, facts, found)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Words, "_carry", counted)
    for count in (8, 16):
        words, (_, target) = _many(count)
        words.numbers(target, 8)
    assert ways[1] <= 2.2 * ways[0]


def test_beyond_many_facts_they_are_the_same_in_whatever_order_a_pointer_has_its_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = MANY // 3
    text = "".join(
        f"""
  %a{n} = getelementptr i8, ptr %m, i64 {144 * n}
  %b{n} = getelementptr i8, ptr %m, i64 {144 * n + 48}
  %c{n} = getelementptr i8, ptr %m, i64 {144 * n + 96 + 16 * (n == last)}
  %d{n} = select i1 %x, ptr %a{n}, ptr %b{n}
  %p{n} = select i1 %x, ptr %d{n}, ptr %c{n}
  store double 1.0, ptr %p{n}, align 1"""
        for n in range(last + 1)
    )
    copy = "call void @llvm.memcpy.p0.p0.i64(ptr %z, ptr %m, i64 40000, i1 false)"
    made = "%m = call ptr @malloc(i64 40000)\n  %z = call ptr @malloc(i64 40000)"
    heads = "declare ptr @malloc(i64)\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    module = parse(f"{heads}\ndefine void @f(i1 %x) {{\n  {made}{text}\n  {copy}\n  ret void\n}}")
    points_to = PointsTo(module, module.functions["f"])
    places = points_to.places

    def told(*, turned: bool) -> str:
        def in_order(pointer: Value) -> dict[object, list[Congruence]]:
            return {o: sorted(offsets, reverse=turned) for o, offsets in places(pointer).items()}

        monkeypatch.setattr(points_to, "places", in_order)
        return Words(points_to, {}).describe()

    assert told(turned=False) == told(turned=True)
