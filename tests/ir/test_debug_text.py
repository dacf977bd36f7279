"""Types go from the text of a module, but for those of what chosen functions are passed; places stay."""

from __future__ import annotations

import pytest

from jax_enzyme.frontends.clang import compile_cpp
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir.debug import function_location, location
from jax_enzyme.ir.debug_text import without_types
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import verify
from jax_enzyme.transform.prototype import prototype

SOURCE = b"""
struct Inner { double x, y; double norm() const { double s = x * x; return s + y * y; } };
struct Outer { Inner i[2]; virtual double sum() const { return i[0].norm() + i[1].norm(); } };
template <class T> double apply(const T *t) { return t->sum(); }
struct P { double k; int id; };
extern "C" double f(const P *p, double x) { Outer o; o.i[0].x = x; return apply(&o) * p->k; }
"""


@pytest.fixture(scope="module")
def text() -> str:
    return compile_cpp(Source("c++", "k.cpp", SOURCE), ())


def test_only_the_types_of_chosen_functions_stay(text: str) -> None:
    whole, module = parse(text), parse(without_types(text, ["f"]))
    verify(module)
    names = {node.string("name") for node in module.metadata.values() if node.kind == "DICompositeType"}
    assert "P" in names and not names & {"Outer", "Inner"}
    assert prototype(module, module.functions["f"]) == prototype(whole, whole.functions["f"])


def test_places_and_names_of_variables_stay(text: str) -> None:
    whole, module = parse(text), parse(without_types(text, ["f"]))
    for name, function in whole.functions.items():
        same = module.functions[name]
        assert function_location(module, same) == function_location(whole, function)
        pairs = zip(function.instructions(), same.instructions(), strict=True)
        assert all(location(whole, a) == location(module, b) for a, b in pairs)
    variables = [
        {n.string("name") for n in m.metadata.values() if n.kind == "DILocalVariable"} for m in (whole, module)
    ]
    assert variables[0] == variables[1] >= {"s", "o", "p"}


def test_what_has_no_debug_information_stays_as_it_is() -> None:
    plain = 'define double @f(double %x) {\n  ret double %x, !tag !0\n}\n\n!named = !{!0}\n\n!0 = !{!"a"}\n'
    assert without_types(plain, ["f"]) == plain
