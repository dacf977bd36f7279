"""Which instructions read and write memory, and what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import NOTHING, MemoryObject, Objects, call_effect, called_routine, is_memory_free
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, callee_name, callee_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value, int_value, is_zero
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import standard

_HARMLESS = (Effect.IGNORED, Effect.PURE_INT, Effect.VECTOR_REDUCE, Effect.MEMORY_COPY, Effect.MEMORY_SET)
_COPIES, _FILLS = ("llvm.memcpy.", "llvm.memmove."), "llvm.memset."


def direct(instruction: I.Instruction, layout: DataLayout) -> list[tuple[Value, int | Value, bool]]:
    """The addresses that an instruction accesses by itself, with the bytes there, and whether it writes them: loads,
    stores, atomic operations, and intrinsics that copy (first what they read) or fill."""
    accessed = I.accessed(instruction)
    if accessed is not None:
        return [(accessed[0], layout.store_size(accessed[1]), not isinstance(instruction, I.Load))]
    name, operands = callee_name(instruction), instruction.operands
    if not name.startswith((*_COPIES, _FILLS)):
        return []
    known = int_value(operands[2])
    size = operands[2] if known is None else known
    filled = (operands[0], size, True)
    return [filled] if name.startswith(_FILLS) else [(operands[1], size, False), filled]


def reachable_objects(points_to: PointsTo, call: I.CallBase) -> Objects:
    """The objects that a call can reach through its arguments."""
    return closure(points_to, (o for a in call.arguments for o in points_to.of(a)))


def closure(points_to: PointsTo, objects: Iterable[MemoryObject]) -> Objects:
    """These objects and all that the pointers in them lead to."""
    return frozenset(reached(objects, lambda item: points_to.contents.get(item, NOTHING)))


def clears(instruction: I.Instruction) -> bool:
    """Does an instruction write zeros?"""
    match instruction:
        case I.Store():
            return is_zero(instruction.operands[0])
        case I.CallBase():
            return call_effect(instruction) is Effect.MEMORY_SET and int_value(instruction.operands[1]) == 0
        case _:
            return False


@dataclass(frozen=True, eq=False)
class Access:
    """An instruction that reads or writes memory through `pointer`; `size` in bytes, None where it varies."""

    instruction: I.Instruction
    pointer: Value
    objects: Objects
    size: int | None
    reads: bool
    writes: bool
    kills: bool = False


def accesses(points_to: PointsTo, function: Function, layout: DataLayout) -> Iterator[Access]:
    """Every memory access of a function; `kills` marks the end of an object's life (free)."""
    for instruction in function.instructions():
        match instruction:
            case I.Load():
                pointer = instruction.operands[0]
                yield Access(
                    instruction, pointer, points_to.of(pointer), layout.store_size(instruction.type), True, False
                )
            case I.Store():
                value, pointer = instruction.operands
                objects = points_to.written(pointer)
                yield Access(instruction, pointer, objects, layout.store_size(value.type), False, True)
            case I.AtomicRMW() | I.CmpXchg():
                pointer = instruction.operands[0]
                size = layout.store_size(instruction.operands[1].type)
                yield Access(instruction, pointer, points_to.of(pointer), size, True, True)
            case I.CallBase():
                yield from _call_accesses(points_to, instruction)
            case _:
                pass


def _call_accesses(points_to: PointsTo, call: I.CallBase) -> Iterator[Access]:
    match call_effect(call):
        case Effect.MEMORY_COPY:
            size = int_value(call.operands[2])
            target, source = call.operands[0], call.operands[1]
            yield Access(call, source, points_to.of(source), size, True, False)
            yield Access(call, target, points_to.written(target), size, False, True)
        case Effect.MEMORY_SET:
            target = call.operands[0]
            yield Access(call, target, points_to.written(target), int_value(call.operands[2]), False, True)
        case Effect.FREE:
            target = call.operands[0]
            yield Access(call, target, points_to.of(target), None, False, True, kills=True)
        case Effect.REALLOCATE:
            target = call.operands[0]
            yield Access(call, target, points_to.of(target), None, True, True, kills=True)
        case None if (routine := called_routine(call)) is not None:
            for index, parameter in enumerate(routine.parameters):
                pointer = call.operands[index]
                yield Access(call, pointer, points_to.of(pointer), None, parameter.reads, parameter.writes)
        case None if not is_memory_free(call):
            for argument in call.arguments:
                held = points_to.of(argument)
                if held and not isinstance(argument.type, T.FloatType):
                    yield Access(call, argument, held, None, True, True)
        case _:
            pass


def is_harmless(call: I.CallBase) -> bool:
    """Does a call do nothing but to compute, and to access the memory that it is given as the analysis knows?"""
    effect = call_effect(call)
    if effect is not None:
        return effect in _HARMLESS
    callee = callee_of(call)
    if callee is None:
        return False
    if not callee.is_declaration:
        return _computes_only(callee)
    known = rule_of(call, standard()) is not None
    return is_memory_free(call) or (known and not any(T.is_pointer(a.type) for a in call.arguments))


def _computes_only(function: Function) -> bool:
    """Is a function with a body arithmetic alone?"""
    for instruction in function.instructions():
        match instruction:
            case I.CallBase():
                if is_memory_free(instruction) or instruction.callee is function or is_harmless(instruction):
                    continue
                return False
            case I.Load() | I.Store() | I.AtomicRMW() | I.CmpXchg() | I.Fence() | I.Alloca():
                return False
            case _:
                pass
    return True
