"""Lanes of several vectors are added up together.

    before    %s0 = call reassoc float @llvm.vector.reduce.fadd.v4f32(float %x0, <4 x float> %v0)
              ... %s3 of %x3 and %v3                                          each two shuffles, two additions and more

    after     %a = the even lanes of %v0 and %v1, plus the odd ones           v0 v0 v1 v1
              %b = the same of %v2 and %v3                                    v2 v2 v3 v3
              %c = the even lanes of %a and %b, plus the odd ones             v0 v1 v2 v3
              %s0 = fadd reassoc float %x0, the first lane of %c

and where each is added to an element of a row, one after the other, the row is loaded, added to and stored as a vector.

Where the reverse sweep adds to a row what a block of threads, in vectors, read from it (a tile of a product), there are
as many sums as lanes: sixteen sums of sixteen lanes take 45 instructions so, and 128 one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

import llvmlite.binding as llvm

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, Module, callee_name, is_fused
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import replace_values

_NAME = "llvm.vector.reduce.fadd."
_CALL = re.compile(rf"= call [^@\n]*reassoc[^@\n]*@{re.escape(_NAME)}v\d+f(?:32|64)\(")
_LABEL = re.compile(r"^\S+:", re.MULTILINE)
_LEAST = 4


def with_common_sums(native: llvm.ModuleRef) -> Module | None:
    """The module with such sums; None where there are too few."""
    if not any(f.name.startswith(_NAME) for f in native.functions):
        return None
    text = str(native)
    if not any(len(_CALL.findall(block)) >= _LEAST for block in _LABEL.split(text)):
        return None
    module = parse(text)
    layout = DataLayout(module)
    changed = [_sum_in_common(f, layout) for f in module.functions.values() if f.blocks]
    return module if any(changed) else None


def _sum_in_common(function: Function, layout: DataLayout) -> bool:
    """Makes, in place, sums of a function together. Whether there are any."""
    groups = [(block, group) for block in function.blocks for group in _groups(block)]
    uses = Counter(operand for i in function.instructions() for operand in i.operands) if groups else Counter()
    for block, group in groups:
        sums = _sums(Builder.before(block, group[0]), group)
        row = _Row.of(block, group, uses, layout)
        if row is not None:
            row.add(sums)
            continue
        replaced: dict[Value, Value] = {}
        for n, call in enumerate(group):
            at = Builder.before(block, call)
            replaced[call] = at.binary("fadd", call.arguments[0], at.extract_element(sums, n), _words(call))
            block.instructions.remove(call)
        replace_values(function, replaced)
    return bool(groups)


def _groups(block: BasicBlock) -> Iterator[list[I.Call]]:
    """The sums of a block that can be made where the first of them is made."""
    place: dict[Value, int] = {instruction: n for n, instruction in enumerate(block.instructions)}
    waiting: dict[tuple[str, tuple[str, ...]], list[I.Call]] = {}
    groups: list[list[I.Call]] = []
    for instruction in block.instructions:
        if not isinstance(instruction, I.Call) or not _is_sum(instruction):
            continue
        group = waiting.setdefault((callee_name(instruction), instruction.flags), [])
        if group and place.get(instruction.arguments[1], -1) > place[group[0]]:
            groups.append(group.copy())
            group.clear()
        group.append(instruction)
        if len(group) == _lanes(instruction):
            groups.append(group.copy())
            group.clear()
    for group in [*groups, *waiting.values()]:
        size = 1 << len(group).bit_length() - 1 if group else 0
        if size >= _LEAST:
            yield group[:size]


def _is_sum(call: I.Call) -> bool:
    vector = call.arguments[1].type if callee_name(call).startswith(_NAME) else None
    return (
        isinstance(vector, T.VectorType) and not vector.scalable and "reassoc" in call.flags and _is_power(vector.count)
    )


def _is_power(count: int) -> bool:
    return count >= _LEAST and count & (count - 1) == 0


def _lanes(call: I.Call) -> int:
    vector = call.arguments[1].type
    assert isinstance(vector, T.VectorType)
    return vector.count


def _words(call: I.Call) -> tuple[str, ...]:
    return tuple(word for word in call.flags if word not in ("tail", "musttail", "notail"))


def _sums(at: Builder, group: list[I.Call]) -> Value:
    """A vector of the sums of all lanes."""
    vectors = [call.arguments[1] for call in group]
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_halved(at, a, b, _lanes(group[0]), _words(group[0])) for a, b in pairs]
    (sums,) = vectors
    for count in _halves(_lanes(group[0]), len(group)):
        sums = _halved(at, sums, sums, count, _words(group[0]))
    return sums


def _halves(lanes: int, sums: int) -> Iterable[int]:
    while lanes > sums:
        lanes //= 2
        yield lanes


def _halved(at: Builder, a: Value, b: Value, lanes: int, flags: tuple[str, ...]) -> Value:
    """The sums of neighbouring lanes of two vectors, one vector's behind the other's; so many of them."""
    even, odd = (at.shuffle(a, b, range(first, 2 * lanes, 2)) for first in (0, 1))
    return at.binary("fadd", even, odd, flags)


@dataclass(frozen=True, eq=False)
class _Row:
    """Neighbours in memory to each of which a sum is added: `x[i] = sum(x[i], lanes)`, and nothing else of memory
    between the first of these statements and the last one. `loads` and `stores` are in the order of memory, `order` has
    the numbers of their sums."""

    block: BasicBlock
    calls: list[I.Call]
    loads: list[I.Load]
    stores: list[I.Store]
    order: tuple[int, ...]

    @staticmethod
    def of(block: BasicBlock, calls: list[I.Call], uses: Counter[Value], layout: DataLayout) -> _Row | None:
        stored = {i.operands[0]: i for i in block.instructions if isinstance(i, I.Store) and I.is_plain(i)}
        found: list[tuple[int, int, I.Load, I.Store]] = []
        bases: set[tuple[object, ...]] = set()
        for n, call in enumerate(calls):
            load, store = call.arguments[0], stored.get(call)
            if not isinstance(load, I.Load) or store is None or not I.is_plain(load):
                return None
            if store.operands[1] is not load.operands[0] or uses[load] != 1 or uses[call] != 1:
                return None
            base, offset = _place(load.operands[0], layout)
            bases.add(base)
            found.append((offset, n, load, store))
        found.sort(key=lambda row: row[0])
        size = layout.store_size(calls[0].type)
        if len(bases) > 1 or any(b[0] - a[0] != size for a, b in pairwise(found)):
            return None
        loads, stores = [row[2] for row in found], [row[3] for row in found]
        own: set[I.Instruction] = {*calls, *loads, *stores}
        places = [n for n, i in enumerate(block.instructions) if i in own]
        between = block.instructions[min(places) : max(places)]
        if len(places) < len(own) or any(i not in own and _may_access(i) for i in between):
            return None
        return _Row(block, calls, loads, stores, tuple(row[1] for row in found))

    def add(self, sums: Value) -> None:
        """Adds, in place, to all elements at once."""
        last = max(self.stores, key=self.block.instructions.index)
        at = Builder.before(self.block, last)
        kind = T.VectorType(len(self.loads), self.calls[0].type)
        if self.order != tuple(range(len(self.order))):
            sums = at.shuffle(sums, None, self.order)
        pointer, align = self.loads[0].operands[0], self.loads[0].align
        whole = at.binary("fadd", at.load(kind, pointer, align), sums, _words(self.calls[0]))
        at.store(whole, pointer, align)
        gone: set[I.Instruction] = {*self.calls, *self.loads, *self.stores}
        self.block.instructions = [i for i in self.block.instructions if i not in gone]


def _place(pointer: Value, layout: DataLayout) -> tuple[tuple[object, ...], int]:
    """An address as what it is counted from, and a number of bytes."""
    offset = 0
    terms: Counter[Value] = Counter()
    while isinstance(pointer, I.GetElementPtr):
        constant, steps = layout.steps(pointer.source_type, pointer.operands[1:])
        offset += constant
        for index, size in steps:
            terms[index] += size
        pointer = pointer.operands[0]
    return (pointer, frozenset(terms.items())), offset


def _may_access(instruction: I.Instruction) -> bool:
    if isinstance(instruction, I.CallBase):
        return not is_fused(instruction) and not callee_name(instruction).startswith("llvm.vector.reduce.")
    return isinstance(instruction, I.Load | I.Store | I.AtomicRMW | I.CmpXchg | I.Fence | I.VAArg)
