"""Masked accesses of fewer than sixteen bytes become ones of sixteen, of which the rest is masked out.

    before    call void @llvm.masked.store.v8i8.p0(<8 x i8> %v, ptr %p, <8 x i1> %m)

    after     %m.16 = and <16 x i1> %m (and eight of poison), <eight times true, eight times false>
              call void @llvm.masked.store.v16i8.p0(<16 x i8> %v (and eight of poison), ptr %p, <16 x i1> %m.16)

For processors with AVX-512, LLVM 22 takes the instruction that clears the upper half of the mask of eight bytes for a
copy, and leaves it out: such a store then writes sixteen. The arithmetic here stays. What a branch puts on the tape as
a byte is stored so: which arm a loop that has become vectors went through.
"""

from __future__ import annotations

import re
from functools import partial

import llvmlite.binding as llvm

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Module, callee_name, declare
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantAggregate, ConstantInt, Value
from jax_enzyme.transform.masked_memory import lower_masked_memory
from jax_enzyme.transform.rewriting import Change, rewrite

_BYTES = 16
_NAME = re.compile(r"(llvm\.masked\.(?:load|store))\.v(\d+)i8\.(p\d+)")
_WIDE, _MASK = T.VectorType(_BYTES, T.I8), T.VectorType(_BYTES, T.I1)


def without_short_masks(native: llvm.ModuleRef) -> Module | None:
    """The module without such accesses; None where it has none. Gathers and their like become branches."""
    if not any(f.name.startswith("llvm.masked.") and "i8." in f.name for f in native.functions):
        return None
    module = parse(str(native))
    for function in list(module.functions.values()):
        rewrite(function, partial(_widened, module))
    return lower_masked_memory(module, _is_short)


def _is_short(type_: T.Type) -> bool:
    return isinstance(type_, T.VectorType) and type_.element == T.I8 and type_.count < _BYTES


def _widened(module: Module, call: I.Instruction) -> Change | None:
    """What takes the place of an access."""
    found = _NAME.fullmatch(callee_name(call)) if isinstance(call, I.Call) else None
    if not isinstance(call, I.Call) or found is None or not 1 < (count := int(found[2])) < _BYTES:
        return None

    def widen(at: Builder) -> Value | None:
        bits = [ConstantInt(T.I1, int(lane < count)) for lane in range(_BYTES)]
        arguments = [a if T.is_pointer(a.type) else _with_poison(at, a, count, _BYTES) for a in call.arguments]
        place = next(i for i, a in enumerate(arguments) if a.type == _MASK)
        arguments[place] = at.binary("and", arguments[place], ConstantAggregate(_MASK, list(bits)))
        kind = T.FunctionType(T.VOID if call.type == T.VOID else _WIDE, tuple(a.type for a in arguments))
        wide = at.call(declare(module, f"{found[1]}.v{_BYTES}i8.{found[3]}", kind), arguments)
        wide.parameter_attributes, wide.metadata = call.parameter_attributes, call.metadata
        return None if call.type == T.VOID else _with_poison(at, wide, _BYTES, count)

    return widen


def _with_poison(at: Builder, vector: Value, before: int, after: int) -> Value:
    """The first lanes of a vector of so many, as one of so many others."""
    return at.shuffle(vector, None, [lane if lane < before else -1 for lane in range(after)])
