"""Integers of Fortran where numbers may lie: work arrays that hold both, as the factors of an FFT behind its twiddles.

Where the parts begin is known at run time alone. Fortran leaves undefined what a number is after an integer was stored
over a half of it, so that a right program never reads it again; one that does all the same is not to get a derivative
in silence. The shadow tells: where it is not zero, the number still mattered, and becomes no number.

    store i32 %k, ptr %p        %v = load double, the aligned one around %p.shadow
                                store double (%v is zero ? 0 : NaN), there
"""

from __future__ import annotations

from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.extents import room
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.tbaa import is_equivalenced, is_fortran_integer, number_access
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import Value

_SIZE = 8


def takes_half(module: Module, activity: Activity, store: I.Store, original: I.Instruction) -> bool:
    """Whether an integer that is no number's bits is stored where, as far as is known, doubles that vary may lie, and
    nothing else that varies."""
    value, pointer = store.operands
    if not isinstance(value.type, T.IntType) or value.type.bits >= 8 * _SIZE or value in activity.varied:
        return False
    if not is_fortran_integer(module, original) and not is_equivalenced(module, original):
        return False
    ranges = activity.numbers.ranges
    under = [
        (item, other)
        for item, part in ranges.accessed(store, pointer, value.type)
        for other in activity.numbers.of(item)
        if part.meets(other)
    ]
    return bool(under) and all(o.size == _SIZE and _is_of_doubles(ranges.layout, i) for i, o in under)


def _is_of_doubles(layout: DataLayout, item: MemoryObject) -> bool:
    """Whether there is room for a double around each byte of an object."""
    return (room(layout, item) or 0) % _SIZE == 0


def spoil(builder: Builder, shadow: Value) -> None:
    """Makes NaN of the double around an address, unless it is zero."""
    address = builder.cast("ptrtoint", shadow, T.I64)
    back = builder.binary("sub", const_int(T.I64, 0), builder.binary("and", address, const_int(T.I64, _SIZE - 1)))
    place = builder.gep(T.I8, shadow, [back])
    old = builder.load(T.DOUBLE, place)
    nothing = const_float(T.DOUBLE, 0.0)
    kept = builder.select(builder.fcmp("oeq", old, nothing), nothing, const_float(T.DOUBLE, float("nan")))
    for access in (old, builder.store(kept, place)):
        assert isinstance(access, I.Instruction)
        access.metadata = number_access(T.DOUBLE)
