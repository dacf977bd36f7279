"""Numerical kernels in JAX, with gradients, from C, C++, Fortran, Rust, Numba, CUDA or LLVM IR."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING

from jax_enzyme.collector import collector_paused
from jax_enzyme.errors import (
    ArgumentError,
    CompileError,
    DifferentiationError,
    JaxEnzymeError,
    LoweringError,
    NoRuleError,
    NotDifferentiableError,
    RaceError,
    RaceWarning,
    ShortcutWarning,
    SignatureError,
)
from jax_enzyme.options import Options

if TYPE_CHECKING:
    from types import ModuleType

    from IPython.core.interactiveshell import InteractiveShell

    from jax_enzyme import ad

    __version__: str
    from jax_enzyme.primitives.checks import GradientReport, check_grads
    from jax_enzyme.primitives.implicit import Implicit, implicit
    from jax_enzyme.primitives.kernels import Kernel
    from jax_enzyme.primitives.lifting import Elementwise, elementwise
    from jax_enzyme.primitives.making import Library, kernel, library
    from jax_enzyme.primitives.races import RaceReport, check_races
    from jax_enzyme.primitives.sparse import sparse_jacobian
    from jax_enzyme.primitives.suggestion import suggest_signature
    from jax_enzyme.rules.user import inactive, rule
    from jax_enzyme.signing import trust

__all__ = [
    "ArgumentError",
    "CompileError",
    "DifferentiationError",
    "Elementwise",
    "GradientReport",
    "Implicit",
    "JaxEnzymeError",
    "Kernel",
    "Library",
    "LoweringError",
    "NoRuleError",
    "NotDifferentiableError",
    "Options",
    "RaceError",
    "RaceReport",
    "RaceWarning",
    "ShortcutWarning",
    "SignatureError",
    "ad",
    "check_grads",
    "check_races",
    "elementwise",
    "implicit",
    "inactive",
    "kernel",
    "library",
    "rule",
    "sparse_jacobian",
    "suggest_signature",
    "trust",
]


_PRIMITIVES = {
    "GradientReport": "checks",
    "check_grads": "checks",
    "Implicit": "implicit",
    "implicit": "implicit",
    "Kernel": "kernels",
    "Elementwise": "lifting",
    "elementwise": "lifting",
    "Library": "making",
    "kernel": "making",
    "library": "making",
    "RaceReport": "races",
    "check_races": "races",
    "sparse_jacobian": "sparse",
    "suggest_signature": "suggestion",
}
"""Where in `primitives` a name is."""


def __getattr__(name: str) -> object:
    """JAX is imported with the first kernel: the command line and the engine do without it."""
    if name == "ad":
        return import_module("jax_enzyme.ad")
    if name in ("inactive", "rule"):
        return getattr(import_module("jax_enzyme.rules.user"), name)
    if name == "__version__":
        return metadata.version("jax-enzyme")
    if name == "trust":
        return import_module("jax_enzyme.signing").trust
    if name in _PRIMITIVES:
        return getattr(_primitives(_PRIMITIVES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _primitives(module: str) -> ModuleType:
    with collector_paused():
        return import_module(f"jax_enzyme.primitives.{module}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext jax_enzyme`: notebook cells that are kernels (`%%kernel?` has the help)."""
    from jax_enzyme.tools import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext jax_enzyme`: kernels that were made stay."""
    from jax_enzyme.tools import notebook

    notebook.unload(shell)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
