"""Exits of loops that no iteration takes are jumps no more, nor are the ways past exits that all take.

    before    loop: %k = phi [ 0, ... ], [ %next, %latch ]; br (%k == 199), label %done, label %inner
              inner: ... a loop from %k + 1 to 199 ...
              latch: %next = %k + 1; br (%next == 200), label %done, label %loop

    after     latch: %next = %k + 1; br label %loop

LLVM threads jumps late: where an inner loop has no iteration in the last step of the outer one only, what asks for
that goes to the end of both, and what asks at the end of the outer loop is left standing. With two exits nobody knows
how often the loop runs, and in reverse it is entered at two places.
"""

from __future__ import annotations

from jax_enzyme.analysis.guards import Condition, conjuncts
from jax_enzyme.analysis.implications import bounds, implied
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.transform.rewriting import go_one_way, on_copy, remove_unreachable


def leave_out_untaken_exits(function: ArrayFunction) -> ArrayFunction:
    """The array function without such exits of its loops, in a copy of the module; the function itself where it has
    none."""
    loops = Loops.of(function.module.functions[function.symbol])
    return on_copy(function, _change) if any(map(_asking, loops.all)) else function


def _asking(loop: Loop) -> list[BasicBlock]:
    """The blocks at the end of which a loop may be left or not, where there are several."""
    return [b for b in loop.exiting if isinstance(b.terminator, I.CondBranch)] if len(loop.exiting) > 1 else []


def _change(module: Module, root: Function) -> bool:
    """Each that goes may decide others."""
    is_changed = False
    while decided := _decided(module, root):
        for block, answer in decided.items():
            go_one_way(block, block.terminator.targets[0 if answer else 1])
        remove_unreachable(root)
        is_changed = True
    return is_changed


def _decided(module: Module, root: Function) -> dict[BasicBlock, bool]:
    loops = Loops.of(root)
    blocks = dict.fromkeys(block for loop in loops.all for block in _asking(loop))
    facts = Recurrences(root, loops, module) if blocks else None
    return {block: answer for block in blocks if facts and (answer := _answer(facts, block)) is not None}


def _answer(facts: Recurrences, block: BasicBlock) -> bool | None:
    """What the condition at the end of a block always is when control comes there."""
    for answer in (True, False):
        said, _ = conjuncts(block.terminator.operands[0], not answer, block)
        if any(_is_impossible(facts, condition, block) for condition in said):
            return answer
    return None


def _is_impossible(facts: Recurrences, condition: Condition, block: BasicBlock) -> bool:
    try:
        if any(bounds(facts, p, facts.guards.at(block)).high < 0 for p in implied(facts, [condition]).natural):
            return True
    except TooComplex:
        pass
    # What joins values of several ways may be narrower than its closed form.
    if condition.predicate != "eq" or not isinstance(condition.x.type, T.IntType):
        return False
    x, y = (facts.operand_range(v, block) for v in (condition.x, condition.y))
    return x.high < y.low or y.high < x.low
