"""Pointers in one object are told apart by where they lie."""

from __future__ import annotations

from jax_enzyme.analysis.fields import points_to_by_field
from jax_enzyme.ir.reader import parse

RECORDS = """
define void @f(ptr %n, ptr %x, i64 %i) {
  %r = alloca [4 x { ptr, ptr }]
  %c = alloca [4 x { ptr, ptr }]
  %first = getelementptr { ptr, ptr }, ptr %r, i64 %i, i32 0
  store ptr %n, ptr %first
  %second = getelementptr { ptr, ptr }, ptr %r, i64 %i, i32 1
  store ptr %x, ptr %second
  call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %r, i64 64, i1 false)
  %at.a = getelementptr { ptr, ptr }, ptr %c, i64 2, i32 0
  %a = load ptr, ptr %at.a
  %at.b = getelementptr { ptr, ptr }, ptr %c, i64 %i, i32 1
  %b = load ptr, ptr %at.b
  %at.any = getelementptr ptr, ptr %c, i64 %i
  %any = load ptr, ptr %at.any
  %between = getelementptr i8, ptr %c, i64 4
  %halves = load i64, ptr %between
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def test_loads_find_what_was_stored_at_their_place() -> None:
    module = parse(RECORDS)
    function = module.functions["f"]
    points_to = points_to_by_field(module, function)
    found = {i.name: {str(o) for o in points_to.of(i)} for i in function.instructions()}
    number, count = {"buffer x"}, {"buffer n"}
    assert found["a"] == count
    assert found["b"] == number
    assert found["any"] == found["halves"] == number | count


def test_tables_that_never_change_are_not_written_to() -> None:
    module = parse("""
@table = internal constant [2 x double] zeroinitializer
define void @f(ptr %x, i1 %c) {
  %p = select i1 %c, ptr %x, ptr @table
  store ptr %x, ptr %p
  ret void
}
""")
    function = module.functions["f"]
    points_to = points_to_by_field(module, function)
    (p, _, _) = function.instructions()
    assert {str(o) for o in points_to.of(p)} == {"buffer x", "global table"}
    assert {str(o) for o in points_to.written(p)} == {"buffer x"}
    assert not points_to.contents[points_to.objects[module.globals["table"]]]
