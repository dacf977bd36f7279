"""Warp shuffles: what a lane gives goes through memory that the warp shares.

before    %y = call double @je.shuffle.double(double %x, i32 %source)
after     store %x in shared[lane]; meet; %y = load shared[%source]; meet

Where the lanes' sources follow from the lane alone and lie at one or two distances, as for shifts and butterflies, each
lane reads at these distances and chooses, or keeps its own: reads of neighbours that lie side by side become vectors,
which an index that wraps around would not. There is room for that on both sides of what the lanes share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from jax_enzyme.analysis.folding import evaluated
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.rewriting import Change, rewrite

WARP_SIZE = 32


def lower_shuffles(module: Module, function: Function) -> frozenset[Value]:
    """Rewrites a function; the variables that all lanes of a warp share."""
    shared: dict[T.Type, I.Instruction] = {}
    top = Builder(BasicBlock())
    lanes = [i for i in function.instructions() if callee_name(i) == marks.LANE]

    def change_of(instruction: I.Instruction) -> Change | None:
        if not callee_name(instruction).startswith(marks.SHUFFLE):
            return None
        value, source = instruction.operands[:2]
        if value.type not in shared:
            variable = top.alloca(_row(value.type))
            assert isinstance(variable, I.Alloca)
            shared[value.type] = variable
        is_sum = callee_name(instruction).startswith(marks.SHUFFLE_SUM)
        apart = None if is_sum else _distances(source, lanes)
        return lambda at: _exchange(module, at, shared[value.type], value, source, is_sum, apart)

    rewrite(function, change_of)
    function.entry.instructions[0:0] = top.block.instructions
    return frozenset(shared.values())


def forget_lanes(function: Function, shared: Collection[Value]) -> None:
    """Clears what a lane shared behind the shuffle: a later one of fewer lanes finds zeros in the place of those that
    are not there. Meetings end their blocks."""
    given = [(b, i) for b in function.blocks for i in b.instructions if isinstance(i, I.Store)]
    for block, store in given:
        if I.base_of(store.operands[1]) in shared:
            (reading,) = block.successors
            (behind,) = reading.successors
            Builder.behind_phis(behind).store(zero(store.operands[0].type), store.operands[1])


def _distances(source: Value, lanes: Iterable[Value]) -> list[int] | None:
    """How far from itself lanes read, but for those that read their own; None where that is at more than two distances,
    or where there is more to it than the lane."""
    numbers = evaluated(source, dict.fromkeys(lanes, np.arange(WARP_SIZE)))
    if numbers is None:
        return None
    found = set((numbers % WARP_SIZE - np.arange(WARP_SIZE)).tolist())
    found.discard(0)
    return sorted(found) if 0 < len(found) <= 2 else None


def _exchange(
    module: Module, at: Builder, variable: Value, value: Value, source: Value, is_sum: bool, apart: list[int] | None
) -> Value:
    """What the lane gets. For a sum, `source` is the mask of lanes."""
    meeting = marks.meeting(module, marks.MEET_WARP)
    lane = at.call(marks.index(module, marks.LANE, WARP_SIZE), [])
    at.store(value, _element(at, variable, value.type, lane))
    at.call(meeting, [])
    inside = at.binary("and", source, const_int(T.I32, WARP_SIZE - 1))
    if is_sum:
        result = _total(at, variable, value.type, source)
    elif apart is not None:
        result = value
        for distance in apart:
            there = at.load(value.type, _element(at, variable, value.type, lane, distance))
            reads = at.icmp("eq", inside, at.binary("add", lane, const_int(T.I32, distance)))
            result = at.select(reads, there, result)
    else:
        result = at.load(value.type, _element(at, variable, value.type, inside))
    at.call(meeting, [])
    return result


def _total(at: Builder, variable: Value, kind: T.Type, mask: Value) -> Value:
    total: Value = zero(kind)
    for lane in range(WARP_SIZE):
        bit = at.cast("trunc", at.binary("lshr", mask, const_int(T.I32, lane)), T.I1)
        part = at.load(kind, _element(at, variable, kind, const_int(T.I32, lane)))
        total = at.binary("fadd", total, at.select(bit, part, zero(kind)))
    return total


def _row(kind: T.Type) -> T.ArrayType:
    """What lanes share: a number of each, and as much room before and behind them."""
    return T.ArrayType(3 * WARP_SIZE, kind)


def _element(at: Builder, variable: Value, kind: T.Type, lane: Value, distance: int = 0) -> Value:
    place = at.binary("add", at.cast("zext", lane, T.I64), const_int(T.I64, WARP_SIZE + distance), ("nuw", "nsw"))
    return at.gep(_row(kind), variable, [const_int(T.I64, 0), place])


def source_lane(at: Builder, mode: str, lane: Value, offset: Value, clamp: Value) -> tuple[Value, Value]:
    """The lane that PTX's `shfl.sync` reads for a lane, and whether it lies in that lane's section."""
    bound = at.binary("and", clamp, const_int(T.I32, WARP_SIZE - 1))
    shifted = at.binary("lshr", clamp, const_int(T.I32, 8))
    sections = at.binary("and", shifted, const_int(T.I32, WARP_SIZE - 1))
    base = at.binary("and", lane, sections)
    rest = at.binary("xor", sections, const_int(T.I32, WARP_SIZE - 1))
    last = at.binary("or", base, at.binary("and", bound, rest))
    match mode:
        case "up":
            found = at.binary("sub", lane, offset)
            inside = at.icmp("sge", found, last)
        case "down":
            found = at.binary("add", lane, offset)
            inside = at.icmp("sle", found, last)
        case "bfly":
            found = at.binary("xor", lane, offset)
            inside = at.icmp("sle", found, last)
        case _:
            found = at.binary("or", base, at.binary("and", offset, rest))
            inside = at.icmp("sle", found, last)
    return at.select(inside, found, lane), inside
