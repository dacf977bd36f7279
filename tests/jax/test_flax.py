"""Flax: a kernel as a layer of NNX and Linen models."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import linen, nnx
from flax.training.train_state import TrainState
from jax import numpy as jnp

import jax_enzyme as je

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
#include <math.h>
void bend(int n, int m, const float *w, const float *x, float *y) {
  for (int j = 0; j < m; j++) {
    float s = 0;
    for (int i = 0; i < n; i++) s += w[j * n + i] * x[i];
    y[j] = tanhf(s) + 0.1f * s;
  }
}
"""


@cache
def _bend() -> je.Kernel:
    return je.kernel(SOURCE, "bend", "n: i32, m: i32, w: f32[m,n], x: f32[n], out y: f32[m]", lang="c")


def _in_jax(w: Any, x: Any) -> Any:
    s = w @ x
    return jnp.tanh(s) + 0.1 * s


class Bend(nnx.Module):
    def __init__(self, n: int, m: int, function: Any, *, rngs: nnx.Rngs) -> None:
        self.function = function  # an attribute: the kernel is a static value of the module
        self.w = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (m, n)))

    def __call__(self, x: Any) -> Any:
        return jax.vmap(self.function, (None, 0))(self.w[...], x)


class Model(nnx.Module):
    def __init__(self, function: Any, *, rngs: nnx.Rngs) -> None:
        self.first = Bend(4, 6, function, rngs=rngs)
        self.norm = nnx.BatchNorm(6, rngs=rngs)
        self.last = nnx.Linear(6, 1, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x)))[..., 0]


def _data() -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    return x, np.sin(x.sum(1))


@pytest.fixture(autouse=True)
def narrow_types() -> Any:
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)


def _train(function: Any, steps: int, remat: bool = False) -> tuple[nnx.Module, list[float], int]:
    traces = 0
    model = Model(function, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    def loss(model: Model, x: Any, y: Any) -> Any:
        run = nnx.remat(lambda m, x: m(x)) if remat else lambda m, x: m(x)
        return jnp.mean((run(model, x) - y) ** 2)

    @nnx.jit
    def step(model: Model, optimizer: Any, x: Any, y: Any) -> Any:
        nonlocal traces
        traces += 1
        value, gradient = nnx.value_and_grad(loss)(model, x, y)
        optimizer.update(model, gradient)
        return value

    losses = [float(step(model, optimizer, *_data())) for _ in range(steps)]
    return model, losses, traces


@pytest.mark.parametrize("remat", [False, True], ids=["plain", "remat"])
def test_nnx_trains_as_with_jax_numpy(remat: bool) -> None:
    _, losses, traces = _train(_bend(), 30, remat)
    _, expected, _ = _train(_in_jax, 30)
    assert traces == 1
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(losses, expected, rtol=1e-3)


def test_nnx_state_splits_merges_and_is_checkpointed(tmp_path: Path) -> None:
    x, _ = _data()
    model, _, _ = _train(_bend(), 3)
    model.eval()
    definition, state = nnx.split(model)
    assert hash(definition) == hash(nnx.split(Model(_bend(), rngs=nnx.Rngs(1)).eval() or model)[0])
    expected = np.asarray(nnx.merge(definition, state)(x))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", nnx.to_pure_dict(state))
        checkpointer.wait_until_finished()
        shapes = nnx.to_pure_dict(nnx.state(nnx.eval_shape(lambda: Model(_bend(), rngs=nnx.Rngs(1)))))
        restored = checkpointer.restore(tmp_path / "state", shapes)
    other = Model(_bend(), rngs=nnx.Rngs(1))
    other.eval()
    definition, fresh = nnx.split(other)
    nnx.replace_by_pure_dict(fresh, restored)
    np.testing.assert_array_equal(nnx.merge(definition, fresh)(x), expected)


def test_nnx_ensemble() -> None:
    x, y = _data()

    @nnx.split_rngs(splits=5)
    @nnx.vmap
    def make(rngs: nnx.Rngs) -> Model:
        return Model(_bend(), rngs=rngs)

    models = make(nnx.Rngs(0))
    assert models.first.w.shape == (5, 6, 4)

    @nnx.jit
    @nnx.vmap(in_axes=(0, None, None))
    def gradients(model: Model, x: Any, y: Any) -> Any:
        return nnx.grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)

    found = gradients(models, x, y).first.w[...]
    assert found.shape == (5, 6, 4)
    assert len(np.unique(np.asarray(found[:, 0, 0]))) == 5


class LinenBend(linen.Module):
    units: int
    function: Any

    @linen.compact
    def __call__(self, x: Any) -> Any:
        w = self.param("w", linen.initializers.lecun_normal(), (self.units, x.shape[-1]))
        return jax.vmap(self.function, (None, 0))(w, x)


class LinenModel(linen.Module):
    function: Any
    remat: bool = False

    @linen.compact
    def __call__(self, x: Any) -> Any:
        layer = linen.remat(LinenBend) if self.remat else LinenBend
        return linen.Dense(1)(layer(6, self.function, name="bend")(x))[..., 0]


def _train_linen(function: Any, remat: bool) -> tuple[TrainState, list[float], int]:
    traces = 0
    x, y = _data()
    model = LinenModel(function, remat)
    state = TrainState.create(apply_fn=model.apply, params=model.init(jax.random.key(0), x), tx=optax.adam(1e-2))

    @jax.jit
    def step(state: TrainState) -> tuple[TrainState, Any]:
        nonlocal traces
        traces += 1
        value, gradient = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn(p, x) - y) ** 2))(state.params)
        return state.apply_gradients(grads=gradient), value

    losses: list[float] = []
    for _ in range(30):
        state, value = step(state)
        losses.append(float(value))
    return state, losses, traces


@pytest.mark.parametrize("remat", [False, True], ids=["plain", "remat"])
def test_linen_trains_as_with_jax_numpy(remat: bool, tmp_path: Path) -> None:
    state, losses, traces = _train_linen(_bend(), remat)
    _, expected, _ = _train_linen(_in_jax, False)
    assert traces == 1
    np.testing.assert_allclose(losses, expected, rtol=1e-3)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "params", state.params)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "params", state.params)
    x, _ = _data()
    np.testing.assert_array_equal(state.apply_fn(restored, x), state.apply_fn(state.params, x))


def test_the_example_learns() -> None:
    command = [sys.executable, str(ROOT / "examples" / "flax_layer" / "train.py"), "--epochs", "3"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(printed.split()[-1].rstrip("%")) > 80
