"""Scalar functions lifted over arrays: shapes, derivatives, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_enzyme as je

SOURCE = "#include <math.h>\ndouble blend(double x, double y) { return x > y ? sin(x) * y : x * y * y; }\n"


def blend() -> je.Elementwise:
    return je.elementwise(SOURCE, "blend", "x: f64, y: f64 -> f64", lang="c")


def same(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(x > y, jnp.sin(x) * y, x * y * y)


@pytest.mark.parametrize(("a", "b"), [((), ()), ((3, 1), (4,)), ((0,), (1,)), ((2, 3, 4), ()), ((1, 5), (5, 1))])
def test_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = jnp.array(rng.normal(size=a)), jnp.array(rng.normal(size=b))
    np.testing.assert_allclose(blend()(x, y), same(x, y), rtol=1e-14)


def test_derivatives() -> None:
    rng = np.random.default_rng(1)
    x, y = jnp.array(rng.normal(size=(3, 1))), jnp.array(rng.normal(size=4))
    for transform in (jax.grad, jax.hessian):
        got = transform(lambda x, y: blend()(x, y).sum(), (0, 1))(x, y)
        expected = transform(lambda x, y: same(x, y).sum(), (0, 1))(x, y)
        jax.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-12), got, expected)
    np.testing.assert_allclose(jax.vmap(blend(), (0, None))(x, y), same(x, y), rtol=1e-14)


def test_files_and_python_numbers(tmp_path: Path) -> None:
    path = tmp_path / "f.cpp"
    (tmp_path / "two.h").write_text("#define TWO 2\n")
    path.write_text('#include "two.h"\nfloat f(float x, int n) { return TWO * x + n; }\n')
    f = je.elementwise(path, "f", "x: f32, n: i32 -> f32")
    np.testing.assert_array_equal(f(jnp.arange(3, dtype=jnp.float32), 5), [5, 7, 9])
    assert pickle.loads(pickle.dumps(f)) == f
    assert repr(f) == "Elementwise f(x: f32, n: i32 -> f32)"


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("x: f64[], y: f64 -> f64", "no number that is passed by value"),
        ("x: f64, inout y: f64[1] -> f64", "no number that is passed by value"),
    ],
)
def test_signatures_that_are_refused(signature: str, message: str) -> None:
    with pytest.raises(je.SignatureError, match=message):
        je.elementwise(SOURCE, "blend", signature, lang="c")


def test_arguments_that_are_refused() -> None:
    with pytest.raises(je.ArgumentError, match="1 arguments given"):
        blend()(1.0)
    with pytest.raises(je.ArgumentError, match="`y` must be float64, got int32"):
        blend()(1.0, jnp.arange(3, dtype=jnp.int32))
