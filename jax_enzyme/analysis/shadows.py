"""Which memory objects need a shadow: a second object of the same shape that holds tangents or cotangents.

lattice     {no, yes} per object; least fixed point from the active objects
transfer    an object that holds a pointer to a shadowed one is shadowed (its shadow holds the shadow pointer);
            where one pointer value may point to a shadowed and to another object, the other gets a shadow as well,
            so that `shadow of the pointer` is always defined
never       functions, and constant tables of their addresses (such as virtual functions'), which are their own shadows;
            the shadow of another constant that holds addresses holds those of what they lead to, and zeros
"""

from __future__ import annotations

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Constant, ConstantAggregate


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
    certain = {o for o in points_to.contents if _is_code(o)}
    own = certain | {o for o, held in points_to.contents.items() if held and _holds_addresses_only(o)}
    while leaking := {o for o in own - certain if not points_to.contents[o] <= own}:
        own -= leaking
    return frozenset(own)


def _is_code(item: MemoryObject) -> bool:
    return item.kind == "function" or (item.site is not None and item.site.name.startswith(_CXX_TABLES))


def _holds_addresses_only(item: MemoryObject) -> bool:
    site = item.site
    if not isinstance(site, GlobalVariable) or not site.is_constant or site.initializer is None:
        return False
    return _holds_addresses(site.initializer)


_CXX_TABLES = ("_ZTV", "_ZTI", "_ZTS")
"""Virtual functions, type information and type names: in the module or in the C++ run time."""


def _holds_addresses(value: Constant) -> bool:
    """Whether a constant holds addresses, and integers besides at most."""
    if isinstance(value, ConstantAggregate):
        return all(map(_holds_addresses, value.elements))
    return T.is_pointer(value.type) or T.is_int(value.type)
