"""Numbers that are cleared in front of a loop and put back behind it stay where they are.

    before    for i: %t = load %a[i]; store 0, %a[i];         after    for i: %t = load %a[i];
                     for j > i: ... load %a[j] ...                            for j > i: ... load %a[j] ...
                     store %t, %a[i]

So is the reverse of what a loop adds to a place in a register (`s = f[i]; for j: s += ..., f[j] -= ...; f[i] = s`):
it takes the sum's cotangent, and gives it back as that of what the sum began with. Whoever shares out the iterations of
the loop outside would find that each writes what others read. It takes a proof that nothing touches the place in
between.
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
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.transform.rewriting import on_copy


@dataclass(frozen=True)
class _Restored:
    """A place that is read, and set to something else, in front of a loop, and set to what was read behind it."""

    loop: Loop
    load: I.Load
    cleared: I.Store
    back: I.Store


def keep_restored_places(function: ArrayFunction) -> ArrayFunction:
    """The array function without such stores, in a copy of its module; itself where there are none."""
    root = function.module.functions[function.symbol]
    return on_copy(function, _change) if any(_candidates(root)) else function


def _candidates(root: Function) -> Iterator[_Restored]:
    for loop in Loops.of(root).all:
        before = loop.preheader
        if before is None or len(loop.exit_edges) != 1 or not all(p in loop for p in _sources(root, loop)):
            continue
        for back in loop.exits[0].instructions:
            match back:
                case I.Store(operands=[I.Load(operands=[place]) as load, to]) if to is place and I.is_plain(back):
                    cleared = [i for i in before.instructions if isinstance(i, I.Store) and i.operands[1] is place]
                    if load in before.instructions and len(cleared) == 1 and all(map(I.is_plain, (load, *cleared))):
                        yield _Restored(loop, load, cleared[0], back)
                case _:
                    pass


def _sources(root: Function, loop: Loop) -> list[BasicBlock]:
    return [b for b in root.blocks if loop.exits[0] in b.successors]


def _change(module: Module, root: Function) -> bool:
    layout, facts = DataLayout(module), Recurrences.of(root, module)
    memory = MemoryUses(root, PointsTo(module, root), layout)
    alias = Alias(facts, memory)
    gone: set[I.Instruction] = set()
    for found in list(_candidates(root)):
        if _is_untouched(found, layout, facts, memory, alias):
            gone |= {found.cleared, found.back}
    for block in root.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
    return bool(gone)


def _is_untouched(found: _Restored, layout: DataLayout, facts: Recurrences, memory: MemoryUses, alias: Alias) -> bool:
    """Does nothing touch the place between the load and the store that puts it back?"""
    before, behind = facts.block_of[found.load], facts.block_of[found.back]
    front, end = before.instructions, behind.instructions
    between = [
        *front[front.index(found.load) + 1 :],
        *(i for b in found.loop.blocks for i in b.instructions),
        *end[: end.index(found.back)],
    ]
    if found.cleared not in between or found.cleared.operands[0].type != found.load.type:
        return False
    if any(isinstance(i, I.CallBase) and not is_harmless(i) for i in between):
        return False
    size = layout.store_size(found.load.type)
    try:
        place = facts.form_at(found.load.operands[0], before).polynomial
        (own,) = memory.at(found.load)
        touching = [a for i in between if i is not found.cleared for a in memory.at(i)]
        return all(alias.together(a.pointer, own.pointer) or alias.keeps_off(a, place, size) for a in touching)
    except TooComplex:
        return False
