"""The JAX side: the kernel object, its primitive, and the rules for every transformation."""

from jax_enzyme.primitives.checks import GradientReport, check_grads
from jax_enzyme.primitives.elementwise import Elementwise, elementwise
from jax_enzyme.primitives.kernel import Kernel, kernel

__all__ = ["Elementwise", "GradientReport", "Kernel", "check_grads", "elementwise", "kernel"]
