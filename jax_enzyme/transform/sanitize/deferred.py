"""Reads of what nothing wrote in loops that may be vectorised: noted in the loop, and told behind it.

    before    %v = load double, ptr %p            after    %v = load double, ptr %p
                                                           %bad = icmp eq i64 (bitcast %v), <pattern>
                                                           %where = select i1 %bad, i64 (ptrtoint %p), i64 -1
                                                           %first = call i64 @llvm.umin(i64 %first.so.far, %where)
                                                           ...
                                                         exit:
                                                           (where %first is not -1, the failure)

A read of memory that is there does no harm by itself, so that the failure can wait; a branch in the loop would keep
LLVM from vectorising it. The lowest address stands for all.
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.rewriting import locate, phis
from jax_enzyme.transform.sanitize.endings import counting_loops
from jax_enzyme.transform.sanitize.hoisting import Hoisting, Range
from jax_enzyme.transform.sanitize.provenance import Found, Known
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import holds_pattern, pattern_of
from jax_enzyme.transform.sanitize.versions import Version

_NONE = const_int(T.I64, -1)
_Read = tuple[I.Instruction, Value, Value]
"""A load, the unit of its index, and the text about it."""


class Deferred:
    """What is to be inserted in one function: at its `start`, and `behind` loads."""

    def __init__(self, function: Function, runtime: Runtime, hoisting: Hoisting) -> None:
        self.start: list[I.Instruction] = []
        self.behind: dict[I.Instruction, list[I.Instruction]] = {}
        self._loops: dict[I.Instruction, Loop] = {}
        for loop in counting_loops(function):
            if not any(_calls(i) for block in loop.blocks for i in block.instructions):
                self._loops |= {i: loop for block in loop.blocks for i in block.instructions}
        kind = T.FunctionType(T.I64, (T.I64, T.I64))
        self._least = Declarations(runtime.module).function("llvm.umin.i64", kind)
        self._runtime = runtime
        self._hoisting = hoisting
        self._versions = {i: version for version in hoisting.versions for i in version.copies.values()}
        self._briefly: dict[Version, list[_Read]] = {}

    def loop_of(self, load: I.Instruction) -> Loop | None:
        """The loop behind which the failure of a load can be told."""
        return self._loops.get(load)

    def note(
        self, load: I.Instruction, loop: Loop, status: Callable[[Builder, Value], Value]
    ) -> list[tuple[I.Instruction, Check]]:
        """Notes the reads of a load; the checks behind its loop, by what they come before. `status` builds the status
        of a failure at an address."""
        at = Builder(BasicBlock())
        slot = at.alloca(T.I64, align=8)
        at.store(_NONE, slot, 8)
        self.start += at.block.instructions
        at = Builder(BasicBlock())
        where = at.select(holds_pattern(at, load), at.cast("ptrtoint", load.operands[0], T.I64), _NONE)
        at.store(at.call(self._least, [at.load(T.I64, slot, 8), where]), slot, 8)
        self.behind.setdefault(load, []).extend(at.block.instructions)
        locate(load, at.block.instructions)

        def seen(at: Builder) -> Value:
            return at.icmp("ne", at.load(T.I64, slot, 8), _NONE)

        check = Check(seen, lambda at: status(at, at.load(T.I64, slot, 8)))
        return [(block.instructions[len(phis(block))], check) for block in loop.exits]

    def note_briefly(self, load: I.Instruction, unit: Value, text: Value) -> None:
        """Notes that a load of a loop's version without checks has read what nothing wrote, and not where."""
        self._briefly.setdefault(self._versions[load], []).append((load, unit, text))

    def checks_of_versions(self) -> list[tuple[I.Instruction, Check]]:
        """The checks behind loops of which something was noted briefly, by what they come before."""
        checks: list[tuple[I.Instruction, Check]] = []
        for version, reads in self._briefly.items():
            slots = self._count(version, [load for load, _, _ in reads])
            for exit_ in version.exits:
                spans = [self._hoisting.span_of(load, version) for load, _, _ in reads]
                check = Check(lambda at, s=slots: _some(at, s), lambda at, s=spans, r=reads: self._where(at, s, r))
                checks.append((exit_.instructions[len(phis(exit_))], check))
        return checks

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

    def _where(self, at: Builder, spans: list[tuple[Range, list[I.Instruction]]], reads: list[_Read]) -> Value:
        """Looks for it again; what the loop has written since is not found any more."""
        load = reads[0][0]
        status = self._runtime.failure("reads what nothing wrote in a loop that writes there afterwards", load)
        for (load, unit, text), (span, said) in zip(reversed(reads), reversed(spans), strict=True):
            at.block.instructions += said
            place = span.place
            record = place.record if isinstance(place, Found) else ConstantNull(T.PTR)
            base = at.cast("ptrtoint", place.base, T.I64) if isinstance(place, Known) else const_int(T.I64, 0)
            size = const_int(T.I64, span.size)
            status = self._runtime.call(
                at, "scan", record, base, span.first, span.last, size, unit, text, self._runtime.place(load), status
            )
        return status


def _some(at: Builder, slots: dict[T.Type, Value]) -> Value:
    """Whether a sum is not 0."""
    result: Value = const_int(T.I1, 0)
    for kind, slot in slots.items():
        result = at.binary("or", result, at.icmp("ne", at.load(kind, slot, 8), const_int(kind, 0)))
    return result


def _calls(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.CallBase) and not instruction.callee.name.startswith("llvm.")
