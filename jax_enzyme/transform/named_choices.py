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

from jax_enzyme.analysis.accumulation import choices
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.marks import Mark, has_marks, marks_of
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.values import BasicBlock, ConstantFloat, Value
from jax_enzyme.transform.rewriting import phis, replace_values

_EXTREMES = {"llvm.maxnum.": "ogt", "llvm.minnum.": "olt"}


def compare_extremes(function: ArrayFunction) -> ArrayFunction:
    """The array function with such calls as comparisons, in a copy of the module; itself where there are none."""
    if not has_marks(function.module) or not any(
        _extremes(function.module, function.module.functions[function.symbol])
    ):
        return function
    module = clone(function.module)
    root = module.functions[function.symbol]
    replaced: dict[Value, Value] = {}
    for best, call, relation in list(_extremes(module, root)):
        candidate = next(v for v in call.arguments if v is not best)
        at = Builder(BasicBlock())
        replaced[call] = at.select(at.fcmp(relation, candidate, best), candidate, best)
        block = next(b for b in root.blocks if call in b.instructions)
        index = block.instructions.index(call)
        block.instructions[index : index + 1] = at.block.instructions
    replace_values(root, replaced)
    return replace(function, module=module)


def note_choices(module: Module, root: Function) -> None:
    """Has loops say whether anything was chosen, in place, where that is to be known."""
    used = uses(root)
    home: dict[Value, BasicBlock] = {i: b for b in root.blocks for i in b.instructions}
    for loop in _marked(module, root):
        found = [c for c in choices(phis(loop.header), used, loop.blocks, home) if not c.strict]
        for leader in (c for c in found if any(f.leader is c for f in found)):
            chosen = leader.sample
            before, latch = loop.preheader, loop.latches[0]
            assert before is not None
            any_ = I.Phi(T.I8, "phi", [const_int(T.I8, 0)], targets=[before])
            at = Builder(BasicBlock())
            both = (any_ if v is leader.start else const_int(T.I8, 1) for v in chosen.operands[1:])
            any_.add(at.select(chosen.operands[0], *both), latch)
            loop.header.instructions.insert(0, any_)
            block = home[chosen].instructions
            block[block.index(chosen) : block.index(chosen)] = at.block.instructions


def _marked(module: Module, root: Function) -> Iterator[Loop]:
    for loop in Loops.of(root).all:
        latch = loop.latches[0].terminator if len(loop.latches) == 1 and loop.preheader is not None else None
        if latch is not None and Mark.PARALLEL in marks_of(module, latch):
            yield loop


def _extremes(module: Module, root: Function) -> Iterator[tuple[I.Phi, I.Call, str]]:
    """The calls by which loops look for an extreme, with the phi that holds it and the relation of something better."""
    used = uses(root)
    for loop in _marked(module, root):
        for phi in phis(loop.header):
            start, call = loop.ends(phi) or (None, None)
            if not isinstance(start, ConstantFloat) or not isinstance(call, I.Call):
                continue
            name = call.callee.name if isinstance(call.callee, Function) else ""
            relation = next((r for prefix, r in _EXTREMES.items() if name.startswith(prefix)), None)
            alone = [u for u, _ in used[phi]] == [call]
            if relation is not None and alone and _is_number(start):
                yield phi, call, relation


def _is_number(constant: ConstantFloat) -> bool:
    value = float_value(constant)
    return value is not None and value == value
