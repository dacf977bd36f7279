"""Counters of loops: by how much they go on, and in terms of one another: `p` and `i` of
`for (i = 0, p = x; i < n; i++, p++)` move together."""

from __future__ import annotations

from dataclasses import dataclass

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Value, int_value


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
