"""What looks, as a derivative runs, whether a copy or a clearing of memory cuts a number in two that has a derivative.

    primal      memmove(to, from, n)
    reverse     je.numbers.whole(je.whole.8(to.shadow, from.shadow, n))       before the adjoint of the copy
    forward     je.numbers.whole(je.whole.dot.8(to.shadow, from.shadow, n))   behind the copy of the tangents, of which
                                                                              je.whole.source.8 looked in front of it
                                                                              whether it takes parts of some

Shadows lie as the numbers do, so that their addresses tell. Mostly the two addresses and the length are multiples of
the size, and that is all that is asked. Where one is not, memory may hold a text there, or integers: these have zeros
for shadows, pointers nothing that is a normal number, and words that integers share a NaN.

    reverse     false where an adjoint is there of a number that the primal had cut
    forward     false where a part of a tangent was copied; NaN is made of what is left of one otherwise, as of numbers
                that the kernel had there before, and that it need not read again
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.ad.facts.cut_numbers import Grid, unsure
from jax_enzyme.ad.facts.errors import place_of
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.analysis.words import Words
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import NUMBERS_WHOLE
from jax_enzyme.transform.derivative_checks import demand

_TYPES = {4: ("float", "i32", 0xFF << 23), 8: ("double", "i64", 0x7FF << 52)}
"""By size: the number, the word that has its bits, and in that its exponent."""
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
_READ = {
    4: """  %{v}.place = getelementptr i8, ptr %{base}, i64 %{at}
  %{v} = load i32, ptr %{v}.place, align 1
""",
    8: """  %{v}.place = getelementptr i8, ptr %{base}, i64 %{at}
  %{v}.low = load i32, ptr %{v}.place, align 1
  %{v}.high.place = getelementptr i8, ptr %{v}.place, i64 4
  %{v}.high = load i32, ptr %{v}.high.place, align 1
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
  store {type} 0x7FF8000000000000, ptr %number.place, align 1
  br label %next
"""


class _Look(Enum):
    """What is looked at, and when: adjoints, tangents that are to be copied, and tangents that have been."""

    ADJOINT = "je.whole"
    SOURCE = "je.whole.source"
    TANGENT = "je.whole.dot"


def _text(look: _Look, name: str, grid: Grid) -> str:
    type_, word, exponent = _TYPES[grid.size]
    words = {"type": type_, "word": word, "exponent": exponent, "size": grid.size, "mask": grid.size - 1}
    words |= {"widened": "zext i32 %number to i64" if grid.size == 4 else "or i64 %number, 0"}
    words |= {"all": (1 << 8 * grid.size) - 1 if grid.size == 4 else -1}

    def number(v: str, base: str, at: str) -> str:
        return (_READ[grid.size] + _NORMAL).format(v=v, base=base, at=at, **words)

    if look is _Look.SOURCE:
        looks = _IN_SOURCE.format(**words) + number("left", "from", "one.at") + number("right", "from", "two.at")
        looks += _EITHER.format(v="left", w="right.normal")
    else:
        looks = number("number", "to", "k") + _EITHER.format(v="number", w="others")
    found = _MOVED.format(**words) if look is _Look.TANGENT else "  br label %lost\n"
    return _TEXT.format(**words, name=name, start=grid.start, source_start=grid.source_start, number=looks, found=found)


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """The checks of one derivation, in a module. None where it `is_off`: on devices, and in derivatives of derivatives,
    which have the checks of these."""

    module: Module
    facts: Facts
    words: Words
    is_off: bool

    def grid(self, call: I.CallBase) -> Grid | None:
        """Where the numbers stand that a copy, or a clearing, may cut."""
        return None if self.is_off else unsure(self.words, self.facts.activity, call)

    def check_adjoints(self, at: Builder, call: I.CallBase, shadows: Sequence[Value], length: Value) -> None:
        """Emits the check in front of a call's reverse, where one is needed, by the shadows of what it writes and of
        what it copies."""
        if (grid := self.grid(call)) is not None:
            self._demand(at, call, self._look(_Look.ADJOINT, at, grid, shadows, length, const_int(T.I1, 0)))

    def has_no_parts(self, at: Builder, grid: Grid, shadows: Sequence[Value], length: Value) -> Value:
        """Emits in front of a copy of tangents whether it copies no parts of any."""
        return self._look(_Look.SOURCE, at, grid, shadows, length, const_int(T.I1, 0))

    def check_tangents(
        self, at: Builder, call: I.CallBase, grid: Grid, shadows: Sequence[Value], length: Value, no_parts: Value
    ) -> None:
        """Emits the check behind the copy, or the clearing."""
        parts = at.binary("xor", no_parts, const_int(T.I1, 1))
        self._demand(at, call, self._look(_Look.TANGENT, at, grid, shadows, length, parts))

    def _look(
        self, look: _Look, at: Builder, grid: Grid, shadows: Sequence[Value], length: Value, others: Value
    ) -> Value:
        name = f"{look.value}.{grid.size}.{grid.start}.{grid.source_start}"
        helper = defined(self.module, name, _text(look, name, grid))
        return at.call(helper, [shadows[0], shadows[-1], length, others])

    def _demand(self, at: Builder, call: I.CallBase, whole: Value) -> None:
        place = place_of(self.facts.module, self.facts.origin.get(call, call))
        demand(self.module, at, NUMBERS_WHOLE, whole, place)
