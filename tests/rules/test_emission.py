from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.instructions import ExtractElement, InsertElement
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import Value
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.emit import emit, emit_product
from jax_enzyme.rules.expr import Expr, parse
from jax_enzyme.rules.table import standard
from tests.rules.native import Compiled, build, define
from tests.support.verified import verify

V4F32 = T.VectorType(4, T.FLOAT)
V2F64 = T.VectorType(2, T.DOUBLE)


def partial(name: str, index: int = 0) -> Expr:
    formula = standard().functions[name].partials[index]
    assert isinstance(formula, Expr)
    return formula


def body_of(module: Module) -> list[str]:
    return [line.strip() for line in to_text(module).splitlines() if line.startswith("  ")]


def product(formula: str) -> list[str]:
    def body(builder: Builder, declarations: Declarations, t: Value, x: Value, y: Value) -> Value:
        return emit_product(parse(formula), t, builder, {"x0": x, "x1": y}, declarations)

    return body_of(build("f", T.DOUBLE, [T.DOUBLE] * 3, body))


def test_the_power_rule_folds_for_a_constant_exponent() -> None:
    """pow(x, 3.0) must leave products only: no call, no selection."""

    def body(builder: Builder, declarations: Declarations, x: Value, t: Value) -> Value:
        exponent = const_float(T.DOUBLE, 3.0)
        y = declarations.call(builder, "pow", [x, exponent], T.DOUBLE)
        return emit_product(partial("pow"), t, builder, {"x0": x, "x1": exponent, "y": y}, declarations)

    compiled = Compiled(build("f", T.DOUBLE, [T.DOUBLE, T.DOUBLE], body))
    code = compiled.text[: compiled.text.index("}")]
    assert "call" not in code
    assert "select" not in code
    assert compiled["f"](1.7, 2.0) == pytest.approx(3 * 1.7**2 * 2.0, rel=1e-15)


@pytest.mark.parametrize("exponent", [0, 1, 2, 5, -3])
def test_the_integer_power_rule_folds_too(exponent: int) -> None:
    def body(builder: Builder, declarations: Declarations, x: Value) -> Value:
        return emit(partial("powi"), builder, {"x0": x, "x1": const_int(T.I32, exponent)}, declarations, T.DOUBLE)

    compiled = Compiled(build("f", T.DOUBLE, [T.DOUBLE], body))
    assert "select" not in compiled.text
    assert compiled["f"](0.0 if exponent == 0 else 1.3) == pytest.approx(exponent * 1.3 ** (exponent - 1), rel=1e-14)


def test_a_wide_exponent_of_powi() -> None:
    def body(builder: Builder, declarations: Declarations, x: Value, n: Value) -> Value:
        return emit(partial("powi"), builder, {"x0": x, "x1": n}, declarations, T.DOUBLE)

    compiled = Compiled(build("f", T.DOUBLE, [T.DOUBLE, T.I64], body))
    assert compiled["f"](1.3, 5) == pytest.approx(5 * 1.3**4, rel=1e-14)
    assert compiled["f"](0.0, 0) == 0.0


def test_a_wide_exponent_of_ldexp_is_clamped() -> None:
    def body(builder: Builder, declarations: Declarations, n: Value) -> Value:
        return emit(parse("ldexp(1, x0)"), builder, {"x0": n}, declarations, T.DOUBLE)

    compiled = Compiled(build("f", T.DOUBLE, [T.I64], body))
    assert compiled["f"](-3) == 0.125
    assert compiled["f"](1 << 40) == math.inf
    assert compiled["f"](-(1 << 40)) == 0.0


@pytest.mark.parametrize(
    "formula, expected",
    [
        ("1", []),
        ("-1", ["fneg"]),
        ("x0", ["fmul"]),
        ("-x0", ["fmul", "fneg"]),
        ("1 / x0", ["call", "fcmp", "fdiv", "fmul", "fmul", "fmul", "select"]),
        ("1 / (x0*x1)", ["fdiv", "fmul"]),
        ("-1 / (x0*x1)", ["fdiv", "fmul", "fneg"]),
        ("1 if x0 > x1 else 0", ["fcmp", "select"]),
        ("0 if x0 == 0 else x0*x1", ["fcmp", "fmul", "fmul", "select"]),
        ("(x0 + x1)*(x0 + x1)", ["fadd", "fmul", "fmul"]),
    ],
)
def test_products_leave_out_what_is_needless(formula: str, expected: list[str]) -> None:
    opcodes = [line.split(" = ")[1].split()[0] for line in product(formula) if " = " in line]
    assert sorted(opcodes) == sorted(expected)


