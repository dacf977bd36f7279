"""Which values live at the start of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value


def live_at_starts(function: Function, starts: Sequence[BasicBlock]) -> dict[BasicBlock, list[Value]]:
    """For each of some blocks without phis, the values that are computed before it and used in it or behind it, in the
    order of the function."""
    cfg = Cfg(function)
    used: dict[BasicBlock, frozenset[Value]] = {}
    defined: dict[BasicBlock, set[Value]] = {}
    for block in cfg.rpo:
        here: set[Value] = set(block.instructions)
        wanted: set[Value] = {
            o
            for i in block.instructions
            if not isinstance(i, I.Phi)
            for o in i.operands
            if isinstance(o, I.Instruction) and o not in here
        }
        for successor in cfg.succs[block]:
            for phi in successor.instructions:
                if not isinstance(phi, I.Phi):
                    break
                wanted |= {v for v, b in phi.incoming if b is block and isinstance(v, I.Instruction) and v not in here}
        used[block] = frozenset(wanted)
        defined[block] = here
    nothing = frozenset[Value]()

    def before(block: BasicBlock, live: Mapping[BasicBlock, frozenset[Value]]) -> frozenset[Value]:
        return used[block].union(*(live[b] for b in cfg.succs[block])) - defined[block]

    live = fixpoint(cfg.rpo[::-1], cfg.preds.__getitem__, before, nothing)
    order: dict[Value, int] = {value: n for n, value in enumerate(function.instructions())}
    return {s: sorted(live.get(s, nothing), key=lambda v: order[v]) for s in starts}


def coalesced(values: Sequence[Value], live: Sequence[Sequence[Value]]) -> list[list[Value]]:
    """Classes of values that can be kept in one place: a phi and what flows into it, where no two of a class are
    `live` together. They are mostly one variable of the source, around a loop."""
    groups: dict[Value, list[Value]] = {v: [v] for v in values}
    rivals: dict[Value, set[Value]] = {v: set() for v in values}
    for together in live:
        for value in together:
            if value in rivals:
                rivals[value].update(together)
    for phi in values:
        for other in phi.operands if isinstance(phi, I.Phi) else ():
            if other not in groups or other.type != phi.type or groups[other] is groups[phi]:
                continue
            if any(b in rivals[a] for a in groups[phi] for b in groups[other]):
                continue
            merged = groups[phi] + groups[other]
            groups.update(dict.fromkeys(merged, merged))
    return list({id(group): group for group in groups.values()}.values())
