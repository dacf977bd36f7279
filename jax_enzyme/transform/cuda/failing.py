"""Kernels that end with an error, as a failed `assert` does."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.values import ConstantString
from jax_enzyme.rules.declare import Declarations


def fail(module: Module, at: Builder, name: str, text: str) -> None:
    """Ends the kernel with what did not hold; `name` is that of the text."""
    if name not in module.globals:
        held = text.encode() + b"\0"
        kind = T.ArrayType(len(held), T.I8)
        module.globals[name] = GlobalVariable(
            T.PTR, kind, ConstantString(kind, held), True, ("private", "unnamed_addr"), name=name
        )
    said, words = module.globals[name], ("noreturn", "nounwind")
    Declarations(module).invoke(at, "__assert_fail", T.VOID, [said, said, const_int(T.I32, 0), said], words)
    at.unreachable()
