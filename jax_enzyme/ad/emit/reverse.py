"""The reverse sweep: the blocks of the forward sweep, each reversed, joined in reverse order of control.

    forward    entry -> header <-> latch,  header -> exit
    reverse    rev.exit -> rev.header <-> rev.latch,  rev.header -> rev.entry

Control finds its way back by values: at a merge by the number of the predecessor that control came from, at a loop's
header by the iteration number, which a variable of the reverse function counts down; entering a loop from an exit
sets it to the number of the last iteration. Where the order of iterations does not matter (`ad.plan.turned`), it counts
up from zero. Regions and loops in which nothing has an adjoint are jumped over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jax_enzyme.ad.emit.adjoints import Adjoints
from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.plan.work import Work
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.marks import of_reverse
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value


class Sweep:
    """Emits the reverse sweep into `blocks`; run over plain Sources first, over a Lookup in earnest. `finish`
    emits what comes after everything has been reversed. `positions` says which block of the code each block
    reverses."""

    def __init__(
        self,
        work: Work,
        sources: Sources,
        adjoints: Adjoints,
        iterations: dict[Loop, Value],
        finish: Callable[[], None],
    ) -> None:
        self._work = work
        self._code = work.code
        self._sources = sources
        self._adjoints = adjoints
        self._builder = sources.builder
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
        self._adjoints.enter_block(block)
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
        numbers = [self._from(block, loop) for loop in left]
        for loop, number in reversed(list(zip(left, numbers, strict=True))):
            self._builder.store(number, self._iterations[loop])
            self._adjoints.late_sums.begin(loop, number)
            self._sources.enter(loop)
        self._adjoints.leave_block()
        self._builder.br(self._block(pred))

    def _from(self, block: BasicBlock, loop: Loop) -> Value:
        """The number of the iteration that is reversed first, if a loop is left for a block."""
        return ConstantInt(T.I64, 0) if loop in self._work.turned else self._sources.value(self._code.last[block, loop])

    def _header(self, block: BasicBlock, loop: Loop) -> None:
        phis = [(phi, self._adjoints.take(phi)) for phi in self._work.active_phis(block)]
        number = self._sources.iteration(loop)
        last = self._work.turned.get(loop)
        first = self._builder.icmp("eq", number, ConstantInt(T.I64, last or 0))
        outward = self._new(f"rev.{block.name}.first", block)
        back = self._new(f"rev.{block.name}.back", block)
        self._builder.cond_br(first, outward, back)
        self._builder.block = outward
        self._sources.forget()
        before = loop.front
        self._adjoints.late_sums.finish(loop, lambda name: self._new(f"rev.{block.name}.{name}", before))
        self._edge(block, before, phis)
        self._builder.block = back
        self._sources.forget()
        step = "sub" if last is None else "add"
        other = self._builder.binary(step, self._sources.iteration(loop), ConstantInt(T.I64, 1), ("nuw", "nsw"))
        self._builder.store(other, self._iterations[loop])
        self._sources.step_back(loop)
        self._edge(block, loop.latches[0], phis)
        self._builder.block.terminator.metadata += of_reverse(loop.latches[0].terminator)
