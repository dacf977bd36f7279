"""Counters of loops: by how much they go on, which tests they keep a loop going by, and in terms of one another: `p`
and `i` of `for (i = 0, p = x; i < n; i++, p++)` move together."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.guards import INVERSE, SWAPPED
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Value, int_value

_DEEP = 8
"""So many instructions lie between a counter and a test at most."""


@dataclass(frozen=True)
class Counted:
    """A value that is a phi of a loop's header, which goes on by a constant `step`, after `casts`, and with something
    `added` to it: a number; None for anything else that does not change in the loop."""

    phi: I.Phi
    step: int
    added: int | None
    casts: frozenset[str]


@dataclass(frozen=True)
class Test:
    """The loop goes on behind `block` while `predicate(counted, bound)`."""

    counted: Counted
    predicate: str
    bound: Value
    block: BasicBlock


def tests(loop: Loop) -> Iterator[Test]:
    """What a loop asks of its counters where it may be left."""
    for block in loop.exiting:
        last = block.terminator
        test = last.operands[0] if isinstance(last, I.CondBranch) else None
        stays = [target in loop.blocks for target in last.targets]
        while isinstance(test, I.BinaryOp) and test.opcode == "xor" and int_value(test.operands[1]) is not None:
            stays = stays[::-1] if int_value(test.operands[1]) else stays
            test = test.operands[0]
        if not isinstance(test, I.Compare) or test.opcode != "icmp" or stays[0] == stays[1]:
            continue
        predicate = test.predicate if stays[0] else INVERSE[test.predicate]
        x, y = test.operands
        for value, bound, own in ((x, y, predicate), (y, x, SWAPPED[predicate])):
            if (found := counted(loop, value)) is not None:
                yield Test(found, own, bound, block)


def repeats(loop: Loop, source: BasicBlock) -> int | None:
    """In which iteration a loop is left, from 0 on, by a block that every iteration runs and that compares a counter
    which goes from one constant to another, whatever its bits may hold; None where there is no such number."""
    for test in tests(loop):
        counter, ends, bound = test.counted, loop.ends(test.counted.phi), int_value(test.bound)
        start, type_ = int_value(ends[0]) if ends is not None else None, counter.phi.type
        if test.block is not source or not counter.casts <= {"sext"} or not isinstance(type_, T.IntType):
            continue
        if start is None or counter.added is None or bound is None:
            continue
        first = start + counter.added
        predicate, forward = test.predicate, counter.step > 0
        if predicate != "ne" and not (predicate[0] in "su" and (predicate[1] == "l") is forward):
            continue
        past = predicate[2:] == "e"
        count, rest = divmod((bound - first) * (1 if forward else -1) + past, abs(counter.step))
        count += rest > 0 and predicate != "ne"
        if (count < 0 or rest) and predicate == "ne":
            continue
        count = max(0, count)
        values = (first, first + counter.step * count, bound)
        half = 1 << (type_.bits - 1)
        if max(values) < half and min(values) >= (0 if predicate[0] == "u" else -half):
            return count
    return None


def way(loop: Loop) -> tuple[Value, Value] | None:
    """From where to where a counter of 64 bits goes, one by one, by which alone a loop is left, at its end: so many
    iterations has it. None where no counter does."""
    for test in tests(loop) if loop.exiting == loop.latches else ():
        counter, ends = test.counted, loop.ends(test.counted.phi)
        is_one = counter.step == counter.added == 1 and not counter.casts and counter.phi.type == T.I64
        inside = any(test.bound in block.instructions for block in loop.blocks)
        if test.predicate == "ne" and is_one and not inside and ends is not None:
            return ends[0], test.bound
    return None


def counted(loop: Loop, value: Value) -> Counted | None:
    """A value in terms of a phi that moves on by one constant in every iteration; None where it is anything else."""
    added: int | None = 0
    casts = set[str]()
    for _ in range(_DEEP):
        match value:
            case I.Phi():
                steps = {step_to(v, value) for v, source in value.incoming if source in loop.blocks}
                step = steps.pop() if len(steps) == 1 and value in loop.header.instructions else None
                return Counted(value, step, added, frozenset(casts)) if step else None
            case I.Cast():
                casts.add(value.opcode)
            case I.BinaryOp(opcode="add" | "sub") | I.GetElementPtr():
                more = step_to(value, value.operands[0])
                added = None if more is None or added is None else added + more
            case _:
                return None
        variable = [v for v in value.operands if isinstance(v, I.Instruction)]
        if len(variable) != 1:
            return None
        (value,) = variable
    return None


@dataclass(frozen=True)
class Follower:
    """A phi that is `start` + `ratio` * (`leader` - `first`) in every iteration."""

    start: Value
    ratio: int
    leader: I.Phi
    first: int


def followers(loops: Loops) -> dict[Value, Follower]:
    """The counters of all loops but one for each loop, and what they follow."""
    return {phi: follower for loop in loops.all for phi, follower in _of_loop(loop).items()}


def _of_loop(loop: Loop) -> dict[Value, Follower]:
    counters: list[tuple[I.Phi, Value, int]] = []
    for phi in loop.header.instructions:
        ends = loop.ends(phi) if isinstance(phi, I.Phi) else None
        step = None if ends is None else step_to(ends[1], phi)
        if ends is not None and step:
            assert isinstance(phi, I.Phi)
            counters.append((phi, ends[0], step))
    leaders = [(phi, first, step) for phi, start, step in counters if (first := int_value(start)) is not None]
    if not leaders:
        return {}
    leader, first, pace = min(leaders, key=lambda row: abs(row[2]))
    result: dict[Value, Follower] = {}
    for phi, start, step in counters:
        fits = phi.type == leader.type or (T.is_pointer(phi.type) and leader.type == T.I64)
        if phi is not leader and fits and step % pace == 0:
            result[phi] = Follower(start, step // pace, leader, first)
    return result


def step_to(following: Value, phi: Value) -> int | None:
    """The constant that a value is more than a phi, in bytes where that is an address; None where it is anything else
    than such a sum."""
    if not isinstance(following, I.BinaryOp | I.GetElementPtr) or len(following.operands) != 2:
        return None
    before, by = following.operands[0], int_value(following.operands[1])
    if before is not phi or by is None:
        return None
    if isinstance(following, I.GetElementPtr):
        return by if following.source_type == T.I8 else None
    return {"add": by, "sub": -by}.get(following.opcode)
