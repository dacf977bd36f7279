"""Signatures that parse, and what is said about those that do not."""

from __future__ import annotations

import copy
import pickle

import pytest

from jax_enzyme.errors import SignatureError
from jax_enzyme.signature import parse

GMM = (
    "d: i32, k: i32, n: i32, alphas: f64[k], means: f64[k,d], icf: f64[k,d*(d+1)/2],"
    " x: f64[n,d], gamma: f64, m: i32, out err: f64[]"
)


def test_a_whole_signature() -> None:
    signature = parse(GMM)
    assert [p.name for p in signature.dimensions] == ["d", "k", "n"]
    assert [p.name for p in signature.caller_params] == ["alphas", "means", "icf", "x", "gamma", "m"]
    assert [p.name for p in signature.results] == ["err"]
    assert signature["gamma"].by_value
    assert not signature["err"].by_value
    assert signature["err"].is_scalar
    assert signature["icf"].type_text == "f64[k,d*(d+1)/2]"


@pytest.mark.parametrize(
    "text",
    [
        GMM,
        "x: f64[n] -> f64",
        "n: i32[], inout x: c128[n], scratch w: f32[2*n+1] -> status",
        "x: bool[n//1,n%7,n], out y: bf16[-(-n)], out z: f16[(n-1)-(n-2)] -> i64",
        "x: u8[ n , m*(n + 1) ],out y:u64[ 2 * ( n - m ) ]",
        "in x: f64[n], in_: f64, out out: f64[n]",
        "in in_: f64, out: f64[3] -> f32",
        "A: f64[n][m], out y: f64[n][3,m][k], k: i32, z: f64[k]",
        "p: {n: i32, k: f64, x: f64[n]*, q: {z: f64[3], w: {a: f32}*}, _: null, f: fn(cb)}, out y: f64[p.n]",
        'inout ps: {x: f64, v: f64[3], in id: i32}[n], n: i32, c: "U", info: status[] -> f64',
        "n: i32 = 3, x: f64[n], # a comment\n inout b: {c: {d: f64[]*}[2], e: {g: c64}[n]*}*",
    ],
)
def test_text_round_trip(text: str) -> None:
    signature = parse(text)
    assert parse(str(signature)) == signature
    assert hash(parse(str(signature))) == hash(signature)
    assert pickle.loads(pickle.dumps(signature)) == signature
    assert copy.deepcopy(signature) == signature


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("p: {x: f64[n]} -> f64", "its size is a number"),
        ("p: {x: f64, x: f64} -> f64", "two members"),
        ("p: {out x: f64}", "by value"),
        ("out p: {x: f64}", "by value"),
        ("p: {x: f64*} -> f64", "brackets before its star"),
        ("x: f64[n]* -> f64", "a pointer already"),
        ("n: i32, x: f64* -> f64", "a pointer, and no star"),
        ("p: {x: f64[n]*, q: {z: f64[k]*}, k: i32, m: f64} , y: f64[q.k] -> f64", "no member"),
        ("a: {n: i32, x: f64[n]*}, b: {n: i32, x: f64[n]*}, y: f64[n] -> f64", "`a.n` or `b.n`"),
        ("x: f64 = 3 -> f64", "fixed value"),
        ("x: f64[?] -> f64", "nobody knows but you"),
        ("out x: null", "leave `out` out"),
        ("p: {a: f64", "expected `}`"),
        ("p: " + "{a: " * 60 + "f64" + "}" * 60 + " -> f64", "nested too deeply"),
    ],
)
def test_structures_that_make_no_sense(text: str, cause: str) -> None:
    with pytest.raises(SignatureError, match=cause):
        parse(text)


def test_order_is_part_of_the_value() -> None:
    assert parse("x: f64[n] -> f64", "F") != parse("x: f64[n] -> f64")
    with pytest.raises(SignatureError, match="order is 'C' or 'F'"):
        parse("x: f64[n] -> f64", "K")
    with pytest.raises(SignatureError, match="in the signature: `order: i32 = 10`"):
        parse("order: i32, x: f64[order] -> f64", 10)


