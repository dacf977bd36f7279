"""Copies of small structures that mix numbers, integers and pointers become copies of their members.

    before    call void @llvm.memcpy(ptr %b, ptr %a, i64 24, i1 false), !tbaa.struct  (double, int, double *)

    after     %v = load double, ptr %a                     %a.8 = getelementptr inbounds i8, ptr %a, i64 8
              %n = load i32, ptr %a.8                      ...
              %p = load ptr, ptr %a.16
              store double %v, ptr %b
              store i32 %n, ptr %b.8
              store ptr %p, ptr %b.16

So do loads and stores of such a structure as one value, which LLVM leaves where the structure has gaps (flang's of
records in reductions).

The members are known from the source's types (`!tbaa.struct`), or from a local variable of structure type on one side.
Everything is loaded before anything is stored, so overlapping copies stay what they are. Copies of memory that holds
numbers of one kind and nothing else stay as well, as their adjoint is a loop; but not the small ones of a thread of a
GPU, which is to meet loads and stores alone in memory that it shares. What such a copy moves where nothing names it
(`cp.async`) is known from the buffer or the variable on one side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import call_effect, reachable_functions
from jax_enzyme.analysis.tbaa import Member, copied_members
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import own_with_map
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import Argument, Poison, Value, int_value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.records import PARTS, SCALARS
from jax_enzyme.transform.rewriting import Change, rewrite

_MOST_BYTES = 512
"""Larger structures are copied as a whole: the derivative copies what lies in them, or is refused."""
_Scalars = list[tuple[int, T.Type]]


def split_struct_copies(function: ArrayFunction, uniform: int = 0) -> ArrayFunction:
    """The array function with such copies split, in a copy of its module; itself where there are none. Copies of up to
    `uniform` numbers of one kind are split as well."""
    module = function.module
    layout = DataLayout(module)
    if not any(
        call_effect(i) is Effect.MEMORY_COPY if isinstance(i, I.CallBase) else _is_whole(layout, i)
        for f in module.functions.values()
        for i in f.instructions()
    ):
        return function
    callers = reachable_functions(module.functions[function.symbol])
    found: dict[I.Instruction, _Scalars] = {}
    whole: list[I.Instruction] = []
    for caller in callers:
        whole += [i for i in caller.instructions() if _is_whole(layout, i)]
        for call in _calls(caller):
            if call_effect(call) is Effect.MEMORY_COPY:
                members = _members(layout, call)
                if members is None and uniform:
                    members = _of_one_kind(layout, call, function.buffers)
                if members is not None and (len(members) <= uniform or _is_mixed(members)):
                    found[call] = members
    if not found and not whole:
        return function
    copy, copied = own_with_map(module)
    calls = {copied[c]: m for c, m in found.items()}
    accesses = {copied[i] for i in whole}
    for caller in callers:
        twin = copied[caller]
        assert isinstance(twin, Function)
        rewrite(
            twin,
            lambda i: _by_members(layout, i) if i in accesses else _change(i, calls.get(i)),
        )
    return ArrayFunction(copy, function.symbol, function.buffers)


def _calls(function: Function) -> Iterator[I.CallBase]:
    return (i for i in function.instructions() if isinstance(i, I.CallBase))


def _is_whole(layout: DataLayout, instruction: I.Instruction) -> bool:
    """Is a small structure with gaps that mixes kinds loaded or stored as one value?"""
    if not isinstance(instruction, I.Load | I.Store) or not I.is_plain(instruction):
        return False
    type_ = I.accessed_value(instruction).type
    if not isinstance(layout.body(type_), T.StructType) or layout.store_size(type_) > _MOST_BYTES:
        return False
    members = list(layout.scalars(type_))
    return _is_mixed(members) and sum(layout.store_size(m) for _, m in members) < layout.store_size(type_)


def _by_members(layout: DataLayout, access: I.Instruction) -> Change:
    """The access as one of each member."""
    assert isinstance(access, I.Load | I.Store)
    align = access.align or 1

    def change(builder: Builder) -> Value | None:
        if isinstance(access, I.Load):
            return _loaded(builder, layout, access.type, access.operands[0], align)
        return store_members(builder, layout, access.operands[0], access.operands[1], align)

    return change


def _loaded(at: Builder, layout: DataLayout, type_: T.Type, place: Value, align: int) -> Value:
    parts = layout.parts(type_)
    value = Poison(type_) if parts else at.load(type_, place, align)
    for index, (offset, kind) in enumerate(parts):
        part = _loaded(at, layout, kind, at.offset(place, offset), math.gcd(align, offset))
        value = at.insert_value(value, part, index)
    return value


def store_members(at: Builder, layout: DataLayout, value: Value, place: Value, align: int = 1) -> None:
    """Stores a value number by number."""
    parts = layout.parts(value.type)
    if not parts:
        at.store(value, place, align)
    for index, (offset, kind) in enumerate(parts):
        part = at.extract_value(value, index, kind)
        store_members(at, layout, part, at.offset(place, offset), math.gcd(align, offset))


def _is_mixed(members: _Scalars) -> bool:
    kinds = {type_ for _, type_ in members}
    return len(kinds) > 1 and any(isinstance(k, T.FloatType | T.PointerType) for k in kinds)


def _copied_bytes(call: I.CallBase) -> int | None:
    """How much is copied; None where that is much, or not known, or the copy is volatile."""
    size = int_value(call.operands[2])
    return None if size is None or not 0 < size <= _MOST_BYTES or int_value(call.operands[3]) else size


def _of_one_kind(layout: DataLayout, call: I.CallBase, buffers: Sequence[Buffer]) -> _Scalars | None:
    """The numbers that a copy moves, from what is known of the memory on one side: of a buffer's elements, or of all
    that a variable holds."""
    size = _copied_bytes(call)
    for base in map(I.base_of, call.operands[:2]):
        kinds: set[T.Type] = set()
        if isinstance(base, GlobalVariable):
            kinds = {type_ for _, type_ in layout.scalars(base.value_type)}
        elif isinstance(base, Argument) and base.index < len(buffers):
            dtype = buffers[base.index].dtype
            kinds = {kind} if (kind := PARTS.get(dtype) or SCALARS.get(dtype)) is not None else set()
        kind = kinds.pop() if len(kinds) == 1 else None
        if size is not None and isinstance(kind, T.FloatType) and size % layout.store_size(kind) == 0:
            return [(offset, kind) for offset in range(0, size, layout.store_size(kind))]
    return None


def _members(layout: DataLayout, call: I.CallBase) -> _Scalars | None:
    size = _copied_bytes(call)
    if size is None:
        return None
    named = copied_members(layout.module, call)
    if named is not None:
        scalars = _of_source(named)
        if scalars is not None and all(o + layout.store_size(t) <= size for o, t in scalars):
            return scalars
    for pointer in call.operands[:2]:
        if isinstance(pointer, I.Alloca) and int_value(pointer.operands[0]) == 1:
            type_ = pointer.allocated_type
            if isinstance(layout.body(type_), T.StructType) and layout.alloc_size(type_) == size:
                copied = (
                    range(size) if named is None else [b for m in named for b in range(m.offset, m.offset + m.size)]
                )
                return list(_with_gaps(layout, layout.scalars(type_), size, frozenset(copied)))
    return None


def _with_gaps(
    layout: DataLayout, scalars: Iterable[tuple[int, T.Type]], size: int, copied: frozenset[int]
) -> Iterator[tuple[int, T.Type]]:
    """Scalars of a local variable, and what lies between and behind them: a union has the type of one of its members,
    whose gaps may hold bytes of another one. Not what the source says to be between members, which nobody reads."""
    end = 0
    for offset, type_ in (*scalars, (size, T.I8)):
        while end < offset:
            steps = (n for n in (8, 4, 2, 1) if end % n == 0 and end + n <= offset)
            step = next((n for n in steps if copied.issuperset(range(end, end + n))), None)
            if step is not None:
                yield end, T.IntType(8 * step)
            end += step or 1
        if offset < size:
            whole = 8 * layout.store_size(type_)
            yield offset, T.IntType(whole) if isinstance(type_, T.IntType) else type_
            end = offset + whole // 8


def _of_source(members: list[Member]) -> _Scalars | None:
    """Members as scalars; None where one is of a type that the source does not tell."""
    sizes: dict[T.Type, int] = {T.PTR: 8, T.DOUBLE: 8, T.FLOAT: 4, T.HALF: 2, T.BFLOAT: 2}
    found: _Scalars = []
    for member in members:
        if member.type is None and member.size > 8:
            return None
        whole = member.type in (None, T.I1)
        type_ = T.IntType(8 * member.size) if whole else member.type
        assert type_ is not None
        step = member.size if whole else sizes[type_]
        if whole and member.size not in (1, 2, 4, 8):
            # An array of integers: byte by byte is right, and rare.
            type_, step = T.I8, 1
        found += [(member.offset + i, type_) for i in range(0, member.size, step)]
    return found


def _alignment(words: tuple[str, ...]) -> int:
    """What the attributes of a pointer promise of its address."""
    return next((int(w.removeprefix("align ")) for w in words if w.startswith("align ")), 1)


def _change(call: I.Instruction, members: _Scalars | None) -> Change | None:
    if members is None:
        return None
    assert isinstance(call, I.CallBase)
    target, source = call.operands[:2]
    target_align, source_align = (_alignment(words) for words in call.parameter_attributes[:2])

    def change(builder: Builder) -> None:
        values = [builder.load(t, builder.offset(source, o), math.gcd(source_align, o)) for o, t in members]
        for value, (offset, _) in zip(values, members, strict=True):
            builder.store(value, builder.offset(target, offset), math.gcd(target_align, offset))

    return change
