"""Where is the wall insulated? Gradients through a solver that exchanges halos over MPI.

    pip install mpich
    mpiexec -n 4 python examples/mpi_heat/heat.py

The temperature at the end is seen; the conductivity of the wall is found by descent. Every process has its part of the
line, and its part of the gradient, which is compared with that of the whole line in `jax.numpy`. The solver is in C
and, where flang is, in Fortran.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

import jax_enzyme as je

jax.config.update("jax_enable_x64", True)

HERE = Path(__file__).parent
POINTS, STEPS, DESCENTS = 48, 40, 10
# mpiexec tells its processes who they are: MPICH in these variables, Open MPI in those.
RANK = int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
SIZE = int(os.environ.get("PMI_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))


def whole(start: jax.Array, conductivity: jax.Array) -> jax.Array:
    """The temperature of the whole line at the end, on one process."""

    def step(_: int, u: jax.Array) -> jax.Array:
        wide = jnp.pad(u, 1)
        return u + conductivity * (wide[:-2] - 2 * u + wide[2:])

    return lax.fori_loop(0, STEPS, step, start)


def main() -> None:
    signature = "n: {0}, steps: {0}, start: f64[n], conductivity: f64[n], seen: f64[n], out sum: f64[]"
    flags = (f"-I{sys.prefix}/include",)
    misfit = je.kernel(HERE / "heat.c", "misfit", signature.format("i32"), flags=flags, libraries=("libmpi.so",))
    solvers = {"heat.c": misfit}
    if shutil.which("flang-22"):
        file, by_reference = HERE / "heat.f90", signature.format("i32[]")
        solvers["heat.f90"] = je.kernel(file, "misfit", by_reference, libraries=("libmpi.so",))
    x = np.linspace(0, 1, POINTS)
    start, wall = np.sin(3 * np.pi * x) ** 2, np.where(abs(x - 0.6) < 0.15, 0.1, 0.4)
    seen = np.asarray(whole(start, wall))
    part = slice(RANK * POINTS // SIZE, (RANK + 1) * POINTS // SIZE)

    guess = jnp.full(POINTS, 0.25)
    expected = jax.grad(lambda guess: ((whole(start, guess) - seen) ** 2).sum())(guess)[part]
    for name, solver in solvers.items():
        found = jax.grad(solver, argnums=2)(STEPS, start[part], guess[part], seen[part])
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-13)
        print(f"process {RANK} of {SIZE}, {name}: its part of the gradient is that of one process")

    @jax.jit
    def gradient(guess: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(misfit, argnums=2)(STEPS, start[part], guess, seen[part])

    own = guess[part]
    first = last = gradient(own)[0]
    for _ in range(DESCENTS):
        last, slope = gradient(own)
        own = jnp.clip(own - 0.05 * slope, 0.05, 0.45)
    print(f"process {RANK} of {SIZE}: misfit {float(first):.4f} -> {float(last):.4f}")


if __name__ == "__main__":
    main()
