"""What LLVM computes on each way to a place is computed at that place.

    before    then:   %a = zext i32 %t to i64               after    join:   %p = zext i32 %t to i64
              else:   %b = zext i32 %t to i64
              join:   %p = phi i64 [ %a, %then ], [ %b, %else ]

Redundancies that are there on some ways only are taken out by computing on the others. To whoever asks whether a value
follows from the thread's number alone, the phi hides that it does: it would be kept for each thread in memory.

Two values are equal here where they are one value or one constant, or the same operation on equal values, which then
keeps the flags that all have; and a constant is equal to what it takes the place of: `7` to `zext i32 %t to i64` on a
way that only `%t == 7` takes. Operations have no effects and cannot fail, so one of them can be computed again where
the ways meet: what it is made of in the end is one value for all ways, and was computed before they parted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.folding import ARITHMETIC, evaluated
from jax_enzyme.analysis.guards import Guards
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.sameness import does_same, is_same
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.rewriting import phis, substitute

_DEPTH = 8
_PURE = (I.BinaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)


def compute_where_joined(function: Function) -> bool:
    """Changes phis of pointers and integers in a private function. Whether there was one to change."""
    if not function.blocks:
        return False
    joined: dict[Value, Value] = {}
    cfg = Cfg(function)
    facts: _Ways | None = None
    for block in cfg.rpo:
        at = Builder(BasicBlock())
        for phi in phis(block):
            if len(set(phi.targets)) == 1 or T.is_float(phi.type):
                continue
            ways = [(joined.get(v, v), source) for v, source in phi.incoming]
            numbers = [(n, source) for v, source in ways if (n := int_value(v)) is not None]
            values = [v for v, _ in ways if int_value(v) is None]
            if not _equal(values or [v for v, _ in ways], _DEPTH):
                continue
            if values and numbers:
                facts = facts or _Ways(cfg)
                known = [facts.numbers(source, block) for _, source in numbers]
                given = facts.at_hand(block, frozenset(known[0]).intersection(*known))
                known = [{v: k[v] for v in given} for k in known]
                if not all(evaluated(values[0], k, _DEPTH) == n for k, (n, _) in zip(known, numbers, strict=True)):
                    continue
                joined[phi] = _computed_from(at, values[0], given)
            else:
                joined[phi] = _computed(at, values or [v for v, _ in ways])
        first = len(phis(block))
        block.instructions[first:first] = at.block.instructions
    substitute(function, joined)
    return bool(joined)


def _equal(values: Sequence[Value], depth: int) -> bool:
    first = values[0]
    if all(is_same(v, first) for v in values):
        return True
    if depth == 0 or not isinstance(first, _PURE) or first.opcode in I.INTEGER_DIVISIONS:
        return False
    return all(does_same(first, v, but_flags=True) for v in values) and all(
        _equal(operands, depth - 1) for operands in _operands(values)
    )


def _operands(values: Sequence[Value]) -> list[tuple[Value, ...]]:
    return list(zip(*(v.operands for v in values if isinstance(v, I.Instruction)), strict=True))


class _Ways:
    """What conditions say of the ways from block to block."""

    def __init__(self, cfg: Cfg) -> None:
        self._dominators = Dominators(cfg)
        self._guards = Guards(cfg, self._dominators)
        self._home: dict[Value, BasicBlock] = {i: b for b in cfg.rpo for i in b.instructions}

    def numbers(self, source: BasicBlock, target: BasicBlock) -> Mapping[Value, int]:
        """The values that are one number on a way."""
        equal = [c for c in self._guards.on_edge(source, target) if c.predicate == "eq"]
        return {c.x: n for c in equal if (n := int_value(c.y)) is not None}

    def at_hand(self, block: BasicBlock, values: Collection[Value]) -> frozenset[Value]:
        """Those of some values that are there on all ways to a block."""
        top = self._dominators.idom[block]
        assert top is not None
        homes = ((v, self._home.get(v, top)) for v in values)
        return frozenset(v for v, home in homes if self._dominators.dominates(home, top))


def _computed_from(at: Builder, value: Value, given: Collection[Value]) -> Value:
    """A value from given ones: without flags, which hold on the ways alone on which it was computed."""
    if value in given or not isinstance(value, ARITHMETIC):
        return value
    made = at.insert(with_operands(value, [_computed_from(at, operand, given) for operand in value.operands]))
    made.flags = ()
    return made


def _computed(at: Builder, values: Sequence[Value]) -> Value:
    first = values[0]
    if not isinstance(first, I.Instruction) or all(v is first for v in values):
        return first
    made = at.insert(with_operands(first, [_computed(at, operands) for operands in _operands(values)]))
    made.flags = tuple(f for f in first.flags if all(isinstance(v, I.Instruction) and f in v.flags for v in values))
    return made
