"""The JAX side: the kernel object, its primitive, and the rules for every transformation."""

from jax_enzyme.primitives.checks import GradientReport, check_grads
from jax_enzyme.primitives.implicit import Implicit, implicit
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.primitives.lifting import Elementwise, elementwise
from jax_enzyme.primitives.making import Library, kernel, library
from jax_enzyme.primitives.races import RaceReport, check_races
from jax_enzyme.primitives.sparse import sparse_jacobian
from jax_enzyme.primitives.suggestion import suggest_signature

__all__ = [
    "Elementwise",
    "GradientReport",
    "Implicit",
    "Kernel",
    "Library",
    "RaceReport",
    "check_grads",
    "check_races",
    "elementwise",
    "implicit",
    "kernel",
    "library",
    "sparse_jacobian",
    "suggest_signature",
]
