"""Counters of loops in terms of one another: `p` and `i` of `for (i = 0, p = x; i < n; i++, p++)` move together."""

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
        moved = _step(loop, phi) if isinstance(phi, I.Phi) else None
        if moved is not None:
            assert isinstance(phi, I.Phi)
            counters.append((phi, *moved))
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


def _step(loop: Loop, phi: I.Phi) -> tuple[Value, int] | None:
    """What a phi starts with, and the constant that is added in every iteration."""
    inside = [v for v, source in phi.incoming if source in loop.blocks]
    outside = [v for v, source in phi.incoming if source not in loop.blocks]
    if len(inside) != 1 or len(outside) != 1:
        return None
    (next_,) = inside
    if not isinstance(next_, I.BinaryOp | I.GetElementPtr) or len(next_.operands) != 2 or next_.operands[0] is not phi:
        return None
    step = int_value(next_.operands[1])
    if isinstance(next_, I.GetElementPtr):
        return (outside[0], step) if step and next_.source_type == T.I8 else None
    if not step or next_.opcode not in ("add", "sub"):
        return None
    return outside[0], step if next_.opcode == "add" else -step
