"""What iterations of a loop add to beside places of their own, in a row by itself.

    before    for i: a[i] = ...;  for j: a[k * n + j] += ...       the loop over i may be shared if row k is elsewhere

    after     row[:] = 0
              for i: a[i] = ...;  for j: row[j] += ...             copies of the row are as cheap as those of any sum
              for j: if (row[j] != 0) a[k * n + j] += row[j]

Iterations may add to a part of a row alone: nothing else of it is touched, where there may be other numbers, or no
memory. Which places these are says `analysis.common_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.common_rows import CommonRow
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function, Module, declare
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import computed_before, local, redirect_phis, split_edge

_ALIGNMENT = 64
_CLEAR = T.FunctionType(T.VOID, (T.PTR, T.I8, T.I64, T.I1))


def set_rows_apart(module: Module, root: Function, rows: Iterable[CommonRow]) -> None:
    """Gives rows memory of their own for as long as the loops run that add to them, in place. Each loop has a preheader
    and is left at its latch alone. Of several rows for an access, as of nested loops, it is the first one's."""
    moved: set[I.Instruction] = set()
    for row in rows:
        if not moved.isdisjoint(row.accesses):
            continue
        moved.update(row.accesses)
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
        start = at.gep(T.I8, memory, [at.binary("sub", none, low)], flags=())
        step = DataLayout(module).store_size(row.type)
        _move(row, {row.site: start}, at, step)
        _add(root, row, memory, low, size, step)


def _move(row: CommonRow, moved: dict[Value, Value], before: Builder, step: int) -> None:
    """Lets the accesses lead into the memory of the row, which begins elsewhere than the object."""
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
        access.operands[-1], access.align = address(access.operands[-1]), step


def _add(root: Function, row: CommonRow, memory: Value, low: Value, size: Value, step: int) -> None:
    """Adds the row to the object, behind the loop."""
    latch = row.loop.latches[0]
    (behind,) = (b for b in latch.successors if b not in row.loop)
    start = split_edge(root, latch, behind)
    each, some, then, end = new = [BasicBlock(name=name) for name in ("each", "some", "then", "added")]
    root.blocks[root.blocks.index(start) + 1 : root.blocks.index(start) + 1] = new
    del start.instructions[-1]
    Builder(start).cond_br(Builder(start).icmp("ne", size, const_int(T.I64, 0)), each, end)
    is_number = isinstance(row.type, T.FloatType)
    at = Builder(each)
    offset = at.phi(T.I64, [(const_int(T.I64, 0), start)])
    more = at.load(row.type, at.gep(T.I8, memory, [offset]), step)
    none = zero(row.type)
    at.cond_br(at.fcmp("une", more, none) if is_number else at.icmp("ne", more, none), some, then)
    at = Builder(some)
    place = at.gep(T.I8, row.site, [at.binary("add", low, offset)])
    before = at.load(row.type, place, step)
    at.store(at.binary("fadd" if is_number else "add", before, more), place, step)
    at.br(then)
    at = Builder(then)
    following = at.binary("add", offset, const_int(T.I64, step), ("nuw", "nsw"))
    offset.add(following, then)
    at.cond_br(at.icmp("ult", following, size), each, end)
    Builder(end).br(behind)
    redirect_phis(behind, start, end)
