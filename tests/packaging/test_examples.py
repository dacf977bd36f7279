"""The examples in the docstrings of what users call do what they say."""

from __future__ import annotations

import doctest

import jax
import jax.numpy as jnp
import pytest

import jax_enzyme as je

DOCUMENTED = {
    "kernel": je.kernel,
    "elementwise": je.elementwise,
    "implicit": je.implicit,
    "check_grads": je.check_grads,
    "check_races": je.check_races,
    "rule": je.rule,
    "inactive": je.inactive,
    "Kernel.on": je.Kernel.on,
    "ad.differentiate": je.ad.differentiate,
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_example(name: str) -> None:
    names = {"jax": jax, "jnp": jnp, "je": je}
    (example,) = doctest.DocTestFinder(recurse=False).find(DOCUMENTED[name], name, globs=names)
    assert example.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    with jax.enable_x64(False):
        result = runner.run(example)
    assert result.failed == 0
