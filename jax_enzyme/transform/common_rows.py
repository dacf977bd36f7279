"""What iterations of a loop add to beside places of their own, in a row by itself.

    before    for i: a[i] = ...;  for j: a[k * n + j] += ...       the loop over i may be shared if row k is elsewhere

    after     row[:] = 0
              for i: a[i] = ...;  for j: row[j] += ...             copies of the row are as cheap as those of any sum
              for j: if (row[j] != 0) a[k * n + j] += row[j]

A column is a row here, whose numbers are some way apart.

Iterations may add to a part of a row alone: nothing else of it is touched, where there may be other numbers, or no
memory. Which places these are says `analysis.common_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.common_rows import CommonRow
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.polynomials import Iteration
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import computed_before, count_iterations, local, redirect_phis, split_edge

_ALIGNMENT = 64


def set_rows_apart(module: Module, root: Function, rows: Iterable[CommonRow]) -> None:
    """Gives rows memory of their own for as long as the loops run that add to them, in place. Each loop has a preheader
    and is left at its latch alone. Of several rows for an access, as of nested loops, it is the first one's."""
    moved: set[I.Instruction] = set()
    for row in rows:
        if not moved.isdisjoint(row.places):
            continue
        moved.update(row.places)
        before = row.loop.front
        at = Builder.at_end(before)
        each = DataLayout(module).store_size(row.type)
        low, span = computed_before(at, row.low), computed_before(at, (row.high - row.low).add_constant(1))
        none = const_int(T.I64, 0)
        span = at.select(at.icmp("sgt", span, none), span, none)
        memory = local(root, T.ArrayType(row.most, T.I8), _ALIGNMENT, "row")
        rounded = at.binary("add", span, const_int(T.I64, row.stride - each))
        numbers = at.binary("udiv", rounded, const_int(T.I64, row.stride))
        Declarations(module).memory(
            at, "memset", memory, const_int(T.I8, 0), at.binary("mul", numbers, const_int(T.I64, each))
        )
        _move(row, memory, each)
        _add(root, row, memory, low, span, each)


def _move(row: CommonRow, memory: Value, each: int) -> None:
    """Lets the accesses lead into the memory of the row."""
    home = {i: block for block in row.loop.blocks for i in block.instructions}
    atoms = dict.fromkeys(atom for place in row.places.values() for atom in place.atoms)
    loops = (atom.loop for atom in atoms if isinstance(atom, Iteration))
    counts = {loop: count_iterations(loop, [loop.preheader]) for loop in loops if loop.preheader is not None}
    for access, place in row.places.items():
        at = Builder.before(home[access], access)
        access.operands[-1], access.align = at.gep(T.I8, memory, [computed_before(at, place, counts)]), each


def _add(root: Function, row: CommonRow, memory: Value, low: Value, span: Value, each: int) -> None:
    """Adds the row to the object, behind the loop."""
    latch = row.loop.latches[0]
    (behind,) = (b for b in latch.successors if b not in row.loop)
    start = split_edge(root, latch, behind)
    turn, some, then, end = new = [BasicBlock(name=name) for name in ("each", "some", "then", "added")]
    root.blocks[root.blocks.index(start) + 1 : root.blocks.index(start) + 1] = new
    del start.instructions[-1]
    Builder(start).cond_br(Builder(start).icmp("ne", span, const_int(T.I64, 0)), turn, end)
    is_number = isinstance(row.type, T.FloatType)
    at = Builder(turn)
    near, far = (at.phi(T.I64, [(const_int(T.I64, 0), start)]) for _ in range(2))
    more = at.load(row.type, at.gep(T.I8, memory, [near]), each)
    none = zero(row.type)
    at.cond_br(at.fcmp("une", more, none) if is_number else at.icmp("ne", more, none), some, then)
    at = Builder(some)
    place = at.gep(T.I8, row.site, [at.binary("add", low, far)])
    before = at.load(row.type, place, each)
    at.store(at.binary("fadd" if is_number else "add", before, more), place, each)
    at.br(then)
    at = Builder(then)
    for phi, step in ((near, each), (far, row.stride)):
        phi.add(at.binary("add", phi, const_int(T.I64, step), ("nuw", "nsw")), then)
    at.cond_br(at.icmp("ult", far.operands[-1], span), turn, end)
    Builder(end).br(behind)
    redirect_phis(behind, start, end)
