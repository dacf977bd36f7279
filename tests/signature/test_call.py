"""Matching and checking the arguments of a call."""

from __future__ import annotations

import pytest

from jax_enzyme.errors import ArgumentError, SignatureError
from jax_enzyme.signature import Actual, Binding, bind, inspect_signature, match, parse

SIGNATURE = parse("n: i32, x: f64[n], a: f32, k: i32, inout y: f64[n], scratch w: f64[n], out z: i32[] -> f64")


def f64(*shape: int) -> Actual:
    return Actual(shape, "float64")


def python_int(value: int) -> Actual:
    return Actual((), "int64", weak=True, static=value)


PYTHON_FLOAT = Actual((), "float64", weak=True)


def test_by_position_and_by_name() -> None:
    assert match(SIGNATURE, (1, 2), {"y": 4, "k": 3}) == (1, 2, 3, 4)
    assert str(inspect_signature(SIGNATURE)).startswith("(x: 'f64[n]', a: 'f32', k: 'i32', y: 'f64[n]')")


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, 2), {}, "missing arguments: k, y"),
        ((1, 2, 3), {}, "missing argument: y"),
        ((1, 2, 3, 4, 5), {}, "5 positional arguments given, 4 expected"),
        ((1, 2, 3, 4), {"x": 1}, "`x` is given twice"),
        ((1, 2, 3), {"yy": 1}, "unexpected argument `yy`"),
        ((1, 2, 3, 4), {"n": 1}, "unexpected argument `n`"),
        ((1, 2, 3, 4), {"z": 1}, "unexpected argument `z`"),
    ],
)
def test_wrong_count(args: tuple[int, ...], kwargs: dict[str, int], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        match(SIGNATURE, args, kwargs)
    assert "x: f64[n], a: f32, k: i32, inout y: f64[n]" in (caught.value.place or "")


def test_a_dimension_is_explained() -> None:
    with pytest.raises(ArgumentError, match="`n` is a dimension"):
        match(SIGNATURE, (1, 2, 3, 4), {"n": 7})
    with pytest.raises(ArgumentError, match="n come from shapes"):
        match(SIGNATURE, (7, 1, 2, 3, 4), {})


def test_bound() -> None:
    actuals = (f64(5), PYTHON_FLOAT, python_int(3), f64(5))
    assert bind(SIGNATURE, actuals, x64=True) == Binding((("n", 5),), (("k", 3),))
    traced = (f64(5), PYTHON_FLOAT, Actual((), "int32"), f64(5))
    assert bind(SIGNATURE, traced, x64=True) == Binding((("n", 5),), ())
    assert Binding.of({"m": 2, "n": 5}, {"k": 3}).constants == {"m": 2, "n": 5, "k": 3}


@pytest.mark.parametrize(
    ("index", "actual", "message"),
    [
        (0, Actual((5,), "float32"), "argument `x` must be float64, got float32"),
        (0, Actual((5,), "int64"), "argument `x` must be float64, got int64"),
        (0, Actual((5,), "complex128"), "argument `x` must be float64, got complex128"),
        (0, Actual((5,), "float8_e4m3fn"), "argument `x` must be float64, got float8_e4m3fn"),
        (0, f64(5, 1), r"argument `x` must be an array of rank 1, got rank 2, shape \(5, 1\)"),
        (0, f64(), "argument `x` must be an array of rank 1, got a scalar"),
        (1, f64(), "argument `a` must be float32, got float64"),
        (1, Actual((), "complex128", weak=True), "argument `a` must be float32"),
        (1, Actual((), "bool", weak=True), "argument `a` must be float32, got bool"),
        (1, f64(5), "argument `a` must be a scalar, got rank 1"),
        (2, PYTHON_FLOAT, "argument `k` must be int32, got float64"),
        (2, Actual((), "int64"), "argument `k` must be int32, got int64"),
        (2, python_int(2**31), "argument `k` is 2147483648, which does not fit i32"),
        (3, f64(4), r"argument `y` has shape \(4,\), expected \(5,\)"),
    ],
)
def test_an_argument_that_does_not_fit(index: int, actual: Actual, message: str) -> None:
    actuals = [f64(5), PYTHON_FLOAT, python_int(3), f64(5)]
    actuals[index] = actual
    with pytest.raises(ArgumentError, match=message) as caught:
        bind(SIGNATURE, actuals, x64=True)
    assert isinstance(caught.value, SignatureError | TypeError | ValueError)
    assert caught.value.place


def test_weak_types_give_way() -> None:
    signature = parse("a: f32, b: c64, c: f64, k: i64, h: bf16 -> f64")
    actuals = [PYTHON_FLOAT, PYTHON_FLOAT, python_int(2), Actual((), "int32"), PYTHON_FLOAT]
    assert bind(signature, actuals, x64=True) == Binding()


def test_wide_types_need_x64() -> None:
    with pytest.raises(ArgumentError, match="`x` is f64, but JAX has its 64-bit types switched off") as caught:
        bind(SIGNATURE, (Actual((5,), "float32"), PYTHON_FLOAT, python_int(3), Actual((5,), "float32")), x64=False)
    assert "jax_enable_x64" in (caught.value.remedy or "")
    with pytest.raises(ArgumentError, match="`return` is f64"):
        bind(parse("x: f32[n] -> f64"), (Actual((5,), "float32"),), x64=False)
    with pytest.raises(ArgumentError, match="`w` is f64"):
        bind(parse("inout x: f32[n], scratch w: f64[n]"), (Actual((5,), "float32"),), x64=False)


def test_wide_constants_do_not_need_x64() -> None:
    """Dimensions and static integers never become JAX arrays."""
    signature = parse("n: i64, k: i64, x: f32[n] -> f32")
    actuals = (python_int(2**40), Actual((5,), "float32"))
    assert bind(signature, actuals, x64=False) == Binding((("n", 5),), (("k", 2**40),))
    with pytest.raises(ArgumentError, match="`k` is i64"):
        bind(signature, (Actual((), "int32"), Actual((5,), "float32")), x64=False)
