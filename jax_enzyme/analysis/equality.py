"""Comparisons for equality with exact values, or of two values: what may be a shortcut.

fcmp oeq double %x, 0.0          fcmp une double %x, %y          icmp eq i64 %bits, 0
call i1 @llvm.is.fpclass.f64(double %x, i32 96)                  icmp eq i32 %memcmp, 0
icmp ult i64 of bits, as in Rust's `is_normal`; fcmp uno (fdiv %x, %x), 0.0     (`single_values`)
icmp slt i64 of bits, 0          where the number is not above 0
fcmp ole double %x, 1e-300       with an %x that is never negative: its bound stands for 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeGuard

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.orders import Relations, sign_asked
from jax_enzyme.analysis.signs import is_clamped, is_never_negative, is_next_to_zero
from jax_enzyme.analysis.single_values import answer_at_equality, is_ordering
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, Uses, callee_name, declared_name, uses
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import Constant, ConstantFloat, ConstantSplat, Value, ZeroInitializer, int_value, is_zero

KNOWN = ("je.known", MDNode())
"""Says of a comparison that it is one of ours, which is right as it is."""


def exact_comparisons(function: Function) -> Iterator[I.Instruction]:
    """The comparisons of floating-point values for equality, with constants or with each other, and of their bits.

    Of two values, those are left out that ask which value it is, not whether two happen to be the same: a value that
    was chosen among others by their order, such as the largest of some, is mostly compared with one of these, and what
    a step made of a value with that value, to see whether the step still mattered. But for those which hold at one
    value of a number alone."""
    asked = _Asked(function)
    for instruction in function.instructions():
        if not any(k == KNOWN[0] for k, _ in instruction.metadata) and asked.is_exact(instruction):
            yield instruction


class _Asked:
    """What comparisons of a function ask."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._signs = _last_signs(function)

    @cached_property
    def _uses(self) -> Uses:
        return uses(self._function)

    @cached_property
    def _loops(self) -> Loops:
        return Loops.of(self._function)

    def is_exact(self, comparison: I.Instruction) -> bool:
        found = compared(comparison)
        if found is None:
            return _compares_bits(comparison) or comparison in self._signs or self._asks_whether_same(comparison)
        if isinstance(found[1], Constant):
            return True
        ordinary = _is_one_of(*found, self._uses) or self._ends_steps(comparison, *found)
        return not ordinary or answer_at_equality(comparison) is not None

    def _ends_steps(self, comparison: I.Instruction, value: Value, other: Value) -> bool:
        """Whether it is asked if a step still mattered: of what an iteration goes on with, or to leave a loop."""
        for after, before in ((value, other), (other, value)):
            if _is_step(after, before) and (isinstance(before, I.Phi) or self._leaves_loop(comparison)):
                return True
        return False

    def _leaves_loop(self, comparison: I.Instruction) -> bool:
        def users(value: Value) -> Iterable[I.Instruction]:
            return (user for user, _ in self._uses.get(value, ()) if value.type == T.I1)

        for user in reached([comparison], users):
            if isinstance(user, I.CondBranch):
                loop = self._loops.loop_of.get(self._loops.home[user][0])
                if loop is not None and any(target not in loop for target in user.targets):
                    return True
        return False

    def _asks_whether_same(self, comparison: I.Instruction) -> bool:
        """Whether an ordering is of the largest of some numbers and of the least of the same, `!(most > least)`, or of
        their difference and 0: whether all are the same. Not where the next one of such is chosen by it."""
        if not isinstance(comparison, I.Compare) or not _orders(comparison):
            return False
        value, other = comparison.operands
        if is_zero(other) and isinstance(value, I.BinaryOp) and value.opcode == "fsub":
            value, other = value.operands
        if isinstance(value, Constant) or isinstance(other, Constant):
            return False
        one, another = _alternatives(value), _alternatives(other)
        if not _is_never_less(value, other) and not _is_never_less(other, value):
            return False
        if value in another or other in one:
            return False
        if not (_is_chosen(value, self._uses) and _is_chosen(other, self._uses)):
            return False
        made = (u for u, _ in self._uses.get(value, ()) if isinstance(u, I.Select | I.Phi))
        return not any(other in user.operands for user in made)


def _last_signs(function: Function) -> frozenset[I.Instruction]:
    """Questions for the sign of a number that is known not to be above 0 where it matters: of `x > 0 ? a : signbit(x) ?
    b : c` the last takes c for 0 alone."""
    every = {i: sign[0] for i in function.instructions() if (sign := sign_asked(i)) is not None}
    if not every:
        return frozenset()
    known, relations = uses(function), Relations(function)
    return frozenset(
        question
        for question, number in every.items()
        if any(relations.leave_no_greater(user, index, number) for user, index in known.get(question, ()))
    )


