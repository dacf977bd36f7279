"""What iterations of a loop add to beside places of their own, in a row by itself.

    before    for i: a[i] = ...;  for j: a[k * n + j] += ...       the loop over i may be shared if row k is elsewhere

    after     row[:] = 0
              for i: a[i] = ...;  for j: row[j] += ...             copies of the row are as cheap as those of any sum
              for j: a[k * n + j] += row[j]

Which places these are says `analysis.common_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.common_rows import CommonRow
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, Module, declare
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import computed_before, local, redirect_phis, split_edge

_ALIGNMENT = 64
_CLEAR = T.FunctionType(T.VOID, (T.PTR, T.I8, T.I64, T.I1))


def set_rows_apart(module: Module, root: Function, rows: Iterable[CommonRow]) -> None:
    """Gives rows memory of their own for as long as the loops run that add to them, in place. Each loop has a preheader
    and is left at its latch alone."""
    for row in rows:
        before = row.loop.preheader
        assert before is not None
        at = Builder.at_end(before)
        low, size = computed_before(at, row.low), computed_before(at, (row.high - row.low).add_constant(1))
        none = const_int(T.I64, 0)
        size = at.select(at.icmp("sgt", size, none), size, none)
        memory = local(root, T.ArrayType(row.most, T.I8), _ALIGNMENT, "row")
        clear = declare(module, "llvm.memset.p0.i64", _CLEAR)
        at.call(clear, [memory, const_int(T.I8, 0), size, const_int(T.I1, 0)])
        # Where the object would begin if the row were a part of it.
        moved: dict[Value, Value] = {row.site: at.gep(T.I8, memory, [at.binary("sub", none, low)], flags=())}
        _move(row, moved, at)
        _add(root, row, memory, low, size, DataLayout(module).store_size(row.type))


def _move(row: CommonRow, moved: dict[Value, Value], before: Builder) -> None:
    """Lets the accesses lead into the memory of the row."""
    home = {i: block for block in row.loop.blocks for i in block.instructions}

    def address(pointer: Value) -> Value:
        if pointer not in moved:
            assert isinstance(pointer, I.GetElementPtr)
            copy = with_operands(pointer, [address(pointer.operands[0]), *pointer.operands[1:]])
            copy.flags = ()
            at = Builder.before(home[pointer], pointer) if pointer in home else before
            moved[pointer] = at.insert(copy)
        return moved[pointer]

    for access in row.accesses:
        access.operands[-1] = address(access.operands[-1])


def _add(root: Function, row: CommonRow, memory: Value, low: Value, size: Value, step: int) -> None:
    """Adds the row to the object, behind the loop."""
    latch = row.loop.latches[0]
    (behind,) = (b for b in latch.successors if b not in row.loop)
    start = split_edge(root, latch, behind)
    each, end = BasicBlock(name="each"), BasicBlock(name="added")
    root.blocks[root.blocks.index(start) + 1 : root.blocks.index(start) + 1] = [each, end]
    del start.instructions[-1]
    Builder(start).cond_br(Builder(start).icmp("ne", size, const_int(T.I64, 0)), each, end)
    at = Builder(each)
    offset = at.phi(T.I64, [(const_int(T.I64, 0), start)])
    place = at.gep(T.I8, row.site, [at.binary("add", low, offset)])
    before, more = (at.load(row.type, p, step) for p in (place, at.gep(T.I8, memory, [offset])))
    at.store(at.binary("fadd" if isinstance(row.type, T.FloatType) else "add", before, more), place, step)
    following = at.binary("add", offset, const_int(T.I64, step), ("nuw", "nsw"))
    offset.add(following, each)
    at.cond_br(at.icmp("ult", following, size), each, end)
    Builder(end).br(behind)
    redirect_phis(behind, start, end)
