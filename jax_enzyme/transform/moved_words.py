"""Words that may hold a number or a pointer are read as what each reader takes them for.

    before    %p = load ptr, ptr %a           ; union { double v; double *p; }, or what the compiler moves it as
              store ptr %p, ptr %b
              %v = load double, ptr %p

    after     %p = load ptr, ptr %a
              %p.word = load i64, ptr %a
              store i64 %p.word, ptr %b
              %v = load double, ptr %p

A pointer holds no number, as far as derivatives know, and a number no address; an integer of their size may hold
either, and what it holds is what was stored there last. So what is only moved, or taken for another type, is one, and
what is followed is a pointer: `inttoptr` of an integer that is loaded becomes a load of a pointer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from jax_enzyme.analysis.tbaa import accessed_type
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.clone import twin_of
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import led_to, reached
from jax_enzyme.ir.values import ConstantNull, Poison, Undef, Value
from jax_enzyme.transform.rewriting import remove_dead, replace_values

_KEPT = ("dbg", "tbaa")
_CASTS: Mapping[T.Type, tuple[str, str]] = {T.PTR: ("ptrtoint", "inttoptr"), T.DOUBLE: ("bitcast", "bitcast")}
"""To an integer and back."""
_Reader = I.Store | I.Cast


def may_be_read_apart(module: Module) -> bool:
    """Whether it is worth asking what lies where."""
    return any(True for f in module.functions.values() for _ in _readers(module, f))


def read_apart(module: Module, words: Words) -> bool:
    """Does it in place, where numbers may lie at any of the places; whether they do. Then all are read so: what was
    moved once may be moved again."""
    found = {f: list(_readers(module, f)) for f in words.points_to.functions}
    sources = dict.fromkeys(source for readers in found.values() for _, sources in readers for source in sources)
    numbers = {v for f in found for v in reached((i for i in f.instructions() if _is_number(i)), _same)}
    if not any(isinstance(s, I.Cast) or s in numbers or words.numbers(s.operands[0], 8, s) for s in sources):
        return False
    for function, readers in found.items():
        twins = _Twins(function)
        replaced: dict[Value, Value] = {}
        for reader, _ in readers:
            if isinstance(reader, I.Store):
                reader.operands[0] = twins.of(reader.operands[0], reader, T.I64)
            else:
                replaced[reader] = twins.of(reader.operands[0], reader, reader.type)
        replace_values(function, replaced)
        remove_dead(function)
    return True


def _same(value: Value) -> list[Value]:
    """What has the same bits as a value that merges or reinterprets them."""
    if isinstance(value, I.Cast) and _is_word(value.type) and _is_word(value.operands[0].type):
        return value.operands
    return I.merged(value)


def _is_word(type_: T.Type) -> bool:
    return type_ == T.I64 or type_ in _CASTS


def _readers(module: Module, function: Function) -> Iterator[tuple[_Reader, list[I.Load | I.Cast]]]:
    """What stores pointers, or numbers that are addresses, takes pointers for numbers, or follows integers, and what
    these come from: casts, and loads; where pointers are stored, of what the source does not call pointers, as a place
    that it does is not read as a number but by taking what was loaded for one."""
    numbers, addresses = _taken_for_numbers(function), _of_addresses(function)
    for reader in function.instructions():
        stores = isinstance(reader, I.Store) and not reader.ordering and reader.operands[0].type in _CASTS
        stores = stores and (reader.operands[0].type == T.PTR or reader.operands[0] in addresses)
        if not stores and reader not in numbers and not _follows(reader):
            continue
        assert isinstance(reader, _Reader)
        type_ = reader.operands[0].type
        values = reached(reader.operands[:1], _same)
        found: list[I.Load | I.Cast] = []
        if type_ != T.DOUBLE:
            found += [v for v in values if isinstance(v, I.Load) and not v.ordering]
        if stores:
            found = [load for load in found if accessed_type(module, load) != T.PTR]
        if not _follows(reader):
            found += [v for v in values if isinstance(v, I.Cast) and _is_of_other(v, type_)]
        if found:
            yield reader, found


def _follows(reader: I.Instruction) -> bool:
    return isinstance(reader, I.Cast) and reader.opcode == "inttoptr" and reader.operands[0].type == T.I64


def _is_of_other(cast: I.Cast, type_: T.Type) -> bool:
    """Whether what is taken for an integer is a number, where a pointer is wanted, or the other way round."""
    return cast.type == T.I64 and cast.operands[0].type == (T.PTR if type_ == T.DOUBLE else T.DOUBLE)


def _of_addresses(function: Function) -> Collection[Value]:
    """What may have the bits of a pointer that is taken for an integer."""
    begin = [i for i in function.instructions() if isinstance(i, I.Cast) and _is_of_other(i, T.DOUBLE)]
    return led_to(begin, function.instructions(), _same) if begin else ()


def _taken_for_numbers(function: Function) -> set[Value]:
    """Casts of pointers to integers that are taken for numbers, or stored."""
    ends = [i.operands[0] for i in function.instructions() if isinstance(i, I.Store) or _is_number(i)]
    return {v for v in reached(ends, I.merged) if isinstance(v, I.Cast) and v.opcode == "ptrtoint" and v.type == T.I64}


def _is_number(instruction: I.Instruction) -> bool:
    return instruction.opcode == "bitcast" and instruction.type == T.DOUBLE


class _Twins:
    """Values of one function that are read anew, of another type."""

    def __init__(self, function: Function) -> None:
        self._block_of = {i: b for b in function.blocks for i in b.instructions}
        self._known: dict[tuple[Value, T.Type], Value] = {}
        self._made: dict[tuple[Value, T.Type, I.Instruction], Value] = {}

    def of(self, value: Value, before: I.Instruction, type_: T.Type) -> Value:
        """The bits of a value as what they are to be."""
        if value.type == type_:
            return value
        if isinstance(value, Undef | Poison):
            return type(value)(type_)
        if isinstance(value, ConstantNull) and type_ == T.I64:
            return const_int(T.I64, 0)
        if (value, type_) in self._known:
            return self._known[value, type_]
        if isinstance(value, I.Cast) and _same(value):
            return self.of(value.operands[0], before, type_)
        if isinstance(value, I.Load) or I.merged(value):
            assert isinstance(value, I.Instruction)
            return self._twin(value, type_)
        key = value, type_, before
        if key not in self._made:
            self._made[key] = self._cast(value, before, type_)
        return self._made[key]

    def _cast(self, value: Value, before: I.Instruction, type_: T.Type) -> Value:
        if value.type != T.I64:
            value = self._insert(I.Cast(T.I64, _CASTS[value.type][0], [value]), before)
        return value if type_ == T.I64 else self._insert(I.Cast(type_, _CASTS[type_][1], [value]), before)

    def _twin(self, value: I.Instruction, type_: T.Type) -> Value:
        """The same of another type, beside it."""
        twin = twin_of(value)
        twin.type, twin.operands, twin.records = type_, list(value.operands), ()
        twin.name = f"{value.name}.{'word' if type_ == T.I64 else 'pointer'}" if value.name else ""
        twin.metadata = [(kind, node) for kind, node in value.metadata if kind in _KEPT]
        self._known[value, type_] = twin
        self._insert(twin, value)
        if isinstance(twin, I.Phi):
            twin.operands = [self.of(v, b.terminator, type_) for v, b in twin.incoming]
        elif not isinstance(twin, I.Load):
            first = 1 if isinstance(twin, I.Select) else 0
            twin.operands[first:] = [self.of(v, twin, type_) for v in twin.operands[first:]]
        return twin

    def _insert(self, new: I.Instruction, before: I.Instruction) -> I.Instruction:
        block = self._block_of[before]
        block.instructions.insert(block.instructions.index(before), new)
        self._block_of[new] = block
        return new
