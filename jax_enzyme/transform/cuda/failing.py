"""Kernels that end with an error, as a failed `assert` does."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import GlobalVariable, Module, declare
from jax_enzyme.ir.values import ConstantString


def fail(module: Module, at: Builder, name: str, text: str) -> None:
    """Ends the kernel with what did not hold; `name` is that of the text."""
    if name not in module.globals:
        held = text.encode() + b"\0"
        kind = T.ArrayType(len(held), T.I8)
        module.globals[name] = GlobalVariable(
            T.PTR, kind, ConstantString(kind, held), True, ("private", "unnamed_addr"), name=name
        )
    kind = T.FunctionType(T.VOID, (T.PTR, T.PTR, T.I32, T.PTR))
    called = declare(module, "__assert_fail", kind, ("noreturn", "nounwind"))
    said = module.globals[name]
    at.call(called, [said, said, const_int(T.I32, 0), said])
    at.unreachable()
