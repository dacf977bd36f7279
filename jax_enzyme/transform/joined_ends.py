"""The end of an iteration of which there are several, though all go the same way, is one again, in the latch.

    before    start: br i1 %none, label %short, label %inner
              inner: ... br i1 %more, label %inner, label %long
              short: store %x; br i1 %last, label %a, label %latch
              long:  store %y; br i1 %last, label %b, label %latch
              latch: br label %start

    after     short: br label %latch
              long:  br label %latch
              latch: %v = phi [%x, %short], [%y, %long]; store %v; br i1 %last, label %out, label %start
              out:   br i1 %which, label %a, label %b

LLVM threads jumps: what is asked before an inner loop (does it run at all?) is asked again behind it, and so there are
two ends, one for each answer; one more for each `continue`; and where a condition on the counter says that an iteration
is not the last one, none is asked (`high`). How often the loop runs is then known no more.

    before    start: %up = icmp ugt i64 %i, 199; br i1 %up, label %high, label %low
              high:  ... br label %latch
              low:   ... %done = icmp eq i64 %i, 0; br i1 %done, label %exit, label %latch

    after     latch: %done = icmp eq i64 %i, 0; br i1 %done, label %exit, label %start

What all ends do alike in front of the question moves along with it, if that is all that they do; what they ask does in
any case. The latch runs once more than before, in the last iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jax_enzyme.analysis.folding import compared
from jax_enzyme.analysis.guards import Condition, Guards
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.marks import marks_of
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.sameness import does_same, is_same
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, Poison, Value, int_value
from jax_enzyme.transform.rewriting import forget_records, on_copy, phis, replace_values

_MOVABLE = (
    I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.Freeze, I.GetElementPtr, I.Load, I.Store, I.Call,
)  # fmt: skip
_EARLY = (I.BinaryOp, I.Cast, I.Compare, I.GetElementPtr)
Alike = tuple[I.Instruction, ...]
"""An instruction of each end."""


def join_marked_ends(function: ArrayFunction) -> ArrayFunction:
    """The array function with such ends of marked loops joined, in a copy of the module; the function itself where it
    has none."""

    def change(module: Module, root: Function) -> bool:
        return join_ends(root, lambda loop: _is_marked(module, loop.latches[0]))

    blocks = function.module.functions[function.symbol].blocks
    return on_copy(function, change) if any(_is_marked(function.module, b) for b in blocks) else function


def _is_marked(module: Module, block: BasicBlock) -> bool:
    return isinstance(block.terminator, I.Branch) and bool(marks_of(module, block.terminator))


def join_ends(function: Function, of: Callable[[Loop], bool]) -> bool:
    """Joins such ends of some loops of a private function, in place; whether there were any."""
    found = False
    while (ends := first_ends(Loops.of(function), of)) is not None:
        _Join(function, ends).run()
        found = True
    return found


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of a loop's iterations: the blocks that ask whether to go on, right in front of the latch, and what they
    do alike, from the first instruction to the last."""

    loops: Loops
    loop: Loop
    tests: list[BasicBlock]
    alike: list[Alike]


def first_ends(loops: Loops, of: Callable[[Loop], bool]) -> Ends | None:
    """Those of the first of some loops that can be joined."""
    for loop in loops.all:
        latch = loop.latches[0]
        is_shared = len(loop.latches) == 1 < len(loops.cfg.preds[latch]) and isinstance(latch.terminator, I.Branch)
        tests = loop.exiting
        if is_shared and tests and of(loop) and _all_ask(tests, latch) and all(map(_may_run_again, _body(latch))):
            ends = Ends(loops, loop, tests, _alike(loop, tests))
            if _can_join(ends):
                return ends
    return None


def _may_run_again(instruction: I.Instruction) -> bool:
    """May an instruction at the end of an iteration be run in the last one too, where nothing needs it?"""
    return isinstance(instruction, _EARLY) and instruction.opcode not in I.INTEGER_DIVISIONS


def _body(block: BasicBlock) -> list[I.Instruction]:
    return block.instructions[len(phis(block)) : -1]


def _all_ask(tests: Sequence[BasicBlock], latch: BasicBlock) -> bool:
    """Do some blocks end in a question of which the same answer leads to the latch?"""
    ends = [test.terminator for test in tests]
    if not all(isinstance(end, I.CondBranch) and end.targets.count(latch) == 1 for end in ends):
        return False
    return len({end.targets.index(latch) for end in ends}) == 1


