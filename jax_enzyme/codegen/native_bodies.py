"""Bodies that are kept from the engine (see `transform.streams`), for code that is complete."""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import linking
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.streams import of_streams


def with_native_bodies(function: ArrayFunction, program: Program) -> ArrayFunction:
    """The array function with its program's bodies of functions over streams; itself where it calls none."""
    if not any(f.is_declaration and of_streams(name) for name, f in function.module.functions.items()):
        return function
    library = linking.linkable(parse(program.ir))
    return replace(function, module=parse(linking.link(to_text(function.module), [library])))
