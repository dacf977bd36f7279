"""Memory that holds a pointer at one time and a number at another, in reverse mode.

The shadow of memory has one plane, which shadow pointers and adjoints use one after the other, as the memory itself is
used. In the forward sweep the shadow follows the memory, with a tangent of zero for every number; the reverse sweep
leaves behind each write a place without an adjoint:

    forward    *p = pointer    p.shadow = its shadow    reverse    *p = pointer    p.shadow = 0
               *p = number     p.shadow = 0                        *p = number     its adjoint += p.shadow; p.shadow = 0

So where the reverse sweep begins, a place whose last content is a number has the adjoint zero, and before it comes to
an earlier number, it has come to the pointer in between. What an address adds up to while it lies there is never read.

In a buffer, the shadow is given: a cotangent, which the forward sweep must not touch. There a pointer and a number that
varies must not have a byte in common.

In a derivative that is differentiated again, memory is frames. Each slot of a frame is of one type for as long as the
frame lives; in what is known of all frames at once, a pointer and a number seem to share a place, and so do frames and
buffers. There, what may be a buffer is left alone.
"""

from __future__ import annotations

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, Objects
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import GlobalVariable
from jax_enzyme.ir.values import ConstantString, Value

_OWN = ("stack", "heap")


def numbers_under(activity: Activity, store: I.Store) -> frozenset[MemoryObject]:
    """The objects in which a number that varies may have a byte in common with what is stored."""
    numbers = activity.numbers
    return frozenset(item for item, part in numbers.ranges.accessed(store) if any(map(part.meets, numbers.of(item))))


def is_own(objects: Objects) -> bool:
    """Whether the memory behind a pointer is the kernel's own, so that nothing but the sweeps writes its shadow. A
    function, whose address may be kept where that of memory is, is no memory that anything is moved to or from, nor is
    the table of a class. (And nothing is moved to a constant, as the table of a hash map without entries:
    `PointsTo.written`.)"""
    return all(item.kind in _OWN or item.is_code for item in objects)


def is_moved_on(points_to: PointsTo, shadowed: Objects, source: Value) -> bool:
    """Whether what lies in the shadow of memory may be moved on with the memory: the sweeps' own, or that of a
    constant, which holds zeros and addresses. What no program copies, as virtual functions' tables, does not count."""
    texts = {text for text, _ in own_texts(points_to, shadowed, source)}
    constants = {o for o in points_to.of(source) if o.is_constant or o.is_code}
    return is_own(points_to.of(source) - constants) and all(
        o in shadowed or points_to.contents[o] or o.site in texts for o in constants
    )


def own_texts(points_to: PointsTo, shadowed: Objects, source: Value) -> list[tuple[GlobalVariable, int]]:
    """The constant texts of known lengths that memory may be and that are their own shadows, as names of types are:
    what is copied from there is no number, and nothing may be added to it."""
    texts = {o.site for o in points_to.of(source) - shadowed if o.is_constant}
    return [
        (text, len(text.initializer.data))
        for text in sorted((t for t in texts if isinstance(t, GlobalVariable)), key=lambda t: t.name)
        if isinstance(text.initializer, ConstantString)
    ]


def may_hold_pointer(words: Words, pointer: Value, size: int | None) -> bool:
    """Whether a pointer may lie, at any time, within `size` bytes behind an address (None: nobody knows how many) in
    memory of the kernel's own."""
    items = words.points_to.of(pointer)
    if not any(words.points_to.contents[item] for item in items if item.kind in _OWN):
        return False
    return size is None or words.pointers(pointer, size) != frozenset()


def is_pointer_among_numbers(words: Words, pointer: Value) -> bool:
    """Whether a pointer may lie at the place of a number, in the array behind an address that a routine writes."""
    if not may_hold_pointer(words, pointer, None):
        return False
    found = words.pattern((pointer,))
    if found is None:
        return True
    period, pieces = found
    pointers = [offset for offset, type_ in pieces if T.is_pointer(type_)]
    numbers = [offset for offset, type_ in pieces if T.is_float(type_)]
    around = (0, period, -period)
    return any(-8 < a - b + turn < 8 for a in pointers for b in numbers for turn in around)
