"""The loop over the sections of `sections` stays one that threads may share.

    before    %s = phi i32 [ 0, %entry ], [ %next, %latch ]         after    %which = call i32 @je.section(i32 %s)
              switch i32 %s, label %latch [ i32 0, label %a ...]             switch i32 %which, ...

Compilers make a loop of sections, of a few iterations that choose by their number. An optimiser that knows the number
takes the loop apart, and with it goes what the directive says. `je.section` is the number that it is given, which no
optimiser knows, until machine code is made (`rules/helpers.ll`). Sections that are short threads would not share:
`show_short_sections` lets optimisers see those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module, callee_name, declare, declared_callee
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import PURE
from jax_enzyme.rules.effects import SECTION
from jax_enzyme.transform.loop_hints import ask, forget
from jax_enzyme.transform.rewriting import substitute

_KIND = T.FunctionType(T.I32, (T.I32,))


def hide_sections(module: Module, loops: Iterable[Loop]) -> None:
    """Hides the numbers by which those of the worksharing loops that are made of sections choose, in place."""
    for loop in loops:
        for choice in _choices(loop):
            at = Builder(BasicBlock())
            choice.operands[0] = at.call(declare(module, SECTION, _KIND, PURE), [choice.operands[0]])
            block = next(b for b in loop.blocks if b.terminator is choice)
            block.instructions[-1:-1] = at.block.instructions
            for latch in loop.latches:
                ask(module, latch.terminator, "disable")


def show_short_sections(module: Module) -> Module:
    """A copy of the module in which the numbers of sections are seen that threads will not share; the module itself
    where there are none."""
    if not any(_to_show(f) for f in _with_sections(module)):
        return module
    copy = clone(module)
    for function in _with_sections(copy):
        for loop in _to_show(function):
            for latch in loop.latches:
                forget(copy, latch.terminator)
                ask(copy, latch.terminator)
            hidden = [i for b in loop.blocks for i in b.instructions if callee_name(i) == SECTION]
            substitute(function, {i: i.operands[0] for i in hidden})
    return copy


def _choices(loop: Loop) -> Iterator[I.Switch]:
    """The switches of a loop by its own counter."""
    for choice in (b.terminator for b in loop.own_blocks):
        if isinstance(choice, I.Switch) and choice.operands[0].type == T.I32 and _counts(choice.operands[0], loop):
            yield choice


def _counts(value: Value, loop: Loop) -> bool:
    """Is a value the counter that the header of a loop compares, a constant away?"""
    match value:
        case I.Phi():
            return value in loop.header.instructions
        case I.Load():
            place = value.operands[0]
            return any(isinstance(i, I.Load) and i.operands[0] is place for i in loop.header.instructions)
        case I.BinaryOp():
            return any(_counts(v, loop) for v in value.operands)
        case _:
            return False


def _with_sections(module: Module) -> Iterator[Function]:
    if SECTION in module.functions:
        yield from (f for f in module.functions.values() if any(callee_name(i) == SECTION for i in f.instructions()))


def _to_show(function: Function) -> list[Loop]:
    return [loop for loop in Loops.of(function) if _has_own(loop) and _is_short(loop)]


def _has_own(loop: Loop) -> bool:
    return any(callee_name(i) == SECTION for b in loop.own_blocks for i in b.instructions)


def _is_short(loop: Loop) -> bool:
    """Is there no loop inside, and no call of a function of the program's?"""
    called = (i for b in loop.blocks for i in b.instructions if isinstance(i, I.CallBase))
    return not loop.children and all(declared_callee(i) is not None for i in called)
