"""What this layer asks of code generation: the buffers, the tape and the machine code of a derived function."""

from __future__ import annotations

from typing import Protocol

from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import Buffer, Derivation, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, Signature


class Built(Protocol):
    """Machine code, which lives as long as this object does."""

    @property
    def address(self) -> int: ...


class Backend(Protocol):
    """`codegen.derived`, or something that stands in for it."""

    def layout(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> tuple[Buffer, ...]: ...

    def split(self, program: Program, signature: Signature, binding: Binding, step: Vjp, options: Options) -> bool: ...

    def build(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> Built: ...


def default_backend() -> Backend:
    """The real one. Imported when it is first needed: LLVM takes a while to load."""
    from jax_enzyme.codegen import derived

    return derived
