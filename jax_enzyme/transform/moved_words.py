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

from collections.abc import Collection, Iterator

from jax_enzyme.analysis.lanes import Lanes
from jax_enzyme.analysis.tbaa import accessed_type
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import led_to, reached
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.parts import Parts
from jax_enzyme.transform.rewriting import remove_dead, replace_values

_NO_INTEGERS = (T.PTR, T.DOUBLE)
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
        parts = Parts(function, Lanes(across=True), lambda _: True)
        replaced: dict[Value, Value] = {}
        for reader, _ in readers:
            if isinstance(reader, I.Store):
                reader.operands[0] = parts.part(reader.operands[0], 0, T.I64)
            else:
                replaced[reader] = parts.part(reader.operands[0], 0, reader.type)
        parts.insert()
        replace_values(function, replaced)
        remove_dead(function)
    return True


def _same(value: Value) -> list[Value]:
    """What has the same bits as a value that merges or reinterprets them."""
    if isinstance(value, I.Cast) and _is_word(value.type) and _is_word(value.operands[0].type):
        return value.operands
    return I.merged(value)


def _is_word(type_: T.Type) -> bool:
    return type_ == T.I64 or type_ in _NO_INTEGERS


def _readers(module: Module, function: Function) -> Iterator[tuple[_Reader, list[I.Load | I.Cast]]]:
    """What stores pointers, or numbers that are addresses, takes pointers for numbers, or follows integers, and what
    these come from: casts, and loads; where pointers are stored, of what the source does not call pointers, as a place
    that it does is not read as a number but by taking what was loaded for one."""
    numbers, addresses = _taken_for_numbers(function), _of_addresses(function)
    for reader in function.instructions():
        stores = isinstance(reader, I.Store) and not reader.ordering and reader.operands[0].type in _NO_INTEGERS
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
