"""Comparisons with exact values, or of two values, for equality, and which of them are shortcuts.

    if (x[j] == 0) continue;                    x[j] = 0 put into the loop makes it  a[i] += 0 * t,  which is nothing:
    for (...) a[i] += x[j] * t;                 both sides do the same there, and the function is the loop's everywhere

A comparison is a *shortcut* where, with the constant put in, both sides come to the same place with the same values and
the same memory, under finite arithmetic (`symbols`). Then the side without the constant, the general one, is the
function, and has its derivatives. All that is not clear is no shortcut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeGuard

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.counters import followers
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.equality import compared, holds_at_equality
from jax_enzyme.analysis.evaluation import Effort, Program, Unclear, Values, read_from
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.symbols import Term, Terms
from jax_enzyme.analysis.walks import Stop, Walk
from jax_enzyme.analysis.writes import same_zeros
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value, int_value
from jax_enzyme.rules.table import Rules

_EFFORT_EACH, _EFFORT = 40_000, 300_000
"""How many instructions are looked at for one comparison, and for all of a function: some seconds. Where more would be
needed, a comparison is no shortcut."""
_MOST_CASES = 64
"""How many cases of other conditions are told apart. Where there are more, a comparison is no shortcut."""

Verdict = Literal["proved", "fails", "open"]
"""Of a comparison: it is a shortcut; the call fails at equality; neither is known."""
Fact = tuple[Value, bool]
Assumption = tuple[Term, bool]


@dataclass(frozen=True, eq=False)
class Choice:
    """A branch or select that a comparison decides: which operand or target is taken at equality, under `facts` about
    other conditions. Where one of those that are `needed` does not hold, the general side may be taken at equality;
    where another one does not, the other side is."""

    instruction: I.Select | I.CondBranch | I.Switch
    at_equality: bool
    facts: tuple[Fact, ...]
    needed: tuple[Fact, ...] = ()


@dataclass(frozen=True, eq=False)
class Decided:
    """What depends on a comparison: `choices`, `others` of which nothing is known, and `integers` that it is made."""

    choices: tuple[Choice, ...]
    others: tuple[I.Instruction, ...] = ()
    integers: tuple[I.Instruction, ...] = ()


class Shortcuts:
    """Answers about the comparisons of one function. `is_initialised` says of a parameter whether it holds numbers when
    the function is called."""

    def __init__(
        self, module: Module, function: Function, rules: Rules, is_initialised: Callable[[Value], bool]
    ) -> None:
        self._function = function
        self._cfg = Cfg(function)
        dominators = Dominators(self._cfg)
        self._loops = Loops(self._cfg, dominators)
        read_only = frozenset(a for a in function.arguments if {"readonly", "noalias"} <= set(a.attributes))
        recurrences = Recurrences(function, self._loops, module)

        def trips(loop: Loop) -> int | None:
            count = recurrences.trip_count(loop).exact
            back = None if count is None else count.value
            return None if back is None else back + 1

        self._program = Program(
            module,
            function,
            rules,
            dominators,
            self._cfg.reachable_preds,
            read_only,
            trips,
            followers(self._loops),
            Effort(0),
        )
        self._effort = _EFFORT
        self._is_initialised = is_initialised
        self._terms = Terms()
        self._uses = uses(function)
        self._block_of = {i: b for b in function.blocks for i in b.instructions}

    # -- what a comparison decides

    def choices(self, comparison: I.Instruction) -> Decided:
        """All that a comparison decides, and what it is used for otherwise."""
        found, others = list[Choice](), list[I.Instruction]()
        first = (comparison, holds_at_equality(comparison), (), ())
        work: list[tuple[Value, bool, tuple[Fact, ...], tuple[Fact, ...]]] = [first]
        while work:
            value, truth, facts, needed = work.pop()
            for user, index in self._uses.get(value, ()):
                if isinstance(user, I.CondBranch) or (_is_choice(user) and index == 0):
                    found.append(Choice(user, truth, facts, needed))
                    continue
                passed = _passed_on(user, index, truth)
                if passed is None:
                    others.append(user)
                    continue
                more = () if _decides_alone(user, index, truth) else passed[1]
                work.append((user, passed[0], (*facts, *passed[1]), (*needed, *more)))
        integers = [o for o in others if isinstance(o, I.Cast) and T.is_int(o.type)]
        return Decided(tuple(found), tuple(o for o in others if o not in integers), tuple(integers))

    def _is_shown(self, decided: Decided) -> bool:
        """Whether a condition is used as a number: not in a sum of them, since to count is no choice, but as an index,
        or where that is stored or compared."""
        if decided.others:
            return True
        shown = (I.Store, I.Compare, I.CallBase, I.Cast, I.GetElementPtr)
        numbers = I.BinaryOp | I.Cast | I.Phi | I.Select
        direct = (user for i in decided.integers for user, _ in self._uses.get(i, ()))
        if any(isinstance(user, shown) for user in direct):
            return True
        found = self._reached([*decided.integers], lambda i: isinstance(i, numbers) and T.is_int(i.type))
        return any(isinstance(i, I.GetElementPtr) for i in found)

    def _reached(self, start: list[Value], goes_on: Callable[[I.Instruction], bool]) -> list[I.Instruction]:
        """The instructions that use values, or what such instructions make of them."""

        def users(value: Value) -> list[I.Instruction]:
            return [user for user, _ in self._uses.get(value, ())]

        first = [user for value in start for user in users(value)]
        return list(reached(first, lambda user: users(user) if goes_on(user) else ()))

    def block_of(self, instruction: I.Instruction) -> BasicBlock:
        return self._block_of[instruction]

    def general_side(self, choice: Choice) -> Iterator[BasicBlock]:
        """The blocks that only run where a branch goes to the general side."""
        first = choice.instruction.targets[1 if choice.at_equality else 0]
        if self._cfg.reachable_preds(first) == [self._block_of[choice.instruction]]:
            yield from (b for b in self._cfg.rpo if self._program.dominators.dominates(first, b))

    # -- proof

    def verdicts(self, comparisons: Iterable[I.Instruction]) -> dict[I.Instruction, Verdict]:
        """Those of comparisons of the function."""
        return {comparison: self._verdict(comparison) for comparison in comparisons}

    def _verdict(self, comparison: I.Instruction) -> Verdict:
        if self.is_proved(comparison):
            return "proved"
        return "fails" if self.fails_at_equality(comparison) else "open"

    def is_proved(self, comparison: I.Instruction) -> bool:
        """Whether a comparison is a shortcut."""
        decided = self.choices(comparison)
        if self._is_shown(decided) or compared(comparison) is None or not _is_of_numbers(comparison):
            return False
        self._start_effort()
        try:
            return all(self._same(comparison, choice) for choice in decided.choices)
        except Unclear:
            return False

    def _start_effort(self) -> None:
        """What is left of the last comparison's goes back."""
        effort = self._program.effort
        self._effort += max(effort.left, 0)
        effort.left = min(_EFFORT_EACH, self._effort)
        self._effort -= effort.left

    def fails_at_equality(self, comparison: I.Instruction) -> bool:
        """Whether the call fails at equality, whatever else holds, or does nothing but say so in an integer where the
        general side has no value: then there is no derivative to miss."""
        decided = self.choices(comparison)
        if self._is_shown(decided) or not _is_of_numbers(comparison):
            return False
        return all(self._fails(comparison, choice) for choice in decided.choices)

    def _fails(self, comparison: I.Instruction, choice: Choice) -> bool:
        if not isinstance(choice.instruction, I.CondBranch):
            return False
        self._terms = Terms()
        self._start_effort()
        try:
            special, general = self._walks(comparison, choice, [])
            self._meet(special, general)
        except Unclear:
            return False
        if general.values.terms.poles and _reports(special, general):
            return True
        while special.step() is not None:
            pass
        return special.fails

    def _values(self, comparison: I.Instruction, choice: Choice, assumed: list[Assumption]) -> Callable[[str], Values]:
        """Makes the values of both walks, with what is known: equality, the facts, what was assumed."""
        terms = self._terms
        terms.known = {}
        start = self._block_of[choice.instruction]
        found = compared(comparison)
        if found is not None:
            value, other = found
            constant = terms.constant(other)
            before = Values(self._program, terms, start, "")
            if constant is None:
                if isinstance(other, Constant):
                    raise Unclear
                constant = before.of(other)
            elif constant.number is None:
                raise Unclear
            terms.learn(before.of(value), constant)
        for condition, holds in choice.facts:
            terms.assume(Values(self._program, terms, start, "").of(condition), holds)
        for condition, holds in assumed:
            terms.assume(condition, holds)
        return lambda side: Values(self._program, terms, start, side)

    def _same(self, comparison: I.Instruction, choice: Choice) -> bool:
        """Whether both sides are the same at equality."""
        self._terms = Terms()
        if isinstance(choice.instruction, I.Select):
            values = self._values(comparison, choice, [])("")
            then, other = map(values.of, choice.instruction.operands[1:])
            return _equal(then, other) and self._may_forget(values, choice)
        cases: list[list[Assumption]] = [[]]
        count = 0
        while cases:
            assumed = cases.pop()
            count += 1
            if count > _MOST_CASES:
                return False
            special, general = self._walks(comparison, choice, assumed)
            verdict = self._meet(special, general)
            if verdict is None:
                stuck = general.stuck or special.stuck
                if stuck is None:
                    return False
                cases += [[*assumed, (stuck, True)], [*assumed, (stuck, False)]]
            elif not verdict or not self._may_forget(general.values, choice):
                return False
        return True

    def _walks(self, comparison: I.Instruction, choice: Choice, assumed: list[Assumption]) -> tuple[Walk, Walk]:
        """The walk at equality, and the general one."""
        values = self._values(comparison, choice, assumed)
        start = self._block_of[choice.instruction]
        first = 0 if choice.at_equality else 1
        targets = choice.instruction.targets
        special = Walk(self._program, self._loops, values("special"), start, targets[first])
        general = Walk(self._program, self._loops, values("general"), start, targets[1 - first])
        return special, general

    def _meet(self, special: Walk, general: Walk) -> bool | None:
        """Whether both walks are in the same state where they first come to one block; None if they do not."""
        ways = ((special, general), (general, special))
        going = True
        while going:
            going = False
            for walk, other in ways:
                stop = walk.step()
                if stop is None:
                    continue
                going = True
                met = next((s for s in other.trace if s.block is stop.block), None)
                if met is not None:
                    return all(map(_equal, stop.phis, met.phis)) and self._same_memory(general.values, stop, met)
        return None

    def _same_memory(self, values: Values, one: Stop, other: Stop) -> bool:
        if any(entry.value is None for entry in (*one.written, *other.written)):
            return same_zeros(values.terms, one.written, other.written)
        left, right = ({e.address: e for e in stop.written} for stop in (one, other))
        places = [*dict.fromkeys((*left, *right))]
        entries = [left.get(p) or right[p] for p in places]
        for number, entry in enumerate(entries):
            if not all(values.apart(entry.address, entry.length, e.address, e.length) for e in entries[:number]):
                return False
            assert entry.value is not None
            held = [side.get(entry.address) for side in (left, right)]
            found = [values.found(entry.address, entry.value.type) if h is None else h.value for h in held]
            if not _equal(*found):
                return False
        return True

    def _may_forget(self, values: Values, choice: Choice) -> bool:
        """Whether all that was multiplied by zero is a number: memory may hold anything before it is written."""
        start = self._block_of[choice.instruction]
        memory = {m for term in self._terms.forgotten for m in read_from(values, term)}
        return all(m is not None and (self._is_initialised(m) or self._is_written(m, start)) for m in memory)

    def _is_written(self, memory: Value, start: BasicBlock) -> bool:
        """Whether something has been written to memory of its own before control comes to a block. Of an array that may
        be a part: which, nobody asks."""
        for block in self._function.blocks:
            if any(self._writes(i, memory) for i in block.instructions):
                loop = self._loops.loop_of.get(block)
                while loop is not None and start not in loop.blocks:
                    block, loop = loop.header, loop.parent
                if self._program.dominators.dominates(block, start):
                    return True
        return False

    def _writes(self, instruction: I.Instruction, memory: Value) -> bool:
        match instruction:
            case I.Store():
                pointer = instruction.operands[1]
            case I.CallBase() if instruction.arguments:
                pointer = instruction.operands[0]
            case _:
                return False
        return I.base_of(pointer) is memory


