"""Values that are the same in all iterations of a loop, at the same iterations of the loops inside of it.

for g: for j: z[g] += U[g][j] * exp(s[j])         s[j] and its exponential: the same for all g
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value

_ARITHMETIC = (I.GetElementPtr, I.BinaryOp, I.UnaryOp, I.Cast, I.Select, I.Compare)
_MOST = 64
"""What is made of more in a loop is taken to differ."""


def is_repeated(
    value: I.Instruction,
    loop: Loop,
    loops: Loops,
    home: Mapping[Value, BasicBlock],
    stays: Callable[[I.Load], bool],
) -> bool:
    """Whether a value in `loop` is made of what comes from outside of it, of what the loops around the value and
    inside of `loop` carry from one iteration to the next, and of loads from memory that `stays` as it is meanwhile."""
    made_of = Reached[Value]([value])
    for count, part in enumerate(made_of):
        block = home.get(part)
        if block is None or block not in loop.blocks:
            continue
        assert isinstance(part, I.Instruction)
        match part:
            case I.Phi():
                inner = loops.loop_of[block]
                follows = inner is not None and inner is not loop and inner.header is block
                follows = follows and inner is not None and home[value] in inner.blocks
            case I.Load():
                follows = I.is_plain(part) and stays(part)
            case I.Call():
                follows = is_pure(part)
            case _:
                follows = isinstance(part, _ARITHMETIC)
        if not follows or count == _MOST:
            return False
        made_of.add(part.operands)
    return True
