"""Whether the first digits of a number may be the node of a table, to which the rest is added.

    %h = the number with the first seven digits of %x             a rounded %x, as in a short format, or a node
    %k = fptosi double %h to i64;  %f = load (table + %k)         of which the table says what belongs to it
    %r = fsub double %x, %h                                       the rest, which is all that varies then

The derivative goes through %h as through a conversion to a shorter format: right where there is no rest, and where what
is computed of both is smooth in both. Where something among many is chosen by %h, it is smooth in the rest alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.flow import flow, holds_float, rule_of
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, Value
from jax_enzyme.rules.table import standard


def is_used_otherwise(number: Value, users: Uses) -> bool:
    """Whether a number is used as a whole, by more than comparisons and what takes it for an integer."""
    if isinstance(number, Argument):
        return True  # by the caller
    same = [number]
    if isinstance(number, I.Load):
        same = [u for u, _ in users.get(number.operands[0], ()) if isinstance(u, I.Load) and holds_float(u.type)]
    return any(
        not isinstance(user, I.Compare) and (user.opcode != "bitcast" or holds_float(user.type))
        for value in same
        for user, _ in users.get(value, ())
    )


def choose_among_many(function: Function, numbers: Iterable[Value], users: Uses) -> bool:
    """Whether what is computed of some numbers steps, other than where it is compared with a few constants."""
    start = dict.fromkeys(numbers)
    found = Reached[Value](start)
    for value in found:
        for user, index in users.get(value, ()):
            match user:
                case I.Compare(predicate="uno" | "ord"):
                    pass
                case I.Compare():
                    if not all(_is_made_of(v, start) for v in user.operands):
                        return True
                case I.Store():
                    found.add(i for i in function.instructions() if isinstance(i, I.Load) and holds_float(i.type))
                case I.Cast(opcode="bitcast") if not holds_float(user.type):
                    pass  # its digits are followed
                case I.Return():
                    return True
                case _:
                    if index not in flow(user, standard()) or _is_unknown(user):
                        return True
                    found.add([user])
    return False


def _is_made_of(value: Value, start: Iterable[Value]) -> bool:
    """Whether a value is made of some, and of constants, alone."""
    found = Reached[Value]([value], lambda v: v not in start and not isinstance(v, Constant | BasicBlock))
    for item in found:
        if not isinstance(item, I.Instruction) or isinstance(item, I.Phi | I.Load):
            return False
        found.add(item.operands)
    return True


def _is_unknown(user: I.Instruction) -> bool:
    return isinstance(user, I.CallBase) and rule_of(user, standard()) is None
