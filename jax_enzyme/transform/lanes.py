"""Words and vectors that hold several things, or a part of one, are taken apart into what they hold.

    before    %w = load i64, ptr %a                           (a float, then an int)
              store i64 %w, ptr %b
              %high = lshr i64 %w, 32
              %k = trunc i64 %high to i32

    after     %w.0 = load i32, ptr %a                         %w.32 = load i32, ptr %a.4
              store i32 %w.0, ptr %b                          store i32 %w.32, ptr %b.4
              (%k is %w.32)

    before    %v = load <8 x i16>, ptr %a                     (a short and its padding, then a double)
              %k = extractelement <8 x i16> %v, i64 0
              %w = bitcast <8 x i16> %v to <2 x double>
              %x = extractelement <2 x double> %w, i64 1

    after     %k = load i16, ptr %a                           %x = load double, ptr %a.8

Optimisers copy small structures as one integer or vector, load neighbouring members together, and move the parts by
casts, shifts, masks and shuffles. Where each byte comes from is known from `analysis.lanes`, what lies where in memory
from `analysis.words`. A value that something other than a move reads is put together from its parts anew
(`transform.parts`) where

- a vector is loaded of which some lanes are numbers and others integers, or of which some are not used at all: they say
  nothing of what is there,
- a word holds a number or a pointer, and is read or written in parts.

What remains are integers that hold one number each or none, which `retype` deals with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jax_enzyme.analysis.lanes import Bytes, Lanes, run, size
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.words import Piece, Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import made_of, reached
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.transform.parts import Parts
from jax_enzyme.transform.rewriting import on_functions, remove_dead, replace_values

_MERGES = (I.Phi, I.Select, I.Freeze)
_WORDS = (1, 2, 4, 8)


def split_mixed_loads(module: Module) -> Module:
    """A copy of the module in which vectors are loaded in lanes; the module itself where there are none such."""

    def take_apart(function: Function) -> None:
        lanes = Lanes()
        mixed = _mixed_loads(function, lanes)
        wanted = [v for v in _read(function, lanes) if not mixed.isdisjoint(lanes.sources(v)) and lanes.is_move(v)]
        _put(function, Parts(function, lanes, mixed.__contains__), wanted)

    return on_functions(module, lambda f: _mixed_loads(f, Lanes()), take_apart)


def split_words(module: Module, functions: list[Function], words: Words) -> bool:
    """Takes apart the words of these functions, in place; whether there were any."""
    return any([_Splitting(module, function, words).run() for function in functions])


def _put(function: Function, parts: Parts, wanted: Iterable[Value]) -> None:
    replaced = {value: parts.whole(value) for value in wanted}
    for value, new in replaced.items():
        new.name = new.name or value.name
    parts.insert()
    replace_values(function, replaced)
    remove_dead(function)


def _read(function: Function, lanes: Lanes) -> Iterator[Value]:
    """The values of whole bytes that anything but a move reads."""
    found: dict[Value, None] = {}
    for user in function.instructions():
        if not lanes.is_move(user):
            found.update(dict.fromkeys(v for v in user.operands if isinstance(v, I.Instruction) and size(v.type)))
    return iter(found)


def _mixed_loads(function: Function, lanes: Lanes) -> set[Value]:
    loads = [i for i in function.instructions() if isinstance(i, I.Load) and isinstance(i.type, T.VectorType)]
    used: dict[Value, tuple[set[int], set[int]]] = {load: (set(), set()) for load in loads if I.is_plain(load)}
    for value in _read(function, lanes) if used else ():
        for lane in lanes.of(value):
            if isinstance(lane, tuple) and lane[0] in used:
                used[lane[0]][T.is_float(value.type)].add(lane[1])
    return {load for load, (integers, numbers) in used.items() if _is_mixed(load.type, integers, numbers)}


def _is_mixed(type_: T.Type, integers: set[int], numbers: set[int]) -> bool:
    if integers and numbers and integers.isdisjoint(numbers):
        return True
    width = size(T.scalar(type_))
    return 0 < len({byte // width for byte in integers | numbers}) * width < size(type_)


class _Splitting:
    """The words of one function."""

    def __init__(self, module: Module, function: Function, words: Words) -> None:
        self._function = function
        self._words = words
        self._layout = DataLayout(module)
        self._lanes = Lanes()
        self._parts = Parts(function, self._lanes, lambda load: self._carries(load) and not self._is_number(load))

    def run(self) -> bool:
        stores = [i for i in self._function.instructions() if isinstance(i, I.Store) and _is_word(i.operands[0])]
        wanted = [v for v in _read(self._function, self._lanes) if self._takes_apart(v)]
        changed = any([self._store(store) for store in stores])
        if not changed and not wanted:
            return False
        _put(self._function, self._parts, wanted)
        return True

    def _store(self, store: I.Store) -> bool:
        value, pointer = store.operands
        total = self._layout.store_size(value.type)
        if not I.is_plain(store) or not self._carries(value):
            return False
        origins = list(_origins(value))
        held = self._held(store, pointer, total)
        for origin in origins:
            if isinstance(origin, I.Load) and self._layout.store_size(origin.type) == total:
                held |= self._held(origin, origin.operands[0], total)
        parts = _partition(held, total, self._layout) if held else []
        if not parts or self._is_even(value, held, origins):
            return False
        made = Builder(BasicBlock())
        for offset, length in parts:
            piece = self._parts.part(value, offset, T.IntType(8 * length))
            known = store.align or 1
            made.store(piece, made.offset(pointer, offset), min(known, offset & -offset) if offset else known)
        self._parts.replace(store, made.block.instructions)
        return True

    def _is_even(self, value: Value, held: frozenset[Piece], origins: list[Value]) -> bool:
        """Whether there are numbers of one kind all over, moved as a whole: `retype` makes a vector of them."""
        types = {t for _, t in held}
        if len(types) != 1 or any(map(self._is_part, origins)):
            return False
        lane, width = (self._layout.store_size(t) for t in (T.scalar(value.type), next(iter(types))))
        if T.PTR in types:
            return value.type == T.I64
        full = width * len(held) == self._layout.store_size(value.type)
        return full and lane % width == 0 and all(o % width == 0 for o, _ in held)

    def _takes_apart(self, value: Value) -> bool:
        """Whether a value consists of words side by side (as a number, of one for each element) that it is better read
        from on their own."""
        if not self._lanes.is_move(value) or (
            not all(map(_is_number, self._elements(value)))
            if T.is_float(value.type)
            else any(count not in _WORDS for _, count in self._lanes.runs(value))
        ):
            return False
        return self._cuts(value) or self._went_through_words(value)

    def _elements(self, value: Value) -> list[Bytes]:
        lanes, width = self._lanes.of(value), size(T.scalar(value.type))
        return [lanes[i : i + width] for i in range(0, len(lanes), width)]

    def _cuts(self, value: Value) -> bool:
        """Whether it has parts of words that hold numbers or pointers, and that can be had on their own."""
        runs = [(source, count) for source, count in self._lanes.runs(value) if T.is_int(source.type)]
        is_number = T.is_float(value.type)
        return any(self._carries(source) for source, _ in runs) and any(
            self._parts.splits(source)
            and (count < size(source.type) or (is_number and any(map(self._is_part, _origins(source)))))
            for source, count in runs
        )

    def _went_through_words(self, value: Value) -> bool:
        """Whether it consists of whole things, numbers where it is one, that were words or parts of such on the way."""
        wholes = [_whole(element) for element in self._elements(value)]
        if not all(wholes):
            return False
        if not T.is_float(value.type):
            assert isinstance(value, I.Instruction)
            return isinstance(value.type, T.IntType) and value.operands[0] not in wholes
        if not all(isinstance(w, Value) and (T.is_float(w.type) or _is_bits(w)) for w in wholes if w is not True):
            return False
        moves = reached([value], made_of, lambda v: isinstance(v, I.Instruction) and self._lanes.is_move(v))
        return any(T.is_int(item.type) for item in moves)

    def _is_part(self, value: Value) -> bool:
        """Whether a value is made of others of a different size, or of parts."""
        return self._lanes.is_move(value) and not _is_bits(value)

    def _held(self, access: I.Instruction, pointer: Value, total: int) -> frozenset[Piece]:
        """The numbers and pointers in what an access reads or writes."""
        numbers = self._words.numbers(pointer, total, access) or frozenset()
        return numbers | (self._words.pointers(pointer, total) or frozenset())

    def _is_number(self, load: I.Load) -> bool:
        """Whether a word is one number as a whole, of which parts are looked at: they stay parts of that."""
        total = self._layout.store_size(load.type)
        held = self._held(load, load.operands[0], total)
        return len(held) == 1 and all(o == 0 and T.is_float(t) and size(t) == total for o, t in held)

    @remembered
    def _carries(self, value: Value) -> bool:
        """Whether bits of a number, or of a pointer, may be in a word."""
        leaves = _leaves(value, lambda v: list(self._lanes.sources(v)))
        return any(map(self._is_carried, leaves))

    def _is_carried(self, source: Value) -> bool:
        if isinstance(source, I.Load):
            return bool(self._held(source, source.operands[0], self._layout.store_size(source.type)))
        return _is_bits(source) or T.is_float(source.type)


def _is_word(value: Value) -> bool:
    scalar = T.scalar(value.type)
    if not isinstance(scalar, T.IntType) or (isinstance(value.type, T.VectorType) and value.type.scalable):
        return False
    return scalar.bits in (8, 16, 32, 64, 128, 256, 512) and not isinstance(value, Constant)


def _is_number(element: Bytes) -> bool:
    """Whether all bytes of an element of a number are of one value, or known."""
    return run(element) is not None or not any(isinstance(lane, tuple) for lane in element)


def _whole(element: Bytes) -> Value | bool:
    """The value of which an element is the whole, or an element; whether it is a constant where it is none."""
    first = run(element)
    if first is None:
        return not any(isinstance(lane, tuple) for lane in element)
    source, start = first
    return source if size(T.scalar(source.type)) == len(element) and start % len(element) == 0 else False


def _is_bits(value: Value) -> bool:
    """The bits of a number, or of a pointer."""
    if not isinstance(value, I.Cast):
        return False
    return value.opcode == "ptrtoint" or (value.opcode == "bitcast" and T.is_float(value.operands[0].type))


def _origins(value: Value) -> Iterator[Value]:
    """What a word is a copy of, as a whole."""
    return _leaves(value, lambda v: [v])


def _leaves(value: Value, parts: Callable[[Value], list[Value]]) -> Iterator[Value]:
    """Where a value comes from: its parts, and what those merge."""

    def sources(item: Value) -> list[Value]:
        if not isinstance(item, _MERGES):
            return []
        return [p for v in item.operands[isinstance(item, I.Select) :] for p in parts(v)]

    return (item for item in reached(parts(value), sources) if not isinstance(item, _MERGES))


def _partition(numbers: frozenset[Piece], total: int, layout: DataLayout) -> list[tuple[int, int]]:
    """Offsets and lengths of the numbers in a word, and of integers that fill the gaps; none where the numbers do not
    lie side by side within it."""
    found: list[tuple[int, int]] = []
    at = 0
    for offset, type_ in [*sorted(numbers, key=lambda p: p[0]), (total, T.VOID)]:
        if offset < at:
            return []
        while at < offset:
            length = 8
            while at % length or at + length > offset:
                length //= 2
            found.append((at, length))
            at += length
        if at < total:
            length = layout.store_size(type_)
            found.append((at, length))
            at += length
    return found
