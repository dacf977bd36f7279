"""What iterations of a marked loop combine otherwise than by additions is combined in ranges, which begin anew.

    before    for i < n: p = p * f(i)

    after     for r < 64:                     the marked loop
                q = 1
                for i in range r: q = q * f(i)
                part[r] = q
              for r < 64: p = p * part[r]

That are products, the largest and the smallest of all by `fmax` and `fmin` where it is not known that the loop starts
with a number, and what is in memory, the best of all there too (`transform.combined_memory`).

The loop itself could be cut later, as those of sums are (`transform.ranges`). Not so its derivatives: they need what
the product was in each iteration, and what became of it behind. With ranges each range has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jax_enzyme.analysis.accumulation import Chain, carried_sum, chain, guarded
from jax_enzyme.analysis.combinations import Combined
from jax_enzyme.analysis.independence import Independence, loop_marks
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.marks import Mark, has_marks, mark, marks_of, unmark
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.combined_memory import OwnMemory
from jax_enzyme.transform.combining import nothing, with_part
from jax_enzyme.transform.rewriting import (
    count_iterations,
    local,
    locate,
    on_copy,
    phis,
    redirect_phis,
    replace_operands,
    split_edge,
)

_SUMS = frozenset({"fadd", "add"})
_PRODUCT = "fmul"
_RANGES, _BITS = 64, 64
_FEWEST, _FEWEST_EACH = 1024, 16
"""Iterations of a loop that is cut, and of a range of one that combines numbers in memory: ranges of fewer would be
mostly their own beginnings and ends."""
_MOST_BYTES = 1 << 17
"""Of the parts that ranges have of memory: they are local variables."""
_COPYING = 80
"""So many instructions of the loop there should be for each number of these parts."""


@dataclass(frozen=True)
class _Built:
    """A loop that is left at its latch alone after `count` iterations, and is cut into so many ranges; with the phis of
    its header that begin anew in each, the others (counters with their steps, and, None, sums), and such memory."""

    loop: Loop
    count: int
    ranges: int
    anew: Mapping[I.Phi, Chain]
    others: tuple[tuple[I.Phi, int | None], ...]
    memory: Sequence[Combined]


def cut_products(function: ArrayFunction) -> ArrayFunction:
    """The array function with ranges of such loops, in a copy of the module; the function itself where it has none."""
    if not has_marks(function.module):
        return function
    root = function.module.functions[function.symbol]
    return on_copy(function, _cut_all) if any(_found(function.module, root, Loops.of(root))) else function


def _cut_all(module: Module, root: Function) -> bool:
    facts = Independence(module, root)
    built_up = _found(module, root, facts.loops)
    found = [each for loop, sums in built_up if (each := _known(facts, loop, sums)) is not None]
    for each in found:
        _Cut(module, root, each).run()
    return bool(found)


def _found(module: Module, root: Function, loops: Loops) -> Iterator[tuple[Loop, Mapping[I.Phi, Chain]]]:
    """The outermost marked loops that may have to be cut, with their sums of any kind."""
    home: dict[Value, BasicBlock] = {i: block for block in root.blocks for i in block.instructions}
    used = uses(root)

    def combines(load: I.Instruction, loop: Loop) -> bool:
        if not isinstance(load, I.Load):
            return False
        how = chain(load, used, loop.blocks, home) or guarded(load, used, loops.cfg.preds)
        return how is not None and how.kind not in _SUMS and any(isinstance(user, I.Store) for user, _ in how.ends)

    def visit(loop: Loop) -> Iterator[tuple[Loop, Mapping[I.Phi, Chain]]]:
        if Mark.PARALLEL in loop_marks(module, loop):
            sums = {p: c for p in phis(loop.header) if (c := carried_sum(p, loop, used, home)) is not None}
            in_memory = any(combines(i, loop) for block in loop.blocks for i in block.instructions)
            if in_memory or any(_begins_anew(loop, phi, sum_) for phi, sum_ in sums.items()):
                yield loop, sums
            return
        for child in loop.children:
            yield from visit(child)

    for loop in loops.roots:
        yield from visit(loop)


def _begins_anew(loop: Loop, phi: I.Phi, sum_: Chain) -> bool:
    """Is a number built up of which each range has its own? The best of all needs none where the loop starts with a
    number: then it is a choice (`transform.named_choices`)."""
    if sum_.kind.startswith("llvm.m"):
        ends = loop.ends(phi)
        return ends is None or float_value(ends[0]) is None
    return sum_.kind == _PRODUCT


def _known(facts: Independence, loop: Loop, sums: Mapping[I.Phi, Chain]) -> _Built | None:
    """What is known of a loop, if that is enough to cut it."""
    count = facts.count(loop) or 0
    if count < _FEWEST_EACH or loop.exiting != loop.latches or loop.preheader is None:
        return None
    anew: dict[I.Phi, Chain] = {}
    others: list[tuple[I.Phi, int | None]] = []
    for phi in phis(loop.header):
        is_narrow = isinstance(phi.type, T.IntType) and phi.type.bits <= _BITS
        step = facts.step(phi, loop) if is_narrow else None
        if phi in sums and _begins_anew(loop, phi, sums[phi]):
            anew[phi] = sums[phi]
        elif phi in sums or step is not None:
            others.append((phi, None if phi in sums else step))
        else:
            return None
    memory = facts.combined(loop)
    if memory:
        cells = sum(each.count for each in memory)
        most = _MOST_BYTES // (8 * cells), facts.work(loop) // (_COPYING * cells), count // _FEWEST_EACH
        ranges = min(_RANGES, *most)
        if ranges > 1:
            return _Built(loop, count, ranges, anew, tuple(others), memory)
    return _Built(loop, count, _RANGES, anew, tuple(others), ()) if anew and count >= _FEWEST else None


class _Cut:
    """Makes the ranges of one loop, in place."""

    def __init__(self, module: Module, root: Function, found: _Built) -> None:
        self._module = module
        self._root = root
        self._found = found
        self._loop, self._latch = found.loop, found.loop.latches[0]
        self._before = found.loop.front
        self._size = -(-found.count // found.ranges)
        self._number = -(-found.count // self._size)
        self._first: dict[I.Phi, Value] = {}
        self._following: dict[I.Phi, Value] = {}
        for phi in phis(self._loop.header):
            ends = self._loop.ends(phi)
            assert ends is not None
            self._first[phi], self._following[phi] = ends
        self._built = {self._following[phi]: phi for phi in found.anew}
        self._memory = [OwnMemory(root, each, self._number) for each in found.memory]

    def run(self) -> None:
        ((_, behind),) = self._loop.exit_edges
        start = BasicBlock(name="range")
        at = Builder(start)
        turn = at.phi(T.I64, [(const_int(T.I64, 0), self._before)])
        sums = {p: at.phi(p.type, [(self._first[p], self._before)]) for p, step in self._found.others if step is None}
        opening = [start, *self._begin(at, turn, sums)]
        words = marks_of(self._module, self._latch.terminator)
        unmark(self._module, self._latch.terminator)
        held = self._latch.instructions.pop()

        end, joined = BasicBlock(name="range.end"), BasicBlock(name="product")
        at = Builder(self._latch)
        at.cond_br(at.icmp("eq", self._here.operands[-1], self._length), end, self._loop.header)
        self._latch.terminator.metadata = held.metadata
        left, outside = self._left(Builder(end))
        parts = {v: local(self._root, T.ArrayType(self._number, v.type), name="parts") for v in self._built}
        at = Builder(end)
        for value, array in parts.items():
            at.store(left[value], at.gep(value.type, array, [turn]))
        closing = [end]
        for each in self._memory:
            closing += each.keep(Builder(closing[-1]), turn)
        for phi, around in sums.items():
            around.add(left.get(self._following[phi], self._following[phi]), closing[-1])
        Builder(closing[-1]).count_on(turn, start, const_int(T.I64, self._number), joined)
        locate(held, [closing[-1].terminator])
        mark(self._module, closing[-1].terminator, words)

        blocks = [joined]
        whole = self._join(blocks, parts, closing[-1])
        Builder(blocks[-1]).br(behind)
        redirect_phis(behind, self._latch, blocks[-1])
        self._place(opening, [*closing, *blocks])
        at = Builder(split_edge(self._root, closing[-1], joined), 0)
        replaced = {v: whole.get(v) or at.phi(v.type, [(out, closing[-1])]) for v, out in left.items()}
        replace_operands(outside, replaced)

    def _begin(self, at: Builder, turn: Value, sums: Mapping[I.Phi, Value]) -> list[BasicBlock]:
        """A range begins; blocks behind the first one."""
        found, size = self._found, const_int(T.I64, self._size)
        self._before.terminator.targets = [
            at.block if b is self._loop.header else b for b in self._before.terminator.targets
        ]
        done = at.binary("mul", turn, size, ("nuw", "nsw"))
        rest = at.binary("sub", const_int(T.I64, found.count), done, ("nuw", "nsw"))
        is_last = at.icmp("ult", rest, size)
        self._length = at.select(is_last, rest, size) if found.count % self._size else size
        begin: dict[I.Phi, Value] = {**sums, **{phi: nothing(how) for phi, how in found.anew.items()}}
        for phi, step in found.others:
            if step is not None:
                grown = at.binary("mul", at.narrow(done, phi.type), const_int(phi.type, step))
                begin[phi] = at.binary("add", self._first[phi], grown)
        blocks = [at.block]
        for each in self._memory:
            blocks += each.begin(Builder(blocks[-1]))
        Builder(blocks[-1]).br(self._loop.header)
        for each in self._memory:
            each.take_place(self._loop, blocks[-1])
        for phi, value in begin.items():
            phi.incoming = [(value, blocks[-1]) if b is self._before else (v, b) for v, b in phi.incoming]
        self._here = count_iterations(self._loop, [blocks[-1]])
        return blocks[1:]

    def _left(self, at: Builder) -> tuple[dict[Value, Value], list[I.Instruction]]:
        """What of a range is used behind it, as phis there, and what may use it."""
        made = {i for block in self._loop.blocks for i in block.instructions}
        outside = [i for block in self._root.blocks if block not in self._loop for i in block.instructions]
        sums = (self._following[phi] for phi, step in self._found.others if step is None)
        needed = [*self._built, *sums, *(o for i in outside for o in i.operands)]
        return {v: at.phi(v.type, [(v, self._latch)]) for v in dict.fromkeys(needed) if v in made}, outside

    def _join(self, blocks: list[BasicBlock], parts: Mapping[Value, Value], last: BasicBlock) -> dict[Value, Value]:
        """What all ranges came to, in `blocks` behind the last one of a range."""
        at, zero = Builder(blocks[0]), const_int(T.I64, 0)
        whole: dict[Value, Value] = {}
        if self._built:
            index = at.phi(T.I64, [(zero, last)])
            before = {v: at.phi(v.type, [(self._first[phi], last)]) for v, phi in self._built.items()}
            for value, phi in self._built.items():
                how = self._found.anew[phi]
                part = at.load(phi.type, at.gep(phi.type, parts[value], [index]))
                whole[value] = with_part(at, how, before[value], part)
                before[value].add(whole[value], blocks[0])
            blocks.append(BasicBlock(name="product.end"))
            at.count_on(index, blocks[0], const_int(T.I64, self._number), blocks[-1])
            behind = Builder(blocks[-1])
            whole = {value: behind.phi(value.type, [(product, blocks[0])]) for value, product in whole.items()}
        for each in self._memory:
            blocks += each.join(Builder(blocks[-1]))
        return whole

    def _place(self, opening: list[BasicBlock], closing: list[BasicBlock]) -> None:
        place = self._root.blocks.index(self._loop.header)
        self._root.blocks[place:place] = opening
        place = self._root.blocks.index(self._latch) + 1
        self._root.blocks[place:place] = closing
