"""Reads handwritten digits row by row with a recurrent layer that is a C function, inside a Flax model.

python examples/flax_layer/train.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import numpy as np
import optax
from flax import nnx
from jax import numpy as jnp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import jax_enzyme as je

leaky = je.kernel(
    Path(__file__).resolve().parent / "leaky.c",
    "leaky",
    "steps: i32, inputs: i32, units: i32, w: f32[units,inputs], u: f32[units,units], b: f32[units], leak: f32[units],"
    " x: f32[steps,inputs], scratch next: f32[units], out h: f32[units]",
)


class Leaky(nnx.Module):
    """The layer: parameters in Python, arithmetic in C. Maps sequences `[batch, steps, inputs]` to `[batch, units]`."""

    def __init__(self, inputs: int, units: int, *, rngs: nnx.Rngs) -> None:
        scaled = nnx.initializers.lecun_normal()
        self.w = nnx.Param(scaled(rngs.params(), (units, inputs)))
        self.u = nnx.Param(nnx.initializers.orthogonal()(rngs.params(), (units, units)))
        self.b = nnx.Param(jnp.zeros(units))
        self.leak = nnx.Param(jnp.full(units, 0.5))

    def __call__(self, x: jax.Array) -> jax.Array:
        weights = (self.w[...], self.u[...], self.b[...], self.leak[...])
        return jax.vmap(leaky, (None, None, None, None, 0))(*weights, x)


class Reader(nnx.Module):
    """Rows of an image through the layer, then ten classes."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.layer = Leaky(8, 48, rngs=rngs)
        self.head = nnx.Linear(48, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        return self.head(self.layer(images))


def loss(model: Reader, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean cross-entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()


@nnx.jit
def step(model: Reader, optimizer: nnx.Optimizer[Reader], images: jax.Array, labels: jax.Array) -> jax.Array:
    """One step of training."""
    value, gradient = nnx.value_and_grad(loss)(model, images, labels)
    optimizer.update(model, gradient)
    return value


def main(epochs: int) -> float:
    """Trains and returns the accuracy on images that were not seen."""
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) / 16).astype(np.float32)
    split = train_test_split(images, labels.astype(np.int32), test_size=0.2, random_state=0, stratify=labels)
    seen, unseen, seen_labels, unseen_labels = split
    model = Reader(rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    noise = np.random.default_rng(0)
    accuracy = 0.0
    for epoch in range(1, epochs + 1):
        order = noise.permutation(len(seen))[: len(seen) // 64 * 64].reshape(-1, 64)
        losses = [step(model, optimizer, seen[batch], seen_labels[batch]) for batch in order]
        accuracy = float(np.mean(np.argmax(model(unseen), -1) == unseen_labels))
        print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  accuracy on unseen digits {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    main(parser.parse_args().epochs)
