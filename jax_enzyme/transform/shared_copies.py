"""Clears and copies of large memory by several threads, in functions that have a team for their loops.

    before    call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 7200000, i1 false)
              %q = call ptr @calloc(i64 90000, i64 8)

    after     call void @je.fill(ptr %team, ptr %p, i8 0, i64 7200000)
              %q = call ptr @je.cleared(ptr %team, i64 720000)

One thread moves less than memory could deliver; and pages that several threads touch first are near to them.
"""

from __future__ import annotations

from math import prod

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, callee_name, define
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import replace_values
from jax_enzyme.transform.shared_loops import RUN, stretch_arguments, structure

_WORTH = 1 << 18
"""Bytes. What is smaller takes about as long as it takes to share it."""
_UNIT = 1 << 16
"""Bytes that one thread moves in one go."""
_SPARSE = 1 << 26
"""So large an allocation the system gives as it is used, which may be a small part of it."""
_FILL, _COPY, _CLEARED = "je.fill", "je.copy", "je.cleared"
_WORDS = ("noinline", "uwtable")


def share_copies(module: Module, root: Function, team: Value) -> None:
    """Shares large clears and copies in a function, in place."""
    replaced: dict[Value, Value] = {}
    for block in root.blocks:
        at = Builder(BasicBlock())
        for instruction in block.instructions:
            name = callee_name(instruction) if isinstance(instruction, I.Call) else ""
            arguments = instruction.arguments if isinstance(instruction, I.Call) else []
            if name.startswith(("llvm.memset.p0.i64", "llvm.memcpy.p0.p0.i64")) and _size(arguments[2:3]) >= _WORTH:
                share = _fill if "memset" in name else _copy
                share(module, at, team, arguments[0], arguments[1], arguments[2])
            elif name == "calloc" and _WORTH <= _size(arguments) < _SPARSE:
                cleared = module.functions.get(_CLEARED) or _define_cleared(module)
                replaced[instruction] = at.call(cleared, [team, const_int(T.I64, _size(arguments))])
            else:
                at.insert(instruction)
        block.instructions = at.block.instructions
    replace_values(root, replaced)


def clear(module: Module, at: Builder, team: Value | None, place: Value, size: int) -> None:
    """Fills memory with zeros, by the team if it is large."""
    zero, length = const_int(T.I8, 0), const_int(T.I64, size)
    if team is None or size < _WORTH:
        Declarations(module).memory(at, "memset", place, zero, length)
    else:
        _fill(module, at, team, place, zero, length)


def _fill(module: Module, at: Builder, team: Value, place: Value, byte: Value, size: Value) -> None:
    _call(module, at, _FILL, "memset", [team, place, byte, size])


def _copy(module: Module, at: Builder, team: Value, place: Value, source: Value, size: Value) -> None:
    _call(module, at, _COPY, "memcpy", [team, place, source, size])


def _size(sizes: list[Value]) -> int:
    """The product of some numbers, 0 where it is not known."""
    return prod(int_value(size) or 0 for size in sizes)


def _call(module: Module, at: Builder, name: str, by: str, arguments: list[Value]) -> None:
    if name not in module.functions:
        _define(module, name, by, [a.type for a in arguments])
    at.call(module.functions[name], arguments)


def _define(module: Module, name: str, by: str, types: list[T.Type]) -> None:
    """The function that moves memory with a team, and its part for one thread."""
    declarations = Declarations(module)
    team, *moved = arguments = [Argument(t, (), n) for n, t in enumerate(types)]
    kind = structure(moved)
    context, first, last = parameters = stretch_arguments()
    at = Builder(BasicBlock(name="entry"))
    place, what, size = (at.load(t, at.field(kind, context, n)) for n, t in enumerate(kind.elements))
    low, behind = (at.binary("mul", number, const_int(T.I64, _UNIT)) for number in (first, last))
    length = at.binary("sub", at.least(behind, size), low)
    source = at.gep(T.I8, what, [low]) if T.is_pointer(what.type) else what
    declarations.memory(at, by, at.gep(T.I8, place, [low]), source, length)
    at.ret(const_int(T.I64, 0))
    part = define(module, f"{name}.part", T.I64, parameters, [at.block], attributes=_WORDS)

    entry, alone, together, end = (BasicBlock(name=n) for n in ("entry", "alone", "together", "end"))
    at = Builder(entry)
    memory = at.alloca(kind, align=16)
    for number, value in enumerate(moved):
        at.store(value, at.field(kind, memory, number))
    at.cond_br(at.icmp("eq", team, ConstantNull(T.PTR)), alone, together)
    at = Builder(alone)
    declarations.memory(at, by, *moved)
    at.br(end)
    at = Builder(together)
    rounded = at.binary("add", moved[2], const_int(T.I64, _UNIT - 1))
    units = at.binary("udiv", rounded, const_int(T.I64, _UNIT))
    at.call(at.load(T.PTR, team, 8), [team, part, memory, units, const_int(T.I64, 1)], RUN)
    at.br(end)
    Builder(end).ret()
    define(module, name, T.VOID, arguments, [entry, alone, together, end], attributes=_WORDS)


def _define_cleared(module: Module) -> Function:
    """The function that allocates memory and clears it with a team."""
    declarations = Declarations(module)
    team, size = arguments = [Argument(T.PTR, (), 0), Argument(T.I64, (), 1)]
    entry, alone, together, there, end = (BasicBlock(name=n) for n in ("entry", "alone", "together", "there", "end"))
    at, zero = Builder(entry), const_int(T.I8, 0)
    at.cond_br(at.icmp("eq", team, ConstantNull(T.PTR)), alone, together)
    at = Builder(alone)
    at.ret(declarations.memory(at, "calloc", const_int(T.I64, 1), size))
    at = Builder(together)
    memory = declarations.memory(at, "malloc", size)
    at.cond_br(at.icmp("eq", memory, ConstantNull(T.PTR)), end, there)
    at = Builder(there)
    _fill(module, at, team, memory, zero, size)
    at.br(end)
    Builder(end).ret(memory)
    blocks = [entry, alone, together, there, end]
    return define(module, _CLEARED, T.PTR, arguments, blocks, ("internal", "noalias"), _WORDS)
