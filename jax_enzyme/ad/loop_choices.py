"""What a marked loop chooses the best of is kept, one number for each iteration, for reverse mode.

    before    %best = phi double [ %b0, %entry ], [ %b, %loop ]      after    %number, %which: how many iterations
              %better = fcmp olt double %a, %best                              before, and which of them was chosen
              %b = select i1 %better, double %a, double %best                  store double %a, ptr %kept[%number]
              ...                                                              ...
              use %b                                                           %which < 0 ? %b0 : load %kept[%which]

The reverse of a chain of selects hands the adjoint from each iteration to the one before, and asks in each whether it
was chosen then. But only the last one that was chosen matters: told which one that was, the adjoint goes there at
once, no iteration of the reverse needs another one, and so it runs on several threads. In the loop itself the best is
only compared with, which has no derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jax_enzyme.ad.shortcuts import activity_of
from jax_enzyme.analysis.accumulation import Chain
from jax_enzyme.analysis.independence import Independence
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import map_of
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Vjp
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.marks import has_marks
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.table import Rules
from jax_enzyme.transform.heap_locals import move_large_locals
from jax_enzyme.transform.ranges import WORTH
from jax_enzyme.transform.rewriting import replace_values

_MOST = 1 << 22
"""Longer loops are left as they are: what is kept should not take more memory than what the kernel works on."""


def keep_choices(function: ArrayFunction, step: Vjp, rules: Rules) -> ArrayFunction:
    """The array function whose marked loops keep what they choose from, where the choice is active, in a copy of the
    module; the function itself where there is no such loop."""
    if not has_marks(function.module):
        return function
    root = function.module.functions[function.symbol]
    facts = Independence(function.module, root)
    chosen = [(loop, chains) for loop in facts.loops.all if (chains := _chosen(facts, loop))]
    if not chosen:
        return function
    activity = activity_of(root, step, rules, map_of(function))
    active = {loop: kept for loop, chains in chosen if (kept := [c for c in chains if activity.value(c.sample)])}
    if not active:
        return function
    module, copies = clone_with_map(function.module)
    for loop, chains in active.items():
        _Keeping(module.functions[function.symbol], loop, facts.count(loop) or 0, copies).run(chains)
    return move_large_locals(replace(function, module=module))


def _chosen(facts: Independence, loop: Loop) -> list[Chain]:
    """The numbers among a loop's choices that are used behind the loop."""
    count = facts.count(loop)
    if count is None or count > _MOST or facts.work(loop) < WORTH or loop.preheader is None:
        return []
    if len(loop.exit_edges) != 1 or facts.loops.cfg.preds[loop.exits[0]] != loop.exiting:
        return []
    numbers = [c for c in facts.choices(loop) if isinstance(c.start.type, T.FloatType)]
    return [c for c in numbers if c.ends and all(isinstance(user, I.Phi) for user, _ in c.ends)]


class _Keeping:
    """Changes one loop of a copy of a function; loop and chains are of the original."""

    def __init__(self, root: Function, loop: Loop, count: int, copies: Mapping[Value, Value]) -> None:
        self._root = root
        self._count = count
        self._copies = copies
        assert loop.preheader is not None
        blocks = (loop.preheader, loop.header, loop.latches[0], loop.exiting[0], loop.exits[0])
        self._before, self._header, self._latch, self._exiting, self._behind = map(self._block, blocks)

    def run(self, chains: list[Chain]) -> None:
        number = self._phi(0)
        at = Builder(BasicBlock())
        number.add(at.binary("add", number, const_int(T.I64, 1)), self._latch)
        self._latch.instructions[-1:-1] = at.block.instructions
        for chain in chains:
            self._keep(chain, number)

    def _phi(self, start: int) -> I.Phi:
        phi = I.Phi(T.I64, "phi", [const_int(T.I64, start)], targets=[self._before])
        self._header.instructions.insert(0, phi)
        return phi

    def _keep(self, chain: Chain, number: I.Phi) -> None:
        best, chosen = self._copies[chain.start], self._copies[chain.sample]
        assert isinstance(best, I.Phi) and isinstance(chosen, I.Select)
        condition, *two = chosen.operands
        candidate = next(v for v in two if v is not best)
        memory = I.Alloca(T.PTR, "alloca", [const_int(T.I32, 1)], T.ArrayType(self._count, best.type))
        self._root.entry.instructions.insert(0, memory)
        which = self._phi(-1)
        at = Builder(BasicBlock())
        at.store(candidate, at.gep(best.type, memory, [number]))
        which.add(at.select(condition, *(which if v is best else number for v in two)), self._latch)
        home = next(b for b in self._root.blocks if chosen in b.instructions)
        index = home.instructions.index(chosen) + 1
        home.instructions[index:index] = at.block.instructions
        self._use(chain, which, memory)

    def _use(self, chain: Chain, which: I.Phi, memory: Value) -> None:
        """Behind the loop, what was kept stands for what was chosen."""
        best, nothing = self._copies[chain.start], const_int(T.I64, 0)
        assert isinstance(best, I.Phi)
        start = next(v for v, b in best.incoming if b is self._before)
        last = I.Phi(T.I64, "phi", [which.operands[-1]], targets=[self._exiting])
        at = Builder(BasicBlock())
        none = at.icmp("slt", last, nothing)
        kept = at.load(best.type, at.gep(best.type, memory, [at.select(none, nothing, last)]))
        found = at.select(none, start, kept)
        ends: dict[Value, Value] = {self._copies[user]: found for user, _ in chain.ends}
        left = [i for i in self._behind.instructions if i not in ends]
        count = sum(isinstance(i, I.Phi) for i in left)
        self._behind.instructions = [last, *left[:count], *at.block.instructions, *left[count:]]
        replace_values(self._root, ends)

    def _block(self, block: BasicBlock) -> BasicBlock:
        copy = self._copies[block]
        assert isinstance(copy, BasicBlock)
        return copy
