"""Memory whose size the kernel asks of the allocator (`malloc_usable_size`), and the size of its shadow.

The allocator may give more than was asked for, and what the kernel copies by its answer is copied in the shadow too:

    primal    %p = call ptr @malloc(i64 %n)        shadow    %room = call i64 @malloc_usable_size(ptr %p)
                                                             ... so many bytes
"""

from __future__ import annotations

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations

_ASKED = "malloc_usable_size"
_RESIZABLE = ("malloc", "calloc", "aligned_alloc")


def measured_memory(points_to: PointsTo) -> frozenset[MemoryObject]:
    """The objects that such a call may be about."""
    found = set[MemoryObject]()
    for instruction in points_to.instructions():
        if callee_name(instruction) == _ASKED:
            found |= points_to.of(instruction.operands[0])
    if points_to.unknown in found:
        found.update(points_to.objects.values())
    return frozenset(filter(_is_resizable, found))


def _is_resizable(item: MemoryObject) -> bool:
    return item.site is not None and callee_name(item.site) in _RESIZABLE


def room(declarations: Declarations, builder: Builder, memory: Value) -> Value:
    """The bytes that there are in memory from the allocator."""
    return declarations.invoke(builder, _ASKED, T.I64, [memory])
