"""What is asked about functions without a body, where it can be seen."""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.module import Module, declared_callee
from jax_enzyme.rules.pairs import ATTRIBUTE


def show_attributes(module: Module) -> None:
    """Takes what is asked about functions without a body out of the attribute groups that LLVM put it into: what a
    user's rule says, and that no memory is touched, which calls of them may say too."""
    for function in module.functions.values():
        if function.is_declaration:
            function.attributes = _shown(module, function.attributes)
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase) and declared_callee(instruction) is not None:
                instruction.attributes = _shown(module, instruction.attributes)


def _shown(module: Module, words: tuple[str, ...]) -> tuple[str, ...]:
    held = expanded_attributes(module, words)
    shown = [w for w in held if w == "memory(none)" or w.startswith(f'"{ATTRIBUTE}"=')]
    return tuple(dict.fromkeys((*words, *shown)))
