"""Orbital elements of a satellite from where it is and how it moves, by the C++ of SGP4, with their Jacobian.

python examples/legacy/orbit.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.test_util import check_grads
from sdist import sources

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)

ELEMENTS = ("parameter", "axis", "eccentricity", "inclination", "node", "perigee", "anomaly")
OTHERS = ("mean_anomaly", "latitude", "longitude", "periapsis")

outputs = ", ".join(f"out {name}: f64[]" for name in (*ELEMENTS, *OTHERS))
with sources("sgp4==2.27") as sgp4:
    source = sgp4 / "extension/SGP4.cpp"
    elements = je.kernel(source, "SGP4Funcs::rv2coe_SGP4", f"r: f64[3], v: f64[3], mu: f64, {outputs}")

satellite = (jnp.array([6524.8, 6862.8, 6448.3]), jnp.array([4.9, 5.5, -1.97]), 398600.4)  # km, km/s, km3/s2


def main_elements(r: jax.Array, v: jax.Array, mu: float) -> jax.Array:
    return jnp.stack(elements(r, v, mu)[: len(ELEMENTS)])


by_position = jax.jacrev(main_elements)(*satellite)
check_grads(main_elements, satellite, order=1)
for name, value, row in zip(ELEMENTS, main_elements(*satellite), by_position, strict=True):
    print(f"{name:12} {value:14.6f}   by position {row}")
