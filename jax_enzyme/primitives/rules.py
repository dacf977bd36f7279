"""All rules of a primitive in one place."""

from __future__ import annotations

from jax_enzyme.primitives import compat
from jax_enzyme.primitives.batching import batch
from jax_enzyme.primitives.bound import communicates, compiled, lower, types
from jax_enzyme.primitives.forward import jvp
from jax_enzyme.primitives.reverse import transpose
from jax_enzyme.primitives.staging import dead_code, partial_eval, partial_eval_equation


def install_rules(primitive: compat.Primitive) -> None:
    """Gives a kernel's primitive everything that JAX can ask of it."""
    compat.install(
        primitive,
        compiled=compiled,
        types=types,
        ordered=communicates,
        lower=lower,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        partial_eval_rule=partial_eval,
        partial_eval_equation=partial_eval_equation,
        dead_code=dead_code,
    )
