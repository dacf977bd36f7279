"""Whether a gradient runs the forward sweep again, in the kernel of the reverse sweep, instead of reading a tape.

What is kept is written by one kernel and read by another, each number of each thread. Where both sweeps are in one
kernel, inputs are read once for both, shared memory is filled again (so that nothing of it has to be kept, but of what
is overwritten), and what is left of the tape is the thread's own, in registers most of all. It costs the forward sweep,
without what the reverse sweep computes again anyway.
"""

from __future__ import annotations

from jax_enzyme.ad.plan.recipes import work
from jax_enzyme.ad.reversal import Reversal
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.device.registers import REGISTER

_READ = 0.5
"""Of what a byte costs that is written and read."""
_OWN = 0.25
_IN_REGISTERS = 256
"""The same of one of a thread's own, as long as they are so few that registers hold them; others are in memory, too."""
_CLOSE = 2.0
"""An access of shared or local memory."""
_TOGETHER = 16.0
"""What lanes or threads do together, and atomic operations."""


def runs_again(split: Reversal, together: Reversal) -> bool:
    """Whether that is cheaper, by the plans of both ways."""
    kept, own = (plan.root.plan.tape.root.size for plan in (split, together))
    byte = split.facts.execution.operations_per_byte
    saved = (kept - _OWN * min(own, _IN_REGISTERS) - max(0, own - _IN_REGISTERS)) * byte
    return kept > 0 and _forward(split, saved, byte) < saved


def _forward(reversal: Reversal, limit: float, byte: float) -> float:
    """What a forward sweep costs, without what the reverse sweep computes again; more than `limit` is not counted."""
    plan, total = reversal.root.plan, 0.0
    for block in plan.code.cfg.rpo:
        times = plan.tape.frequency(block)
        for instruction in block.instructions:
            if instruction not in plan.recomputed:
                total += times * _cost(reversal, instruction, byte)
        if total > limit:
            break
    return total


def _cost(reversal: Reversal, instruction: I.Instruction, byte: float) -> float:
    facts = reversal.facts
    match instruction:
        case I.Load():
            objects = facts.points_to.of(instruction.operands[0])
            far = any(item.kind in ("buffer", "unknown") for item in objects)
            size = reversal.root.plan.tape.layout.store_size(instruction.type)
            return _READ * byte * size if far or not objects else _CLOSE
        case I.Store():
            return _CLOSE
        case I.CallBase() if callee_name(instruction).startswith((REGISTER, "llvm.dbg")):
            return 0.0
        case I.CallBase() if call_effect(instruction) in (Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE, Effect.FENCE):
            return _TOGETHER
        case I.AtomicRMW() | I.CmpXchg():
            return _TOGETHER
        case I.Phi() | I.Branch() | I.CondBranch() | I.Return() | I.GetElementPtr():
            return 0.0
        case _ if instruction.type == T.VOID:
            return 0.0
        case _:
            return work(instruction, facts.rules)
