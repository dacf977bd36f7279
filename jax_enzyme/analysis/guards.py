"""Branch conditions that are known to hold at a block or on an edge."""

from __future__ import annotations

from dataclasses import dataclass

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import BasicBlock, Value, int_value

INVERSE = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip
MAX_CONDITIONS = 24
"""Those further away are left out: what holds is then known to hold less narrowly."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`x predicate y` holds, as tested by the branch that ends `block`."""

    predicate: str
    x: Value
    y: Value
    block: BasicBlock


class Guards:
    """The conditions of the branches that dominate a place, the nearest first, `MAX_CONDITIONS` at most."""

    def __init__(self, cfg: Cfg, dominators: Dominators) -> None:
        self._cfg = cfg
        self._dominators = dominators
        self._at: dict[BasicBlock, tuple[Condition, ...]] = {}

    def at(self, block: BasicBlock) -> tuple[Condition, ...]:
        """What holds whenever control is in `block`."""
        path: list[BasicBlock] = []
        place: BasicBlock | None = block
        while place is not None and place not in self._at:
            path.append(place)
            place = self._dominators.idom.get(place)
        known = self._at[place] if place is not None else ()
        for place in reversed(path):
            preds = self._cfg.reachable_preds(place)
            if len(preds) == 1:
                known = (*_of_branch(preds[0], place), *known)[:MAX_CONDITIONS]
            self._at[place] = known
        return known

    def on_edge(self, source: BasicBlock, target: BasicBlock) -> tuple[Condition, ...]:
        """What holds whenever control goes from `source` to `target`."""
        return (*_of_branch(source, target), *self.at(source))


def _of_branch(source: BasicBlock, target: BasicBlock) -> list[Condition]:
    branch = source.terminator
    if not isinstance(branch, I.CondBranch) or branch.targets[0] is branch.targets[1]:
        return []
    known, _ = conjuncts(branch.operands[0], branch.targets[0] is target, source)
    return known


def conjuncts(value: Value, truth: bool, block: BasicBlock) -> tuple[list[Condition], bool]:
    """Integer comparisons that hold if `value` is `truth`, and whether they say all that it says."""
    match value:
        case I.Compare(opcode="icmp"):
            predicate = value.predicate if truth else INVERSE[value.predicate]
            return [Condition(predicate, value.operands[0], value.operands[1], block)], True
        case I.BinaryOp(opcode="xor") if int_value(value.operands[1]) == 1:
            return conjuncts(value.operands[0], not truth, block)
        case _:
            parts = _parts(value, truth)
    if parts is None:
        return [], False
    left, left_whole = conjuncts(parts[0], truth, block)
    right, right_whole = conjuncts(parts[1], truth, block)
    return left + right, left_whole and right_whole


def _parts(value: Value, truth: bool) -> tuple[Value, Value] | None:
    """The sides of a conjunction that is true or a disjunction that is false (`and`, `or`, `select`)."""
    match value:
        case I.BinaryOp(opcode="and") if truth:
            return value.operands[0], value.operands[1]
        case I.BinaryOp(opcode="or") if not truth:
            return value.operands[0], value.operands[1]
        case I.Select() if truth and int_value(value.operands[2]) == 0:
            return value.operands[0], value.operands[1]
        case I.Select() if not truth and int_value(value.operands[1]) == 1:
            return value.operands[0], value.operands[2]
        case _:
            return None
