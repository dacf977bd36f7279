"""Memory that is swapped byte for byte, in a loop or one byte after the other, is swapped in words.

    before    loop:                                                      (8 times)
                %i = phi i64 [ 0, %entry ], [ %next, %loop ]
                %p = getelementptr i8, ptr %a, i64 %i
                %x = load i8, ptr %p
                %q = getelementptr i8, ptr %b, i64 %i
                %y = load i8, ptr %q
                store i8 %y, ptr %p
                store i8 %x, ptr %q
                %next = add i64 %i, 1
                %done = icmp eq i64 %next, 8
                br i1 %done, label %exit, label %loop

    after     loop:
                %x = load i64, ptr %a
                %y = load i64, ptr %b
                store i64 %y, ptr %a
                store i64 %x, ptr %b
                br label %exit

C's generic sorts and reversals are written so; the bytes of a number have no derivative, a word does (`retype`). Both
do the same where the two addresses are as far apart as a word is long, or farther, or not at all: then the swaps of a
word's other bytes do not touch a byte. That holds in two objects, and where the distance is a multiple of the word's
size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd

from jax_enzyme.analysis.counters import counted, repeats
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.module import Function, Uses, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.rewriting import forget_records, place

_MOST_BYTES = 256
"""Longer swaps stay as they are: numbers that move byte by byte are refused."""
_WORDS = (8, 4, 2, 1)

_Quad = tuple[I.Instruction, ...]


@dataclass(frozen=True)
class _Address:
    """`base` + `start` + k * `step` for byte k."""

    base: Value
    start: int
    step: int = 0


@dataclass(frozen=True)
class _Swap:
    """So many bytes behind two addresses, by these loads and stores of a block. `is_loop`: by a loop, once for each."""

    function: Function
    block: BasicBlock
    one: _Address
    other: _Address
    length: int
    accesses: tuple[I.Instruction, ...]
    is_loop: bool


def widen_byte_swaps(function: ArrayFunction) -> ArrayFunction:
    """The array function with such swaps rewritten, in a copy of its module; itself where there are none."""
    found = [s for f in function.module.functions.values() for s in _swaps(f)]
    if not found:
        return function
    points_to = PointsTo(function.module, function.module.functions[function.symbol])
    units = [_unit(points_to, swap) for swap in found]
    if max(units) <= 1:
        return function
    copy, copied = clone_with_map(function.module)
    for function_ in dict.fromkeys(s.function for s in found):
        twin = copied[function_]
        assert isinstance(twin, Function)
        mine = [u for s, u in zip(found, units, strict=True) if s.function is function_]
        for swap, unit in zip(list(_swaps(twin)), mine, strict=True):
            if unit > 1:
                _rewrite(swap, unit)
    return replace(function, module=copy)


# -- finding ---------------------------------------------------------------------------------------------------------


def _swaps(function: Function) -> Iterator[_Swap]:
    users: Uses | None = None
    loops: Loops | None = None
    for block in function.blocks:
        quads = list(_quads(block))
        if not quads:
            continue
        users = uses(function) if users is None else users
        if any(len(users.get(load, ())) != 1 for quad in quads for load in quad[:2]):
            continue
        loops = Loops.of(function) if loops is None else loops
        loop = loops.loop_of.get(block)
        again = repeats(loop, block) if loop is not None and loop.blocks == {block} else None
        length = again + 1 if again is not None and again < _MOST_BYTES else 0
        touching = sum(isinstance(i, I.TOUCHES_MEMORY) for i in block.instructions)
        if loop is not None and len(quads) == 1 and touching == 4 and length > 1:
            one, other = (_address(loop, load.operands[0]) for load in quads[0][:2])
            own = set(block.instructions)
            stays = all(user in own for i in own for user, _ in users.get(i, ()))
            if one and other and one.step == other.step in (1, -1) and stays:
                yield _Swap(function, block, one, other, length, quads[0], is_loop=True)
        else:
            yield from _unrolled(function, block, quads)


def _quads(block: BasicBlock) -> Iterator[_Quad]:
    """Two loads of a byte and two stores that put them into each other's place, nothing between them."""
    touching = [i for i in block.instructions if isinstance(i, I.TOUCHES_MEMORY)]
    at = 0
    while at + 4 <= len(touching):
        if _is_quad(touching[at : at + 4]):
            yield tuple(touching[at : at + 4])
            at += 4
        else:
            at += 1


def _is_quad(four: Sequence[I.Instruction]) -> bool:
    match four:
        case [I.Load() as x, I.Load() as y, I.Store() as first, I.Store() as second]:
            pass
        case _:
            return False
    if not all(map(I.is_plain, (x, y, first, second))) or x.type != T.I8 or y.type != T.I8:
        return False
    swapped = {first.operands[1]: first.operands[0], second.operands[1]: second.operands[0]}
    return swapped == {y.operands[0]: x, x.operands[0]: y}


