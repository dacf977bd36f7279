"""Buffers that start from zeros need no clearing where the threads of a launch write every byte of them and read none.

    __global__ f(n, x, y) { int i = ...; if (i >= n) return; ... y[i] = ...; }          y has n numbers: not cleared

Clearing is a launch of its own, which takes as long as writing the buffer once more. (`transform.first_writes` does the
same for functions of the CPU, where all is one loop.) It takes a proof, for each store:

    which threads    come to it for certain: every condition on the way to it is one of the thread's number along one
                     axis (`if (x >= nx || y >= ny) return;`), and loops around it run through
    where            they write: constant + f(x) + g(y) + h(z) + c1 k1 + ..., as in `ad.device.ownership`; the numbers
                     of each term are as far apart as what the terms before it fill is long
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jax_enzyme.ad.device.axes import Axes, Terms
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import PostDominators
from jax_enzyme.analysis.filling import Filling, Run, Written, are_all
from jax_enzyme.analysis.guards import known_with
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.polynomials import Leaf
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Value, int_value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.input_writes import accesses_behind

Condition = tuple[Value, bool]
"""What is asked on the way to a place, and what has to come of it."""


def without_needless_clears(
    module: Module, function: Function, buffers: tuple[Buffer, ...], shape: Shape
) -> tuple[Buffer, ...]:
    """The buffers of a canonical function, less the clears that its launch does not need."""
    search: _Search | None = None
    found: list[Buffer] = []
    for argument, buffer in zip(function.arguments, buffers, strict=True):
        stores = _only_stores(argument, function) if buffer.zero and buffer.nbytes and not buffer.grows else None
        if stores:
            search = search or _Search(module, function, shape)
            if search.fill(argument, buffer.nbytes, stores):
                buffer = replace(buffer, zero=False)
        found.append(buffer)
    return tuple(found)


def _only_stores(argument: Argument, function: Function) -> list[I.Store] | None:
    """All that is done with a pointer, where that is to write behind it."""
    found: list[I.Store] = []
    for instruction in accesses_behind(argument, function):
        is_store = isinstance(instruction, I.Store) and I.is_plain(instruction)
        if not is_store or I.base_of(instruction.operands[1]) is not argument:
            return None
        assert isinstance(instruction, I.Store)
        found.append(instruction)
    return found


class _Search:
    """Looks at one function."""

    def __init__(self, module: Module, function: Function, shape: Shape) -> None:
        self._recurrences = Recurrences.of(function, module)
        self._layout = DataLayout(module)
        self._filling = Filling(function, self._recurrences)
        self._axes = Axes(shape, self._recurrences)
        self._cfg = Cfg(function)
        self._certain = PostDominators(self._cfg)

    def fill(self, argument: Argument, size: int, stores: Iterable[I.Store]) -> bool:
        """Whether stores write so many bytes behind a parameter, all of them."""
        written = [self._written(argument, store) for store in stores]
        return are_all((w for w in written if w is not None), size)

    def _written(self, argument: Argument, store: I.Store) -> Written | None:
        """None where it is not known which threads write where."""
        size = self._layout.store_size(store.operands[0].type)
        found = self._filling.gone_over(store.operands[1], size, self._recurrences.block_of[store], None)
        if found is None:
            return None
        outside, start, written = found
        conditions, factors = self._conditions(outside), start.linear or {}
        terms: dict[str, list[tuple[int, Value]]] = {}
        if factors.pop(Leaf(argument), 0) != 1:
            return None
        for atom, factor in factors.items():
            axis = self._axes.of(atom.value) if isinstance(atom, Leaf) else None
            if axis is None or not isinstance(atom, Leaf):
                return None
            terms.setdefault(axis, []).append((factor, atom.value))
        of_axes = None if conditions is None else self._of_axes(terms, conditions)
        return None if of_axes is None else written.repeated(of_axes)

    def _of_axes(self, terms: dict[str, list[tuple[int, Value]]], conditions: list[Condition]) -> list[Run] | None:
        of_axis: dict[str, list[Condition]] = {axis: [] for axis in "xyz"}
        for condition, holds in conditions:
            known = int_value(condition)
            axis = self._axes.of(condition)
            if axis is not None:
                of_axis[axis].append((condition, holds))
            elif known is None or bool(known & 1) != holds:
                return None
        found: list[Run] = []
        for axis, own in of_axis.items():
            of_terms: Terms = tuple(terms.get(axis, ()))
            runs = self._axes.runs(axis, of_terms, own)
            if runs is None:
                return None
            found += runs
        return found

    def _conditions(self, block: BasicBlock) -> list[Condition] | None:
        """Conditions under which a thread comes to a block outside of loops for certain; None where some are not
        known."""
        above, loop_of = self._recurrences.dominators.idom, self._recurrences.loops.loop_of
        found: list[Condition] = []
        while True:
            parent = above[block]
            before = block
            while parent is not None and self._certain.dominates(block, parent):
                before, parent = parent, above[parent]
            if parent is None:
                return found if before is self._cfg.entry else None
            last = parent.terminator
            ways = [n for n, target in enumerate(last.targets) if self._certain.dominates(block, target)]
            if not isinstance(last, I.CondBranch) or len(ways) != 1 or loop_of.get(parent) is not None:
                return None
            found += known_with(last.operands[0], ways[0] == 0)
            block = parent
