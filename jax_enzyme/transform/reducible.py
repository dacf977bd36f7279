"""Loops with several entries get one: a block that knows from a number where to go on.

    before    entry: br i1 %c, label %a, label %b
              a:     ... br label %b
              b:     ... br i1 %d, label %a, label %end

    after     entry:    br i1 %c, label %to.a, label %to.b
              to.a:     br label %dispatch
              to.b:     br label %dispatch
              dispatch: %entered = phi i32 [ 0, %to.a ], [ 1, %to.b ], [ 1, %to.b.1 ], [ 0, %to.a.1 ]
                        switch i32 %entered, label %a [ i32 1, label %b ]
              a:        ... br label %to.b.1
              b:        ... br i1 %d, label %to.a.1, label %end

Every edge into an entry of such a loop goes through the dispatch block. What is used in other blocks than its own goes
through stack slots, which the next optimisation turns into phis. What the loop computes, and what another entry would
begin with, is undefined where the loop begins: else those phis would hand it on from one iteration of a loop around it
to the next, which never needs it. For these slots LLVM gives every edge from a block with
several ways on to a block with several ways in a block of its own; behind, `rejoin_latches` takes those away again that
end a loop's iteration, so that loops are left there as before.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.dominance import reverse_post_order
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.passes import run
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Undef
from jax_enzyme.transform.rewriting import redirect_phis, remove_dead, remove_unreachable

_SLOT = ".reg2mem"
"""In the names that LLVM gives to stack slots of values."""


def make_reducible(module: Module) -> Module:
    """A copy of the module whose loops have one entry each; the module itself where that is so already."""
    found = [name for name, function in module.functions.items() if _irreducible(function)[0]]
    if not found:
        return module
    copy = run(module, ("reg2mem",), found)
    for name in found:
        _fix(copy.functions[name])
    return copy


def rejoin_latches(module: Module) -> None:
    """Makes blocks that do nothing but to go back to the start of their loop a part of the only one from which control
    comes there, in place."""
    for function in module.functions.values():
        for loop in Loops.of(function).all if function.blocks else ():
            latch = loop.latches[0]
            before = [b for b in loop.blocks for t in b.successors if t is latch]  # of a switch, one for each case
            if len(loop.latches) == len(before) == len(latch.instructions) == 1 and latch is not loop.header:
                _rejoin(function, loop.header, latch, before[0])


def _rejoin(function: Function, header: BasicBlock, latch: BasicBlock, before: BasicBlock) -> None:
    branch, back = before.terminator, latch.terminator
    branch.targets = [header if t is latch else t for t in branch.targets]
    kinds = {kind for kind, _ in back.metadata}
    branch.metadata = [*((k, n) for k, n in branch.metadata if k not in kinds), *back.metadata]
    redirect_phis(header, latch, before)
    function.blocks.remove(latch)


def _irreducible(function: Function) -> tuple[list[BasicBlock], set[BasicBlock]]:
    """The entries of an outermost loop with several, and its blocks; empty where there is none."""
    if not function.blocks:
        return [], set()
    cfg = Cfg(function)
    return next(_loops_with_entries(cfg, set(cfg.rpo)), ([], set()))


def _loops_with_entries(cfg: Cfg, region: set[BasicBlock]) -> Iterator[tuple[list[BasicBlock], set[BasicBlock]]]:
    """The strongly connected parts of a region that have several entries, behind these; then the parts inside the
    others."""
    for part in _components(cfg, region):
        entries = [b for b in cfg.rpo if b in part and any(p not in part for p in cfg.preds[b])]
        if cfg.entry in part and cfg.entry not in entries:
            entries.insert(0, cfg.entry)
        if len(entries) > 1:
            yield entries, part
        else:
            # Without its header the rest of the loop is what is nested in it.
            yield from _loops_with_entries(cfg, part - set(entries))


def _components(cfg: Cfg, region: set[BasicBlock]) -> list[set[BasicBlock]]:
    """The strongly connected parts with a cycle, within a region (Kosaraju's two sweeps)."""
    roots = [block for block in cfg.rpo if block in region]

    def following(block: BasicBlock | None) -> list[BasicBlock]:
        return roots if block is None else [s for s in block.successors if s in region]

    start: BasicBlock | None = None
    order = [block for block in reverse_post_order(start, following) if block is not None]
    found: list[set[BasicBlock]] = []
    placed: set[BasicBlock] = set()

    def is_free(block: BasicBlock) -> bool:
        return block in region and block not in placed

    for root in order:
        if root in placed:
            continue
        part = set(reached([root], cfg.preds.__getitem__, is_free))
        placed |= part
        if len(part) > 1 or root in root.successors:
            found.append(part)
    return found


def _fix(function: Function) -> None:
    """Each round gives one loop its only entry, and makes no new loop: it ends when there is none left."""
    remove_unreachable(function)
    while (found := _irreducible(function))[0]:
        _dispatch(function, *found)
    remove_dead(function)


def _slots(function: Function) -> dict[I.Alloca, tuple[set[BasicBlock], set[BasicBlock]]]:
    """The stack slots of values that are used in other blocks than their own: where each is stored, and loaded."""
    found: dict[I.Alloca, tuple[set[BasicBlock], set[BasicBlock]]] = {
        i: (set(), set()) for i in function.entry.instructions if isinstance(i, I.Alloca) and _SLOT in (i.name or "")
    }
    for block in function.blocks:
        for instruction in block.instructions:
            for index, operand in enumerate(instruction.operands):
                if not isinstance(operand, I.Alloca) or operand not in found:
                    continue
                match instruction:
                    case I.Store() if index == 1:
                        found[operand][0].add(block)
                    case I.Load():
                        found[operand][1].add(block)
                    case _:
                        del found[operand]
    return found


def _dispatch(function: Function, entries: list[BasicBlock], part: set[BasicBlock]) -> None:
    slots = _slots(function)
    dispatch = BasicBlock(name="dispatch")
    function.blocks.insert(function.blocks.index(entries[0]), dispatch)
    builder = Builder(dispatch)
    chosen = builder.phi(T.I32)
    chosen.name = "entered"
    cases = [const_int(T.I32, i) for i in range(1, len(entries))]
    builder.insert(I.Switch(T.VOID, "switch", [chosen, *cases], targets=list(entries)))
    for block in list(function.blocks):
        if block is dispatch:
            continue
        last = block.terminator
        for index, target in enumerate(last.targets if last.is_terminator else []):
            if target in entries:
                # An edge of its own, so that a branch with two such targets stays what it is.
                edge = BasicBlock(name=f"to.{target.name}" if target.name else "")
                at = Builder(edge)
                for slot, (stored, loaded) in slots.items() if block not in part else ():
                    # By SSA form nothing that a loop computes is used in it before it is computed again. What has
                    # a slot that is stored both before and in the loop, and loaded at the entry, is the entry's phi.
                    inside = not stored.isdisjoint(part)
                    if inside and (target not in loaded or stored <= part):
                        at.store(Undef(slot.allocated_type), slot)
                at.br(dispatch)
                function.blocks.insert(function.blocks.index(dispatch), edge)
                last.targets[index] = edge
                chosen.add(const_int(T.I32, entries.index(target)), edge)