def _can_join(ends: Ends) -> bool:
    loops, loop, tests = ends.loops, ends.loop, ends.tests
    latch, others = loop.latches[0], [p for p in loops.cfg.preds[loop.latches[0]] if p not in tests]
    conditions = [test.terminator.operands[0] for test in tests]

    def at_latch(value: Value) -> bool:
        home = loops.home.get(value) if isinstance(value, I.Instruction) else None
        return home is None or loops.dominators.dominates(home[0], latch)

    if len(loop.exits) > 2 or not (ends.alike or _is_asked_alike(conditions, at_latch)):
        return False
    if others and (len(tests) > 1 or not _is_asked_elsewhere(loops, loop, tests[0], others)):
        return False
    # What is used behind the loop is there in every iteration, or was left by each of its ends.
    inside = {i for b in loop.blocks for i in b.instructions}
    for block in loops.cfg.rpo:
        if block in loop:
            continue
        for user in block.instructions:
            is_left = isinstance(user, I.Phi) and block in loop.exits and not others
            used = [n for n, o in enumerate(user.operands) if o in inside and not at_latch(o)]
            if used and not (is_left and all(user.targets[n] in tests for n in used)):
                return False
    return True


def _is_asked_alike(conditions: Sequence[Value], at_latch: Callable[[Value], bool]) -> bool:
    """Can a question that all ends ask be asked in the latch?"""
    first = conditions[0]
    if not isinstance(first, I.Compare) or not isinstance(first.operands[0].type, T.IntType):
        return False
    same = (_is_like(first, c) and all(map(is_same, first.operands, made_of(c))) for c in conditions)
    return all(same) and all(map(at_latch, first.operands))


def _is_asked_elsewhere(loops: Loops, loop: Loop, test: BasicBlock, others: list[BasicBlock]) -> bool:
    """Is it certain that an iteration is not the last one that comes to the latch from elsewhere?"""
    latch, asked = loop.latches[0], test.terminator.operands[0]
    if not isinstance(asked, I.Compare) or asked.predicate not in ("eq", "ne"):
        return False
    (counter, limit), goes_on = asked.operands, test.terminator.targets[0] is latch
    last = int_value(limit)
    if (asked.predicate == "eq") is goes_on or last is None or counter not in phis(loop.header):
        return False
    guards = Guards(loops.cfg, loops.dominators)

    def may_be_last(target: BasicBlock, sources: Iterable[BasicBlock]) -> list[BasicBlock]:
        """From which of some blocks control may go to another one while the counter is the last number."""
        edges = ((source, guards.on_edge(source, target)) for source in sources)
        return [source for source, asked in edges if not any(_contradicts(c, counter, last) for c in asked)]

    def before(block: BasicBlock) -> Iterable[BasicBlock]:
        return () if block is loop.header else may_be_last(block, loops.cfg.preds[block])

    return loop.header not in reached(may_be_last(latch, others), before)


def _contradicts(condition: Condition, counter: Value, last: int) -> bool:
    """Does what a branch has asked about the counter not hold for a number?"""
    limit = int_value(condition.y)
    if condition.x is not counter or limit is None:
        return False
    return not compared(condition.predicate, last, limit, T.bits(counter.type))


def _alike(loop: Loop, tests: Sequence[BasicBlock]) -> list[Alike]:
    """What several ends do, if they all do the same with other values, and nothing behind them is in the way."""
    bodies = [_body(test) for test in tests]
    if len(tests) < 2 or len(set(map(len, bodies))) > 1:
        return []
    alike = list(zip(*bodies, strict=True))
    number = {x: n for n, xs in enumerate(alike) for x in xs}
    joins = [phi for block in (loop.latches[0], *loop.exits) for phi in phis(block)]
    if not all(_is_like(xs[0], x) for xs in alike for x in xs):
        return []
    used = [(xs[0], vs) for xs in alike for vs in zip(*(x.operands for x in xs), strict=True)]
    used += [(tests[0].terminator, tuple(test.terminator.operands[0] for test in tests))]
    used += [(phi, tuple(v for t in tests for v, source in phi.incoming if source is t)) for phi in joins]
    return alike if all(_may_join(user, vs, number) for user, vs in used) else []


def _is_like(x: I.Instruction, y: Value) -> bool:
    is_effect = isinstance(x, I.CallBase) and (x.bundles or x.type == T.VOID)
    return isinstance(x, _MOVABLE) and not is_effect and does_same(x, y)


def _may_join(user: I.Instruction, xs: Sequence[Value], number: dict[I.Instruction, int]) -> bool:
    """Is an operand the same for all ends, made by all, or one of some values from before?"""
    made = {number.get(x) if isinstance(x, I.Instruction) else None for x in xs}
    if all(is_same(xs[0], x) for x in xs) or made != {None}:
        return len(made) == 1
    is_fixed = isinstance(user, I.Call | I.GetElementPtr) and any(isinstance(x, Constant) for x in xs)
    return not is_fixed and len({x.type for x in xs}) == 1


