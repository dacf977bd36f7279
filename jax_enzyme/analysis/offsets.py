"""Sets of integers, each a few congruences: what may be added to where an object starts, and arithmetic on such sets.

Where there would be too many congruences, fewer take their place that include them all (`fewer`): what is said stays
true, only less exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, reduce
from math import gcd
from typing import TypeVar

from jax_enzyme.analysis.congruence import ANY, Congruence
from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.guards import INVERSE, known_with
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value, int_value

K = TypeVar("K", bound=Hashable)
Offsets = frozenset[Congruence]
START: Offsets = frozenset([Congruence(0, 0)])
ANYWHERE: Offsets = frozenset([ANY])
MOST = 16
"""So many congruences are kept of a sum or a product."""
_MANY_STEPS = 4
"""The values of a counter, or under a mask, with so few are told one by one; of one with more, as a range."""


@lru_cache(maxsize=4096)
def exactly(number: int) -> Offsets:
    """One number."""
    return frozenset([Congruence(number, 0)])


def joined(offsets: Offsets) -> Congruence:
    """One congruence that includes them all."""
    return reduce(Congruence.join, offsets)


def constant(offsets: Offsets) -> int | None:
    """The one number in the set, if that is all there is."""
    (first, *rest) = offsets
    return first.offset if first.modulus == 0 and not rest else None


def sums(xs: Offsets, ys: Offsets) -> Offsets:
    """Every sum. What goes over a few places of each record of an array is told one by one."""
    xs, ys = _one_by_one(xs, ys), _one_by_one(ys, xs)
    if len(xs) == 1 == len(ys):
        ((x,), (y,)) = xs, ys
        return frozenset([x + y])
    found = frozenset(x + y for x in xs for y in ys)
    return found if len(found) <= MOST else fewer(found, MOST // 2)


def _one_by_one(xs: Offsets, ys: Offsets) -> Offsets:
    """Ranges that are not kept beside a period as the single numbers that they have."""
    ranges = [x for x in xs if x.last is not None]
    if not ranges or not any(y.modulus and y.last is None and x.modulus % y.modulus for x in ranges for y in ys):
        return xs
    numbers = [range(x.offset, x.last + 1, x.modulus) for x in ranges if x.last is not None]
    if any(each[MOST:] for each in numbers) or sum(map(len, numbers)) > MOST:
        return xs
    return xs.difference(ranges).union(Congruence(n, 0) for each in numbers for n in each)


def multiples(xs: Offsets, factor: int) -> Offsets:
    """Each times a number."""
    if factor == 1:
        return xs
    return frozenset(x * Congruence(factor, 0) for x in xs)


def products(xs: Offsets, ys: Offsets) -> Offsets:
    """Every product."""
    if len(xs) * len(ys) > MOST:
        return frozenset([joined(xs) * joined(ys)])
    return frozenset(x * y for x in xs for y in ys)


def masked(offsets: Offsets, mask: int) -> Offsets:
    """After a bitwise `and` with a constant: one by one, where few numbers are left."""
    found = frozenset(c.masked(mask) for c in offsets)
    if mask < 0 or 1 << mask.bit_count() > _MANY_STEPS or all(c.modulus == 0 for c in found):
        return found
    numbers = [0]
    while number := (numbers[-1] - mask) & mask:
        numbers.append(number)
    return frozenset(Congruence(n, 0) for n in numbers)


def shifted(shift: I.BinaryOp, offsets: Offsets, by: int) -> Offsets:
    """After a shift to the right."""
    bits = T.bits(shift.type)
    return frozenset(c.shifted_right(by % bits, bits, signed=shift.opcode == "ashr") for c in offsets)


def fewer(offsets: Offsets, most: int) -> Offsets:
    """At most so many congruences that include all of these: modulo the stride by which they include least besides."""
    starts = sorted({c.offset for c in offsets})
    strides = {b - a for i, a in enumerate(starts) for b in starts[i + 1 :]} if most > 1 else set[int]()
    best: tuple[float, int, Offsets] | None = None
    for stride in strides:
        found = frozenset(Congruence.of(c.offset, gcd(c.modulus, stride)) for c in offsets)
        if len(found) <= most:
            share = sum(1 / c.modulus for c in found), stride, found
            best = share if best is None or share[:2] < best[:2] else best
    return frozenset([joined(offsets)]) if best is None else best[2]


def merge(into: dict[K, Offsets], more: dict[K, Offsets], most: int) -> list[K]:
    """Joins sets into others, key by key, with so many congruences in each at most. The keys of those that changed."""
    changed: list[K] = []
    for key, offsets in more.items():
        old = into.get(key)
        if old is offsets or old is ANYWHERE or (old is not None and not offsets):
            continue
        new = _either(old, offsets, most) if old or len(offsets) > 1 else offsets
        if new is not old and new != old:
            into[key] = new
            changed.append(key)
    return changed


@lru_cache(maxsize=1 << 14)
def _either(old: Offsets | None, more: Offsets, most: int) -> Offsets:
    """The congruences of both sets, or fewer that include them. Remembered: objects are many, and lie at the same few
    offsets behind one pointer and another."""
    if old is not None:
        if more <= old:
            return old
        # What another one includes goes, so that a join of many stays when its parts come again.
        more = frozenset(c for c in more if c not in old and not any(d.includes(c) for d in old))
        if not more:
            return old
    new = more if old is None else old | more
    # Of single numbers none includes another.
    if len(new) > 1 and any(c.modulus for c in new):
        new = frozenset(c for c in new if not any(d.includes(c) for d in new if d is not c))
    return fewer(new, most) if len(new) > most else new


def without(numbers: Offsets, excluded: int) -> Offsets:
    """The numbers less one; all of them where that would be none."""
    others = [
        Congruence.bounded(c.offset, excluded - c.modulus, c.modulus) if c.last == excluded else c
        for c in numbers
        if c != Congruence(excluded, 0)
    ]
    return frozenset(others) or numbers


def excluded_by(condition: Value, value: Value) -> int | None:
    """What a value is not where a condition does not hold: in `i == n ? 0 : i`, the chosen i is not n."""
    if not isinstance(condition, I.Compare) or condition.predicate != "eq" or condition.operands[0] is not value:
        return None
    return int_value(condition.operands[1])


def values_of_counter(phi: I.Phi) -> Offsets | None:
    """The values of a loop's counter that goes by steps of 1 or -1 from a constant, or from what such a counter was
    last, to a constant; None for any other phi. The loop is left at its end, as optimisers turn loops: what is compared
    there is the counter, or what follows it. Of one that may be left earlier, the values are these at most."""
    return _counted_from(phi, _values_at_exit)


def _values_at_exit(start: Value) -> tuple[int, int] | None:
    """The least and the greatest value of a constant, or of a counter behind its loop."""
    while isinstance(start, I.Phi) and len(start.operands) == 1:
        start = start.operands[0]
    if (known := _constant(start)) is not None:
        return known
    values = _counted_from(start, _constant) if isinstance(start, I.Phi) else None
    spans = [c.span for c in values or ()]
    known = [span for span in spans if span is not None]
    return (min(a for a, _ in known), max(b for _, b in known)) if known and len(known) == len(spans) else None


def _constant(start: Value) -> tuple[int, int] | None:
    number = int_value(start)
    return None if number is None else (number, number)


def _counted_from(phi: I.Phi, starts: Callable[[Value], tuple[int, int] | None]) -> Offsets | None:
    if len(phi.operands) != 2 or not isinstance(phi.type, T.IntType):
        return None
    for start, (following, latch) in zip(phi.operands, reversed(phi.incoming), strict=True):
        step, last = step_to(following, phi), latch.terminator
        if step not in (1, -1) or not isinstance(last, I.CondBranch) or (first := starts(start)) is None:
            continue
        stays = [phi in target.instructions for target in last.targets]
        if stays[0] == stays[1]:
            continue
        for test, is_true in known_with(last.operands[0], stays[0]):
            final = _greatest_or_least(test, phi, following, step, is_true=is_true)
            low, high = first
            if final is None or (final < high if step > 0 else low < final):
                continue
            low, high = (low, final) if step > 0 else (final, high)
            if high - low < _MANY_STEPS:
                return frozenset(Congruence(k, 0) for k in range(low, high + 1))
            return frozenset([Congruence.bounded(low, high, 1)])
    return None


def _greatest_or_least(test: Value, phi: I.Phi, following: Value, step: int, *, is_true: bool) -> int | None:
    """The last value that a counter may have, if its loop goes on where a test has this answer."""
    if not isinstance(test, I.Compare) or test.opcode != "icmp" or test.operands[0] not in (phi, following):
        return None
    bound = int_value(test.operands[1])
    predicate = test.predicate if is_true else INVERSE[test.predicate]
    if bound is None or not (predicate == "ne" or (step > 0 and predicate in ("ult", "slt") and bound > 0)):
        return None
    return bound if test.operands[0] is phi else bound - step
