"""The Airy function by the Fortran of CAMB: a function of one module, among eighty that need one another.

python examples/legacy/airy.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from sdist import sources

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)

with sources("camb==2.0.5") as camb:
    airy = je.kernel([camb / "fortran", camb / "forutils"], "mathutils::airy_ai_reference", "x: f64[] -> f64")

x = jnp.float64(-1.5)
je.check_grads(airy, (x,))
slope, second = jax.grad(airy)(x), jax.grad(jax.grad(airy))(x)
print(f"Ai {airy(x):.10f}, Ai' {slope:.10f}, Ai'' - x Ai {second - x * airy(x):.1e}")
