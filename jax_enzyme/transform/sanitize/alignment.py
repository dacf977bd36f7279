"""Accesses at addresses that are no multiple of what their type asks for: `*(double *)(bytes + 1)`.

    before    %p = getelementptr i8, ptr %b, i64 1        after    %a = ptrtoint ptr %p to i64
              %v = load double, ptr %p, align 8                    %rest = and i64 %a, 7
                                                                   %bad = icmp ne i64 %rest, 0

C leaves them undefined, and a processor may trap. Looked at is what a pointer is computed by: where every step from its
object is a multiple, nothing is checked; where it starts from memory, from a parameter of a function that calls itself
or from an integer, that start is. In Fortran COMMON and EQUIVALENCE may put numbers anywhere.
"""

from __future__ import annotations

from collections.abc import Container
from math import gcd

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import is_defined_call
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import comes_from_fortran
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.runtime import Runtime


class Alignment:
    """What is known of the addresses of one function. `given` are the parameters that the caller has aligned."""

    def __init__(self, layout: DataLayout, runtime: Runtime, given: Container[Value]) -> None:
        self._layout = layout
        self._runtime = runtime
        self._given = given

    def check(self, access: I.Instruction, *, by_rows: bool) -> Check | None:
        """The check before a load or store; None where none is needed. `by_rows`: it starts from a pointer out of a
        table, all of which have been looked at."""
        if not isinstance(access, I.Load | I.Store) or access.align is None or access.align < 2:
            return None
        pointer, align = access.operands[0 if isinstance(access, I.Load) else 1], access.align
        own = self._steps(pointer)
        start = own[2]
        steps = [own, *(self._behind(start) if I.merged(start) else ())]
        if all(constant % align == by % align == 0 for constant, by, _ in steps):
            is_row = by_rows and isinstance(start, I.Load)
            if is_row or not any(self._is_open(begin) for _, _, begin in steps):
                return None
            pointer = start  # which stays the same where a loop steps on from it
        if comes_from_fortran(self._runtime.module, access):
            return None
        does = "reads" if isinstance(access, I.Load) else "writes"
        status = self._runtime.failure(f"{does} at an address that is no multiple of {align}", access)

        def condition(at: Builder) -> Value:
            rest = at.binary("and", at.cast("ptrtoint", pointer, T.I64), const_int(T.I64, align - 1))
            return at.icmp("ne", rest, const_int(T.I64, 0))

        return Check(condition, lambda at: status)

    @remembered
    def _behind(self, merge: Value) -> list[tuple[int, int, Value]]:
        """The steps to where pointers come together, from where they start."""
        found: list[tuple[int, int, Value]] = []
        pending = Reached(I.merged(merge))
        for pointer in pending:
            found.append(self._steps(pointer))
            pending.add(I.merged(found[-1][2]))
        return found

    def _is_open(self, start: Value) -> bool:
        """Whether nothing here says what an address that pointers start from is a multiple of."""
        if isinstance(start, Argument):
            return start not in self._given
        return (
            isinstance(start, I.Load)
            or is_defined_call(start)
            or (isinstance(start, I.Cast) and start.opcode == "inttoptr")
        )

    def _steps(self, pointer: Value) -> tuple[int, int, Value]:
        """By how many bytes a pointer is behind where it starts, and of how many these are a multiple else."""
        constant, by = 0, 0
        while isinstance(pointer, I.GetElementPtr):
            more, steps = self._layout.steps(pointer.source_type, pointer.operands[1:])
            constant += more
            by = gcd(by, *(size * _factor(index) for index, size in steps))
            pointer = pointer.operands[0]
        return constant, by, pointer


def _factor(index: Value) -> int:
    """What an index is certainly a multiple of."""
    match index:
        case I.BinaryOp(opcode="mul"):
            return abs(int_value(index.operands[1]) or 1)
        case I.BinaryOp(opcode="shl"):
            return 1 << min(int_value(index.operands[1]) or 0, 16)
        case I.BinaryOp(opcode="and"):
            mask = int_value(index.operands[1])
            return mask & -mask if mask else 1
        case I.Cast(opcode="sext" | "zext"):
            return _factor(index.operands[0])
        case _:
            return 1
