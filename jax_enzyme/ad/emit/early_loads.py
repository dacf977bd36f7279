"""Loads of a reverse sweep are made earlier, where what they read is there in any case: before branches, and loops.

What an arm of a branch in an innermost loop loads moves before the branch.

    before    rev.join:  switch i8 %way, label %rev.join.to.other [ i8 1, label %rev.join.to.arm ]
              rev.arm:   %a = load double, ptr %f.shadow.j                     the arm did f[j] += w * (x[i] - x[j])
                         %x = load double, ptr %x.j

    after     rev.join:  %a = load double, ptr %f.shadow.j
                         %x = load double, ptr %x.j
                         switch i8 %way, ...

A load in an arm is made under a mask where the loop is made vectors: where numbers lie apart, as in records of three,
or in one place for all iterations, that is a gather. In front of the branch it is a load of a row, or of one number
before the loop; and what the block before the arm computed of the same numbers is found to be the same. Only the code
knows that all places are in the buffer, whatever the condition says: to LLVM the iteration numbers are any.

What a loop loads of values that were there in front of it is loaded in front of it.

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
from jax_enzyme.ad.plan.work import Work
from jax_enzyme.analysis.extents import ADDRESSES, is_inside
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Value

_MOST_LOADS = 24
"""Of one arm: where it is gone through seldom, they are made for nothing. In front of one loop: more are not in
registers, and are loaded again in any case."""
_CASTS = frozenset("trunc zext sext".split())


def load_before_branches(
    work: Work,
    recipes: Recipes,
    positions: dict[BasicBlock, BasicBlock],
    accesses: Mapping[Value, I.Load | I.Store],
    variables: Collection[Value],
) -> bool:
    """Moves loads of the blocks of a reverse sweep, in place; whether there are any. `positions` says which block of
    the code each reverses, `accesses` which access of the code a load repeats, or takes the cotangent of; `variables`
    hold iteration numbers."""
    any_moved = False
    for block, arm in _arms(work, positions):
        found = list(_movable(arm, positions[block], accesses, variables, recipes))
        if sum(i in accesses for i in found) > _MOST_LOADS:
            continue
        for instruction in found:
            if isinstance(instruction, I.BinaryOp):
                instruction.flags = ()  # what is said of it holds in the arm
        moved = set(found)
        for part in arm:
            part.instructions = [i for i in part.instructions if i not in moved]
        block.instructions[-1:-1] = found
        any_moved |= any(i in accesses for i in found)
    return any_moved


def _arms(work: Work, positions: dict[BasicBlock, BasicBlock]) -> Iterator[tuple[BasicBlock, list[BasicBlock]]]:
    """The blocks in innermost loops from which reverse goes to one of several arms, and the edge and the arm: inner
    branches first, since what they moved can go on."""
    sources: dict[BasicBlock, list[BasicBlock]] = {}
    for block in positions:
        for target in block.successors:
            sources.setdefault(target, []).append(block)
    for block in reversed(positions):
        if not isinstance(block.terminator, I.Switch):
            continue
        loop = work.code.loop_of(positions[block])
        if loop is None or loop.children:
            continue
        for edge in dict.fromkeys(block.terminator.targets):
            (arm, *others) = edge.successors
            alone = sources[edge] == [block] and sources[arm] == [edge]
            if not others and alone and work.code.loop_of(positions[arm]) is loop:
                yield block, [edge, arm]


def _movable(
    arm: list[BasicBlock],
    join: BasicBlock,
    accesses: Mapping[Value, I.Load | I.Store],
    variables: Collection[Value],
    recipes: Recipes,
) -> Iterator[I.Instruction]:
    """The loads of an arm that may be made before it, and what their addresses are computed with, in order. None of an
    arm that also loads where data say: its loop is no vector, or gathers in any case. `join`: where the code comes to,
    whether through the arm or not."""
    able: set[Value] = set()
    written: set[Value] = set()
    inside = [i for block in arm for i in block.instructions]
    own = set(inside)
    needed: set[Value] = set()
    for instruction in inside:
        if isinstance(instruction, I.Load):
            base = I.base_of(instruction.operands[0])
            is_given = isinstance(base, Argument) and base not in written and instruction in accesses
            if is_given and not _is_there(accesses[instruction], join, recipes):
                return
            is_able = is_given or base in variables
            if is_given:
                needed.add(instruction)
        else:
            is_able = instruction.opcode in ADDRESSES and instruction.type in (T.PTR, T.I64)
        if is_able and all(operand in able or operand not in own for operand in instruction.operands):
            able.add(instruction)
        if isinstance(instruction, I.Store):
            base = I.base_of(instruction.operands[1])
            if isinstance(base, Argument | I.Alloca) and base not in variables:
                if not _is_kept(instruction):
                    written.add(base)
            else:
                break
        elif isinstance(instruction, I.CallBase) and not _is_arithmetic(instruction):
            break
    yield from _with_addresses(inside, needed & able)


def _is_there(access: I.Load | I.Store, join: BasicBlock, recipes: Recipes) -> bool:
    """Whether the place of a number lies in a buffer, whatever iterations the loops are in."""
    is_number = isinstance(I.accessed_value(access).type, T.FloatType) and I.is_plain(access)
    base = I.base_of(access.operands[-1])
    return is_number and is_inside(recipes.recurrences, recipes.layout, access, base, join)


def _is_kept(store: I.Store) -> bool:
    """Whether a store leaves what was loaded from there: a cotangent that stays as it is."""
    value, pointer = store.operands
    return isinstance(value, I.Load) and value.operands[0] is pointer


def _is_arithmetic(call: I.CallBase) -> bool:
    return callee_name(call).startswith("llvm.") and T.is_float(call.type)


def _with_addresses(body: list[I.Instruction], loads: set[Value]) -> Iterator[I.Instruction]:
    """Some loads of a body, whose addresses can be computed early as well, with what computes these; in order."""
    needed = reached(loads, lambda v: v.operands if isinstance(v, I.Instruction) else (), set[Value](body).__contains__)
    yield from (i for i in body if i in needed)


def load_before_loops(
    recipes: Recipes,
    positions: Mapping[BasicBlock, BasicBlock],
    values: Mapping[Value, Value],
    variables: Collection[Value],
) -> None:
    """Moves loads of the blocks of a reverse sweep, in place. `positions` says which block of the code each reverses,
    `values` which value each load is, or which store left it; `variables` hold iteration numbers."""
    order = {block: index for index, block in enumerate(positions)}
    at: dict[BasicBlock, list[BasicBlock]] = {}
    before: dict[BasicBlock, list[BasicBlock]] = {}
    for block, position in positions.items():
        at.setdefault(position, []).append(block)
        for target in block.successors:
            before.setdefault(target, []).append(block)
    for loop in sorted(recipes.code.loops, key=lambda loop: -loop.depth):
        blocks = (block for position in loop.blocks for block in at.get(position, ()))
        inside = dict.fromkeys(sorted(blocks, key=order.__getitem__))
        entries = [*{b: None for block in inside for b in before.get(block, ()) if b not in inside}]
        if len(entries) != 1 or len(entries[0].successors) != 1:
            continue
        moved = list(_movable_from_loop(inside, loop, recipes, values, variables))
        if not 0 < len({values[i] for i in moved if i in values}) <= _MOST_LOADS:
            continue
        gone = set(moved)
        for block in inside:
            block.instructions = [i for i in block.instructions if i not in gone]
        entries[0].instructions[-1:-1] = moved


def _movable_from_loop(
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
    yield from _with_addresses(body, {i for i in able if i in values})


def _is_before(value: Value, loop: Loop, recipes: Recipes) -> bool:
    """Whether the code has made a value, or has run a store, whenever it comes to a loop."""
    home = block_of(recipes, value)
    return home not in loop.blocks and recipes.code.dominators.dominates(home, loop.header)
