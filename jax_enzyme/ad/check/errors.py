"""The error that every check of an emitted derivative raises."""

from __future__ import annotations

from jax_enzyme.errors import LoweringError
from jax_enzyme.ir.module import Function


class EmissionError(LoweringError):
    """The engine emitted something that breaks one of its own rules."""

    def __init__(self, function: Function, cause: str) -> None:
        super().__init__(
            f"{function.name}: {cause}",
            remedy="this is a defect of jax_enzyme: please report it with the source of the kernel",
        )