def test_results_come_in_the_order_of_the_contract() -> None:
    signature = parse("out a: f64[n], inout b: f64[n], scratch s: f64[n], out c: i32[] -> f32")
    assert [r.name for r in signature.results] == ["return", "a", "b", "c"]
    assert [p.name for p in parse("inout b: f64[n] -> status").results] == ["b"]


@pytest.mark.parametrize(
    ("text", "cause", "column"),
    [
        ("", "expected a parameter", 0),
        ("x: f64[n] y: f64", "expected `,` or `->`", 10),
        ("x f64", "expected `:` after `x`", 2),
        ("x: f46[n] -> f64", "`f46` is no dtype", 3),
        ("x: [n]", "expected a dtype after `x:`", 3),
        ("x: f64[n,] -> f64", "expected a dimension", 9),
        ("x: f64[n -> f64", r"expected `\]` after `n`", 9),
        ("x: f64[(n+1] -> f64", r"expected `\)` after `n\+1`", 11),
        ("x: f64[n;m]", "unexpected character ';'", 8),
        ("x: f64[n] -> void", "returns nothing", 13),
        ("x: f64[n] -> ", "expected a dtype after `->`", 12),
        ("x: f64[n], x: f64", "two parameters are named `x`", 11),
        ("out y: f64", "`out y` is passed by value", 4),
        ("lambda: f64 -> f64", "`lambda` is a Python keyword", 0),
        ("in: f64 -> f64", "`in` is a Python keyword", 0),
        ("x: f64[-1] -> f64", "the shape of `x` would be negative: -1", 0),
        ("y: f64, x: f64[2,3/2] -> f64", "the shape of `x` has no value", 8),
        ("x: f64[1.5] -> f64", r"unexpected character '\.'", 8),
        ("x: f64[" + "(" * 99 + "n" + ")" * 99 + "]", "nested too deeply", 57),
    ],
)
def test_a_caret_is_under_the_place(text: str, cause: str, column: int) -> None:
    with pytest.raises(SignatureError, match=cause) as caught:
        parse(text)
    shown, caret = (caught.value.place or "").split("\n")
    column_shown = caret.index("^")
    assert caret.strip() == "^"
    if not shown.startswith("...") and not shown.endswith("..."):
        assert column_shown == column
    else:
        assert shown[column_shown] == text[column]


def test_the_caret_is_found_in_a_long_signature() -> None:
    text = ", ".join(f"argument_{i}: f64[n]" for i in range(40)) + ", bad: f63[n], " + GMM
    with pytest.raises(SignatureError) as caught:
        parse(text)
    shown, caret = (caught.value.place or "").split("\n")
    assert len(shown) < 110
    assert shown[caret.index("^") :].startswith("f63[n]")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("x: double[n] -> f64", "`f64`"),
        ("x: F64[n] -> f64", "`f64`"),
        ("x: Float64[n] -> f64", "`f64`"),
        ("x: f64[n], y: out f64[n]", "`out` stands before the name"),
    ],
)
def test_the_remedy_knows_other_spellings(text: str, remedy: str) -> None:
    with pytest.raises(SignatureError) as caught:
        parse(text)
    assert remedy in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("n: f64, x: f64[n] -> f64", "`n` occurs in a shape, but it is no integer scalar"),
        ("n: i32[2], x: f64[n] -> f64", "`n` occurs in a shape"),
        ("out n: i32[], x: f64[n]", "`n` occurs in a shape"),
        ("x: f64[x] -> f64", "`x` occurs in a shape"),
        ("x: f64[n]", "nothing comes out"),
        ("x: f64[n] -> status", "nothing comes out"),
        ("n: i32, out x: f64[n]", "(?s)`n` cannot be solved: no argument.*je.kernel: `n=17`"),
        ("n: i32, x: f64[n//2] -> f64", "`n` cannot be solved"),
        ("x: f64[n+m] -> f64", "`m`, `n` cannot be solved"),
        ("x: f64[n*m], y: f64[n*m] -> f64", "`m`, `n` cannot be solved"),
        ("x: f64[n+m], y: f64[2*(n+m)] -> f64", "`m`, `n` cannot be solved"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(text: str, cause: str) -> None:
    with pytest.raises(SignatureError, match=cause) as caught:
        parse(text)
    assert caught.value.place
    assert caught.value.remedy
