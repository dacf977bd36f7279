"""Worksharing loops of flang in the form that clang gives them: their counter is a variable.

before    header: %i = phi i32 [ 0, %before ], [ %next, %latch ]     after    before: store 0, %counter
                  br label %test                                                      store %count - 1, %last
          test:   %more = icmp ult i32 %i, %count                             header: %i = load %counter
                  br i1 %more, label %body, label %exit                               %end = load %last + 1
          latch:  %next = add nuw i32 %i, 1                                           %more = icmp ult i32 %i, %end
                                                                                      br i1 %more, label %body, ...
                                                                              latch:  store %next, %counter
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.transform.rewriting import local, locate, phis, redirect_phis, replace_values


def count_in_memory(function: Function, loop: Loop) -> bool:
    """Changes a loop with a preheader and one latch, in place; False where it has another form. Two blocks become
    one: the loop is to be looked for again."""
    header, before, (latch,) = loop.header, loop.preheader, loop.latches
    counters = phis(header)
    if before is None or len(counters) != 1 or len(header.instructions) != 2:
        return False
    (counter,), test = counters, header.terminator.targets[0]
    asked = _asked(test, counter)
    start, following = loop.ends(counter) or (None, None)
    if asked is None or start is None or following is None or not isinstance(counter.type, T.IntType):
        return False
    compared, bound = asked, asked.operands[1]
    number, last, one = local(function, counter.type), local(function, counter.type), const_int(counter.type, 1)
    known = len(before.instructions)
    at = Builder.at_end(before)
    at.store(start, number)
    at.store(at.binary("sub", bound, one), last)
    locate(before.terminator, before.instructions[known - 1 : -1])
    at = Builder.at_end(latch)
    at.store(following, number)

    at = Builder(BasicBlock())
    here = at.load(counter.type, number)
    compared.operands = [here, at.binary("add", at.load(counter.type, last), one)]
    locate(compared, at.block.instructions)
    header.instructions = [*at.block.instructions, *test.instructions]
    function.blocks.remove(test)
    for target in header.successors:
        redirect_phis(target, test, header)
    replace_values(function, {counter: here})
    return True


def _asked(test: BasicBlock, counter: I.Phi) -> I.Compare | None:
    """The question of a block that asks, and does nothing else, whether a counter is below a number."""
    match test.instructions:
        case [I.Compare(predicate="ult", operands=[first, _]) as compared, I.CondBranch(operands=[asked])] if (
            first is counter and asked is compared
        ):
            return compared
        case _:
            return None
