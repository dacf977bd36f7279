"""Which integers are constants of a call, and how those of a counter go on."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.call_constants import CallConstants
from jax_enzyme.ir.reader import parse

TEXT = """
define void @root(ptr %x, i32 %free) {
  %n = alloca i32
  store i32 7, ptr %n
  call void @f(i32 4, ptr %n, i32 %free)
  ret void
}

define void @f(i32 %four, ptr %n, i32 %free) {
entry:
  %seven = load i32, ptr %n
  %zero = sub i32 %four, 4
  %mixed = srem i32 %seven, %four
  %minus = xor i8 -1, 0
  %wide = zext i8 %minus to i32
  %cut = trunc i32 263 to i8
  %unknown = add i32 %free, 4
  %none = udiv i32 %four, %zero
  br label %loop

loop:
  %i = phi i32 [ %four, %entry ], [ %next, %loop ]
  %j = sub i32 10, %i
  %k = mul i32 %j, 3
  %masked = and i32 %j, 3
  %next = add i32 %i, 2
  %done = icmp eq i32 %next, 20
  br i1 %done, label %out, label %loop

out:
  ret void
}
"""
FOUND = {
    "four": (4, 0), "seven": (7, 0), "zero": (0, 0), "mixed": (3, 0), "minus": (-1, 0), "wide": (255, 0), "cut": (7, 0),
    "unknown": None, "none": None, "i": (4, 2), "j": (6, -2), "k": (18, -6), "masked": None,
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str) -> None:
    module = parse(TEXT)
    function = module.functions["f"]
    value = next(v for v in [*function.arguments, *function.instructions()] if v.name == name)
    assert CallConstants(module.functions["root"]).of(value) == FOUND[name]


@pytest.mark.parametrize(
    ("name", "number", "expected"), [("j", 0, True), ("j", 8, False), ("j", 1, False), ("i", 2, False)]
)
def test_what_a_counter_comes_to(name: str, number: int, expected: bool) -> None:
    module = parse(TEXT)
    value = next(i for i in module.functions["f"].instructions() if i.name == name)
    assert CallConstants(module.functions["root"]).may_be(value, number) is expected
