"""grad, value_and_grad, vjp, jacrev, activity."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jax_enzyme.ir.arrays import Augmented, Pullback, Vjp
from tests.jax.conftest import Subject


def test_grad(subject: Subject) -> None:
    ours = jax.grad(subject.scalar(subject.kernel), subject.floats)
    expected = jax.grad(subject.scalar(subject.expected), subject.floats)(*subject.args)
    subject.close(ours(*subject.args), expected)
    subject.close(jax.jit(ours)(*subject.args), expected)
    subject.close(jax.grad(subject.scalar(jax.jit(subject.kernel)), subject.floats)(*subject.args), expected)


def test_value_and_grad_runs_the_kernel_once(subject: Subject) -> None:
    ours = jax.jit(jax.value_and_grad(subject.scalar(subject.kernel), subject.floats))
    theirs = jax.value_and_grad(subject.scalar(subject.expected), subject.floats)
    if subject.stand_in is not None:
        subject.stand_in.calls.clear()
    subject.close(ours(*subject.args), theirs(*subject.args))
    if subject.stand_in is not None:
        kinds = [tuple(type(s) for s in steps) for _, steps, _ in subject.stand_in.calls]
        assert kinds == ([(Augmented,), (Pullback,)] if subject.stand_in.splits else [(), (Vjp,)])


def test_one_pullback_many_times(subject: Subject) -> None:
    y, pull = jax.vjp(subject.vary(subject.kernel), *subject.points)
    expected_y, expected = jax.vjp(subject.vary(subject.expected), *subject.points)
    subject.close(y, expected_y)
    for seed in range(3):
        noise = np.random.default_rng(seed)
        ct = jax.tree.map(lambda v, noise=noise: _cotangent(v, noise), y)
        subject.close(pull(ct), expected(ct))


def _cotangent(value: jax.Array, noise: np.random.Generator) -> np.ndarray:
    if value.dtype.kind not in "fc":
        return np.zeros(value.shape, jax.dtypes.float0)
    out = noise.normal(size=value.shape)
    return np.asarray(out + 1j * noise.normal(size=value.shape) if value.dtype.kind == "c" else out, value.dtype)


def test_jacrev(subject: Subject) -> None:
    if subject.example.symbol == "spin" or subject.example.symbol == "gather":
        pytest.skip("jacrev takes real inputs and outputs")
    which = tuple(range(len(subject.floats)))
    ours, theirs = (jax.jit(jax.jacrev(subject.vary(f), which)) for f in (subject.kernel, subject.expected))
    subject.close(ours(*subject.points), theirs(*subject.points))


def test_only_what_is_asked_for_is_computed(subject: Subject) -> None:
    if subject.stand_in is None:
        pytest.skip("looks at calls of the stand-in")
    i = subject.floats[0]
    name = subject.kernel.signature.caller_params[i].name
    subject.stand_in.calls.clear()
    jax.block_until_ready(jax.grad(subject.scalar(subject.kernel), i)(*subject.args))
    primal = subject.stand_in.layout(*_specialised(subject)[:3], (), subject.kernel.options)
    reverse = [s for _, steps, _ in subject.stand_in.calls for s in steps if isinstance(s, Vjp)]
    assert reverse
    for step in reverse:
        assert [primal[n].name for n, w in enumerate(step.wanted) if w] == [name]


def _specialised(subject: Subject) -> tuple[object, ...]:
    calls = jax.make_jaxpr(subject.kernel)(*subject.args).eqns
    found = next(e.params["call"].function.base for e in calls if "call" in e.params)
    return found.program, found.signature, found.binding


def test_nobody_wants_the_gradient(subject: Subject) -> None:
    stopped = subject.scalar(lambda *a: subject.kernel(*(jax.lax.stop_gradient(v) for v in a)))
    for value in jax.grad(stopped, subject.floats)(*subject.args):
        np.testing.assert_array_equal(value, 0)
