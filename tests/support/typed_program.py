"""What a type checker says of a user's program: `make lint` has mypy read it, which finds the errors and no others."""

import jax
import jax.numpy as jnp

import jax_enzyme as je

k = je.kernel("double f(double a) { return a; }", "f", "a: f64 -> f64", lang="c", options=je.Options(checkpoint="sqrt"))
value = k(1.0)
slope = jax.grad(k)(1.0)
many = jax.vmap(k)(jnp.ones(3))
by_name = k(a=jnp.ones(()))
lifted = je.elementwise("double f(double a) { return a; }", "f", "a: f64 -> f64", lang="c")
module = je.ad.differentiate("", "f", "forward")


def total(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.asarray(k(x)))


je.Options(checkpoint="sqrtt")  # type: ignore[arg-type]
je.kernel("x.c", "f", "a: f64 -> f64", order="Q")  # type: ignore[arg-type]
je.kernel("x.c", "f", "a: f64 -> f64", lang="d")  # type: ignore[arg-type]
je.kernel("x.c", "f", "a: f64 -> f64", flags=3)  # type: ignore[arg-type]
je.kernel("x.c", 3, "a: f64 -> f64")  # type: ignore[arg-type]
je.elementwise("x.f90", "f", "a: f64 -> f64", lang="fortran")  # type: ignore[arg-type]
je.ad.differentiate("", "f", "backward")  # type: ignore[arg-type]
