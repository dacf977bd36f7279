"""Makes control flow a matter of values: iteration numbers and branch choices become phis that reverse can ask for.

    before   loop:  %x = phi double [ %a, %entry ], [ %y, %loop ]       after   loop:  %x = phi double ...
             ...                                                                       %iteration = phi i64 [ 0,
             %entry ], [ %next, %loop ]
                    br i1 %c, label %loop, label %exit                                 ...
             exit:  ret                                                                %next = add nuw nsw i64
             %iteration, 1
                                                                                       br i1 %c, label %loop, label
                                                                                       %exit
                                                                               exit:   %last = phi i64 [ %iteration,
                                                                               %loop ]

Per loop an iteration number (0 in the first iteration); per exit block and loop left there, the number of the last
iteration; per merge of control flow the number of the predecessor that control came from. They are ordinary values: the
plan recomputes or tapes those that reverse needs, and dead ones are removed by the optimiser.
"""

from __future__ import annotations

from jax_enzyme.ad.facts.causes import DEFECT, NEVER_RETURNS
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value
from jax_enzyme.transform.rewriting import count_iterations


@dataclass(frozen=True, eq=False)
class Instrumented:
    """The instrumented copy, its analyses, and where the new values are. `origin` maps its instructions to those of the
    source function (for places in messages)."""

    function: Function
    cfg: Cfg
    dominators: Dominators
    loops: Loops
    origin: dict[Value, I.Instruction]
    iteration: dict[Loop, I.Phi]
    last: dict[tuple[BasicBlock, Loop], I.Phi]
    choice: dict[BasicBlock, I.Phi]

    def loop_of(self, block: BasicBlock) -> Loop | None:
        return self.loops.loop_of[block]

    def nest(self, block: BasicBlock) -> list[Loop]:
        """The loops around a block, outermost first."""
        loop = self.loop_of(block)
        return list(reversed(list(loop.ancestors))) if loop is not None else []

    def left(self, source: BasicBlock, target: BasicBlock) -> list[Loop]:
        """The loops that the edge leaves, innermost first."""
        loop = self.loop_of(source)
        return [] if loop is None else [x for x in loop.ancestors if target not in x.blocks]


def instrument(source: Function) -> Instrumented:
    """An instrumented copy of a function in canonical form (simplified, reducible loops; at most one return).

    Raises DifferentiationError where the function is not in that form.
    """
    function, origin = clone(source)
    cfg = Cfg(function)
    function.blocks = [b for b in function.blocks if cfg.is_reachable(b)]
    cfg = Cfg(function)
    _check_canonical(source, cfg)
    loops = Loops(cfg, Dominators(cfg))
    _check_loops(source, loops)
    iteration: dict[Loop, I.Phi] = {}
    for loop in loops:
        iteration[loop] = number = count_iterations(loop, [loop.front])
        number.name = f"{loop.header.name}.iteration"
    headers = {loop.header for loop in loops}
    last: dict[tuple[BasicBlock, Loop], I.Phi] = {}
    choice: dict[BasicBlock, I.Phi] = {}
    for block in cfg.rpo:
        preds = cfg.preds[block]
        inner = loops.loop_of[preds[0]] if preds else None
        for loop in inner.ancestors if inner is not None else ():
            if block not in loop.blocks:
                counts: list[tuple[Value, BasicBlock]] = [(iteration[loop], p) for p in preds]
                last[block, loop] = _phi(block, T.I64, counts, f"{loop.header.name}.last")
        if len(preds) > 1 and block not in headers:
            width = T.I8 if len(preds) < 128 else T.I32
            numbers: list[tuple[Value, BasicBlock]] = [(ConstantInt(width, i), p) for i, p in enumerate(preds)]
            choice[block] = _phi(block, width, numbers, f"{block.name}.choice")
    return Instrumented(function, cfg, loops.dominators, loops, origin, iteration, last, choice)


def clone(source: Function) -> tuple[Function, dict[Value, I.Instruction]]:
    """A deep copy of a function's blocks over the same arguments, and the map back to the source's instructions."""
    blocks, own = Cloner().blocks(source.blocks), source.arguments
    function = Function(T.PTR, source.value_type, own, blocks, attributes=source.attributes, name=source.name)
    return function, dict(zip(function.instructions(), source.instructions(), strict=True))


def _phi(block: BasicBlock, type_: T.Type, incoming: list[tuple[Value, BasicBlock]], name: str) -> I.Phi:
    phi = I.Phi(type_, "phi", [v for v, _ in incoming], targets=[b for _, b in incoming], name=name)
    block.instructions.insert(0, phi)
    return phi


def _check_canonical(source: Function, cfg: Cfg) -> None:
    returns = [b for b in cfg.rpo if isinstance(b.terminator, I.Return)]
    if len(returns) > 1:
        raise DEFECT.error(what=f"`{source.name}` has {len(returns)} returns")
    if not returns:
        raise NEVER_RETURNS.error()


def _check_loops(source: Function, loops: Loops) -> None:
    if loops.irreducible:
        a, b = loops.irreducible[0]
        raise DEFECT.error(what=f"`{source.name}` has a loop with several entries, {a.name} and {b.name}")
    for loop in loops:
        if loop.preheader is None or len(loop.latches) != 1:
            raise DEFECT.error(what=f"loop {loop.header.name} of `{source.name}` is not simplified")
        for block in loop.exits:
            if any(p not in loop.blocks for p in loops.cfg.preds[block]):
                raise DEFECT.error(what=f"loop {loop.header.name} shares its exit {block.name}")
