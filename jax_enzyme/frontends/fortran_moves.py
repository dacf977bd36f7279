"""Says of `move_alloc` how the arrays lie in memory, where flang tells: whether they are of a derived type, whose
final procedures the run time would call through pointers, and of which rank.

    before    call i32 @_FortranAMoveAlloc(ptr %to, ptr %from, ptr null, i1 false, ptr null, ptr @file, i32 17)
    after     call i32 @je_move_alloc(ptr %to, ptr %from, ptr null, i1 false, ptr null, ptr @file, i32 1)

What stands behind the dimensions of a descriptor tells: `%to` is a variable, a component, or is accessed as

    { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]] }                  an array of numbers, or copied in 48 bytes
    { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }  one of a derived type

What was memory of one variable is memory of another from then on. flang tells LLVM all the same that no access of one
meets an access of the other, which nobody notices as long as the run time is a library between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable, Module, Uses, callee_of, declare, uses
from jax_enzyme.ir.values import ConstantInt, Value

_GENERAL, _PLAIN = "_FortranAMoveAlloc", "je_move_alloc"
_VARIABLE = re.compile(r'!"(allocated|global) data/_Q\w+')
_HEAD = (T.PTR, T.IntType(64), T.IntType(32), *[T.IntType(8)] * 4)
_DIMENSION = T.ArrayType(3, T.IntType(64))
_HEAD_BYTES, _DIMENSION_BYTES = 24, 24


def name_plain_moves(module: Module) -> None:
    """Calls another function where both arrays are of numbers, in place."""
    general = module.functions.get(_GENERAL)
    if general is None:
        return
    for function in list(module.functions.values()):
        used: Uses = {}
        for call in function.instructions():
            if not isinstance(call, I.CallBase) or callee_of(call) is not general:
                continue
            used = used or uses(function)
            ranks = {_rank(module, descriptor, used) for descriptor in call.arguments[:2]}
            rank = ranks.pop()
            if rank is not None and rank >= 0 and not ranks:
                call.operands[-2:] = [ConstantInt(T.IntType(32), rank), declare(module, _PLAIN, general.function_type)]


def with_moved_memory(program: str) -> str:
    """The text of a program in which accesses by names of variables may meet, where memory is moved between them."""
    moves = _GENERAL in program or _PLAIN in program
    return _VARIABLE.sub(r'!"\1 data/_Q', program) if moves else program


def _rank(module: Module, descriptor: Value, used: Uses) -> int | None:
    """The rank of an array of numbers, -1 for others; None where nothing tells, or it is not one answer."""
    found = {rank for type_ in _forms(module, descriptor, used) if (rank := _rank_of(type_)) is not None}
    for user, _ in used.get(descriptor, ()):
        callee = callee_of(user)
        if callee is not None and callee.name.startswith("llvm.memcpy") and isinstance(user.operands[2], ConstantInt):
            dimensions, more = divmod(user.operands[2].value - _HEAD_BYTES, _DIMENSION_BYTES)
            found.add(-1 if more else dimensions)
    return found.pop() if len(found) == 1 else None


def _forms(module: Module, descriptor: Value, used: Uses) -> Iterator[T.Type]:
    """The types as which the code takes what lies at an address."""
    match descriptor:
        case I.Alloca():
            yield descriptor.allocated_type
        case GlobalVariable():
            yield descriptor.value_type
        case I.GetElementPtr():
            type_: T.Type = descriptor.source_type
            for index in descriptor.operands[2:]:
                if isinstance(type_, T.NamedStructType):
                    type_ = module.struct_bodies.get(type_.name) or type_
                if isinstance(type_, T.ArrayType):
                    type_ = type_.element
                elif isinstance(type_, T.StructType) and isinstance(index, ConstantInt):
                    type_ = type_.elements[index.value]
            yield type_
        case _:
            pass
    for user, place in used.get(descriptor, ()):
        if isinstance(user, I.GetElementPtr) and place == 0:
            yield user.source_type
        elif isinstance(user, I.Load):
            yield user.type


def _rank_of(type_: T.Type) -> int | None:
    """The rank of arrays of numbers with such a descriptor; -1 for those of derived types, None for no descriptor."""
    if not isinstance(type_, T.StructType) or type_.elements[: len(_HEAD)] != _HEAD:
        return None
    match type_.elements[len(_HEAD) :]:
        case ():
            return 0
        case (T.ArrayType(element=element, count=rank),) if element == _DIMENSION:
            return rank
        case _:
            return -1
