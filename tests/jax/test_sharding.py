"""Batches over several devices: every device runs what it holds, and nothing is gathered that need not be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jax_enzyme as je
from tests.jax.conftest import Subject
from tests.jax.kernels import COLUMNS, EULER, EXAMPLES, GATHER

SOURCE = """
double f(int n, int m, const double *w, const double *x, double *y) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    double t = 0;
    for (int j = 0; j < m; j++) t += w[j] * x[i] * x[i] * w[j];
    y[i] = t * t;
    s += t;
  }
  return s;
}
"""
W = np.arange(1.0, 4.0)
X = np.random.default_rng(0).normal(size=(16, 5))


@cache
def _kernel() -> je.Kernel:
    return je.kernel(SOURCE, "f", "n: i32, m: i32, w: f64[m], x: f64[n], out y: f64[n] -> f64", lang="c")


def _model(w: Any, x: Any) -> Any:
    return jax.vmap(_kernel(), (None, 0))(w, x)


def _loss(w: Any, x: Any) -> Any:
    s, y = _model(w, x)
    return jnp.sum(s) + jnp.sum(jnp.sin(y))


_GRADIENT = jax.value_and_grad(_loss, (0, 1))
_HESSIAN_PRODUCT: Callable[..., Any] = lambda w, x: jax.jvp(jax.grad(_loss, 1), (w, x), (w, jnp.ones_like(x)))  # noqa: E731


@contextmanager
def _mesh(kind: AxisType, shape: tuple[int, ...] = (8,), names: tuple[str, ...] = ("b",)) -> Iterator[Mesh]:
    mesh = jax.make_mesh(shape, names, axis_types=(kind,) * len(shape))
    with jax.set_mesh(mesh):
        yield mesh


def _collectives(text: str) -> set[str]:
    return set(re.findall(r" (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)\(", text))


def _close(actual: Any, expected: Any) -> None:
    jax.tree.map(lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-10), actual, expected)


KINDS = pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])


@KINDS
@pytest.mark.parametrize(
    ("function", "needed"),
    [(_model, set()), (_GRADIENT, {"all-reduce"}), (_HESSIAN_PRODUCT, set())],
    ids=["forward", "gradient", "hessian product"],
)
def test_a_batch_stays_where_it_is(kind: AxisType, function: Callable[..., Any], needed: set[str]) -> None:
    expected = jax.jit(function)(W, X)
    with _mesh(kind) as mesh:
        w, x = jax.device_put(W, NamedSharding(mesh, P())), jax.device_put(X, NamedSharding(mesh, P("b")))
        compiled = jax.jit(function).lower(w, x).compile()
        assert _collectives(compiled.as_text()) == needed
        _close(compiled(w, x), expected)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit, None], ids=["auto", "explicit", "one device"])
def test_jax_checks_what_is_traced(kind: AxisType | None) -> None:
    """With jax_enable_checks JAX looks into everything that is traced, markers among the parameters included."""
    expected = jax.jit(_GRADIENT)(W, X)
    with jax.enable_checks(True), nullcontext() if kind is None else _mesh(kind) as mesh:
        x = X if mesh is None else jax.device_put(X, NamedSharding(mesh, P("b")))
        _close(jax.jit(lambda w, x: _GRADIENT(w, x))(W, x), expected)  # traced again


def test_without_a_mesh_in_scope() -> None:
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    x = jax.device_put(X, NamedSharding(mesh, P("b")))
    compiled = jax.jit(_model).lower(W, x).compile()
    assert not _collectives(compiled.as_text())
    assert all(s.spec == P("b") for s in compiled.output_shardings)
    _close(compiled(W, x), _model(W, X))
    _close(_model(jnp.asarray(W), x), _model(W, X))


@KINDS
def test_two_maps_over_two_axes(kind: AxisType) -> None:
    ws, xs = np.stack([W + n for n in range(4)]), X[:8]
    function = jax.vmap(jax.vmap(_kernel(), (None, 0)), (0, None))
    expected = function(ws, xs)
    with _mesh(kind, (4, 2), ("a", "b")) as mesh:
        placed = jax.device_put(ws, NamedSharding(mesh, P("a"))), jax.device_put(xs, NamedSharding(mesh, P("b")))
        compiled = jax.jit(function).lower(*placed).compile()
        assert not _collectives(compiled.as_text())
        _close(compiled(*placed), expected)


@KINDS
def test_what_cannot_be_split_is_right(kind: AxisType) -> None:
    """A dimension of the kernel that arrives split, in an argument that is batched and in one that is not."""
    w, x = np.arange(8.0), np.random.default_rng(1).normal(size=(4, 8))
    expected = _model(w, x), _GRADIENT(w, x)
    with _mesh(kind) as mesh:
        placed = jax.device_put(w, NamedSharding(mesh, P("b"))), jax.device_put(x, NamedSharding(mesh, P(None, "b")))
        _close((jax.jit(_model)(*placed), jax.jit(_GRADIENT)(*placed)), expected)
        _close(jax.jit(_kernel())(placed[0], placed[1][0]), _kernel()(w, x[0]))


def test_a_batch_that_does_not_divide_is_right() -> None:
    x = X[:10]
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))

    def constrained(x: Any) -> Any:
        return _model(W, jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("b"))))

    _close(jax.jit(constrained)(x), _model(W, x))


@pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])
def test_gradient_outside_shard_map(check: bool) -> None:
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))

    def share(w: Any, x: Any) -> Any:
        return jax.lax.psum(_loss(w, x), "b")

    total = jax.shard_map(share, mesh=mesh, in_specs=(P(), P("b")), out_specs=P(), check_vma=check)
    _close(jax.jit(jax.value_and_grad(total, (0, 1)))(W, X), _GRADIENT(W, X))


def test_gradient_inside_shard_map() -> None:
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    function = jax.shard_map(
        _GRADIENT, mesh=mesh, in_specs=(P(), P("b")), out_specs=((P(), (P(), P("b")))), check_vma=False
    )
    _close(jax.jit(function)(W, X)[1][1], _GRADIENT(W, X)[1][1])


def test_spmd_axis_name() -> None:
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    x = jax.device_put(X, NamedSharding(mesh, P("b")))
    function = jax.jit(jax.vmap(jax.grad(lambda w, x: _kernel()(w, x)[0], 1), (None, 0), spmd_axis_name="b"))
    assert not _collectives(function.lower(W, x).compile().as_text())
    _close(function(W, x), function(W, X))


def _half_shared(subject: Subject) -> tuple[tuple[Any, ...], tuple[int | None, ...], set[str]]:
    """Eight of each argument but the last, if there are others, with the axes for vmap and what a gradient needs."""
    shared = len(subject.args) - 1 if len(subject.args) > 1 else None
    args = subject.batch_args(8, tuple(i for i in range(len(subject.args)) if i != shared))
    axes = tuple(None if i == shared else 0 for i in range(len(args)))
    return args, axes, {"all-reduce"} if shared in subject.floats else set()


@pytest.mark.parametrize(
    ("chosen_subject", "kind"),
    [
        *(pytest.param((e, "engine"), AxisType.Auto, id=f"{e.symbol}-auto") for e in EXAMPLES),
        *(pytest.param((e, "engine"), AxisType.Explicit, id=f"{e.symbol}-explicit") for e in (EULER, GATHER, COLUMNS)),
    ],
    indirect=["chosen_subject"],
)
def test_batches_of_every_kernel(chosen_subject: Subject, kind: AxisType) -> None:
    subject = chosen_subject
    args, axes, needed = _half_shared(subject)
    gradient = jax.grad(subject.scalar(jax.vmap(subject.kernel, axes)), subject.floats)
    expected = jax.jit(jax.grad(subject.scalar(jax.vmap(subject.expected, axes)), subject.floats))(*args)
    with _mesh(kind) as mesh:
        split, whole = NamedSharding(mesh, P("b")), NamedSharding(mesh, P())
        placed = [jax.device_put(a, whole if axis is None else split) for a, axis in zip(args, axes, strict=True)]
        forward = jax.jit(jax.vmap(subject.kernel, axes)).lower(*placed).compile()
        assert not _collectives(forward.as_text())
        subject.close(forward(*placed), jax.vmap(subject.expected, axes)(*args))
        backward = jax.jit(gradient).lower(*placed).compile()
        assert _collectives(backward.as_text()) == needed
        subject.close(backward(*placed), expected)


def test_shard_map_of_every_kernel(engine_subject: Subject) -> None:
    subject = engine_subject
    args, axes, _ = _half_shared(subject)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    specs = tuple(P() if axis is None else P("b") for axis in axes)

    def total(*args: Any) -> Any:
        return jax.lax.psum(subject.scalar(jax.vmap(subject.kernel, axes))(*args), "b")

    ours = jax.grad(jax.shard_map(total, mesh=mesh, in_specs=specs, out_specs=P()), subject.floats)
    theirs = jax.grad(subject.scalar(jax.vmap(subject.expected, axes)), subject.floats)
    subject.close(jax.jit(ours)(*args), jax.jit(theirs)(*args))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pmap_of_every_kernel(engine_subject: Subject) -> None:
    subject = engine_subject
    args, axes, _ = _half_shared(subject)
    ours, theirs = (jax.grad(subject.scalar(f), subject.floats) for f in (subject.kernel, subject.expected))
    subject.close(jax.device_get(jax.pmap(ours, in_axes=axes)(*args)), jax.jit(jax.vmap(theirs, axes))(*args))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pmap() -> None:
    value, (w, x) = jax.pmap(_GRADIENT, in_axes=(None, 0))(W, X.reshape(8, 2, 5))
    _close((value.sum(), (w.sum(0), x.reshape(16, 5))), _GRADIENT(W, X))
