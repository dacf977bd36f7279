"""The module of a program, read once: who makes a kernel looks at it, and its first call starts from it."""

from __future__ import annotations

from jax_enzyme.codegen.memo import Memo
from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import reader
from jax_enzyme.ir.module import Module
from jax_enzyme.transform.retyping import literal_structures

_read: Memo[Module] = Memo(1)


def read(program: Program) -> Module:
    """The module of a program, with literal structures. Not to be changed: others share it."""

    def make() -> Module:
        module = reader.parse_printed(program.ir)
        literal_structures(module)
        return module

    return _read.get(program.key, make)


def forget(program: Program) -> None:
    """Nobody is going to ask for it soon: its memory is given back."""
    _read.drop(program.key)
