"""Which bits of integers are bits of numbers: sign, exponent and digits of numbers as fields, through arithmetic.

    %u = bitcast double %x to i64          u:63 | u:62 ... u:52 | u:51 ... u:0       sign, exponent, digits
    %m = and i64 %u, 0x800fffffffffffff    u:63 |  0   ...  0   | u:51 ... u:0
    %v = or i64 %m, 0x3fe0000000000000     v:63 | v:62 ... v:52 | v:51 ... v:0       the digits of %x: a number too
    %h = lshr i64 %u, 32                      0 ...    0   | u:63 ... u:52 | u:51 ... u:32
    %e = lshr i64 %u, 52                      0 ...    0            | u:63 ... u:52       no digits: a decision

    lattice     per bit: a constant, a bit of a source to which a constant was added (`Field`), `CLEAN` (no digits of
                numbers went in but by comparisons and carries) or `MIXED` (they did)
    sources     the bits of a number, and all integers that are one anew (`Number`)

An exponent or sign steps once in an octave, whatever is computed of it: its derivative is zero. A number that has the
digits of another one at their places is that one times a power of two, whatever its sign and exponent are. One whose
low digits are cut off, or changed by less than one of those that stay, is that number rounded, as to a shorter format,
if at least `SURE` digits stay. With less, the number may be a node of a table, to which the rest is added; down to
`_SHORTEST`, those of the shortest format, it is rounded where nothing chooses one (`analysis.chosen_nodes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from jax_enzyme.analysis.bit_arithmetic import (
    CLEAN,
    DIGITS,
    MIXED,
    Bit,
    Bits,
    Field,
    alike,
    combined,
    is_digit,
    mixed,
    of_constant,
    own,
    width,
)
from jax_enzyme.analysis.chosen_nodes import choose_among_many, is_used_otherwise
from jax_enzyme.analysis.rounding import is_whole
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Uses, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value, lane_of

SURE = 20
"""So many digits stay in a half of a `double`; no table has an entry for each of their values."""
_SHORTEST = 7
_MANY_VISITS = 16
"""So often a merge is looked at as one of numbers: around loops numbers may turn out to be none."""
_MERGES = (I.Phi, I.Select, I.Freeze)


@dataclass(frozen=True)
class Number:
    """What number an integer is the bits of: that with the digits of a `source`, of which so many are `kept`, and with
    the sign and exponent of it too if it is of the `same` size."""

    source: Value
    kept: int
    same: bool


class NumberFields:
    """Of one function. `is_bits` says of what is loaded whether it is the bits of a number."""

    def __init__(self, function: Function, is_bits: Callable[[I.Instruction], bool] = lambda _: False) -> None:
        self._function = function
        self._is_bits = is_bits
        self._found: dict[Value, Bits] = {}
        self._noise: dict[Value, int] = {}
        self._before: dict[Value, Number] = {}
        self._visits: dict[Value, int] = {}
        self._homes = {i: b for b in function.blocks for i in b.instructions}
        self._merges: dict[tuple[Value | BasicBlock, ...], I.Phi | I.Select] = {}
        self.parts: dict[Value, dict[I.Instruction, None]] = {}
        """Of what merges numbers, but may not be in the function: which of its instructions merge parts of them."""
        self._solve()

    def of(self, value: Value) -> Bits:
        """The bits of an integer, the lowest first; of each lane of a vector."""
        return own(value) if value in self.parts else self._found.get(value, ()) or _of_leaf(value)

    def has_digits(self, value: Value) -> bool:
        """Whether digits of numbers went into an integer, other than by comparisons and carries."""
        return any(map(is_digit, self.of(value)))

    def number(self, value: Value) -> Number | None:
        """What number an integer is the bits of; None where it has digits that are no number's, or none."""
        return self._sure(self._number(self.of(value)))

    def made_of(self, source: Value) -> Number | None:
        """The same of a source that is no other number's own bits, and merges none: which one's digits it has."""
        return self._sure(self._before.get(source))

    def _sure(self, found: Number | None) -> Number | None:
        """A number that may be held to be another one, rounded; of those that the program has as numbers."""
        while found and (before := self._before.get(found.source)) and found.source not in self._numbers:
            found = Number(before.source, min(found.kept, before.kept), found.same and before.same)
        if found is None or found.kept >= SURE:
            return found
        return None if found.kept < _SHORTEST or self.digits_choose or self._is_node(found.source) else found

    def _is_node(self, source: Value) -> bool:
        """Whether there may be more of a number than its first digits, and something among many that these choose."""
        return self._may_have_rest(self._origin(source)) and self._numbers_choose

    def _may_have_rest(self, origin: Value) -> bool:
        if not isinstance(origin, I.Cast) or is_used_otherwise(origin.operands[0], self._users):
            return True
        made = filter(None, (self._number(self.of(v)) for v in self._numbers))
        return any(n.kept >= SURE and self._origin(n.source) is origin for n in made)

    def _origin(self, source: Value) -> Value:
        while before := self._before.get(source):
            source = before.source
        return source

    @cached_property
    def _users(self) -> Uses:
        return uses(self._function)

    @cached_property
    def _numbers_choose(self) -> bool:
        made = (c for v in self._numbers if self.has_digits(v) for c, _ in self._users[v] if T.is_float(c.type))
        return choose_among_many(self._function, made, self._users)

    @cached_property
    def _numbers(self) -> set[Value]:
        """Integers that the program itself takes for numbers."""
        casts = (i for i in self._function.instructions() if i.opcode == "bitcast" and T.is_float(i.type))
        return {c.operands[0] for c in casts}

    # -- solving

    def _solve(self) -> None:
        users: dict[Value, list[I.Instruction]] = {}
        integers = [i for i in self._function.instructions() if width(i.type)]
        for instruction in integers:
            for operand in instruction.operands:
                users.setdefault(operand, []).append(instruction)
        self._found = {i: () for i in integers}
        pending = dict.fromkeys(integers)
        while pending:
            instruction = next(iter(pending))
            del pending[instruction]
            bits = self._step(instruction)
            if bits != self._found[instruction]:
                self._found[instruction] = bits
                pending.update(dict.fromkeys(users.get(instruction, ())))

    def _step(self, value: I.Instruction) -> Bits:
        bits = self._merged(value) if isinstance(value, _MERGES) else self._computed(value)
        found = self._number(bits) if len(bits) in DIGITS and not isinstance(value, _MERGES) else None
        if found is None or found.kept < DIGITS[len(bits)] or bits == own(found.source):
            return bits
        self._before[value] = replace(found, same=False)
        return own(value)

    def _merged(self, value: I.Instruction) -> Bits:
        """What may be one of several numbers is a number, and a part of it is; of anything else what all have."""
        operands = [v for v in I.merged(value) if v is not value]
        bits = [() if _is_pending(v, self._found) else self.of(v) for v in operands]
        known = [b for b in bits if b]
        if not known:
            return ()
        self._visits[value] = self._visits.get(value, 0) + 1
        if self._visits[value] > _MANY_VISITS:
            return self._join(value, known)
        same = alike(known)
        if MIXED not in same or all(MIXED in b for b in known):
            return same
        if len(known) == len(bits) and (side_by_side := self._side_by_side(value, known)):
            return side_by_side
        numbers = [self._number(b) for b in known]
        fits = all(n is not None or not any(map(is_digit, b)) for n, b in zip(numbers, known, strict=True))
        return own(value) if any(numbers) and fits else self._join(value, known)

    def _side_by_side(self, value: I.Instruction, known: list[Bits]) -> Bits:
        """The bits of the number that is one of several others, where the same ones of each come in; else none."""
        sources = [{b.source: None for b in bits if isinstance(b, Field)} for bits in known]
        if not isinstance(value, I.Phi | I.Select) or any(len(s) != 1 for s in sources):
            return ()
        chosen = tuple(next(iter(s)) for s in sources)
        if len({s.type for s in chosen}) != 1 or isinstance(value.type, T.VectorType):
            return ()
        if value in value.operands:
            return ()
        merged = self._merge(value, chosen)
        found: list[Bit] = []
        for column in zip(*known, strict=True):
            fields = [b for b in column if isinstance(b, Field)]
            if len(fields) == len(column) and len({(b.at, b.added) for b in fields}) == 1:
                found.append(replace(fields[0], source=merged))
            elif any(map(is_digit, column)):
                return ()
            else:
                found.append(column[0] if len(set(column)) == 1 else CLEAN)
        return tuple(found)

    def _merge(self, value: I.Phi | I.Select, chosen: tuple[Value, ...]) -> Value:
        """What merges the bits of such numbers, as a whole; it need not be in the function."""
        first = value.operands[:1] if isinstance(value, I.Select) else []
        operands, type_, targets = [*first, *chosen], chosen[0].type, list(value.targets)
        key = (self._homes[value], *targets, *operands)
        merged = self._merges.get(key)
        if merged is None:
            merged = I.Select(type_, "select", operands) if first else I.Phi(type_, "phi", operands, targets=targets)
            self._merges[key] = merged
        self.parts.setdefault(merged, {})[value] = None
        return merged

    def _join(self, value: I.Instruction, known: Sequence[Bits]) -> Bits:
        self._visits[value] = _MANY_VISITS
        before = self._found.get(value, ())
        return alike([*known, before] if before and before != own(value) else known)

    def _number(self, bits: Bits) -> Number | None:
        count = DIGITS.get(len(bits))
        if count is None or not isinstance(first := bits[count - 1], Field) or first.at != count - 1:
            return None
        source = first.source
        if width(source.type) != len(bits):
            return None
        added = min(first.added, (1 << count) - first.added)
        noise = self._noise.get(source, 0) + added
        low = count
        while low and bits[low - 1] == Field(source, low - 1).plus(first.added):
            low -= 1
        if low == count or any(map(is_digit, (*bits[:low], *bits[count:]))):
            return None
        if not any(bits[count:-1]):
            return None  # too small for a quotient that tells by how much
        kept = count - max(low, noise.bit_length())
        same = all(bit == Field(source, i).plus(first.added) for i, bit in enumerate(bits[count:], count))
        return Number(source, kept, same) if kept > 0 else None

    @cached_property
    def digits_choose(self) -> bool:
        """Whether digits say which element of a table is read, or where control goes among many."""
        for user in self._function.instructions():
            if isinstance(user, I.GetElementPtr | I.Switch):
                chosen = user.operands[1:] if isinstance(user, I.GetElementPtr) else user.operands[:1]
                if any(self.has_digits(v) for v in chosen if width(v.type)):
                    return True
        return False

    @cached_property
    def _casts(self) -> dict[Value, Value]:
        """The sources that the bits of numbers are: what takes them for integers, or a merge of such."""
        found: dict[Value, Value] = {}
        for cast in self._homes:
            if cast.opcode == "bitcast" and width(cast.type) in DIGITS and _fits(cast.operands[0].type, cast.type):
                number = cast.operands[0]
                operands = I.merged(number) if isinstance(number, I.Phi | I.Select) else []
                if operands and all(o in found for o in operands) and number not in found:
                    assert isinstance(number, I.Phi | I.Select)
                    found[number] = self._merge(number, tuple(found[o] for o in operands))
                found.setdefault(number, cast)
        return found

    # -- one instruction

    def _computed(self, value: I.Instruction) -> Bits:
        count = width(value.type)
        match value:
            case I.Cast(operands=[x]) if T.is_float(x.type):
                if value.opcode != "bitcast" or is_whole(x):
                    return (CLEAN,) * count
                source = self._casts.get(x)
                return (MIXED,) * count if source is None else own(source)
            case I.Load() if self._is_bits(value):
                return (MIXED,) * count  # of which number, or numbers, nobody knows
            case I.Compare():
                return (CLEAN,) * count
            case I.Cast(operands=[x]) if width(x.type):
                return self._cast(value, x)
            case I.BinaryOp(operands=[x, y]):
                if _is_pending(x, self._found) or _is_pending(y, self._found):
                    return ()
                return self._binary(value, self.of(x), self.of(y), int_value(lane_of(y)))
            case _:
                went_in = any(map(self.has_digits, value.operands)) and not isinstance(value, I.Load)
                return (MIXED if went_in else CLEAN,) * count

    def _cast(self, value: I.Cast, x: Value) -> Bits:
        if _is_pending(x, self._found):
            return ()
        bits, count = self.of(x), width(value.type)
        match value.opcode:
            case "trunc":
                return bits[:count]
            case "zext":
                return bits + (0,) * (count - len(bits))
            case "sext":
                return bits + bits[-1:] * (count - len(bits))
            case _:
                return (mixed(bits),) * count

    def _binary(self, value: I.BinaryOp, x: Bits, y: Bits, by: int | None) -> Bits:
        changed: Bits = ()
        if by is None and value.opcode in ("add", "sub"):
            of_x, of_y = map(_farthest, value.operands)
            changed = self._changed(value, x, y, of_y)
            if value.opcode == "add":
                changed = changed or self._changed(value, y, x, of_x)
        return changed or combined(value.opcode, x, y, by)

    def _changed(self, value: I.BinaryOp, x: Bits, by: Bits, most: int | None) -> Bits:
        """The bits of a number of which some digits, and what is above, are changed by an integer, which is one of some
        constants where a `most` is given that they are away from 0; none where it is something else."""
        count = DIGITS.get(len(x), 0)
        if not count or not isinstance(x[0], Field) or x != own(x[0].source) or not any(by[:count]):
            return ()
        if any(by[count:]) and any(map(is_digit, by)):
            return ()
        source = x[0].source
        if most is None or most >> count:
            most = (1 << max(i + 1 for i in range(count) if by[i] != 0)) - 1
        noise = most + self._noise.get(source, 0)
        self._noise[value] = noise
        self._before[value] = Number(source, count - noise.bit_length(), not any(by[count:]))
        return own(value)


def _farthest(value: Value) -> int | None:
    """How far from 0, at most, an integer is that is one of several constants (`x > 0 ? 1 : -1`)."""
    turn = 1 << width(value.type)
    found = [int_value(lane_of(v)) for v in I.merged(value)] if isinstance(value, I.Phi | I.Select) else []
    constants = [min(k % turn, -k % turn) for k in found if k is not None]
    return max(constants) if found and len(constants) == len(found) else None


def _of_leaf(value: Value) -> Bits:
    number, count = int_value(lane_of(value)), width(value.type)
    return (CLEAN,) * count if number is None else of_constant(number, count)


def _is_pending(value: Value, found: Mapping[Value, Bits]) -> bool:
    """Whether nothing is known yet of what an instruction computes."""
    return value in found and not found[value]


def _fits(number: T.Type, integer: T.Type) -> bool:
    """Whether there is one integer for each number."""
    scalar = T.scalar(number)
    return isinstance(scalar, T.FloatType) and 8 * scalar.size == width(integer)
