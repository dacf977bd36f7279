"""Marked loops become calls that several threads may share: the last pass that looks at what a program is.

The outermost loops are taken whose iterations are independent by what is marked and proved
(`analysis.independence`) and that are worth it; the rest stays as it is. Loops that only write what is their own are
shared as those over blocks are (`transform.shared_loops`). Where iterations add up, the loop is cut into ranges
(`transform.ranges`), so that results are the same to the last bit for one thread and for many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jax_enzyme.analysis.independence import Independence, Independent, loop_marks
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import Iteration
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.marks import Mark, Marks, has_marks
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, Value, int_value
from jax_enzyme.transform.common_rows import set_rows_apart
from jax_enzyme.transform.named_choices import note_choices
from jax_enzyme.transform.ranges import CELL, FEW, InRanges, Ranges
from jax_enzyme.transform.shared_copies import share_copies
from jax_enzyme.transform.shared_loops import WORTH, Sharing, take_team

_RANGES, _FEWEST_NEAR, _FEWEST = 64, 4, 4
_COPYING = 80
"""So many instructions of the loop there should be for each number in a copy, which has to be cleared and added."""
SHARED = "on several threads"
_LIKELY = 16 * WORTH
"""What a loop may execute of which data say how often it runs: it is cut where it does so much for its copies."""
_MARKING, _FAR = 1.25, 8
"""A loop should be so many times the work of finding out which pages it touches: then two threads gain by it. To add to
a number anywhere in large memory takes as long as so many instructions more; a page's mark is close at hand."""


def share_marked_loops(function: ArrayFunction) -> tuple[ArrayFunction, tuple[str, ...]]:
    """The array function with its marked loops shared, and with a team as its last parameter, in a copy of the module;
    the function itself where nothing is. Second, for every marked loop what was decided, with its line."""
    if not has_marks(function.module):
        return function, ()
    module, choice = _chosen(function, with_rows=True)
    root, facts = module.functions[function.symbol], choice.facts
    team = Argument(T.PTR, (), len(root.arguments), name="team")
    shared = False
    for share, ranges in choice.chosen:
        kind = Sharing(module, root, team, facts, share)
        if ranges is not None:
            kind = InRanges(module, root, team, facts, share, ranges)
        shared |= kind.run()
    if not shared:
        return function, tuple(choice.verdicts)
    take_team(root, team)
    share_copies(module, root, team)
    return replace(function, module=module), tuple(choice.verdicts)


def _chosen(function: ArrayFunction, *, with_rows: bool) -> tuple[Module, _Choice]:
    """A copy of the module, and which loops are shared in it; `with_rows`: those too that can be shared once the rows
    to which iterations add have memory of their own, which is made in the copy."""
    module = clone(function.module)
    root = module.functions[function.symbol]
    sizes: dict[Value, int] = {a: b.nbytes for a, b in zip(root.arguments, function.buffers, strict=True)}
    note_choices(module, root)
    choice = _Choice(module, root, sizes)
    rows = [row for loop in choice.alone for row in choice.facts.common_rows(loop)] if with_rows else []
    if rows:
        set_rows_apart(module, root, rows)
        again = _Choice(module, root, sizes)
        if len(again.chosen) == len(choice.chosen):
            return _chosen(function, with_rows=False)
        choice = again
    return module, choice


