"""jax.checkpoint, with and without policies."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jax_enzyme as je
from tests.jax.conftest import Subject, by_turns, compiled
from tests.jax.kernels import EXAMPLES

OFFLOAD = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["steps_tape", *(f"{e.symbol}_tape" for e in EXAMPLES)],
    offload_src="device",
    offload_dst="pinned_host",
)
POLICIES = {
    "default": None,
    "everything": jax.checkpoint_policies.everything_saveable,
    "nothing": jax.checkpoint_policies.nothing_saveable,
    "dots": jax.checkpoint_policies.dots_saveable,
    "offloaded": OFFLOAD,
}


@pytest.mark.parametrize(("chosen_subject", "policy"), by_turns(POLICIES), indirect=["chosen_subject"])
def test_gradients(chosen_subject: Subject, policy: str) -> None:
    subject = chosen_subject

    def total(function: Any) -> Any:
        f = subject.scalar(function)
        return lambda *args: jax.numpy.sin(f(*args))

    ours = jax.grad(jax.checkpoint(total(subject.kernel), policy=POLICIES[policy]), subject.floats)
    expected = jax.jit(jax.grad(total(subject.expected), subject.floats))(*subject.args)
    subject.close(ours(*subject.args), expected)
    subject.close(jax.jit(ours)(*subject.args), expected)


def test_hessian(few_subject: Subject) -> None:
    subject = few_subject
    if subject.example.symbol == "spin":
        pytest.skip("Jacobians take real inputs")

    def hessian(function: Any) -> Any:
        return jax.hessian(subject.scalar(jax.checkpoint(function)), subject.floats[0])(*subject.args)

    def plain(function: Any) -> Any:
        return jax.hessian(subject.scalar(function), subject.floats[0])(*subject.args)

    subject.close(compiled(hessian, subject.kernel), compiled(plain, subject.expected))


STEPS = """
#include <math.h>
double steps(int n, const double *a) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    double x = a[i];
    for (int k = 0; k < 50; k++) x += 0.1 * sin(x);
    s += x;
  }
  return s;
}
"""


def test_the_tape_is_saved_dropped_or_offloaded_by_name() -> None:
    steps = je.kernel(STEPS, "steps", "n: i32, a: f64[n] -> f64", lang="c")
    policies = jax.checkpoint_policies
    a = np.linspace(0, 1, 100)
    saved = policies.save_only_these_names("steps_tape")
    dropped = policies.save_any_names_but_these("steps_tape")
    kept: dict[str, list[Any]] = {}
    for name, policy in {"saved": saved, "dropped": dropped, "offloaded": OFFLOAD}.items():
        function = jax.checkpoint(lambda a: jax.numpy.sin(steps(a)), policy=policy)
        np.testing.assert_allclose(jax.jit(jax.grad(function))(a), jax.grad(lambda a: jax.numpy.sin(steps(a)))(a))
        kept[name] = jax.tree.leaves(jax.vjp(function, a)[1])
    assert sum(v.nbytes for v in kept["saved"]) >= 40_000 > sum(v.nbytes for v in kept["dropped"])
    away = [v for v in kept["offloaded"] if isinstance(v, jax.Array) and v.sharding.memory_kind == "pinned_host"]
    assert sum(v.nbytes for v in away) >= 40_000
