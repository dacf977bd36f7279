"""Modules made by hand: numbering, names, what cannot be written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import Builder, const_float
from jax_enzyme.ir.metadata import DebugRecord, MDConstant, MDNode
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import function_text, to_text
from jax_enzyme.ir.writer_values import WriteError
from tests.support.verified import verify


def _module(
    parameters: tuple[T.Type, ...] = (T.DOUBLE,), result: T.Type = T.DOUBLE
) -> tuple[Module, Function, Builder]:
    arguments = [V.Argument(type_, index=i) for i, type_ in enumerate(parameters)]
    function = Function(T.PTR, T.FunctionType(result, parameters), arguments, [V.BasicBlock()], name="f")
    return Module(functions={"f": function}), function, Builder(function.entry)


def test_unnamed_values_are_numbered_and_shared_names_made_unique() -> None:
    module, function, builder = _module()
    x = function.arguments[0]
    a = builder.binary("fadd", x, x)
    for name in ("t", "t", "t.1", ""):
        a = builder.binary("fmul", a, const_float(T.DOUBLE, 2.0))
        a.name = name
    builder.ret(a)
    names = [line.split(" =")[0].strip() for line in function_text(module, function).splitlines() if "=" in line]
    assert names == ["%2", "%t", "%t.1", "%t.1.1", "%3"]
    verify(module)


@given(st.lists(st.text(st.characters(max_codepoint=255, min_codepoint=1), max_size=6), min_size=1, max_size=5))
def test_any_name_survives(names: list[str]) -> None:
    module, function, builder = _module()
    function.name = names[0] if names[0] and not names[0].isdigit() else "f"
    module.functions = {function.name: function}
    value: V.Value = function.arguments[0]
    for name in names:
        value = builder.unary("fneg", value)
        value.name = name
    builder.ret(value)
    verify(module)
    again = parse(to_text(module))
    assert list(again.functions) == [function.name]
    found = [i.name for i in again.functions[function.name].instructions()]
    wanted = [i.name for i in function.instructions()]
    assert len(found) == len(wanted)
    assert all(f == w or names.count(w) > 1 or f.startswith(w) for f, w in zip(found, wanted, strict=True))


def test_removed_value_in_a_debug_record_becomes_poison() -> None:
    module, function, builder = _module()
    gone = Builder(V.BasicBlock()).unary("fneg", function.arguments[0])
    builder.ret(function.arguments[0])
    function.entry.terminator.records = (DebugRecord("value", [MDConstant(gone), MDNode()]),)
    module.metadata["0"] = MDNode(operands=[MDConstant(Function(T.PTR, function.function_type, [], name="gone"))])
    assert "#dbg_value(double poison, !{})" in to_text(module)
    assert "!0 = !{ptr poison}" in to_text(module)  # as of `total<sum>` where `sum` was put in its place
    assert "#dbg" not in to_text(module, debug=False)


def test_value_from_elsewhere_is_refused() -> None:
    module, function, builder = _module()
    builder.ret(Builder(V.BasicBlock()).unary("fneg", function.arguments[0]))
    with pytest.raises(WriteError, match="UnaryOp '' of type double is not defined"):
        to_text(module)


def test_declared_global() -> None:
    variable = GlobalVariable(T.PTR, T.I32, name="x", prefix=("thread_local",))
    text = to_text(Module(globals={"x": variable}))
    assert "@x = external thread_local global i32" in text
    verify(parse(text))


def test_unnamed_globals_are_numbered_again() -> None:
    module = parse("@0 = global i32 1\n@1 = global i32 2\n@x = global ptr @1")
    del module.globals["0"]
    text = to_text(module)
    assert "@0 = global i32 2" in text and "@x = global ptr @0" in text


def test_long_names_are_cut() -> None:
    """LLVM reads none of more than 1024 characters."""
    long = "a" * 3000
    b, c = f"%{long}b", f"%{long}c"
    text = f"define double @f(double {b}, double {c}) {{\n  %s = fadd double {b}, {c}\n  ret double %s\n}}\n"
    module = parse(text)
    verify(module)
    written = to_text(module)
    assert len(written) < 2000
    assert to_text(parse(written)) == written
