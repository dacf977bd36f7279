"""Questions that have one answer at one value of a number and another one on both sides of it.

    x.is_normal()                      icmp ult (and %bits, 0x7ff << 52) - 1, ...                false at 0
    x.total_cmp(&y) == Equal           icmp eq (xor %bits, sign >> 1), (xor %others, ...)        true where x is y
    (high & 0x7fffffff | low) == 0     icmp eq i32 (or ...), 0                                   true at 0
    isinf(1 / x), isnan(x / x)         fcmp oeq (fabs (fdiv 1.0, %x)), inf                       true at 0
    ceil(x) == floor(x)                fcmp oeq (ceil %x), (floor %x)                            true at integers
    (int)ceil(x) == (int)floor(x)      icmp eq (fptosi (ceil %x)), (fptosi (floor %x))           true at integers
    1 / fabs(x) > DBL_MAX              fcmp ogt (fdiv 1.0, (fabs %x)), 1.7e308                   true at 0
    frexp(x, &e), e == 0               icmp eq (call frexp_exponent(%x)), 0                     true at 0
    cos(x) < 1                         fcmp olt (cos %x), 1.0                                    false at 0

Such a question is answered for numbers at the value and on both sides of it, near and far; other numbers that it is
about are any then. Where all on both sides have one answer, and the value has the other, it asks whether the number is
that value. That is seen and not proved: it is enough to warn, and `shortcuts` proves nothing of it. Two numbers that
are put in order may be the same there, and round to the same next to it: further away one of them is the larger, on
both sides.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from jax_enzyme.analysis.number_folding import KINDS, is_foldable, made_of, makes_integer, sample
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import is_fused
from jax_enzyme.ir.reach import Reached, bottom_up, led_to, reached
from jax_enzyme.ir.reach import made_of as made_from
from jax_enzyme.ir.values import Constant, Value, int_value

_MOST_PARTS = 400
"""Of how many instructions a question may be made. Whether bits are equal, or what is made of them in a loop, is taken
to be such a question where there are more; of numbers, those further away are any."""
_MOST_ORDERED = 12
"""So many for an ordering, of which programs have the most by far: what its numbers are made of further away is any."""
_MOST_NUMBERS = 60
"""Of how many numbers that a question is made of it is tried whether it singles them out, the nearest ones."""
_INTEGERS: Mapping[str, type[np.signedinteger[Any]]] = {"double": np.int64, "float": np.int32}
_NEAR_ZERO = {"double": (3e-308, 1e-250, 2e-154), "float": (2e-38, 1e-30, 2e-19)}
"""Normal numbers that have no square, or none with all its digits, but for the last."""
_DIFFERENT = (-3.5, -2.0, -1.0, 1e-30, 0.75, 1.0, 1.0000002, 1.5, 2.0, 1e30)
_AROUND_ZERO = tuple(sign * size for size in (2e-154, 1e-90, 1e-19, 1e-7, 0.013) for sign in (1, -1))
_MANY, _OFTEN = np.array([0, *_DIFFERENT, *np.linspace(-3.1, 3.7, 50)]), 4
_WIDTHS = (8, 16, 32, 64)
_SMALL = 1e-18
"""Below, numbers of type float have no square."""
_FAR = 0.005
_SUMS = frozenset("fadd fsub fneg fpext fptrunc sitofp".split())
_ANY = (0.7310585786300049, -1.6180339887498949)

Sample = np.ndarray


def is_bits(value: Value) -> TypeGuard[I.Cast]:
    """Whether an integer is the bits of a number."""
    return isinstance(value, I.Cast) and value.opcode == "bitcast" and str(value.operands[0].type) in KINDS


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a question is made of: what is computed, the numbers and integers that it is computed of, and constants.
    `all`: none was left out, and none is made in a loop."""

    computed: list[I.Instruction]
    given: list[Value]
    constants: list[Constant]
    all: bool

    @property
    def of_bits(self) -> list[Value]:
        """The numbers of which it looks at bits."""
        return list(dict.fromkeys(i.operands[0] for i in self.computed if is_bits(i)))


def answer_at_equality(question: I.Instruction) -> bool | None:
    """What a question says where a number is one value, or two numbers are the same, if it says something else on both
    sides of that; None where it asks something else. Of comparisons of numbers those are meant that are none for
    equality."""
    return next((answer for _, answer in _singled_out(question)), None)


