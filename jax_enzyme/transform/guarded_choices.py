"""What marked loops look for under a condition, as a choice by one comparison (`transform.nested_choices`).

    before    %better = fcmp ogt double %a, %best           after    %x = select i1 %g, double %a, double -inf
              %k = select i1 %g, i1 %better, i1 false                %k = fcmp ogt double %x, %best
              %b = select i1 %k, double %a, double %best             %b = select i1 %k, double %x, double %best

The worst of all numbers is better than none, where of equals the first one counts; so it is for integers. Arms without
code that only choose become selects before:

    before    br i1 %better, label %arm, label %next        after    %b = select i1 %better, double %a, double %best
              next: %b = phi [ %a, %arm ], [ %best, %before ]        br label %next
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import inf

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value, is_zero
from jax_enzyme.transform.rewriting import go_one_way, phis, remove_unreachable, replace_operands

_TURNED = {"gt": "lt", "lt": "gt"}


@dataclass(frozen=True, eq=False)
class Guarded:
    """A `choice` of the `better` one of two by `both` a `guard` and a comparison of these, `relation` what it asks."""

    choice: I.Select
    both: I.Instruction
    guard: Value
    relation: str


def are_guarded(blocks: Collection[BasicBlock]) -> bool:
    return any(_arm(block) or any(_guarded(block)) for block in blocks)


def drop_guards(root: Function, blocks: Collection[BasicBlock]) -> None:
    """Takes guards into what is compared, in place."""
    home = {i: block for block in root.blocks for i in block.instructions}
    replaced: dict[Value, Value] = {}
    for found in [f for block in blocks for f in _guarded(block)]:
        if found.both in replaced:
            continue
        at = Builder.before(home[found.both], found.both)
        candidate, best = found.choice.operands[1:]
        other = at.select(found.guard, candidate, worst(candidate.type, found.relation))
        compare = at.fcmp if T.is_float(candidate.type) else at.icmp
        found.choice.operands[1] = other
        replaced[found.both] = compare(found.relation, other, best)
    replace_operands((i for b in root.blocks for i in b.instructions), replaced)


def join_arms(root: Function, blocks: Collection[BasicBlock]) -> None:
    """Makes selects of arms, in place."""
    for block in list(blocks):
        found = _arm(block)
        if found is None:
            continue
        arm, after = found
        condition, is_arm_first = block.terminator.operands[0], block.terminator.targets[0] is arm
        at = Builder.at_end(block)
        for phi in phis(after):
            ways = {b: v for v, b in phi.incoming}
            two = (ways[arm], ways[block]) if is_arm_first else (ways[block], ways[arm])
            chosen = ways[block] if two[0] is two[1] else at.select(condition, *two)
            phi.incoming = [(chosen if b is block else v, b) for v, b in phi.incoming]
        go_one_way(block, after)
    remove_unreachable(root)


def _arm(block: BasicBlock) -> tuple[BasicBlock, BasicBlock] | None:
    """The empty arm behind a block that chooses by what it compares, and the block behind both."""
    branch = block.terminator
    if len(branch.targets) != 2 or not isinstance(branch.operands[0], I.Compare):
        return None
    for arm, after in (branch.targets, branch.targets[::-1]):
        if arm is after or len(arm.instructions) != 1 or arm.successors != [after]:
            continue
        pairs = [dict((b, v) for v, b in phi.incoming) for phi in phis(after)]
        if any({w[arm], w[block]} == set(branch.operands[0].operands) for w in pairs if arm in w):
            return arm, after
    return None


def _guarded(block: BasicBlock) -> Iterator[Guarded]:
    for choice in (i for i in block.instructions if isinstance(i, I.Select)):
        both, better, best = choice.operands
        parts = _conjunction(both) if isinstance(better.type, T.FloatType | T.IntType) else None
        for compared, guard in (parts, parts[::-1]) if parts else ():
            if not isinstance(compared, I.Compare) or set(compared.operands) != {better, best}:
                continue
            turned = compared.operands[0] is not better
            sign, relation = compared.predicate[:-2], compared.predicate[-2:]
            if relation in _TURNED and sign in ("o", "s", "u") and (compared.opcode == "icmp" or sign == "o"):
                assert isinstance(both, I.Instruction)
                yield Guarded(choice, both, guard, sign + (_TURNED[relation] if turned else relation))
                break


def _conjunction(value: Value) -> tuple[Value, Value] | None:
    match value:
        case I.BinaryOp(opcode="and", operands=[x, y]):
            return x, y
        case I.Select(operands=[x, y, other]) if is_zero(other):
            return x, y
        case _:
            return None


def worst(type_: T.Type, relation: str) -> Value:
    """What is better, as a relation says, than nothing."""
    greater = "g" in relation
    if not isinstance(type_, T.IntType):
        return const_float(type_, -inf if greater else inf)
    low = -(1 << type_.bits - 1) if relation[0] == "s" else 0
    return const_int(type_, low if greater else low + (1 << type_.bits) - 1)
