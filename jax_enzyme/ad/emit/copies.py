"""Copies of records, in reverse mode: which of the bytes are numbers, of which kinds, and which are pointers.

    primal    memmove(to, from, n)              forward    for every pointer that is copied, at offset i:
                                                               to.shadow[i] = from.shadow[i]
                                                reverse    for every number that was copied, at offset i:
                                                               from.shadow[i] += to.shadow[i]; to.shadow[i] = 0

A *pattern* says what lies within one record, and how long a record is. Integers have no adjoint, and what lies in the
shadow of a pointer means nothing to the reverse sweep, which takes shadow pointers from the tape: a number at the place
of a pointer may take it along, since nothing reads it before the pointer's own store makes it zero
(`ad.facts.one_plane`).
The order is the one that is right for overlapping ranges, and for records copied onto themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ad.facts.half_numbers import JOIN
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.analysis.words import Piece, Words
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import zero_text
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.rules.effects import Effect

_MOVED = frozenset({T.PTR, T.HALF, T.BFLOAT, T.FLOAT, T.DOUBLE, T.FloatType("x86_fp80"), T.FloatType("fp128")})
_LOOK_AT_NOTHING = (Effect.IGNORED, Effect.PURE_INT)
_MOST = 256
"""A record of more numbers, or pointers, is not copied so; where there is no other way, the copy is refused."""
_SHORT = 256
"""So many bytes are looked at one by one, and copied by a function without a loop. Longer copies are of records as they
repeat in the whole object."""


@dataclass(frozen=True)
class Pattern:
    """Numbers, or pointers, at offsets in a record of `period` bytes; 0: there is one record alone. `joined`: halves of
    words may be integers."""

    period: int
    pieces: tuple[Piece, ...]
    joined: bool = False

    @property
    def name(self) -> str:
        parts = "".join(f".{offset}{type_}" for offset, type_ in self.pieces)
        return f"je.copy.{'words' if self.joined else 'records'}.{self.period}{parts}"

    def text(self) -> str:
        """The function that does it, in LLVM IR: void (to, from, bytes)."""
        last = len(self.pieces) - 1
        moves = self.pieces[0][1] == T.PTR
        text = _TEXT.format(
            name=self.name,
            unit=self.period or 1,
            one="true" if self.period == 0 else "false",
            order="ugt" if moves else "ult",
            up="\n".join(self._step("up", i) for i in range(len(self.pieces))),
            down="\n".join(self._step("down", i) for i in reversed(range(len(self.pieces)))),
            last=last,
        )
        return text + JOIN if self.joined else text

    def _step(self, way: str, index: int) -> str:
        offset, type_ = self.pieces[index]
        onward = index + (1 if way == "up" else -1)
        after = f"{way}.{onward}.test" if 0 <= onward < len(self.pieces) else f"{way}.next"
        names = {"v": f"{way}.{index}", "type": type_, "zero": zero_text(type_)}
        total = (_JOINED if self.joined and type_ == T.DOUBLE else _SUM).format(**names)
        body = (_MOVE if type_ == T.PTR else _ADD).format(**names, sum=total)
        return _STEP.format(**names, way=way, offset=offset, end=offset + _size(type_), after=after, body=body)


def numbers_in(words: Words, target: Value, source: Value, length: Value) -> Pattern | None:
    """The numbers in what is copied; None where that is not known, or where numbers of several kinds may lie at one
    place."""
    return _pattern(words, target, source, length, of_pointers=False)


def is_array(words: Words, copy: I.CallBase, kind: T.FloatType) -> bool:
    """Whether numbers of the one kind that is copied stand at multiples of their size behind both addresses, so that
    the copy is one of an array of them: `memcpy(&r.k, &s.k, 12)` of an int and a double is none."""
    size = _size(kind)
    found = words.pattern((copy.operands[0], copy.operands[1]))
    if found is None:
        return False
    period, pieces = found
    return period % size == 0 and all(offset % size == 0 for offset, _ in pieces)


def is_freed_next(copy: I.CallBase, points_to: PointsTo) -> bool:
    """Whether what is copied is freed at once, as `realloc` does it: nothing has looked at it since, so that no number
    in it has an adjoint, and what lies in the target's shadow may take its place, whatever it is."""
    block = next(b for f in points_to.functions for b in f.blocks if copy in b.instructions)
    for following in block.instructions[block.instructions.index(copy) + 1 :]:
        if isinstance(following, I.CallBase):
            if call_effect(following) in _LOOK_AT_NOTHING:
                continue
            return call_effect(following) is Effect.FREE and following.operands[0] is copy.operands[1]
        if isinstance(following, I.Load | I.Store | I.AtomicRMW | I.CmpXchg):
            return False
    return False


