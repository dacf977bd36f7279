"""Stores after whose reverse nobody asks for the cotangent of their place: its shadow may stay as it is.

    forward   for i: y[i] = f(x[i])      reverse   for i: x_[i] += f'(x[i]) * y_[i]; y_[i] = 0
                                         so        for i: x_[i] += f'(x[i]) * y_[i]

The zero is for what came before: what a store overwrites has no part in the result. Where the reverse of nothing that
came before reads the shadow at that place, and nobody wants what is left of the shadow in the end, there is nobody to
tell. A cotangent that a pullback only reads is one that XLA need not copy for it (`xla_ffi.call`).
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.objects import MemoryObject, call_effect, is_defined_call
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import Constant
from jax_enzyme.rules.effects import Effect

_MANY_PAIRS = 1024
"""So many pairs of what overwrites and what asks are looked at, for one object."""


def spent_writes(recipes: Recipes, facts: Facts) -> frozenset[I.Instruction]:
    """The stores, and fills, of a function that leave the shadow of their place as it is."""
    function = recipes.code.function
    inner = any(is_defined_call(i) and facts.has_adjoint(i) for i in function.instructions())
    if recipes.execution is not ALONE or not recipes.is_root or inner or not recipes.choices.later_writes:
        return frozenset()
    return frozenset(i for item in facts.dropped for i in _spent(item, recipes, facts))


def _spent(item: MemoryObject, recipes: Recipes, facts: Facts) -> Iterator[I.Instruction]:
    reversed_ = [a for a in recipes.memory.touching(item) if facts.has_adjoint(a.instruction)]
    left = [a for a in reversed_ if _overwrites(a) and a.objects == frozenset((item,))]
    asking = [a.instruction for a in reversed_ if _asks(a, facts)]
    if len(left) * len(asking) > _MANY_PAIRS:
        return
    for write in left:
        if all(recipes.alias.later.miss(before, write) for before in asking):
            yield write.instruction


def _overwrites(access: Access) -> bool:
    return isinstance(access.instruction, I.Store) or _fills(access)


def _fills(access: Access) -> bool:
    return isinstance(access.instruction, I.CallBase) and call_effect(access.instruction) is Effect.MEMORY_SET


def _asks(access: Access, facts: Facts) -> bool:
    """Whether the reverse of an access may read the shadow."""
    if not isinstance(access.instruction, I.Store):
        return not _fills(access)
    value = access.instruction.operands[0]
    return not isinstance(value, Constant) and (not T.is_float(value.type) or facts.activity.value(value))
