"""Loops over the levels of a tree, at each of which threads meet, are to be unrolled.

    before    for (n = 128; n >= 1; n >>= 1) { if (t < n) ...; __syncthreads(); }

    after     the same, with `llvm.loop.unroll.full`

Their number is small, since each level has half of the threads of the one before, or twice as many. Where it is a
constant which of them do anything, the loop over threads has no others on the CPU (`guarded_loops.trim_loops`), and it
is seen on devices that one thread alone loads a place of shared memory between two barriers (`ad.device.intervals`).
LLVM's own limit is for a few instructions.
"""

from __future__ import annotations

from jax_enzyme.analysis.divergence import Which
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import int_value
from jax_enzyme.transform.loop_hints import ask, is_spoken_of
from jax_enzyme.transform.rewriting import phis

_MOST_LEVELS = 12
_MOST_INSTRUCTIONS = 1000
"""Of all levels together."""
_HALVES = frozenset(("shl", "lshr", "ashr", "mul", "udiv", "sdiv"))


def ask_for_levels(module: Module, kernel: Function, meets: Which) -> bool:
    """Marks the innermost such loops of a kernel, in place; whether there are any. `meets`: whether threads meet at an
    instruction."""
    found = False
    facts = Recurrences.of(kernel, module)
    for loop in facts.loops:
        if loop.children or len(loop.latches) != 1 or not _is_over_levels(loop):
            continue
        inside = [i for block in loop.blocks for i in block.instructions]
        most = facts.trip_count(loop).maximum
        if most is None or most >= _MOST_LEVELS or (most + 1) * len(inside) > _MOST_INSTRUCTIONS:
            continue
        end = loop.latches[0].terminator
        if any(map(meets, inside)) and not is_spoken_of(module, end):
            ask(module, end)
            found = True
    return found


def _is_over_levels(loop: Loop) -> bool:
    """Whether a counter is halved or doubled."""
    steps = (ends[1] for phi in phis(loop.header) if (ends := loop.ends(phi)) is not None)
    return any(
        isinstance(step, I.BinaryOp)
        and step.opcode in _HALVES
        and step.operands[0] in loop.header.instructions
        and int_value(step.operands[1]) is not None
        for step in steps
    )