def pointers_in(words: Words, target: Value, source: Value, length: Value) -> Pattern | None:
    """The same of pointers: None also where a number may lie at the place of one."""
    return _pattern(words, target, source, length, of_pointers=True)


def numbers_around(words: Words, pointers: tuple[Value, ...]) -> Pattern | None:
    """The numbers that stand in front of these addresses and behind them; None as above."""
    found = words.pattern(pointers)
    return None if found is None else _apart(*found, of_pointers=False)


def _pattern(words: Words, target: Value, source: Value, length: Value, *, of_pointers: bool) -> Pattern | None:
    layouts = _layouts(words, target, source, int_value(length))
    patterns = (_apart(period, pieces, of_pointers=of_pointers) for period, pieces in layouts)
    return next((found for found in patterns if found is not None), None)


def _apart(period: int, pieces: frozenset[Piece], *, of_pointers: bool) -> Pattern | None:
    """The numbers, or the pointers, of a layout, where each has its place for itself."""
    held = sorted(pieces, key=lambda p: (p[0], str(p[1])))
    around = [(o + period, t) for o, t in held] if period else []
    clashes = any(
        piece[0] + _size(piece[1]) > other[0] and (T.PTR in (piece[1], other[1])) == of_pointers
        for index, piece in enumerate(held)
        for other in (held + around)[index + 1 :]
        if other != piece
    )
    chosen = tuple(p for p in held if (p[1] == T.PTR) == of_pointers)
    if clashes or len(chosen) > _MOST or any(t not in _MOVED for _, t in chosen) or 0 < period < 2:
        return None
    return Pattern(period, chosen)


def _layouts(words: Words, target: Value, source: Value, size: int | None) -> Iterator[tuple[int, frozenset[Piece]]]:
    """What is known of what is copied, as a period and what lies within one. A short copy is looked at by itself: of a
    record that is copied into an array, what lies behind the copied members does not matter."""
    if size is not None and size <= _SHORT:
        there, here = words.scalars(target, size), words.scalars(source, size)
        if there is not None and here is not None:
            yield 0, there | here
    found = words.pattern((target, source))
    if found is None:
        return
    period, pieces = found
    if size is not None and (period == 0 or size < period):
        pieces = frozenset((o, t) for o, t in pieces if 0 <= o <= size - _size(t))
    elif period == 0:
        pieces = frozenset((o, t) for o, t in pieces if o >= 0)
    yield period, pieces


def _size(type_: T.Type) -> int:
    return type_.size if isinstance(type_, T.FloatType) else 8


_STEP = """
{v}.test:
  %{v}.at = add i64 %{way}.base, {offset}
  %{v}.end = add i64 %{way}.base, {end}
  %{v}.fits = icmp ule i64 %{v}.end, %bytes
  br i1 %{v}.fits, label %{v}, label %{after}

{v}:
  %{v}.to = getelementptr inbounds i8, ptr %to, i64 %{v}.at
  %{v}.from = getelementptr inbounds i8, ptr %from, i64 %{v}.at
{body}  br label %{after}
"""
_MOVE = """  %{v}.y = load {type}, ptr %{v}.from, align 1
  store {type} %{v}.y, ptr %{v}.to, align 1
"""
_ADD = """  %{v}.x = load {type}, ptr %{v}.to, align 1
  store {type} {zero}, ptr %{v}.to, align 1
  %{v}.y = load {type}, ptr %{v}.from, align 1
  %{v}.sum = {sum}
  store {type} %{v}.sum, ptr %{v}.from, align 1
"""
_SUM = "fadd reassoc nsz contract {type} %{v}.y, %{v}.x"
_JOINED = "call double @je.join.words(double %{v}.y, double %{v}.x)"
_TEXT = """
define internal void @{name}(ptr %to, ptr %from, i64 %bytes) nounwind {{
entry:
  %empty = icmp eq i64 %bytes, 0
  br i1 %empty, label %exit, label %start

start:
  %less = sub i64 %bytes, 1
  %rest = urem i64 %less, {unit}
  %last.unit = sub i64 %less, %rest
  %last = select i1 {one}, i64 0, i64 %last.unit
  %is.down = icmp {order} ptr %to, %from
  br i1 %is.down, label %down.loop, label %up.loop

up.loop:
  %up.base = phi i64 [ 0, %start ], [ %up.base.next, %up.next ]
  br label %up.0.test
{up}
up.next:
  %up.base.next = add i64 %up.base, {unit}
  %up.more = icmp ult i64 %up.base, %last
  br i1 %up.more, label %up.loop, label %exit

down.loop:
  %down.base = phi i64 [ %last, %start ], [ %down.base.next, %down.next ]
  br label %down.{last}.test
{down}
down.next:
  %down.base.next = sub i64 %down.base, {unit}
  %down.more = icmp ne i64 %down.base, 0
  br i1 %down.more, label %down.loop, label %exit

exit:
  ret void
}}
"""
