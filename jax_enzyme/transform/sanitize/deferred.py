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

from collections.abc import Callable, Iterable
from functools import partial, reduce

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.rewriting import locate, phis
from jax_enzyme.transform.sanitize.narrow import may_be_pattern
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import holds_pattern, least_of_narrow, pattern_of
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
            version.demand(is_quick)
            narrow = [load for load in loads if least_of_narrow(load.type) is not None]
            others = [load for load in loads if least_of_narrow(load.type) is None]
            checks: list[Check] = []
            if others:
                slots, tell = self._count(version, others), self._tell(others[0])
                checks.append(Check(lambda at, s=slots: _some(at, s), tell))
            if narrow:
                slots = self._count(version, narrow)
                hand_on = partial(self._hand_on, slot=slots[T.I32])
                checks.append(Check(lambda at, s=slots: _some(at, s), hand_on, unsure=True))
            found += [(exit_.instructions[len(phis(exit_))], check) for exit_ in version.exits for check in checks]
        return found

    def _hand_on(self, at: Builder, slot: Value) -> Value:
        """Adds what was counted in a loop to what the call has read."""
        self._runtime.call(at, "narrow_many", at.load(T.I32, slot, 8))
        at.store(const_int(T.I32, 0), slot, 8)
        return const_int(T.I64, 0)

    def _tell(self, load: I.Instruction) -> Callable[[Builder], Value]:
        place = self._runtime.place(load)
        return lambda at: self._runtime.call(at, "noted", place)

    def _count(self, version: Version, loads: list[I.Instruction]) -> dict[T.Type, Value]:
        """Counts, by the integer types in which numbers are compared, how often something was read in a block. One sum
        for a block: LLVM vectorises sums, and no chain of choices, which is what it makes of several of them."""
        slots: dict[T.Type, Value] = {}
        wanted = set(loads)
        for block in version.blocks:
            groups: dict[T.Type, list[I.Instruction]] = {}
            for load in block.instructions:
                if load in wanted:
                    found = pattern_of(load.type)
                    groups.setdefault(found[0] if found else T.I32, []).append(load)
            for kind, group in groups.items():
                if kind not in slots:
                    at = Builder(BasicBlock())
                    slots[kind] = at.alloca(kind, align=8)
                    at.store(const_int(kind, 0), slots[kind], 8)
                    self.start += at.block.instructions
                at = Builder(BasicBlock())
                # Of numbers that may have been written each one counts, of the others whether there is one.
                narrow = [
                    at.cast("zext", may_be_pattern(at, i), kind) for i in group if least_of_narrow(i.type) is not None
                ]
                sum_ = at.load(kind, slots[kind], 8)
                if wide := [holds_pattern(at, i) for i in group if least_of_narrow(i.type) is None]:
                    narrow.append(at.cast("zext", reduce(partial(at.binary, "or"), wide), kind))
                for number in narrow:
                    sum_ = at.binary("add", sum_, number)
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
