"""Which pages of memory a range of iterations adds to: the loop once more, with nothing left but what makes addresses.

    before    %c = load i32, ptr %pc                        after    %c = load i32, ptr %pc
              %p = getelementptr double, ptr %x, i32 %c              %p = getelementptr double, ptr %x, i32 %c
              %b = load double, ptr %p                               %offset = sub i64 (%p, %x)
              %s = fadd double %b, %a                                %page = lshr i64 %offset, 9
              store double %s, ptr %p                                store i8 1, ptr (%marks + %page)

Iterations of two ranges that have no page in common add to different numbers. For each range there are as many bytes
as the objects together have pages; those of one object follow those of the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.values import BasicBlock, Value

_BITS = 9
"""Of the offsets within a page."""


@dataclass(frozen=True)
class Pages:
    """The pages of objects of so many bytes."""

    sizes: Mapping[Value, int]

    def first(self, site: Value) -> int:
        """The number of the first page of an object."""
        before = list(self.sizes).index(site)
        return sum(_pages(size) for size in list(self.sizes.values())[:before])

    @property
    def count(self) -> int:
        """How many there are in all."""
        return sum(map(_pages, self.sizes.values()))


def _pages(size: int) -> int:
    return -(-size >> _BITS)


def mark_pages(
    pages: Pages,
    blocks: Sequence[BasicBlock],
    cloner: Cloner,
    kept: Collection[I.Instruction],
    stores: Mapping[I.Instruction, Value],
    marks: Value,
) -> None:
    """Turns the copy of a loop, in place, into one that marks what it would touch. `blocks` are those that were copied,
    by `cloner`; of them the `kept` instructions stay, and the `stores` to objects set marks."""
    for source in blocks:
        block = cloner.map[source]
        assert isinstance(block, BasicBlock)
        known = {cloner.map[i]: i for i in source.instructions}
        found: list[I.Instruction] = []
        for instruction in block.instructions:
            original = known.get(instruction)
            site = stores.get(original) if original is not None else None
            if site is not None:
                found += _marking(instruction.operands[1], cloner.value(site), pages.first(site), marks)
            elif original is None or original in kept:
                found.append(instruction)
        block.instructions = found


def _marking(pointer: Value, start: Value, first: int, marks: Value) -> list[I.Instruction]:
    at = Builder(BasicBlock())
    address, base = (at.cast("ptrtoint", p, T.I64) for p in (pointer, start))
    page = at.binary("lshr", at.binary("sub", address, base), const_int(T.I64, _BITS))
    at.store(const_int(T.I8, 1), at.gep(T.I8, at.offset(marks, first), [page]), 1)
    return at.block.instructions


def conflict(marks: Value, pages: int, count: int) -> list[BasicBlock]:
    """The blocks of a function that returns 1 where two even ones of `count` ranges, or two odd ones, have marked the
    same page, else 0."""
    entry, each, end = (BasicBlock(name=n) for n in ("entry", "each", "end"))
    at, page = Builder(entry).enter(each)
    held = at.phi(T.I8, [(const_int(T.I8, 0), entry)])
    most: Value = held
    for parity in range(2):
        total: Value = const_int(T.I8, 0)
        for number in range(parity, count, 2):
            total = at.binary("add", total, at.load(T.I8, at.gep(T.I8, at.offset(marks, number * pages), [page]), 1))
        most = at.select(at.icmp("ugt", total, most), total, most)
    held.add(most, each)
    at.count_on(page, each, const_int(T.I64, pages), end)
    at = Builder(end)
    at.ret(at.cast("zext", at.icmp("ugt", most, const_int(T.I8, 1)), T.I64))
    return [entry, each, end]
