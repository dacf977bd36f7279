"""Memory in which a range of a loop's iterations combines numbers otherwise than by additions: each range has its own.

before    for i < n: m[at[i]] = fmax(m[at[i]], f(i))

after     for r < ranges:
            for j < k: own[j] = -inf
            for i in range r: own[at[i]] = fmax(own[at[i]], f(i))
            for j < k: part[r][j] = own[j]
          for r < ranges:
            for j < k: m[j] = fmax(m[j], part[r][j])
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.analysis.combinations import Combined
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.combining import nothing, with_part
from jax_enzyme.transform.rewriting import local

_ALIGN = 64


class OwnMemory:
    """That of one object, in a loop over `number` ranges."""

    def __init__(self, root: Function, memory: Combined, number: int) -> None:
        self._root = root
        self._memory = memory
        self._number = number
        self._own = local(root, T.ArrayType(memory.count, memory.type), _ALIGN, name="own")
        self._parts = local(root, T.ArrayType(number * memory.count, memory.type), _ALIGN, name="parts")

    def begin(self, at: Builder) -> list[BasicBlock]:
        """Blocks behind this one in which the range's own is as where nothing was combined."""
        value, type_ = nothing(self._memory.how), self._memory.type
        return self._each(at, lambda at, index: at.store(value, at.gep(type_, self._own, [index])))

    def take_place(self, loop: Loop, before: BasicBlock) -> None:
        """The loop uses its own; addresses that were computed in front of it are computed at the end of `before`."""
        at = Builder.at_end(before)
        found: dict[Value, Value] = {self._memory.site: self._own}
        inside = dict.fromkeys(i for block in self._root.blocks if block in loop for i in block.instructions)

        def own(value: Value) -> Value:
            if value in found or value in inside or not isinstance(value, I.GetElementPtr):
                return found.get(value, value)
            base = own(value.operands[0])
            if base is value.operands[0]:
                return value
            found[value] = at.insert(with_operands(value, [base, *value.operands[1:]]))
            return found[value]

        for instruction in inside:
            instruction.operands = [own(value) for value in instruction.operands]

    def keep(self, at: Builder, turn: Value) -> list[BasicBlock]:
        """Blocks behind this one in which the range's own becomes its part."""
        type_ = self._memory.type
        first = at.binary("mul", turn, const_int(T.I64, self._memory.count), ("nuw", "nsw"))

        def copy(at: Builder, index: Value) -> None:
            value = at.load(type_, at.gep(type_, self._own, [index]))
            at.store(value, at.gep(type_, self._parts, [at.binary("add", first, index, ("nuw", "nsw"))]))

        return self._each(at, copy)

    def join(self, at: Builder) -> list[BasicBlock]:
        """Blocks behind this one in which what all ranges combined is, part by part."""
        type_, how, count = self._memory.type, self._memory.how, const_int(T.I64, self._memory.count)
        start, end = BasicBlock(name="parts"), BasicBlock(name="parts.end")
        inner, turn = at.enter(start)
        first = inner.binary("mul", turn, count, ("nuw", "nsw"))

        def combine(at: Builder, index: Value) -> None:
            place = at.gep(type_, self._memory.site, [index])
            part = at.load(type_, at.gep(type_, self._parts, [at.binary("add", first, index, ("nuw", "nsw"))]))
            at.store(with_part(at, how, at.load(type_, place), part), place)

        blocks = self._each(inner, combine)
        Builder(blocks[-1]).count_on(turn, start, const_int(T.I64, self._number), end)
        return [start, *blocks, end]

    def _each(self, at: Builder, do: Callable[[Builder, Value], object]) -> list[BasicBlock]:
        """A loop over all numbers, and the block behind it, which is not ended."""
        each, end = BasicBlock(name="each"), BasicBlock(name="each.end")
        inner, index = at.enter(each)
        do(inner, index)
        inner.count_on(index, each, const_int(T.I64, self._memory.count), end)
        return [each, end]
