"""The reverse sweep: the blocks of the forward sweep, each reversed, joined in reverse order of control.

    forward    entry -> header <-> latch,  header -> exit
    reverse    rev.exit -> rev.header <-> rev.latch,  rev.header -> rev.entry

Control finds its way back by values: at a merge by the number of the predecessor that control came from, at a loop's
header by the iteration number, which a variable of the reverse function counts down; entering a loop from an exit
sets it to the number of the last iteration. Regions and loops in which nothing has an adjoint are jumped over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jax_enzyme.ad.emit.adjoints import Adjoints
from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.facts.instrument import Instrumented
from jax_enzyme.ad.plan.late_sums import late_sums
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.marks import of_reverse
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value


class Work:
    """Which blocks and loops the reverse sweep has to visit, and what it adds to memory behind its loops."""

    def __init__(self, code: Instrumented, recipes: Recipes, facts: Facts, words: Words) -> None:
        self.code = code
        self.facts = facts
        self.blocks = {b for b in code.cfg.rpo if any(map(facts.has_adjoint, b.instructions))}
        self.within_block = _used_within_block(code.function)
        self.inert = {loop for loop in code.loops if self.blocks.isdisjoint(loop.blocks)}
        self.late_sums = late_sums(recipes, facts, words, self.inert)

    def active_phis(self, block: BasicBlock) -> list[I.Phi]:
        return [i for i in block.instructions if isinstance(i, I.Phi) and self.facts.has_adjoint(i)]

    def shortcut(self, block: BasicBlock) -> BasicBlock | None:
        """An earlier block to which reverse can go from `block` directly, since nothing between them has a reverse."""
        if self.active_phis(block):
            return None
        cfg, loop_of = self.code.cfg, self.code.loop_of
        target = self.code.dominators.idom[block]
        if target is None:
            return None
        left = self.code.left(target, block)
        if left and all(loop in self.inert for loop in left):
            target = left[-1].preheader
            assert target is not None
        if loop_of(target) is not loop_of(block):
            return None
        between = reached(cfg.preds[block], cfg.preds.__getitem__, lambda b: b not in (target, block))
        return None if any(b in self.blocks for b in between) else target


class Sweep:
    """Emits the reverse sweep into `blocks`; run over a Recorder first, over a Lookup in earnest. `finish`
    emits what comes after everything has been reversed. `positions` says which block of the code each block
    reverses."""

    def __init__(
        self,
        work: Work,
        sources: Sources,
        adjoints: Adjoints,
        builder: Builder,
        iterations: dict[Loop, Value],
        finish: Callable[[], None],
    ) -> None:
        self._work = work
        self._code = work.code
        self._sources = sources
        self._adjoints = adjoints
        self._builder = builder
        self._iterations = iterations
        self._finish = finish
        self._reversed: dict[BasicBlock, BasicBlock] = {}
        self._pending: list[BasicBlock] = []
        self.blocks: list[BasicBlock] = []
        self.positions: dict[BasicBlock, BasicBlock] = {}

    def run(self) -> BasicBlock:
        """Emits everything; returns the block to start from."""
        (end,) = [b for b in self._code.cfg.rpo if isinstance(b.terminator, I.Return)]
        start = self._block(end)
        while self._pending:
            self._reverse(self._pending.pop())
        return start

    def _block(self, block: BasicBlock) -> BasicBlock:
        if block not in self._reversed:
            self._reversed[block] = self._new(f"rev.{block.name}", block)
            self._pending.append(block)
        return self._reversed[block]

    def _new(self, name: str, position: BasicBlock) -> BasicBlock:
        fresh = BasicBlock(name=name)
        self.blocks.append(fresh)
        self.positions[fresh] = position
        return fresh

    def _reverse(self, block: BasicBlock) -> None:
        self._builder.block = self._reversed[block]
        self._sources.forget()
        for instruction in reversed(block.instructions):
            if isinstance(instruction, I.Phi):
                continue
            if self._work.facts.has_adjoint(instruction):
                self._adjoints.reverse(instruction)
        self._adjoints.leave_block()
        self._go_back(block)

    def _go_back(self, block: BasicBlock) -> None:
        loop = self._code.loop_of(block)
        preds = self._code.cfg.preds[block]
        if not preds:
            self._finish()
        elif loop is not None and loop.header is block:
            self._header(block, loop)
        else:
            target = self._work.shortcut(block)
            if target is not None:
                self._builder.br(self._block(target))
            else:
                self._merge(block, preds)

    def _merge(self, block: BasicBlock, preds: Sequence[BasicBlock]) -> None:
        phis = [(phi, self._adjoints.take(phi)) for phi in self._work.active_phis(block)]
        if len(preds) == 1:
            self._edge(block, preds[0], phis)
            return
        choice = self._sources.value(self._code.choice[block])
        edges = [self._new(f"rev.{block.name}.to.{pred.name}", block) for pred in preds]
        numbers = [ConstantInt(choice.type, i) for i in range(1, len(preds))]
        self._builder.insert(I.Switch(T.VOID, "switch", [choice, *numbers], targets=edges))
        for pred, edge in zip(preds, edges, strict=True):
            self._builder.block = edge
            self._sources.forget()
            self._edge(block, pred, phis)

    def _edge(self, block: BasicBlock, pred: BasicBlock, phis: list[tuple[I.Phi, Value]]) -> None:
        """From the start of a block to the end of one before it."""
        for phi, adjoint in phis:
            self._adjoints.add(phi.operands[phi.targets.index(pred)], adjoint)
        left = self._code.left(pred, block)
        numbers = [self._sources.value(self._code.last[block, loop]) for loop in left]
        for loop, number in reversed(list(zip(left, numbers, strict=True))):
            self._builder.store(number, self._iterations[loop])
            self._sources.enter(loop)
        self._adjoints.leave_block()
        self._builder.br(self._block(pred))

    def _header(self, block: BasicBlock, loop: Loop) -> None:
        phis = [(phi, self._adjoints.take(phi)) for phi in self._work.active_phis(block)]
        number = self._sources.iteration(loop)
        first = self._builder.icmp("eq", number, ConstantInt(T.I64, 0))
        assert loop.preheader is not None
        outward = self._new(f"rev.{block.name}.first", block)
        back = self._new(f"rev.{block.name}.back", block)
        self._builder.cond_br(first, outward, back)
        self._builder.block = outward
        self._sources.forget()
        before = loop.preheader
        self._adjoints.late_sums.finish(loop, lambda name: self._new(f"rev.{block.name}.{name}", before))
        self._edge(block, before, phis)
        self._builder.block = back
        self._sources.forget()
        less = self._builder.binary("sub", self._sources.iteration(loop), ConstantInt(T.I64, 1), ("nuw", "nsw"))
        self._builder.store(less, self._iterations[loop])
        self._sources.step_back(loop)
        self._edge(block, loop.latches[0], phis)
        self._builder.block.terminator.metadata += of_reverse(loop.latches[0].terminator)


def _used_within_block(function: Function) -> frozenset[Value]:
    """The values that only instructions of their own block use; terminators and phis pass a value on."""
    home: dict[Value, BasicBlock] = {i: block for block in function.blocks for i in block.instructions}
    found = set[Value](home)
    for instruction, block in home.items():
        assert isinstance(instruction, I.Instruction)
        passes = isinstance(instruction, I.Phi) or instruction.is_terminator
        found.difference_update(v for v in instruction.operands if passes or home.get(v) is not block)
    return frozenset(found)
