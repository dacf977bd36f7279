"""Solving dimensions from shapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jax_enzyme.errors import ArgumentError
from jax_enzyme.signature import parse, solve


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        ("x: f64[n] -> f64", {"x": (5,)}, {"n": 5}),
        ("x: f64[n] -> f64", {"x": (0,)}, {"n": 0}),
        ("x: f64[n+1] -> f64", {"x": (5,)}, {"n": 4}),
        ("x: f64[2*n] -> f64", {"x": (6,)}, {"n": 3}),
        ("x: f64[n/2] -> f64", {"x": (3,)}, {"n": 6}),
        ("x: f64[10-n] -> f64", {"x": (3,)}, {"n": 7}),
        ("x: f64[n*n] -> f64", {"x": (49,)}, {"n": 7}),
        ("x: f64[n*n*n+n] -> f64", {"x": (30,)}, {"n": 3}),
        ("x: f64[d*(d+1)/2] -> f64", {"x": (15,)}, {"d": 5}),
        ("x: f64[d*(d+1)/2] -> f64", {"x": (500000500000,)}, {"d": 1000000}),
        ("a: f64[n*m], b: f64[n] -> f64", {"a": (12,), "b": (3,)}, {"n": 3, "m": 4}),
        ("a: f64[n*m+m*m], b: f64[n] -> f64", {"a": (21,), "b": (4,)}, {"n": 4, "m": 3}),
        ("a: f64[n+m], b: f64[n] -> f64", {"a": (7,), "b": (3,)}, {"n": 3, "m": 4}),
        ("a: f64[n+m], b: f64[n-m] -> f64", {"a": (7,), "b": (3,)}, {"n": 5, "m": 2}),
        ("a: f64[n+m], b: f64[m+k], c: f64[n+k] -> f64", {"a": (3,), "b": (5,), "c": (4,)}, {"n": 1, "m": 2, "k": 3}),
        ("a: f64[n+m,n+2*m], b: f64[k*m] -> f64", {"a": (3, 5), "b": (8,)}, {"n": 1, "m": 2, "k": 4}),
        ("a: f64[n+m+k], b: f64[m+k], c: f64[m] -> f64", {"a": (6,), "b": (5,), "c": (2,)}, {"n": 1, "m": 2, "k": 3}),
        ("a: f64[(n+3)//4,n] -> f64", {"a": (2, 7)}, {"n": 7}),
        ("a: f64[n], out b: f64[n*(n-1)/2] -> f64", {"a": (5,)}, {"n": 5}),
        ("a: f64[lda,n], n: i32[], lda: i32[], out y: f64[n]", {"a": (6, 3)}, {"lda": 6, "n": 3}),
    ],
)
def test_solved(text: str, shapes: dict[str, tuple[int, ...]], expected: dict[str, int]) -> None:
    assert solve(parse(text), shapes) == expected


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("x: f64[n], y: f64[n] -> f64", {"x": (5,), "y": (4,)}, r"argument `y` has shape \(4,\), expected \(5,\)"),
        ("x: f64[n,3] -> f64", {"x": (5, 2)}, r"argument `x` has shape \(5, 2\), expected \(5, 3\)"),
        ("x: f64[2*n] -> f64", {"x": (5,)}, r"argument `x` has shape \(5,\), but no n >= 0 makes 2\*n = 5"),
        ("x: f64[n+1] -> f64", {"x": (0,)}, "no n >= 0"),
        ("x: f64[d*(d+1)/2] -> f64", {"x": (7,)}, "no d >= 0"),
        ("x: f64[n*n-3*n+2] -> f64", {"x": (0,)}, "n = 1 and 2"),
        ("a: f64[n*m], b: f64[n] -> f64", {"a": (0,), "b": (0,)}, "`m` cannot be told from `a`"),
        ("a: f64[n+m], b: f64[n-m] -> f64", {"a": (7,), "b": (4,)}, "the shapes do not agree: m would be 3/2"),
        ("a: f64[n+m], b: f64[n-m] -> f64", {"a": (3,), "b": (7,)}, "m would be -2"),
        ("x: f64[n], out y: f64[n-3]", {"x": (2,)}, "would be negative: n-3 = -1"),
        ("x: f64[n], out y: f64[n/2]", {"x": (3,)}, "does not divide exactly: 3 / 2"),
        ("x: f64[n], out y: f64[4//n]", {"x": (0,)}, "divides 4 by 0"),
        ("n: i8, x: f64[n] -> f64", {"x": (200,)}, "n = 200, from `x`, does not fit i8"),
    ],
)
def test_shapes_that_do_not_agree(text: str, shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        solve(parse(text), shapes)


def test_the_message_says_where_a_value_comes_from() -> None:
    with pytest.raises(ArgumentError) as caught:
        solve(parse("n: i32, x: f64[n], y: f64[n,2] -> f64"), {"x": (5,), "y": (4, 2)})
    assert caught.value.place == "y: f64[n,2] with n = 5 (from `x`)"


_small = st.integers(0, 50)


@given(_small, _small, st.integers(1, 9), st.integers(-9, 9), _small)
def test_linear_systems(n: int, m: int, a: int, b: int, c: int) -> None:
    """Whatever the values are, the shapes that they make give them back."""
    if a == b:
        return
    text = f"x: f64[{a}*n+{a}*m+{c}], y: f64[{a}*n+({b})*m+1000] -> f64"
    assert solve(parse(text), {"x": (a * n + a * m + c,), "y": (a * n + b * m + 1000,)}) == {"n": n, "m": m}


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(0, 9), st.integers(0, 99))
def test_quadratics(n: int, a: int, b: int, c: int) -> None:
    assert solve(parse(f"x: f64[{a}*n*n+{b}*n+{c}] -> f64"), {"x": (a * n * n + b * n + c,)}) == {"n": n}


@given(st.integers(0, 10**4), st.integers(0, 9), st.integers(0, 9))
def test_cubics(n: int, b: int, c: int) -> None:
    assert solve(parse(f"x: f64[n*n*n+{b}*n+{c}] -> f64"), {"x": (n**3 + b * n + c,)}) == {"n": n}
