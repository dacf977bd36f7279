"""Adjoints in memory of which only the run knows what kind of number lies where (`transform.number_kinds`).

    primal     %x = load double, ptr %p           reverse    call void @je.kinds.put(ptr %p.shadow, i64 8, i32 8)
                                                             (then the adjoint is added there)
               memcpy(to, from, n)                           je.copy.kinds(to.shadow, from.shadow, n)

What an adjoint is of is known where it begins: at a load. The table says so of the shadow from then on, and the adjoint
of a copy, which knows nothing of the numbers that it is of, moves what it finds there, number by number. What is left
of other numbers in the shadow is zero: the reverse of the store that put them there has taken it.
"""

from __future__ import annotations

from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.analysis.objects import Objects
from jax_enzyme.analysis.words import DTYPES, Words
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.kinds import of_table

_NAME = "je.copy.kinds"
_TYPES = {8: "double", 4: "float"}
_HEAD = """
declare i64 @je.kinds.number(ptr, i64, i64)
declare void @je.kinds.put(ptr, i64, i32)

define internal void @NAME(ptr %to, ptr %from, i64 %bytes, i64 %else) nounwind {
entry:
  %down = icmp ult ptr %to, %from
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %look, label %exit

look:
  %left = sub i64 %bytes, %k
  %last = sub i64 %left, 1
  %i = select i1 %down, i64 %last, i64 %k
  %to.at = getelementptr i8, ptr %to, i64 %i
  %from.at = getelementptr i8, ptr %from, i64 %i
  %room = sub i64 %bytes, %i
  %found = call i64 @je.kinds.number(ptr %to.at, i64 %room, i64 %else)
  switch i64 %found, label %next [
WAYS
    i64 16, label %nothing
  ]

nothing:
  br label %next

next:
  %wide = phi i64 [ 1, %look ], [ 8, %nothing ], COMES
  %step = select i1 %down, i64 1, i64 %wide
  %k.next = add i64 %k, %step
  br label %test

exit:
  ret void
"""
_MOVE = """
move.{size}:
  %x.{size} = load {type}, ptr %to.at, align 1
  store {type} 0.0, ptr %to.at, align 1
  call void @je.kinds.put(ptr %to.at, i64 {size}, i32 0)
  %y.{size} = load {type}, ptr %from.at, align 1
  %sum.{size} = fadd reassoc nsz contract {type} %y.{size}, %x.{size}
  store {type} %sum.{size}, ptr %from.at, align 1
  call void @je.kinds.put(ptr %from.at, i64 {size}, i32 {size})
  br label %next
"""


def copy_adjoint(module: Module, only: int) -> Function:
    """The adjoint of a copy, of all numbers or of those of one size. Its last argument is the size of the numbers that
    lie where the table knows of none."""
    sizes = {size: type_ for size, type_ in _TYPES.items() if only in (0, size)}
    name = f"{_NAME}.{only}" if only else _NAME
    comes = ", ".join(f"[ {size}, %move.{size} ]" for size in sizes)
    text = _HEAD.replace("NAME", name).replace("COMES", comes)
    text = text.replace("WAYS", "\n".join(f"    i64 {size}, label %move.{size}" for size in sizes))
    return defined(module, name, text + "".join(_MOVE.format(size=n, type=t) for n, t in sizes.items()) + "}\n")


def held(words: Words, objects: Objects) -> int:
    """The size of the numbers of buffers, of whose adjoints the table knows nothing at first; 0: it is no buffer."""
    buffers = {words.buffers.get(o.site) if isinstance(o.site, Argument) else None for o in objects}
    found = {None if b is None else DTYPES.get(b.dtype) for b in buffers}
    kind = found.pop() if len(found) == 1 else None
    return 0 if kind is None else kind.size


def note(declarations: Declarations, at: Builder, shadow: Value, type_: T.Type, is_own: Value) -> None:
    """Emits what says that the adjoint of a number is there from now on, if it is one."""
    _note(declarations, at, shadow, type_, at.icmp("ne", is_own, zero(is_own.type)))


def note_word(declarations: Declarations, at: Builder, shadow: Value, adjoint: Value) -> None:
    """The same of a word that is taken for a number: if its adjoint is not zero, or that of nothing else is there."""
    size = const_int(T.I32, _size(adjoint.type))
    is_free = at.icmp("ne", of_table(declarations, at, "is", shadow, size), const_int(T.I32, 0))
    is_one = at.binary("or", is_free, at.fcmp("une", adjoint, zero(adjoint.type)))
    _note(declarations, at, shadow, adjoint.type, is_one)


def _note(declarations: Declarations, at: Builder, shadow: Value, type_: T.Type, is_one: Value) -> None:
    size = _size(type_)
    count = at.select(is_one, const_int(T.I64, size), const_int(T.I64, 0))
    of_table(declarations, at, "put", shadow, count, const_int(T.I32, size))


def _size(type_: T.Type) -> int:
    assert isinstance(type_, T.FloatType)
    return type_.size
