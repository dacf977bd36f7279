"""Differentiation of array functions: forward, reverse in one function or split in two, in any order.

`ad.differentiate` differentiates functions in LLVM IR of other types.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jax_enzyme.ad.derive import derive as derive
from jax_enzyme.ad.derive import splittable as splittable

if TYPE_CHECKING:
    from jax_enzyme.codegen.differentiate import differentiate as differentiate


def __getattr__(name: str) -> object:
    """`differentiate` needs LLVM's passes, and so code generation, which this layer does not know: its users do."""
    if name == "differentiate":
        return import_module("jax_enzyme.codegen.differentiate").differentiate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