def numbers_asked(question: I.Instruction) -> Sequence[Value]:
    """The numbers of which a question about single values asks whether they are these. Others that it is about do not
    count: `rint(x) == 1` holds for many an x."""
    return [number for numbers, _ in _singled_out(question) for number in numbers]


def _singled_out(question: I.Instruction) -> Iterator[tuple[Sequence[Value], bool]]:
    """The numbers that a question tells from others, each way that it does, and what it says of them."""
    if not isinstance(question, I.Compare | I.Call) or question.type != T.I1 or not is_foldable(question):
        return
    parts = _parts(question)
    if not isinstance(question, I.Compare) or question.opcode != "icmp":
        if not _grows(question, parts):
            yield from _among_numbers(question, parts)
    elif any(makes_integer(i) for i in parts.computed):
        if parts.all and not parts.of_bits:
            yield from _among_numbers(question, parts)
    elif parts.of_bits:
        answer = _among_bits(question, parts.of_bits, parts)
        if answer is not None:
            yield parts.of_bits, answer


def _grows(question: I.Instruction, parts: _Parts) -> bool:
    """Whether numbers are put in order of which a larger one changes the answer once, as most orderings have it: they
    are sums of others, and products of such as have nothing in common, or they have nothing in common."""
    if not isinstance(question, I.Compare) or not is_ordering(question):
        return False
    computed = set(parts.computed)

    def made_of_others(value: Value) -> Iterable[Value]:
        return value.operands if isinstance(value, I.Instruction) and value in computed else ()

    def of(value: Value) -> set[Value]:
        return {v for v in reached([value], made_of_others) if not isinstance(v, Constant)}

    def is_linear(made: I.Instruction) -> bool:
        """In each number that it is made of."""
        if made.opcode in _SUMS:
            return True
        is_product = made.opcode == "fmul" or (made.opcode == "fdiv" and isinstance(made.operands[1], Constant))
        if not is_product and not is_fused(made):
            return False
        return of(made.operands[0]).isdisjoint(of(made.operands[1]))

    if all(is_linear(i) for i in computed if i is not question):
        return True
    one, other = map(of, question.operands)
    return bool(one and other) and one.isdisjoint(other)


def is_ordering(question: I.Compare) -> bool:
    """Whether it is asked which of two numbers is the larger."""
    return question.opcode == "fcmp" and question.predicate[1:] in ("lt", "le", "gt", "ge")


def _among_bits(question: I.Compare, numbers: Sequence[Value], parts: _Parts) -> bool | None:
    """The answer for the numbers that bits are of."""
    if not parts.all:
        return question.predicate == "eq" if question.predicate in ("eq", "ne") else None
    if len({n.type for n in numbers}) != 1:
        return None
    kind = str(numbers[0].type)
    if any(part not in numbers for part in parts.given):
        return _among_given(question, kind, numbers, parts)
    if _Samples({number: np.ones(1, KINDS[kind]) for number in numbers}).of(question) is None:
        return question.predicate == "eq" if question.predicate in ("eq", "ne") else None
    if len(numbers) == 1:
        tried = _neighbourhoods(kind, parts.constants)
        answers = (_told_apart(question, {numbers[0]: near}, count) for near, count in tried)
        return next((answer for answer in answers if answer is not None), None)
    ways = _one_of_many(kind, numbers, parts.constants) if question.predicate in ("eq", "ne") else ()
    answers = (_told_apart(question, *one) for one in ways)
    answer = next((answer for answer in answers if answer is not None), None)
    if answer is not None or len(numbers) > 2 or any(isinstance(part, I.Call) for part in parts.computed):
        return answer
    every = np.array(_DIFFERENT, KINDS[kind])
    x, y = np.meshgrid(every, every)
    either = [np.append(every, v[x != y]) for v in (x, y)]
    return _told_apart(question, dict(zip(numbers, either, strict=True)), len(every))