def _unrolled(function: Function, block: BasicBlock, quads: list[_Quad]) -> Iterator[_Swap]:
    """Runs of quads of neighbouring bytes, with nothing between them that touches memory."""
    touching = [i for i in block.instructions if isinstance(i, I.TOUCHES_MEMORY)]
    order: dict[I.Instruction, int] = {access: position for position, access in enumerate(touching)}
    run: list[tuple[_Quad, _Address, _Address]] = []

    def ended() -> Iterator[_Swap]:
        if 1 < len(run) <= _MOST_BYTES:
            step = run[1][1].start - run[0][1].start
            one, other = (replace(a, step=step) for a in run[0][1:])
            accesses = tuple(i for quad, _, _ in run for i in quad)
            yield _Swap(function, block, one, other, len(run), accesses, is_loop=False)
        run.clear()

    for quad in quads:
        one, other = (_constant_offset(load.operands[0]) for load in quad[:2])
        if run and not _goes_on(run, one, other) and _goes_on(run, other, one):
            one, other = other, one
        if run and not (order[quad[0]] == order[run[-1][0][3]] + 1 and _goes_on(run, one, other)):
            yield from ended()
        run.append((quad, one, other))
    yield from ended()


def _goes_on(run: list[tuple[_Quad, _Address, _Address]], one: _Address, other: _Address) -> bool:
    _, a, b = run[-1]
    if (one.base, other.base) != (a.base, b.base) or one.start - a.start != other.start - b.start:
        return False
    step = one.start - a.start
    return step in (1, -1) and (len(run) == 1 or step == a.start - run[-2][1].start)


def _constant_offset(pointer: Value) -> _Address:
    start = 0
    while isinstance(pointer, I.GetElementPtr) and pointer.source_type == T.I8 and len(pointer.operands) == 2:
        by = int_value(pointer.operands[1])
        if by is None:
            break
        start += by
        pointer = pointer.operands[0]
    return _Address(pointer, start)


def _address(loop: Loop, pointer: Value) -> _Address | None:
    """Where a pointer is in each iteration."""
    inside, base = loop.header.instructions, None
    if pointer not in inside:
        return _Address(pointer, 0)
    if isinstance(pointer, I.GetElementPtr) and pointer.source_type == T.I8 and pointer.operands[0] not in inside:
        base, pointer = pointer.operands
    found = counted(loop, pointer)
    ends = None if found is None else loop.ends(found.phi)
    if found is None or ends is None or found.added is None or found.casts:
        return None
    if base is None:
        return _Address(ends[0], found.added, found.step)
    start = int_value(ends[0])
    return None if start is None else _Address(base, start + found.added, found.step)


# -- rewriting -------------------------------------------------------------------------------------------------------


def _unit(points_to: PointsTo, swap: _Swap) -> int:
    """The size of the largest words that may be swapped."""
    one, other = points_to.places(swap.one.base), points_to.places(swap.other.base)
    if not one or not other or any(item.kind == "unknown" for item in (*one, *other)):
        return 0
    apart = 8
    for item in set(one) & set(other):
        for a in one[item]:
            for b in other[item]:
                between = a - b
                apart = reduce(gcd, (between.offset + swap.one.start - swap.other.start, between.modulus), apart)
    return next(w for w in _WORDS if apart % w == 0 and w <= swap.length)


def _rewrite(swap: _Swap, unit: int) -> None:
    made = Builder(BasicBlock())
    for start, size in _words(swap.length, unit, swap.one.step):
        word = T.IntType(8 * size)
        addresses = [made.offset(a.base, a.start + start) for a in (swap.one, swap.other)]
        held = [made.load(word, address, 1) for address in addresses]
        made.store(held[1], addresses[0], 1)
        made.store(held[0], addresses[1], 1)
    block, gone = swap.block, set(swap.accesses)
    if swap.is_loop:
        leaving = next(b for b in block.successors if b is not block)
        made.br(leaving)
        gone = set(block.instructions)
    place(swap.accesses[0], made.block.instructions)
    at = block.instructions.index(swap.accesses[2])
    block.instructions[at:at] = made.block.instructions
    block.instructions = [i for i in block.instructions if i not in gone]
    forget_records(swap.function, set[Value](gone))


def _words(length: int, unit: int, step: int) -> list[tuple[int, int]]:
    """Where words begin, counted from the first byte that is swapped, and their sizes; in the order of the bytes. They
    start at the lowest one, where a record does."""
    lowest = 0 if step > 0 else 1 - length
    found: list[tuple[int, int]] = []
    at = 0
    while at < length:
        size = next(w for w in _WORDS if w <= unit and w <= length - at)
        found.append((lowest + at, size))
        at += size
    return found if step > 0 else found[::-1]
