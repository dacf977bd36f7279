"""Loops whose next iteration looks through a pointer at another object.

    .loop:   %p = phi ptr [ %a, %entry ], [ %q, %loop ]        leads elsewhere: `%a` and `%b` take turns
             %q = phi ptr [ %b, %entry ], [ %p, %loop ]
    .loop:   %p = phi ptr [ %a, %entry ], [ %next, %loop ]     does not: %next = getelementptr i8, ptr %p, i64 8

LLVM 22's memory SSA asks of a load behind such a phi what it reads in the first iteration, and takes it for all: then
stores to the objects of the others have no reader, and go (`codegen.pipelines`). A pointer that is still a variable in
memory leads where all do that are stored there, and to anything where a call gets the address of the variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import Effect

Pointer = I.Phi | I.Load


def leads_elsewhere(module: Module) -> bool:
    """Whether a loop of a module may come to another object through a pointer, iteration by iteration."""
    return any(map(_has_other_objects, module.functions.values()))


def _has_other_objects(function: Function) -> bool:
    starts = _Starts(function)
    found = [p for p in starts.pointers if starts.differ(p)]
    if not found and not starts.are_passed:
        return False
    loops = Loops.of(function)
    entered = {loop.header for loop in loops.all}.union(target for _, target in loops.irreducible)
    phis = {i for block in entered for i in block.instructions if isinstance(i, I.Phi)}
    return bool(entered) and (starts.are_passed or any(isinstance(p, I.Load) or p in phis for p in found))


class _Starts:
    """What pointers start from, whatever is chosen and however far they go: objects, parameters, loaded pointers."""

    def __init__(self, function: Function) -> None:
        self.pointers: list[Pointer] = []
        self.are_passed = False
        """Whether a call gets the address of a variable that may be of pointers."""
        self._stored: dict[Value, list[Value]] = {}
        self._only: dict[Value, Value] = {}
        for instruction in function.instructions():
            match instruction:
                case I.Phi() | I.Load() if T.is_pointer(instruction.type):
                    self.pointers.append(instruction)
                case I.Store() if T.is_pointer(instruction.operands[0].type):
                    self._stored.setdefault(I.base_of(instruction.operands[1]), []).append(instruction.operands[0])
                case I.CallBase() if call_effect(instruction) not in (Effect.IGNORED, Effect.MEMORY_SET):
                    self.are_passed |= any(_may_be_of_pointers(I.base_of(v)) for v in instruction.arguments)
                case _:
                    pass

    def differ(self, pointer: Pointer) -> bool:
        """Whether it may start from more than one of them. What starts from one alone is gone through once."""
        found: Reached[Value] = Reached([pointer])
        starts: dict[Value, None] = {}
        for value in found:
            if value in self._only:
                starts[self._only[value]] = None
            elif more := tuple(self._from(value)):
                found.add(more)
            else:
                starts[value] = None
            if len(starts) > 1:
                return True
        self._only.update((value, start) for start in starts for value in found.all)
        return False

    def _from(self, value: Value) -> Iterator[Value]:
        match value:
            case I.Phi():
                yield from value.operands
            case I.Select():
                yield from value.operands[1:]
            case I.GetElementPtr() | I.Cast() | I.Freeze():
                yield value.operands[0]
            case I.Load() if isinstance(variable := I.base_of(value.operands[0]), I.Alloca):
                yield from self._stored.get(variable, ())
            case _:
                pass


def _may_be_of_pointers(variable: Value) -> bool:
    if not isinstance(variable, I.Alloca):
        return False
    type_ = variable.allocated_type
    while isinstance(type_, T.ArrayType):
        type_ = type_.element
    return not T.is_float(type_) and type_ not in (T.I1, T.I32)
