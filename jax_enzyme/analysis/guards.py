"""Branch conditions that are known to hold at a block or on an edge."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.values import BasicBlock, Value, int_value

INVERSE = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip
SWAPPED = {
    "eq": "eq", "ne": "ne", "slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle",
    "ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule",
}  # fmt: skip
"""What holds of two numbers the other way round."""
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


def taken(source: BasicBlock, target: BasicBlock) -> tuple[Value, bool] | None:
    """What was asked where control goes from one block to another, and the answer."""
    branch = source.terminator
    if not isinstance(branch, I.CondBranch) or branch.targets[0] is branch.targets[1]:
        return None
    return branch.operands[0], branch.targets[0] is target


def _of_branch(source: BasicBlock, target: BasicBlock) -> list[Condition]:
    asked = taken(source, target)
    return [] if asked is None else conjuncts(*asked, source)[0]


def conjuncts(value: Value, truth: bool, block: BasicBlock) -> tuple[list[Condition], bool]:
    """Integer comparisons that hold if `value` is `truth`, and whether they say all that it says."""
    parts = list(known_with(value, truth))
    found = [
        Condition(part.predicate if holds else INVERSE[part.predicate], part.operands[0], part.operands[1], block)
        for part, holds in parts
        if isinstance(part, I.Compare) and part.opcode == "icmp"
    ]
    return found, len(found) == len(parts)


def known_with(condition: Value, truth: bool) -> Iterator[tuple[Value, bool]]:
    """The conditions that are known with one: both sides of a conjunction that holds, of a disjunction that does not
    (`and`, `or`, `select`)."""
    work = [(condition, truth)]
    while work:
        value, holds = work.pop()
        match value:
            case I.BinaryOp(opcode="xor") if int_value(value.operands[1]) is not None:
                work.append((value.operands[0], holds != bool(int_value(value.operands[1]))))
            case I.BinaryOp(opcode="and" | "or") if (value.opcode == "and") == holds:
                work += [(v, holds) for v in reversed(value.operands)]
            case I.Select() if holds and int_value(value.operands[2]) == 0:
                work += [(value.operands[1], True), (value.operands[0], True)]
            case I.Select() if not holds and int_value(value.operands[1]) not in (None, 0):
                work += [(value.operands[2], False), (value.operands[0], False)]
            case _:
                yield value, holds
