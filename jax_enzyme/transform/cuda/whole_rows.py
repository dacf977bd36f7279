"""Rows that a grid cuts into pieces are one piece again, where no thread can tell in which block it is.

    before    grid (32, 125), blocks (32, 8)    for block y: for block x: for y in 8: for x in 32: v[y][x] = f(u, x, y)

    after     grid (1, 1000), blocks (1024, 1)  for y in 1000: for x in 1024: ...

A kernel that asks for its block and its number in it only to add them up (`blockIdx.x * blockDim.x + threadIdx.x`), and
whose threads have nothing to do with each other, is the same for any other launch with these sums. Pieces of 32 numbers
are short for a processor; their ends are neither those of an array nor the same in all blocks, so that what happens at
an array's (`if (x == 0 || x == w - 1)`) is asked of every number, and neighbours' cotangents are added one after the
other (`ad.plan.late_sums`).

Threads that do nothing, since all ask first whether they are within the array, are no part of such rows: of 1024
threads of which those from 1000 on return at once, a row has 1000.

Rows go along the axis along which memory is contiguous (`axis_order`). Blocks stay where they save memory from being
read again: in kernels with long loops, and where rows along no axis go along memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from jax_enzyme.analysis.guards import INVERSE, known_with
from jax_enzyme.analysis.objects import is_memory_free
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.axis_order import fastest_axis, goes_along
from jax_enzyme.transform.cuda.uniform import speculatable
from jax_enzyme.transform.rewriting import substitute

_FEWEST_ROWS = 64
"""Where there are fewer, the threads of the processor had too little to share."""
_LONGEST = 1 << 24
"""Threads in a row."""
_NEAR = 1 << 16
"""What a row of threads may come to in all, where it is to be in a near cache still for the next row."""


def join_rows(module: Module, kernel: Function, shape: Shape) -> Shape:
    """Rewrites what one thread does for a launch with whole rows, in place, where that is possible. That launch."""
    extents = [g * b for g, b in zip(shape.grid, shape.block, strict=True)]
    row = marks.THREADS.index(fastest_axis(module, kernel, list(zip(marks.THREADS, shape.block, strict=True))))
    along, rows = extents[row], prod(extents) // extents[row]
    if min(shape.grid[row], shape.block[row]) == 1 or along > _LONGEST or rows < _FEWEST_ROWS:
        return shape
    if not _is_alone(kernel) or not goes_along(module, kernel, marks.THREADS[row]):
        return shape
    rounds = _rounds(module, kernel)
    if rounds > 1 and rounds * along > _NEAR:
        return shape
    users = uses(kernel)
    found: list[dict[str, list[Value]]] = []
    for axis in range(3):
        numbers = _numbers(kernel, users, axis, shape)
        if numbers is None:
            return shape
        found.append({(marks.THREADS if axis == row else marks.BLOCKS)[axis]: numbers})
    extents = _busy(kernel, [sums for numbers in found for sums in numbers.values()], extents)
    along = extents[row]
    at = Builder.on_top(kernel)
    changed: dict[Value, Value] = {}
    for numbers, extent in zip(found, extents, strict=True):
        for name, sums in numbers.items():
            if sums:
                index = marks.index(module, name, extent)
                index.return_attributes = (f"range(i32 0, {extent})",)
                changed |= dict.fromkeys(sums, at.call(index, []))
    substitute(kernel, changed)
    x, y, z = (1 if axis == row else extent for axis, extent in enumerate(extents))
    threads = (along, 1, 1), (1, along, 1), (1, 1, along)
    return replace(shape, grid=(x, y, z), block=threads[row])


def _busy(kernel: Function, numbers: list[list[Value]], extents: list[int]) -> list[int]:
    """How many threads along each axis do something, at least one: the first ones, which the kernel's first conditions
    do not send to its end."""
    axis_of = {number: axis for axis, of_axis in enumerate(numbers) for number in of_axis}
    busy = list(extents)
    for condition, holds in _first_conditions(kernel):
        if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
            continue
        number, limit = condition.operands[0], int_value(condition.operands[1])
        while isinstance(number, I.Cast) and number.opcode in ("zext", "sext"):
            number = number.operands[0]
        order = (condition.predicate if holds else INVERSE[condition.predicate])[-2:]
        if number in axis_of and limit is not None and limit > 0 and order in ("lt", "le"):
            axis = axis_of[number]
            busy[axis] = min(busy[axis], limit + (order == "le"))
    return busy


def _first_conditions(kernel: Function) -> Iterator[tuple[Value, bool]]:
    """What has to hold for a thread to do anything."""
    block, passed = kernel.entry, set[BasicBlock]()
    while block not in passed and all(map(speculatable, block.instructions[:-1])):
        ends = [isinstance(target.instructions[0], I.Return) for target in block.successors]
        if len(ends) != 2 or sum(ends) != 1:
            return
        yield from known_with(block.terminator.operands[0], ends[1])
        passed.add(block)
        block = block.successors[ends[0]]


def _is_alone(kernel: Function) -> bool:
    """Whether a thread does nothing that another thread would see on the way."""
    ours = {*marks.THREADS, *marks.BLOCKS}
    asked = marks.INDICES - ours
    return not any(
        isinstance(i, I.AtomicRMW | I.CmpXchg | I.Fence | I.Alloca)
        or (
            isinstance(i, I.CallBase)
            and callee_name(i) not in ours
            and (callee_name(i) in asked or not is_memory_free(i))
        )
        for i in kernel.instructions()
    )


def _rounds(module: Module, kernel: Function) -> int:
    """How often a thread comes to one place, at most; more than is near where that is not known."""
    facts = Recurrences.of(kernel, module)
    repeats = [facts.trip_count(loop).maximum for loop in facts.loops]
    return prod(_NEAR if most is None else most + 1 for most in repeats)


def _numbers(kernel: Function, users: Uses, axis: int, shape: Shape) -> list[Value] | None:
    """The sums that number the threads of a grid along an axis; None where what goes into them is used otherwise."""
    extent = shape.block[axis]
    blocks, threads = (
        [i for i in kernel.instructions() if callee_name(i) == name]
        for name in (marks.BLOCKS[axis], marks.THREADS[axis])
    )
    if shape.grid[axis] == 1 or extent == 1:
        # One of the two is all there is.
        return [*blocks, *threads]
    firsts = [user for block in blocks for user, _ in users.get(block, ())]
    if not all(_is_multiple(first, extent) for first in firsts):
        return None
    sums = {user for part in (*firsts, *threads) for user, _ in users.get(part, ())}
    parts = (set(firsts), set(threads))
    return list(sums) if all(_is_sum(user, *parts) for user in sums) else None


def _is_multiple(value: I.Instruction, by: int) -> bool:
    if not isinstance(value, I.BinaryOp):
        return False
    factor = int_value(value.operands[1])
    return (value.opcode == "mul" and factor == by) or (
        value.opcode == "shl" and factor is not None and 1 << factor == by
    )


def _is_sum(value: I.Instruction, first: set[I.Instruction], second: set[I.Instruction]) -> bool:
    if not isinstance(value, I.BinaryOp) or value.opcode not in ("add", "or"):
        return False
    x, y = value.operands
    return (x in first and y in second) or (x in second and y in first)
