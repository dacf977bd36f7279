"""Shadows that reverse leaves as they are, and such as it overwrites, where it would set them to zero otherwise.

After the reverse of some stores nobody asks for the cotangent of their place.

    forward   for i: y[i] = f(x[i])      reverse   for i: x_[i] += f'(x[i]) * y_[i]; y_[i] = 0
                                         so        for i: x_[i] += f'(x[i]) * y_[i]

The zero is for what came before: what a store overwrites has no part in the result. Where the reverse of nothing that
came before reads the shadow at that place, and nobody wants what is left of the shadow in the end, there is nobody to
tell. A cotangent that a pullback only reads is one that XLA need not copy for it (`xla_ffi.call`).

Of numbers that are updated in place the reverse overwrites the cotangent, too, instead of adding to a zero.

    forward   %a = load %p; store %x, %q; store %b, %p     reverse   %t = %p_; %p_ = 0; (%q); %p_ += adjoint of %a
                                                           so        %t = %p_;          (%q); %p_  = adjoint of %a

Nothing between the load and the store may have a reverse that touches that place. LLVM, which does not know that `%q`
is another one, would leave the zero and the addition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.objects import MemoryObject, call_effect, is_defined_call
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.rules.effects import Effect

_MANY_PAIRS = 1024
"""So many pairs of what overwrites and what asks are looked at, for one object."""
_MANY = 64
"""So many accesses are looked at between a load and a store."""


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


def updates(recipes: Recipes, facts: Facts, late: Collection[Value]) -> frozenset[I.Instruction]:
    """The loads whose reverse overwrites a cotangent, and the stores that leave it for them. The adjoints of `late`
    loads are added behind their loops."""
    if recipes.execution is not ALONE or not recipes.choices.later_writes or facts.activity.has_codes:
        return frozenset()
    found: set[I.Instruction] = set()
    for block in recipes.code.cfg.rpo:
        touching = (i for i in block.instructions if recipes.memory.at(i) or is_defined_call(i))
        reversed_ = [i for i in touching if facts.has_adjoint(i)]
        for position, store in enumerate(reversed_):
            if isinstance(store, I.Store) and I.is_plain(store) and T.is_float(store.operands[0].type):
                before = reversed_[max(0, position - _MANY) : position]
                load = _updated(store, before, block, recipes)
                if load is not None and load not in late:
                    found |= {load, store}
    return frozenset(found)


def _updated(store: I.Store, before: list[I.Instruction], block: BasicBlock, recipes: Recipes) -> I.Load | None:
    """The load of the place of a store that nothing in between touches."""
    value, pointer = store.operands
    between: list[I.Instruction] = []
    for instruction in reversed(before):
        if isinstance(instruction, I.Load) and instruction.operands[0] is pointer:
            is_its = instruction.type == value.type and I.is_plain(instruction)
            return instruction if is_its and all(_misses(i, store, block, recipes) for i in between) else None
        between.append(instruction)
    return None


def _misses(instruction: I.Instruction, store: I.Store, block: BasicBlock, recipes: Recipes) -> bool:
    """Whether an instruction of the same block touches nothing of the place of a store."""
    (own,) = recipes.memory.at(store)
    touching = recipes.memory.at(instruction)
    return not is_defined_call(instruction) and all(recipes.alias.miss_in_one_run(a, own, block) for a in touching)
