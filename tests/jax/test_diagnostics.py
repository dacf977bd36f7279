"""What a person sees: names in programs and traces, printing, NaN checks, ahead-of-time compilation."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.jax.conftest import Subject


@cache
def _root() -> je.Kernel:
    return je.kernel("#include <math.h>\ndouble root(double x) { return sqrt(x); }", "root", "x: f64 -> f64", lang="c")


@pytest.fixture
def subject(engine_subject: Subject) -> Subject:
    return engine_subject


def test_debug_print_beside_a_kernel(subject: Subject, capfd: pytest.CaptureFixture[str]) -> None:
    @jax.jit
    def run(*args: Any) -> Any:
        y = subject.scalar(subject.kernel)(*args)
        jax.debug.print("it is {}", y)
        return y

    jax.block_until_ready(jax.grad(run, subject.floats)(*subject.args))
    jax.effects_barrier()
    printed = capfd.readouterr().out.split("it is ")[1]
    subject.close(jnp.asarray(float(printed)), subject.scalar(subject.expected)(*subject.args).astype(float))


def test_debug_nans() -> None:
    assert np.isnan(_root()(-1.0))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.block_until_ready(jax.jit(lambda x: _root()(x))(-1.0))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.block_until_ready(_root()(-1.0))


def test_nans_are_values(subject: Subject) -> None:
    """A kernel that is given NaN does what the same function of jax.numpy does."""
    args = [np.full_like(a, np.nan) if i in subject.floats else a for i, a in enumerate(subject.args)]
    subject.close(subject.kernel(*args), subject.expected(*args))
    ours, theirs = (jax.grad(subject.scalar(f), subject.floats)(*args) for f in (subject.kernel, subject.expected))
    subject.close(ours, theirs)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.block_until_ready(jax.jit(subject.kernel)(*args))


def test_the_kernels_name_is_in_programs(subject: Subject) -> None:
    def scoped(*args: Any) -> Any:
        with jax.named_scope("physics"):
            return subject.scalar(subject.kernel)(*args)

    compiled = jax.jit(jax.value_and_grad(scoped, subject.floats)).lower(*subject.args).compile().as_text()
    assert "physics" in compiled
    assert f"({subject.example.symbol})/" in compiled


def test_the_kernels_name_is_in_traces(tmp_path: Path) -> None:
    run = jax.jit(jax.vmap(jax.grad(_root())))
    x = np.linspace(1, 2, 1000)
    run(x).block_until_ready()
    with jax.profiler.trace(tmp_path):
        run(x).block_until_ready()
    [trace] = tmp_path.rglob("*.xplane.pb")
    assert b"(root)" in trace.read_bytes()


def test_jaxpr_text(subject: Subject) -> None:
    gradient = jax.vmap(jax.value_and_grad(subject.scalar(subject.kernel), subject.floats))
    text = str(jax.make_jaxpr(gradient)(*subject.batch_args(3)))
    assert f"{subject.example.symbol}[call=" in text
    assert "batch=(3,)" in text
    assert "0x" not in text
    assert not text.startswith("let jaxpr")
    assert len(str(jax.make_jaxpr(subject.kernel)(*subject.args)).splitlines()) < 6


def test_ahead_of_time(subject: Subject) -> None:
    ours = jax.value_and_grad(subject.scalar(subject.kernel), subject.floats)
    theirs = jax.value_and_grad(subject.scalar(subject.expected), subject.floats)
    shapes = [jax.ShapeDtypeStruct(np.shape(a), a.dtype) for a in subject.args]
    compiled = jax.jit(ours).lower(*shapes).compile()
    subject.close(compiled(*subject.args), theirs(*subject.args))
    assert isinstance(compiled.cost_analysis(), dict)
    assert compiled.memory_analysis() is not None


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