def _reports(special: Walk, general: Walk) -> bool:
    """Whether a walk does nothing but write integers until it comes to where the other one goes as well, or returns."""
    wrote = special.values.written
    if not wrote or not all(e.value is not None and isinstance(e.value.type, T.IntType) for e in wrote):
        return False
    others = {stop.block for stop in general.trace}
    joins = [stop for stop in special.trace if stop.block in others]
    return not any(T.is_float(term.type) for stop in joins for term in stop.phis)


def _equal(x: Term | None, y: Term | None) -> bool:
    return x is not None and x is y and x.operation != "invalid"


def _is_of_numbers(comparison: I.Instruction) -> bool:
    return isinstance(comparison.operands[0].type, T.FloatType)


def _is_choice(user: I.Instruction) -> TypeGuard[I.Select]:
    return isinstance(user, I.Select) and user.type != T.IntType(1)


def _passed_on(user: I.Instruction, index: int, truth: bool) -> tuple[bool, tuple[Fact, ...]] | None:
    """What an operation on conditions is at equality, and the facts under which it depends on the comparison at all."""
    match user:
        case I.Freeze():
            return truth, ()
        case I.BinaryOp(opcode="and" | "or"):
            return truth, ((user.operands[1 - index], user.opcode == "and"),)
        case I.BinaryOp(opcode="xor") if int_value(user.operands[1]) is not None:
            return truth != bool(int_value(user.operands[1])), ()
        case I.Select() if not _is_choice(user):
            return _passed_by_select(user, index, truth)
        case _:
            return None


def _passed_by_select(select: I.Select, index: int, truth: bool) -> tuple[bool, tuple[Fact, ...]] | None:
    condition, then, other = select.operands
    if index:
        return truth, ((condition, index == 1),)
    if int_value(then) is not None:  # then or (not condition and other)
        value = bool(int_value(then))
        return (truth if value else not truth), ((other, not value),)
    if int_value(other) is not None:
        value = bool(int_value(other))
        return (not truth if value else truth), ((then, not value),)
    return None


def _decides_alone(user: I.Instruction, index: int, truth: bool) -> bool:
    """Whether an operation on conditions is what it is at equality where the fact about the other one does not hold
    either: both skip, `x == 0 || y == 0`."""
    if isinstance(user, I.BinaryOp):
        return user.opcode == ("or" if truth else "and")
    if not isinstance(user, I.Select):
        return False
    _, then, other = user.operands
    if index:
        return int_value(other if index == 1 else then) == int(truth)
    return truth if int_value(then) is not None else not truth
