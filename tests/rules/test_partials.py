"""Every row against mpmath: the formula itself in high precision, and the machine code that is emitted for it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.emit import emit
from jax_enzyme.rules.expr import Expr, evaluate, functions
from jax_enzyme.rules.rule import Kind, Rule
from jax_enzyme.rules.table import standard
from tests.rules.native import Compiled, define
from tests.rules.reference import LIBRARY

OPCODES = {name: rule for name, rule in standard().opcodes.items() if rule.kind is Kind.SMOOTH}
FUNCTIONS = {
    name: rule for name, rule in standard().functions.items() if rule.kind is Kind.SMOOTH and not name.startswith("%")
}
ROWS = {**OPCODES, **FUNCTIONS}
NOT_IN_LIBM = (
    "identity rcp rsqrt saturate nextafter nexttoward sinpi cospi rcbrt rhypot norm3d norm4d normcdf normcdfinv erfinv "
    "erfcinv erfcx x86_max x86_min nearest rrspacing set_exponent "
    "rescaled_bits rounded_bits line_of_bits bits_of_line of_its_kind"
).split()
EMITTED = {name: rule for name, rule in ROWS.items() if name not in (*NOT_IN_LIBM, "fpext", "fptrunc")}
POINTS = 6


def points(rule: Rule) -> Iterator[tuple[Any, ...]]:
    """Random points of a row's domain; single precision numbers, so that both precisions see the same."""
    source = random.Random(rule.name)
    for _ in range(POINTS):
        yield tuple(
            source.randint(int(low), int(high)) if letter == "i" else float(np.float32(source.uniform(low, high)))
            for letter, (low, high) in zip(rule.parameters, rule.domain, strict=True)
        )


def exact(point: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x if isinstance(x, int) else mpf(x) for x in point)


def environment(rule: Rule, point: tuple[Any, ...]) -> dict[str, Any]:
    return {f"x{i}": x for i, x in enumerate(point)} | {"y": LIBRARY[rule.name](*point)}


def derivative(rule: Rule, point: tuple[Any, ...], index: int) -> Any:
    return mpmath.diff(lambda x: LIBRARY[rule.name](*point[:index], x, *point[index + 1 :]), point[index])


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_complete(name: str) -> None:
    rule = ROWS[name]
    assert len(rule.domain) == len(rule.parameters) == len(rule.partials)
    assert rule.source
    assert name in LIBRARY


@pytest.mark.parametrize("name", ROWS)
def test_formula(name: str) -> None:
    rule = ROWS[name]
    with mp.workdps(40):
        for point in map(exact, points(rule)):
            for index, partial in enumerate(rule.partials):
                if partial is None:
                    continue
                value = evaluate(partial, environment(rule, point), LIBRARY) if isinstance(partial, Expr) else mpf(0)
                assert mpmath.almosteq(value, derivative(rule, point, index), 1e-13, 1e-13), (point, index)


def build_value(
    rule: Rule, builder: Builder, declarations: Declarations, arguments: list[Value], type_: T.Type
) -> Value:
    if rule.name not in OPCODES:
        return declarations.call(builder, rule.name, arguments, type_)
    return builder.unary(rule.name, *arguments) if rule.arity == 1 else builder.binary(rule.name, *arguments)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    """For every row and precision, the function and all its partials."""
    module = Module()
    declarations = Declarations(module)
    for type_ in (T.DOUBLE, T.FLOAT):
        for rule in EMITTED.values():
            parameters = [T.I32 if letter == "i" else type_ for letter in rule.parameters]
            for index, partial in [(-1, None), *enumerate(rule.partials)]:
                if not isinstance(partial, Expr) and index >= 0:
                    continue
                function, builder = define(module, f"{rule.name}.{index}.{type_}", type_, parameters)
                values: list[Value] = list(function.arguments)
                y = build_value(rule, builder, declarations, values, type_)
                known = {f"x{i}": v for i, v in enumerate(values)} | {"y": y}
                result = y if partial is None else emit(partial, builder, known, declarations, type_)
                builder.ret(result)
    return Compiled(module)


@pytest.mark.parametrize("type_, tolerance", [("double", 2e-13), ("float", 3e-5)])
@pytest.mark.parametrize("name", EMITTED)
def test_machine_code(compiled: Compiled, name: str, type_: str, tolerance: float) -> None:
    rule = EMITTED[name]
    for point in points(rule):
        expected = LIBRARY[name](*exact(point))
        assert math.isclose(compiled[f"{name}.-1.{type_}"](*point), expected, rel_tol=tolerance, abs_tol=tolerance)
        for index, partial in enumerate(rule.partials):
            if isinstance(partial, Expr):
                expected = evaluate(partial, environment(rule, exact(point)), LIBRARY)
                value = compiled[f"{name}.{index}.{type_}"](*point)
                assert math.isclose(value, expected, rel_tol=tolerance, abs_tol=tolerance), (point, index)


def test_formulas_call_only_functions_that_have_a_rule() -> None:
    """Else a derivative would have no derivative."""
    table = standard()
    for rule in ROWS.values():
        for partial in rule.partials:
            if isinstance(partial, Expr):
                assert functions(partial) <= set(table.functions)
