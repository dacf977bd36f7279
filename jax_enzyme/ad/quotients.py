"""Quotients of zero that only a derivative forms: on the general side of a shortcut, at equality.

    if (x != 0) s += x / d;       before    %q = fdiv double %x, %d         0 / 0 where d is zero as well
                                  after     %p = select i1 %bad, double 1.0, double %d
                                            %n = select i1 %bad, double 0.0, double %x
                                            %q = fdiv double %n, %p         %bad: x is zero, and so is d

That a comparison is a shortcut is proved for finite numbers: zero times anything, or divided by it, is zero. Where that
is no number, the function, which does not come there, has values, and goes its ways by them: so must its derivative.
What is no number becomes the zero that was proved, without a derivative, as on the side that the function takes.

Of products, only those with what was divided or called for are looked at: numbers out of memory are taken for finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jax_enzyme.analysis.equality import KNOWN, compared, holds_at_equality
from jax_enzyme.analysis.shortcuts import Choice, Shortcuts
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantInt, Value, is_zero

_Users = Mapping[Value, Sequence[tuple[I.Instruction, int]]]


def keep_zeros(
    shortcuts: Shortcuts, function: Function, comparison: I.Instruction, copies: Mapping[Value, Value]
) -> None:
    """Makes such quotients and products zeros in the copy of a function in which a shortcut is still asked for."""
    found = compared(comparison)
    if found is None or not isinstance(comparison, I.Compare) or not is_zero(found[1]):
        return
    users = uses(function)
    zeros = _zeros(found[0], users)
    for choice in shortcuts.choices(comparison).choices:
        equal = _Equal(comparison, choice, copies)
        if isinstance(choice.instruction, I.CondBranch):
            general = [i for block in shortcuts.general_side(choice) for i in block.instructions]
        else:
            general = [] if choice.facts else _chosen(choice, users)  # facts may be found out later than quotients
        for instruction in general:
            index = _other(instruction, zeros)
            if index is not None:
                _keep_zero(instruction, index, shortcuts.block_of(instruction), equal)


def _chosen(choice: Choice, users: _Users) -> list[I.Instruction]:
    """What is computed for the general side of a select alone."""
    found: dict[Value, None] = {choice.instruction: None}
    work = [choice.instruction.operands[2 if choice.at_equality else 1]]
    while work:
        value = work.pop()
        if isinstance(value, I.Instruction) and all(user in found for user, _ in users[value]):
            found[value] = None
            work += value.operands
    return [i for i in found if isinstance(i, I.Instruction)]


def _zeros(value: Value, users: _Users) -> set[Value]:
    """What is zero where a value is, as long as all else is finite."""
    found = set[Value]()
    work = [value]
    if isinstance(value, I.Instruction) and _is_size(value):
        work.append(value.operands[0])
    while work:
        here = work.pop()
        found.add(here)
        for user, index in users.get(here, ()):
            product = user.opcode in ("fmul", "fneg", "fpext", "fptrunc") or (user.opcode == "fdiv" and index == 0)
            if user not in found and (product or _is_size(user)):
                work.append(user)
    return found


def _is_size(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.CallBase) and instruction.callee.name.startswith("llvm.fabs")


def _other(instruction: I.Instruction, zeros: set[Value]) -> int | None:
    """Which operand is what zero is divided by, or multiplied with, where that may be no number."""
    if not isinstance(instruction.type, T.FloatType) or instruction.opcode not in ("fdiv", "fmul"):
        return None
    operands = instruction.operands
    if instruction.opcode == "fdiv":
        return 1 if operands[0] in zeros and not isinstance(operands[1], Constant) else None
    for index, other in enumerate(operands):
        made = isinstance(other, I.CallBase) or (isinstance(other, I.BinaryOp) and other.opcode == "fdiv")
        if made and other not in zeros and operands[1 - index] in zeros:
            return index
    return None


@dataclass(frozen=True, eq=False)
class _Equal:
    """The condition, in the copy, that a choice is made by a comparison that holds."""

    comparison: I.Compare
    choice: Choice
    copies: Mapping[Value, Value]

    def build(self, at: Builder) -> Value:
        left, right = (self.copies.get(v, v) for v in self.comparison.operands)
        condition = _known(at.fcmp(self.comparison.predicate, left, right))
        facts = ((condition, holds_at_equality(self.comparison)), *self._facts())
        met = [value if holds else at.binary("xor", value, ConstantInt(T.I1, 1)) for value, holds in facts]
        for more in met[1:]:
            met[0] = at.binary("and", met[0], more)
        return met[0]

    def _facts(self) -> Iterator[tuple[Value, bool]]:
        return ((self.copies.get(fact, fact), holds) for fact, holds in self.choice.facts)


def _keep_zero(original: I.Instruction, index: int, block: BasicBlock, equal: _Equal) -> None:
    instruction = equal.copies[original]
    assert isinstance(instruction, I.Instruction)
    at, other = Builder(BasicBlock()), instruction.operands[index]
    divides = instruction.opcode == "fdiv"
    bad = at.binary("and", equal.build(at), _is_no_divisor(at, other) if divides else _is_not_finite(at, other))
    for n, operand in enumerate(instruction.operands):
        instead = const_float(operand.type, 1.0 if divides and n == index else 0.0)
        instruction.operands[n] = at.select(bad, instead, operand)
    _insert(at, block, instruction, equal)


def _is_no_divisor(at: Builder, value: Value) -> Value:
    return _known(at.fcmp("ueq", value, const_float(value.type, 0.0)))


def _is_not_finite(at: Builder, value: Value) -> Value:
    away = at.binary("fsub", value, value)  # an infinity less itself is no number either
    return _known(at.fcmp("uno", away, away))


def _known(comparison: Value) -> Value:
    assert isinstance(comparison, I.Instruction)
    comparison.metadata = [*comparison.metadata, KNOWN]
    return comparison


def _insert(at: Builder, block: BasicBlock, instruction: I.Instruction, equal: _Equal) -> None:
    here = equal.copies[block]
    assert isinstance(here, BasicBlock)
    index = here.instructions.index(instruction)
    here.instructions[index:index] = at.block.instructions
