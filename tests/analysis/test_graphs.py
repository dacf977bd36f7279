"""Control flow, dominators, loops and the solver, on random graphs, against their definitions."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators, PostDominators
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock

_Sets = Mapping[BasicBlock, frozenset[BasicBlock]]
EDGES = st.lists(st.lists(st.integers(0, 8), max_size=3), min_size=1, max_size=9)


def function_of(edges: list[list[int]]) -> Function:
    """Block number i goes to the blocks `edges[i]` (modulo their number, and never to the entry)."""
    function = Function(T.PTR, T.FunctionType(T.VOID, ()), name="f")
    function.blocks = [BasicBlock(name=f"b{i}") for i in range(len(edges))]
    for block, targets in zip(function.blocks, edges, strict=True):
        chosen = [function.blocks[t % len(edges)] for t in targets if t % len(edges)]
        builder = Builder(block)
        if not chosen:
            builder.ret()
        elif len(chosen) == 1:
            builder.br(chosen[0])
        else:
            builder.cond_br(const_int(T.I1, 0), chosen[0], chosen[1])
    return function


def reached(cfg: Cfg, start: BasicBlock, without: BasicBlock | None = None) -> set[BasicBlock]:
    """Blocks that one or more edges lead to from `start`, on paths that do not enter `without`."""
    seen: set[BasicBlock] = set()
    stack = [start]
    while stack:
        for block in cfg.succs[stack.pop()]:
            if block not in seen and block is not without:
                seen.add(block)
                stack.append(block)
    return seen


@given(EDGES)
def test_order_and_reachability(edges: list[list[int]]) -> None:
    cfg = Cfg(function_of(edges))
    alive = {cfg.entry} | reached(cfg, cfg.entry)
    assert set(cfg.rpo) == alive and cfg.rpo[0] is cfg.entry
    for a in cfg.function.blocks:
        assert [p for p in cfg.function.blocks if a in cfg.succs[p]] == cfg.preds[a]
        for b in cfg.function.blocks:
            assert cfg.reaches(a, b) == (a in alive and b in reached(cfg, a))


@given(EDGES)
def test_dominators(edges: list[list[int]]) -> None:
    cfg = Cfg(function_of(edges))
    dominators, post = Dominators(cfg), PostDominators(cfg)
    ends = {b for b in cfg.rpo if not cfg.succs[b]}
    leaving = {b for b in cfg.rpo if b in ends or ends & reached(cfg, b)}
    for a in cfg.rpo:
        for b in cfg.rpo:
            avoiding = set() if a is cfg.entry else {cfg.entry} | reached(cfg, cfg.entry, without=a)
            assert dominators.dominates(a, b) == (a is b or b not in avoiding)
            escapes = b in ends or bool(ends & reached(cfg, b, without=a))
            assert post.dominates(a, b) == (a in leaving and b in leaving and (a is b or not escapes))
    for block in cfg.rpo:
        above = [a for a in cfg.rpo if a is not block and dominators.dominates(a, block)]
        nearest = [a for a in above if all(dominators.dominates(other, a) for other in above)]
        assert [dominators.idom[block]] == (nearest or [None])


@given(EDGES)
def test_loops(edges: list[list[int]]) -> None:
    cfg = Cfg(function_of(edges))
    dominators = Dominators(cfg)
    loops = Loops(cfg, dominators)
    assert all(list(loop.blocks) == [b for b in cfg.rpo if b in loop] for loop in loops)
    back = [(a, b) for a in cfg.rpo for b in cfg.succs[a] if dominators.dominates(b, a)]
    assert {loop.header for loop in loops} == {b for _, b in back}
    for loop in loops:
        assert set(loop.latches) == {a for a, b in back if b is loop.header}
        around = {b for b in cfg.rpo if dominators.dominates(loop.header, b)}
        assert loop.blocks == {loop.header} | {
            b for b in around if set(loop.latches) & ({b} | reached(cfg, b, without=loop.header))
        }
        assert loop.exit_edges == [(a, b) for a in cfg.rpo if a in loop for b in cfg.succs[a] if b not in loop]
        if loop.parent is not None:
            assert loop.blocks < loop.parent.blocks and loop.depth == loop.parent.depth + 1
    for block in cfg.rpo:
        inside = [loop for loop in loops if block in loop]
        innermost = loops.loop_of[block]
        assert (innermost is None) == (not inside)
        assert innermost is None or all(innermost.blocks <= loop.blocks for loop in inside)
    # Without the irreducible edges and the back edges nothing goes round.
    assert all(
        cfg.index[a] < cfg.index[b] for a in cfg.rpo for b in cfg.succs[a] if (a, b) not in (*back, *loops.irreducible)
    )


@given(EDGES)
def test_solver(edges: list[list[int]]) -> None:
    cfg = Cfg(function_of(edges))
    everything = frozenset(cfg.rpo)

    def ahead(block: BasicBlock, facts: _Sets) -> frozenset[BasicBlock]:
        return frozenset(cfg.succs[block]).union(*(facts[b] for b in cfg.succs[block]))

    def always(block: BasicBlock, facts: _Sets) -> frozenset[BasicBlock]:
        before = [facts[b] for b in cfg.preds[block] if b in facts]
        return (frozenset() if block is cfg.entry else everything.intersection(*before)) | {block}

    dominators = Dominators(cfg)
    later = fixpoint(cfg.rpo[::-1], cfg.preds.__getitem__, ahead, frozenset())
    passed = fixpoint(cfg.rpo, cfg.succs.__getitem__, always, everything)
    for block in cfg.rpo:
        assert later[block] == {b for b in cfg.rpo if cfg.reaches(block, b)}
        assert passed[block] == {a for a in cfg.rpo if dominators.dominates(a, block)}


def test_description() -> None:
    cfg = Cfg(function_of([[1], [2, 3], [1], [4, 4], [], [0]]))
    assert str(cfg).splitlines()[1] == "b1: [b0, b2] -> [b2, b3]"
    assert str(cfg).splitlines()[-1].endswith("unreachable")
    dominators = Dominators(cfg)
    assert str(dominators) == "b0\n  b1\n    b3\n      b4\n    b2"
    assert str(PostDominators(cfg)) == "b4\n  b3\n    b1\n      b2\n      b0"
    assert str(Loops(cfg, dominators)) == "loop b1: blocks [b1, b2] latches [b2] preheader b0 exits [b1->b3]"
