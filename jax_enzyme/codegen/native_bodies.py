"""Bodies that are kept from the engine (`transform.streams`, `transform.withheld`), for code that is complete."""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import linking
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.streams import of_streams
from jax_enzyme.rules.user import withheld, withholds
from jax_enzyme.transform.failures import lower_failures
from jax_enzyme.transform.private_globals import privatise


def with_native_bodies(function: ArrayFunction, program: Program) -> ArrayFunction:
    """The array function with its program's bodies of functions over streams, and of those with rules; itself where it
    calls none. Those with rules fail, and have variables, as the kernel itself does."""
    declared = {name for name, f in function.module.functions.items() if f.is_declaration}
    whole = parse(program.ir) if withholds(program.ir) else None
    ruled = declared.intersection(withheld(whole)) if whole is not None else set[str]()
    if not ruled and not any(map(of_streams, declared)):
        return function
    library = linking.linkable(whole or parse(program.ir))
    linked = replace(function, module=parse(linking.link(to_text(function.module), [library])))
    return privatise(lower_failures(linked)) if ruled else linked
