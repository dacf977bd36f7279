"""Kernels inside of the libraries that people use with JAX, compared with the same function in JAX."""

from __future__ import annotations

from typing import Any

import blackjax
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density

import jax_enzyme as je

SOURCE = """
#include <math.h>
void orbit(const double *y, double k, double *dy) {
    double r2 = y[0] * y[0] + y[1] * y[1], r3 = r2 * sqrt(r2);
    dy[0] = y[2]; dy[1] = y[3];
    dy[2] = -k * y[0] / r3; dy[3] = -k * y[1] / r3;
}
double log_likelihood(int n, const double *t, const double *y, double a, double b) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double e = y[i] - a * exp(-b * t[i]);
        sum -= 0.5 * e * e / 0.01;
    }
    return sum;
}
"""
orbit = je.kernel(SOURCE, "orbit", "y: f64[4], k: f64, out dy: f64[4]", lang="c")
log_likelihood = je.kernel(SOURCE, "log_likelihood", "n: i32, t: f64[n], y: f64[n], a: f64, b: f64 -> f64", lang="c")
TIMES = np.linspace(0.0, 2.0, 12)
DATA = 1.5 * np.exp(-0.8 * TIMES) + 0.02 * np.cos(9 * TIMES)


def orbit_in_jax(y: Any, k: Any) -> Any:
    r = jnp.hypot(y[0], y[1])
    return jnp.concatenate([y[2:], -k * y[:2] / r**3])


def likelihood_in_jax(t: Any, y: Any, a: Any, b: Any) -> Any:
    return -0.5 * jnp.sum((y - a * jnp.exp(-b * t)) ** 2) / 0.01


def test_diffrax() -> None:
    def place(field: Any, k: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda _t, y, k: field(y, k)),
            diffrax.Tsit5(),
            0.0,
            2.0,
            0.1,
            jnp.array([1.0, 0.0, 0.0, 1.1]),
            k,
            stepsize_controller=diffrax.PIDController(rtol=1e-7, atol=1e-7),
        )
        return solution.ys[0, 0]

    ours, theirs = (jax.jit(jax.value_and_grad(lambda k, f=f: place(f, k)))(1.2) for f in (orbit, orbit_in_jax))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_blackjax() -> None:
    def chain(likelihood: Any) -> Any:
        def log_density_of(x: Any) -> Any:
            return likelihood(TIMES, DATA, x["a"], x["b"]) - 0.5 * (x["a"] ** 2 + x["b"] ** 2)

        sampler = blackjax.nuts(log_density_of, step_size=0.05, inverse_mass_matrix=jnp.ones(2))
        state = sampler.init({"a": jnp.float64(1.4), "b": jnp.float64(0.7)})

        def one(state: Any, key: Any) -> Any:
            state, _ = sampler.step(key, state)
            return state, state.position["a"]

        return jax.jit(lambda s: jax.lax.scan(one, s, jax.random.split(jax.random.key(0), 5))[1])(state)

    np.testing.assert_allclose(chain(log_likelihood), chain(likelihood_in_jax), rtol=1e-9)


def test_numpyro() -> None:
    def model(likelihood: Any) -> None:
        a = numpyro.sample("a", dist.Normal(1.0, 1.0))
        b = numpyro.sample("b", dist.HalfNormal(1.0))
        numpyro.factor("data", likelihood(TIMES, DATA, a, b))

    def density(x: Any, likelihood: Any) -> Any:
        return log_density(model, (likelihood,), {}, {"a": x[0], "b": x[1]})[0]

    x = jnp.array([1.3, 0.6])
    ours, theirs = (jax.value_and_grad(density)(x, f) for f in (log_likelihood, likelihood_in_jax))
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-10)
    sampler = MCMC(NUTS(model), num_warmup=20, num_samples=20, progress_bar=False)
    sampler.run(jax.random.key(1), log_likelihood)
    assert abs(sampler.get_samples()["a"].mean() - 1.5) < 0.2


def test_optax() -> None:
    def loss(x: Any) -> Any:
        return -log_likelihood(TIMES, DATA, x[0], x[1])

    solver = optax.lbfgs()
    x = jnp.array([1.0, 0.5])
    state = solver.init(x)

    @jax.jit
    def step(x: Any, state: Any) -> Any:
        value, slope = optax.value_and_grad_from_state(loss)(x, state=state)
        update, state = solver.update(slope, state, x, value=value, grad=slope, value_fn=loss)
        return optax.apply_updates(x, update), state

    for _ in range(15):
        x, state = step(x, state)
    assert jnp.max(jnp.abs(jax.grad(loss)(x))) < 1e-3
