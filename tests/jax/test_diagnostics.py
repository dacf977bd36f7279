"""What a person sees: names in programs and traces, printing, NaN checks, ahead-of-time compilation."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je


@cache
def _root() -> je.Kernel:
    return je.kernel("#include <math.h>\ndouble root(double x) { return sqrt(x); }", "root", "x: f64 -> f64", lang="c")


def test_debug_print_beside_a_kernel(capfd: pytest.CaptureFixture[str]) -> None:
    @jax.jit
    def run(x: Any) -> Any:
        y = _root()(x)
        jax.debug.print("root of {} is {}", x, y)
        return y

    jax.block_until_ready(jax.grad(run)(4.0))
    jax.effects_barrier()
    assert "root of 4.0 is 2.0" in capfd.readouterr().out


def test_debug_nans() -> None:
    assert np.isnan(_root()(-1.0))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.block_until_ready(jax.jit(lambda x: _root()(x))(-1.0))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.block_until_ready(_root()(-1.0))


def test_the_kernels_name_is_in_programs_and_traces() -> None:
    def scoped(x: Any) -> Any:
        with jax.named_scope("physics"):
            return _root()(x)

    lowered = jax.jit(jax.value_and_grad(scoped)).lower(4.0)
    assert 'name = "vjp(root)"' in lowered.as_text() or 'name = "pullback(root)"' in lowered.as_text()
    compiled = lowered.compile().as_text()
    assert "physics" in compiled
    assert "(root)/" in compiled


def test_jaxpr_text() -> None:
    text = str(jax.make_jaxpr(jax.vmap(jax.value_and_grad(_root())))(np.ones(3)))
    assert "root[call=" in text
    assert "batch=(3,)" in text
    assert "0x" not in text
    assert len(text.splitlines()) < 15


def test_ahead_of_time() -> None:
    compiled = jax.jit(jax.value_and_grad(_root())).lower(jax.ShapeDtypeStruct((), jnp.float64)).compile()
    value, slope = compiled(4.0)
    assert (value, slope) == (2.0, 0.25)
    assert isinstance(compiled.cost_analysis(), dict)
    assert compiled.memory_analysis() is not None


def test_linear_transpose() -> None:
    _, push = jax.linearize(_root(), 4.0)
    assert jax.linear_transpose(push, 1.0)(2.0) == (0.5,)


def test_custom_rules_around_a_kernel() -> None:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return _root()(x)

    clipped.defvjp(lambda x: jax.vjp(_root(), x), lambda pull, ct: (jnp.minimum(pull(ct)[0], 0.1),))
    assert jax.jit(jax.grad(clipped))(4.0) == 0.1

    @jax.custom_jvp
    def doubled(x: Any) -> Any:
        return _root()(x)

    doubled.defjvp(lambda x, t: (_root()(*x), 2 * jax.jvp(_root(), x, t)[1]))
    assert jax.grad(doubled)(4.0) == 0.5
    assert jax.grad(jax.custom_gradient(lambda x: (_root()(x), lambda ct: ct * 7)))(4.0) == 7


def test_a_numpy_integer_is_a_static_integer() -> None:
    power = je.kernel(
        "double power(double x, int p) { double y = 1; for (int i = 0; i < p; i++) y *= x; return y; }",
        "power",
        "x: f64, p: i32 -> f64",
        lang="c",
    )
    for p in (3, np.int64(3), np.int8(3), np.uint64(3)):
        assert power(2.0, p) == 8.0
        assert jax.grad(power)(2.0, p) == 12.0
    with pytest.raises(je.ArgumentError, match="does not fit i32"):
        power(2.0, np.int64(2**40))
