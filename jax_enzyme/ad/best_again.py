"""The best of all that a loop looks at is computed again behind it, for reverse mode.

    before    %best = phi double [ %b0, %entry ], [ %b, %loop ]      after    %which: in which iteration it was chosen
              %a = ... load ptr %place ...                                    %a, compared as before
              %better = fcmp olt double %a, %best
              %b = select i1 %better, double %a, double %best
              ...                                                             ...
              use %b                                                          if (%which >= 0) %a2 = %a of that one
                                                                              use phi [ %b0 ], [ %a2 ]

The reverse of a chain of choices hands the adjoint from each iteration to the one before, and goes through all that
each looked at with it, most often with zero. Here only what was chosen is differentiated: nothing in the loop has a
derivative any more, and nothing of it goes to the tape but which one it was. A branch around the choice may stay: what
is computed again was computed in that iteration.

That is so where the loop writes nothing, so that what it reads is the same behind it, where one value is chosen, and
where that follows from the number of the iteration alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from jax_enzyme.ad.shortcuts import activity_of
from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import map_of
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Vjp
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_with_map, with_operands
from jax_enzyme.ir.marks import marks_of
from jax_enzyme.ir.module import Function, Module, Uses, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules
from jax_enzyme.transform.rewriting import phis, replace_values, split_before

_PLAIN = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)
_ENDS = (I.Branch, I.CondBranch, I.Switch)


@dataclass(frozen=True, eq=False)
class _Best:
    """`phi`: the best so far, `last`: after an iteration, by way of `joins`, each with its block; `candidate`: what is
    chosen, of which `parts` are computed in the loop, in order, from `counters` with how much they go on by; `behind`:
    where the best is used behind the loop."""

    loop: Loop
    phi: I.Phi
    last: Value
    joins: Mapping[I.Phi | I.Select, BasicBlock]
    candidate: I.Instruction
    parts: tuple[I.Instruction, ...]
    counters: Mapping[I.Phi, int]
    behind: tuple[I.Phi, ...]
    always: bool
    """Whether all iterations compute the candidate: then that of the first one stands for none."""


def compute_best_again(function: ArrayFunction, step: Vjp, rules: Rules) -> ArrayFunction:
    """The array function whose loops choose the best by its number, where it is active, in a copy of the module; the
    function itself where there is no such loop."""
    root = function.module.functions[function.symbol]
    loops = Loops.of(root)
    found = _Search(function.module, root, loops).found() if loops.all else []
    if not found:
        return function
    activity = activity_of(root, step, rules, map_of(function))
    active = [best for best in found if activity.value(best.last)]
    if not active:
        return function
    module, copies = clone_with_map(function.module)
    root = module.functions[function.symbol]
    again: dict[Value, Value] = {}
    for best in active:
        again |= _Again(root, best, copies).run()
    replace_values(root, again)
    return replace(function, module=module)


class _Search:
    def __init__(self, module: Module, root: Function, loops: Loops) -> None:
        self._module = module
        self._loops = loops
        self._uses: Uses = uses(root)
        self._home: Mapping[Value, BasicBlock] = {i: b for b in root.blocks for i in b.instructions}

    def found(self) -> list[_Best]:
        fit = [loop for loop in self._loops.all if self._fits(loop)]
        return [best for loop in fit for phi in phis(loop.header) if (best := self._best(loop, phi)) is not None]

    def _fits(self, loop: Loop) -> bool:
        """Is an innermost loop left at its end alone, with nothing written in it? What threads share has its own way
        (`loop_choices`)."""
        if loop.children or loop.preheader is None or len(loop.latches) != 1 or loop.exiting != loop.latches:
            return False
        if marks_of(self._module, loop.latches[0].terminator):
            return False
        if len(loop.exit_edges) != 1 or self._loops.cfg.preds[loop.exits[0]] != loop.exiting:
            return False
        return all(_is_silent(i) for b in loop.blocks for i in b.instructions)

    def _best(self, loop: Loop, phi: I.Phi) -> _Best | None:
        ends = loop.ends(phi)
        if phi.type not in (T.DOUBLE, T.FLOAT) or ends is None:
            return None
        joins: dict[I.Phi | I.Select, BasicBlock] = {}
        chosen: set[Value] = set()
        pending = [ends[1]]
        while pending:
            value = pending.pop()
            if value is phi or value in joins:
                continue
            if self._home.get(value) not in loop.blocks or not isinstance(value, I.Phi | I.Select):
                chosen.add(value)
            elif isinstance(value, I.Phi) and self._home[value] is loop.header:
                return None
            else:
                joins[value] = self._home[value]
                pending += I.merged(value)
        candidate = chosen.pop() if len(chosen) == 1 else None
        if not joins or not isinstance(candidate, I.Instruction) or self._home[candidate] not in loop.blocks:
            return None
        used = dict.fromkeys((v, user) for v in (phi, *joins) for user, _ in self._uses.get(v, ()))
        inside = {user for _, user in used if self._home[user] in loop.blocks}
        behind = dict.fromkeys(user for v, user in used if user not in inside and v is ends[1])
        if any(not isinstance(u, I.Compare) and u is not phi and u not in joins for u in inside):
            return None
        if len(behind) != len({u for _, u in used} - inside) or not behind:
            return None
        if any(not isinstance(u, I.Phi) or self._home[u] is not loop.exits[0] for u in behind):
            return None
        needed = self._needed(loop, candidate)
        if needed is None:
            return None
        parts, counters = needed
        always = self._loops.dominators.dominates(self._home[candidate], loop.latches[0])
        seen = tuple(cast("set[I.Phi]", behind))
        return _Best(loop, phi, ends[1], joins, candidate, parts, counters, seen, always)

    def _needed(self, loop: Loop, value: I.Instruction) -> tuple[tuple[I.Instruction, ...], dict[I.Phi, int]] | None:
        """What a value is computed from in a loop, in order, with counters and their steps; None where there is more,
        or no arithmetic, which is not worth it."""
        parts: set[Value] = set()
        counters: dict[I.Phi, int] = {}
        pending: list[Value] = [value]
        while pending:
            part = pending.pop()
            if part in parts or part in counters or self._home.get(part) not in loop.blocks:
                continue
            if isinstance(part, I.Phi):
                ends = loop.ends(part) if self._home[part] is loop.header else None
                step = None if ends is None else step_to(ends[1], part)
                if step is None or not isinstance(part.type, T.IntType):
                    return None
                counters[part] = step
            elif isinstance(part, (*_PLAIN, I.Load, I.Call)):
                parts.add(part)
                pending += part.operands
            else:
                return None
        order = [i for b in self._loops.blocks(loop) for i in b.instructions if i in parts]
        if not any(isinstance(i, I.BinaryOp | I.Call) and T.is_float(i.type) for i in order):
            return None
        return tuple(order), counters


def _is_silent(instruction: I.Instruction) -> bool:
    match instruction:
        case I.Load():
            return I.is_plain(instruction)
        case I.Call():
            return is_pure(instruction) or call_effect(instruction) is Effect.IGNORED
        case _:
            return isinstance(instruction, (*_PLAIN, *_ENDS, I.Phi, I.Freeze))


class _Again:
    """Changes one loop of a copy of a function."""

    def __init__(self, root: Function, best: _Best, copies: Mapping[Value, Value]) -> None:
        self._root = root
        self._best = best
        self._copies = copies

    def run(self) -> dict[Value, Value]:
        """What the best behind the loop is now."""
        last = self._which()
        best = self._best
        behind = [self._own(phi) for phi in best.behind]
        start = next(v for v, b in self._own(best.phi).incoming if b is self._block(best.loop.preheader))
        leaving = self._block(best.loop.exits[0])
        leaving.instructions.insert(0, last)
        if best.always:
            return dict.fromkeys(behind, self._choose(leaving, last, start, behind))
        rest = split_before(self._root, leaving, len(phis(leaving)))
        arm = BasicBlock()
        self._root.blocks.insert(self._root.blocks.index(rest), arm)
        at = Builder(leaving)
        at.cond_br(at.icmp("slt", last, const_int(T.I64, 0)), rest, arm)
        found = I.Phi(best.phi.type, "phi", [start, self._again(Builder(arm), last)], targets=[leaving, arm])
        Builder(arm).br(rest)
        rest.instructions.insert(0, found)
        leaving.instructions = [i for i in leaving.instructions if i not in behind]
        return dict.fromkeys(behind, found)

    def _choose(self, leaving: BasicBlock, last: I.Phi, start: Value, behind: list[I.Phi]) -> Value:
        """Without a branch, which would keep the loop around from being vectors."""
        left = [i for i in leaving.instructions if i not in behind]
        count = sum(isinstance(i, I.Phi) for i in left)
        at = Builder(BasicBlock())
        none = at.icmp("slt", last, const_int(T.I64, 0))
        found = at.select(none, start, self._again(at, at.select(none, const_int(T.I64, 0), last)))
        leaving.instructions = [*left[:count], *at.block.instructions, *left[count:]]
        return found

    def _which(self) -> I.Phi:
        """In which iteration the best was chosen, behind the loop; -1 where it is what it began with."""
        best = self._best
        header, latch = self._block(best.loop.header), self._block(best.loop.latches[0])
        before = self._block(best.loop.preheader)
        number = I.Phi(T.I64, "phi", [const_int(T.I64, 0)], targets=[before])
        which = I.Phi(T.I64, "phi", [const_int(T.I64, -1)], targets=[before])
        header.instructions[:0] = [number, which]
        end = latch.instructions.pop()
        number.add(Builder(latch).binary("add", number, const_int(T.I64, 1), ("nuw", "nsw")), latch)
        latch.instructions.append(end)
        numbers: dict[Value, Value] = {self._copies[best.phi]: which, self._copies[best.candidate]: number}
        made: list[tuple[I.Phi | I.Select, I.Phi | I.Select, BasicBlock]] = []
        for join, home in best.joins.items():
            old = self._own(join)
            assert isinstance(old, I.Phi | I.Select)
            new = replace(old, type=T.I64, flags=(), targets=list(old.targets), metadata=[], records=())
            numbers[old] = new
            made.append((old, new, self._block(home)))
        for old, new, block in made:
            parts = I.merged(old)
            new.operands = [*old.operands[: len(old.operands) - len(parts)], *(numbers[o] for o in parts)]
            block.instructions.insert(block.instructions.index(old) + isinstance(old, I.Select), new)
        last = numbers[self._copies[best.last]]
        which.add(last, latch)
        return I.Phi(T.I64, "phi", [last], targets=[latch])

    def _again(self, at: Builder, which: Value) -> Value:
        """The candidate of one iteration."""
        made: dict[Value, Value] = {}
        for counter, step in self._best.counters.items():
            old = self._own(counter)
            start = next(v for v, b in old.incoming if b is self._block(self._best.loop.preheader))
            far = at.binary("mul", which, const_int(T.I64, step))
            bits = old.type.bits if isinstance(old.type, T.IntType) else 64
            if bits != 64:
                far = at.cast("trunc" if bits < 64 else "sext", far, old.type)
            made[old] = at.binary("add", start, far)
        for part in self._best.parts:
            old = self._copies[part]
            assert isinstance(old, I.Instruction)
            made[old] = at.insert(with_operands(old, [made.get(o, o) for o in old.operands]))
        return made[self._copies[self._best.candidate]]

    def _own(self, value: Value) -> I.Phi:
        return cast("I.Phi", self._copies[value])

    def _block(self, block: BasicBlock | None) -> BasicBlock:
        assert block is not None
        return cast("BasicBlock", self._copies[block])