def _among_given(question: I.Compare, kind: str, numbers: Sequence[Value], parts: _Parts) -> bool | None:
    """The answer for numbers whose bits are compared with integers that may be any (`bits == key`): that it is these,
    if what is made of the bits is another integer for all numbers around one."""
    if question.predicate not in ("eq", "ne"):
        return None
    own = {value for value in led_to(numbers, parts.computed, _operands) if value in parts.computed}
    sides = [side for side in question.operands if side in own]
    if len(sides) != 1 or not _given(sides[0], parts) <= {*numbers}:
        return question.predicate == "eq"
    tried = _one_of_many(kind, numbers, parts.constants)
    told = any(_told_apart_as_integers(sides[0], *one) for one in tried)
    return question.predicate == "eq" if told else None


def _given(value: Value, parts: _Parts) -> set[Value]:
    """What a part of a question is made of, but for constants: numbers for their bits."""
    computed = set(parts.computed)
    found = reached([value], lambda v: _operands(v) if v in computed else ())
    return {v for v in found if v not in computed and not isinstance(v, Constant)}


def _one_of_many(
    kind: str, numbers: Sequence[Value], constants: Iterable[Constant]
) -> Iterator[tuple[dict[Value, Sample], int]]:
    """Samples of numbers, all of which are the same in the first ones, of which there are so many, and one of them
    another one in the others."""
    steps = np.exp2(-np.arange(1, np.finfo(KINDS[kind]).nmant + 1, 3))
    some = (1.5 * np.concatenate(([1], 1 - steps, 1 + steps))).astype(KINDS[kind])
    around = [*_neighbourhoods(kind, constants), (some, 1)]
    for number in numbers[:_MOST_NUMBERS]:
        for near, count in around:
            rest = np.full(len(near), near[0])
            yield {other: near if other is number else rest for other in numbers}, count


def integers_read(question: I.Compare) -> Sequence[I.Load]:
    """The integers in memory that a question is about, if it is about nothing else."""
    given = _parts(question).given
    found = [v for v in given if isinstance(v, I.Load) and isinstance(v.type, T.IntType) and v.type.bits in _WIDTHS]
    return found if len(found) == len(given) and len({v.type for v in found}) == 1 else []


def asks_for_zero(question: I.Compare) -> bool:
    """Whether a question about such integers, if they are parts of a number, has another answer for 0 than for numbers
    around it, wherever in the number the first one is. What is made of them in a loop is taken to be one."""
    parts, read = _parts(question), integers_read(question)
    if not read or not parts.all:
        return bool(read) and question.predicate in ("eq", "ne")
    near = np.array([0.0, *(sign * size for size in _NEAR_ZERO["double"] for sign in (1, -1)), *_ANY])
    bits = near.view(f"i{T.bits(read[0].type) // 8}").reshape(len(near), -1).astype(np.int64)
    places = range(bits.shape[1])
    around = ({load: bits[:, (first + n) % len(places)] for n, load in enumerate(read)} for first in places)
    return any(_told_apart(question, given) is not None for given in around)


def _among_numbers(question: I.Instruction, parts: _Parts) -> Iterator[tuple[Sequence[Value], bool]]:
    """The numbers that a question is made of which it singles out, whatever the others are, and its answer for them."""
    given = [v for v in parts.given if str(v.type) in KINDS]
    if len(given) < len(parts.given):
        return
    many, any_ = _Samples(_many(given)), [_Samples(_others(given, first)) for first in _ANY]
    for samples in any_:
        samples.of(question)
    around = {kind: list(_surroundings(kind, parts.constants)) for kind in KINDS}
    numbers = (*given, *(i for i in parts.computed if str(i.type) in KINDS))
    for number in numbers[:_MOST_NUMBERS]:
        near = around[str(number.type)]
        likely = [True] * len(near) if number in given else _may_be(many.of(number), [value for value, _ in near])
        tried = [np.append(value, others) for (value, others), may in zip(near, likely, strict=True) if may]
        if not tried:
            continue
        joined = np.concatenate(tried).astype(KINDS[str(number.type)])
        begins = np.cumsum([0, *(len(part) for part in tried[:-1])])
        of_it = led_to([number], parts.computed, _operands)
        first, second = (samples.with_sampled(number, joined, of_it) for samples in any_)
        found = _singled(question, first, joined, begins)
        again = found if set(found) == {None} else _singled(question, second, joined, begins)
        yield from (
            ([number], one) for one, other in zip(found, again, strict=True) if one is not None and one is other
        )


