"""Fortran's `allocate` of an array that is allocated already.

    before    %new = call ptr @malloc(i64 %n)            after    %new = call ptr @malloc(i64 %n)
              %d = insertvalue {...} %rest, ptr %new, 0           %d = insertvalue {...} %rest, ptr %new, 0
              store {...} %d, ptr %tmp                            store {...} %d, ptr %tmp
                                                                  %old = load ptr, ptr %a
                                                                  %bad = icmp ne ptr %old, null    (fails)
              call void @llvm.memcpy(ptr %a, ptr %tmp, ...)       call void @llvm.memcpy(ptr %a, ptr %tmp, ...)

flang has no call for it where there is no status: it describes the new memory, as that of an allocatable array, and
copies the description over the old one. Assignments that allocate are calls, or choose between old and new memory, and
what an array constructor is made in is described anew each time.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import BasicBlock, ConstantAggregate, ConstantNull, Value, int_value
from jax_enzyme.transform.described import Kind
from jax_enzyme.transform.descriptors import VERSION
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.runtime import Runtime

_CONSTRUCTOR = "_FortranAInitArrayConstructorVector"


def allocation_checks(function: Function, runtime: Runtime) -> dict[I.Instruction, list[Check]]:
    """What is to be checked before the instructions of a function."""
    found: dict[I.Instruction, list[Check]] = {}
    calls = (i for i in function.instructions() if isinstance(i, I.CallBase))
    constructed = {call.arguments[1] for call in calls if callee_name(call) == _CONSTRUCTOR}
    for block in function.blocks:
        for store in block.instructions:
            if isinstance(store, I.Store) and _describes_new_memory(store.operands[0]):
                copy = _copy_of(store, block)
                if copy is not None and copy.arguments[0] not in constructed:
                    found[copy] = [_check(copy, runtime)]
    return found


def _describes_new_memory(value: Value) -> bool:
    base: Value | None = None
    while isinstance(value, I.InsertValue):
        if value.indices == (0,) and base is None:
            base = value.operands[1]
        value = value.operands[0]
    if not isinstance(base, I.CallBase) or callee_name(base) != "malloc" or not isinstance(value, ConstantAggregate):
        return False
    match [int_value(member) for member in value.elements]:
        case [_, _, version, _, _, attribute, _, *_]:
            return version == VERSION and attribute == Kind.ALLOCATABLE.value
        case _:
            return False


def _copy_of(store: I.Store, block: BasicBlock) -> I.CallBase | None:
    """The copy of what is stored, to where it belongs."""
    behind = block.instructions[block.instructions.index(store) + 1 :]
    copies = (i for i in behind if isinstance(i, I.CallBase) and callee_name(i).startswith("llvm.memcpy."))
    return next((copy for copy in copies if copy.arguments[1] is store.operands[1]), None)


def _check(copy: I.CallBase, runtime: Runtime) -> Check:
    status = runtime.failure("allocates what is allocated already", copy)
    place = copy.arguments[0]
    return Check(lambda at: at.icmp("ne", at.load(T.PTR, place, 8), ConstantNull(T.PTR)), lambda at: status)
