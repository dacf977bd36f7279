"""LLVM's optimisation of code in which threads meet, without the duplicates that end the meeting.

    before    loop:   barrier()                           after    loop:   barrier()
              work:   if (mine) ...                                        if (mine) ...
              latch:  if (++k < n) goto loop                       latch:  join(); if (++k < n) goto loop
              end:    if (mine) ...                                end:    if (mine) ...

LLVM knows at `latch` where a thread came from, and at `end` the source asks for the same again. So it writes `latch`
twice, once for each kind of thread. Every thread still does what it did, but not all of them run the same branch to the
next barrier any more, which is what says that they go there together. A call that nothing may duplicate stands in such
blocks while LLVM is at work: those that end in a choice which does not depend on the thread, are reached in several
ways, and from which threads come to a meeting. Loops are rotated before, as LLVM does not rotate one with such a call
at its head. Where the choice depends on the thread, it may well be about the threads that leave, and it is good to have
their way apart. Nor does LLVM compute on all ways to a place what is redundant on some: to whoever asks whether a value
follows from the thread's number alone, a phi would hide that it does, and it would be kept for each thread in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.divergence import Divergence, Which
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.dominance import reverse_post_order
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.pass_managers import PLACES_STAY, Setting
from jax_enzyme.ir.passes import optimise, run
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.sameness import does_same, is_same
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import phis, remove_dead, substitute

_Pair: TypeAlias = tuple[Value, Value]
_JOIN = "je.join"
_WORDS = (
    "convergent", "nocallback", "nofree", "nosync", "nounwind", "willreturn", "memory(inaccessiblemem: readwrite)",
)  # fmt: skip
_ROTATED = ("always-inline", "globaldce", "sroa", "loop-simplify", "loop-rotate")


def optimise_meetings(
    module: Module, meets: Which, differs: Which, *, unroll: bool = False, settings: Sequence[Setting] = ()
) -> Module:
    """`ir.passes.optimise` for a private module. `meets` says of an instruction that threads meet there, `differs` that
    its value is not the same for all of them."""
    if not any(meets(i) for f in module.functions.values() for i in f.instructions()):
        return optimise(module, unroll=unroll, settings=settings)
    module = run(module, _ROTATED)
    kind = T.FunctionType(T.VOID, ())
    join = Function(T.PTR, kind, [], attributes=_WORDS, name=_JOIN)
    module.functions[_JOIN] = join
    for function in module.functions.values():
        for block in _joining(function, meets, differs):
            block.instructions.insert(len(block.instructions) - 1, I.Call(T.VOID, "call", [join], kind))
    module = optimise(module, unroll=unroll, settings=(*PLACES_STAY, *settings))
    join = module.functions.pop(_JOIN, None)
    for function in module.functions.values():
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if not (isinstance(i, I.Call) and i.callee is join)]
        _compute_behind(function)
    return module


def _compute_behind(function: Function) -> None:
    """Computes what is computed alike on all ways to a place there, in place, where it is an address or a conversion:
    of a phi nobody would know that it follows from the thread's number."""
    found: dict[Value, Value] = {}
    for block in function.blocks:
        for phi in phis(block):
            first, *others = phi.operands
            alike = [reverse_post_order((first, other), _made_of) for other in others]
            if others and all(is_same(*pair) or _made_of(pair) for pairs in alike for pair in pairs):
                place = len(phis(block))
                block.instructions[place:place], found[phi] = _again(alike[0])
    substitute(function, found)
    remove_dead(function)


def _again(pairs: Sequence[_Pair]) -> tuple[list[I.Instruction], Value]:
    """The instructions that make a value which is equal to both of the first pair, and the value. Each pair comes
    before what it is made of."""
    made: dict[_Pair, Value] = {}
    copies: list[I.Instruction] = []
    for pair in reversed(pairs):
        made[pair] = value = pair[0]
        if isinstance(value, I.Instruction) and not is_same(*pair):
            made[pair] = copy = with_operands(value, [made[part] for part in _made_of(pair)])
            copies.append(copy)
    return copies, made[pairs[0]]


def _made_of(pair: _Pair) -> Sequence[_Pair]:
    """The operands of two addresses or conversions that are the same of these."""
    x, y = pair
    if not isinstance(x, I.GetElementPtr | I.Cast) or is_same(x, y) or not does_same(x, y):
        return ()
    assert isinstance(y, I.Instruction)
    return list(zip(x.operands, y.operands, strict=True))


def _joining(function: Function, meets: Which, differs: Which) -> list[BasicBlock]:
    """The blocks that end in a choice which all threads make alike, are reached in several ways, and from which threads
    come to a meeting."""
    if not function.blocks:
        return []
    cfg = Cfg(function)
    before = reached((b for b in cfg.rpo if any(map(meets, b.instructions))), cfg.reachable_preds)
    divergence = Divergence(cfg, differs, meets)
    choices = [b for b in cfg.rpo if b in before and len(cfg.succs[b]) > 1 and _has_several_ways(cfg, b)]
    return [b for b in choices if not divergence.parts(b)]


def _has_several_ways(cfg: Cfg, block: BasicBlock) -> bool:
    """Whether this, or what it is the only continuation of, has several predecessors."""
    ways = cfg.reachable_preds(block)
    while len(ways) == 1 and len(cfg.succs[ways[0]]) == 1:
        ways = cfg.reachable_preds(ways[0])
    return len(ways) > 1