def _singled(question: I.Instruction, samples: _Samples, joined: Sample, begins: Sample) -> list[bool | None]:
    """What a question says of the sample that each part of the samples begins with, where it says something else of all
    others of the part. Of an ordering that counts where a side is infinite: numbers that have a limit, and those next
    to them, are on one side of it (`acos(x) < 1e-8`), but for those that `_first_touches` is about."""
    answers = samples.of(question)
    if answers is None:
        return [None] * len(begins)
    every = np.broadcast_to(answers, len(joined))
    same = every == np.repeat(every[begins], np.diff(begins, append=len(joined)))
    alone = np.add.reduceat(same, begins, dtype=np.int64) == 1
    found = [bool(answer) if one else None for answer, one in zip(every[begins], alone, strict=True)]
    if not isinstance(question, I.Compare) or not is_ordering(question):
        return found
    sides = [samples.of(operand) for operand in question.operands]
    one, other = (np.broadcast_to(of, len(joined)) for of in sides if of is not None)
    ends = [*begins[1:], len(joined)]
    infinite = (np.isinf(one) | np.isinf(other)) & ~(np.isnan(one) | np.isnan(other))
    found = [apart if beyond else None for apart, beyond in zip(found, infinite[begins], strict=True)]
    for n in np.flatnonzero(one[begins] == other[begins]):
        if found[n] is None:
            part = slice(begins[n], ends[n])
            found[n] = _first_touches(joined[part], one[part], other[part], every[part])
    return found


def _first_touches(number: Sample, one: Sample, other: Sample, answers: Sample) -> bool | None:
    """What an ordering says of the first sample, for which both numbers are the same, where one of them is the larger
    for all that are not next to it, and none the other way round."""
    with np.errstate(all="ignore"):
        larger = np.where(one == other, 0, np.where(one > other, 1, -1))
        far = np.abs(number - number[0]) > _FAR * max(1.0, abs(number[0]))
    if np.isnan(one).any() or np.isnan(other).any():
        return None
    apart = len(set(larger[1:]) - {0}) == 1 and not np.any(answers[far] == answers[0])
    return bool(answers[0]) if apart else None


def _others(given: Sequence[Value], first: float) -> dict[Value, Sample]:
    """Numbers that are any, and no two the same."""
    return {v: np.full(1, first * (1 + n / 7), KINDS[str(v.type)]) for n, v in enumerate(given)}


def _many(given: Sequence[Value]) -> dict[Value, Sample]:
    """Many numbers, in another order for each."""
    return {v: np.roll(_MANY, n).astype(KINDS[str(v.type)]) for n, v in enumerate(given)}


def _may_be(found: Sample | None, values: Sequence[float]) -> list[bool]:
    """Whether what is computed, of which some samples are given, is seen to be each of some values for some numbers, or
    to be less as well as more, and is not that for many: the smaller of a number and 0 is 0 in half of all cases."""
    if found is None:
        return [False] * len(values)
    every, each = np.broadcast_to(found, len(_MANY)), np.array(values)[:, np.newaxis]
    equal = every == each
    some = equal.any(1) | (every < each).any(1) & (every > each).any(1)
    return (some & (np.count_nonzero(equal, 1) < _OFTEN)).tolist()


class _Samples:
    """What is made of some numbers, for each sample of them: of what is the same for all, one sample."""

    def __init__(self, given: Mapping[Value, Sample | None]) -> None:
        self._known = dict(given)

    def with_sampled(self, number: Value, sampled: Sample, made_of_it: Container[Value]) -> _Samples:
        """The same for other samples of one number: what is not made of it is not asked for again."""
        kept = {value: known for value, known in self._known.items() if value not in made_of_it}
        return _Samples({**kept, number: sampled})

    def of(self, value: Value) -> Sample | None:
        with np.errstate(all="ignore"):
            for item, _ in bottom_up(value, _operands, self._known):
                self._known[item] = self._made(item)
        return self._known[value]

    def _made(self, value: Value) -> Sample | None:
        if not isinstance(value, I.Instruction):
            return sample(value)
        operands = _operands(value)
        known = [k for v in operands if (k := self._known[v]) is not None]
        return made_of(value, known) if len(known) == len(operands) and is_foldable(value) else None


