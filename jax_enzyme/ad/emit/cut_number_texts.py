"""The functions, in LLVM IR, that look whether copies and clearings cut numbers in two (`ad.emit.cut_numbers`):
i1 (to, from, bytes, others).
"""

from __future__ import annotations

from enum import Enum

from jax_enzyme.ad.emit.copies import Pattern
from jax_enzyme.ad.facts.cut_numbers import Grid
from jax_enzyme.ir import types as T

_TYPES = {4: ("float 0x7FF8000000000000", "i32", 0xFF << 23), 8: (f"i32 {0x7FF80000}", "i64", 0x7FF << 52)}
"""By size: what makes NaN of it, in its last four bytes; the word that has its bits, and in that its exponent."""
_TEXT = """
define internal i1 @{name}(ptr %to, ptr %from, i64 %bytes, i1 %others) nounwind {{
entry:
  %address = ptrtoint ptr %to to i64
  %at = sub i64 %address, {start}
  %other = ptrtoint ptr %from to i64
  %away = sub i64 %at, %other
  %apart = add i64 %away, {source_start}
  %shift = and i64 %apart, {mask}
  %begin = and i64 %at, {mask}
  %behind = add i64 %at, %bytes
  %end = and i64 %behind, {mask}
  %uneven.end = or i64 %begin, %end
  %uneven = or i64 %uneven.end, %shift
  %even = icmp eq i64 %uneven, 0
  %nothing = icmp eq i64 %bytes, 0
  %whole = or i1 %even, %nothing
  br i1 %whole, label %fine, label %cut

cut:
  %first = sub i64 0, %begin
  %most = sub i64 %bytes, 1
  %last.at = add i64 %at, %most
  %last.part = and i64 %last.at, {mask}
  %last = sub i64 %most, %last.part
  %shifts = icmp ne i64 %shift, 0
  %begins = icmp ne i64 %begin, 0
  %ends = icmp ne i64 %end, 0
  %cuts.first = or i1 %begins, %shifts
  %cuts.last = or i1 %ends, %shifts
  %start = select i1 %cuts.first, i64 %first, i64 %last
  %stop = select i1 %cuts.last, i64 %last, i64 %first
  %all = sub i64 %last, %first
  %one = icmp eq i64 %all, 0
  %every = or i1 %shifts, %one
  %step = select i1 %every, i64 {size}, i64 %all
  br label %loop

loop:
  %k = phi i64 [ %start, %cut ], [ %k.next, %next ]
{number}  br i1 %counts, label %found, label %next

found:
{found}
next:
  %k.next = add i64 %k, %step
  %more = icmp sle i64 %k.next, %stop
  br i1 %more, label %loop, label %fine

fine:
  ret i1 true

lost:
  ret i1 false
}}
"""
# The first half of a double may end where what is copied begins, in front of all memory: there nothing needs it.
_READ = {
    4: """  %{v}.place = getelementptr i8, ptr %{base}, i64 %{at}
  %{v} = load i32, ptr %{v}.place, align 1
""",
    8: """  %{v}.high.at = add i64 %{at}, 4
  %{v}.in.front = icmp sle i64 %{v}.high.at, 0
  %{v}.low.at = select i1 %{v}.in.front, i64 %{v}.high.at, i64 %{at}
  %{v}.low.place = getelementptr i8, ptr %{base}, i64 %{v}.low.at
  %{v}.low = load i32, ptr %{v}.low.place, align 1
  %{v}.place = getelementptr i8, ptr %{base}, i64 %{v}.high.at
  %{v}.high = load i32, ptr %{v}.place, align 1
  %{v}.low.bits = zext i32 %{v}.low to i64
  %{v}.high.bits = zext i32 %{v}.high to i64
  %{v}.high.word = shl i64 %{v}.high.bits, 32
  %{v} = or i64 %{v}.high.word, %{v}.low.bits
""",
}
_NORMAL = """  %{v}.exponent = and {word} %{v}, {exponent}
  %{v}.some = icmp ne {word} %{v}.exponent, 0
  %{v}.finite = icmp ne {word} %{v}.exponent, {exponent}
  %{v}.normal = and i1 %{v}.some, %{v}.finite
"""
_EITHER = """  %counts = or i1 %{v}.normal, %{w}
"""
# The one or two numbers of the source of which a number of the target has parts.
_IN_SOURCE = """  %shift.back = sub i64 0, %shift
  %ahead = and i64 %shift.back, {mask}
  %low.at = sub i64 %k, %ahead
  %high.at = add i64 %low.at, {size}
  %none.low = icmp sle i64 %high.at, 0
  %one.at = select i1 %none.low, i64 %high.at, i64 %low.at
  %is.even = icmp eq i64 %ahead, 0
  %none.high = icmp sge i64 %high.at, %bytes
  %is.one = or i1 %is.even, %none.high
  %two.at = select i1 %is.one, i64 %one.at, i64 %high.at
"""
_MOVED = """  %k.back = sub i64 0, %k
  %in.front = icmp sgt i64 %k.back, 0
  %front = select i1 %in.front, i64 %k.back, i64 0
  %front.bits = shl i64 %front, 3
  %k.end = add i64 %k, {size}
  %beyond = sub i64 %k.end, %bytes
  %is.over = icmp sgt i64 %beyond, 0
  %over = select i1 %is.over, i64 %beyond, i64 0
  %over.bits = shl i64 %over, 3
  %behind.front = shl i64 -1, %front.bits
  %kept = lshr i64 {all}, %over.bits
  %moved = and i64 %behind.front, %kept
  %wide = {widened}
  %part = and i64 %wide, %moved
  %is.part = icmp ne i64 %part, 0
  br i1 %is.part, label %lost, label %rest

rest:
  store {nan}, ptr %number.place, align 1
  br label %next
"""


