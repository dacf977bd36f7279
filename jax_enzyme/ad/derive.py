"""From an array function in canonical form to a derivative of any order: one step after the other."""

from __future__ import annotations

from jax_enzyme.ad.forward import forward
from jax_enzyme.ad.reversal import plan_reversal
from jax_enzyme.ad.vjp import derive_reverse
from jax_enzyme.ir.arrays import ArrayFunction, Derivation, Jvp, Vjp
from jax_enzyme.options import Options
from jax_enzyme.rules.table import standard


def derive(base: ArrayFunction, steps: Derivation, options: Options) -> ArrayFunction:
    """Applies the steps of a derivation, in order.

    Raises DifferentiationError where the engine cannot prove a derivative right.
    """
    for step in steps:
        base = forward(base, step, standard()) if isinstance(step, Jvp) else derive_reverse(base, step, standard())
    return base


def splittable(base: ArrayFunction, step: Vjp, options: Options) -> bool:
    """Whether Augmented and Pullback exist for the masks of `step`: the tape has a fixed size and holds no pointers."""
    return plan_reversal(base, step, standard()).splits
