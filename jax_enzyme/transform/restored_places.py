"""Numbers that are cleared, in front of a loop or anywhere, and put back behind it stay where they are.

    before    for i: %t = load %a[i]; store 0, %a[i];         after    for i: %t = load %a[i];
                     for j > i: ... load %a[j] ...                            for j > i: ... load %a[j] ...
                     store %t, %a[i]

What is put back may be added to what is there, which is zero, and where it lies may be said in another way. So is the
reverse of what a loop adds to a place in a register (`s = f[i]; for j: s += ..., f[j] -= ...; f[i] = s`): it takes the
sum's cotangent, and gives it back as that of what the sum began with. Whoever shares out the iterations of the loop
outside would find that each writes what others read. It takes a proof that nothing touches the place in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.accesses import is_harmless
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.module import Function, Module, Uses, uses
from jax_enzyme.ir.values import BasicBlock, Value, is_zero
from jax_enzyme.transform.rewriting import on_copy, replace_values


@dataclass(frozen=True)
class _Restored:
    """A place that is read, and set to something else, and later set to what was read: by `added` to what is loaded
    `again` there, if that is given. In between are the rest of the block, or of two blocks and a loop between them."""

    load: I.Load
    cleared: I.Store
    back: I.Store
    between: tuple[I.Instruction, ...]
    added: I.BinaryOp | None = None
    again: I.Load | None = None


def keep_restored_places(function: ArrayFunction) -> ArrayFunction:
    """The array function without such stores, in a copy of its module; itself where there are none."""
    root = function.module.functions[function.symbol]
    return on_copy(function, _change) if any(_candidates(root)) else function


def _candidates(root: Function) -> Iterator[_Restored]:
    """What may be put back, as far as names tell."""
    loops = Loops.of(root)
    behind = {loop.exits[0]: loop for loop in loops.all if _is_passed(loop, loops)}
    for block in root.blocks:
        for back in block.instructions:
            value = back.operands[0] if isinstance(back, I.Store) and I.is_plain(back) else None
            if not isinstance(back, I.Store) or value is None:
                continue
            pairs: list[tuple[Value, I.BinaryOp | None, I.Load | None]] = [(value, None, None)]
            if isinstance(value, I.BinaryOp) and value.opcode == "fadd" and "nsz" in value.flags:
                x, y = value.operands
                pairs = [
                    (t, value, a) for t, a in ((x, y), (y, x)) if isinstance(a, I.Load) and a in block.instructions
                ]
            for taken, added, again in pairs:
                if not isinstance(taken, I.Load) or not I.is_plain(taken) or taken is again:
                    continue
                if I.base_of(taken.operands[0]) is I.base_of(back.operands[1]):
                    between = _between(taken, back, block, behind.get(block))
                    cleared = [i for i in between if isinstance(i, I.Store) and i.operands[1] is taken.operands[0]]
                    if len(cleared) == 1 and I.is_plain(cleared[0]):
                        yield _Restored(taken, cleared[0], back, tuple(between), added, again)


def _is_passed(loop: Loop, loops: Loops) -> bool:
    """Does control come from in front of a loop to its only end by the loop alone?"""
    if loop.preheader is None or len(loop.exit_edges) != 1:
        return False
    return all(p in loop for p in loops.cfg.preds[loop.exits[0]])


def _between(load: I.Load, back: I.Store, block: BasicBlock, loop: Loop | None) -> list[I.Instruction]:
    """What runs from a load to a store in a block; nothing where that is not known."""
    here = block.instructions
    if load in here:
        first, last = here.index(load) + 1, here.index(back)
        return here[first:last]
    front = loop.preheader.instructions if loop is not None and loop.preheader is not None else []
    if loop is None or load not in front:
        return []
    inside = (i for b in loop.blocks for i in b.instructions)
    return [*front[front.index(load) + 1 :], *inside, *here[: here.index(back)]]


def _change(module: Module, root: Function) -> bool:
    layout, facts = DataLayout(module), Recurrences.of(root, module)
    memory = MemoryUses(root, PointsTo(module, root), layout)
    alias = Alias(facts, memory)
    used = uses(root)
    gone: set[I.Instruction] = set()
    replaced: dict[Value, Value] = {}
    for found in list(_candidates(root)):
        if _is_untouched(found, layout, facts, memory, alias, used):
            gone |= {found.cleared, found.back}
            if found.added is not None:
                replaced[found.added] = found.load
    for block in root.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
    replace_values(root, replaced)
    return bool(gone)


def _is_untouched(
    found: _Restored, layout: DataLayout, facts: Recurrences, memory: MemoryUses, alias: Alias, used: Uses
) -> bool:
    """Does nothing touch the place between the load and the store that puts it back, but what is loaded to add it?"""
    between, type_ = found.between, found.load.type
    if facts.block_of[found.cleared] is not facts.block_of[found.load]:
        return False
    if found.cleared.operands[0].type != type_ or found.back.operands[0].type != type_:
        return False
    if any(isinstance(i, I.CallBase) and not is_harmless(i) for i in between):
        return False
    if found.again is not None:
        is_zero_plus = is_zero(found.cleared.operands[0]) and len(used[found.again]) == 1 and I.is_plain(found.again)
        if not is_zero_plus or found.again not in between[between.index(found.cleared) :]:
            return False
    size = layout.store_size(type_)
    own = (found.cleared, found.again)
    try:
        place = facts.form_at(found.load.operands[0], facts.block_of[found.load]).polynomial
        places = [found.back.operands[1], *(() if found.again is None else found.again.operands)]
        if any((facts.form_at(p, facts.block_of[found.back]).polynomial - place).value != 0 for p in places):
            return False
        (access,) = memory.at(found.load)
        touching = [a for i in between if i not in own for a in memory.at(i)]
        return all(alias.together(a.pointer, access.pointer) or alias.keeps_off(a, place, size) for a in touching)
    except TooComplex:
        return False
