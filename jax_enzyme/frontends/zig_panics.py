"""Zig's panics end the call with their message, and nothing of what they would print is compiled.

    before    define internal void @debug.defaultPanic(ptr %text, i64 %length, ptr %from) { ... }     cold noreturn
              define internal void @debug.writeCurrentStackTrace(ptr %to) { ... }

    after     declare void @debug.defaultPanic(ptr %text, i64 %length, ptr %from)                    cold noreturn

Zig's library waits for other threads that panic, prints the stack from the debug information of the program, and ends
the process by system calls: some four hundred functions with every checked index (`-O Debug`, `-O ReleaseSafe`).
"""

from __future__ import annotations

from jax_enzyme.ir.keywords import LOCAL
from jax_enzyme.ir.module import Function, GlobalAlias, GlobalVariable, Module, named_by
from jax_enzyme.ir.reach import reached
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.transform.withheld import drop_body


def end_panics(module: Module) -> None:
    """Changes the module: Zig's panics lose their bodies, and what only these need goes."""
    panics = [f for f in module.functions.values() if f.name.startswith("debug.") and effect(f.name) is Effect.ABORT]
    for function in panics:
        drop_body(function)
        function.prefix = tuple(word for word in function.prefix if word not in LOCAL)
    if panics:
        _drop_unneeded(module)


def _drop_unneeded(module: Module) -> None:
    """Functions and variables that are local go where nothing that others see leads to them."""

    def is_seen(symbol: Function | GlobalVariable | GlobalAlias) -> bool:
        return LOCAL.isdisjoint(symbol.prefix) or symbol.name.startswith("llvm.")

    symbols = (*module.functions.values(), *module.globals.values(), *module.aliases.values())
    found = reached([s for s in symbols if is_seen(s)], named_by)
    module.functions = {name: f for name, f in module.functions.items() if f in found}
    module.globals = {name: v for name, v in module.globals.items() if v in found}
    module.aliases = {name: a for name, a in module.aliases.items() if a in found}