@pytest.mark.parametrize("type_, small", [(T.DOUBLE, 2.0**-1070), (T.FLOAT, 2.0**-140)])
def test_quotients_by_subnormal_numbers_are_numbers(type_: T.Type, small: float) -> None:
    def body(builder: Builder, declarations: Declarations, factor: Value, x: Value) -> Value:
        return emit_product(parse("1 / x0"), factor, builder, {"x0": x}, declarations)

    quotient = Compiled(build("f", type_, [type_] * 2, body))["f"]
    assert [quotient(f, small) for f in (0.0, small, -3 * small, 1.0)] == [0.0, 1.0, -3.0, math.inf]
    assert quotient(3.0, 2.0) == 1.5


def test_a_zero_partial_gives_zero_for_an_infinite_factor() -> None:
    def body(builder: Builder, declarations: Declarations, t: Value, x: Value, y: Value) -> Value:
        return emit_product(partial("fmax"), t, builder, {"x0": x, "x1": y}, declarations)

    compiled = Compiled(build("f", T.DOUBLE, [T.DOUBLE] * 3, body))
    assert compiled["f"](math.inf, 1.0, 2.0) == 0.0
    assert compiled["f"](math.inf, 3.0, 2.0) == math.inf


@pytest.mark.parametrize("name", ["sin", "cbrt", "lgamma", "hypot", "pow", "erf", "fmax", "tgamma"])
@pytest.mark.parametrize("type_", [V4F32, V2F64])
def test_vectors_are_computed_lane_by_lane(name: str, type_: T.VectorType) -> None:
    rule = standard().functions[name]
    module = Module()
    declarations = Declarations(module)
    for index in range(rule.arity):
        scalar = type_.element
        function, builder = define(module, f"lane{index}", scalar, [scalar] * rule.arity + [T.I32])
        *arguments, lane = function.arguments
        vectors: list[Value] = []
        for argument in arguments:
            value: Value = const_float(type_, 0.5)
            vectors.append(builder.insert(InsertElement(type_, "insertelement", [value, argument, lane])))
        y = declarations.call(builder, name, vectors, type_)
        known = {f"x{i}": v for i, v in enumerate(vectors)} | {"y": y}
        result = emit(partial(name, index), builder, known, declarations, type_)
        builder.ret(builder.insert(ExtractElement(scalar, "extractelement", [result, lane])))
        scalars, builder = define(module, f"scalar{index}", scalar, [scalar] * rule.arity)
        values: list[Value] = list(scalars.arguments)
        y = declarations.call(builder, name, values, scalar)
        known = {f"x{i}": v for i, v in enumerate(values)} | {"y": y}
        builder.ret(emit(partial(name, index), builder, known, declarations, scalar))
    compiled = Compiled(module)
    point = (0.75, 1.25)[: rule.arity]
    for index in range(rule.arity):
        for lane in range(type_.count):
            expected = compiled[f"scalar{index}"](*point)
            assert compiled[f"lane{index}"](*point, lane) == pytest.approx(expected, rel=1e-6)


def test_an_integer_argument_of_a_vector_function() -> None:
    def body(builder: Builder, declarations: Declarations, n: Value) -> Value:
        x = const_float(V2F64, 1.5)
        value = emit(partial("powi"), builder, {"x0": x, "x1": n}, declarations, V2F64)
        other = emit(parse("ldexp(x0, x1)"), builder, {"x0": value, "x1": n}, declarations, V2F64)
        return builder.insert(ExtractElement(T.DOUBLE, "extractelement", [other, const_int(T.I32, 1)]))

    compiled = Compiled(build("f", T.DOUBLE, [T.I32], body))
    assert compiled["f"](3) == 8 * 3 * 1.5**2