class _Join:
    """Makes one end of several."""

    def __init__(self, function: Function, ends: Ends) -> None:
        self._function = function
        self._ends = ends
        self._latch = ends.loop.latches[0]
        self._first: list[I.Instruction] = []
        self._made: dict[Value, Value] = {}
        """What those that are alike become."""

    def run(self) -> None:
        ends, latch = self._ends, self._latch
        branches = [test.terminator for test in ends.tests]
        own, back = _body(latch), latch.terminator
        latch.instructions = list[I.Instruction](phis(latch))
        for test in ends.tests:
            test.instructions.pop()
            Builder(test).br(latch)
        at = Builder(latch)
        for xs in ends.alike:
            made = with_operands(xs[0], [self._joined(vs) for vs in zip(*(x.operands for x in xs), strict=True)])
            made.metadata = [m for m in xs[0].metadata if m[0] == "dbg" or all(m in x.metadata for x in xs[1:])]
            self._made.update(dict.fromkeys(xs, at.insert(made)))
        condition = branches[0].operands[0]
        if ends.alike:
            condition = self._joined([branch.operands[0] for branch in branches])
        elif isinstance(condition, I.Compare):
            condition = at.insert(with_operands(condition, condition.operands))
        out = self._leave([next(t for t in branch.targets if t is not latch) for branch in branches])
        latch.instructions += own
        at.cond_br(condition, *(ends.loop.header if t is latch else out for t in branches[0].targets))
        latch.terminator.metadata = back.metadata
        moved = {phi: self._made[v] for phi in phis(latch) if (v := phi.operands[0]) in self._made}
        latch.instructions = [*self._first, *(i for i in latch.instructions if i not in moved)]
        for test in ends.tests if ends.alike else ():
            test.instructions = [i for i in test.instructions if i not in self._made]
        forget_records(self._function, {*self._made})
        replace_values(self._function, {**moved, **self._made})
        self._load_before()

    def _load_before(self) -> None:
        """What each iteration now loads from a table of constants, by an address from outside, is loaded before."""
        loop, before = self._ends.loop, self._ends.loop.preheader
        inside = {i for b in loop.blocks for i in b.instructions}
        for load in [i for i in self._latch.instructions if isinstance(i, I.Load)]:
            table = I.base_of(load.operands[0])
            is_fixed = isinstance(table, GlobalVariable) and table.is_constant and load.operands[0] not in inside
            if is_fixed and I.is_plain(load) and before is not None:
                self._latch.instructions.remove(load)
                before.instructions.insert(-1, load)

    def _joined(self, values: Sequence[Value]) -> Value:
        """One value for all ends."""
        first = values[0]
        if first in self._made:
            return self._made[first]
        return first if all(is_same(first, v) for v in values) else self._phi(values)

    def _phi(self, values: Sequence[Value]) -> I.Phi:
        phi = I.Phi(values[0].type, "phi", [])
        phi.incoming = list(zip(values, self._ends.tests, strict=True))
        self._first.append(phi)
        return phi

    def _leave(self, leaving: Sequence[BasicBlock]) -> BasicBlock:
        """Where the loop is left, whose ends left it for one of two blocks."""
        tests, targets = self._ends.tests, list(dict.fromkeys(leaving))
        if len(targets) == 1:
            for phi in phis(targets[0]):
                value = self._joined([v for t in tests for v, source in phi.incoming if source is t])
                phi.incoming = [*((v, b) for v, b in phi.incoming if b not in tests), (value, self._latch)]
            return targets[0]
        out = BasicBlock()
        which = self._phi([const_int(T.I1, target is targets[0]) for target in leaving])
        for target in targets:
            for phi in phis(target):
                given = dict((b, v) for v, b in phi.incoming if b in tests)
                value = self._left(out, [given.get(test) for test in tests])
                phi.incoming = [*((v, b) for v, b in phi.incoming if b not in tests), (value, out)]
        Builder(out).cond_br(self._behind(out, which), *targets)
        self._function.blocks.insert(self._function.blocks.index(self._latch) + 1, out)
        return out

    def _left(self, out: BasicBlock, values: Sequence[Value | None]) -> Value:
        """What one of the ways out takes along; None: of those that go the other way."""
        given = [v for v in values if v is not None]
        first, is_one = given[0], all(is_same(given[0], v) for v in given)
        if first in self._made:
            return self._behind(out, self._made[first])
        if is_one and isinstance(first, Constant | Argument):
            return first
        home = self._ends.loops.home.get(first) if isinstance(first, I.Instruction) else None
        if is_one and home is not None and self._ends.loops.dominators.dominates(home[0], self._latch):
            return self._behind(out, first)
        return self._behind(out, self._phi([Poison(first.type) if v is None else v for v in values]))

    def _behind(self, out: BasicBlock, value: Value) -> I.Phi:
        phi = I.Phi(value.type, "phi", [])
        phi.add(value, self._latch)
        out.instructions.insert(0, phi)
        return phi
