"""Alias scopes go from a module that is to be differentiated.

They hold between the accesses of one iteration or one call; the reverse sweep accesses the same memory in other orders,
where LLVM's reading of the same scopes would be wrong.
"""

from __future__ import annotations

from jax_enzyme.ir.module import Module, callee_name

_SCOPES = ("noalias", "alias.scope")
SCOPE_DECLARATION = "llvm.experimental.noalias.scope.decl"


def drop_scopes(module: Module) -> None:
    """Removes all alias scopes from a module, in place."""
    for function in module.functions.values():
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if callee_name(i) != SCOPE_DECLARATION]
            for instruction in block.instructions:
                instruction.metadata = [(kind, node) for kind, node in instruction.metadata if kind not in _SCOPES]
    module.functions.pop(SCOPE_DECLARATION, None)
