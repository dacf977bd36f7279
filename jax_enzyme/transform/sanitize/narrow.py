"""Numbers of 8 and 16 bits that nothing wrote: every value is one that programs compute.

    before    %v = load i8, ptr %p            after    %v = load i8, ptr %p
                                                       %maybe = icmp uge i8 %v, <least byte of the pattern>
                                                       br i1 %maybe, label %asks, label %fine
                                                     asks:
                                                       %s = call i64 @je_checked_narrow(...)

Such reads are counted. A kernel that has some, and failed at nothing, runs once more, with a pattern of lesser bytes in
what is not written (`csrc/checked.cc`): where all was written the count is the same. Where it is not, two slow runs
tell which read it was. Kernels that do not do the same each time, or what is seen outside, run once.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, Uses, callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import (
    NARROW,
    WORD,
    compared_with_pattern,
    least_of_narrow,
    takes_bit_field,
)

_OTHER = 0x1E1E1E1E
_WITH_OTHER = 2
"""In `Tables::again`: what is not written has the other pattern."""


def may_be_pattern(at: Builder, value: Value) -> Value:
    least = least_of_narrow(value.type)
    assert least is not None
    return at.icmp("uge", value, least)


def is_narrow(load: I.Instruction, users: Uses, runtime: Runtime) -> bool:
    """Whether the other run tells of a number that is read. It tells nothing of bit fields: what is read with them may
    be bits that no field has."""
    if least_of_narrow(load.type) is None:
        return False
    return T.bits(load.type) not in runtime.packed or not takes_bit_field(load, users)


def narrow_check(load: I.Instruction, runtime: Runtime, told: Callable[[Builder], list[Value]]) -> Check:
    """The check of a read, behind it. `told`: what `unwritten` is called with."""
    return Check(lambda at: may_be_pattern(at, load), lambda at: runtime.call(at, "narrow", *told(at)), unsure=True)


def narrowly_checked(branch: I.CondBranch) -> Value | None:
    """The number that a branch to such a call is about."""
    asks = any(callee_name(i) == NARROW for i in branch.targets[0].instructions)
    return compared_with_pattern(branch.operands[0]) if asks else None


def is_checked(module: Module) -> bool:
    """Whether there are such checks."""
    return NARROW in module.functions or f"{NARROW}_many" in module.functions


def vary(function: Function, fills: Container[I.Instruction], runtime: Runtime) -> None:
    """Lets stores that give variables the pattern give them the one of the run, in place."""
    start = Builder(BasicBlock())
    again = start.load(T.I32, start.offset(runtime.call(start, "flag"), 4), 4)
    other = start.binary("and", again, const_int(T.I32, _WITH_OTHER))
    wide = [const_int(T.I64, number << 32 | number) for number in (_OTHER, WORD)]
    pattern = start.select(start.icmp("ne", other, const_int(T.I32, 0)), *wide)
    parts: dict[T.Type, Value] = {
        T.I64: pattern,
        T.I32: start.cast("trunc", pattern, T.I32),
        T.I8: start.cast("trunc", pattern, T.I8),
    }
    for instruction in function.instructions():
        if isinstance(instruction, I.Store) and instruction in fills:
            instruction.operands[0] = parts[instruction.operands[0].type]
    function.entry.instructions[:0] = start.block.instructions
