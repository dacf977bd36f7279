"""Polynomials in the basis of binomials, against plain integers."""

from __future__ import annotations

from math import prod

from hypothesis import assume, given
from hypothesis import strategies as st

from jax_enzyme.analysis.polynomials import Leaf, Polynomial, TooComplex, choose, emit
from jax_enzyme.analysis.ranges import Interval
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument, BasicBlock
from tests.analysis.interpreter import Run, signed

VALUES = [Argument(T.I64, name=name, index=i) for i, name in enumerate("xyz")]
ATOMS = [Leaf(value, rank) for rank, value in enumerate(VALUES)]
POINTS = st.tuples(*[st.integers(-50, 50)] * 3)


@st.composite
def polynomials(draw: st.DrawFn, degree: int = 2) -> Polynomial:
    total = Polynomial({})
    for _ in range(draw(st.integers(0, 3))):
        degrees = [draw(st.integers(0, degree)) for _ in ATOMS]
        monomial = tuple((a, d) for a, d in zip(ATOMS, degrees, strict=True) if d)
        total += Polynomial({monomial: draw(st.integers(-6, 6)) or 1})
    return total


def at(polynomial: Polynomial, point: tuple[int, ...]) -> int:
    return polynomial.evaluate(dict(zip(ATOMS, point, strict=True)).__getitem__)


@given(polynomials(), polynomials(1), POINTS)
def test_arithmetic(p: Polynomial, q: Polynomial, point: tuple[int, ...]) -> None:
    try:
        product, sum_, difference = p * q, p + q, p - q
    except TooComplex:
        assume(False)
    assert at(product, point) == at(p, point) * at(q, point)
    assert at(sum_, point) == at(p, point) + at(q, point)
    assert at(difference, point) == at(p, point) - at(q, point)


@given(polynomials(1), st.integers(1, 3), POINTS)
def test_choose(p: Polynomial, degree: int, point: tuple[int, ...]) -> None:
    try:
        chosen = p.choose(degree)
    except TooComplex:
        assume(False)
    assert at(chosen, point) == choose(at(p, point), degree)


@given(polynomials(), polynomials(1), POINTS)
def test_substitute(p: Polynomial, q: Polynomial, point: tuple[int, ...]) -> None:
    try:
        replaced = p.substitute(ATOMS[0], q)
    except TooComplex:
        assume(False)
    assert at(replaced, point) == at(p, (at(q, point), *point[1:]))


@given(polynomials(), st.integers(0, 20), POINTS)
def test_sum_over_iterations(p: Polynomial, count: int, point: tuple[int, ...]) -> None:
    total = sum(at(p, (k, *point[1:])) for k in range(count))
    assert at(p.summed(ATOMS[0]), (count, *point[1:])) == total


@given(polynomials(), st.lists(POINTS, min_size=2, max_size=4))
def test_interval(p: Polynomial, points: list[tuple[int, ...]]) -> None:
    box = {atom: Interval(min(xs), max(xs)) for atom, xs in zip(ATOMS, zip(*points, strict=True), strict=True)}
    known = p.interval(box.__getitem__)
    assert all(known.low <= at(p, point) <= known.high for point in points)


def test_choose_is_a_polynomial() -> None:
    for x in range(-9, 10):
        assert choose(x, 3) * 6 == prod((x, x - 1, x - 2))


@given(
    polynomials(3),
    st.tuples(*[st.integers(-(1 << 63), (1 << 63) - 1)] * 3),
    st.sampled_from([8, 32, 64]),
)
def test_emitted_code(p: Polynomial, point: tuple[int, ...], bits: int) -> None:
    """Right modulo 2**bits for every value of the atoms, however large."""
    type_ = T.IntType(bits)
    block = BasicBlock(name="entry")
    builder = Builder(block)
    result = emit(builder, p, type_, lambda atom: atom.value)
    assert result.type == type_
    builder.ret(result)
    function = Function(T.PTR, T.FunctionType(type_, (T.I64,) * 3), name="f", arguments=VALUES, blocks=[block])
    run = Run(function, list(point), lambda *_: None, lambda *_: None)
    run.go()
    assert run.get(result) == signed(at(p, point), bits)


def test_text() -> None:
    x, y, _ = map(Polynomial.atom, ATOMS)
    assert str(x * x - y.scale(3) + Polynomial.constant(7)) == "7 + %x - 3*%y + 2*C(%x,2)"
    assert str(Polynomial({})) == "0"
