"""What this layer asks of code generation: the buffers, the tape and the machine code of a derived function."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jax_enzyme.frontends.program import Program
from jax_enzyme.ir.arrays import Buffer, Derivation, Vjp
from jax_enzyme.options import Options
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.formals import shared_by_threads


class Built(Protocol):
    """Machine code, which lives as long as this object does. `read`: the discarded `inout` buffers that it leaves as
    they are."""

    @property
    def address(self) -> int: ...

    @property
    def read(self) -> frozenset[int]: ...


class Backend(Protocol):
    """What makes code for one platform: `codegen.derived`, `codegen.gpu.derived`, or a stand-in."""

    def layout(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> tuple[Buffer, ...]: ...

    def split(self, program: Program, signature: Signature, binding: Binding, step: Vjp, options: Options) -> bool: ...


@runtime_checkable
class HostBackend(Backend, Protocol):
    """One whose code runs in this process, and has an address here."""

    def build(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> Built: ...

    def require_repeatable(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> None: ...

    def widens(
        self, program: Program, signature: Signature, binding: Binding, steps: Derivation, options: Options
    ) -> bool: ...


PLATFORMS = ("cpu", "cuda")
"""The platforms of JAX's that there can be code for."""


def platforms_of(program: Program, signature: Signature) -> tuple[str, ...]:
    """The platforms that a program has code for. A CUDA kernel runs on the CPU too, where there is no GPU; with
    structures behind pointers it runs there alone, where they are made once for all threads."""
    launched = program.launch is not None and shared_by_threads(signature.formals) is None
    return ("cuda", "cpu") if launched else ("cpu",)


def backend_of(platform: str) -> Backend:
    """What makes code for a platform. Imported when it is first needed: LLVM takes a while to load."""
    if platform == "cuda":
        from jax_enzyme.codegen.gpu import derived as for_gpus

        return for_gpus
    from jax_enzyme.codegen import derived

    return derived
