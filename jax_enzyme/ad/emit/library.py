"""Calls of the derivatives that the package has for BLAS and LAPACK routines (`rules/blas/support.h` has the
convention).

They are declared here and defined when the derivative is compiled.
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import ConstantInt, ConstantNull, Value
from jax_enzyme.rules.blas.table import Result, Routine
from jax_enzyme.rules.declare import Declarations


class LibraryCalls:
    """Emits calls of a routine's forward mode, forward sweep and reverse sweep."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations

    def jvp(
        self,
        builder: Builder,
        call: I.CallBase,
        routine: Routine,
        value: Callable[[Value], Value],
        shadows: list[Value],
    ) -> tuple[Value | None, Value]:
        """The primal and the tangent; the result and its tangent, where the routine returns a number."""
        tangent = routine.scalar if routine.result is Result.NUMBER else T.VOID
        return self._called(builder, routine, routine.jvp, tangent, [*self._own(call, routine, value), *shadows])

    def forward(
        self,
        builder: Builder,
        call: I.CallBase,
        routine: Routine,
        value: Callable[[Value], Value],
        shadows: list[Value],
        stable: int,
        arena: Value,
    ) -> tuple[Value | None, Value]:
        """The primal; its result, where it is a number, and the frame for the reverse."""
        arguments = [*self._own(call, routine, value), *shadows, ConstantInt(T.I64, stable), arena]
        return self._called(builder, routine, routine.forward, T.PTR, arguments)

    def _called(
        self, builder: Builder, routine: Routine, name: str, second: T.Type, arguments: list[Value]
    ) -> tuple[Value | None, Value]:
        """The routine's own result, where it is a number, and what the function returns besides."""
        number = routine.result is Result.NUMBER
        result = T.StructType((routine.scalar, second)) if number else second
        out = self._declarations.invoke(builder, name, result, arguments)
        if not number:
            return None, out
        return builder.extract_value(out, 0, routine.scalar), builder.extract_value(out, 1, second)

    def reverse(self, builder: Builder, routine: Routine, frame: Value, adjoint: Value | None) -> None:
        arguments = [frame] if adjoint is None else [frame, adjoint]
        self._declarations.invoke(builder, routine.reverse, T.VOID, arguments)

    def _own(self, call: I.CallBase, routine: Routine, value: Callable[[Value], Value]) -> list[Value]:
        """The routine's arguments, without lengths of strings that a caller may add."""
        return [value(v) for v in call.arguments[: len(routine.parameters)]]


def shadow_arguments(
    call: I.CallBase, routine: Routine, needed: Callable[[Value], bool], shadow: Callable[[Value], Value]
) -> list[Value]:
    """The shadows of the pointers to numbers; null where the memory has none."""
    pointers = [call.operands[i] for i in routine.floats]
    return [shadow(p) if needed(p) else ConstantNull(T.PTR) for p in pointers]
