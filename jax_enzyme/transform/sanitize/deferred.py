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
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import phis
from jax_enzyme.transform.sanitize.endings import counting_loops
from jax_enzyme.transform.sanitize.insertion import Check
from jax_enzyme.transform.sanitize.scalars import holds_pattern

_NONE = const_int(T.I64, -1)


class Deferred:
    """What is to be inserted in one function: at its `start`, and `behind` loads."""

    def __init__(self, function: Function, declarations: Declarations) -> None:
        self.start: list[I.Instruction] = []
        self.behind: dict[I.Instruction, list[I.Instruction]] = {}
        self._loops: dict[I.Instruction, Loop] = {}
        for loop in counting_loops(function):
            if not any(_calls(i) for block in loop.blocks for i in block.instructions):
                self._loops |= {i: loop for block in loop.blocks for i in block.instructions}
        kind = T.FunctionType(T.I64, (T.I64, T.I64))
        self._least = declarations.function("llvm.umin.i64", kind)

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


def _calls(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.CallBase) and not instruction.callee.name.startswith("llvm.")