# What looks at the one number at a place, and what looks at those of records that may lie across an end.
_NUMBER = """
define internal i1 @{name}(ptr %to, ptr %from, i64 %bytes, i64 %k, i1 %others) nounwind {{
entry:
{number}  br i1 %counts, label %found, label %next

found:
{found}
next:
  ret i1 true

lost:
  ret i1 false
}}
"""
_RECORDS = """
define internal i1 @{name}(ptr %to, ptr %from, i64 %bytes, i1 %others) nounwind {{
entry:
  %nothing = icmp eq i64 %bytes, 0
  br i1 %nothing, label %end.{last}, label %end.0
{ends}
end.{last}:
  ret i1 true

lost:
  ret i1 false
}}
"""
_ACROSS_BEGIN = """
end.{index}:
  %whole.{index} = call i1 @{number}(ptr %to, ptr %from, i64 %bytes, i64 {at}, i1 %others)
  br i1 %whole.{index}, label %end.{after}, label %lost
"""
_ACROSS_END = """
end.{index}:
  %away.{index} = sub i64 %bytes, {at}
  %in.{index} = {within}
  %k.{index} = sub i64 %bytes, %in.{index}
  %begun.{index} = icmp ne i64 %in.{index}, 0
  %open.{index} = icmp ult i64 %in.{index}, {size}
  %cuts.{index} = and i1 %begun.{index}, %open.{index}
  br i1 %cuts.{index}, label %cut.{index}, label %end.{after}

cut.{index}:
  %whole.{index} = call i1 @{number}(ptr %to, ptr %from, i64 %bytes, i64 %k.{index}, i1 %others)
  br i1 %whole.{index}, label %end.{after}, label %lost
"""


class Look(Enum):
    """What is looked at, and when: adjoints, tangents that are to be copied, and tangents that have been."""

    ADJOINT = "je.whole"
    SOURCE = "je.whole.source"
    TANGENT = "je.whole.dot"


def _formats(size: int) -> dict[str, str | int]:
    """What the texts call the parts of a number of a size."""
    nan, word, exponent = _TYPES[size]
    return {
        "nan": nan,
        "word": word,
        "exponent": exponent,
        "size": size,
        "mask": size - 1,
        "widened": "zext i32 %number to i64" if size == 4 else "or i64 %number, 0",
        "all": (1 << 8 * size) - 1 if size == 4 else -1,
    }


def _number(size: int, v: str, base: str, at: str) -> str:
    return (_READ[size] + _NORMAL).format(v=v, base=base, at=at, **_formats(size))


def _found(look: Look, size: int) -> str:
    return _MOVED.format(**_formats(size)) if look is Look.TANGENT else "  br label %lost\n"


def grid_text(look: Look, name: str, grid: Grid) -> str:
    size, words = grid.size, _formats(grid.size)
    if look is Look.SOURCE:
        looks = _IN_SOURCE.format(**words) + _number(size, "left", "from", "one.at")
        looks += _number(size, "right", "from", "two.at") + _EITHER.format(v="left", w="right.normal")
    else:
        looks = _number(size, "number", "to", "k") + _EITHER.format(v="number", w="others")
    starts = {"start": grid.start, "source_start": grid.source_start}
    return _TEXT.format(**words, **starts, name=name, number=looks, found=_found(look, size))


def _number_text(look: Look, name: str, size: int) -> str:
    others = "number.normal" if look is Look.SOURCE else "others"
    looks = _number(size, "number", "from" if look is Look.SOURCE else "to", "k")
    looks += _EITHER.format(v="number", w=others)
    return _NUMBER.format(name=name, number=looks, found=_found(look, size))


def records_text(look: Look, name: str, pattern: Pattern) -> str:
    """Also of the functions that look at one number."""
    period, ends, sizes = pattern.period, list[str](), dict[int, None]()
    for at, type_ in pattern.pieces:
        size = type_.size if isinstance(type_, T.FloatType) else 0
        if size not in _TYPES:
            continue
        sizes[size] = None
        first = at - period if period else at
        words = {"number": _number_name(look, size), "size": size}
        if first < 0 < first + size:
            ends.append(_ACROSS_BEGIN.format(index=len(ends), after=len(ends) + 1, at=first, **words))
        if first + size > 0 or period:
            away = f"%away.{len(ends)}"
            within = f"urem i64 {away}, {period}" if period else f"add i64 {away}, 0"
            ends.append(_ACROSS_END.format(index=len(ends), after=len(ends) + 1, at=first, within=within, **words))
    numbers = (_number_text(look, _number_name(look, size), size) for size in sizes)
    return "".join(numbers) + _RECORDS.format(name=name, last=len(ends), ends="".join(ends))


def _number_name(look: Look, size: int) -> str:
    return f"{look.value}.number.{size}"
