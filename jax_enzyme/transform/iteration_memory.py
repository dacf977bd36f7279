"""Memory of constant size that a loop allocates in each iteration, for that iteration alone, becomes a local variable.

    before    loop: %z = call ptr @calloc(i64 24, i64 8)      after    %z = alloca [192 x i8]
                    ...                                                loop: call void @llvm.lifetime.start.p0(ptr %z)
                    call void @free(ptr %z)                                  call void @llvm.memset(ptr %z, 0, 192)
                                                                             ...
                                                                             call void @llvm.lifetime.end.p0(ptr %z)

As a `std::vector` of each sample is. Of what is allocated in a loop, only the forward sweep knows where its shadow is,
so that the address of each would be kept, and the tape could not leave the process. The variable goes to the heap,
once, if it is large (`heap_locals`). Nobody keeps a copy of the pointer: so nothing of one iteration is reached in
another one. In loops with a directive, which threads may share, each thread gets a variable of its own where the
directive says that iterations leave each other nothing; where it does not, each allocates memory, as before.
"""

from __future__ import annotations

from jax_enzyme.analysis.extents import allocation_size
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.marks import Mark, marks_of
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, used_at, uses
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import on_copy, replace_values

_BULK = (Effect.MEMORY_COPY, Effect.MEMORY_SET)
_FREES = frozenset("free _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm".split())
_ALIGN = 16


def keep_iteration_memory(function: ArrayFunction) -> ArrayFunction:
    """The array function, in canonical form, with such variables, in a copy of its module; itself where there are
    none."""
    root = function.module.functions[function.symbol]
    if not _found(function.module, root):
        return function
    return on_copy(function, _change)


def _found(module: Module, function: Function) -> list[I.Call]:
    loops = Loops.of(function)
    inside = [(i, loop) for b in function.blocks if (loop := loops.loop_of.get(b)) is not None for i in b.instructions]
    allocations = [(i, loop) for i, loop in inside if isinstance(i, I.Call) and allocation_size(i)]
    if not allocations or loops.irreducible:
        return []
    users = uses(function)
    return [call for call, loop in allocations if _stays(call, users) and not _may_be_kept(module, loop)]


def _may_be_kept(module: Module, loop: Loop) -> bool:
    """May threads share a loop, or one around it, of which no directive says that iterations leave nothing behind?"""
    marks = [marks_of(module, latch.terminator) for around in loop.ancestors for latch in around.latches]
    return any(Mark.PARALLEL in words and Mark.EXCLUSIVE not in words for words in marks)


def _stays(allocation: I.Call, users: Uses) -> bool:
    """Is memory used through addresses that are computed from its own where they are used, and nowhere else?"""

    def stays(user: I.Instruction, index: int, address: Value) -> bool:
        match user:
            case I.Load():
                return True
            case I.Store():
                return index == 1
            case I.Compare():
                return isinstance(user.operands[1 - index], ConstantNull)
            case _:
                is_bulk = isinstance(user, I.Call) and call_effect(user) in _BULK
                return is_bulk or (_is_free(user) and address is allocation)

    return all(stays(*use) for use in used_at(allocation, users))


def _is_free(user: I.Instruction) -> bool:
    return isinstance(user, I.Call) and call_effect(user) is Effect.FREE and callee_name(user) in _FREES


def _change(module: Module, function: Function) -> bool:
    declarations, users = Declarations(module), uses(function)
    home = {i: block for block in function.blocks for i in block.instructions}

    def mark(place: I.Instruction, word: str, variable: Value) -> Builder:
        at = Builder.before(home[place], place)
        declarations.invoke(at, f"llvm.lifetime.{word}.p0", T.VOID, [variable])
        return at

    found = _found(module, function)
    gone = {i for call in found for i in (call, *(user for user, _ in users.get(call, ()) if _is_free(user)))}
    variables: dict[Value, Value] = {}
    for call in found:
        size = allocation_size(call)
        assert size is not None
        variable = Builder.on_top(function).alloca(T.ArrayType(size, T.I8), align=_ALIGN)
        variable.name, variables[call] = call.name, variable
        for user, _ in users.get(call, ()):
            if user in gone:
                mark(user, "end", variable)
        at = mark(call, "start", variable)
        if callee_name(call) == "calloc":
            declarations.memory(at, "memset", variable, const_int(T.I8, 0), const_int(T.I64, size))
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
        for copy in (i for i in block.instructions if isinstance(i, I.Call) and call_effect(i) in _BULK):
            copy.flags = tuple(flag for flag in copy.flags if flag != "tail")  # those come to no local variable
    replace_values(function, variables)
    return bool(found)
