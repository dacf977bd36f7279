"""Which memory objects need a shadow: a second object of the same shape that holds tangents or cotangents.

lattice     {no, yes} per object; least fixed point from the active objects
transfer    an object that holds a pointer to a shadowed one is shadowed (its shadow holds the shadow pointer);
            where one pointer value may point to a shadowed and to another object, the other gets a shadow as well,
            so that `shadow of the pointer` is always defined
never       functions, and constant tables of their addresses (such as virtual functions'), which are their own shadows;
            with them the texts to which such tables lead, where these are read byte by byte and compared;
            the shadow of another constant that holds addresses holds those of what they lead to, and zeros
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.flow import holds_float
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Constant, ConstantAggregate, ConstantString, ZeroInitializer
from jax_enzyme.rules.effects import Effect


def shadowed_objects(points_to: PointsTo, activity: Activity) -> frozenset[MemoryObject]:
    """The least set of objects that need shadows."""
    own = _own_shadows(points_to)
    beside: dict[MemoryObject, set[MemoryObject]] = {}
    for item, held in points_to.contents.items():
        for other in held:
            beside.setdefault(other, set()).add(item)
    for function in points_to.functions:
        for value in (*function.arguments, *function.instructions()):
            if T.is_pointer(value.type) and len(held := points_to.of(value)) > 1:
                for item in held:
                    beside.setdefault(item, set()).update(held)
    active = (o for o in points_to.contents if activity.object(o))
    return frozenset(reached(active, lambda item: beside.get(item, ()), lambda item: item not in own))


def _own_shadows(points_to: PointsTo) -> frozenset[MemoryObject]:
    """The greatest set of tables that lead into it alone, and hold no numbers."""
    tables = {o for o, held in points_to.contents.items() if held and _holds_addresses_only(o)}
    certain = {o for o in points_to.contents if o.is_code} | _texts(points_to, tables)
    own = certain | tables
    while leaking := {o for o in own - certain if not points_to.contents[o] <= own}:
        own -= leaking
    return frozenset(own)


def _holds_addresses_only(item: MemoryObject) -> bool:
    site = item.site
    if not isinstance(site, GlobalVariable) or not site.is_constant or site.initializer is None:
        return False
    return _holds_addresses(site.initializer)


def _texts(points_to: PointsTo, tables: Iterable[MemoryObject]) -> set[MemoryObject]:
    """Constant bytes to which tables lead, of which no number is made: nothing reads more than one of them, or copies
    them. (What is copied in words of integers may be numbers.)"""
    texts = {o for table in tables for o in points_to.contents[table] if _is_bytes(o)}
    for instruction in points_to.instructions() if texts else ():
        if isinstance(instruction, I.Load):
            texts -= set() if instruction.type == T.I8 else points_to.of(instruction.operands[0])
        elif isinstance(instruction, I.CallBase) and call_effect(instruction) not in _READERS:
            inside = isinstance(callee := instruction.callee, Function) and not callee.is_declaration
            texts -= set().union(*(() if inside else map(points_to.of, instruction.arguments)))
    return texts


def _is_bytes(item: MemoryObject) -> bool:
    site = item.site
    return isinstance(site, GlobalVariable) and site.is_constant and isinstance(site.initializer, ConstantString)


_READERS = (Effect.PURE_INT, Effect.OUTPUT, Effect.ABORT, Effect.IGNORED)


def _holds_addresses(value: Constant) -> bool:
    """Whether a constant holds addresses, and integers besides at most."""
    if isinstance(value, ConstantAggregate):
        return all(map(_holds_addresses, value.elements))
    if isinstance(value, ZeroInitializer):
        return not holds_float(value.type)
    return T.is_pointer(value.type) or T.is_int(value.type)
