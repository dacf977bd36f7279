"""Addresses of shared memory that are numbers of 32 bits, as inline PTX takes them, become pointers again.

before    %a = trunc(ptrtoint @tile);  %b = add i32 %a, %at;  %p = call ptr @je.shared.address(i32 %b)
after     %p = getelementptr i8, ptr @tile, i64 sext(%b - trunc(ptrtoint @tile))

Which variable a number leads into is what it is computed from. LLVM folds what is left to `%at`.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.rewriting import replace_values


def has_shared_addresses(function: Function) -> bool:
    """Whether pointers of a function are made of numbers."""
    return any(callee_name(i) == marks.SHARED_ADDRESS for i in function.instructions())


def make_pointers(module: Module, kernel: Function) -> None:
    """Changes a kernel into which all is inlined. LoweringError for a number that may lead into several variables, or
    none."""
    made: dict[V.Value, V.Value] = {}
    for block in kernel.blocks:
        kept: list[I.Instruction] = []
        for instruction in block.instructions:
            if not isinstance(instruction, I.Call) or callee_name(instruction) != marks.SHARED_ADDRESS:
                kept.append(instruction)
                continue
            number = instruction.arguments[0]
            found = {v for origin in reached([number], _origins) for v in _variable(origin)}
            if len(found) != 1:
                raise LoweringError(
                    "inline PTX is given an address in shared memory that is not computed from one variable",
                    location(module, instruction),
                    "take __cvta_generic_to_shared(...) of one array, and add to it",
                )
            at = Builder(V.BasicBlock())
            (variable,) = found
            start = at.cast("trunc", at.cast("ptrtoint", variable, T.I64), T.I32)
            distance = at.cast("sext", at.binary("sub", number, start), T.I64)
            made[instruction] = at.gep(T.I8, variable, [distance])
            kept += at.block.instructions
        block.instructions = kept
    replace_values(kernel, made)


def _origins(value: V.Value) -> Iterator[V.Value]:
    """What a number or a pointer is computed from, without what is read from memory."""
    if isinstance(value, I.Instruction | V.ConstantExpr) and not isinstance(value, I.Load | I.Call):
        yield from (o for o in value.operands if isinstance(o.type, T.IntType | T.PointerType))


def _variable(value: V.Value) -> Iterator[GlobalVariable]:
    if isinstance(value, GlobalVariable):
        yield value
