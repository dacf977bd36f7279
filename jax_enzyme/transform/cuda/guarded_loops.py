"""Loops of which only a range of iterations does anything run over that range.

    before    for (t = 0; t < 32; t++) { if (t + first < n && y > 0) x; }
    after     for (t = 0; t < (y > 0 ? min(32, n - first) : 0); t++) x;

The same for loops that count down, as those of reverse sweeps do, for such as begin behind an end that was made apart,
and for such as add up in what works.

Every CUDA kernel has such loops: its threads ask whether they are within the array. The vectoriser would make masked
accesses of it, which processors without AVX-512 are slow at, or nothing. It is for code that is complete: a loop of
which only the run knows the number of iterations has no place of its own in a tape. Where constants say which
iterations are idle at the end, and of threads that is so in each step of a reduction, the loop is shorter before
(`trim_loops`):

    before    for (t = 0; t < 128; t++) { if (t < 64) x; }       after    for (t = 0; t < 64; t++) x;
              for (t = 0; t < 128; t++) { if (t == 0) x; }                for (t = 0; t < 1; t++) x;
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jax_enzyme.analysis.counters import tests
from jax_enzyme.analysis.guards import INVERSE, SWAPPED, known_with
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Constant, Value, int_value
from jax_enzyme.transform.cuda.uniform import speculatable
from jax_enzyme.transform.rewriting import go_one_way, phis

_FEW = 8
"""Loops of fewer iterations are left to be unrolled."""
_COPIED = 64
"""Loops of fewer iterations that only copy are left too: LLVM would call `memcpy`, which is slower for so little."""
_Extensions = dict[str, str]
"""By the sign of a comparison, how the offset is widened so that a sum with it is exact."""


@dataclass(frozen=True)
class _Counted:
    """A loop with a phi that counts in steps of 1 from `first` to the number before `end`, or, where it is `falling`,
    down again, and the comparison that ends it, which may ask for the last number and not for the next one. `kept`:
    what an iteration that does nothing hands on as it is, to the phi that it comes back to, with where that starts."""

    phi: I.Phi
    exit: I.Compare
    first: int
    end: int
    falling: bool
    asks_last: bool
    kept: dict[Value, Value]

    @property
    def count(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class _Side:
    """`phi + offset order limit`, exact when all is widened."""

    order: str
    offset: tuple[Value, str] | None
    limit: tuple[Value, str]


@dataclass(frozen=True)
class _Whole:
    """The same for all iterations."""

    condition: Value
    holds: bool


_Part = _Side | _Whole
_Asked = dict[BasicBlock, list[_Part | None]]
"""By blocks, what has to hold for each not to go to the latch; None for what is of no known form."""


def narrow_guarded_loops(module: Module) -> None:
    """Changes the innermost loops of a private module in place. What is wrong with a module is left for LLVM to say."""
    for function in module.functions.values():
        if not function.is_declaration and all(b.instructions for b in function.blocks):
            for loop in Loops.of(function):
                if (found := _guarded(function, loop)) is not None:
                    _narrow(loop, *found)


def has_guarded_loops(function: Function) -> bool:
    """Whether there are loops in a function that can be narrowed."""
    return any(_guarded(function, loop) is not None for loop in Loops.of(function))


def trim_loops(function: Function) -> None:
    """Changes the loops of an optimised function in place, as far as constants say."""
    for loop in Loops.of(function):
        _trim(function, loop)


def _trim(function: Function, loop: Loop) -> None:
    latch, header = loop.latches[0], loop.header
    test = header.terminator
    counts = _counted(loop)
    if (
        counts is None
        or counts.falling
        or counts.first
        or not isinstance(test, I.CondBranch)
        or test.targets.count(latch) != 1
    ):
        return
    busy = _busy(loop, test, counts, latch)
    if busy is None or busy >= counts.count or not _is_idle(function, loop, counts):
        return
    # The condition stays: it is known to hold where the loop is this short.
    counts.exit.operands[1] = const_int(counts.exit.operands[1].type, busy - counts.asks_last)


def _busy(loop: Loop, test: I.CondBranch, counts: _Counted, latch: BasicBlock) -> int | None:
    """In how many iterations, the first ones, the header goes anywhere but to the latch."""
    found: list[int] = []
    for condition, holds in known_with(test.operands[0], test.targets[0] is not latch):
        if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
            continue
        sides = _sides(loop, counts.phi, condition, holds, counts.end)
        limit = int_value(sides[0].limit[0]) if len(sides) == 1 and sides[0].offset is None else None
        if limit is not None:
            found.append({"lt": limit, "le": limit + 1, "eq": int(limit == 0)}.get(sides[0].order, 0))
    return min((busy for busy in found if busy > 0), default=None)


def _counted(loop: Loop) -> _Counted | None:
    """Of a loop that leaves at its only latch, which is not its header."""
    if loop.exiting != loop.latches or len(loop.latches) != 1 or loop.latches[0] is loop.header:
        return None
    found = [t for t in tests(loop) if isinstance(t.counted.phi.type, T.IntType)]
    if len(found) != 1:
        return None
    own, predicate, bound = found[0].counted, found[0].predicate, int_value(found[0].bound)
    ends, exit_ = loop.ends(own.phi), loop.latches[0].terminator.operands[0]
    start = None if ends is None else int_value(ends[0])
    if start is None or bound is None or own.casts or not isinstance(exit_, I.Compare):
        return None
    falling = own.step == -1
    if own.step == 1 and own.added in (0, 1) and predicate in ("ne", "ult"):
        first, end = start, bound + 1 - own.added
    elif (own.step, own.added) == (-1, 0) and predicate in ("ne", "ugt"):
        first, end = bound, start + 1
    else:
        return None
    kept = _kept(loop, own.phi)
    if first < 0 or end - first <= 1 or exit_.operands[1] is not found[0].bound or kept is None:
        return None
    return _Counted(own.phi, exit_, first, end, falling, own.added == 0, kept)


def _asking(loop: Loop) -> list[BasicBlock]:
    """The header and what follows, as far as all that is done is to ask whether to go to the latch."""
    latch, found = loop.latches[0], [loop.header]
    while (work := _work(found[-1], latch)) is not None:
        ways = sum(block.successors.count(work) for block in loop.blocks)
        if ways > 1 or _work(work, latch) is None or not all(map(speculatable, work.instructions[:-1])):
            break
        found.append(work)
    return found


def _work(block: BasicBlock, latch: BasicBlock) -> BasicBlock | None:
    """Where a block goes to that may go to the latch instead."""
    targets = block.successors
    asks = isinstance(block.terminator, I.CondBranch) and targets.count(latch) == 1
    return targets[targets[0] is latch] if asks else None


def _kept(loop: Loop, counter: I.Phi) -> dict[Value, Value] | None:
    """What a way from the header to the latch alone hands on, of all phis but the counter; None where it is anything
    else than what came in."""
    asking = _asking(loop)
    kept: dict[Value, Value] = {}
    for phi in phis(loop.header):
        ends = loop.ends(phi)
        if phi is counter:
            continue
        if ends is None or not isinstance(joined := ends[1], I.Phi) or joined not in loop.latches[0].instructions:
            return None
        if any(source in asking and value is not phi for value, source in joined.incoming):
            return None
        kept[joined] = ends[0]
    return kept


def _is_idle(function: Function, loop: Loop, counts: _Counted) -> bool:
    """Do header and latch do nothing of their own, and is nothing of the loop used behind it, but for what is kept?"""
    latch, header = loop.latches[0], loop.header
    if any(not speculatable(i) for b in (latch, header) for i in b.instructions[:-1]):
        return False
    inside: set[Value] = {i for b in loop.blocks for i in b.instructions}
    (behind,) = loop.exits
    handed = {phi for phi in phis(behind) if any(o in counts.kept for o in phi.operands)}
    outside = (i for b in function.blocks if b not in loop for i in b.instructions if i not in handed)
    return not any(o in inside for i in outside for o in i.operands)


def _guarded(function: Function, loop: Loop) -> tuple[_Counted, _Asked] | None:
    """How a loop counts and what its iterations ask, in each block, where it can be narrowed and that is worth it."""
    test = loop.header.terminator
    if loop.children or loop.preheader is None or not isinstance(test, I.CondBranch):
        return None
    counts = _counted(loop)
    if counts is None or counts.count < _FEW or test.targets.count(loop.latches[0]) != 1:
        return None
    asked = {block: list(_parts(loop, counts, block)) for block in _asking(loop)}
    if not any(isinstance(p, _Side) for parts in asked.values() for p in parts) or not _is_idle(function, loop, counts):
        return None
    return None if counts.count < _COPIED and _is_copy(loop) else (counts, asked)


def _narrow(loop: Loop, counts: _Counted, asked: _Asked) -> None:
    at = Builder.at_end(loop.front)
    first, last = _range(at, counts, [p for parts in asked.values() for p in parts if p is not None])
    _enter(loop, at, first, last, counts.kept)
    kind = counts.phi.type
    highest = at.binary("sub", last, const_int(last.type, 1)) if counts.asks_last else last
    start, end = (highest, first) if counts.falling else (first, highest)
    counts.exit.operands[1] = at.cast("trunc", end, kind)
    if not isinstance(start, Constant):
        counts.phi.operands[counts.phi.targets.index(loop.front)] = at.cast("trunc", start, kind)
    for block in (block for block, parts in asked.items() if None not in parts):
        work = _work(block, loop.latches[0])
        assert work is not None
        go_one_way(block, work)


def _is_copy(loop: Loop) -> bool:
    """Is all that a loop stores as it was loaded?"""
    stores = [i for b in loop.blocks for i in b.instructions if isinstance(i, I.Store)]
    return bool(stores) and all(isinstance(i.operands[0], I.Load) for i in stores)


def _enter(loop: Loop, at: Builder, first: Value, last: Value, kept: Mapping[Value, Value]) -> None:
    """The loop is not entered where the range is empty: what is kept is then what it starts with."""
    before, latch = loop.preheader, loop.latches[0]
    assert before is not None
    (behind,) = loop.exits
    for phi in phis(behind):
        handed = phi.operands[phi.targets.index(latch)]
        phi.add(kept.get(handed, handed), before)
    some = at.icmp("slt", first, last)
    before.instructions.pop()
    Builder(before).cond_br(some, loop.header, behind)


def _range(at: Builder, counts: _Counted, parts: list[_Part]) -> tuple[Value, Value]:
    """Where the range starts and ends, as wide numbers: a start behind the end where it is empty."""
    sides = [p for p in parts if isinstance(p, _Side)]
    wide = T.IntType(2 * max(T.bits(v.type) for s in sides for v in (s.limit[0], counts.phi)))
    first: Value = const_int(wide, counts.first)
    last: Value = const_int(wide, counts.end)
    for side in sides:
        edge = _widened(at, *side.limit, wide)
        if side.offset is not None:
            edge = at.binary("sub", edge, _widened(at, *side.offset, wide))
        behind = at.binary("add", edge, const_int(wide, 1)) if side.order in ("gt", "le", "eq") else edge
        if side.order in ("lt", "le", "eq"):
            last = at.select(at.icmp("slt", behind, last), behind, last)
        if side.order in ("gt", "ge", "eq"):
            start = edge if side.order == "eq" else behind
            first = at.select(at.icmp("sgt", start, first), start, first)
    for whole in (p for p in parts if isinstance(p, _Whole)):
        some = _frozen(at, whole.condition)
        none = const_int(wide, counts.first)
        last = at.select(some, last, none) if whole.holds else at.select(some, none, last)
    return first, last


def _parts(loop: Loop, counts: _Counted, block: BasicBlock) -> Iterator[_Part | None]:
    """Conditions all of which must hold for a block not to go to the latch; None for each that is of no known form."""
    test = block.terminator
    for part, truth in known_with(test.operands[0], test.targets[1] is loop.latches[0]):
        if _is_outside(loop, part):
            yield _Whole(part, truth)
        elif isinstance(part, I.Compare) and part.opcode == "icmp":
            yield from _sides(loop, counts.phi, part, truth, counts.end) or (None,)
        else:
            yield None


def _sides(loop: Loop, phi: I.Phi, compare: I.Compare, holds: bool, end: int) -> list[_Side]:
    """What a comparison says of a counter below `end` that is not negative; nothing where that is of no known form."""
    x, limit = compare.operands
    predicate = compare.predicate if holds else INVERSE[compare.predicate]
    if _is_outside(loop, x):
        x, limit, predicate = limit, x, SWAPPED[predicate]
    order = predicate[-2:]
    found = _sum(loop, phi, x, end)
    if found is None or not _is_outside(loop, limit) or not isinstance(limit.type, T.IntType):
        return []
    offset, extensions = found
    number = int_value(limit)
    if order == "ne":
        if "u" in extensions and number == 0:
            order = "gt"
        elif offset is None and number == end - 1:
            order = "lt"
        else:
            return []
    either = predicate in ("eq", "ne") or "samesign" in compare.flags
    sign = next((s for s in ("u", "s") if s in extensions and (either or s == predicate[0])), None)
    # Below a limit that is not negative when all is taken for unsigned: between 0 and it.
    positive = number is not None and 0 <= number < 1 << (T.bits(limit.type) - 1)
    within = sign is None and predicate[0] == "u" and order in ("lt", "le") and positive
    if within:
        sign = "s"
    if sign is None:
        return []
    start = None if offset is None else (offset, extensions[sign])
    extended = "zext" if sign == "u" else "sext"
    sides = [_Side(order, start, (limit, extended))]
    return [_Side("ge", start, (const_int(limit.type, 0), extended)), *sides] if within else sides


def _sum(loop: Loop, phi: I.Phi, value: Value, end: int) -> tuple[Value | None, _Extensions] | None:
    """A value as the counter, which is not negative and below `end`, and an offset that stays the same."""
    if _is_counter(value, phi, end):
        return None, {"s": "sext", "u": "zext"}
    match value:
        case I.BinaryOp(opcode="add" | "or"):
            offset = next((o for o in value.operands if _is_outside(loop, o)), None)
            flags = {"disjoint": ("s", "u"), "nsw": ("s",), "nuw": ("u",)}
            exact = {sign for flag in value.flags for sign in flags.get(flag, ())}
            number = None if offset is None else int_value(offset)
            if number is not None and number >= 0 and number + end <= 1 << (T.bits(value.type) - 1):
                exact = {"s", "u"}
            if not any(_is_counter(o, phi, end) for o in value.operands) or offset is None or not exact:
                return None
            return offset, {s: "sext" if s == "s" else "zext" for s in exact}
        case I.Cast(opcode="sext" | "zext"):
            inner = _sum(loop, phi, value.operands[0], end)
            if inner is None:
                return None
            offset, extensions = inner
            if value.opcode == "sext":
                return (offset, {"s": extensions["s"]}) if "s" in extensions else None
            return (offset, dict.fromkeys(("s", "u"), extensions["u"])) if "u" in extensions else None
        case _:
            return None


def _is_counter(value: Value, phi: I.Phi, end: int) -> bool:
    """Whether a value is a counter, or that in so many bits that it keeps its numbers."""
    cast = isinstance(value, I.Cast) and value.operands[0] is phi and isinstance(value.type, T.IntType)
    return value is phi or (cast and end <= 1 << (min(T.bits(value.type), T.bits(phi.type)) - 1))


def _is_outside(loop: Loop, value: Value) -> bool:
    return not any(value in block.instructions for block in loop.blocks)


def _widened(at: Builder, value: Value, opcode: str, wide: T.IntType) -> Value:
    number = int_value(value)
    if number is None:
        return at.cast(opcode, _frozen(at, value), wide)
    bits = T.bits(value.type)
    number &= (1 << bits) - 1
    return const_int(wide, number - (1 << bits) if opcode == "sext" and number >> (bits - 1) else number)


def _frozen(at: Builder, value: Value) -> Value:
    """A condition further left may have kept a value that is poison from being looked at."""
    return at.insert(I.Freeze(value.type, "freeze", [value]))
