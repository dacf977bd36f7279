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
from dataclasses import dataclass

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import phis
from jax_enzyme.transform.sanitize.endings import counting_loops
from jax_enzyme.transform.sanitize.hoisting import Hoisting
from jax_enzyme.transform.sanitize.insertion import Check
from jax_enzyme.transform.sanitize.provenance import Found, Known, Place
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import holds_pattern, pattern_of
from jax_enzyme.transform.sanitize.versions import Version

_NONE = const_int(T.I64, -1)


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
        self._ranges = hoisting.ranges
        self._versions = {i: version for version in hoisting.versions for i in version.copies.values()}
        self._briefly: dict[Version, _Notes] = {}

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
        for instruction in at.block.instructions:
            instruction.metadata = [(kind, node) for kind, node in load.metadata if kind == "dbg"]

        def seen(at: Builder) -> Value:
            return at.icmp("ne", at.load(T.I64, slot, 8), _NONE)

        check = Check(seen, lambda at: status(at, at.load(T.I64, slot, 8)))
        return [(block.instructions[len(phis(block))], check) for block in loop.exits]

    def note_briefly(self, load: I.Instruction, place: Place, unit: Value, text: Value) -> None:
        """Notes that a load of a loop's version without checks has read what nothing wrote, and not where."""
        version = self._versions[load]
        notes = self._briefly.setdefault(version, _Notes({}, []))
        found = pattern_of(load.type)
        assert found is not None
        if found[0] not in notes.slots:
            at = Builder(BasicBlock())
            notes.slots[found[0]] = at.alloca(found[0], align=8)
            at.store(const_int(found[0], 0), notes.slots[found[0]], 8)
            self.start += at.block.instructions
        slot = notes.slots[found[0]]
        at = Builder(BasicBlock())
        seen = at.cast("sext", holds_pattern(at, load), found[0])
        at.store(at.binary("or", at.load(found[0], slot, 8), seen), slot, 8)
        for instruction in at.block.instructions:
            instruction.metadata = [(kind, node) for kind, node in load.metadata if kind == "dbg"]
        self.behind.setdefault(load, []).extend(at.block.instructions)
        notes.reads.append((load, place, unit, text))

    def checks_of_versions(self) -> list[tuple[I.Instruction, Check]]:
        """The checks behind loops of which something was noted briefly, by what they come before."""
        return [
            (exit_.instructions[len(phis(exit_))], Check(notes.seen, lambda at, n=notes: self._where(at, n)))
            for version, notes in self._briefly.items()
            for exit_ in version.exits
        ]

    def _where(self, at: Builder, notes: _Notes) -> Value:
        """Looks for it again; what the loop has written since is not found any more."""
        load = notes.reads[0][0]
        status = self._runtime.failure("reads what nothing wrote in a loop that writes there afterwards", load)
        for load, place, unit, text in reversed(notes.reads):
            span = self._ranges[load]
            record = place.record if isinstance(place, Found) else ConstantNull(T.PTR)
            base = at.cast("ptrtoint", place.base, T.I64) if isinstance(place, Known) else const_int(T.I64, 0)
            size = const_int(T.I64, span.size)
            status = self._runtime.call(
                at, "scan", record, base, span.first, span.last, size, unit, text, self._runtime.place(load), status
            )
        return status


@dataclass(frozen=True, eq=False)
class _Notes:
    """Of one loop: what is not 0 where something was read, by the type of what was read; and the reads."""

    slots: dict[T.Type, Value]
    reads: list[tuple[I.Instruction, Place, Value, Value]]

    def seen(self, at: Builder) -> Value:
        result: Value = const_int(T.I1, 0)
        for kind, slot in self.slots.items():
            result = at.binary("or", result, at.icmp("ne", at.load(kind, slot, 8), const_int(kind, 0)))
        return result


def _calls(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.CallBase) and not instruction.callee.name.startswith("llvm.")
