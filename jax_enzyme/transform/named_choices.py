"""What marked loops look for, in the one form that is known to run in any order (`analysis.accumulation`).

`fmax` and `fmin` become comparisons, where what the loop starts with is no NaN: of equals the first one counts.

    before    %m = call double @llvm.maxnum.f64(double %best, double %a)
    after     %better = fcmp ogt double %a, %best           %m = select i1 %better, double %a, double %best

Where of equals the last one counts, the best of a part of the loop may be what it started with, which nobody chose. So
there the loop says whether anything was chosen:

    before    %stays = fcmp ogt double %best, %a             after    %any = phi i8 [ 0, %entry ], [ %one, %loop ]
              %m = select i1 %stays, double %best, double %a          %one = select i1 %stays, i8 %any, i8 1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from jax_enzyme.analysis.accumulation import choices
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.marks import Mark, has_marks, marks_of
from jax_enzyme.ir.module import Function, Module, callee_name, uses
from jax_enzyme.ir.values import BasicBlock, ConstantFloat, Value
from jax_enzyme.transform.nested_choices import are_guarded, drop_guards, join_arms, join_steps, searches, steps_of
from jax_enzyme.transform.rewriting import Change, phis, remove_dead, rewrite

_EXTREMES = {"llvm.maxnum.": "ogt", "llvm.minnum.": "olt"}


def name_choices(function: ArrayFunction) -> ArrayFunction:
    """The array function with such calls as comparisons, and one step in an iteration, in a copy of the module; itself
    where there is nothing to change."""
    given = function.module
    if not has_marks(given):
        return function
    root = given.functions[function.symbol]
    guarded = any(are_guarded(loop.blocks) for loop in _marked(given, root))
    if not guarded and not any(_extremes(given, root)) and not _has_nested(given, root):
        return function
    module = clone(given)
    root = module.functions[function.symbol]
    for change in (join_arms, drop_guards) if guarded else ():
        for loop in list(_marked(module, root)):
            change(root, loop.blocks)
    extremes: dict[I.Instruction, Change] = {
        call: partial(_better, best, call, relation) for best, call, relation in _extremes(module, root)
    }
    rewrite(root, extremes.get)
    remove_dead(root)  # comparisons that guards were taken into ask for what is looked for as well
    for loop in list(_marked(module, root)):
        join_steps(root, loop, uses(root), _home(root))
    remove_dead(root)
    return replace(function, module=module)


def _has_nested(module: Module, root: Function) -> bool:
    """Does an iteration of a marked loop look for something in several steps?"""
    used, home = uses(root), _home(root)
    return any(len(s.steps) > 2 for loop in _marked(module, root) for s in searches(loop, used, home))


def _home(root: Function) -> dict[Value, BasicBlock]:
    return {i: b for b in root.blocks for i in b.instructions}


def _better(best: Value, call: I.Call, relation: str, at: Builder) -> Value:
    candidate = next(v for v in call.arguments if v is not best)
    return at.select(at.fcmp(relation, candidate, best), candidate, best)


def note_choices(module: Module, root: Function) -> None:
    """Has loops say whether anything was chosen, in place, where that is to be known."""
    used = uses(root)
    home = _home(root)
    for loop in _marked(module, root):
        found = [c for c in choices(phis(loop.header), used, loop.blocks, home) if not c.strict]
        for leader in (c for c in found if any(f.leader is c for f in found)):
            chosen = leader.sample
            before, latch = loop.preheader, loop.latches[0]
            assert before is not None
            any_ = I.Phi(T.I8, "phi", [const_int(T.I8, 0)], targets=[before])
            at = Builder.before(home[chosen], chosen)
            both = (any_ if v is leader.start else const_int(T.I8, 1) for v in chosen.operands[1:])
            any_.add(at.select(chosen.operands[0], *both), latch)
            loop.header.instructions.insert(0, any_)


def _marked(module: Module, root: Function) -> Iterator[Loop]:
    for loop in Loops.of(root).all:
        latch = loop.latches[0].terminator if len(loop.latches) == 1 and loop.preheader is not None else None
        if latch is not None and Mark.PARALLEL in marks_of(module, latch):
            yield loop


def _extremes(module: Module, root: Function) -> Iterator[tuple[Value, I.Call, str]]:
    """The calls by which loops look for an extreme, with what holds it before and the relation of something better."""
    used, home = uses(root), _home(root)
    for loop in _marked(module, root):
        for phi in phis(loop.header):
            start, _ = loop.ends(phi) or (None, None)
            if not isinstance(start, ConstantFloat) or not _is_number(start):
                continue
            for prefix, relation in _EXTREMES.items():
                steps = steps_of(phi, loop, used, home, lambda user, _, name=prefix: callee_name(user).startswith(name))
                calls = [s for s in steps or () if isinstance(s, I.Call)]
                held = [[v for v in call.arguments if steps and v in steps] for call in calls]
                if all(len(values) == 1 for values in held):
                    yield from ((best, call, relation) for (best,), call in zip(held, calls, strict=True))


def _is_number(constant: ConstantFloat) -> bool:
    value = float_value(constant)
    return value is not None and value == value
