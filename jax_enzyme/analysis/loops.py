"""Natural loops as a forest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cached_property

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value

Edge = tuple[BasicBlock, BasicBlock]


@dataclass(eq=False, slots=True)
class Loop:
    """A natural loop: every block from which a back edge to `header` can be reached without passing `header`.

    Back edges to one header make one loop. `blocks` contains those of the loops inside, in the order of control: what
    is found in them must not depend on where they lie in memory. `latches` are the sources of the back edges;
    `preheader` is the only predecessor outside, where there is just one and it goes nowhere else. `exiting` are blocks
    inside with a successor outside, `exits` those successors, `exit_edges` the edges; all in reverse post-order.
    `depth` is 1 for an outermost loop.
    """

    header: BasicBlock
    blocks: Set[BasicBlock]
    latches: list[BasicBlock]
    parent: Loop | None = None
    children: list[Loop] = field(default_factory=list)
    depth: int = 1
    preheader: BasicBlock | None = None
    exiting: list[BasicBlock] = field(default_factory=list)
    exits: list[BasicBlock] = field(default_factory=list)
    exit_edges: list[Edge] = field(default_factory=list)

    def __contains__(self, block: BasicBlock) -> bool:
        return block in self.blocks

    def encloses(self, other: Loop | None) -> bool:
        """Is `other` this loop or one inside it?"""
        return other is not None and other.header in self.blocks and other.depth >= self.depth

    def ends(self, phi: I.Phi) -> tuple[Value, Value] | None:
        """What a phi of the header starts with, and what it goes on with; None where either is not one value."""
        inside = [v for v, source in phi.incoming if source in self.blocks]
        outside = [v for v, source in phi.incoming if source not in self.blocks]
        return (outside[0], inside[0]) if len(outside) == len(inside) == 1 else None

    @property
    def front(self) -> BasicBlock:
        """The preheader of a loop that has one."""
        assert self.preheader is not None
        return self.preheader

    @property
    def ancestors(self) -> Iterator[Loop]:
        """The loop itself, then the loops around it, innermost first."""
        loop: Loop | None = self
        while loop is not None:
            yield loop
            loop = loop.parent

    @property
    def own_blocks(self) -> Iterator[BasicBlock]:
        """Its blocks outside of the loops inside."""
        return (b for b in self.blocks if not any(b in child for child in self.children))

    @property
    def length(self) -> int:
        """Its instructions, with those of the loops inside."""
        return sum(len(block.instructions) for block in self.blocks)

    def __repr__(self) -> str:
        return f"<loop {self.header.name}>"


class Loops:
    """The loops of a function. `roots` are the outermost ones, `all` every loop, outer before inner, both by
    the header's place in reverse post-order; `loop_of[block]` is the innermost loop around a reachable block, or None.

    `irreducible` are the retreating edges that are no back edges: their target does not dominate their source, so the
    cycle that they close has several entries and belongs to no loop here.
    """

    @staticmethod
    def of(function: Function) -> Loops:
        """Those of a function as it is now."""
        cfg = Cfg(function)
        return Loops(cfg, Dominators(cfg))

    def __init__(self, cfg: Cfg, dominators: Dominators) -> None:
        self.cfg = cfg
        self.dominators = dominators
        self.loop_of: dict[BasicBlock, Loop | None] = dict.fromkeys(cfg.rpo, None)
        self.irreducible: list[Edge] = []
        latches: dict[BasicBlock, list[BasicBlock]] = {}
        for source in cfg.rpo:
            for target in cfg.succs[source]:
                if dominators.dominates(target, source):
                    latches.setdefault(target, []).append(source)
                elif cfg.index[target] <= cfg.index[source]:
                    self.irreducible.append((source, target))
        headers = sorted(latches, key=cfg.index.__getitem__)
        self.all = [Loop(h, _body(cfg, h, latches[h]), latches[h]) for h in headers]
        self._nest()
        self.roots = [loop for loop in self.all if loop.parent is None]
        for loop in self.all:
            self._describe_exits(loop)

    def _nest(self) -> None:
        """Parents come earlier in `all`, as a header dominates, and so precedes, the headers inside its loop."""
        for loop in self.all:
            loop.parent = self.loop_of[loop.header]
            if loop.parent is not None:
                loop.parent.children.append(loop)
                loop.depth = loop.parent.depth + 1
            for block in loop.blocks:
                self.loop_of[block] = loop

    def _describe_exits(self, loop: Loop) -> None:
        outside = [pred for pred in self.cfg.reachable_preds(loop.header) if pred not in loop.blocks]
        if len(outside) == 1 and self.cfg.succs[outside[0]] == [loop.header]:
            loop.preheader = outside[0]
        for block in self.blocks(loop):
            targets = [target for target in self.cfg.succs[block] if target not in loop.blocks]
            if targets:
                loop.exiting.append(block)
                loop.exit_edges.extend((block, target) for target in targets)
        loop.exits = sorted({target for _, target in loop.exit_edges}, key=self.cfg.index.__getitem__)

    def __iter__(self) -> Iterator[Loop]:
        return iter(self.all)

    def blocks(self, loop: Loop) -> list[BasicBlock]:
        """The blocks of a loop, to go through while it changes."""
        return list(loop.blocks)

    @cached_property
    def home(self) -> Mapping[I.Instruction, tuple[BasicBlock, int]]:
        """The block of each instruction and its place there, as they are when this is first asked for."""
        return {i: (block, place) for block in self.cfg.rpo for place, i in enumerate(block.instructions)}

    def precedes(self, one: I.Instruction, other: I.Instruction) -> bool:
        """Has one instruction been run wherever another one is? It is in front of it in its block, or in a block that
        dominates that."""
        if one not in self.home or other not in self.home:
            return False
        (block, place), (there, later) = self.home[one], self.home[other]
        return place < later if block is there else self.dominators.dominates(block, there)

    def describe(self) -> str:
        """One line per loop, indented by depth, then the irreducible edges."""
        lines: list[str] = []
        for loop in self.all:
            inside = self.blocks(loop)
            lines.append(
                "  " * (loop.depth - 1)
                + f"loop {loop.header.name}: blocks [{', '.join(b.name for b in inside)}]"
                + f" latches [{', '.join(b.name for b in loop.latches)}]"
                + f" preheader {loop.preheader.name if loop.preheader else 'none'}"
                + f" exits [{', '.join(f'{a.name}->{b.name}' for a, b in loop.exit_edges)}]"
            )
        lines.extend(f"irreducible {a.name}->{b.name}" for a, b in self.irreducible)
        return "\n".join(lines) or "no loops"

    __str__ = describe


def _body(cfg: Cfg, header: BasicBlock, latches: list[BasicBlock]) -> Set[BasicBlock]:
    found = {header, *reached(latches, cfg.reachable_preds, lambda block: block is not header)}
    return dict.fromkeys(sorted(found, key=cfg.index.__getitem__)).keys()
