"""The best of all that a loop looks at is had again behind it, for reverse mode.

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
where that follows from the number of the iteration alone. In loops that threads share, all that is looked at is kept,
one number for each iteration, and %a2 is the one of iteration %which: so no iteration of the reverse needs another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from jax_enzyme.analysis.activity import activity_of
from jax_enzyme.analysis.counters import step_to
from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.independence import Independence
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import map_of
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.classes import dataclass, field, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Vjp
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_with_map, with_operands
from jax_enzyme.ir.marks import has_marks, marks_of
from jax_enzyme.ir.module import Function, Module, Uses, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules
from jax_enzyme.transform.heap_locals import move_large_locals
from jax_enzyme.transform.rewriting import count_iterations, local, phis, replace_values, split_before
from jax_enzyme.transform.shared_loops import WORTH

_PLAIN = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)
_ENDS = (I.Branch, I.CondBranch, I.Switch)
_MOST_KEPT = 1 << 22
"""Longer loops are left as they are: what is kept should not take more memory than what the kernel works on."""


@dataclass(frozen=True, eq=False)
class _Best:
    """`phi`: the best so far, `last`: after an iteration, by way of `joins`, each with its block; `candidate`: what is
    chosen; `behind`: where the best is used behind the loop. `always`: all iterations compute the candidate, and that
    of the first one stands for none. What is to be computed again has `parts`, in order, of `counters` with how much
    they go on by; otherwise candidates are `kept`, so many."""

    loop: Loop
    phi: I.Phi
    last: Value
    joins: Mapping[I.Phi | I.Select, BasicBlock]
    candidate: Value
    behind: tuple[I.Phi, ...]
    always: bool = True
    parts: tuple[I.Instruction, ...] = ()
    counters: Mapping[I.Phi, int] = field(default_factory=dict[I.Phi, int])
    kept: int = 0

    def twin(self, loop: Loop, copies: Mapping[Value, Value]) -> _Best:
        """The same in a copy of the function, of whose loops this is one."""
        return _Best(
            loop,
            cast("I.Phi", copies[self.phi]),
            copies[self.last],
            {cast("I.Phi | I.Select", copies[j]): cast("BasicBlock", copies[b]) for j, b in self.joins.items()},
            copies.get(self.candidate, self.candidate),
            tuple(cast("I.Phi", copies[phi]) for phi in self.behind),
            self.always,
            tuple(cast("I.Instruction", copies[part]) for part in self.parts),
            {cast("I.Phi", copies[phi]): step for phi, step in self.counters.items()},
            self.kept,
        )


def compute_best_again(function: ArrayFunction, step: Vjp, rules: Rules) -> ArrayFunction:
    """The array function whose loops choose the best by its number, where it is active, in a copy of the module; the
    function itself where there is no such loop."""
    root = function.module.functions[function.symbol]
    loops = Loops.of(root)
    return _by_number(function, _Search(function.module, root, loops).found() if loops.all else [], step, rules)


def keep_choices(function: ArrayFunction, step: Vjp, rules: Rules) -> ArrayFunction:
    """The array function whose marked loops keep what they choose from, where the choice is active, in a copy of the
    module; the function itself where there is no such loop."""
    if not has_marks(function.module):
        return function
    facts = Independence(function.module, function.module.functions[function.symbol])
    found = [best for loop in facts.loops.all for best in _to_keep(facts, loop)]
    after = _by_number(function, found, step, rules)
    return after if after is function else move_large_locals(after)


def _by_number(function: ArrayFunction, found: list[_Best], step: Vjp, rules: Rules) -> ArrayFunction:
    """The function in which the number of an iteration chooses what is active, in a copy of the module, or itself."""
    if not found:
        return function
    activity = activity_of(map_of(function), rules, step)
    active = [best for best in found if activity.value(best.last)]
    if not active:
        return function
    module, copies = clone_with_map(function.module)
    root = module.functions[function.symbol]
    loops: dict[Value, Loop] = {loop.header: loop for loop in Loops.of(root).all}
    again: dict[Value, Value] = {}
    for best in active:
        again |= _Again(root, best.twin(loops[copies[best.loop.header]], copies)).run()
    replace_values(root, again)
    return replace(function, module=module)


def _to_keep(facts: Independence, loop: Loop) -> list[_Best]:
    """The numbers among a loop's choices that are used behind the loop."""
    count = facts.count(loop)
    if count is None or count > _MOST_KEPT or facts.work(loop) < WORTH or not _is_left_once(facts.loops, loop):
        return []
    found: list[_Best] = []
    for chain in facts.choices(loop):
        behind = tuple(user for user, _ in chain.ends if isinstance(user, I.Phi))
        phi, chosen = chain.start, chain.sample
        assert isinstance(phi, I.Phi) and isinstance(chosen, I.Select)
        if isinstance(phi.type, T.FloatType) and behind and len(behind) == len(chain.ends):
            candidate = next(v for v in chosen.operands[1:] if v is not phi)
            joins: dict[I.Phi | I.Select, BasicBlock] = {chosen: facts.loops.home[chosen][0]}
            found.append(_Best(loop, phi, chosen, joins, candidate, behind, kept=count))
    return found


