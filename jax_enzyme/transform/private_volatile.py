"""Volatile memory that nobody but the kernel can see: local variables, and memory that it allocates, whose addresses go
nowhere.

    before    %s = alloca double                             after    %s = alloca double
              store volatile double %x, ptr %s                        store double %x, ptr %s
              %y = load volatile double, ptr %s                       %z = load double, ptr %s
                                                                      %y = call double @llvm.arithmetic.fence.f64(%z)

Nothing else changes such memory, so that its accesses are as good as others, and have derivatives. What is left of
`volatile` is what compensated sums and splittings use it for: a number that went through it is rounded, and arithmetic
before it is not merged with arithmetic after it, whatever a compiler is allowed elsewhere (`-ffast-math`). A fence says
that, and is a number like any other to rules and optimisers.

Where control may come back a second time (`setjmp`), `volatile` says that a variable keeps what it held when control
left, and stays.

An address goes somewhere if it lies in memory that the kernel is given or in a variable at file scope, or if a call
without a body (inline assembly too) or a function that is called through an unknown pointer can reach it.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.analysis.accesses import closure
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import Objects, call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.inlining import returns_twice
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations, overload
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import locate, replace_values

_COPIES = (Effect.MEMORY_COPY, Effect.MEMORY_SET)


def settle_private_volatile(function: ArrayFunction) -> ArrayFunction:
    """The array function with such accesses as plain ones, in a copy of its module; itself where there are none."""
    module = function.module
    instructions = [i for f in module.functions.values() for i in f.instructions()]
    if not any(map(_is_volatile, instructions)):
        return function
    if any(isinstance(i, I.CallBase) and returns_twice(module, i) for i in instructions):
        return function
    points_to = PointsTo(module, module.functions[function.symbol])
    seen = _seen_by_others(points_to)
    private = [
        i
        for f in points_to.functions
        for i in f.instructions()
        if _is_volatile(i) and any(_is_private(points_to, p, seen) for p in _addresses(i))
    ]
    if not private:
        return function
    copy, mapped = clone_with_map(module)
    declarations = Declarations(copy)
    settled = {mapped[i] for i in private}
    for target in list(copy.functions.values()):
        _settle(target, settled, declarations)
    return replace(function, module=copy)


def _is_volatile(instruction: I.Instruction) -> bool:
    match instruction:
        case I.Load() | I.Store():
            return "volatile" in instruction.flags and not instruction.ordering
        case I.CallBase(callee=Function()) if call_effect(instruction) in _COPIES:
            return len(instruction.arguments) == 4 and int_value(instruction.arguments[3]) not in (0, None)
        case _:
            return False


def _addresses(access: I.Instruction) -> list[Value]:
    match access:
        case I.Load() | I.Store():
            return access.operands[-1:]
        case _:
            return [v for v in access.operands[:2] if T.is_pointer(v.type)]


def _is_private(points_to: PointsTo, pointer: Value, seen: Objects) -> bool:
    objects = points_to.of(pointer)
    return bool(objects) and all(o.kind in ("stack", "heap") and o not in seen for o in objects)


def _seen_by_others(points_to: PointsTo) -> Objects:
    """The objects that something outside of the kernel's own code may reach."""
    unknown = points_to.unknown
    shared = (o for o, held in points_to.contents.items() if o.kind not in ("stack", "heap") or unknown in held)
    return closure(points_to, shared)


def _settle(function: Function, settled: set[Value], declarations: Declarations) -> None:
    fences: dict[I.Load, I.Instruction] = {}
    for block in function.blocks:
        found: list[I.Instruction] = []
        for instruction in block.instructions:
            found.append(instruction)
            if instruction not in settled:
                continue
            if isinstance(instruction, I.CallBase):
                instruction.operands[3] = const_int(T.I1, 0)
                continue
            instruction.flags = tuple(f for f in instruction.flags if f != "volatile")
            if isinstance(instruction, I.Load) and T.is_float(instruction.type):
                fences[instruction] = _fenced(instruction, declarations)
                found.append(fences[instruction])
        block.instructions = found
    replace_values(function, dict[Value, Value](fences.items()))
    for load, fence in fences.items():
        fence.operands[0] = load


def _fenced(load: I.Load, declarations: Declarations) -> I.Instruction:
    type_ = load.type
    fence = declarations.invoke(Builder(BasicBlock()), f"llvm.arithmetic.fence.{overload(type_)}", type_, [load])
    locate(load, [fence])
    return fence
