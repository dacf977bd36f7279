"""What a loop of the reverse sweep loads of values that were there in front of the loop is loaded in front of it.

    before    rev.exit:  br label %rev.latch
              rev.arm:   %v = load double, ptr %speed.i       the loop around has v = speed[i], this one
                         %r = fdiv double 1.0, %v             if (near[j] >= 0) s += w[j] / v

    after     rev.exit:  %v = load double, ptr %speed.i
                         br label %rev.latch
              rev.arm:   %r = fdiv double 1.0, %v

A value is asked for where reverse needs it, which may be an arm of a loop inside of the one that made it. LLVM knows
neither that its place is in the buffer whatever the condition says, nor that no adjoint is added to it, and leaves the
load there, and with it all that is computed of it. The code made the value before it came to the loop, for the same
iterations of the loops around: so it is at hand in front of the loop as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.ad.plan.taping import block_of
from jax_enzyme.analysis.extents import ADDRESSES
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import BasicBlock, Value

_CASTS = frozenset("trunc zext sext".split())
_MOST_LOADS = 24
"""In front of one loop: more are not in registers, and are loaded again in any case."""


def load_before_loops(
    recipes: Recipes,
    positions: Mapping[BasicBlock, BasicBlock],
    values: Mapping[Value, Value],
    variables: Collection[Value],
) -> None:
    """Moves loads of the blocks of a reverse sweep, in place. `positions` says which block of the code each reverses,
    `values` which value each load is, or which store left it; `variables` hold iteration numbers."""
    code = recipes.code
    for loop in sorted(code.loops, key=lambda loop: -loop.depth):
        inside = dict.fromkeys(block for block, position in positions.items() if position in loop.blocks)
        entries = [b for b in positions if b not in inside and any(target in inside for target in b.successors)]
        if len(entries) != 1 or len(entries[0].successors) != 1:
            continue
        moved = list(_movable(inside, loop, recipes, values, variables))
        if not 0 < len({values[i] for i in moved if i in values}) <= _MOST_LOADS:
            continue
        gone = set(moved)
        for block in inside:
            block.instructions = [i for i in block.instructions if i not in gone]
        entries[0].instructions[-1:-1] = moved


def _movable(
    inside: Collection[BasicBlock],
    loop: Loop,
    recipes: Recipes,
    values: Mapping[Value, Value],
    variables: Collection[Value],
) -> Iterator[I.Instruction]:
    """The loads of values that were there in front of a loop, and what their addresses are computed with, in order."""
    body = [i for block in inside for i in block.instructions]
    own = set[Value](body)
    counted = {i.operands[1] for i in body if isinstance(i, I.Store)}
    able: set[Value] = set()
    for instruction in body:
        if isinstance(instruction, I.Load):
            place = instruction.operands[0]
            is_number = place in variables and place not in counted
            is_able = is_number or (instruction in values and _is_before(values[instruction], loop, recipes))
        else:
            is_able = instruction.opcode in ADDRESSES or instruction.opcode in _CASTS
        if is_able and all(operand in able or operand not in own for operand in instruction.operands):
            able.add(instruction)
    needed: set[Value] = {instruction for instruction in body if instruction in able and instruction in values}
    for instruction in reversed(body):
        if instruction in needed:
            needed.update(i for i in instruction.operands if i in own)
    yield from (i for i in body if i in needed)


def _is_before(value: Value, loop: Loop, recipes: Recipes) -> bool:
    """Whether the code has made a value, or has run a store, whenever it comes to a loop."""
    home = block_of(recipes, value)
    return home not in loop.blocks and recipes.code.dominators.dominates(home, loop.header)
