"""The density of seawater by TEOS-10, whose C is in the package gsw, and how it depends on salt, heat and pressure.

python examples/legacy/seawater.py
"""

from __future__ import annotations

import jax
from sdist import sources

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)

with sources("gsw==3.6.20") as gsw:
    density = je.kernel(gsw / "src/c_gsw", "gsw_rho", "salinity: f64, temperature: f64, pressure: f64 -> f64")

water = (35.0, 10.0, 1000.0)  # g/kg, degrees Celsius, dbar
by_salt, by_heat, by_pressure = jax.grad(density, argnums=(0, 1, 2))(*water)
je.check_grads(density, water)
print(f"density {density(*water):.4f} kg/m3")
print(f"haline contraction {by_salt:.5f}, thermal expansion {by_heat:.5f}, compression {by_pressure:.6f}")
