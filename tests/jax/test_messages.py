"""Arguments that `je.kernel` and a kernel do not take: one error each, which names the argument and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je

SOURCE = "void f(int n, const double *x, double *y) { for (int i = 0; i < n; i++) y[i] = x[i] * x[i]; }"


def made(**changes: Any) -> je.Kernel:
    given = {"source": SOURCE, "symbol": "f", "signature": "n: i32, x: f64[n], out y: f64[n]", "lang": "c"} | changes
    return je.kernel(given.pop("source"), given.pop("symbol"), given.pop("signature"), **given)


@cache
def square() -> je.Kernel:
    return made()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": {}}, "options= is a je.Options, not {}"),
        ({"options": {"checkpoint": "sqrt"}}, "options= is a je.Options"),
        ({"options": "sqrt"}, "options= is a je.Options"),
        ({"symbol": 3}, "symbol= is the name of a function in the source, not 3"),
        ({"symbol": ["f"]}, "symbol= is the name of a function"),
        ({"flags": 3}, "flags= is a sequence of strings, not 3"),
        ({"flags": (3,)}, "flags= is a sequence of strings"),
        ({"flags": "-DN=3"}, r"flags= is a sequence of strings, not '-DN=3'"),
        ({"flags": "-O -DN=3"}, r"flags=\('-O', '-DN=3'\)"),
        ({"lang": 3}, "lang= is the name of a language, not 3"),
    ],
)
def test_arguments_of_other_types(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(je.ArgumentError, match=words):
        made(**changes)


@pytest.mark.parametrize("check", [je.check_grads, je.check_races])
@pytest.mark.parametrize("args", [np.arange(3.0), jnp.arange(3.0), 3.0, {"x": np.arange(3.0)}])
def test_checks_of_arguments_that_are_no_tuple(check: Callable[..., Any], args: Any) -> None:
    with pytest.raises(je.ArgumentError, match="args is a tuple of the kernel's arguments"):
        check(square(), args)


@pytest.mark.parametrize("make", [je.inactive, lambda name: je.rule(name, "x0")])
def test_rules_of_what_is_no_name(make: Callable[[Any], Any]) -> None:
    with pytest.raises(je.SignatureError, match="3 is no symbol"):
        make(3)


@pytest.mark.parametrize("source", ["", " ", "\n"])
def test_empty_sources(source: str, tmp_path: Path) -> None:
    with pytest.raises(je.CompileError, match="the source is empty"):
        made(source=source)
    path = tmp_path / "empty.c"
    path.write_text(source)
    with pytest.raises(je.CompileError, match="the source file is empty"):
        made(source=path)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"fast_math": "yes"}, "fast_math is True or False, not 'yes'"),
        ({"deterministic": None}, "deterministic is True or False"),
        ({"tape_budget": "1G"}, "tape_budget is a number of bytes, not '1G'"),
        ({"tape_budget": float("nan")}, "tape_budget is a number of bytes"),
        ({"tape_cost": 0}, "tape_cost is a number from 0.25 to 64, not 0"),
        ({"vector_width": 64}, "vector_width is 128, 256, 512 or None, not 64"),
        ({"without": ("tape",)}, "without is some of recomputing, .*, not 'tape'"),
    ],
)
def test_options_of_other_types(option: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        je.Options(**option)


@pytest.mark.parametrize("way", [lambda f: f, lambda f: jax.jit(f), lambda f: jax.grad(lambda x: f(x).sum())])
def test_masked_arrays(way: Callable[..., Any]) -> None:
    masked = np.ma.masked_array(np.arange(4.0), mask=[0, 1, 0, 0])
    with pytest.raises((je.ArgumentError, ValueError), match="masked array"):
        way(square())(masked)
    with pytest.raises(je.ArgumentError, match="argument `x` is a masked array"):
        square()(masked)
    assert square()(jnp.asarray(masked.filled(2.0))).tolist() == [0, 4, 4, 9]


@cache
def counting() -> je.Kernel:
    source = "void f(int k, const unsigned char *b, short *c, double *y) { *y = k + b[0]; *c += 1; }"
    return je.kernel(source, "f", "k: i32, b: u8[n], inout c: i16[], out y: f64[]", lang="c")


BYTES = np.array([2], np.uint8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((2**40, BYTES, 1), "argument `k` is 1099511627776, which does not fit i32"),
        ((jnp.asarray(2**40), BYTES, 1), "argument `k` is 1099511627776, which does not fit i32"),
        ((1, jnp.full(2, -1), 1), "argument `b` is -1, which does not fit u8"),
        ((1, BYTES, 2**15), "argument `c` is 32768, which does not fit i16"),
    ],
)
def test_weak_integers_that_do_not_fit(arguments: tuple[Any, ...], words: str) -> None:
    for call in (lambda: counting()(*arguments), lambda: jax.jit(lambda: counting()(*arguments))()):
        with pytest.raises(je.ArgumentError, match=words):
            call()
    c, y = counting()(jnp.asarray(5), jnp.full(2, 255), 2**15 - 2)
    assert (c, y) == (2**15 - 1, 260)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: (jnp.asarray(2**40), BYTES, 1), "argument `k` is 1099511627776, which does not fit i32"),
        (lambda: (1, jnp.full(2, -1), 1), "argument `b` is -1, which does not fit u8"),
        (lambda: (1, 2 * jnp.full(2, 200) - jnp.asarray(100), 1), "argument `b` is 300, which does not fit u8"),
        (lambda: (1, BYTES, -jnp.asarray(2**15) - 1), "argument `c` is -32769, which does not fit i16"),
    ],
)
def test_weak_integers_that_are_made_under_jit(make: Callable[[], tuple[Any, ...]], words: str) -> None:
    """Of constants alone, in a loop too."""
    for call in (
        jax.jit(lambda x: counting()(*make())[1] + x),
        lambda x: jax.lax.fori_loop(0, 2, lambda _, y: y + counting()(*make())[1], x),
    ):
        with pytest.raises(je.ArgumentError, match=words):
            call(1.0)
    c, y = jax.jit(lambda: counting()(jnp.asarray(5), jnp.full(2, 200) + 55, jnp.asarray(2**15) - 2))()
    assert (c, y) == (2**15 - 1, 260)