class _Choice:
    """The outermost loops of a function that can be shared and are worth it; `alone`: those with marks that stay on one
    thread. `sizes` are the bytes of the function's buffers."""

    def __init__(self, module: Module, root: Function, sizes: Mapping[Value, int]) -> None:
        self._module = module
        self.facts = Independence(module, root)
        self._sizes = sizes
        self._layout = DataLayout(module)
        self.chosen: list[tuple[Independent, Ranges | None]] = []
        self.alone: list[Loop] = []
        self.verdicts: list[str] = []
        for loop in self.facts.loops.roots:
            self._visit(loop)
        for other in module.functions.values():
            if other is not root and other.blocks:
                self._leave(other)

    def _visit(self, loop: Loop) -> None:
        marks = loop_marks(self._module, loop)
        if marks:
            problem = self._choose(loop)
            self._note(loop, marks, problem or SHARED)
            if problem is None:
                return
            self.alone.append(loop)
        for child in loop.children:
            self._visit(child)

    def _leave(self, function: Function) -> None:
        """Notes the marked loops of a function that stays one of its own: only the root's are shared."""
        for loop in Loops.of(function):
            if marks := loop_marks(self._module, loop):
                self._note(loop, marks, "on one thread: it is in a function that is called, as one that calls itself")

    def _note(self, loop: Loop, marks: Marks, verdict: str) -> None:
        which = "the reverse of " if Mark.REVERSED in marks else ""
        self.verdicts.append(f"{which}{self._place(loop)}: {verdict}")

    def _choose(self, loop: Loop) -> str | None:
        """Why a loop stays on one thread."""
        share = self.facts.examine_marked(loop)
        if isinstance(share, str):
            return f"on one thread: {share}"
        work = self.facts.work(loop)
        # How often it runs, only the run may know: then that is asked there.
        if (work if share.length is None else self.facts.each(loop) * share.count) < WORTH:
            return "on one thread: it takes less time than it would take to share it"
        ranges = None
        if share.sums or share.left or share.added or share.near or share.arenas:
            if share.length is not None and not all(isinstance(a, Iteration) for a in share.length.atoms):
                work = min(max(work, _LIKELY), self.facts.each(share.loop) * share.count)
            ranges = self._ranges(share, work)
            if isinstance(ranges, str) and share.near:
                # Too few ranges lie far enough from one another.
                share = replace(share, added=(*share.added, *share.near), near=(), apart=1)
                ranges = self._ranges(share, work)
            if isinstance(ranges, str):
                return f"on one thread: {ranges}"
        self.chosen.append((share, ranges))
        return None

    def _ranges(self, share: Independent, work: int) -> Ranges | str:
        if any(self._layout.store_size(v.type) > CELL for v in share.left):
            return "it leaves a large value behind"
        is_open = share.length is not None
        if any(t and self._layout.alloc_size(t) != self._layout.store_size(t) for _, t in share.added):
            return "it adds to numbers with gaps between them"
        sizes: dict[Value, int] = {}
        for site, _ in share.added:
            size = self._size(site)
            if size is None:
                return "how much memory it adds to is not known beforehand"
            sizes[site] = size
        marked = [site for site, type_ in share.added if type_ is None]
        copied = sorted((site for site in sizes if site not in marked), key=sizes.__getitem__)
        while copied and _most(work, sizes, copied) < _FEWEST:
            marked.append(copied.pop())
        if marked and not self._can_mark(share, marked):
            if None in dict(share.added).values():
                return "its iterations may not run at once, and their indices are most of the work"
            copied, marked = list(sizes), []
        wanted = min(_most(work, sizes, copied), FEW if marked or is_open else _RANGES)
        if wanted < 2:
            return "copies of the memory that it adds to would cost more"
        grain = self.facts.grain(share.loop)
        ways = {s: sizes[s] for s in copied}, {s: sizes[s] for s in marked}
        if is_open:
            enough = -(-max(WORTH, _FEWEST * _COPYING * _cells(sizes, copied)) // self.facts.each(share.loop))
            return Ranges(wanted, share.apart, *ways, grain, enough)
        length = max(-(-share.count // wanted), share.apart)
        if length >= grain:  # whole vectors; what a range computes does not depend on who runs it
            length = -(-length // grain) * grain
        count = -(-share.count // length)
        if count < (_FEWEST_NEAR if share.near or marked else 2):
            return "it has few iterations, or many of them add to the same places"
        return Ranges(count, length, *ways)

    def _can_mark(self, share: Independent, sites: list[Value]) -> bool:
        """Is it less work to find out where a loop adds to some objects than to run it?"""
        told = None
        if len(share.loop.exit_edges) == 1 and not share.arenas:
            told = self.facts.telling(share, sites)
        if told is None:
            return False
        needed, stores = told
        work = self.facts.work(share.loop) + _FAR * self.facts.work(share.loop, stores)
        return _MARKING * self.facts.work(share.loop, {*needed, *stores}) <= work

    def _size(self, site: Value) -> int | None:
        match site:
            case Argument():
                return self._sizes.get(site)
            case I.Alloca():
                count = int_value(site.operands[0])
                return None if count is None else count * self._layout.alloc_size(site.allocated_type)
            case I.Call() if callee_name(site) in ("malloc", "calloc"):
                total = 1
                for value in site.arguments:
                    total *= int_value(value) or 0
                return total or None
            case I.Select() | I.Phi():
                sizes = {self._size(v) for v in reached(I.merged(site), I.merged) if not I.merged(v)}
                return sizes.pop() if len(sizes) == 1 else None
            case _:
                return None

    def _place(self, loop: Loop) -> str:
        found = (location(self._module, i) for b in (loop.latches[0], loop.header) for i in reversed(b.instructions))
        return next((f for f in found if f is not None), "a loop")


def _most(work: int, sizes: Mapping[Value, int], copied: list[Value]) -> int:
    """How many ranges are worth it that have copies of so many bytes, an even number or 1; any where there is none."""
    if not copied:
        return _RANGES
    return min(FEW, (1 + work // (_COPYING * _cells(sizes, copied))) // 2 * 2) or 1


def _cells(sizes: Mapping[Value, int], copied: list[Value]) -> int:
    """About how many numbers there are in a copy of some objects."""
    return sum(max(1, sizes[site] // 8) for site in copied)