def compared(comparison: I.Instruction) -> tuple[Value, Value] | None:
    """The value of a comparison for equality, and the constant, or the other value, that it is compared with.

    What is compared with an infinity or a NaN looks for what is not finite, where there is no derivative to miss."""
    if _zero_class(comparison) is not None:
        value = comparison.operands[0]
        return None if isinstance(value, Constant) else (value, ConstantFloat(value.type, "0.0"))
    if not isinstance(comparison, I.Compare):
        return None
    if _bounds_zero(comparison) is not None:
        value = comparison.operands[0]
        return value, ConstantFloat(value.type, "0.0")
    if comparison.predicate not in ("oeq", "ueq", "one", "une"):
        return None
    for value, other in (comparison.operands, reversed(comparison.operands)):
        if isinstance(other, ConstantFloat | ConstantSplat | ZeroInitializer) and not isinstance(value, Constant):
            return None if _is_not_finite(other) or is_clamped(value, other) else (value, other)
    value, other = comparison.operands
    return None if isinstance(value, Constant) or isinstance(other, Constant) else (value, other)


def _is_never_less(most: Value, least: Value) -> bool:
    """Whether one value may be the largest of some numbers, and another one the least of some, with one in common. Not
    so the largest of the least and the least of the largest: max(min(a, b), min(c, d)) < min(max(a, b), max(c, d))
    asks whether ranges meet."""
    below = _alternatives(least, _LARGEST)
    return any(not isinstance(v, Constant) for v in _alternatives(most, _LEAST) if v in below)


def _alternatives(value: Value, never: tuple[str, ...] = ()) -> dict[Value, None]:
    """A value, and those that it may be, by the way that control comes or by a choice: by extremes that are `never`
    meant only where they are a bound."""

    def one_of(item: Value) -> Iterable[Value]:
        if isinstance(item, I.CallBase) and (name := callee_name(item)).startswith(_EXTREMES):
            is_bound = any(isinstance(v, Constant) for v in item.arguments)
            return item.arguments if is_bound or not name.startswith(never) else ()
        return item.operands if isinstance(item, I.Phi) else item.operands[1:] if isinstance(item, I.Select) else ()

    return reached([value], one_of)


def _is_one_of(value: Value, other: Value, users: Uses) -> bool:
    """Whether it may be asked which of some numbers another one is that was chosen among them. Two that were chosen,
    the least and the largest, are compared for whether all are the same."""
    chosen = [_is_chosen(v, users) for v in (value, other)]
    return any(chosen) and not (all(chosen) and value not in _alternatives(other) and other not in _alternatives(value))


def _is_chosen(value: Value, users: Uses) -> bool:
    """Whether a value is one of several by their order, or by that of others."""
    every = _alternatives(value)
    if any(callee_name(v).startswith(_EXTREMES) for v in every):
        return True
    if any(_orders(c) for v in every if isinstance(v, I.Select) for c in reached([v.operands[0]], _conditions)):
        return True
    asked = (user for v in every for user, _ in users.get(v, ()) if _orders(user))
    return any(all(v in every for v in order.operands) for order in asked)


_LARGEST, _LEAST = ("fmax", "llvm.max"), ("fmin", "llvm.min")
_EXTREMES = (*_LARGEST, *_LEAST)


def _conditions(value: Value) -> Iterable[Value]:
    return value.operands if isinstance(value, I.BinaryOp | I.Select | I.Freeze) and value.type == T.I1 else ()


def _orders(value: Value) -> TypeGuard[I.Compare]:
    return isinstance(value, I.Compare) and is_ordering(value)


def _is_step(value: Value, other: Value) -> bool:
    """Whether a value is a sum of another one and something, `s + t == s`, or what an iteration makes of it. Of long
    expressions that is not known, which is no: they are comparisons like others, and at most warned of."""
    if isinstance(value, I.BinaryOp) and value.opcode in ("fadd", "fsub") and other in value.operands:
        return True
    if not isinstance(other, I.Phi):
        return False
    made = (v for v in _alternatives(value) if isinstance(v, I.Instruction) and isinstance(v, _ARITHMETIC))
    parts = Reached(o for v in made for o in v.operands)
    for part in parts:
        if part is other:
            return True
        if isinstance(part, (*_ARITHMETIC, I.Phi, I.Select)) and len(parts) < _MANY:
            parts.add(part.operands)
    return False


