"""What differs between the threads that run one function together.

    divergent   {no, yes} per value: yes where threads may have different values. Least fixed point from values that
                differ by themselves, through operands, and to the phis of blocks that threads reach in several ways
                from a branch that they take differently

Threads that leave a loop earlier than others reach what is behind it in several ways, too: in LCSSA form, what they
take out of the loop is a phi there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import PostDominators
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value

Which = Callable[[I.Instruction], bool]


class Divergence:
    """`differs` says that an instruction's value may differ although its operands do not, `agreed` that it does not
    differ whatever its operands are."""

    def __init__(self, cfg: Cfg, differs: Which, agreed: Which) -> None:
        self._cfg = cfg
        self._differs = differs
        self._agreed = agreed

    def of(self, value: Value) -> bool:
        """Whether threads may have different values."""
        return value in self._values

    def parts(self, block: BasicBlock) -> bool:
        """Whether threads may leave a block in different ways."""
        return any(v in self._values for v in block.terminator.operands)

    def between(self, block: BasicBlock) -> set[BasicBlock] | None:
        """The blocks that threads may pass before they are together again, None where they never are."""
        join = self._joins.get(block)
        return None if join is None else self._until(self._cfg.succs[block], join) - {join}

    @cached_property
    def _joins(self) -> dict[BasicBlock, BasicBlock | None]:
        return PostDominators(self._cfg).idom

    @cached_property
    def _values(self) -> set[Value]:
        homes = {b.terminator: b for b in self._cfg.rpo}
        used = uses(self._cfg.function)

        def onward(value: Value) -> Iterator[Value]:
            for user, _ in used.get(value, ()):
                if user in homes:
                    for block in self._reached_in_several_ways(homes[user]):
                        yield from (i for i in block.instructions if isinstance(i, I.Phi))
                if not self._agreed(user):
                    yield user

        return set(reached((i for b in self._cfg.rpo for i in b.instructions if self._differs(i)), onward))

    def _reached_in_several_ways(self, block: BasicBlock) -> set[BasicBlock]:
        """Where threads may come that parted at a branch, up to where all of its ways join."""
        ways = [self._until([way], self._joins.get(block)) for way in self._cfg.succs[block]]
        return {b for n, way in enumerate(ways) for b in way if any(b in other for other in ways[n + 1 :])}

    def _until(self, ways: Iterable[BasicBlock], join: BasicBlock | None) -> set[BasicBlock]:
        """The blocks from some on up to another, which is included."""
        return set(reached(ways, lambda block: self._cfg.succs[block] if block is not join else ()))