def _is_left_once(loops: Loops, loop: Loop) -> bool:
    """Is there one way out of a loop, to where none leads from elsewhere?"""
    return loop.preheader is not None and len(loop.exit_edges) == 1 and loops.cfg.preds[loop.exits[0]] == loop.exiting


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
        """Is an innermost loop left at its end alone, with nothing written in it, and none that threads share?"""
        if loop.children or len(loop.latches) != 1 or loop.exiting != loop.latches:
            return False
        if marks_of(self._module, loop.latches[0].terminator) or not _is_left_once(self._loops, loop):
            return False
        return all(_is_silent(i) for b in loop.blocks for i in b.instructions)

    def _best(self, loop: Loop, phi: I.Phi) -> _Best | None:
        ends = loop.ends(phi)
        if phi.type not in (T.DOUBLE, T.FLOAT) or ends is None:
            return None
        joins: dict[I.Phi | I.Select, BasicBlock] = {}
        chosen: set[Value] = set()
        found = Reached([ends[1]], lambda v: v is not phi)
        for value in found:
            if self._home.get(value) not in loop.blocks or not isinstance(value, I.Phi | I.Select):
                chosen.add(value)
            elif isinstance(value, I.Phi) and self._home[value] is loop.header:
                return None
            else:
                joins[value] = self._home[value]
                found.add(I.merged(value))
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
        return _Best(loop, phi, ends[1], joins, candidate, seen, always, parts, counters)

    def _needed(self, loop: Loop, value: I.Instruction) -> tuple[tuple[I.Instruction, ...], dict[I.Phi, int]] | None:
        """What a value is computed from in a loop, in order, with counters and their steps; None where there is more,
        or no arithmetic, which is not worth it."""
        counters: dict[I.Phi, int] = {}
        parts = Reached[Value]([value], lambda v: self._home.get(v) in loop.blocks)
        for part in parts:
            if isinstance(part, I.Phi):
                ends = loop.ends(part) if self._home[part] is loop.header else None
                step = None if ends is None else step_to(ends[1], part)
                if step is None or not isinstance(part.type, T.IntType):
                    return None
                counters[part] = step
            elif isinstance(part, (*_PLAIN, I.Load, I.Call)):
                parts.add(part.operands)
            else:
                return None
        order = [i for b in self._loops.blocks(loop) for i in b.instructions if i in parts and i not in counters]
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
    """Changes one loop of a function, in place."""

    def __init__(self, root: Function, best: _Best) -> None:
        self._root = root
        self._best = best
        self._before = next(b for b in best.phi.targets if b not in best.loop)

    def run(self) -> dict[Value, Value]:
        """What the best behind the loop is now."""
        best, leaving = self._best, self._best.loop.exits[0]
        last, value_of = self._which()
        start = self._start(best.phi)
        leaving.instructions.insert(0, last)
        if best.always:  # without a branch, which would keep the loop around from being vectors
            leaving.instructions = [i for i in leaving.instructions if i not in best.behind]
            at = Builder.behind_phis(leaving)
            none = at.icmp("slt", last, const_int(T.I64, 0))
            found = at.select(none, start, value_of(at, at.select(none, const_int(T.I64, 0), last)))
            return dict.fromkeys(best.behind, found)
        rest = split_before(self._root, leaving, len(phis(leaving)))
        arm = BasicBlock()
        self._root.blocks.insert(self._root.blocks.index(rest), arm)
        at = Builder(leaving)
        at.cond_br(at.icmp("slt", last, const_int(T.I64, 0)), rest, arm)
        found = I.Phi(best.phi.type, "phi", [start, value_of(Builder(arm), last)], targets=[leaving, arm])
        Builder(arm).br(rest)
        rest.instructions.insert(0, found)
        leaving.instructions = [i for i in leaving.instructions if i not in best.behind]
        return dict.fromkeys(best.behind, found)

    def _start(self, phi: I.Phi) -> Value:
        return phi.operands[phi.targets.index(self._before)]

    def _which(self) -> tuple[I.Phi, Callable[[Builder, Value], Value]]:
        """In which iteration the best was chosen, behind the loop; -1 where it is what it began with. And the candidate
        of an iteration."""
        best, loop = self._best, self._best.loop
        number = count_iterations(loop, [self._before])
        which = I.Phi(T.I64, "phi", [const_int(T.I64, -1)], targets=[self._before])
        loop.header.instructions.insert(0, which)
        numbers: dict[Value, Value] = {best.phi: which, best.candidate: number}
        made = [replace(j, type=T.I64, flags=(), targets=list(j.targets), metadata=[], records=()) for j in best.joins]
        numbers.update(zip(best.joins, made, strict=True))
        for (old, block), new in zip(best.joins.items(), made, strict=True):
            parts = I.merged(old)
            new.operands = [*old.operands[: len(old.operands) - len(parts)], *(numbers[o] for o in parts)]
            block.instructions.insert(block.instructions.index(old) + isinstance(old, I.Select), new)
        which.add(numbers[best.last], loop.latches[0])
        last = I.Phi(T.I64, "phi", [numbers[best.last]], targets=list(loop.exiting))
        return last, self._keep(number) if best.kept else self._again

    def _keep(self, number: I.Phi) -> Callable[[Builder, Value], Value]:
        """Keeps the candidate of each iteration; how it is read."""
        best, type_ = self._best, self._best.phi.type
        memory = local(self._root, T.ArrayType(best.kept, type_))
        ((chosen, home),) = best.joins.items()
        at = Builder.before(home, chosen)
        at.store(best.candidate, at.gep(type_, memory, [number]))
        return lambda at, which: at.load(type_, at.gep(type_, memory, [which]))

    def _again(self, at: Builder, which: Value) -> Value:
        made: dict[Value, Value] = {}
        for counter, step in self._best.counters.items():
            far = at.binary("mul", which, const_int(T.I64, step))
            bits = counter.type.bits if isinstance(counter.type, T.IntType) else 64
            if bits != 64:
                far = at.cast("trunc" if bits < 64 else "sext", far, counter.type)
            made[counter] = at.binary("add", self._start(counter), far)
        for part in self._best.parts:
            made[part] = at.insert(with_operands(part, [made.get(o, o) for o in part.operands]))
        return made[self._best.candidate]
