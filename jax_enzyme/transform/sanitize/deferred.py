"""Reads of what nothing wrote in loops without checks: noted in the loop, and told behind it.

    before    %v = load double, ptr %p            after    %v = load double, ptr %p
                                                           %bad = icmp eq i64 (bitcast %v), <pattern>
                                                           %sum = add i64 %sum.so.far, (zext %bad)
                                                           ...
                                                         exit:
                                                           (where %sum is not 0, the failure)

A read of memory that is there does no harm by itself, so that the failure can wait; a branch in the loop would keep
LLVM from vectorising it. Which read it was is found by a second run of the kernel, in which no such version is entered.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.rewriting import locate, phis
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import holds_pattern, pattern_of
from jax_enzyme.transform.sanitize.versions import Version


class Deferred:
    """What is to be inserted in one function: at its `start`, and `behind` loads."""

    def __init__(self, runtime: Runtime, versions: Iterable[Version]) -> None:
        self.start: list[I.Instruction] = []
        self.behind: dict[I.Instruction, list[I.Instruction]] = {}
        self._runtime = runtime
        self._versions = {i: version for version in versions for block in version.blocks for i in block.instructions}
        self._noted: dict[Version, list[I.Instruction]] = {}

    def note(self, load: I.Instruction) -> None:
        """Notes whether a load of a version without checks has read what nothing wrote."""
        self._noted.setdefault(self._versions[load], []).append(load)

    def checks(self, is_quick: Value) -> list[tuple[I.Instruction, Check]]:
        """The checks behind versions of which something was noted, by what they come before; these versions are entered
        only where `is_quick` is true."""
        found: list[tuple[I.Instruction, Check]] = []
        for version, loads in self._noted.items():
            slots, place = self._count(version, loads), self._runtime.place(loads[0])
            version.demand(is_quick)
            for exit_ in version.exits:
                check = Check(lambda at, s=slots: _some(at, s), lambda at, p=place: self._runtime.call(at, "noted", p))
                found.append((exit_.instructions[len(phis(exit_))], check))
        return found

    def _count(self, version: Version, loads: list[I.Instruction]) -> dict[T.Type, Value]:
        """Counts, by the integer types in which numbers are compared, how often something was read in a block. One sum
        for a block: LLVM vectorises sums, and no chain of choices, which is what it makes of several of them."""
        slots: dict[T.Type, Value] = {}
        wanted = set(loads)
        for block in version.blocks:
            groups: dict[T.Type, list[I.Instruction]] = {}
            for load in block.instructions:
                if load in wanted and (found := pattern_of(load.type)) is not None:
                    groups.setdefault(found[0], []).append(load)
            for kind, group in groups.items():
                if kind not in slots:
                    at = Builder(BasicBlock())
                    slots[kind] = at.alloca(kind, align=8)
                    at.store(const_int(kind, 0), slots[kind], 8)
                    self.start += at.block.instructions
                at = Builder(BasicBlock())
                seen = holds_pattern(at, group[0])
                for load in group[1:]:
                    seen = at.binary("or", seen, holds_pattern(at, load))
                sum_ = at.binary("add", at.load(kind, slots[kind], 8), at.cast("zext", seen, kind))
                at.store(sum_, slots[kind], 8)
                locate(group[-1], at.block.instructions)
                self.behind.setdefault(group[-1], []).extend(at.block.instructions)
        return slots


def _some(at: Builder, slots: dict[T.Type, Value]) -> Value:
    """Whether a sum is not 0."""
    result: Value = const_int(T.I1, 0)
    for kind, slot in slots.items():
        result = at.binary("or", result, at.icmp("ne", at.load(kind, slot, 8), const_int(kind, 0)))
    return result
