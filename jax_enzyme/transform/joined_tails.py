"""The end of an iteration of which there are two copies is one again.

    before    start: br i1 %none, label %short, label %inner
              inner: ... br i1 %more, label %inner, label %long
              short: store %x; br i1 %last, label %a, label %next
              long:  store %y; br i1 %last, label %b, label %next
              next:  br label %start

    after     start: br i1 %none, label %short, label %inner
              inner: ... br i1 %more, label %inner, label %long
              short: br label %tail
              long:  br label %tail
              tail:  %v = phi [%x, %short], [%y, %long]; store %v; br i1 %last, label %out, label %start
              out:   br i1 %which, label %a, label %b

What is asked before an inner loop (does it run at all?) is asked again behind the outer one. LLVM threads jumps: it
makes two ends of an iteration, one for each answer. Iterations then end in two places, though all go the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, Poison, Value, int_value
from jax_enzyme.transform.rewriting import forget_records, phis, replace_values

_MOVABLE = (
    I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.Freeze, I.GetElementPtr, I.Load, I.Store, I.Call,
)  # fmt: skip
_EARLY = (I.BinaryOp, I.Cast, I.Compare, I.GetElementPtr)
_APART = ("operands", "metadata", "records", "name")
"""Fields that may differ between two instructions of which one is to be made."""


def join_tails(function: Function) -> bool:
    """Joins such ends in a private function, in place; whether there were any."""
    found = False
    while (split := _first_split(Loops.of(function))) is not None:
        _Join(function, *split).run()
        found = True
    return found


def has_tails(loops: Loops) -> bool:
    """Whether there are any among the loops of a function."""
    return _first_split(loops) is not None


def _first_split(loops: Loops) -> tuple[Loops, Loop, tuple[BasicBlock, BasicBlock]] | None:
    for loop in loops.all:
        if loop.children and len(loop.latches) == 1:
            tails = loops.cfg.preds[loop.latches[0]]
            are_ends = len(tails) == 2 and set(tails) == set(loop.exiting)
            if are_ends and _are_copies(loop, tails) and _leave_by_phis(loops, loop):
                return loops, loop, (tails[0], tails[1])
    return None


def _leave_by_phis(loops: Loops, loop: Loop) -> bool:
    """Do all values of a loop that are used behind it go through phis there?"""
    inside = {i for b in loop.blocks for i in b.instructions}
    outside = [(b, i) for b in loops.cfg.rpo if b not in loop for i in b.instructions]
    used = [(b, i, n) for b, i in outside for n, o in enumerate(i.operands) if o in inside]
    return all(isinstance(i, I.Phi) and b in loop.exits and i.targets[n] in loop.exiting for b, i, n in used)


def _body(block: BasicBlock) -> list[I.Instruction]:
    return block.instructions[len(phis(block)) : -1]


def _are_copies(loop: Loop, tails: Sequence[BasicBlock]) -> bool:
    """Do two blocks that end a loop's iterations do the same with other values, and is nothing behind them in the
    way?"""
    latch = loop.latches[0]
    ends = [tail.terminator for tail in tails]
    if not all(isinstance(end, I.CondBranch) for end in ends) or not isinstance(latch.terminator, I.Branch):
        return False
    if ends[0].targets.index(latch) != ends[1].targets.index(latch) or not all(map(may_run_again, _body(latch))):
        return False
    bodies = [_body(tail) for tail in tails]
    if len(bodies[0]) != len(bodies[1]):
        return False
    if not all(_is_like(x, y) for x, y in zip(*bodies, strict=True)):
        return False
    same: dict[Value, I.Instruction] = dict(zip(bodies[1], bodies[0], strict=True))
    behind = [t for end in ends for t in end.targets if t is not latch]
    joins = [latch, behind[0]] if behind[0] is behind[1] else [latch]
    pairs = [(x, x.operands, y.operands) for x, y in zip(*bodies, strict=True)]
    pairs += [(ends[0], ends[0].operands, ends[1].operands)]
    pairs += [(phi, [_from(phi, tails[0])], [_from(phi, tails[1])]) for join in joins for phi in phis(join)]
    return all(_may_join(user, a, b, same) for user, xs, ys in pairs for a, b in zip(xs, ys, strict=True))


def may_run_again(instruction: I.Instruction) -> bool:
    """May an instruction at the end of an iteration be run in the last one too, where nothing needs it?"""
    return isinstance(instruction, _EARLY) and instruction.opcode not in I.INTEGER_DIVISIONS


def _is_like(x: I.Instruction, y: I.Instruction) -> bool:
    if not isinstance(x, _MOVABLE) or type(x) is not type(y):
        return False
    if isinstance(x, I.CallBase) and (x.bundles or x.type == T.VOID):
        return False
    return all(getattr(x, f.name) == getattr(y, f.name) for f in fields(x) if f.name not in _APART)


def _may_join(user: I.Instruction, x: Value, y: Value, same: Mapping[Value, I.Instruction]) -> bool:
    """Is an operand the same for both copies, made by both, or one of two values from before?"""
    if x is y or same.get(y) is x or _same_constant(x, y):
        return True
    if y in same or any(x is moved for moved in same.values()) or x.type != y.type:
        return False
    return not (isinstance(user, I.Call | I.GetElementPtr) and isinstance(x, Constant))


def _same_constant(x: Value, y: Value) -> bool:
    return x.type == y.type and int_value(x) is not None and int_value(x) == int_value(y)


def _from(phi: I.Phi, block: BasicBlock) -> Value:
    return next(v for v, source in phi.incoming if source is block)


class _Join:
    """Makes one end of two."""

    def __init__(self, function: Function, loops: Loops, loop: Loop, tails: tuple[BasicBlock, BasicBlock]) -> None:
        self._function = function
        self._dominators = loops.dominators
        self._home = {i: b for b in loops.cfg.rpo for i in b.instructions}
        self._loop = loop
        self._tails = tails
        self._tail = BasicBlock()
        self._at = Builder(self._tail)
        self._made: dict[Value, Value] = {}
        """What both copies become."""

    def run(self) -> None:
        loop, (latch,), tail = self._loop, self._loop.latches, self._tail
        bodies = [_body(t) for t in self._tails]
        ends = [t.terminator for t in self._tails]
        for t in self._tails:
            del t.instructions[len(phis(t)) :]
            Builder(t).br(tail)
        for x, y in zip(*bodies, strict=True):
            operands = [self._joined(a, b) for a, b in zip(x.operands, y.operands, strict=True)]
            made = with_operands(x, operands)
            made.records = ()
            made.metadata = [(kind, node) for kind, node in x.metadata if kind == "dbg" or (kind, node) in y.metadata]
            self._made[x] = self._made[y] = self._at.insert(made)
        condition = self._joined(ends[0].operands[0], ends[1].operands[0])
        passed = {phi: self._joined(*(_from(phi, t) for t in self._tails)) for phi in phis(latch)}
        tail.instructions += _body(latch)
        leaving = [next(t for t in end.targets if t is not latch) for end in ends]
        out = self._leave(leaving)
        targets = [loop.header if t is latch else out for t in ends[0].targets]
        Builder(tail).cond_br(condition, *targets)
        tail.terminator.metadata = latch.terminator.metadata
        for phi in phis(loop.header):
            phi.targets = [tail if b is latch else b for b in phi.targets]
        forget_records(self._function, {*self._made})
        replace_values(self._function, {**passed, **self._made})
        self._load_before()
        place = self._function.blocks.index(latch)
        self._function.blocks[place : place + 1] = [tail] if out in leaving else [tail, out]

    def _load_before(self) -> None:
        """What each iteration now loads from a table of constants, by an address from outside, is loaded before."""
        loop, before = self._loop, self._loop.preheader
        inside = {i for b in (*loop.blocks, self._tail) for i in b.instructions}
        for load in [i for i in self._tail.instructions if isinstance(i, I.Load)]:
            table = I.base_of(load.operands[0])
            is_fixed = isinstance(table, GlobalVariable) and table.is_constant and load.operands[0] not in inside
            if is_fixed and I.is_plain(load) and before is not None:
                self._tail.instructions.remove(load)
                before.instructions.insert(-1, load)

    def _joined(self, x: Value, y: Value) -> Value:
        """One value for both."""
        if x in self._made:
            return self._made[x]
        if x is y or _same_constant(x, y):
            return x
        return self._phi(x, y)

    def _phi(self, x: Value, y: Value) -> I.Phi:
        phi = I.Phi(x.type, "phi", [])
        phi.incoming = list(zip((x, y), self._tails, strict=True))
        self._tail.instructions.insert(0, phi)
        return phi

    def _leave(self, leaving: Sequence[BasicBlock]) -> BasicBlock:
        """Where the loop is left."""
        if leaving[0] is leaving[1]:
            for phi in phis(leaving[0]):
                value = self._joined(*(_from(phi, t) for t in self._tails))
                phi.incoming = [*((v, b) for v, b in phi.incoming if b not in self._tails), (value, self._tail)]
            return leaving[0]
        out = BasicBlock()
        which = self._phi(const_int(T.I1, 1), const_int(T.I1, 0))
        for number, target in enumerate(leaving):
            for phi in phis(target):
                value = self._left(out, _from(phi, self._tails[number]), number)
                phi.incoming = [(value, out) if b is self._tails[number] else (v, b) for v, b in phi.incoming]
        Builder(out).cond_br(self._behind(out, which), *leaving)
        return out

    def _left(self, out: BasicBlock, value: Value, number: int) -> Value:
        """What one of the ways out takes along."""
        if isinstance(value, Constant | Argument):
            return value
        if value in self._made:
            return self._behind(out, self._made[value])
        home = self._home[value] if isinstance(value, I.Instruction) else None
        if home is None or not all(self._dominators.dominates(home, t) for t in self._tails):
            other = Poison(value.type)
            value = self._phi(*((value, other) if number == 0 else (other, value)))
        return self._behind(out, value)

    def _behind(self, out: BasicBlock, value: Value) -> I.Phi:
        phi = I.Phi(value.type, "phi", [])
        phi.add(value, self._tail)
        out.instructions.insert(0, phi)
        return phi
