"""`dynamic_cast` becomes a comparison of the object's table pointer with the tables that the module defines.

before    %q = call ptr @__dynamic_cast(ptr %p, ptr @_ZTI5Shape, ptr @_ZTI6Circle, i64 0)

after     %table = load ptr, ptr %p
          %is.1 = icmp eq ptr %table, <table of Circle>       an object of this class has a Circle: at %p + 0
          %q.1 = select i1 %is.1, ptr %p, ptr null
          %is.2 = icmp eq ptr %table, <table of Square>       one of this class has none
          %known = or i1 %is.1, %is.2
          br i1 %known, label %cast, label %other              an object of a class that is not here
        other:
          call void @llvm.trap()
          unreachable
        cast: ...
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.class_hierarchy import Table, parts, tables
from jax_enzyme.transform.rewriting import place, replace_values, split_before

_CAST = "__dynamic_cast"


def lower_dynamic_casts(module: Module) -> Module:
    """A copy of the module whose casts look at tables; the module itself where there are none."""
    if not any(_is_cast(i) for f in module.functions.values() for i in f.instructions()):
        return module
    copy = clone(module)
    known = list(tables(copy))
    declarations = Declarations(copy)
    for function in list(copy.functions.values()):
        replaced: dict[Value, Value] = {}
        for call in [i for i in function.instructions() if _is_cast(i)]:
            assert isinstance(call, I.Call)
            replaced[call] = _lower(function, call, _targets(copy, known, call), declarations)
        replace_values(function, replaced)
    return copy


def _is_cast(instruction: I.Instruction) -> bool:
    if not isinstance(instruction, I.Call) or instruction.callee.name != _CAST:
        return False
    return all(isinstance(a, GlobalVariable) for a in instruction.arguments[1:3])


def _targets(module: Module, known: list[Table], call: I.Call) -> Iterator[tuple[Table, int | None]]:
    """The tables that an object of the call's static class may have, and how many bytes on the cast leads; None where
    it fails."""
    source, target = (a.name for a in call.arguments[1:3])
    for _, group in groupby(known, key=lambda table: table.type):
        by_part = {table.part: table for table in group}
        type_ = next(iter(by_part.values())).type
        sources = parts(module, by_part, type_, source)
        targets = parts(module, by_part, type_, target)
        if not sources or targets is None:
            continue
        for at in sources:
            if at in by_part:
                public = [t for t, is_public in targets.items() if is_public]
                yield by_part[at], public[0] - at if len(public) == 1 else None  # of several none is meant


def _lower(
    function: Function, call: I.Call, targets: Iterator[tuple[Table, int | None]], declarations: Declarations
) -> Value:
    block = next(b for b in function.blocks if call in b.instructions)
    index = block.instructions.index(call)
    rest = split_before(function, block, index + 1, "cast")
    del block.instructions[index:]
    at = Builder(block)
    source = call.arguments[0]
    pointer = at.load(T.PTR, source, 8)
    result: Value = ConstantNull(T.PTR)
    matched: Value | None = None
    for table, step in targets:
        same = at.icmp("eq", pointer, at.offset(table.variable, table.offset))
        matched = same if matched is None else at.binary("or", matched, same)
        if step is not None:
            result = at.select(same, at.offset(source, step) if step else source, result)
    other = BasicBlock(name="cast.other")
    function.blocks.insert(function.blocks.index(rest), other)
    if matched is None:
        at.br(other)
    else:
        at.cond_br(matched, rest, other)
    declarations.invoke(Builder(other), "llvm.trap", T.VOID)
    Builder(other).unreachable()
    place(call, block.instructions[index:])
    return result
