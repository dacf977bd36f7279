"""Integers that share their place with numbers: the members of tagged unions, `std::variant`, Rust's enumerations.

    if (v.tag) s += v.u.d;  else s += x * v.u.i;

As far as types tell, `v.u.i` may be the bits of a number that varies. A right program computes with it where an integer
was stored last, which only the run knows. So what is computed of such a word varies as the word does, until it is a
number or is stored:

    forward     m = n + 1      m' = 0 where n' = 0, else NaN        n' is 0 behind a store of an integer
                y = double(m)  y' = 0 where m' = 0, else NaN
    reverse     m = n + 1      n* = 0 where m* = 0, else NaN        which the store of an integer takes away

A program that did mean the bits has NaN for derivatives, and no word is held to be an integer that no plain one, which
no number's bits went into, is ever stored to or merged with: that stays refused as it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from math import nan

from jax_enzyme.analysis.accesses import clears
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.analysis.decisions import computes, decides, keeps, takes_bits
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.number_fields import NumberFields
from jax_enzyme.analysis.object_bytes import Bytes, Place
from jax_enzyme.analysis.objects import allocates_zeros
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int, zero
from jax_enzyme.ir.module import Uses
from jax_enzyme.ir.reach import Reached, led_to, reached
from jax_enzyme.ir.values import Constant, ConstantFloat, Value, int_value

_CONVERSIONS = ("sitofp", "uitofp")
_LEAST_NORMAL, _LEAST_NORMAL_FLOAT = 2.0**-1022, 2.0**-126
_HALF, _WORD = 4, 8
_ANYWHERE = {size: Bytes(Congruence(0, size), size, whole=True) for size in (_HALF, _WORD)}
_QUIET_NAN = {T.I32: 0x7FC0_0000, T.I64: 0x7FF8_0000_0000_0000}


def computed_of(
    words: Sequence[I.Instruction], users: Uses, fields: NumberFields, *, may_be_kept: bool = True
) -> set[I.Instruction] | None:
    """What is computed of integers of one type that may be numbers' bits, on the way to numbers and to memory. None
    where something else is made of one than a number of its value or, where it `may_be_kept`, the integer of a word."""
    found, computed, onward = Reached[Value](words), set[Value](), dict[Value, list[Value]]()
    kept: list[Value] = []
    conversions: dict[I.Instruction, Value] = {}
    for value in found:
        for user, _ in users.get(value, ()):
            if decides(user) or takes_bits(user):
                continue
            if user.opcode in _CONVERSIONS and fields.has_digits(value):
                conversions[user] = value
            elif keeps(user):
                kept += [value] if fields.has_digits(value) else []
            elif isinstance(user, I.BinaryOp | I.Cast | I.Phi | I.Freeze | I.Select) and computes(user):
                computed |= {user} if isinstance(user, I.BinaryOp | I.Cast) else set()
                onward.setdefault(value, []).append(user)
                found.add([user])
            elif fields.has_digits(value):
                return None
    made = reached(computed, lambda value: onward.get(value, ()))
    ends = [value for value in kept if value in made]
    losing = led_to([*ends, *conversions.values()], found.all, lambda value: onward.get(value, ()))
    if ends and (not may_be_kept or any(value.type != words[0].type for value in ends)):
        return None
    if any(not isinstance(v.type, T.IntType) for v in losing):
        return None
    narrow = {i for i in losing if isinstance(i, I.Phi | I.Select | I.Freeze) and i.type not in _QUIET_NAN}
    return {i for i in losing if isinstance(i, I.BinaryOp | I.Cast) and i in computed} | narrow | conversions.keys()


class PlainWords:
    """Words that may be integers that no number's bits went into: one that was stored, or is in memory that was
    cleared, one that was merged with them, or what was computed of one. Each is all of a number, and no part of it is
    written, or it is one of the `shorter` ones, and all that is written in its half takes its place. In the frames of a
    derivative (`in_frames`), of which all is known at once, no two types share a place, but seem to."""

    def __init__(self, points_to: PointsTo, activity: Activity, in_frames: bool, shorter: Set[I.Load]) -> None:
        self._ranges = ranges = activity.numbers.ranges
        self._onward: dict[Value, list[I.Instruction]] = {}
        self._loads = {
            item: {part: own for part, loads in parts.items() if (own := [i for i in loads if _is_word(i)])}
            for item, parts in ranges.loads.items()
        }
        places = dict.fromkeys((item, part) for item, parts in ranges.stores.items() for part in parts)
        every = [i for i in points_to.instructions() if isinstance(i, I.Store) or _is_word(i)]
        for instruction in every:
            for operand in I.merged(instruction) or instruction.operands:
                self._onward.setdefault(operand, []).append(instruction)
        cleared = [item for item in points_to.objects.values() if allocates_zeros(item.site)]
        for call in points_to.instructions():
            if isinstance(call, I.CallBase) and clears(call):
                cleared += points_to.of(call.operands[0])
        for copy in ranges.copies:
            places.update(dict.fromkeys((copy.to, anywhere) for anywhere in _ANYWHERE.values()))
        parted: list[Value | Place] = []
        for item, parts in self._loads.items():
            stores = {} if in_frames else ranges.stores.get(item, {})
            integers = [part for part, own in stores.items() if any(T.is_int(i.operands[0].type) for i in own)]
            others = (*activity.numbers.of(item), *integers)
            for part, loads in parts.items():
                if _is_parted(part, others):
                    parted += (load for load in loads if load not in shorter)
                if not shorter.isdisjoint(loads) and any(_splits_half(other, part) for other in integers):
                    parted += loads
        self._parted = reached(parted, self._moved_on)
        varied = [i for i in every if T.is_int(i.type) and i in activity.varied]
        of_bits = reached(varied, lambda value: [i for i in self._onward.get(value, ()) if T.is_int(i.type)])
        plain_ones = [v for v in self._onward if _is_integer(v) and v not in of_bits]
        held = (v.operands[0] for v in plain_ones if isinstance(v, I.Cast) and v.opcode == "bitcast")
        of_cleared = (own for item in dict.fromkeys(cleared) for own in self._loads.get(item, {}).items())
        zeros = [load for part, loads in of_cleared for load in loads if part.size == _WORD]
        # A counter is kept as a number where one shares its place, and may start in memory that is cleared.
        plain = Reached[Value | Place]([*plain_ones, *held, *zeros])
        for value in plain:
            plain.add(self._moved_on(value))
            computed = [] if isinstance(value, tuple | Constant) else self._onward.get(value, ())
            plain.add(i for i in computed if isinstance(i, I.BinaryOp | I.Cast) and T.is_int(i.type))
        self._beside = led_to(plain.all, [*self._onward, *places], self._moved_on)

    def may_be(self, word: I.Instruction) -> bool:
        """Whether a word may be such an integer, or its number is kept where one may be: what a tag decides about is
        often computed before it is asked."""
        number = word.operands[0] if isinstance(word, I.Cast) else word
        return word not in self._parted and number in self._beside

    def _moved_on(self, value: Value | Place) -> Iterator[Value | Place]:
        """The same word, merged with others, stored at a place, or read where that may be."""
        if isinstance(value, tuple):
            item, part = value
            yield from (load for other, own in self._loads.get(item, {}).items() if part.meets(other) for load in own)
            copies = self._ranges.copies_of.get(item, ()) if part.size in _ANYWHERE else ()
            yield from ((to, _ANYWHERE[part.size]) for _, targets in copies for to in targets)
            return
        for user in self._onward.get(value, ()):
            if isinstance(user, I.Store) and value is user.operands[0]:
                yield from self._ranges.accessed(user)
            elif I.merged(user) or user.opcode == "bitcast":
                yield user


def _is_parted(part: Bytes, others: Iterable[Bytes]) -> bool:
    return any(part.meets(other) and (part.size != other.size or part.straddles(other)) for other in others)


def _splits_half(written: Bytes, read: Bytes) -> bool:
    """Whether an integer that is stored in a half of a word may leave there some of what another one is read of."""
    apart = written.at - read.at
    if written.size >= _HALF or (written.size == read.size and apart.offset % _HALF == 0 == apart.modulus % _HALF):
        return False
    halves = {part.at.offset % _WORD // _HALF for part in (written, read)}
    return len(halves) == 1 or bool(written.at.modulus % _WORD or read.at.modulus % _WORD)


def _is_word(value: I.Instruction) -> bool:
    moves = isinstance(value, I.Load | I.BinaryOp | I.Cast | I.Phi | I.Select | I.Freeze)
    return moves and (T.is_int(value.type) or value.type in (T.FLOAT, T.DOUBLE))


def _is_integer(value: Value) -> bool:
    """Whether a value is an integer that is not 0, or the number with the bits of a small one."""
    if isinstance(value, ConstantFloat):
        return 0 < abs(float_value(value) or 0) < (_LEAST_NORMAL if value.type == T.DOUBLE else _LEAST_NORMAL_FLOAT)
    is_kept = value.type in (T.I8, T.I16, *_QUIET_NAN)
    return is_kept and (not isinstance(value, Constant) or bool(int_value(value)))


def tangent(builder: Builder, type_: T.Type, operands: Sequence[Value]) -> Value:
    """That of what is computed of integers with these tangents."""
    result: Value = zero(type_)
    for operand in operands:
        bits, number = operand, operand
        if operand.type in _QUIET_NAN:
            bits = builder.binary("shl", operand, const_int(operand.type, 1))  # of -0.0 as well
            number = builder.cast("bitcast", operand, T.DOUBLE if operand.type == T.I64 else T.FLOAT)
        varies = builder.icmp("ne", bits, zero(operand.type))
        result = builder.select(varies, _unknown(builder, type_, number), result)
    return result


def of_its_kind(builder: Builder, type_: T.Type, is_integer: Value) -> Value:
    """The tangent of an integer of which it is told whether it is one."""
    unknown = _unknown(builder, type_, const_float(T.DOUBLE, nan))
    return builder.select(builder.icmp("ne", is_integer, zero(is_integer.type)), zero(type_), unknown)


def adjoint(builder: Builder, type_: T.Type, of_result: Value) -> Value:
    """That of an integer, in the type of a number, by that of what is computed of it."""
    varies = builder.fcmp("une", of_result, zero(of_result.type))
    return builder.select(varies, _unknown(builder, type_, of_result), zero(type_))


def _unknown(builder: Builder, type_: T.Type, number: Value) -> Value:
    """A NaN, also as the bits of one, that has no derivatives but NaN by what it is made of; as a narrow integer, none
    of whose bits are a number's, -1."""
    if isinstance(type_, T.IntType) and type_ not in _QUIET_NAN:
        return const_int(type_, -1)
    if not isinstance(number.type, T.FloatType):
        return const_int(type_, _QUIET_NAN[type_]) if isinstance(type_, T.IntType) else const_float(type_, nan)
    nothing = builder.binary("fmul", number, zero(number.type))
    found = builder.binary("fdiv", nothing, nothing)
    kind = type_ if isinstance(type_, T.FloatType) else T.DOUBLE if type_ == T.I64 else T.FLOAT
    if kind != found.type:
        found = builder.cast("fpext" if kind == T.DOUBLE else "fptrunc", found, kind)
    return builder.cast("bitcast", found, type_) if isinstance(type_, T.IntType) else found
