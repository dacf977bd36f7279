"""What a kernel accepts: Python scalars, NumPy arrays, static and traced integers; and what it refuses, at the call."""

from __future__ import annotations

import traceback

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from tests.jax.conftest import Subject, make
from tests.jax.kernels import COLUMNS, EULER, POLY, POWER, SINGLE


@pytest.fixture
def power(backend: str) -> Subject:
    return make(POWER, backend)


@pytest.fixture
def poly(backend: str) -> Subject:
    return make(POLY, backend)


def test_python_floats_take_the_declared_dtype(poly: Subject) -> None:
    x, _ = poly.args
    out = poly.kernel(x, 2.0)
    assert out.dtype == jnp.float64
    assert not out.weak_type
    poly.close(out, poly.expected(x, 2.0))
    poly.close(jax.jit(poly.kernel)(x, 2), poly.expected(x, 2.0))


def test_keyword_arguments(poly: Subject) -> None:
    x, a = poly.args
    poly.close(poly.kernel(a=a, x=x), poly.expected(x, a))
    poly.close(jax.jit(poly.kernel)(x, a=a), poly.expected(x, a))


def test_python_integers_are_constants_and_traced_ones_are_operands(power: Subject) -> None:
    x = power.args[0]
    for p in (2, 3):
        expected = power.expected(x, np.int32(p))
        for value in (p, np.int32(p), jnp.int32(p)):
            power.close(power.kernel(x, value), expected)
        power.close(jax.jit(power.kernel, static_argnums=1)(x, p), expected)
        power.close(jax.jit(power.kernel)(x, p), expected)
        power.close(jax.grad(power.kernel)(x, p), jax.grad(power.expected)(x, np.int32(p)))
    static = str(jax.make_jaxpr(lambda v: power.kernel(v, 2))(x))
    traced = str(jax.make_jaxpr(power.kernel)(x, jnp.int32(2)))
    assert "i32[]" not in static
    assert "i32[]" in traced


def test_batch_of_integers(power: Subject) -> None:
    x, many = power.args[0], np.arange(4, dtype=np.int32)
    power.close(jax.vmap(power.kernel, (None, 0))(x, many), jax.vmap(power.expected, (None, 0))(x, many))


def test_integers_have_no_gradient(power: Subject) -> None:
    grads = jax.grad(power.kernel, (0, 1), allow_int=True)(*power.args)
    assert grads[1].dtype == jax.dtypes.float0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((np.ones(3),), "missing argument: a"),
        ((np.ones(3), 1.0, 2.0), "3 positional arguments"),
        ((np.ones((3, 2)), 1.0), "argument `x` must be an array of rank 1"),
        ((np.ones(3, np.float32), 1.0), "argument `x` must be float64, got float32"),
        ((np.ones(3), np.ones(2)), "argument `a` must be a scalar"),
        (([1.0, 2.0], 1.0), "argument `x` must be an array, got list"),
        ((None, 1.0), "argument `x` must be an array, got NoneType"),
        ((np.ones(3), 1j), "argument `a` must be float64, got complex128"),
        ((np.ones(3, bool), 1.0), "argument `x` must be float64, got bool"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_what_does_not_fit(poly: Subject, args: tuple[object, ...], words: str, traced: bool) -> None:
    call = jax.jit(poly.kernel) if traced else poly.kernel
    with pytest.raises(je.SignatureError, match=words):
        call(*args)


@pytest.mark.parametrize(
    ("value", "words"),
    [("text", "got str"), (np.array([None]), "got an array of object"), (memoryview(b"ab"), "got memoryview")],
)
def test_what_is_no_array(poly: Subject, value: object, words: str) -> None:
    with pytest.raises(je.ArgumentError, match=f"argument `x` must be an array, {words}"):
        poly.kernel(value, 1.0)


def test_masked_arrays_are_refused_behind_plain_ones(poly: Subject) -> None:
    """jax.jit takes one for the plain array that it was called with before, and leaves the mask out."""
    x, a = poly.args
    plain = np.array(x)
    poly.kernel(plain, a)
    with pytest.raises(je.ArgumentError, match="argument `x` is a masked array"):
        poly.kernel(np.ma.array(plain, mask=plain > 0), a)


class Variable:
    """What Flax's variables are to JAX."""

    def __init__(self, value: jax.Array) -> None:
        self.value = value

    def __jax_array__(self) -> jax.Array:
        return self.value


def test_what_makes_itself_an_array(poly: Subject) -> None:
    x, a = poly.args
    expected = poly.expected(x, a)
    poly.close(poly.kernel(Variable(jnp.asarray(x)), a), expected)
    poly.close(jax.jit(lambda x: poly.kernel(Variable(x), Variable(jnp.asarray(a))))(x), expected)
    poly.close(jax.jacfwd(lambda x: poly.kernel(Variable(x), a))(x), jax.jacfwd(lambda x: poly.expected(x, a))(x))


def test_arrays_of_numpy_in_any_layout(poly: Subject) -> None:
    """Other orders of bytes too, which jax.jit takes for this machine's once it knows the shape."""
    x, a = poly.args
    expected = poly.expected(x, a)
    read_only = np.frombuffer(x.tobytes())
    for same in (x, np.repeat(x, 2)[::2], read_only, x.astype(x.dtype.newbyteorder())):
        poly.close(poly.kernel(same, a), expected)


def test_shapes_that_do_not_agree(backend: str) -> None:
    columns = make(COLUMNS, backend)
    with pytest.raises(je.SignatureError, match=r"argument `x` has shape \(4,\), expected \(3,\)"):
        columns.kernel(np.ones((2, 3)), np.ones(4))


def test_wide_kernel_in_a_narrow_jax(poly: Subject) -> None:
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(je.SignatureError, match="jax_enable_x64"):
        poly.kernel(*poly.args)


def test_narrow_kernel_in_a_narrow_jax(backend: str) -> None:
    single = make(SINGLE, backend)
    jax.config.update("jax_enable_x64", False)
    single.close(single.kernel(*single.args), single.expected(*single.args))
    ours = jax.grad(single.scalar(single.kernel), single.floats)
    single.close(ours(*single.args), jax.grad(single.scalar(single.expected), single.floats)(*single.args))


def test_donated_inout(backend: str) -> None:
    euler = make(EULER, backend)
    s = jnp.array(euler.args[0])
    expected = euler.expected(*euler.args)
    euler.close(jax.jit(euler.kernel, donate_argnums=0)(s, *euler.args[1:]), expected)
    assert s.is_deleted()


def test_an_error_is_raised_at_the_call_once() -> None:
    """Without the frames below it, and not while another is being handled."""

    def frames(call: object) -> list[str]:
        with pytest.raises(je.JaxEnzymeError) as caught:
            call()  # type: ignore[operator]
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        entries = traceback.extract_tb(caught.value.__traceback__)
        return [e.name for e in entries if "jax_enzyme/primitives/" in e.filename]

    kernel = make(POLY, "engine").kernel
    wrong = jnp.ones(3, jnp.float32)
    assert frames(lambda: kernel(wrong, 1.0)) == ["__call__"]
    assert frames(lambda: kernel("text", 1.0)) == ["__call__", "_again"]
    assert frames(lambda: jax.jit(lambda x: kernel(x, 1.0) + 1)(wrong)) == ["__call__"]
    assert frames(lambda: je.kernel(POLY.source, "pol", POLY.signature, lang="c")) == ["kernel"]
    assert frames(lambda: je.kernel(POLY.source, "poly", "x: f64[]", lang="c")) == ["kernel"]