_ARITHMETIC = (I.BinaryOp, I.UnaryOp, I.Cast, I.Call)
_MANY = 2000


def _compares_bits(comparison: I.Instruction) -> bool:
    """Whether bits of numbers, or what is not finite, are asked for so that the numbers are compared for equality by
    that, or the bytes of two places in memory with each other: `memcmp(x, zeros, size) == 0`."""
    if answer_at_equality(comparison) is not None:
        return True
    if not isinstance(comparison, I.Compare) or comparison.predicate not in ("eq", "ne"):
        return False
    value, other = comparison.operands
    return int_value(other) == 0 and compared_places(value) is not None


def compared_places(call: Value) -> tuple[Value, Value] | None:
    """The two places in memory that a call compares."""
    if not isinstance(call, I.CallBase) or declared_name(call) not in ("memcmp", "bcmp"):
        return None
    return (call.operands[0], call.operands[1]) if _of_numbers(call.operands[2]) else None


def _of_numbers(length: Value) -> bool:
    """Whether so many bytes are known to be even, as those of numbers are. A text has any length: one that is compared
    in an object that holds numbers too says nothing about them."""
    match length:
        case Constant():
            number = int_value(length)
            return number is None or number % 2 == 0
        case I.Cast(opcode="zext" | "sext" | "trunc"):
            return _of_numbers(length.operands[0])
        case I.BinaryOp(opcode="shl"):
            return (int_value(length.operands[1]) or 0) > 0 or _of_numbers(length.operands[0])
        case I.BinaryOp(opcode="mul" | "and"):
            return any(map(_of_numbers, length.operands))
        case I.BinaryOp(opcode="add" | "sub"):
            return all(map(_of_numbers, length.operands))
        case _:
            return False


_EXPONENT = {"x86_fp80": slice(3, 7), "fp128": slice(19, 23)}
"""Where the text of a constant has its sign and exponent: fp128 is spelled low word first."""


def _is_not_finite(constant: Value) -> bool:
    if isinstance(constant, ConstantSplat):
        return _is_not_finite(constant.element)
    if not isinstance(constant, ConstantFloat):
        return False
    kind = str(constant.type)
    if kind in _EXPONENT:
        return int(constant.text[_EXPONENT[kind]], 16) & 0x7FFF == 0x7FFF
    return kind in ("double", "float", "half", "bfloat") and float_value(constant) is None


def _zero_class(instruction: I.Instruction) -> bool | None:
    """What `llvm.is.fpclass` answers for zeros where it tells them from all but subnormal numbers, which is what LLVM
    makes of bits that are compared with those of 0, and of bounds; None for all else."""
    asked = int_value(instruction.operands[1]) if callee_name(instruction).startswith("llvm.is.fpclass.") else None
    if asked is None or not isinstance(instruction.operands[0].type, T.FloatType):
        return None
    numbers = asked & _FINITE_CLASSES
    others = _FINITE_CLASSES & ~numbers
    for some, answer in ((numbers, True), (others, False)):
        if some & _ZERO_CLASSES and not some & ~_SMALL_CLASSES:
            return answer
    return None


_ZERO_CLASSES, _SMALL_CLASSES, _FINITE_CLASSES = 0x60, 0xF0, 0x1F8
"""Classes of `llvm.is.fpclass`: both zeros, those with the subnormal numbers, and with the normal ones."""


def _bounds_zero(comparison: I.Compare) -> bool | None:
    """What a comparison of a number that is never negative with a bound next to 0 says of 0, where it says something
    else of larger numbers; None for all else."""
    value, bound = comparison.operands
    if comparison.opcode != "fcmp" or comparison.predicate[1:] not in ("lt", "le", "gt", "ge"):
        return None
    if not is_next_to_zero(bound, value) or not is_never_negative(value):
        return None
    relation = comparison.predicate[1:]
    if is_zero(bound):
        return {"le": True, "gt": False}.get(relation)
    return relation in ("lt", "le")


def holds_at_equality(comparison: I.Instruction) -> bool:
    if not isinstance(comparison, I.Compare):
        return _zero_class(comparison) is True or answer_at_equality(comparison) is True
    if compared(comparison) is None:
        answer = answer_at_equality(comparison)
        if answer is not None:
            return answer
    sign = sign_asked(comparison)
    if sign is not None:
        return not sign[1]
    if _bounds_zero(comparison) is not None:
        return _bounds_zero(comparison) is True
    return comparison.predicate in ("oeq", "ueq", "eq") or comparison.predicate[1:] in ("le", "ge")
