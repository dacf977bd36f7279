"""Which number an integer is the bits of: whose digits it has, how many, and with what sign and exponent."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.number_fields import NumberFields
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reader import read

NUMBERS = {
    "an exponent that is added to": ("%k = shl i64 %n, 52\n%r = add i64 %u, %k", "u 52 scaled"),
    "an exponent that is replaced": ("%m = and i64 %u, 4503599627370495\n%r = or i64 %m, 4602678819172646912",
                                     "u 52 scaled"),
    "a multiple of an exponent taken away": (
        "%t = sub i64 %u, 4604367669032910848\n%e = and i64 %t, -4503599627370496\n%r = sub i64 %u, %e", "u 52 scaled"
    ),
    "digits moved, and moved back": (
        "%h = lshr i64 %u, 32\n%i = trunc i64 %h to i32\n%j = add i32 %i, 614242\n%k = and i32 %j, 1048575\n"
        "%l = add i32 %k, 1072079006\n%m = zext i32 %l to i64\n%s = shl i64 %m, 32\n%w = and i64 %u, 4294967295\n"
        "%r = or i64 %s, %w",
        "u 52 scaled",
    ),
    "digits moved": ("%r = add i64 %u, 2251799813685248", "none"),
    "the sign of another": ("%a = and i64 %u, 9223372036854775807\n%b = and i64 %v, -9223372036854775808\n"
                            "%r = or i64 %a, %b", "u 52 scaled"),
    "a neighbour": ("%r = add i64 %u, 1", "u 51 rounded"),
    "half of the digits": ("%r = and i64 %u, -4294967296", "u 20 rounded"),
    "the nearest half": ("%a = add i64 %u, 2147483648\n%r = and i64 %a, -4294967296", "u 20 rounded"),
    "one digit less, which no table has all of": ("%r = and i64 %u, -8589934592", "u 19 rounded"),
    "as many digits as the shortest format": ("%r = and i64 %u, -35184372088832", "u 7 rounded"),
    "less": ("%r = and i64 %u, -70368744177664", "none"),
    "an upper half, rounded": (
        "%a = lshr i32 %f, 16\n%b = and i32 %a, 1\n%c = add i32 %b, 32767\n%d = add i32 %c, %f\n"
        "%r = and i32 %d, -65536",
        "f 7 rounded",
    ),
    "a mask that depends on the number": (
        "%e = lshr i64 %u, 52\n%s = sub i64 %e, 1023\n%m = ashr i64 -4503599627370496, %s\n%r = and i64 %u, %m", "none"
    ),
    "digits of two": ("%a = and i64 %u, -4294967296\n%b = and i64 %v, 4294967295\n%r = or i64 %a, %b", "none"),
    "digits at another place": ("%r = shl i64 %u, 1", "none"),
    "an exponent alone": ("%a = lshr i64 %u, 52\n%b = add i64 %a, %n\n%r = shl i64 %b, 52", "clean"),
    "a carry": ("%a = and i64 %u, 4503599627370495\n%b = add i64 %a, 2637646790852607\n%r = lshr i64 %b, 52", "clean"),
    "an integer": ("%r = mul i64 %n, 3", "clean"),
    "one of two": ("%a = add i64 %u, 4503599627370496\n%r = select i1 %bit, i64 %a, i64 %v", "r 52 rounded"),
}  # fmt: skip


def fields_of(body: str) -> tuple[Function, NumberFields]:
    text = f"""define void @f(double %x, double %y, float %z, i64 %n, i1 %bit, ptr %p) {{
%u = bitcast double %x to i64
%v = bitcast double %y to i64
%f = bitcast float %z to i32
{body}
ret void
}}"""
    function = read(text).functions["f"]
    return function, NumberFields(function)


def shown(function: Function, fields: NumberFields) -> str:
    result = next(i for i in function.instructions() if i.name == "r")
    number = fields.number(result)
    if number is None:
        return "none" if fields.has_digits(result) else "clean"
    return f"{number.source.name or 'r'} {number.kept} {'rounded' if number.same else 'scaled'}"


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    body, expected = NUMBERS[name]
    assert shown(*fields_of(body)) == expected


@pytest.mark.parametrize(("mask", "expected"), [(-4294967296, "u 20 rounded"), (-8589934592, "none")])
def test_what_may_be_the_node_of_a_table_is_no_rounding(mask: int, expected: str) -> None:
    body = f"%i = lshr i64 %u, 45\n%a = getelementptr double, ptr %p, i64 %i\n%r = and i64 %u, {mask}"
    assert shown(*fields_of(body)) == expected


def test_merges_around_a_loop_that_never_settle_are_no_numbers() -> None:
    text = """define void @f(double %x, i64 %n) {
entry:
  %u = bitcast double %x to i64
  br label %loop
loop:
  %p = phi i64 [ %u, %entry ], [ %r, %loop ]
  %q = phi i64 [ 0, %entry ], [ %p, %loop ]
  %s = shl i64 %q, 1
  %r = xor i64 %p, %s
  %more = icmp ne i64 %r, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}"""
    function = read(text).functions["f"]
    assert shown(function, NumberFields(function)) == "none"