def _operands(value: Value) -> Sequence[Value]:
    """What is folded: not the function that is called."""
    return value.arguments if isinstance(value, I.CallBase) else made_from(value)


def _told_apart(question: I.Instruction, given: Mapping[Any, Sample], count: int = 1) -> bool | None:
    """What a question says of the first samples, where it says the same of each and something else of all others."""
    found = _Samples(given).of(question)
    if found is None:
        return None
    answers = np.broadcast_to(found, len(next(iter(given.values()))))
    if np.any(answers[:count] != answers[0]) or np.any(answers[count:] == answers[0]):
        return None
    return bool(answers[0])


def _told_apart_as_integers(value: Value, given: Mapping[Any, Sample], count: int) -> bool:
    """Whether an integer is the same for the first samples, and another one for all others."""
    found = _Samples(given).of(value)
    if found is None:
        return True
    every = np.broadcast_to(found, len(next(iter(given.values()))))
    return not (np.any(every[:count] != every[0]) or np.any(every[count:] == every[0]))


def _parts(question: I.Instruction) -> _Parts:
    """Of a question about integers, those that bits are of are given."""
    most = _MOST_ORDERED if isinstance(question, I.Compare) and is_ordering(question) else _MOST_PARTS
    found = Reached[Value]([question])
    computed, given, constants = list[I.Instruction](), list[Value](), list[Constant]()
    looped = False
    for value in found:
        if isinstance(value, Constant):
            constants.append(value)
        elif is_bits(value) and question.opcode == "icmp":
            computed.append(value)
            given += [] if value.operands[0] in given else value.operands
        elif isinstance(value, I.Phi) and question.opcode == "icmp" and T.is_int(value.type):
            looped = True
            found.add(value.operands)
        elif isinstance(value, I.Instruction) and is_foldable(value) and len(computed) < most:
            computed.append(value)
            found.add(_operands(value))
        else:
            given.append(value)
    return _Parts(computed, given, constants, len(computed) < most and not looped)


def _surroundings(kind: str, constants: Iterable[Constant]) -> Iterator[tuple[float, Sample]]:
    """The values that a number of a kind may be asked for, and numbers on both sides of each, also those that are
    small, but not so small that they have no square."""
    least = 0 if kind == "double" else _SMALL
    yield 0.0, np.array([x for x in _AROUND_ZERO if abs(x) > least])
    digits = np.finfo(KINDS[kind]).nmant
    steps = np.exp2(-np.arange(1, digits + 1, 3))
    known = (float_value(constant) for constant in constants)
    for value in dict.fromkeys((1.0, *(k for k in known if k is not None))):
        if least < abs(value) < 1e30:
            yield value, value * np.concatenate((1 - steps, 1 + steps))


def _neighbourhoods(kind: str, constants: Iterable[Constant]) -> Iterator[tuple[Sample, int]]:
    """Values whose bits a number may be compared with, how many they are, and their neighbours: of 0, of all that is
    not normal, and of what the constants are that the question is made of, also as `total_cmp` has them. Whether a
    number is 0 or subnormal is asked by functions that scale it then, which is no comparison."""
    float_kind, int_kind = KINDS[kind], _INTEGERS[kind]
    near = np.array([sign * small for small in _NEAR_ZERO[kind] for sign in (1, -1)], float_kind)
    least = np.finfo(float_kind).smallest_subnormal * np.array([1, -1, 64, -64], float_kind)
    for zero in (0.0, -0.0):
        value = np.array([zero], float_kind)
        yield np.concatenate((value, least, near)), 1
        others = np.append(least, np.array([np.inf, np.nan], float_kind))
        yield np.concatenate((value, others, near)), 1 + len(others)
    limits = np.iinfo(int_kind)
    widths = (c for c in constants if isinstance(c.type, T.IntType) and c.type.bits == limits.bits)
    for constant in dict.fromkeys(map(int_value, widths)):
        for bits in () if constant is None else (constant, constant ^ int(limits.max)):
            value = np.array([bits], int_kind).view(float_kind)
            if near[0] < abs(value[0]) < 1e30:
                steps = np.exp2(-np.arange(1, np.finfo(float_kind).nmant + 1, 3)).astype(float_kind)
                yield np.concatenate((value, *(value * (1 - step) for step in (steps, -steps)))), 1