@pytest.mark.parametrize("type_", [T.HALF, T.BFLOAT, T.VectorType(4, T.HALF)])
@pytest.mark.parametrize("name", ["tanh", "cbrt", "lgamma"])
def test_half_precision_is_computed_in_single(type_: T.Type, name: str) -> None:
    def body(builder: Builder, declarations: Declarations, x: Value, t: Value) -> Value:
        return emit_product(partial(name), t, builder, {"x0": x, "y": x}, declarations)

    module = build("f", type_, [type_, type_], body)
    verify(module)
    text = to_text(module)
    assert "fpext" in text
    assert "fptrunc" in text


def test_half_precision_is_rounded_once() -> None:
    def body(builder: Builder, declarations: Declarations, x: Value) -> Value:
        half = builder.cast("fptrunc", x, T.HALF)
        return builder.cast("fpext", emit(parse("1 + x0*x0"), builder, {"x0": half}, declarations, T.HALF), T.FLOAT)

    value = Compiled(build("f", T.FLOAT, [T.FLOAT], body))["f"](0.3)
    x = struct.unpack("e", struct.pack("e", 0.3))[0]
    assert value == struct.unpack("e", struct.pack("e", 1 + x * x))[0]


@pytest.mark.parametrize("type_", [T.FloatType("x86_fp80"), T.FloatType("fp128")])
def test_wide_types_verify(type_: T.Type) -> None:
    def body(builder: Builder, declarations: Declarations, x: Value) -> Value:
        return emit(parse("2*cbrt(x0) + sin(x0)"), builder, {"x0": x}, declarations, type_)

    module = build("f", type_, [type_], body)
    verify(module)
    assert "cbrtl" in module.functions


@pytest.mark.parametrize("kind", ["x86_fp80", "fp128"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -0.1, 5e-324, 1.7e308, math.inf, -math.inf, math.nan])
def test_wide_constants(kind: str, value: float) -> None:
    def body(builder: Builder, _: Declarations) -> Value:
        return builder.cast("fptrunc", const_float(T.FloatType(kind), value), T.DOUBLE)

    got = Compiled(build("f", T.DOUBLE, [], body))["f"]()
    np.testing.assert_array_equal(np.array([got, np.copysign(1, got)]), np.array([value, np.copysign(1, value)]))


def test_a_symbol_of_another_type_is_an_error() -> None:
    module = Module()
    declarations = Declarations(module)
    declarations.function("cbrt", T.FunctionType(T.DOUBLE, (T.I32,)))
    _, builder = define(module, "f", T.DOUBLE, [T.DOUBLE])
    with pytest.raises(ValueError, match="cbrt"):
        declarations.call(builder, "cbrt", [const_float(T.DOUBLE, 1.0)], T.DOUBLE)


def test_an_unknown_function_is_an_error() -> None:
    module = Module()
    _, builder = define(module, "f", T.DOUBLE, [T.DOUBLE])
    with pytest.raises(ValueError, match="frobnicate"):
        Declarations(module).call(builder, "frobnicate", [const_float(T.DOUBLE, 1.0)], T.DOUBLE)


def test_a_users_rule_may_call_a_function_of_the_module() -> None:
    module = Module()
    slope, builder = define(module, "my_slope", T.DOUBLE, [T.DOUBLE])
    builder.ret(builder.binary("fmul", slope.arguments[0], slope.arguments[0]))
    f, builder = define(module, "f", T.DOUBLE, [T.DOUBLE])
    known = {"x0": f.arguments[0]}
    builder.ret(emit(parse("2*my_slope(x0)"), builder, known, Declarations(module), T.DOUBLE))
    assert Compiled(module)["f"](3.0) == 18.0


def test_declarations_are_made_once() -> None:
    module = Module()
    declarations = Declarations(module)
    _, builder = define(module, "f", T.DOUBLE, [T.DOUBLE])
    for _ in range(3):
        declarations.call(builder, "erf", [const_float(T.DOUBLE, 1.0)], T.DOUBLE)
    assert list(module.functions) == ["f", "erf"]
    assert "memory(none)" in to_text(module)
