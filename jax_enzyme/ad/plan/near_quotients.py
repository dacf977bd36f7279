"""Quotients that the reverse sweep computes again, and of which a number close by will do.

    forward    z = x / d;  s += z * z          reverse    z_ += 2 * s_ * z;  x_ += z_ / d

The cotangent is divided by `d` by way of `1 / d`, which several quotients share, and which a loop over `x` alone has in
front of it. So has `z`, if it is made again as `x * (1 / d)`, one rounding from what the forward sweep had. That does
no harm where `z` is nothing but a factor of what the reverse sweep adds up: an error of one unit in the last place
stays one. It may do harm where something is added to it (a difference may be small), where a function of it is
computed (a sine of large numbers), where it is compared, or where it becomes an integer: there it is divided again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from jax_enzyme.ad.plan.recipe import Forward
from jax_enzyme.ad.plan.recipes import Recipes, work
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Constant, Value

_COST = 2.0
"""Of such a quotient, where the reciprocal is made in front of a loop."""
_SCALING = frozenset("fmul fdiv fneg fpext fptrunc phi select".split())
"""What makes of factors another one, or hands one on."""
_LINEAR = frozenset("fadd fsub fcmp store".split())
"""What the adjoint of which does not read its operands."""
_CALLED = frozenset("fma sqrt".split())


def shared_divisions(recipes: Recipes, read: Collection[Value]) -> dict[Value, float]:
    """The quotients that may be had by a reciprocal which is at hand, and what they cost: of a number that the
    innermost loop does not change, or that the adjoint of the quotient divides by as well, since the reverse sweep
    reads it (`read`)."""
    found: dict[Value, float] = {}
    for block in recipes.code.cfg.rpo:
        loop = recipes.code.loop_of(block)
        for quotient in block.instructions:
            if quotient.opcode != "fdiv" or quotient.type not in (T.DOUBLE, T.FLOAT):
                continue
            dividend, divisor = quotient.operands
            stays = loop is not None and recipes.block_of.get(divisor) not in loop.blocks
            if not isinstance(divisor, Constant) and not isinstance(dividend, Constant) and (stays or divisor in read):
                found[quotient] = _COST if stays else work(quotient, recipes.rules)
    return found


def exact(recipes: Recipes, recomputed: Collection[Value]) -> set[Value]:
    """Of what the reverse sweep computes again, that which has to be what the forward sweep had."""
    users = uses(recipes.code.function)
    readers: dict[Value, list[Value]] = {}
    for value in recomputed:
        recipe = recipes.of(value)
        for operand in recipe.operands if recipe is not None else ():
            readers.setdefault(operand, []).append(value)

    def is_exact(value: Value) -> bool:
        if not all(_is_lenient(user, recipes) for user, _ in users.get(value, ())):
            return True
        return not all(_scales(reader, recipes) for reader in readers.get(value, ()))

    def made_of(value: Value) -> Iterable[Value]:
        recipe = recipes.of(value)
        return (operand for operand in recipe.operands if operand in readers) if recipe is not None else ()

    return set(reached(filter(is_exact, recomputed), made_of))


def _is_lenient(user: I.Instruction, recipes: Recipes) -> bool:
    """Whether the adjoint of an instruction has its operands as factors at most."""
    return user.opcode in _SCALING or user.opcode in _LINEAR or _called(user, recipes) in _CALLED


def _scales(reader: Value, recipes: Recipes) -> bool:
    """Whether a value that is computed again is as close as what it is made of."""
    if not isinstance(reader, I.Instruction) or reader.type not in (T.DOUBLE, T.FLOAT):
        return False
    forwarded = isinstance(recipes.of(reader), Forward)
    return forwarded or reader.opcode in _SCALING or _called(reader, recipes) == "sqrt"


def _called(instruction: I.Instruction, recipes: Recipes) -> str:
    rule = rule_of(instruction, recipes.rules) if isinstance(instruction, I.CallBase) else None
    return "" if rule is None else rule.name
