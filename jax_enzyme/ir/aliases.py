"""Aliases: other names of what a module defines, as `extern double g(double) __attribute__((alias("f")))`.

Compilers make them too: of a constructor in a source file, the complete-object one (`C1`) is an alias of the
base-object one (`C2`).

    call double @g(double %x)        call double @f(double %x)
"""

from __future__ import annotations

from jax_enzyme.ir.clone import Cloner
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.module import GlobalAlias, Module
from jax_enzyme.ir.values import Constant, Value


def name_what_aliases_name(module: Module) -> None:
    """Changes the module: instructions and initial values name functions and variables themselves. The aliases stay,
    as does what names an `ifunc`, which only the loader resolves."""
    meant: dict[Value, Value] = {a: t for a in module.aliases.values() if (t := _target(a)) is not None}
    if not meant:
        return
    cloner = Cloner(meant)
    for variable in module.globals.values():
        if variable.initializer is not None:
            variable.initializer = cloner.constant(variable.initializer)
    for function in module.functions.values():
        for instruction in function.instructions():
            instruction.operands = [cloner.value(v) for v in instruction.operands]
            if isinstance(instruction, CallBase):
                instruction.bundles = [(tag, [cloner.value(v) for v in values]) for tag, values in instruction.bundles]


def _target(alias: GlobalAlias) -> Constant | None:
    target: Constant | None = alias
    while isinstance(target, GlobalAlias):
        target = target.target if target.keyword == "alias" else None
    return target
