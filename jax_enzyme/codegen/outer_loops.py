"""Loops that a long function goes through once stay loops.

    for (i = 0; i < 8; i++)                  one of two hundred such loops, behind one another
        w[i] = g(w[i], x);

LLVM unrolls each of them, which is a gain where it runs often. One after the other they become a single block, and
what instruction combining and register allocation take grows with the square of that; to run once through eight times
as much code is slower, if anything. Loops inside of loops are unrolled as they are elsewhere: the loop around keeps
their blocks apart.
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir.module import Module
from jax_enzyme.transform.loop_hints import ask, is_spoken_of

_FUNCTION = 4000
"""Above so many instructions a function is long."""
_BODY = 40
"""What a loop has at most whose iterations may share their counters: several of them are put together."""


def keep_outer_loops(module: Module) -> None:
    """Tells LLVM, in place, not to unroll these loops; what the source says of a loop holds."""
    for function in module.functions.values():
        if sum(len(block.instructions) for block in function.blocks) <= _FUNCTION:
            continue
        for loop in Loops.of(function).roots:
            for latch in loop.latches if loop.length > _BODY else ():
                if not is_spoken_of(module, latch.terminator):
                    ask(module, latch.terminator, "disable")
