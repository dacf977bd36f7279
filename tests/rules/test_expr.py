from __future__ import annotations

import math

import pytest

from jax_enzyme.rules.expr import Binary, Const, Expr, Neg, Var, Where, evaluate, functions, parse, text
from jax_enzyme.rules.table import standard


def test_a_formula_becomes_a_tree() -> None:
    assert parse("1 - y*y") == Binary("-", Const(1), Binary("*", Var("y"), Var("y")))
    assert parse("-x0 / x1") == Binary("/", Neg(Var("x0")), Var("x1"))
    assert parse("-0.5") == Const(-0.5)
    assert isinstance(parse("0 if x0 > 0 else x1"), Where)
    assert parse("pi") == Const(math.pi, "pi")


@pytest.mark.parametrize("formula", ["x", "x0 ** 2", "x0 < x1 < x2", "f(x0, a=1)", "True", "x0.real", "[x0]"])
def test_what_is_not_understood_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        parse(formula)


def test_variables_and_functions() -> None:
    formula = parse("0 if x1 == 0 else y*log(x0)")
    assert formula.variables == {"x0", "x1", "y"}
    assert functions(formula) == {"log"}


def test_evaluation_in_python_floats() -> None:
    formula = parse("y*log(1 if x0 == 0 or x0 < 0 else x0) - x1/2")
    assert evaluate(formula, {"x0": 0.0, "x1": 3.0, "y": 5.0}, {"log": math.log}) == -1.5
    assert evaluate(formula, {"x0": 2.0, "x1": 0.0, "y": 1.0}, {"log": math.log}) == math.log(2.0)


@pytest.mark.parametrize(
    "formula", ["x0 - (x1 - y)", "-(x0 + x1)", "x0 / (x1*y)", "(x0 if x1 > 0 else 1)*y", "x0*(-1)"]
)
def test_text_keeps_the_meaning_of_brackets(formula: str) -> None:
    assert parse(text(parse(formula))) == parse(formula)


def test_every_formula_of_the_table_reads_back() -> None:
    for rule in standard().functions.values():
        for partial in rule.partials:
            if isinstance(partial, Expr):
                assert parse(text(partial)) == partial
