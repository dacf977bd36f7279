"""Which threads of a block come where: what differs between them, and who leaves before a barrier.

    divergent   see `analysis.divergence`; thread numbers, lanes, loads and what other threads send differ by themselves
    leavers     threads that take an edge after which they meet nobody any more, although those that take the other do
    apart       lanes of a warp of which some meet others (or their block) before all are together again: those that go
                by that meeting are ahead of the others from then on, and would wait for them in vain

Threads that leave early take no part in later barriers, neither forward nor in reverse. In reverse they would begin
with what they did before they left while the others have yet to reverse what came after. Where nobody else has seen
what they did, that makes no difference; otherwise there is no right order, and the kernel is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from jax_enzyme.ad.device.lanes import Lanes
from jax_enzyme.ad.device.warps import Warps
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.divergence import Divergence
from jax_enzyme.analysis.objects import call_effect, is_memory_free
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.device.registers import LANE, REGISTER

_BLOCK = f"{REGISTER}ctaid."
_WARP_ONLY = (
    "__je_ballot", "__je_any", "__je_all", "__je_active_mask", "__je_warp_sync", "llvm.nvvm.vote.",
    "llvm.nvvm.bar.warp.sync",
)  # fmt: skip


def meets(instruction: I.Instruction) -> bool:
    """Whether this is a barrier of the block, with a vote or without."""
    if not isinstance(instruction, I.CallBase) or call_effect(instruction) not in (Effect.BARRIER, Effect.VOTE):
        return False
    return not instruction.callee.name.startswith(_WARP_ONLY)


@dataclass(frozen=True)
class Guard:
    """A condition, and whether it has to hold."""

    condition: Value
    holds: bool


class Convergence:
    """The facts about one function, which is all that a thread runs. `stable` says of a load that every thread would
    read the same there at any time."""

    def __init__(self, function: Function, lanes: Lanes, stable: Callable[[I.Load], bool]) -> None:
        self.cfg = Cfg(function)
        self._divergence = Divergence(self.cfg, self._differs, _agreed)
        self._agreeing = Warps(lanes, stable)
        self._stable = stable
        self._blocks = {b for b in self.cfg.rpo if any(map(meets, b.instructions))}
        self._warps = self._blocks | {b for b in self.cfg.rpo if any(map(_meets_lanes, b.instructions))}

    @cached_property
    def leaves_block(self) -> set[BasicBlock]:
        """What a thread may run that leaves before a barrier that other threads of its block come to."""
        return self._run_by_leavers(self._blocks, self.diverges)

    @cached_property
    def leaves_warp(self) -> set[BasicBlock]:
        """What a thread may run that leaves before other lanes of its warp meet."""
        return self._run_by_leavers(self._warps, self._parts_warps)

    @cached_property
    def apart(self) -> dict[BasicBlock, tuple[Guard, ...] | None]:
        """The branches behind which some lanes of a warp meet, before all are together again, and some do not: the
        conditions under which a lane goes by, None where that cannot be said."""
        found: dict[BasicBlock, tuple[Guard, ...] | None] = {}
        for block, between in self._partings.items():
            met = self._warps & between
            if met:
                by = [n for n, w in enumerate(self.cfg.succs[block]) if met.isdisjoint(self._within(w, between))]
                before, last = self.guards(block), self._guard(block, by)
                found[block] = None if before is None or last is None else (*before, last)
        return found

    def _run_by_leavers(self, meetings: set[BasicBlock], parts: Callable[[BasicBlock], bool]) -> set[BasicBlock]:
        found: set[BasicBlock] = set()
        for block in self.cfg.rpo:
            ways = self.cfg.succs[block]
            if len(ways) < 2 or not parts(block) or self._joins_again(block, meetings):
                continue
            staying = [w for w in ways if w in meetings or any(self.cfg.reaches(w, m) for m in meetings)]
            for way in ways:
                after = self._without(way, meetings)
                if staying and any(isinstance(b.terminator, I.Return) for b in after):
                    found |= after | {b for b in self.cfg.rpo if b is block or self.cfg.reaches(b, block)}
        return found

    def _joins_again(self, block: BasicBlock, meetings: set[BasicBlock]) -> bool:
        """Whether threads that part here are together again before any of them meets others."""
        between = self._divergence.between(block)
        return between is not None and not meetings & between

    def _without(self, start: BasicBlock, meetings: set[BasicBlock]) -> set[BasicBlock]:
        """The blocks from `start` on, up to the next meetings."""
        return set(reached([start], self.cfg.succs.__getitem__, lambda block: block not in meetings))

    def _parts_warps(self, block: BasicBlock) -> bool:
        return self.diverges(block) and not all(map(self._agreeing.agree, block.terminator.operands))

    def diverges(self, block: BasicBlock) -> bool:
        """Whether threads of a block of threads may leave this block of code in different ways."""
        return self._divergence.parts(block)

    def is_common(self, value: Value) -> bool:
        """Whether all lanes of a warp that come to a value at the same time have the same."""
        return not self._divergence.of(value) or self._agreeing.agree(value)

    def guards(self, block: BasicBlock) -> tuple[Guard, ...] | None:
        """The branches that part the lanes of a warp before they come to a block of code: those that go the way there
        run it equally often. None where that cannot be said, as one of them is in a loop."""
        found: list[Guard] = []
        for last, between in self._partings.items():
            if block not in between:
                continue
            ways = [n for n, w in enumerate(self.cfg.succs[last]) if block in self._within(w, between)]
            guard = self._guard(last, ways)
            if guard is None:
                return None
            found.append(guard)
        return tuple(found)

    def _guard(self, last: BasicBlock, ways: list[int]) -> Guard | None:
        """The condition under which a lane leaves a block in the one way of these; None where that cannot be said."""
        branch = last.terminator
        if not isinstance(branch, I.CondBranch) or len(ways) != 1 or self.cfg.reaches(last, last):
            return None
        return Guard(branch.operands[0], branch.targets[0] is self.cfg.succs[last][ways[0]])

    @cached_property
    def _partings(self) -> dict[BasicBlock, set[BasicBlock]]:
        """The blocks of code that lanes leave in different ways, and what lies between there and where they meet."""
        found: dict[BasicBlock, set[BasicBlock]] = {}
        for block in self.cfg.rpo:
            ways = self.cfg.succs[block]
            if len(ways) > 1 and self._parts_warps(block):
                between = self._divergence.between(block)
                found[block] = {b for b in self.cfg.rpo if self.cfg.reaches(block, b)} if between is None else between
        return found

    def _within(self, start: BasicBlock, region: set[BasicBlock]) -> set[BasicBlock]:
        """The blocks of a region that control comes to from one of them, without leaving it."""
        return set(reached([start], self.cfg.succs.__getitem__, region.__contains__))

    def _differs(self, instruction: I.Instruction) -> bool:
        """A value that may differ although the operands do not."""
        match instruction:
            case I.CallBase():
                name = instruction.callee.name
                if name.startswith(REGISTER):
                    return not name.startswith(_BLOCK)
                return name == LANE or not (_agreed(instruction) or is_memory_free(instruction))
            case I.Load():
                return not self._stable(instruction)
            case I.AtomicRMW() | I.CmpXchg() | I.Alloca() | I.VAArg():
                return True
            case _:
                return False


def _agreed(instruction: I.Instruction) -> bool:
    """What all threads of a block have voted on."""
    return meets(instruction)


def _meets_lanes(instruction: I.Instruction) -> bool:
    """Whether lanes of a warp meet here."""
    effect = call_effect(instruction) if isinstance(instruction, I.CallBase) else None
    return effect in (Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE)
