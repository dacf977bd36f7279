"""Numbers that are updated in place: the reverse overwrites their cotangent, too, instead of adding to a zero.

    forward   %a = load %p; store %x, %q; store %b, %p     reverse   %t = %p_; %p_ = 0; (%q); %p_ += adjoint of %a
                                                           so        %t = %p_;          (%q); %p_  = adjoint of %a

Nothing between the load and the store may have a reverse that touches that place. LLVM, which does not know that `%q`
is another one, would leave the zero and the addition.
"""

from __future__ import annotations

from collections.abc import Collection

from jax_enzyme.ad.facts.functions import ALONE, Facts
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.objects import is_defined_call
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.values import BasicBlock, Value

_MANY = 64
"""So many accesses are looked at between a load and a store."""


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
