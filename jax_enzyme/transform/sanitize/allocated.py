"""Fortran's `allocate` of what is allocated, and `deallocate` of what is not, without a status that would say so.

before    call @_FortranAAllocatableAllocate(%d, ...)       after    %base = load ptr, ptr %d
                                                                     (fails where %base is not null)
                                                                     call @_FortranAAllocatableAllocate(%d, ...)

The run-time library fails as well, but where many calls lead to it nobody would know which one it was.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.values import ConstantNull, int_value
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.runtime import Runtime

_OPERANDS = {
    "_FortranAAllocatableAllocate": (-7, -5),
    "_FortranAAllocatableAllocateSource": (-6, -4),
    "_FortranAAllocatableDeallocate": (-5, -4),
    "_FortranAAllocatableDeallocatePolymorphic": (-6, -4),
    "_FortranAPointerDeallocate": (-5, -4),
    "_FortranAPointerDeallocatePolymorphic": (-6, -4),
}
"""Which arguments are the descriptor, and say whether there is a status; from the end, since those that lead to where
failures go stand in front."""


def allocation_checks(call: I.Instruction, runtime: Runtime) -> list[Check]:
    """What is to be checked before an instruction, where it calls such a function."""
    name = callee_name(call)
    if name not in _OPERANDS or not isinstance(call, I.Call):
        return []
    descriptor, has_status = (call.arguments[index] for index in _OPERANDS[name])
    if int_value(has_status) != 0:
        return []
    makes = "Deallocate" not in name
    what = "allocates what is allocated already" if makes else "deallocates what is not allocated"
    status = runtime.failure(what, call)
    order = "ne" if makes else "eq"
    # The base address is the first member of a descriptor.
    return [Check(lambda at: at.icmp(order, at.load(T.PTR, descriptor, 8), ConstantNull(T.PTR)), lambda _: status)]
