"""Quotients of zero that only a derivative forms: on the general side of a shortcut, at equality.

    if (x != 0) s += x / d;       before    %q = fdiv double %x, %d         0 / 0 where d is zero as well
                                  after     %p = select i1 %bad, double 1.0, double %d
                                            %n = select i1 %bad, double 0.0, double %x
                                            %q = fdiv double %n, %p         %bad: x is zero, and so is d

That a comparison is a shortcut is proved for finite numbers: zero times anything, or divided by it, is zero. Where that
is no number, the function, which does not come there, has values, and goes its ways by them: so must its derivative.
What is no number becomes the zero that was proved, without a derivative, as on the side that the function takes.

Of products, fused or not, only those with what comes from a division or a call are looked at: numbers out of memory are
taken for finite. Where `x == y` or `x == 1.5` is asked, zero is what the one is less the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeGuard

from jax_enzyme.analysis.equality import KNOWN, compared, holds_at_equality
from jax_enzyme.analysis.shortcuts import Choice, Shortcuts
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float
from jax_enzyme.ir.module import Function, Uses, callee_name, is_fused, uses
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantInt, Value, is_zero

_ARITHMETIC = (I.BinaryOp, I.UnaryOp, I.Cast)


def keep_zeros(
    shortcuts: Shortcuts, function: Function, comparison: I.Instruction, copies: Mapping[Value, Value]
) -> None:
    """Makes such quotients and products zeros in the copy of a function in which a shortcut is still asked for."""
    found = compared(comparison)
    if found is None or not isinstance(comparison, I.Compare):
        return
    users = uses(function)
    choices = shortcuts.choices(comparison).choices
    for choice in choices:
        zeros = _zeros([found, *_equal_too(choice)], users)
        equal = _Equal(comparison, choice, copies)
        if isinstance(choice.instruction, I.CondBranch):
            general = [i for block in shortcuts.general_side(choice) for i in block.instructions]
        else:
            alike = [c for c in choices if isinstance(c.instruction, I.Select) and c.facts == choice.facts]
            if alike[0] is not choice:
                continue
            general = _chosen(alike, users)
            if choice.needed or _is_size(found[0]):
                general = _put_off(alike, general, shortcuts, users, copies)
        for instruction in general:
            index = _other(instruction, zeros)
            if index is not None:
                _keep_zero(instruction, index, shortcuts.block_of(instruction), equal)


def _chosen(choices: Sequence[Choice], users: Uses) -> list[I.Instruction]:
    """What is computed for the general sides of selects alone."""
    ends = {(c.instruction, 2 if c.at_equality else 1) for c in choices}
    found: dict[I.Instruction, None] = {}
    work = [select.operands[index] for select, index in ends]
    while work:
        value = work.pop()
        alone = all(user in found or (user, index) in ends for user, index in users.get(value, ()))
        if isinstance(value, I.Instruction) and value not in found and alone:
            found[value] = None
            work += value.operands
    return list(found)


def _put_off(
    choices: Sequence[Choice],
    chosen: Sequence[I.Instruction],
    shortcuts: Shortcuts,
    users: Uses,
    copies: Mapping[Value, Value],
) -> list[I.Instruction]:
    """The arithmetic among these that only others of it and selects of its block use, moved, in the copy, to the first
    of these: facts, and the size of a number, may be found out later than quotients."""
    block = shortcuts.block_of(choices[0].instruction)
    selects = [c.instruction for c in choices if shortcuts.block_of(c.instruction) is block]
    moved = {i for i in chosen if shortcuts.block_of(i) is block and (is_fused(i) or isinstance(i, _ARITHMETIC))}
    while stay := {i for i in moved if any(user not in moved and user not in selects for user, _ in users[i])}:
        moved -= stay
    here, first = copies[block], copies[min(selects, key=block.instructions.index)]
    assert isinstance(here, BasicBlock) and isinstance(first, I.Instruction)
    end = here.instructions.index(first)
    late: dict[Value, None] = {copies[i]: None for i in moved}
    for instruction in here.instructions[:end]:  # what was put in for another comparison goes along
        if not late.keys().isdisjoint(instruction.operands):
            late[instruction] = None
    before = here.instructions[:end]
    here.instructions[:end] = [*(i for i in before if i not in late), *(i for i in before if i in late)]
    return [i for i in block.instructions if i in moved]


def _equal_too(choice: Choice) -> Iterator[tuple[Value, Value]]:
    """What else is known to be equal: `if (x != 0 || y != 0)` skips where both are zero."""
    for fact, holds in choice.needed:
        found = compared(fact) if isinstance(fact, I.Compare) and holds == holds_at_equality(fact) else None
        if found is not None:
            yield found


def _zeros(equal: Iterable[tuple[Value, Value]], users: Uses) -> set[Value]:
    """What is zero where values are constants, or other values, as long as all else is finite."""
    found = Reached[Value]([])
    for value, other in equal:
        found.add([value] if _is_zero(other) else _differences(value, other, users))
        if _is_size(value) and _is_zero(other):
            found.add(value.operands[:1])
    for here in found:
        found.add([user for user, index in users.get(here, ()) if _is_zero_too(user, index, found.all.keys())])
    return set(found.all)


def _is_zero(value: Value) -> bool:
    return is_zero(value) or float_value(value) == 0


def _differences(value: Value, constant: Value, users: Uses) -> list[Value]:
    """What a constant, or another value, is taken from a value, or the value from it."""
    found: list[Value] = []
    for user, index in users.get(value, ()):
        other = user.operands[1 - index] if isinstance(user, I.BinaryOp) else None
        numbers = [float_value(v) for v in (other, constant)]
        negated = None not in numbers and numbers[0] == -(numbers[1] or 0)
        same = other is constant or (None not in numbers and numbers[0] == numbers[1])
        if (user.opcode == "fsub" and same) or (user.opcode == "fadd" and negated):
            found.append(user)
    return found


def _is_zero_too(user: I.Instruction, index: int, zeros: Set[Value]) -> bool:
    if is_fused(user):
        return (user.operands[2] in zeros or _is_zero(user.operands[2])) and not zeros.isdisjoint(user.operands[:2])
    if user.opcode in ("fadd", "fsub"):
        return all(v in zeros or _is_zero(v) for v in user.operands)
    return (
        user.opcode in ("fmul", "fneg", "fpext", "fptrunc") or (user.opcode == "fdiv" and index == 0) or _is_size(user)
    )


def _is_size(value: Value) -> TypeGuard[I.CallBase]:
    return callee_name(value).startswith("llvm.fabs")


def _other(instruction: I.Instruction, zeros: set[Value]) -> int | None:
    """Which operand is what zero is divided by, or multiplied with, where that may be no number."""
    if not isinstance(instruction.type, T.FloatType):
        return None
    operands = instruction.operands[:2]
    if instruction.opcode == "fdiv":
        return 1 if operands[0] in zeros and not isinstance(operands[1], Constant) else None
    if instruction.opcode != "fmul" and not is_fused(instruction):
        return None
    for index, other in enumerate(operands):
        if other not in zeros and operands[1 - index] in zeros and _is_made(other):
            return index
    return None


def _is_made(value: Value) -> bool:
    """Whether a number comes from a division or a call by arithmetic."""
    through = (*_ARITHMETIC, I.CallBase, I.Select)
    made = reached([value], lambda v: v.operands if isinstance(v, through) and not _is_source(v) else ())
    return any(map(_is_source, made))


def _is_source(value: Value) -> bool:
    return isinstance(value, I.Instruction) and (
        value.opcode == "fdiv" or (isinstance(value, I.CallBase) and not is_fused(value))
    )


@dataclass(frozen=True, eq=False)
class _Equal:
    """The condition, in the copy, that a choice is made by a comparison that holds."""

    comparison: I.Compare
    choice: Choice
    copies: Mapping[Value, Value]

    def build(self, at: Builder) -> Value:
        facts = ((self.comparison, holds_at_equality(self.comparison)), *self.choice.needed)
        met: Value = ConstantInt(T.I1, 1)
        for fact, holds in facts:
            value = self._again(at, fact)
            met = at.binary("and", met, value if holds else at.binary("xor", value, ConstantInt(T.I1, 1)))
        return met

    def _again(self, at: Builder, fact: Value) -> Value:
        """A condition as the function asks it: comparisons in it may be decided in the copy."""
        match fact:
            case I.Compare(opcode="fcmp"):
                left, right = (self.copies.get(v, v) for v in fact.operands)
                return _known(at.fcmp(fact.predicate, left, right))
            case I.BinaryOp(opcode="and" | "or" | "xor"):
                left, right = (self._again(at, v) for v in fact.operands)
                return at.binary(fact.opcode, left, right)
            case I.Select():
                condition, then, other = (self._again(at, v) for v in fact.operands)
                return at.select(condition, then, other)
            case _:
                return self.copies.get(fact, fact)


def _keep_zero(original: I.Instruction, index: int, block: BasicBlock, equal: _Equal) -> None:
    instruction, here = equal.copies[original], equal.copies[block]
    assert isinstance(instruction, I.Instruction) and isinstance(here, BasicBlock)
    at, other = Builder.before(here, instruction), instruction.operands[index]
    divides = instruction.opcode == "fdiv"
    bad = at.binary("and", equal.build(at), _is_no_divisor(at, other) if divides else _is_not_finite(at, other))
    for n, operand in enumerate(instruction.operands[:2]):
        instead = const_float(operand.type, 1.0 if divides and n == index else 0.0)
        instruction.operands[n] = at.select(bad, instead, operand)


def _is_no_divisor(at: Builder, value: Value) -> Value:
    return _known(at.fcmp("ueq", value, const_float(value.type, 0.0)))


def _is_not_finite(at: Builder, value: Value) -> Value:
    away = at.binary("fsub", value, value)  # an infinity less itself is no number either
    return _known(at.fcmp("uno", away, away))


def _known(comparison: Value) -> Value:
    assert isinstance(comparison, I.Instruction)
    comparison.metadata = [*comparison.metadata, KNOWN]
    return comparison
