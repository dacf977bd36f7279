"""Which memory the pointers of a launch lead to, as far as a host function shows, and which structures they pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, ConstantNull, Value
from jax_enzyme.rules.effects import Effect, effect

_BY_VALUE = re.compile(r"byval\(%(.*)\)$")


def aliased_pointers(arguments: Sequence[Value]) -> list[int]:
    """The positions of pointers whose memory another argument may lead to as well, or that may lead anywhere."""
    found = {n: objects(v) for n, v in enumerate(arguments) if isinstance(v.type, T.PointerType)}
    return [
        n
        for n, mine in found.items()
        if mine is None or any(m != n and (others is None or mine & others) for m, others in found.items())
    ]


def objects(pointer: Value) -> set[Value] | None:
    """The allocations, local variables and parameters of the host function that a pointer may lead into; None where it
    may be others. Parameters are arrays of JAX's, which do not overlap."""
    found = reached([pointer], lambda value: _bases(value) or ())
    starts = {value: _bases(value) for value in found}
    if None in starts.values():
        return None
    return {value for value, bases in starts.items() if not bases and not isinstance(value, ConstantNull)}


def _bases(value: Value) -> Iterable[Value] | None:
    """What a pointer is computed from, nothing where it is the start of an object, None where that cannot be told."""
    match value:
        case Argument() | I.Alloca() | ConstantNull():
            return []
        case I.GetElementPtr():
            return value.operands[:1]
        case I.Phi() | I.Select() | I.Freeze():
            return I.merged(value)
        case I.Call() if _allocates(value):
            return []
        case _:
            return None


def _allocates(call: I.Call) -> bool:
    name = getattr(call.callee, "name", "")
    return effect(name) is Effect.ALLOCATE


def passed_structure(module: Module, parameter: Argument) -> int | None:
    """The size of the structure that a parameter of a kernel is, passed by value; None for other parameters."""
    passed = next((m for w in parameter.attributes if (m := _BY_VALUE.match(w))), None)
    return None if passed is None else DataLayout(module).alloc_size(T.NamedStructType(passed[1]))
