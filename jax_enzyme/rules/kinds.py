"""The table of which kind of number lies where (`kinds.ll`), as derivatives and what is differentiated call it."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations

_KEEPS = ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")
_TYPES = {
    "put": T.FunctionType(T.VOID, (T.PTR, T.I64, T.I32)),
    "copy": T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I64)),
    "is": T.FunctionType(T.I32, (T.PTR, T.I32)),
    "integer": T.FunctionType(T.I32, (T.PTR, T.I32)),
    "number": T.FunctionType(T.I64, (T.PTR, T.I64, T.I64)),
}


def of_table(declarations: Declarations, at: Builder, name: str, *given: Value) -> Value:
    """What a function of the table answers."""
    callee = declarations.function(f"je.kinds.{name}", _TYPES[name], _KEEPS)
    return at.call(callee, list(given), attributes=_KEEPS)
