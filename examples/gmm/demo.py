"""Fits a Gaussian mixture to the iris measurements: the objective is C, the optimiser is optax.

python examples/gmm/demo.py [--steps 1500] [--picture gmm.png]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from tqdm import tqdm

import jax_enzyme as je

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import Ellipse

HERE = Path(__file__).resolve().parent
COMPONENTS, GAMMA, WISHART_M = 3, 0.01, 0  # so weak a prior that the fit is a maximum-likelihood fit for all practice

gmm = je.kernel(
    HERE / "gmm.c",
    "gmm_objective",
    "d: i32, k: i32, n: i32, alphas: f64[k], means: f64[k,d], icf: f64[k,d*(d+1)/2], x: f64[n,d], gamma: f64, m: i32,"
    " scratch diagonal: f64[k,d], scratch logdet: f64[k], scratch terms: f64[k], scratch u: f64[d], scratch qu: f64[d],"
    " out err: f64[]",
)


class Mixture(NamedTuple):
    """The parameters of the objective: see gmm.c."""

    alphas: jax.Array
    means: jax.Array
    icf: jax.Array


def start(x: np.ndarray, seed: int) -> Mixture:
    """k-means centres, equal weights, and the spread of the clusters in every direction."""
    clusters = KMeans(COMPONENTS, n_init=1, random_state=seed).fit(x)
    d = x.shape[1]
    spread = np.sqrt(clusters.inertia_ / x.size)
    icf = np.zeros((COMPONENTS, d * (d + 1) // 2))
    icf[:, :d] = -np.log(spread)
    return Mixture(jnp.zeros(COMPONENTS), jnp.asarray(clusters.cluster_centers_), jnp.asarray(icf))


def objective(parameters: Mixture, x: jax.Array) -> jax.Array:
    return gmm(*parameters, x, GAMMA, WISHART_M)


def fit(parameters: Mixture, x: jax.Array, steps: int) -> Mixture:
    """Adam with a rate that falls to zero, the gradient from the kernel's own derivative."""
    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, steps))
    value_and_grad = jax.jit(jax.value_and_grad(objective))

    @jax.jit
    def step(parameters: Mixture, state: optax.OptState) -> tuple[Mixture, optax.OptState, jax.Array]:
        value, gradient = value_and_grad(parameters, x)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(parameters, updates), state, value

    state = optimiser.init(parameters)
    bar = tqdm(range(steps), desc="fit", unit="step", mininterval=0.2)
    for i in bar:
        parameters, state, value = step(parameters, state)
        if i % 100 == 0 or i == steps - 1:
            bar.set_postfix(objective=f"{float(value):.4f}")
    return parameters


def covariances(icf: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Q and the covariance (Q^T Q)^-1 of every component, unpacked with NumPy alone."""
    columns, rows = np.triu_indices(d, 1)
    q = np.zeros((len(icf), d, d))
    q[:, rows, columns] = icf[:, d:]
    q[:, np.arange(d), np.arange(d)] = np.exp(icf[:, :d])
    return q, np.linalg.inv(q.transpose(0, 2, 1) @ q)


def log_likelihood(parameters: Mixture, x: np.ndarray) -> float:
    """Mean log-likelihood per sample, by NumPy from the fitted parameters: a check that shares nothing with gmm.c."""
    alphas, means, icf = (np.asarray(p) for p in parameters)
    d = x.shape[1]
    q, _ = covariances(icf, d)
    distance = np.sum(np.einsum("kij,nkj->nki", q, x[:, None] - means) ** 2, axis=2)
    terms = alphas - np.logaddexp.reduce(alphas) + icf[:, :d].sum(1) - 0.5 * distance - 0.5 * d * np.log(2 * np.pi)
    return float(np.mean(np.logaddexp.reduce(terms, axis=1)))


def draw(picture: Path, x: np.ndarray, names: list[str], ours: Mixture, theirs: GaussianMixture) -> None:
    """Data and the one- and two-sigma ellipses of both fits, in two planes of the four-dimensional space."""
    _, ours_covariances = covariances(np.asarray(ours.icf), x.shape[1])
    nearest = theirs.predict(x)
    figure, axes = plt.subplots(1, 2, figsize=(12, 5.5), layout="constrained")
    for axis, (a, b) in zip(axes, ((0, 1), (2, 3)), strict=True):
        axis.scatter(x[:, a], x[:, b], c=nearest, cmap="viridis", s=14, alpha=0.7)
        fits = (
            ("jax_enzyme", "tab:red", "-", np.asarray(ours.means), ours_covariances),
            ("scikit-learn", "black", ":", theirs.means_, theirs.covariances_),
        )
        for label, colour, line, means, spreads in fits:
            for component, (mean, spread) in enumerate(zip(means, spreads, strict=True)):
                values, vectors = np.linalg.eigh(spread[np.ix_([a, b], [a, b])])
                angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
                for sigma in (1, 2):
                    width, height = 2 * sigma * np.sqrt(values[::-1])
                    tag = label if component == 0 and sigma == 1 else None
                    axis.add_patch(
                        Ellipse(
                            (mean[a], mean[b]), width, height, angle=angle, fill=False, ec=colour, ls=line, label=tag
                        )
                    )
        axis.set(xlabel=names[a] + ", standardised", ylabel=names[b] + ", standardised")
        axis.legend(loc="best")
    figure.suptitle("Gaussian mixture on iris: one and two standard deviations")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--steps", type=int, default=1500)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--picture", type=Path, default=Path("gmm.png"))
    options = arguments.parse_args()
    jax.config.update("jax_enable_x64", True)

    data = load_iris()
    x = (data.data - data.data.mean(0)) / data.data.std(0)
    n, d = x.shape
    print(f"data     iris, {n} samples of {d} measurements, standardised; {COMPONENTS} components")
    print(f"kernel   {gmm!r}")

    parameters = start(x, options.seed)
    je.check_grads(gmm, (*parameters, jnp.asarray(x), GAMMA, WISHART_M), order=1, modes=("fwd", "rev"))
    print("checked  forward mode, reverse mode and finite differences agree")

    began = time.perf_counter()
    fitted = fit(parameters, jnp.asarray(x), options.steps)
    seconds = time.perf_counter() - began
    print(f"fitted   {options.steps} steps in {seconds:.1f} s, compilation included")

    theirs = GaussianMixture(COMPONENTS, random_state=options.seed, max_iter=1000, tol=1e-8).fit(x)
    print("log-likelihood per sample:")
    print(f"  jax_enzyme + optax            {log_likelihood(fitted, x):.6f}")
    print(f"  scikit-learn GaussianMixture  {theirs.score(x):.6f}")
    draw(options.picture, x, data.feature_names, fitted, theirs)
    print(f"picture  {options.picture}")


if __name__ == "__main__":
    main()
